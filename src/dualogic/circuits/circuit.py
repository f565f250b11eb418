"""Networks of sums and products as batched tensor operations, in logarithms.

All nodes of one depth are computed together, for all samples at once: a node is a sum of terms, each a product of factors,
so a group of nodes is one gather, one sum and one ``logsumexp``. The derivative is computed in closed form in one sweep back.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from dualogic.circuits.network import KINDS, ONE, Network
from dualogic.constants import Constants
from dualogic.numerics import is_followed, negative_log

GROUP_OVERHEAD = 64  # what the tensor operations of a group cost before they touch any number, in rows of a batch of 128


@dataclasses.dataclass
class Part:
    """Leaves of one kind."""

    rise: float  # factor of the positive logarithm
    fall: float  # factor of the negative one
    start: int  # the first of their rows
    length: int  # how many
    variables: Tensor | None  # whose they are; `None` for all
    stored: bool = False  # some group gathers single rows of it, or it holds a root


@dataclasses.dataclass(frozen=True)
class Group:
    """Nodes that are computed together."""

    start: int  # the first of their rows
    nodes: int  # how many
    terms: int  # of each sum
    factors: int  # of each term
    rows: Tensor  # `nodes * terms * factors` rows to gather
    part: int | None  # the leaves that they are, all of them in order; read without gathering


@dataclasses.dataclass(frozen=True)
class _Indices:
    parts: list[Tensor | None]
    groups: list[Tensor]
    roots: Tensor
    scale: list[Tensor]


class Circuit:
    """A compiled network: a function of the weights' logarithms."""

    def __init__(self, network: Network) -> None:
        self.count = network.count
        self._layout(network)
        self.elements = sum(group.rows.numel() for group in self.groups)
        self.price = self.elements + GROUP_OVERHEAD * len(self.groups)
        self._on_device: Constants[_Indices] = Constants()

    def __call__(self, positive: Tensor, negative: Tensor) -> Tensor:
        """Logarithms of the roots' values, ``(batch, roots)``, from those of the weights of variables and of their negations.

        Both are ``(batch, variables)``, and finite.
        """
        if self.flat:
            return self._sum(positive, negative)
        if is_followed():
            return self.forward(positive, negative, None)
        return _Evaluate.apply(self, positive, negative)  # type: ignore[no-any-return, no-untyped-call]

    def of_probabilities(self, probability: Tensor) -> Tensor:
        """Logarithms of the roots' values, ``(batch, roots)``, from probabilities ``(batch, variables)``."""
        if is_followed():
            return self.forward(-negative_log(probability), -negative_log(1.0 - probability), None)
        return _Evaluate.apply(self, probability, None)  # type: ignore[no-any-return, no-untyped-call]

    def _layout(self, network: Network) -> None:
        uses = network.uses()
        order = network.reachable()
        terms: dict[int, list[tuple[int, ...]]] = {}
        for node in order:
            operation, operands = network[node]
            if operation == "*":
                terms[node] = [operands]
                continue
            terms[node] = [
                network[operand][1]
                if not network.is_leaf(operand) and network[operand][0] == "*" and uses[operand] == 1
                else (operand,)
                for operand in operands
            ]
        # A product that is the term of one sum is computed there.
        needed = set(network.roots)
        for node in reversed(order):
            if node in needed:
                needed.update(factor for term in terms[node] for factor in term)
        inner = [node for node in order if node in needed]
        self.parts: list[Part] = []
        rows: dict[int, int] = {}
        for kind, (rise, fall) in enumerate(KINDS):
            used = sorted(node for node in needed if 0 <= node < network.leaves and node // network.count == kind)
            if used:
                variables = torch.tensor([node % network.count for node in used])
                whole = len(used) == network.count
                self.parts.append(Part(rise, fall, len(rows), len(used), None if whole else variables))
                rows.update({node: len(rows) + place for place, node in enumerate(used)})
        self.one = len(rows)
        rows[ONE] = self.one
        self.nothing = self.one + 1
        self.size = self.one + 2
        depth: dict[int, int] = {}
        levels: dict[int, list[int]] = {}
        for node in inner:
            depth[node] = 1 + max(depth.get(factor, 0) for term in terms[node] for factor in term)
            levels.setdefault(depth[node], []).append(node)
        self.groups: list[Group] = []
        for level in sorted(levels):
            for nodes in _batches(levels[level], terms):
                self._group(nodes, terms, rows)
        self.roots = torch.tensor([rows[root] for root in network.roots])
        read = {row for group in self.groups if group.part is None for row in group.rows.tolist()} | set(self.roots.tolist())
        for part in self.parts:
            part.stored = any(part.start <= row < part.start + part.length for row in read)
        self.padded = self.one in read or self.nothing in read
        # One sum over leaves, straight into the roots: no rows need to be kept.
        first = self.groups[0] if len(self.groups) == 1 else None
        self.flat = (
            first is not None
            and first.part is not None
            and self.roots.tolist() == [first.start + place for place in range(first.nodes)]
        )
        # Whose weights scale the lone root: those of positive literals, then those of negative ones.
        self.scale = [
            torch.tensor([node % network.count for node in network.scale if node // network.count == kind], dtype=torch.long)
            for kind in (0, 1)
        ]

    def _group(self, nodes: list[int], terms: dict[int, list[tuple[int, ...]]], rows: dict[int, int]) -> None:
        count = max(len(terms[node]) for node in nodes)
        width = max(len(term) for node in nodes for term in terms[node])
        table = []
        for node in nodes:
            for term in terms[node]:
                table += [rows[factor] for factor in term] + [self.one] * (width - len(term))
            table += ([self.nothing] + [self.one] * (width - 1)) * (count - len(terms[node]))
        whole = table == list(range(table[0], table[0] + len(table)))
        matches = [number for number, part in enumerate(self.parts) if (part.start, part.length) == (table[0], len(table))]
        self.groups.append(
            Group(self.size, len(nodes), count, width, torch.tensor(table), matches[0] if whole and matches else None)
        )
        for place, node in enumerate(nodes):
            rows[node] = self.size + place
        self.size += len(nodes)

    def constants(self, device: torch.device) -> _Indices:
        """Index tensors on a device."""
        return self._on_device.get(
            device,
            lambda: _Indices(
                [None if part.variables is None else part.variables.to(device) for part in self.parts],
                [group.rows.to(device) for group in self.groups],
                self.roots.to(device),
                [variables.to(device) for variables in self.scale],
            ),
        )

    def forward(self, positive: Tensor, negative: Tensor, keep: list[Any] | None) -> Tensor:
        """The value of every root; ``keep`` collects what :meth:`backward` needs."""
        index = self.constants(positive.device)
        if self.flat:
            result = self._join(self.groups[0], self._leaves(positive, negative, index, None)[0], keep).t()
        else:
            values = positive.new_empty((self.size, positive.shape[0]))
            parts = self._leaves(positive, negative, index, values)
            if self.padded:
                values[self.one].zero_()
                values[self.nothing].fill_(-torch.inf)
            for group, rows in zip(self.groups, index.groups):
                source = values.index_select(0, rows) if group.part is None else parts[group.part]
                values.narrow(0, group.start, group.nodes).copy_(self._join(group, source, keep))
            result = values.index_select(0, index.roots).t()
        return self._multiply(result, positive, negative, index)

    def _multiply(self, result: Tensor, positive: Tensor, negative: Tensor, index: _Indices) -> Tensor:
        """The roots times what scales them."""
        for side, variables in zip((positive, negative), index.scale):
            if variables.numel():
                chosen = side if variables.numel() == self.count else side.index_select(1, variables)
                result = result + chosen.sum(1, keepdim=True)
        return result

    def _sum(self, positive: Tensor, negative: Tensor) -> Tensor:
        """A flat circuit: nothing is gathered or scattered, so torch's own derivatives are the fastest."""
        index = self.constants(positive.device)
        group, part, variables = self.groups[0], self.parts[0], index.parts[0]
        sides = [side if variables is None else side.index_select(1, variables) for side in (positive, negative)]
        terms = _weigh(sides[0], sides[1], part.rise, part.fall)
        if group.nodes > 1 or group.factors > 1:
            terms = terms.unflatten(1, (group.nodes, group.terms, group.factors)).sum(3)
            return self._multiply(terms.logsumexp(2), positive, negative, index)
        return self._multiply(terms.logsumexp(1, keepdim=True), positive, negative, index)

    @staticmethod
    def _join(group: Group, source: Tensor, keep: list[Any] | None) -> Tensor:
        """The group's values ``(nodes, batch)`` from the rows it reads; ``keep`` gets each term's share of its sum."""
        shape = (group.nodes, group.terms, group.factors, source.shape[1])
        terms = source.view(shape).sum(2) if group.factors > 1 else source.view(*shape[:2], shape[3])
        if group.terms == 1:
            return terms.squeeze(1)
        if keep is None:
            return terms.logsumexp(1)
        top = terms.amax(1, keepdim=True)
        shares = (terms - top).exp_()
        total = shares.sum(1, keepdim=True)
        keep.append(shares.div_(total))
        return (top + total.log_()).squeeze(1)

    def _leaves(self, positive: Tensor, negative: Tensor, index: _Indices, values: Tensor | None) -> list[Tensor]:
        """The values of each part's leaves, ``(leaves, batch)``; stored as rows where single ones are read."""
        parts = []
        for part, variables in zip(self.parts, index.parts):
            sides = [side.t() if variables is None else side.t().index_select(0, variables) for side in (positive, negative)]
            value = _weigh(sides[0], sides[1], part.rise, part.fall)
            if part.stored and values is not None:
                values.narrow(0, part.start, part.length).copy_(value)
            parts.append(value)
        return parts

    def backward(self, slope: Tensor, kept: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Derivatives with respect to both weights' logarithms, from those of the roots ``(batch, roots)``."""
        index = self.constants(slope.device)
        parts: dict[int, Tensor] = {}
        slopes = slope
        if self.flat:
            parts[0] = self._split(self.groups[0], slope.t(), list(kept))
        else:
            slopes = slope.new_zeros((self.size, slope.shape[0]))
            slopes.index_add_(0, index.roots, slope.t())
            shares = list(kept)
            for group, rows in zip(reversed(self.groups), reversed(index.groups)):
                below = self._split(group, slopes.narrow(0, group.start, group.nodes), shares)
                if group.part is None:
                    slopes.index_add_(0, rows, below)
                else:
                    parts[group.part] = parts[group.part] + below if group.part in parts else below
        sides: list[Tensor | None] = [None, None]
        for number, (part, variables) in enumerate(zip(self.parts, index.parts)):
            gathered = slopes.narrow(0, part.start, part.length) if part.stored else None
            direct = parts.get(number)
            total = gathered if direct is None else direct if gathered is None else direct + gathered
            assert total is not None, "a part is read in one of two ways"
            for place, factor in enumerate((part.rise, part.fall)):
                if factor:
                    sides[place] = self._collect(sides[place], total, factor, variables)
        return self._scaled(sides[0], slope, index.scale[0]), self._scaled(sides[1], slope, index.scale[1])

    @staticmethod
    def _split(group: Group, slope: Tensor, shares: list[Tensor]) -> Tensor:
        """The derivative for each row that a group reads, from that of its nodes ``(nodes, batch)``."""
        below = slope.unsqueeze(1)
        if group.terms > 1:
            below = shares.pop() * below
        if group.factors > 1:
            below = below.unsqueeze(2).expand(-1, -1, group.factors, -1)
        return below.flatten(0, -2)

    def _collect(self, side: Tensor | None, part: Tensor, factor: float, variables: Tensor | None) -> Tensor:
        """Add a part's derivative to that of the variables, ``(variables, batch)``."""
        if variables is not None:
            side = part.new_zeros((self.count, part.shape[1])) if side is None else side
            return side.index_add(0, variables, part, alpha=factor)
        if side is None:
            return part if factor > 0 else -part
        return side + part if factor > 0 else side - part

    def _scaled(self, side: Tensor | None, slope: Tensor, variables: Tensor) -> Tensor:
        """The derivative ``(batch, variables)``, with that of the scale added."""
        result = slope.new_zeros((slope.shape[0], self.count)) if side is None else side.t()
        if not variables.numel():
            return result
        if variables.numel() == self.count:
            return result + slope
        return result.index_add(1, variables, slope.expand(-1, variables.numel()))


def _weigh(positive: Tensor, negative: Tensor, rise: float, fall: float) -> Tensor:
    """``rise * positive + fall * negative`` for factors of -1, 0 and 1."""
    if rise and fall:
        return positive - negative if rise > 0 else negative - positive
    chosen = positive if rise else negative
    return chosen if rise + fall > 0 else -chosen


def _batches(nodes: list[int], terms: dict[int, list[tuple[int, ...]]]) -> list[list[int]]:
    """Nodes of one depth in groups of similar size, or all together where little padding is needed."""
    buckets: dict[tuple[int, int], list[int]] = {}
    for node in nodes:
        count, width = len(terms[node]), max(map(len, terms[node]))
        buckets.setdefault(((count - 1).bit_length(), (width - 1).bit_length()), []).append(node)

    def padded(members: list[int]) -> int:
        width = max(len(term) for node in members for term in terms[node])
        return len(members) * max(len(terms[node]) for node in members) * width

    apart = sum(padded(members) + GROUP_OVERHEAD for members in buckets.values())
    return [nodes] if padded(nodes) + GROUP_OVERHEAD <= apart else list(buckets.values())


class _Evaluate(torch.autograd.Function):
    """From logarithms of both weights, or from probabilities alone, their logarithms taken inside: one node instead of six."""

    @staticmethod
    def forward(ctx: Any, circuit: Circuit, positive: Tensor, negative: Tensor | None) -> Tensor:
        keep: list[Any] | None = [] if any(ctx.needs_input_grad) else None
        weights: list[Tensor] = []
        if negative is None:
            tiny = torch.finfo(positive.dtype).tiny
            weights = [positive.clamp(tiny, 1.0), (1.0 - positive).clamp_(tiny, 1.0)]
            positive, negative = (weight.log() for weight in weights)
        result = circuit.forward(positive, negative, keep)
        ctx.circuit, ctx.weights = circuit, len(weights)
        if keep is not None:
            ctx.save_for_backward(*weights, *keep)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[None, Tensor, Tensor | None]:
        weights, kept = ctx.saved_tensors[: ctx.weights], ctx.saved_tensors[ctx.weights :]
        rise, fall = ctx.circuit.backward(slope, kept)
        return (None, rise / weights[0] - fall / weights[1], None) if weights else (None, rise, fall)
