"""The compiled form of a set of rules: immutable, cached, and free of state."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.binding import Bound, bind
from dualogic.compile.build import Builder
from dualogic.compile.instructions import Context, Registers, fetch
from dualogic.compile.tree import Branch, Combine, Leaf, Level
from dualogic.errors import NonFiniteError, OptionError
from dualogic.formula.atom import ClassIn
from dualogic.formula.connective import Complement, Formula, Junction, Quantifier
from dualogic.formula.inspect import collect_symbols
from dualogic.formula.node import walk
from dualogic.normalize.nnf import to_nnf

MODES = ("probability", "log", "truth", "degree")


class Plan:
    """Tensor operations for a set of rules; made by :func:`compile_rules`.

    Attributes:
        names: the rules' names.
        symbols: the symbols to bind, by name.
        levels: the connective levels, parents before children.
        width: how many dual variables one sample has.
    """

    def __init__(self, rules: tuple[tuple[str, Formula], ...], mode: str) -> None:
        if mode not in MODES:
            raise OptionError(f"class_cost must be 'probability' or 'log'; got {mode!r}")
        self.mode = mode
        self.names = tuple(name for name, _ in rules)
        formulas = {name: to_nnf(formula) for name, formula in rules}
        if mode == "probability":
            formulas = {name: _unfold_class_sets(formula, {}) for name, formula in formulas.items()}
        # Symbols that normalisation dropped must still be bound, so they are read from the rules as written.
        self.symbols = collect_symbols(walk(*(formula for _, formula in rules)))
        builder = Builder(mode)
        self._roots = builder.roots(formulas)
        self._instructions = tuple(builder.instructions)
        self._constants = tuple(builder.constants)
        self._on_device: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
        self.levels: tuple[Level, ...] = tuple(builder.levels)
        self.leaves: tuple[Leaf, ...] = tuple(builder.leaves)
        self.width = builder.width
        self.masked = any(level.ragged for level in self.levels) or any(
            isinstance(node, Quantifier) and node.where is not None for node in walk(*formulas.values())
        )
        places = [place for _, group in self._roots for place in group]
        self._order = None if places == sorted(places) else [places.index(place) for place in range(len(places))]

    def bind(self, tensors: Mapping[str, Any], validate: bool) -> Bound:
        """Check the tensors of a call."""
        return bind(self.symbols, tensors, validate)

    def constants(self, device: torch.device, dtype: torch.dtype) -> list[Tensor]:
        """The plan's constants on a device; floating point ones in ``dtype``."""
        key = (device, dtype)
        found = self._on_device.get(key)
        if found is None:
            found = [
                constant.to(device=device, dtype=dtype if constant.is_floating_point() else None)
                for constant in self._constants
            ]
            self._on_device[key] = found
        return found

    def evaluate(self, bound: Bound, tol: float = 0.0, lead: float = 0.0) -> Registers:
        """Compute all terms and atoms; differentiable."""
        context = Context(bound.tensors, self.constants(bound.device, bound.dtype), tol, lead)
        registers: Registers = []
        for instruction in self._instructions:
            registers.append(instruction.run(registers, context))
        return registers

    def fold(self, registers: Registers, combine: Combine) -> Tensor:
        """Join the atoms' values up to the rules; shape ``(batch, rules, *axes)``."""
        parts = [self._root(branch, registers, combine, len(group)) for branch, group in self._roots]
        if len(parts) == 1:
            return parts[0]
        joined = torch.cat(parts, dim=1)
        return joined if self._order is None else joined[:, self._order]

    @staticmethod
    def _root(branch: Branch, registers: Registers, combine: Combine, count: int) -> Tensor:
        value = branch.fold(registers, combine)
        return value if value.shape[1] == count else value.expand(-1, count, *value.shape[2:])

    @property
    def roots(self) -> list[tuple[Branch, list[int]]]:
        """The trees of the rules, those of one shape together, with the rules' positions."""
        return self._roots

    def refuse_non_finite(self, costs: Tensor, registers: Registers) -> None:
        """Raise an error that names the rule and the sub-formula behind a cost that is not finite.

        Args:
            costs: ``(batch, rules)``.
            registers: the values that they came from.
        """
        sample, rule = (~torch.isfinite(costs)).nonzero()[0].tolist()
        found = f"the cost of rule {self.names[rule]!r} is {costs[sample, rule].item()} for the sample at position {sample}"
        for leaf in self.leaves:
            value = fetch(registers, leaf.operand).detach()
            bad = (~torch.isfinite(value[sample])).nonzero()
            if len(bad):
                flat = value[sample].reshape(len(leaf.formulas), -1) if value[sample].numel() >= len(leaf.formulas) else None
                lane = 0
                if flat is not None:
                    lane = int((~torch.isfinite(flat)).any(1).nonzero()[0])
                raise NonFiniteError(
                    f"{found}, because of {leaf.formulas[lane]}; look for a division by zero, a logarithm of zero or a diverged "
                    f"network. No dual variable was changed."
                )
        raise NonFiniteError(
            f"{found}: an .any(where=...) has no entry left for it, so it cannot be satisfied; join it with an alternative or "
            f"leave such samples out. No dual variable was changed."
        )


def compile_rules(rules: Iterable[tuple[str, Formula]], mode: str) -> Plan:
    """The plan for named rules; plans are cached.

    Args:
        rules: pairs of a name and a formula.
        mode: ``"probability"``, ``"log"``, ``"truth"`` or ``"degree"``; see :class:`~dualogic.compile.build.Builder`.
    """
    return _compile(tuple(rules), mode)


@functools.lru_cache(maxsize=256)
def _compile(rules: tuple[tuple[str, Formula], ...], mode: str) -> Plan:
    return Plan(rules, mode)


def _unfold_class_sets(node: Formula, done: dict[int, Formula]) -> Formula:
    """Write "one of these classes" as an ``or`` over them, at a level of its own (the paper's encoding)."""
    if id(node) in done:
        return done[id(node)]
    result: Formula = node
    negated = isinstance(node, Complement)
    atom = node.operand if isinstance(node, Complement) else node
    if isinstance(atom, ClassIn):
        labels = [label for label in range(atom.operand.symbol.size) if (label in atom.classes) != negated]
        if negated or len(labels) > 1:
            singles = tuple(ClassIn(atom.operand, (label,)) for label in labels)
            result = singles[0] if len(singles) == 1 else Junction("|", singles)
    elif isinstance(node, Junction):
        result = Junction(node.operation, tuple(_unfold_class_sets(operand, done) for operand in node.operands))
    elif isinstance(node, Quantifier):
        result = Quantifier(node.operation, _unfold_class_sets(node.operand, done), node.dims, node.where, node.tied)
    elif hasattr(node, "operand") and type(node).__name__ == "Level":
        result = type(node)(_unfold_class_sets(node.operand, done))
    done[id(node)] = result
    return result
