"""The compiled form of a set of rules: immutable, cached, and free of state."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.atoms import Compare, Depth, RelationValue
from dualogic.compile.binding import Binder, Bound
from dualogic.compile.build import Builder
from dualogic.compile.instructions import Context, Guided, Registers, Settled, fetch
from dualogic.compile.size import check_size
from dualogic.compile.tree import Combine, Leaf, Level
from dualogic.constants import Constants, outside_inference
from dualogic.errors import NonFiniteError, OptionError
from dualogic.formula.connective import Formula, Quantifier, Resting
from dualogic.formula.evidence import Evidence
from dualogic.formula.inspect import SYMBOLS
from dualogic.formula.node import Node, children, walk
from dualogic.normalize.literals import unfold_class_sets
from dualogic.normalize.nnf import to_nnf
from dualogic.normalize.unlabelled import Unlabelled

MODES = ("probability", "log", "truth", "degree")


class Plan(Binder):
    """Tensor operations for a set of rules; made by :func:`compile_rules`.

    Attributes:
        names: the rules' names.
        symbols: the symbols to bind, by name.
        levels: the connective levels, parents before children.
        width: how many dual variables one sample has.
        instructions: what is computed, in order.
        roots: the trees of the rules, those of one shape together, with the rules' positions.
    """

    def __init__(
        self,
        rules: tuple[tuple[str, Formula], ...],
        mode: str,
        evidence: float | None,
        resting: bool,
        unlabelled: Unlabelled = (),
        given: Collection[str] = (),
    ) -> None:
        if mode not in MODES:
            raise OptionError(f"class_cost must be 'probability' or 'log'; got {mode!r}")
        # Symbols that normalisation dropped must still be bound, so they are read from the rules as written.
        super().__init__(dict(rules))
        self.mode = mode
        formulas = {name: to_nnf(formula, evidence, resting, unlabelled, given) for name, formula in rules}
        if mode == "probability":
            formulas = {name: unfold_class_sets(formula) for name, formula in formulas.items()}
        self._formulas = formulas
        check_size(rules, formulas)
        builder = Builder(mode, resting)
        self.roots = builder.roots(formulas)
        self.instructions = tuple(builder.instructions)
        self._constants = tuple(builder.constants)
        self._on_device: Constants[list[Tensor]] = Constants()
        self.levels: tuple[Level, ...] = tuple(builder.levels)
        self.leaves: tuple[Leaf, ...] = tuple(builder.leaves)
        self.width = builder.width
        self.masked = any(level.ragged for level in self.levels) or any(
            isinstance(node, Quantifier) and node.where is not None for node in walk(*formulas.values())
        )
        places = [place for _, group in self.roots for place in group]
        inverse = {place: slot for slot, place in enumerate(places)}
        self._order = None if places == sorted(places) else tuple(inverse[place] for place in range(len(places)))
        self._positions: Constants[Tensor] = Constants()

    @functools.cached_property
    def teachable(self) -> frozenset[str]:
        """The names of the symbols that gradients can reach: those that do not occur in evidence alone."""
        found: set[str] = set()
        seen: set[int] = set()
        stack: list[Node] = list(self._formulas.values())
        while stack:
            node = stack.pop()
            if id(node) in seen or (isinstance(node, Evidence) and node.share == 1.0):
                continue
            seen.add(id(node))
            if isinstance(node, SYMBOLS):
                found.add(node.name)
            given = node.antecedent if isinstance(node, Resting) and node.share == 1.0 else None
            stack.extend(child for child in children(node) if child is not given)
        return frozenset(found)

    def constants(self, device: torch.device, dtype: torch.dtype) -> list[Tensor]:
        """The plan's constants on a device; floating point ones in ``dtype``."""
        return self._on_device.get(
            (device, dtype),
            lambda: [
                constant.to(device=device, dtype=dtype if constant.is_floating_point() else None) for constant in self._constants
            ],
        )

    def evaluate(self, bound: Bound, tol: float = 0.0, lead: float = 0.0) -> Registers:
        """Compute all terms and atoms; differentiable."""
        context = Context(bound, self.constants(bound.device, bound.dtype), tol, lead)
        registers: Registers = []
        for instruction in self.instructions:
            registers.append(instruction.run(registers, context))
        return registers

    def fold(self, registers: Registers | Guided | Settled, combine: Combine) -> Tensor:
        """Join the atoms' values up to the rules; shape ``(batch, rules, *axes)``."""
        parts = []
        for branch, group in self.roots:
            value = branch.fold(registers, combine)
            parts.append(value if value.shape[1] == len(group) else value.expand(-1, len(group), *value.shape[2:]))
        if len(parts) == 1:
            return parts[0]
        joined = torch.cat(parts, dim=1)
        return joined if self._order is None else joined.index_select(1, self.positions(self._order, joined.device))

    def positions(self, places: tuple[int, ...], device: torch.device) -> Tensor:
        """Positions as a tensor that stays on the device: a list would travel there at every step."""
        return self._positions.get((places, device), lambda: torch.tensor(places, device=device))

    def fixed(self) -> list[Tensor]:
        """The tensors that it has made so far, and never changes."""
        relations = [each.program.fixed() for each in self.instructions if isinstance(each, RelationValue)]
        flags = [each.flags.all() for each in self.instructions if isinstance(each, Depth)]
        return [*self._positions.all(), *(tensor for group in (*self._on_device.all(), *relations, *flags) for tensor in group)]

    @property
    def comparisons(self) -> list[tuple[int, Compare]]:
        """The register of each group of comparisons, with the instruction that fills it."""
        return [(number, each) for number, each in enumerate(self.instructions) if isinstance(each, Compare)]

    def refuse_non_finite(self, costs: Tensor, registers: Registers | Guided | Settled, limit: float = math.inf) -> None:
        """Raise an error that names the rule and the sub-formula behind a cost ``(batch, rules)`` that is not below a limit."""
        sample, rule, found = describe_cost(self.names, costs, limit)
        own = set(map(id, walk(self._formulas[self.names[rule]])))
        largest, owner = 0.0, ""
        for leaf in self.leaves:
            value = fetch(registers, leaf.operand).detach()[sample]
            # One row for each atom; a value that is the same for all of them is repeated.
            rows = value.expand(*leaf.lanes, *value.shape[len(leaf.lanes) :]).reshape(len(leaf.formulas), -1)
            for lane in (~(rows < limit)).any(1).nonzero().flatten().tolist():
                if id(leaf.formulas[lane]) in own:
                    raise NonFiniteError(
                        f"{found}, because of {leaf.formulas[lane]}; look for a division by zero, a logarithm of zero, "
                        f"numbers in a small unit or a diverged network. No dual variable was changed."
                    )
            for lane, formula in enumerate(leaf.formulas):
                if id(formula) in own and rows.shape[1] and rows[lane].max().item() >= largest:
                    largest, owner = rows[lane].max().item(), str(formula)
        if self._is_empty(registers, sample, rule):
            raise NonFiniteError(f"{found}: {NOTHING_LEFT}. No dual variable was changed.")
        raise NonFiniteError(
            f"{found}, although each of its atoms has a finite cost, at most {largest:.4g} for {owner}: joined, their costs are "
            f"past what {costs.dtype} holds; divide the terms of the rule by a scale, or use a method that does not multiply "
            f"costs, such as 'dual'. No dual variable was changed."
        )

    def _is_empty(self, registers: Registers | Guided | Settled, sample: int, rule: int) -> bool:
        """Whether a rule cannot hold for a sample because an ``any`` has no entry left; its atoms' costs are finite."""
        from dualogic.compile.extreme import take_extreme

        if self.mode not in ("probability", "log"):
            return False
        with torch.no_grad():
            return self.fold(registers, take_extreme)[sample, rule].item() == math.inf


NOTHING_LEFT = (
    "an .any(where=...) has no entry left for it, or an .any() is over an axis that was cut to nothing, so it cannot be "
    "satisfied; join it with an alternative or leave such samples out"
)


def describe_cost(names: tuple[str, ...], costs: Tensor, limit: float) -> tuple[int, int, str]:
    """The first sample and rule whose cost is not below ``limit``, and the beginning of a sentence about it."""
    sample, rule = (~(costs < limit)).nonzero()[0].tolist()
    cost = costs[sample, rule].item()
    most = f", not below {limit:.4g}" if math.isfinite(cost) else ""
    return sample, rule, f"the cost of rule {names[rule]!r} is {cost}{most} for the sample at position {sample}"


def compile_rules(
    rules: Iterable[tuple[str, Formula]],
    mode: str,
    evidence: float | None = 0.0,
    resting: bool = False,
    unlabelled: Unlabelled = (),
    given: Collection[str] = (),
) -> Plan:
    """The plan for named rules; plans are cached.

    Args:
        rules: pairs of a name and a formula.
        mode: ``"probability"``, ``"log"``, ``"truth"`` or ``"degree"``; see :class:`~dualogic.compile.build.Builder`.
        evidence: the share of evidence of antecedents that are not marked; see :func:`~dualogic.normalize.nnf.to_nnf`.
        resting: whether implications rest; likewise.
        unlabelled: what no label shows; likewise.
        given: what no rule can change; likewise.
    """
    return _compile(tuple(rules), mode, evidence, resting, unlabelled, frozenset(given))


@functools.lru_cache(maxsize=256)
def _compile(*options: Any) -> Plan:
    with outside_inference(), torch.device("cpu"):
        return Plan(*options)
