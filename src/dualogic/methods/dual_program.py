"""What :class:`~dualogic.methods.dual.Dual` computes: the rules' costs by the weights in the rows, and how those weights move."""

from __future__ import annotations

import copy
import functools
import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic.compile.extreme import fold_extremes
from dualogic.compile.instructions import Guided, Settled
from dualogic.compile.plan import Plan
from dualogic.duals.rules import UPDATE_RULES
from dualogic.formula.connective import Formula
from dualogic.formula.evidence import as_share
from dualogic.formula.inspect import collect_symbols
from dualogic.formula.node import walk
from dualogic.formula.symbol import Variable
from dualogic.kernels import fused
from dualogic.kernels.fused_step import Pace, Stored, can_take, find_two_levels, two_level_step
from dualogic.losses.emphasis import LEAST, emphasise
from dualogic.methods.base import State, compile_costs
from dualogic.methods.closed_form import closed_losses, has_closed_form
from dualogic.methods.distributional import FOUND, VIOLATIONS, DistributionalProgram, Spreads
from dualogic.methods.lean import PACES, Stand, advance_known, is_all_evidence, odds_of_rates, share_of, start_known
from dualogic.methods.mixture import SMALLEST, Led, Manner, Mixture, existing_columns, find_fixed, find_settled, steps
from dualogic.methods.straight import Steps, Told
from dualogic.normalize.nnf import may_turn
from dualogic.normalize.unlabelled import describe_unlabelled, find_unlabelled
from dualogic.numerics import is_transformed, wide

if TYPE_CHECKING:
    from dualogic.methods.dual import Dual

LEADS = {"decisive": "&|", "nearest": "|", "equal": ""}
"""Of which operations the weights are multiplied, in the loss, by what leads; see :class:`~dualogic.methods.mixture.Mixture`."""
LARGE = 10.0
"""Predicted numbers that differ by more are taken to have a small unit, such as euros for houses."""


class DualProgram(DistributionalProgram):
    """See :class:`~dualogic.methods.dual.Dual`."""

    method: Dual

    def __init__(
        self, rules: Mapping[str, Formula], method: Dual, given: Collection[str] = (), units: tuple[float, ...] = ()
    ) -> None:
        self._rules, self._given = rules, given
        super().__init__(rules, method)
        self.units = Spreads(units) if any(units) else None
        self._numbers = [[node.name for node in walk(rule) if isinstance(node, Variable)] for rule in rules.values()]
        # What stands in padding has no say, and where that is, only masks know.
        self.measures = method.delta == VIOLATIONS and any(self._numbers) and not self.plan.masked
        self.width = self.plan.width
        self.loss_first = method.loss_first
        self.shared = False
        self._places = {name: position for position, name in enumerate(self.plan.names)}
        self.summed = method.rules == "sum"
        self.additive = not self.plan.masked
        self.rule = UPDATE_RULES[method.rule]
        self.stored = self.rule.stored
        plain = method.rule != "projected" and method.delta in ("mean", "square", VIOLATIONS) and not method.warmup
        plain = plain and not method.loss_first and self.spreads is None and self.units is None
        self.leads = LEADS[method.first]
        self.leaning = [level for level in self.plan.levels if level.operation == ">>" and not level.uniform]
        if self.leaning:
            self.stored += ", and for each implication the odds of its beliefs"
        if self.unlabelled:
            self.stored += f", where no label shows {describe_unlabelled(self.unlabelled)}"
        finding = [level for level in self.leaning if level.share is None]
        self.found_in = tuple(_path_key(path, self._places)[0] for level in finding for path in level.paths)
        self.finding = len(self.found_in)
        whole = [level.width == level.operands * len(level.paths) and not level.shared for level in finding]
        self._single = not self.plan.masked and all(whole)
        each = [level for level in finding for _ in level.paths]
        self._yes_or_no = tuple([int(level.yes_or_no[side] and not level.mutual) for side in (0, 1) for level in each])
        self._claiming = tuple([int(not all(level.yes_or_no)) for level in each])
        self._mutual = tuple([int(level.mutual) for level in each])
        sizes = Counter(self.found_in)
        self._sizes = tuple(max(1, sizes[rule]) for rule in range(len(self.plan.names)))
        slow = 1.0 if method.and_step is None or not method.step else method.and_step / method.step
        self.manner = Manner(method.local, method.share, self.plan.masked, slow)
        self.two_levels = find_two_levels(self.plan) if plain else None
        learning = any(level.operation != ">>" and not level.uniform for level in self.plan.levels)
        self.still = not learning and not self.plan.masked
        self.settled = [branch for tree, _ in self.plan.roots for branch in find_settled(tree)]
        self.fixed = [number for tree, _ in self.plan.roots for number in find_fixed(tree)]
        self.closed = self.spreads is None and has_closed_form(self.plan)
        self.taught = tuple(sorted({leaf.operand[0] for leaf in self.plan.leaves if leaf.share != 1.0}))
        self.recorded = Steps.of(self) if self.closed and not method.loss_first and self.units is None else None

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

    def facing(self, given: Collection[str], units: tuple[float, ...] = ()) -> DualProgram:
        if not (any(units) or may_turn(self._rules.values(), given)):
            return self
        twin = DualProgram(self._rules, self.method, given, units)
        read = [[(level.turned, level.compares, level.rests) for level in program.plan.levels] for program in (self, twin)]
        return twin if twin.units or read[0] != read[1] else self

    def find_units(self, numbers: Mapping[str, Tensor], counted: Tensor | None) -> tuple[float, ...]:
        found = []
        for place, names in enumerate(self._numbers):
            own = [numbers[name] for name in names if name in numbers]
            if counted is not None:
                own = [each[counted[:, place % counted.shape[1]]] for each in own]
            unit = max((each.std().item() for each in own if len(each) > 1), default=0.0)
            found.append(min(unit, self.method.ceiling) if LARGE < unit < math.inf else 0.0)
        return tuple(found) if any(found) else ()

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
        pace = Pace(method.step, exponentiated, method.local, method.share, slow, self.leads)
        return two_level_step(self.two_levels, costs, index, stored, pace, bounds, scale, limit)

    def _plan(self, rules: Mapping[str, Formula]) -> Plan:
        method = self.method
        resting = method.implication == "rests"
        share = None if method.evidence == FOUND else as_share(method.evidence, "evidence")
        self.unlabelled = find_unlabelled(method.unlabelled, collect_symbols(walk(*rules.values())))
        return compile_costs(rules, method.class_cost, share if resting else share or 0.0, resting, self.unlabelled, self._given)

    def initial_state(self, dtype: torch.dtype) -> State:
        state = super().initial_state(dtype)
        if self.finding:
            state["known"] = start_known(self._mutual, dtype)
        return state

    def emphasis(self, state: State, costs: Tensor) -> Tensor | None:
        found = None
        if self.method.rules == "violated" and costs.shape[1] * LEAST > 1:
            floor: Tensor | float = self.method.floor
            if self.units is not None:
                floor = self.units.like(state["delta"].new_empty(0, dtype=costs.dtype))
                floor = floor.clamp_min(self.method.floor) if isinstance(floor, Tensor) else max(floor, self.method.floor)
            found = emphasise(costs, state["delta"].to(costs.dtype), floor)
        strength = self.strength(state)
        if strength is None:
            return found
        strength = strength.to(costs.dtype, copy=True).expand_as(costs)  # the state changes before a backward pass
        return strength if found is None else found * strength

    def strength(self, state: State) -> Tensor | None:
        if "known" not in state:
            return None
        strength, count = state["known"][6], len(self.plan.names)
        if self.found_in == tuple(range(count)):
            return strength
        rules, sizes = (self.plan.positions(part, strength.device) for part in (self.found_in, self._sizes))
        return strength.new_zeros(count).index_add(0, rules, strength - 1.0) / sizes + 1.0

    def advance(
        self, state: State, costs: Tensor, finite: Tensor | None, noted: Tensor | None = None, share: float | None = None
    ) -> State:
        new = super().advance(state, costs, finite)
        if noted is None or not self.finding:
            return new
        since = state["steps"], self.plan.positions(PACES, noted.device)
        claiming = self.plan.positions(self._claiming, noted.device) if sum(self._claiming) > 1 else None
        plain = not any(self._claiming) or (not all(self._claiming) and self.plan.positions(self._claiming, noted.device) == 0)
        mutual = all(self._mutual) or (any(self._mutual) and self.plan.positions(self._mutual, noted.device) > 0)
        move = functools.partial(advance_known, single=self._single, claiming=claiming, plain=plain, mutual=mutual)
        if finite is None:
            new["known"] = move(state["known"], noted.sum(0) / noted.shape[0], noted.shape[0], *since, share)
            return new
        counted = wide(finite).unsqueeze(1)
        if finite.dim() > 1:
            counted = counted.index_select(2, self.plan.positions(self.found_in, noted.device))
        count = counted.sum(0)
        mean = torch.where(counted, noted, 0.0).sum(0) / count.clamp_min(1)
        after = move(state["known"], mean, count[0], *since)
        new["known"] = torch.where(count > 0, after, state["known"])
        return new

    def _stands(self, state: State, told: Told | None = None) -> dict[int, Stand]:
        """How the antecedents of each level of implications stand."""
        found = {level.number: Stand(level.share) for level in self.leaning if level.share is not None}
        if not self.finding:
            return found
        known, start = state["known"], 0
        share = (1.0 if is_all_evidence(known) else None) if told is None else told.share
        shares = share_of(known) if share is None else None
        rates = None
        if share != 1.0 and any(self._yes_or_no):
            told_by = self.plan.positions(self._yes_or_no, known.device).view(2, -1)
            rates = odds_of_rates(known, told_by, 0.0 if shares is None else shares)
        for level in self.leaning:
            if level.share is None:
                count = len(level.paths)
                rate = None if rates is None or not any(level.yes_or_no) else rates.narrow(0, start, count)
                found[level.number] = Stand(share if shares is None else shares.narrow(0, start, count), rate)  # type: ignore[arg-type]
                start += count
        return found

    def evidence(self, state: State) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        stands = self._stands(state)
        for level in self.leaning:
            share = 0.0 if level.turned else stands[level.number].share  # what is given cannot give way
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
        stands = values.stands if settled else self._stands(state)
        led = values.led if settled else None
        mixture = Mixture(self.rule, self._clean(rows, values), remember, self.leads, stands, believed, led, sloped)
        if mixture.joined is not None and settled:
            for branch in self.settled:
                seen = values.seen[branch.level.number]
                if not sloped:  # a step follows
                    seen.stored = branch.level.columns(mixture.rows)  # type: ignore[arg-type]
                mixture.joined[branch.level.number] = seen
        return mixture

    def settle(self, state: State, values: Any, told: Told | None = None) -> Any:
        if not (self.settled or self.fixed) and told is None:
            return values
        led: dict[int, Led | None] = dict.fromkeys(self.fixed)
        stands = self._stands(state, told)
        if not self.settled:
            return Settled(values, {}, {}, led, stands)
        closed = self._in_closed_form(values)
        mixture = Mixture(self.rule, None, True, stands=stands, sloped=closed)
        with torch.set_grad_enabled(not closed):
            levels = {
                branch.level.number: mixture(branch.level, branch.operands(values, mixture), None, branch.level.sizes)
                for branch in self.settled
            }
        return Settled(values, levels, mixture.joined, led, stands)  # type: ignore[arg-type]

    def _in_closed_form(self, values: Any) -> bool:
        return self.closed and torch.is_grad_enabled() and not (isinstance(values, Guided) or is_transformed())

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        if rows is None or not self._in_closed_form(values):
            return super().losses(rows, state, values)
        mixture = self.mixture(rows, state, values, remember=True, sloped=True)
        delta = state["delta"].to(self._dtype(values), copy=True)  # which is updated in place before the backward pass
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
                weight = torch.sigmoid(columns.masked_fill(~mask, 0.0))
                sides = [1.0 - weight, weight]
                found.update(split_by_path(level, torch.cat(sides[::-1] if level.turned else sides, 1)))
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
