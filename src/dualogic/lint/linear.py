"""Linear terms, read back from the solver's expressions."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import z3


@dataclasses.dataclass(frozen=True)
class Linear:
    """``sum of weight * variable + offset``; weights by the name of the variable, none of them 0."""

    weights: tuple[tuple[str, Fraction], ...]
    offset: Fraction

    def direction(self) -> tuple[tuple[tuple[str, Fraction], ...], bool]:
        """The weights with a positive first one, and whether signs were flipped for that."""
        if not self.weights or self.weights[0][1] > 0:
            return self.weights, False
        return tuple((name, -weight) for name, weight in self.weights), True


def to_linear(expression: Any) -> Linear | None:
    """A linear expression by its weights; ``None`` for any other.

    Example:
        >>> x, y = z3.Reals("x y")
        >>> to_linear(2 * x - (y - x) + 1)
        Linear(weights=(('x', Fraction(3, 1)), ('y', Fraction(-1, 1))), offset=Fraction(1, 1))
        >>> to_linear(x * y) is None
        True
    """
    weights: dict[str, Fraction] = {}
    offset = Fraction(0)
    stack = [(expression, Fraction(1))]
    while stack:
        node, factor = stack.pop()
        if z3.is_rational_value(node):
            offset += factor * node.as_fraction()
        elif z3.is_add(node):
            stack += [(child, factor) for child in node.children()]
        elif z3.is_sub(node):
            first, *rest = node.children()
            stack += [(first, factor), *((child, -factor) for child in rest)]
        elif z3.is_mul(node) or z3.is_div(node) or node.decl().kind() == z3.Z3_OP_UMINUS:
            product = _scaled(node)
            if product is None:
                return None
            stack.append((product[0], factor * product[1]))
        elif z3.is_const(node):
            weights[str(node)] = weights.get(str(node), Fraction(0)) + factor
        else:
            return None
    return Linear(tuple(sorted((name, weight) for name, weight in weights.items() if weight)), offset)


def _scaled(node: Any) -> tuple[Any, Fraction] | None:
    """A part and its constant factor."""
    if node.decl().kind() == z3.Z3_OP_UMINUS:
        return node.children()[0], Fraction(-1)
    parts = [(child, _number(child)) for child in node.children()]
    if z3.is_div(node):
        divisor = parts[1][1]
        return (parts[0][0], 1 / divisor) if divisor else None
    free = [child for child, number in parts if number is None]
    factor = Fraction(1)
    for _, number in parts:
        factor *= 1 if number is None else number
    if len(free) > 1:
        return None
    return (free[0] if free else z3.RealVal(1)), factor


def _number(expression: Any) -> Fraction | None:
    """The value of a constant expression, such as ``-2``."""
    simple = z3.simplify(expression)
    return simple.as_fraction() if z3.is_rational_value(simple) else None
