"""The paper's method: learned weights for every connective and sample, under a truncated-normal loss."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from dualogic.arguments import check_choice
from dualogic.compile.extreme import fold_extremes
from dualogic.compile.instructions import Guided, Settled
from dualogic.compile.plan import Plan
from dualogic.duals.rules import UPDATE_RULES
from dualogic.errors import OptionError
from dualogic.formula.connective import Formula
from dualogic.formula.evidence import as_share
from dualogic.formula.inspect import collect_symbols
from dualogic.formula.node import walk
from dualogic.kernels import fused
from dualogic.kernels.fused_step import Pace, Stored, can_take, find_two_levels, two_level_step
from dualogic.losses.emphasis import LEAST, emphasise
from dualogic.methods.base import State, compile_costs
from dualogic.methods.closed_form import closed_losses, has_closed_form
from dualogic.methods.distributional import VIOLATIONS, DistributionalMethod, DistributionalProgram
from dualogic.methods.lean import advance_known, is_all_evidence, share_of, start_known
from dualogic.methods.mixture import Manner, Mixture, existing_columns, find_fixed, find_settled, steps
from dualogic.methods.straight import Steps
from dualogic.normalize.unlabelled import check_unlabelled, describe_unlabelled, find_unlabelled
from dualogic.numerics import is_transformed, wide

FOUND = "found"
SMALLEST = 1e-20
"""A step that moves nothing, and is not 0."""


@dataclasses.dataclass(frozen=True)
class Dual(DistributionalMethod):
    """Learned dual variables (Algorithm 1 of the paper).

    Each connective combines its operands' costs by weights on the simplex, one set per training sample: those of ``and``
    ascend (Eq. 2) and those of ``or`` descend (Eq. 3) on the loss, so they come to say *how* the rule is met. An implication
    has a cost of its own, see :mod:`dualogic.compile.implication`, and a weight that says which side moves to lower it, see
    :mod:`dualogic.methods.lean`.

    The defaults are the same for every task; ``paper/docs/study.md`` says how they were chosen:

    - logarithmic class costs, because without labels the task drives ``p`` towards 0, where ``1 - p`` has no gradient;
    - implications that rest where the consequent is at least as believed as the antecedent;
    - antecedents that are read and not taught until their consequent is seen to be known without them;
    - an ``or`` that is met by one operand does not pull at the others;
    - small local softmax steps, and none for implications, whose weight follows the beliefs;
    - a scale ``delta`` that follows the typical cost of a violation, with a floor of 1: below it a rule that is nearly met
      outweighs the labels;
    - rules that are averaged, where those that a sample meets dilute those that it violates fourfold at most.

    :meth:`paper` is the algorithm as the paper prints it.

    With ``believe=`` of the loss, what is believed moves the duals, sets ``delta``, and says which operand of an ``or`` is
    nearest, how far an antecedent is believed, which facts hold, and who gives way; what is taught has the costs.

    Args:
        evidence: ``"found"``, or as in :class:`~dualogic.methods.distributional.DistributionalMethod`. If found, an antecedent is
            evidence until its consequent is firmly believed also where the antecedent is not; see
            :func:`~dualogic.methods.lean.advance_known`.
        unlabelled: what no label shows and only the rules can teach, by the name of a symbol: a list of classes, or ``True`` for
            all of it. The antecedent of an implication whose consequent asks for it is evidence; see
            :class:`~dualogic.normalize.unlabelled.Asking`. A marked antecedent keeps its own share.
        implication: ``"rests"``: ``P >> Q`` costs nothing where ``Q`` is at least as believed as ``P``, and comparisons in ``P``
            hold or do not. ``"or"``: it is ``~P | Q``, as in the paper.
        first: ``"nearest"``: in the loss, the weights of an ``or`` are multiplied by ``(c_min / c)^4``. ``"equal"``: not.
        step: how far a visit moves a weight's logit (or the weight, if projected) per unit of gradient; not divided by
            the batch size.
        and_step: the same for ``and``; ``None`` for the same as ``step``.
        imply_step: the same for implications, likewise; 0 leaves the weight to beliefs alone.
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
    first: str = "nearest"
    step: float = 0.07
    and_step: float | None = None
    imply_step: float | None = 0.0
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
        check_choice("first", self.first, ("nearest", "equal"))
        check_choice("rules", self.rules, ("violated", "mean", "sum"))
        for name in ("and_step", "imply_step"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise OptionError(f"{name} must be at least 0 and finite, or None for the same as step; got {value!r}")
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
            "imply_step": None,
            "rules": "sum",
        }
        return cls(**{**printed, **options})

    def program(self, rules: Mapping[str, Formula]) -> DualProgram:
        return DualProgram(rules, self)


class DualProgram(DistributionalProgram):
    """See :class:`Dual`."""

    method: Dual

    def __init__(self, rules: Mapping[str, Formula], method: Dual) -> None:
        super().__init__(rules, method)
        self.width = self.plan.width
        self.loss_first = method.loss_first
        self.shared = False
        self._places = {name: position for position, name in enumerate(self.plan.names)}
        self.summed = method.rules == "sum"
        self.additive = not self.plan.masked
        self.rule = UPDATE_RULES[method.rule]
        self.stored = self.rule.stored
        plain = method.rule != "projected" and method.delta in ("mean", "square", VIOLATIONS) and not method.warmup
        plain = plain and not method.loss_first and self.spreads is None
        self.nearest = method.first == "nearest"
        self.leaning = [level for level in self.plan.levels if level.operation == ">>" and not level.uniform]
        if self.leaning:
            self.stored += ", and for each implication the odds of its beliefs and what was learned"
        if self.unlabelled:
            self.stored += f", where no label shows {describe_unlabelled(self.unlabelled)}"
        self.finding = sum(len(level.paths) for level in self.leaning if level.share is None)
        slow, lean = (
            1.0 if size is None or not method.step else size / method.step for size in (method.and_step, method.imply_step)
        )
        self.manner = Manner(method.local, method.share, self.plan.masked, slow, lean)
        self.two_levels = find_two_levels(self.plan) if plain else None
        learning = [level for level in self.plan.levels if not level.uniform and (level.operation != ">>" or self.manner.lean)]
        self.still = not learning and not self.plan.masked
        self.settled = [] if self.manner.lean else [branch for tree, _ in self.plan.roots for branch in find_settled(tree)]
        self.fixed = [number for tree, _ in self.plan.roots for number in find_fixed(tree)] if self.nearest else []
        self.closed = self.spreads is None and has_closed_form(self.plan)
        self.taught = tuple(sorted({leaf.operand[0] for leaf in self.plan.leaves if leaf.share != 1.0}))
        self.recorded = Steps.of(self) if self.closed and not method.loss_first else None

    def owners(self) -> tuple[int, ...]:
        found: list[int] = []
        for level in self.plan.levels:
            lanes = [_path_key(path, self._places)[0] for path in level.paths]
            inner = level.width // (level.operands * len(lanes))
            found += [lane for lane in lanes for _ in range(inner)] * level.operands if level.width else []
        return tuple(found)

    def for_samples(self, count: int | None) -> DualProgram:
        twin = copy.copy(self)
        twin.shared = count is None
        return twin

    def whole_step(self, index: Tensor, table: Tensor, state: State, flags: Tensor, values: Any) -> tuple[Tensor, Tensor] | None:
        """On a GPU, a training step of a rule of two levels in three kernels: losses and costs; ``None`` if it does not fit."""
        if self.two_levels is None or not fused.usable(table):
            return None
        costs = self.two_levels.costs(values)
        if not can_take(table, costs):
            return None
        stored = Stored(table, state["delta"], state["steps"], flags)
        bounds, scale = (self.method.floor, self.method.ceiling), self.method.delta
        limit = self.largest_cost(costs.dtype)
        method = self.method
        exponentiated, slow = method.rule == "exponentiated", self.manner.slow
        pace = Pace(method.step, exponentiated, method.local, method.share, slow, self.nearest)
        return two_level_step(self.two_levels, costs, index, stored, pace, bounds, scale, limit)

    def _plan(self, rules: Mapping[str, Formula], method: DistributionalMethod) -> Plan:
        assert isinstance(method, Dual)
        resting = method.implication == "rests"
        share = None if method.evidence == FOUND else as_share(method.evidence, "evidence")
        self.unlabelled = find_unlabelled(method.unlabelled, collect_symbols(walk(*rules.values())))
        return compile_costs(rules, method.class_cost, share if resting else share or 0.0, resting, self.unlabelled)

    def initial_state(self, dtype: torch.dtype) -> State:
        state = super().initial_state(dtype)
        if self.finding:
            state["known"] = start_known(self.finding, dtype)
        return state

    def emphasis(self, state: State, costs: Tensor) -> Tensor | None:
        if self.method.rules != "violated" or costs.shape[1] * LEAST <= 1:
            return None
        return emphasise(costs, state["delta"].to(costs.dtype), self.method.floor)

    def advance(self, state: State, costs: Tensor, finite: Tensor | None, noted: Tensor | None = None) -> State:
        new = super().advance(state, costs, finite)
        if noted is None or not self.finding:
            return new
        if finite is None:
            new["known"] = advance_known(state["known"], noted.mean(0), noted.shape[0])
            return new
        counted = wide(finite).unsqueeze(1)
        if finite.dim() > 1:
            rules = [_path_key(path, self._places)[0] for level in self.leaning if level.share is None for path in level.paths]
            counted = counted.index_select(2, self.plan.positions(tuple(rules), noted.device))
        count = counted.sum(0)
        mean = torch.where(counted, noted, 0.0).sum(0) / count.clamp_min(1)
        new["known"] = torch.where(count > 0, advance_known(state["known"], mean, count[0]), state["known"])
        return new

    def _shares(self, state: State, evident: bool | None = None) -> dict[int, Tensor | float]:
        """How much of the antecedents is evidence, for each level of implications."""
        found: dict[int, Tensor | float] = {}
        shares, start = None, 0
        if self.finding and not (is_all_evidence(state["known"]) if evident is None else evident):
            shares = share_of(state["known"])
        for level in self.leaning:
            if level.share is not None or shares is None:
                found[level.number] = 1.0 if level.share is None else level.share
            else:
                found[level.number] = shares.narrow(0, start, len(level.paths))
                start += len(level.paths)
        return found

    def evidence(self, state: State) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        shares = self._shares(state)
        for level in self.leaning:
            share = shares[level.number]
            values = share if isinstance(share, Tensor) else state["delta"].new_tensor(share).expand(len(level.paths))
            found.update(zip(level.paths, values.unbind()))
        return found

    def mixture(
        self,
        rows: Tensor,
        state: State,
        values: Any,
        remember: bool = False,
        believed: Mixture | None = None,
        sloped: bool = False,
    ) -> Mixture:
        """Folds values with the weights in some rows."""
        settled = isinstance(values, Settled)
        shares = values.shares if settled else self._shares(state)
        nears = values.nears if settled else None
        mixture = Mixture(self.rule, self._clean(rows, values), remember, self.nearest, shares, believed, nears, sloped)
        if mixture.joined is not None and settled:
            for branch in self.settled:
                seen = values.seen[branch.level.number]
                if not sloped:  # a step follows
                    seen.stored = branch.level.columns(mixture.rows)  # type: ignore[arg-type]
                mixture.joined[branch.level.number] = seen
        return mixture

    def settle(self, state: State, values: Any, evident: bool | None = None) -> Any:
        if not (self.settled or self.fixed) and evident is None:
            return values
        nears: dict[int, Tensor | None] = dict.fromkeys(self.fixed)
        shares = self._shares(state, evident)
        if not self.settled:
            return Settled(values, {}, {}, nears, shares)
        closed = self._in_closed_form(values)
        mixture = Mixture(self.rule, None, True, shares=shares, sloped=closed)
        with torch.set_grad_enabled(not closed):
            levels = {
                branch.level.number: mixture(branch.level, branch.operands(values, mixture), None, branch.level.sizes)
                for branch in self.settled
            }
        return Settled(values, levels, mixture.joined, nears, shares)  # type: ignore[arg-type]

    def _in_closed_form(self, values: Any) -> bool:
        return self.closed and torch.is_grad_enabled() and not (isinstance(values, Guided) or is_transformed())

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        if rows is None or not self._in_closed_form(values):
            return super().losses(rows, state, values)
        # Copies of what is updated in place before the backward pass.
        rows = rows.clone() if rows.shape[0] == 1 else rows
        mixture = self.mixture(rows, state, values, remember=True, sloped=True)
        delta = state["delta"].to(self._dtype(values), copy=True)
        return closed_losses(self.plan, mixture, delta, values, self.taught)

    def mix(self, rows: Tensor | None, state: State, values: Any) -> Tensor:
        if rows is None:
            return fold_extremes(self.plan, values)
        believed = None
        if isinstance(values, Guided):
            believed = self.mixture(rows, state, values.believed, remember=True)
            with torch.no_grad():
                self.plan.fold(values.believed, believed)
        return self.plan.fold(values, self.mixture(rows, state, values, believed=believed))

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        mixture = self.mixture(rows, state, values, remember=True)
        costs = self.plan.fold(values, mixture)
        if not self.width:
            return costs, torch.zeros(costs.shape[0], 0, dtype=costs.dtype, device=costs.device), None
        if self.still:
            return costs, *steps(self.plan, mixture, costs, self.manner)
        slope = self.slope(costs, state["delta"])
        size = self._step(state)
        if self.plan.masked and self.leaning:
            # Padding is told by a slope of 0, also where nothing is to be learned.
            size = size.clamp_min(SMALLEST) if isinstance(size, Tensor) else max(size, SMALLEST)
        moves, noted = steps(self.plan, mixture, size * slope, self.manner)
        if self.plan.masked and not self.shared:
            # A dual variable of an operand that does not exist is stored as -inf, so that its weight reads as 0; but what it
            # learned when it did exist, under another mask, is kept.
            exists = existing_columns(self.plan, mixture, costs.shape[0])
            moves = torch.where(exists | (self._clean(rows, values) != 0), moves, -torch.inf)
        return costs, moves, noted

    def apply_moves(self, rows: Tensor, moves: Tensor, values: Any) -> Tensor:
        return self._clean(rows, values) + moves

    def _clean(self, rows: Tensor, values: Any) -> Tensor:
        dtype = self._dtype(values)
        rows = rows if rows.dtype is dtype else rows.to(dtype)
        return torch.where(rows == -torch.inf, 0.0, rows) if self.plan.masked else rows

    def _dtype(self, values: Any) -> torch.dtype:
        dtype: torch.dtype = values[self.plan.leaves[0].operand[0]].dtype
        return dtype

    def _step(self, state: State) -> Tensor | float:
        if not self.method.warmup:
            return self.method.step
        done = state["steps"].to(state["delta"].dtype)
        return torch.full_like(done, self.method.step) * ((done + 1.0) / self.method.warmup).clamp(max=1.0)

    def weights(self, rows: Tensor) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for level in self.plan.levels:
            if level.uniform:
                continue
            columns = level.columns(rows)
            mask = columns != -torch.inf
            if level.operation == ">>":
                odds, learned = columns.masked_fill(~mask, 0.0).unbind(1)
                weight = self.rule.lean(odds, learned)
                found.update(split_by_path(level, torch.stack([1.0 - weight, weight], 1)))
                continue
            if not self.plan.masked:
                weights = self.rule.weights(columns, None)
            else:
                weights = self.rule.weights(columns.masked_fill(~mask, 0.0), mask)
            found.update(split_by_path(level, weights))
        return dict(sorted(found.items(), key=lambda entry: _path_key(entry[0], self._places)))


def split_by_path(level: Any, weights: Tensor) -> dict[str, Tensor]:
    """Weights ``(batch, k, *lanes, *axes)`` as ``(batch, *axes, k)`` for each connective of a level."""
    if level.order and level.order != tuple(range(len(level.order))):
        weights = weights[:, list(level.order)]
    lanes = weights.flatten(2, 1 + level.lanes).movedim(2, 0).movedim(2, -1)
    return dict(zip(level.paths, lanes.unbind(0)))


def _path_key(path: str, positions: Mapping[str, int]) -> tuple[int, ...]:
    steps: list[int] = []
    while path not in positions:
        path, _, step = path.rpartition("/")
        steps.append(int(step))
    return (positions[path], *reversed(steps))
