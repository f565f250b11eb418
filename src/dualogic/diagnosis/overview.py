"""Many rules at a glance: one row for each, the worst first."""

from __future__ import annotations

from typing import Any

from dualogic.diagnosis.report import Report, RuleReport
from dualogic.diagnosis.verdict import KINDS
from dualogic.errors import MissingExtraError, SymbolError

MANY = 5
"""More rules than this are shown as one table."""


def make_overview(report: Report) -> list[dict[str, Any]]:
    """One row for each rule, the most serious finding first, and among equals the rule that holds least often.

    Args:
        report: on a model, or on a model against a baseline.

    Returns:
        Dictionaries of ``rule``, ``text``, ``samples``, ``holds`` (a fraction), ``vacuous`` (the fraction on which the antecedent
        of the first implication is false; ``None`` without one), ``cost``, ``kind`` and ``verdict``; against a baseline also
        ``before``, the fraction on which the rule held there.

    Example:
        >>> import dualogic as dl, torch
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> report = dl.diagnose({"kept": b, "broken": a >> b}, a=torch.ones(4), b=torch.tensor([1.0, 0.0, 0.0, 1.0]))
        >>> [(row["rule"], row["holds"], row["vacuous"]) for row in make_overview(report)]
        [('kept', 0.5, None), ('broken', 0.5, 0.0)]
    """
    rows = []
    for name, judged in report.rules.items():
        rule = judged if isinstance(judged, RuleReport) else judged.after
        row = {
            "rule": name,
            "text": rule.text,
            "samples": rule.samples,
            "holds": rule.satisfied,
            "vacuous": None if rule.antecedent is None else rule.antecedent.denied,
            "cost": rule.cost,
            "kind": judged.kind,
            "verdict": judged.verdict,
        }
        rows.append(row if isinstance(judged, RuleReport) else {**row, "before": judged.before.satisfied})
    ranks = {kind: rank for rank, kind in enumerate(KINDS)}
    return sorted(rows, key=lambda row: (ranks.get(row["kind"], len(KINDS)), -1.0 if row["holds"] is None else row["holds"]))


def to_frame(report: Report) -> Any:
    """The rows of :func:`make_overview` as a ``pandas.DataFrame`` with the rules' names as its index."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("to_frame() needs pandas, which is not installed; type: pip install pandas") from error
    return pd.DataFrame(make_overview(report)).set_index("rule")


def check_names(report: Report, names: tuple[str, ...]) -> tuple[str, ...]:
    """The rules to show: those named, or all."""
    unknown = [name for name in names if name not in report.rules]
    if unknown:
        raise SymbolError(f"there is no rule named {unknown[0]!r}; the rules are {', '.join(map(repr, report.rules))}")
    return names or tuple(report.rules)
