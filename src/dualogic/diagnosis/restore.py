"""Reports back from what ``to_dict`` made of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

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
from dualogic.errors import DataError


def restore(values: Mapping[str, Any]) -> ShortcutReport:
    """See :meth:`ShortcutReport.from_dict`."""
    try:
        fields = _known(ShortcutReport, values)
        names = fields.get("class_names")
        rules = {str(name): _restore_rule(rule) for name, rule in fields["rules"].items()}
        return ShortcutReport(**{**fields, "rules": rules, "class_names": None if names is None else tuple(names)})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"this is not what ShortcutReport.to_dict() gives: {type(error).__name__}: {error}") from error


def _restore_rule(values: Mapping[str, Any]) -> RuleReport:
    fields = _known(RuleReport, values)
    # JSON has no infinite numbers: only the cost of a single sample can be one.
    worst = ({**sample, "cost": math.inf if sample["cost"] is None else sample["cost"]} for sample in fields["worst"])
    fields.update(
        connectives=tuple(_restore_connective(part) for part in fields["connectives"]),
        classes={int(label): _restore_rule(part) for label, part in fields["classes"].items()},
        worst=tuple(SampleReport(**sample) for sample in worst),
        findings=tuple(Finding(**finding) for finding in fields["findings"]),
    )
    return RuleReport(**fields)


def _restore_connective(values: Mapping[str, Any]) -> ConnectiveReport:
    fields = _known(ConnectiveReport, values)
    antecedent, elsewhere, weights = (fields.get(name) for name in ("antecedent", "elsewhere", "weights"))
    fields.update(
        operands=tuple(OperandReport(**operand) for operand in fields["operands"]),
        antecedent=None if antecedent is None else AntecedentReport(**antecedent),
        elsewhere=None if elsewhere is None else ElsewhereReport(**elsewhere),
        weights=None if weights is None else WeightReport(**weights),
    )
    return ConnectiveReport(**fields)


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass, without what was derived from them."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in values.items() if name in names}
