"""Reports back from what ``to_dict`` made of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from dualogic.diagnosis.report import (
    AntecedentReport,
    ConnectiveReport,
    ElsewhereReport,
    Finding,
    OperandReport,
    RuleReport,
    SampleReport,
    ShortcutReport,
    WeightReport,
)
from dualogic.diagnosis.verdict import KINDS
from dualogic.errors import DataError

PLAIN = {"str": (str,), "int": (int,), "bool": (bool,), "float": (float, int), "None": (type(None),)}
"""Types of fields by their annotations."""
Made = TypeVar("Made")


def restore(values: Mapping[str, Any]) -> ShortcutReport:
    """See :meth:`ShortcutReport.from_dict`."""
    try:
        fields = _known(ShortcutReport, values)
        names = fields.get("class_names")
        rules = {str(name): _restore_rule(rule) for name, rule in fields["rules"].items()}
        return _make(ShortcutReport, {**fields, "rules": rules, "class_names": None if names is None else tuple(map(str, names))})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"this is not what ShortcutReport.to_dict() gives: {type(error).__name__}: {error}") from error


def _restore_rule(values: Mapping[str, Any]) -> RuleReport:
    fields = _known(RuleReport, values)
    # JSON has no infinite numbers: only the cost of a single sample can be one.
    worst = ({**sample, "cost": math.inf if sample["cost"] is None else sample["cost"]} for sample in fields["worst"])
    fields.update(
        connectives=tuple(_restore_connective(part) for part in fields["connectives"]),
        classes={int(label): _restore_rule(part) for label, part in fields["classes"].items()},
        worst=tuple(_make(SampleReport, sample) for sample in worst),
        findings=tuple(_make(Finding, finding) for finding in fields["findings"]),
    )
    unknown = [finding.kind for finding in fields["findings"] if finding.kind not in KINDS]
    if unknown:
        raise ValueError(f"a finding of the kind {unknown[0]!r}")
    return _make(RuleReport, fields)


def _restore_connective(values: Mapping[str, Any]) -> ConnectiveReport:
    fields = _known(ConnectiveReport, values)
    antecedent, elsewhere, weights = (fields.get(name) for name in ("antecedent", "elsewhere", "weights"))
    fields.update(
        operands=tuple(_make(OperandReport, operand) for operand in fields["operands"]),
        antecedent=None if antecedent is None else _make(AntecedentReport, antecedent),
        elsewhere=None if elsewhere is None else _make(ElsewhereReport, elsewhere),
        weights=None if weights is None else _make(WeightReport, weights),
    )
    if fields["antecedent"] is not None and len(fields["operands"]) != 2:
        raise ValueError(f"an implication with {len(fields['operands'])} operands")
    return _make(ConnectiveReport, fields)


def _make(kind: type[Made], values: Mapping[str, Any]) -> Made:
    """A dataclass whose fields of plain types hold what these say."""
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        wanted = str(field.type).split(" | ")
        if (
            field.name in values
            and set(wanted) <= PLAIN.keys()
            and type(values[field.name]) not in {one for name in wanted for one in PLAIN[name]}
        ):
            raise TypeError(f"{field.name} must be {field.type}, not {type(values[field.name]).__name__}")
    return kind(**values)


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass, without what was derived from them."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in values.items() if name in names}
