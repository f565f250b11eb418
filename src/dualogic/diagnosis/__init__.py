"""How a rule is satisfied: by what it says, or by a shortcut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dualogic.arguments import check_rules
from dualogic.diagnosis import verdict
from dualogic.diagnosis.accumulator import Diagnosis
from dualogic.diagnosis.alarm import Alarm
from dualogic.diagnosis.comparison import Comparison
from dualogic.diagnosis.events import Events
from dualogic.diagnosis.monitor import Monitor
from dualogic.diagnosis.render import make_overview
from dualogic.diagnosis.report import ConnectiveReport, RuleReport, ShortcutReport
from dualogic.diagnosis.verdict import class_name, percent
from dualogic.errors import SymbolError
from dualogic.formula.connective import Formula
from dualogic.loss import LogicLoss

__all__ = ["Alarm", "Comparison", "ConnectiveReport", "Diagnosis", "Events", "Monitor", "RuleReport", "ShortcutReport"]
__all__ += ["class_name", "diagnose", "make_overview", "percent", "verdict"]


def diagnose(
    rules: Formula | Mapping[str, Formula] | LogicLoss,
    tol: float = 0.0,
    labels: Any = None,
    *,
    index: Any = None,
    lead: float = 0.0,
    class_cost: str | None = None,
    worst: int = 5,
    **tensors: Any,
) -> ShortcutReport:
    """How rules are satisfied by a batch, or by a whole data set: by which branch, vacuously or not, in each class.

    For data that come in batches use :class:`Diagnosis`.

    Args:
        rules: a formula, a mapping of names to formulas, or a :class:`~dualogic.LogicLoss`. With the latter and an ``index``
            the report also says what the dual variables chose.
        tol: a comparison ``v <= c`` holds where ``v <= c + tol``.
        labels: the class of each sample, ``(batch,)`` integers, or a mapping from symbols to their true values; see
            :meth:`Diagnosis.update`.
        index: names of the samples, ``(batch,)`` integers; with a loss, its training samples.
        lead: ``f == k`` holds where the probability of class ``k`` exceeds every other by more than this.
        class_cost: of the costs by which samples are ranked; the loss's own by default, ``"probability"`` without one.
        worst: how many samples of the largest cost to list for each rule.
        tensors: one for each symbol, by name, with a leading batch axis.

    Example:
        >>> import dualogic as dl, torch
        >>> wet, rain = dl.boolean("wet"), dl.boolean("rain")
        >>> report = dl.diagnose(rain >> wet, rain=torch.tensor([0.9, 0.8, 0.1]), wet=torch.tensor([0.9, 0.2, 0.3]))
        >>> report.verdict
        'violated on 33.3 % of the samples'
        >>> report.rules["rule"].worst[0].position
        1
    """
    named = rules.rules if isinstance(rules, LogicLoss) else check_rules(rules)
    if any("worst" in formula.symbols for formula in named.values()):
        raise SymbolError(
            "a rule has a symbol named 'worst', which is an option of diagnose(); use dl.diagnosis.Diagnosis(rules) and its "
            "update(...) instead, or rename the symbol"
        )
    diagnosis = Diagnosis(rules, tol=tol, lead=lead, class_cost=class_cost, worst=worst)
    diagnosis.update(index=index, labels=labels, **tensors)
    return diagnosis.compute()
