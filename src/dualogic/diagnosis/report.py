"""What is known about how rules are satisfied: plain values, with no tensors in them."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dualogic.diagnosis.outline import CHOICES
from dualogic.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from dualogic.diagnosis.comparison import Comparison


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that the numbers say."""

    kind: str  # one of the constants of `dualogic.diagnosis.verdict`, such as "violated"
    sentence: str  # the finding in words, with its numbers
    path: str  # the connective that it is about; the rule's name if it is about the whole

    @property
    def advice(self) -> str:
        """What to try; empty if there is nothing to mend."""
        from dualogic.diagnosis.verdict import REMEDIES

        return REMEDIES.get(self.kind, "")


class Judged:
    """What findings, the most serious first, come to."""

    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """The most serious finding, in one sentence."""
        return self.findings[0].sentence if self.findings else ""

    @property
    def kind(self) -> str:
        """The kind of the most serious finding."""
        return self.findings[0].kind if self.findings else ""


class Report:
    """What a report on a model and one on a model against a baseline share: the verdict on all rules, and how it is shown."""

    rules: Mapping[str, Any]  # what is known of each rule, by name
    findings: tuple[Finding, ...] = ()  # what is said of several rules together

    @property
    def verdict(self) -> str:
        """The most serious finding of all rules, in one sentence."""
        from dualogic.diagnosis.verdict import summarize

        if self.findings and self.kind == self.findings[0].kind:
            return self.findings[0].sentence
        return summarize({name: rule.findings for name, rule in self.rules.items()})

    @property
    def kind(self) -> str:
        """The kind of the most serious finding of all rules."""
        from dualogic.diagnosis.verdict import most_serious

        return most_serious((self.findings, *(rule.findings for rule in self.rules.values())))

    def details(self, *names: str) -> str:
        """Everything about some rules by name, or about all, as text; printed, a report has one row for each of many rules.

        Example:
            >>> import dualogic as dl, torch
            >>> report = dl.diagnose({f"r{k}": dl.var("x") <= k for k in range(9)}, x=torch.tensor([3.0, 3.0]))
            >>> print(report.details("r2").splitlines()[0])
            r2: x <= 2
        """
        from dualogic.diagnosis.render import show_details, to_text

        return to_text(show_details(self, names))

    def to_frame(self) -> Any:
        """One row for each rule, the worst first, as a ``pandas.DataFrame``; pandas must be installed."""
        from dualogic.diagnosis.render import make_overview

        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_frame() needs pandas, which is not installed; type: pip install pandas") from error
        return pd.DataFrame(make_overview(self)).set_index("rule")

    def to_markdown(self) -> str:
        """All of it as Markdown tables."""
        from dualogic.diagnosis.render import show, to_markdown

        return to_markdown(show(self))

    def __str__(self) -> str:
        from dualogic.diagnosis.render import show, to_text

        return to_text(show(self))

    def __rich__(self) -> Any:
        from rich.markdown import Markdown

        return Markdown(self.to_markdown())


@dataclasses.dataclass(frozen=True)
class OperandReport:
    """One operand of a connective; fractions are of the connective's units."""

    text: str  # the operand
    holds: float | None  # how often it holds; for a branch of a choice, decidedly (see `undecided` in `RuleReport`)
    alone: float | None  # how often it is the only branch that holds or, in a conjunction, the only part that fails
    weight: float | None = None  # its mean dual weight
    weight_alone: float | None = None  # the same over the units that `alone` counts; `None` if there are none
    chosen: float | None = None  # how often its weight exceeds all others
    chosen_rightly: float | None = None  # how often it is chosen and holds or, in a conjunction, is chosen and fails


@dataclasses.dataclass(frozen=True)
class AntecedentReport:
    """How often an implication applies; fractions are of the connective's units."""

    text: str  # the antecedent
    holds: float | None  # the antecedent is true; the rule asks for something
    applied: float | None  # the antecedent is true, and so is the consequent
    denied: float | None  # the antecedent is false; the rule asks for nothing and is satisfied vacuously
    undecided: float | None  # neither, because no class leads by `lead`
    expected: float | None = None  # the antecedent is true by the labels of its symbols; `None` if they were not given
    read: float | None = None  # of the units that `expected` counts, the fraction on which the model makes it true
    labelled: int = 0  # on how many units it is true by the labels while those of the consequent are known
    contradicted: float | None = None  # of these, the fraction on which the consequent is false by the labels

    @property
    def kept(self) -> float | None:
        """How often the consequent holds where the antecedent does."""
        return self.applied / self.holds if self.holds and self.applied is not None else None


@dataclasses.dataclass(frozen=True)
class ElsewhereReport:
    """The consequent of an implication where no rule asks for it.

    A unit is elsewhere if the antecedent is false, and so is that of every other implication with the same consequent.
    """

    units: int  # how many
    share: float | None  # their fraction of the connective's units
    holds: float | None  # how often the consequent holds there
    labelled: int = 0  # for how many of them the consequent's labels are known; what follows are fractions of these
    expected: float | None = None  # the consequent is true by the labels
    wrongly: float | None = None  # it holds, and is false by the labels
    missed: float | None = None  # it does not hold, and is true by the labels


@dataclasses.dataclass(frozen=True)
class WeightReport:
    """What the dual variables of a connective say."""

    entropy: float | None  # the mean entropy of the weights, divided by that of equal ones: 1 is uniform, 0 is decided
    # Of the units that have a choice and are decided by some branch (in a conjunction: violated by some part), the fraction on
    # which the chosen operand is among those; `None` if there is no such unit.
    agreement: float | None


@dataclasses.dataclass(frozen=True)
class ConnectiveReport:
    """One connective of a rule."""

    path: str  # as in `LogicLoss.weights`
    kind: str  # "or", "implies", "and", "all" or "any"
    text: str  # the connective
    counted: str  # what its units are: "samples", or "entries" of the quantifiers around it
    total: int  # the number of units
    operands: tuple[OperandReport, ...] = ()  # of "or" and "and"; of "implies", the negated antecedent and the consequent
    together: float | None = None  # how often several branches hold or, in a conjunction, several parts fail
    none: float | None = None  # how often no branch holds or, in a conjunction, no part fails
    antecedent: AntecedentReport | None = None  # of an implication
    elsewhere: ElsewhereReport | None = None  # of an implication: how often its consequent holds where no rule asks for it
    entries: int | None = None  # of a quantifier: the number of entries that exist in all units together
    holding: float | None = None  # of a quantifier: the fraction of these on which the formula inside holds
    empty: float | None = None  # of a quantifier: the fraction of units without an entry; "all" then holds, and "any" does not
    weights: WeightReport | None = None  # if a `LogicLoss` with dual variables was given


@dataclasses.dataclass(frozen=True)
class SampleReport:
    """One sample of large cost."""

    position: int  # its place among all samples, counted from 0 in the order in which they came
    index: int | None  # its index, if one was given
    label: int | None  # its class, if known
    cost: float  # at the optimal duals
    satisfied: bool  # whether the rule holds for it


@dataclasses.dataclass(frozen=True)
class RuleReport(Judged):
    """How one rule is satisfied, by all samples or by those of one class."""

    name: str  # of the rule
    text: str  # the rule
    samples: int  # how many
    satisfied: float | None  # the fraction on which it holds, as `formula.satisfied` says
    undecided: float | None  # the fraction on which it holds only because `f != k` counts as true where no class leads by `lead`
    cost: float | None  # the mean cost at the optimal duals, of those that are finite
    connectives: tuple[ConnectiveReport, ...]  # from the root down to the outermost choices
    classes: Mapping[int, RuleReport] = dataclasses.field(default_factory=dict)  # the same for each class; empty without labels
    worst: tuple[SampleReport, ...] = ()  # samples of the largest cost, the largest first
    findings: tuple[Finding, ...] = ()  # what the numbers say, the most serious first
    labelled: int = 0  # of a rule without an implication: how many samples have labels for all of its symbols
    contradicted: float | None = None  # of these, the fraction on which the labels break the rule

    @property
    def violated(self) -> float | None:
        """The fraction of samples on which it does not hold."""
        return None if self.satisfied is None else 1.0 - self.satisfied

    @property
    def choices(self) -> tuple[ConnectiveReport, ...]:
        """The connectives that can be satisfied in several ways."""
        return tuple(part for part in self.connectives if part.kind in CHOICES)

    @functools.cached_property
    def by_path(self) -> Mapping[str, ConnectiveReport]:
        """The connectives by their paths."""
        return {part.path: part for part in self.connectives}

    @property
    def antecedent(self) -> AntecedentReport | None:
        """That of the rule's first implication."""
        return next((part.antecedent for part in self.connectives if part.antecedent is not None), None)


@dataclasses.dataclass(frozen=True)
class ShortcutReport(Report):
    """How rules are satisfied; made by :func:`dualogic.diagnose`.

    Attributes:
        samples: how many.
        rules: a report for each rule, by name.
        tol: what comparisons were relaxed by.
        lead: what classes had to lead by.
        class_cost: of the costs.
        class_names: names of the labels, if given.
        satisfied: the fraction of samples on which all rules hold.
    """

    samples: int
    rules: Mapping[str, RuleReport]
    tol: float
    lead: float
    class_cost: str
    class_names: tuple[str, ...] | None = None
    satisfied: float | None = None

    def compare(self, baseline: ShortcutReport) -> Comparison:
        """What changed against the report on another model on the same samples, such as one trained without the rules.

        Example:
            >>> import dualogic as dl, torch
            >>> f, g = dl.categorical("f", 3), dl.categorical("g", 3)
            >>> rule = (g == 2) >> (f == 1)
            >>> zero, two = torch.tensor([[1.0, 0.0, 0.0]]).repeat(4, 1), torch.tensor([[0.0, 0.0, 1.0]]).repeat(4, 1)
            >>> before, after = dl.diagnose(rule, f=zero, g=two), dl.diagnose(rule, f=zero, g=zero)
            >>> after.compare(before).kind
            'antecedent switched off'
        """
        from dualogic.diagnosis.comparison import compare

        return compare(baseline, self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, dictionaries and numbers for JSON; infinite costs are ``None``, class keys are text."""
        return {**plain(self), "verdict": self.verdict, "kind": self.kind}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ShortcutReport:
        """The inverse of :meth:`to_dict`, also after a way through JSON.

        Example:
            >>> import dualogic as dl, json, torch
            >>> report = dl.diagnose(dl.var("x") <= 0, x=torch.tensor([-1.0, 1.0]))
            >>> ShortcutReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
            True
        """
        from dualogic.diagnosis.restore import restore

        try:
            report: ShortcutReport = restore(ShortcutReport, values, "a report")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"this is not what ShortcutReport.to_dict() gives: {type(error).__name__}: {error}") from error
        return report


def plain(value: Any) -> Any:
    """Dataclasses as dictionaries (rules with their verdicts), all the way down."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        derived = ("violated", "verdict", "kind") if isinstance(value, RuleReport) else ()
        return {**fields, **{name: plain(getattr(value, name)) for name in derived}}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
