"""One readable and unambiguous text form.

The text is a Python expression over the symbols' names and dualogic's functions, with Python's precedence: evaluating it
with the symbols at hand gives the same node back (a test does so).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualogic.formula.atom import Boolean, BooleanIndex, ClassEqual, ClassIn, Comparison
from dualogic.formula.connective import (
    Cardinality,
    Complement,
    Equivalence,
    Implication,
    Junction,
    Level,
    Premise,
    Quantifier,
    Resting,
)
from dualogic.formula.evidence import Evidence
from dualogic.formula.function import Application
from dualogic.formula.indexing import format_items
from dualogic.formula.node import Node
from dualogic.formula.symbol import (
    Categorical,
    ClassIndex,
    Mask,
    MaskComplement,
    MaskIndex,
    MaskJunction,
    Probabilities,
    Variable,
)
from dualogic.formula.term import (
    Absolute,
    Arithmetic,
    Constant,
    Index,
    MatrixProduct,
    Negation,
    Number,
    Reduction,
)

# Python's binding strengths, loosest first.
COMPARISON, OR, AND, SHIFT, SUM, PRODUCT, UNARY, POWER, CALL = range(9)
_STRENGTH = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "**": POWER, "&": AND, "|": OR}
_FUNCTIONS = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge", "!=": "ne"}

Text = tuple[str, int]


def to_text(node: Node) -> str:
    """The text of any node."""
    return _render(node)[0]


def _render(node: Node) -> Text:
    return _RENDERERS[type(node)](node)


def _wrap(node: Node, strength: int) -> str:
    text, own = _render(node)
    return text if own >= strength else f"({text})"


def format_number(value: float) -> str:
    """``9`` for 9.0, otherwise the shortest text that reads back as the same number."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def _number(node: Number) -> Text:
    return format_number(node.value), UNARY if node.value < 0 else CALL


def _constant(node: Constant) -> Text:
    if node.name is not None:
        return node.name, CALL

    def listed(rows: Any) -> str:
        return format_number(rows) if isinstance(rows, float) else f"[{', '.join(map(listed, rows))}]"

    return listed(node.rows()), CALL


def _arithmetic(node: Arithmetic) -> Text:
    outer = strength = _STRENGTH[node.operation]
    # Python groups '**' to the right and everything else to the left.
    if node.operation == "**":
        return f"{_wrap(node.left, CALL)} ** {_wrap(node.right, POWER)}", POWER
    # A sum written as a Python loop is a tree as deep as it is long, so the left side is followed without recursion.
    parts: list[str] = []
    while True:
        parts.append(f" {node.operation} {_wrap(node.right, strength + 1)}")
        left = node.left
        if not isinstance(left, Arithmetic) or left.operation == "**" or _STRENGTH[left.operation] < strength:
            return "".join([_wrap(left, strength), *reversed(parts)]), outer
        node, strength = left, _STRENGTH[left.operation]


def _matrix_product(node: MatrixProduct) -> Text:
    return f"{_wrap(node.left, PRODUCT)} @ {_wrap(node.right, UNARY)}", PRODUCT


def _negation(node: Negation) -> Text:
    # '-' in front of a number would read as a negative constant.
    operand = f"({_render(node.operand)[0]})" if isinstance(node.operand, Number) else _wrap(node.operand, UNARY)
    return f"-{operand}", UNARY


def _reduction(node: Reduction) -> Text:
    return f"{_wrap(node.operand, CALL)}.{node.operation}({_dims(node)})", CALL


def _dims(node: Any) -> str:
    if len(node.dims) == len(node.operand.shape):
        return ""
    return str(node.dims[0]) if len(node.dims) == 1 else str(node.dims)


def _application(node: Application) -> Text:
    return f"{node.name}({', '.join(_render(operand)[0] for operand in node.operands)})", CALL


def _indexed(node: Any) -> Text:
    return f"{_wrap(node.operand, CALL)}{format_items(node.items)}", CALL


def _comparison(node: Comparison) -> Text:
    left, right = node.left, node.right
    if node.margin:
        arguments = f"{_render(left)[0]}, {_render(right)[0]}, margin={format_number(node.margin)}"
        return f"{_FUNCTIONS[node.operation]}({arguments})", CALL
    return f"{_wrap(left, COMPARISON + 1)} {node.operation} {_wrap(right, COMPARISON + 1)}", COMPARISON


def _class_in(node: ClassIn, sign: str = "==") -> Text:
    labels = [node.operand.symbol.class_label(index) for index in node.classes]
    if len(labels) == 1:
        return f"{_wrap(node.operand, COMPARISON + 1)} {sign} {labels[0]}", COMPARISON
    return f"{_wrap(node.operand, CALL)}.isin([{', '.join(labels)}])", CALL


def _class_equal(node: ClassEqual, sign: str = "==") -> Text:
    return f"{_wrap(node.left, COMPARISON + 1)} {sign} {_wrap(node.right, COMPARISON + 1)}", COMPARISON


def _junction(node: Any) -> Text:
    strength = _STRENGTH[node.operation]
    operands = node.operands if isinstance(node, Junction) else (node.left, node.right)
    # Formulas never nest a chain directly in one of the same kind (a Level stands between); masks may, to the left.
    first = strength if isinstance(node, MaskJunction) else strength + 1
    parts = [_wrap(operand, strength + 1 if position else first) for position, operand in enumerate(operands)]
    return f" {node.operation} ".join(parts), strength


def _complement(node: Any) -> Text:
    operand = node.operand
    if isinstance(operand, ClassEqual):
        return _class_equal(operand, "!=")
    if isinstance(operand, ClassIn) and len(operand.classes) == 1:
        return _class_in(operand, "!=")
    return f"~{_wrap(node.operand, UNARY)}", UNARY


def _implication(node: Implication | Resting) -> Text:
    # Python groups '>>' to the left and logicians group '->' to the right, so nested ones always get parentheses.
    return f"{_wrap(node.antecedent, SHIFT + 1)} >> {_wrap(node.consequent, SHIFT + 1)}", SHIFT


def _evidence(node: Evidence) -> Text:
    share = "" if node.share == 1.0 else f", {format_number(node.share)}"
    return f"evidence({_render(node.operand)[0]}{share})", CALL


def _equivalence(node: Equivalence) -> Text:
    return f"{'Xor' if node.negated else 'Iff'}({_render(node.left)[0]}, {_render(node.right)[0]})", CALL


def _cardinality(node: Cardinality) -> Text:
    operands = ", ".join(_render(operand)[0] for operand in node.operands)
    return f"ExactlyOne({operands})" if node.exact else f"AtMost({node.bound}, {operands})", CALL


def _quantifier(node: Quantifier) -> Text:
    options = [_dims(node)] if _dims(node) else []
    if node.where is not None:
        options.append(f"where={_render(node.where)[0]}")
    if node.tied:
        options.append('duals="tied"')
    return f"{_wrap(node.operand, CALL)}.{node.operation}({', '.join(options)})", CALL


def _named(node: Any) -> Text:
    return node.name, CALL


_RENDERERS: dict[type, Callable[[Any], Text]] = {
    Number: _number,
    Constant: _constant,
    Arithmetic: _arithmetic,
    MatrixProduct: _matrix_product,
    Negation: _negation,
    Absolute: lambda node: (f"abs({_render(node.operand)[0]})", CALL),
    Index: _indexed,
    Reduction: _reduction,
    Application: _application,
    Variable: _named,
    Categorical: _named,
    ClassIndex: _indexed,
    Probabilities: lambda node: (f"{_wrap(node.operand, CALL)}.probabilities", CALL),
    Mask: _named,
    MaskIndex: _indexed,
    MaskJunction: _junction,
    MaskComplement: _complement,
    Boolean: _named,
    BooleanIndex: _indexed,
    Comparison: _comparison,
    ClassIn: _class_in,
    ClassEqual: _class_equal,
    Junction: _junction,
    Complement: _complement,
    Implication: _implication,
    Resting: _implication,
    Premise: lambda node: _render(node.operand),
    Equivalence: _equivalence,
    Cardinality: _cardinality,
    Quantifier: _quantifier,
    Level: lambda node: (f"level({_render(node.operand)[0]})", CALL),
    Evidence: _evidence,
}
