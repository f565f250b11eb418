"""Sums of products over literals: decision diagrams as networks, and their simplification.

A network's nodes are numbers. Leaves come first, six kinds for each of the variables ``0 .. count - 1``: with ``p`` and ``n`` the
logarithms of a variable's two weights they are worth ``p``, ``n``, ``p - n``, ``n - p``, ``-n`` and ``-p``. :data:`ONE` is true.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

ONE = -1
KINDS = ((1.0, 0.0), (0.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (0.0, -1.0), (-1.0, 0.0))
"""What each kind of leaf is worth, as factors of the positive and the negative logarithm."""
POSITIVE, NEGATIVE, RISE, FALL, WITHOUT_NEGATIVE, WITHOUT_POSITIVE = range(6)


class Network:
    """Interned sums and products over ``count`` variables; built from the leaves up."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.leaves = len(KINDS) * count
        self.nodes: list[tuple[str, tuple[int, ...]]] = []
        self.roots: list[int] = []  # the nodes to compute
        self.scale: list[int] = []  # literals to multiply a lone root with
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}

    def leaf(self, kind: int, variable: int) -> int:
        """One of the six leaves of a variable."""
        return kind * self.count + variable

    def is_leaf(self, node: int) -> bool:
        """Whether a node is a leaf (or true)."""
        return node < self.leaves

    def __getitem__(self, node: int) -> tuple[str, tuple[int, ...]]:
        return self.nodes[node - self.leaves]

    def product(self, operands: list[int]) -> int:
        """A product; factors of 1 are dropped."""
        return self._add("*", sorted(operand for operand in operands if operand != ONE))

    def sum(self, operands: list[int]) -> int:
        """A sum of at least one operand."""
        return self._add("+", sorted(operands))

    def _add(self, operation: str, operands: list[int]) -> int:
        if len(operands) < 2:
            return operands[0] if operands else ONE
        # In order of the leaves, so that a run of them can be read without gathering.
        if (key := (operation, tuple(operands))) not in self._known:
            self._known[key] = self.leaves + len(self.nodes)
            self.nodes.append(key)
        return self._known[key]

    def reachable(self) -> list[int]:
        """The inner nodes below the roots, operands first."""
        wanted: set[int] = set()
        stack = [root for root in self.roots if not self.is_leaf(root)]
        while stack:
            node = stack.pop()
            if node not in wanted:
                wanted.add(node)
                stack.extend(operand for operand in self[node][1] if not self.is_leaf(operand))
        return sorted(wanted)

    def uses(self) -> dict[int, int]:
        """How often each inner node is an operand or a root."""
        operands = (operand for node in self.reachable() for operand in self[node][1])
        return Counter(itertools.chain(operands, self.roots))


def from_sdd(roots: list[Any], count: int) -> Network:
    """The network of ``pysdd`` nodes, none of them false: each decision is a sum, over its elements, of prime times sub."""
    network = Network(count)
    done: dict[int, int] = {}

    def known(node: Any) -> int | None:
        if node.is_true():
            return ONE
        if node.is_literal():
            return network.leaf(POSITIVE if node.literal > 0 else NEGATIVE, abs(node.literal) - 1)
        return done.get(node.id)

    # Without recursion: a right-linear diagram is as deep as it has variables.
    stack = [root for root in roots if known(root) is None]
    while stack:
        node = stack[-1]
        parts = [(prime, sub) for prime, sub in node.elements() if not sub.is_false()]
        if waiting := [side for pair in parts for side in pair if known(side) is None]:
            stack.extend(waiting)
            continue
        stack.pop()
        done[node.id] = network.sum([network.product([known(prime), known(sub)]) for prime, sub in parts])  # type: ignore[list-item]
    network.roots = [known(root) for root in roots]  # type: ignore[misc]
    return flatten(network)


def flatten(network: Network) -> Network:
    """Sums inside sums and products inside products, written as one where the inner one has no other use."""
    uses = network.uses()
    result = Network(network.count)
    renamed: dict[int, int] = {}
    for node in network.reachable():
        operation, operands = network[node]
        parts: list[int] = []
        for operand in operands:
            new = renamed.get(operand, operand)
            inner = not result.is_leaf(new) and result[new][0] == operation and uses[operand] == 1
            parts.extend(result[new][1] if inner else (new,))
        renamed[node] = result.sum(parts) if operation == "+" else result.product(parts)
    result.roots = [renamed.get(root, root) for root in network.roots]
    result.scale = network.scale
    return result


def factor_out(network: Network, limit: int, fixed: frozenset[int] = frozenset()) -> Network | None:
    """Divide by one weight of every variable, so that its literal is 1 and drops out of all products.

    A sum's terms must speak of the same variables for that; where a term leaves one out, it is multiplied by the sum of
    its two weights, which is 1 before and ``1 / weight`` after the division. In "exactly one of n" what is left is a single sum.
    The weights of a variable must sum to 1. Variables that are ``fixed``, true or false for sure, stay as they are.

    Returns:
        An equal network, or ``None`` if it would have more than ``limit`` operands.
    """
    count = network.count
    order = network.reachable()
    votes = [0] * count
    for node in order:
        for operand in network[node][1]:
            if 0 <= operand < 2 * count:
                votes[operand % count] += 1 if operand >= count else -1
    base = [NEGATIVE if vote >= 0 else POSITIVE for vote in votes]
    result = Network(count)
    renamed = {ONE: ONE}
    scopes = {ONE: 0}
    for variable in range(count):
        if variable in fixed:
            for kind in (POSITIVE, NEGATIVE):
                leaf = network.leaf(kind, variable)
                scopes[leaf], renamed[leaf] = 0, result.leaf(kind, variable)
            continue
        for kind in (POSITIVE, NEGATIVE):
            scopes[network.leaf(kind, variable)] = 1 << variable
        change = result.leaf(RISE if base[variable] == NEGATIVE else FALL, variable)
        renamed[network.leaf(POSITIVE, variable)] = ONE if base[variable] == POSITIVE else change
        renamed[network.leaf(NEGATIVE, variable)] = ONE if base[variable] == NEGATIVE else change
    size = 0
    for node in order:
        operation, operands = network[node]
        scope = 0
        for operand in operands:
            scope |= scopes[operand]
        scopes[node] = scope
        if operation == "*":
            renamed[node] = result.product([renamed[operand] for operand in operands])
            size += len(operands)
            continue
        terms = []
        for operand in operands:
            missing = scope & ~scopes[operand]
            absent = [variable for variable in range(missing.bit_length()) if missing >> variable & 1]
            gaps = [result.leaf(WITHOUT_NEGATIVE if base[each] == NEGATIVE else WITHOUT_POSITIVE, each) for each in absent]
            size += 1 + len(gaps)
            terms.append(result.product([renamed[operand], *gaps]))
        if size > limit:
            return None
        # A term that is 1 stays, as an operand that is worth 1.
        renamed[node] = result.sum(terms)
    for root in network.roots:
        scope = scopes[root]
        weights = [result.leaf(base[variable], variable) for variable in range(count) if scope >> variable & 1]
        if len(network.roots) == 1:
            result.roots, result.scale = [renamed[root]], weights
        else:
            result.roots.append(result.product([renamed[root], *weights]))
    return flatten(result)
