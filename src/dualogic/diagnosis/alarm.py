"""What a monitor can say about a rule in training, and what to try."""

from __future__ import annotations

import dataclasses

from dualogic.diagnosis import verdict
from dualogic.diagnosis.verdict import BOTH_WAYS, CONTRADICTED, FROZEN, SWITCHED_OFF, TAKEN_OVER, TOO_WIDE

LOCKED_IN = "weights locked in on one branch"
NO_GRADIENT = "no gradient from the rule"
AT_FLOOR = "delta at its floor"
HELD_BACK = "held back"
KINDS = (CONTRADICTED, SWITCHED_OFF, TOO_WIDE, NO_GRADIENT, TAKEN_OVER, LOCKED_IN, FROZEN, BOTH_WAYS, HELD_BACK, AT_FLOOR)
"""The most serious first."""

WARNING, INFO = "warning", "info"

ADVICE = {
    CONTRADICTED: f"{verdict.REMEDIES[CONTRADICTED]}. If it compares numbers by ==, which are never quite equal: Monitor(logic, "
    "tol=0.05). With the labels of its symbols dl.diagnose says how often it is wrong",
    SWITCHED_OFF: (
        f"{verdict.EVIDENCE}; for all rules, Dual(evidence=True). class_cost='log' (the default), because 1 - p has no gradient "
        "where the consequent's probability is near 0; the rule from the first epoch on. If the antecedent is rightly never "
        "true, give the monitor the labels of its symbols"
    ),
    TOO_WIDE: (
        f"{verdict.REMEDIES[TOO_WIDE]}. If the consequent may rightly be true there, give the monitor the labels of its symbols, "
        "or compare with a model trained without the rule (dl.diagnose)"
    ),
    NO_GRADIENT: (
        "check that the tensors of the consequent require a gradient and were not detached; an antecedent that is evidence gets "
        "none. At equal dual weights opposite linear costs cancel, as in (s == 0) | (s == 1): use method='dual', where the "
        "nearest operand of an or leads"
    ),
    TAKEN_OVER: (
        "a smaller dual step, a warm-up (Dual(warmup=...)) or Dual(rule='exponentiated'), which can reverse a decision; then "
        "compare with a model trained without the rule (dl.diagnose), because one branch may rightly hold everywhere"
    ),
    LOCKED_IN: (
        "Dual(rule='exponentiated'), which reverses a decided weight in far fewer visits than the softmax rule; a smaller dual "
        "step; logic.reset_() to begin anew with equal weights"
    ),
    FROZEN: (
        "a larger dual step: a visit moves a logit by about the step times the costs' difference; or more visits of each sample"
    ),
    BOTH_WAYS: f"if it was right before, {verdict.EVIDENCE}",
    HELD_BACK: (
        "nothing at first: labels may lower the antecedent, and the pull comes back when it has settled. If it does not, and "
        "the rule is right: dl.Implies(a, b, evidence=False) pulls fully at both sides, dl.evidence(a) >> b at the consequent"
    ),
    AT_FLOOR: (
        "nothing, if the rule is rightly met. If the task suffers: a larger floor or a spread (Dual(floor=2), Dual(spread=1)), "
        "or a smaller weight=, because delta multiplies the rule's gradient by about 1/delta"
    ),
}
"""What to try."""


@dataclasses.dataclass(frozen=True)
class Alarm:
    """One finding of a monitor."""

    kind: str  # one of `KINDS`
    rule: str  # the name of the rule
    path: str  # the connective that it is about, as in `LogicLoss.weights`; the rule's name if it is about the whole
    message: str  # what was measured
    severity: str = WARNING  # or "info" for what is seldom a problem
    step: int = 0  # the training call of the look that raised it

    @property
    def advice(self) -> str:
        """What to try."""
        return ADVICE[self.kind]

    def __str__(self) -> str:
        return f"rule {self.rule!r}, {self.kind}: {self.message}. To try: {self.advice}."
