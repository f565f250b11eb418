"""Reports back from what ``to_dict`` made of them."""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
from collections.abc import Mapping
from typing import Any

from dualogic.diagnosis.report import ConnectiveReport, RuleReport, SampleReport
from dualogic.diagnosis.verdict import KINDS


def restore(kind: Any, value: Any, name: str) -> Any:
    """A value of the type that a field of this name was declared with; see :meth:`ShortcutReport.from_dict`."""
    inside = typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, value)
    if typing.get_origin(kind) is tuple:
        return tuple(restore(inside[0], item, name) for item in value)
    if typing.get_origin(kind) is Mapping:
        return {inside[0](key): restore(inside[1], item, name) for key, item in value.items()}
    if type(None) in inside:
        return None if value is None else restore(inside[0], value, name)
    if type(value) is not kind and (kind, type(value)) != (float, int):
        raise TypeError(f"{name} must be {kind.__name__}, not {type(value).__name__}")
    return value


@functools.cache
def _fields(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _read_dataclass(kind: Any, values: Mapping[str, Any]) -> Any:
    types = _fields(kind)
    if kind is SampleReport and values["cost"] is None:
        values = {**values, "cost": math.inf}  # JSON has no infinite numbers: only the cost of a single sample can be one
    # Some dictionaries hold more than the fields: what is derived from them.
    made = kind(**{name: restore(types[name], value, name) for name, value in values.items() if name in types})
    if isinstance(made, RuleReport) and (unknown := [each.kind for each in made.findings if each.kind not in KINDS]):
        raise ValueError(f"a finding of the kind {unknown[0]!r}")
    if isinstance(made, ConnectiveReport) and made.antecedent is not None and len(made.operands) != 2:
        raise ValueError(f"an implication with {len(made.operands)} operands")
    return made
