"""The paper's method: learned weights for every connective and sample, under a truncated-normal loss."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from dualogic.arguments import check_choice
from dualogic.duals.rules import UPDATE_RULES
from dualogic.errors import OptionError
from dualogic.formula.connective import Formula
from dualogic.methods.distributional import FOUND, DistributionalMethod
from dualogic.methods.dual_program import LEADS, DualProgram
from dualogic.normalize.unlabelled import check_unlabelled


@dataclasses.dataclass(frozen=True)
class Dual(DistributionalMethod):
    """Learned dual variables (Algorithm 1 of the paper).

    Each connective combines its operands' costs by weights on the simplex, one set per training sample: those of ``and``
    ascend (Eq. 2) and those of ``or`` descend (Eq. 3) on the loss, so they come to say *how* the rule is met. An implication
    has a cost of its own, see :mod:`dualogic.compile.implication`, and a weight that says which side moves to lower it, see
    :mod:`dualogic.methods.lean`.

    The defaults are the same for every task; ``paper/docs/study.md`` says how they were chosen:

    - logarithmic class costs, because without labels the task drives ``p`` towards 0, where ``1 - p`` has no gradient;
    - implications that rest where the consequent is at least as believed as the antecedent, and an ``or`` of beliefs likewise;
    - antecedents that are read and not taught until their consequent is seen to be known without them; beliefs in Booleans then
      count from what is usual; what an antecedent about classes loses goes to the likeliest other class; numbers that are
      predicted give way where that is the smaller change;
    - an ``or`` that is met by one operand does not pull at the others, and in an ``and`` what is met does not dilute what is not;
    - small local softmax steps for ``and`` and ``or``; the weight of an implication follows the beliefs;
    - a scale ``delta`` that follows the typical cost of a violation, with a floor of 1: below it a rule that is nearly met
      outweighs the labels;
    - rules that are averaged, where those that a sample meets dilute those that it violates fourfold at most.

    :meth:`paper` is the algorithm as the paper prints it.

    With ``believe=`` of the loss, what is believed moves the duals, sets ``delta``, and says which operand of a
    connective leads, how far an antecedent is believed, which facts hold, and who gives way; what is taught has the costs.

    Args:
        evidence: ``"found"``, or as in :class:`~dualogic.methods.distributional.DistributionalMethod`. If found, an antecedent is
            evidence until its consequent is firmly believed also where the antecedent is not, or the rule feeds itself; see
            :func:`~dualogic.methods.lean.advance_known`. Where both sides say the same it never is; see
            :func:`~dualogic.normalize.exchanged.is_exchanged`.
        unlabelled: what no label shows and only the rules can teach, by the name of a symbol: a list of classes, or ``True`` for
            all of it. The antecedent of an implication whose consequent asks for it is evidence; see
            :class:`~dualogic.normalize.unlabelled.Asking`. A marked antecedent keeps its own share.
        implication: ``"rests"``: ``P >> Q`` costs nothing where ``Q`` is at least as believed as ``P``, and comparisons in ``P``
            hold or do not; an ``or`` of classes and Booleans rests too, see :func:`~dualogic.compile.implication.unrest`.
            ``"or"``: it is ``~P | Q``, as in the paper, and nothing rests.
        first: ``"decisive"``: in the loss, the weights of an ``or`` are multiplied by ``(c_min / c)^4``, those of an ``and`` by
            ``(c / c_max)^2``. ``"nearest"``: those of an ``or`` alone. ``"equal"``: none.
        step: how far a visit moves a weight's logit (or the weight, if projected) per unit of gradient; not divided by
            the batch size.
        and_step: the same for ``and``; ``None`` for the same as ``step``.
        rules: ``"mean"`` or ``"sum"`` of the rules' losses, or ``"violated"``: a mean that is heavier where few of many rules are
            violated; see :func:`~dualogic.losses.emphasis.emphasise`.
        rule: ``"softmax"``, ``"exponentiated"`` or ``"projected"``; see :mod:`dualogic.duals.rules`.
        local: a connective's weights move as if it were the whole rule and had two operands: by the loss's slope at the whole
            rule, whatever weights stand above it, and in a softmax step by ``min(w k / 2, 1)`` where the gradient has the weight
            ``w`` of one of ``k`` operands. So they are as quick among twenty clauses as alone. ``False`` takes the gradient, as
            the paper does.
        share: of the weights, divided equally among a connective's operands after each step, below 1: no weight falls below
            ``share / k``, so that a decision that the network outgrows is soon undone (the fixed share of Herbster and Warmuth,
            "Tracking the best expert", 1998). With exponentiated steps this makes large steps safe.
        warmup: over how many updates the step rises from 0.
        loss_first: the order of Algorithm 1: the loss with the old duals and ``delta``, then ``delta`` from its costs, then the
            duals by the new ``delta``.

    The other arguments are those of :class:`~dualogic.methods.distributional.DistributionalMethod`.

    Example:
        >>> import dualogic as dl
        >>> dl.LogicLoss(dl.var("x") <= 1, method=dl.methods.Dual(step=0.5, delta="exact"))
        LogicLoss(rule: x <= 1; method=dual, 0 dual variables shared by all samples)

        No label shows a 6, so the rule does not unlearn 9s in its place:

        >>> f, g = dl.categorical("f", 10), dl.categorical("g", 10)
        >>> logic = dl.LogicLoss((g == 9) >> (f == 6), num_samples=100, method=dl.methods.Dual(unlabelled={"f": [6]}))
    """

    name: ClassVar[str] = "dual"
    finds_evidence: ClassVar[bool] = True

    delta: str = "violations"
    floor: float = 1.0
    evidence: bool | float | str = FOUND
    unlabelled: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    implication: str = "rests"
    first: str = "decisive"
    step: float = 0.07
    and_step: float | None = None
    rules: str = "violated"
    rule: str = "softmax"
    local: bool = True
    share: float = 0.0
    warmup: int = 0
    loss_first: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "unlabelled", check_unlabelled(self.unlabelled))
        check_choice("rule", self.rule, UPDATE_RULES)
        check_choice("implication", self.implication, ("rests", "or"))
        check_choice("first", self.first, tuple(LEADS))
        check_choice("rules", self.rules, ("violated", "mean", "sum"))
        if self.and_step is not None and not (math.isfinite(self.and_step) and self.and_step >= 0):
            raise OptionError(f"and_step must be at least 0 and finite, or None for the same as step; got {self.and_step!r}")
        if not (math.isfinite(self.step) and self.step >= 0):
            raise OptionError(f"the dual step must be at least 0 and finite; got {self.step!r}")
        if not 0 <= self.share < 1:
            raise OptionError(f"share must be at least 0 and below 1, which would leave equal weights; got {self.share!r}")
        if self.warmup < 0:
            raise OptionError(f"warmup counts updates and must be at least 0; got {self.warmup!r}")

    @classmethod
    def paper(cls, **options: Any) -> Dual:
        """The algorithm as printed: ``1 - p`` costs, implications as an ``or``, equal first weights, projected gradient steps,
        ``delta^2 = mean(mu)`` with a variance of at least 0.01, no evidence, rules that are summed, and the order of Algorithm 1:
        loss, ``delta``, duals.

        The paper has a step for *or* (``step``) and one for *and* (``and_step``, the same unless given), and an upper bound of
        ``delta`` (``ceiling``, none unless given); it prints no figure for any of the three.

        Example:
            >>> import dualogic as dl
            >>> dl.methods.Dual.paper(step=0.3, and_step=0.1, ceiling=10.0).rule
            'projected'
        """
        printed: dict[str, Any] = {
            "class_cost": "probability",
            "delta": "mean",
            "floor": 0.1,
            "step": 0.2,
            "rule": "projected",
            "local": False,
            "loss_first": True,
            "evidence": False,
            "implication": "or",
            "first": "equal",
            "and_step": None,
            "rules": "sum",
        }
        return cls(**{**printed, **options})

    def program(self, rules: Mapping[str, Formula]) -> DualProgram:
        return DualProgram(rules, self)
