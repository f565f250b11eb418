"""One readable and unambiguous text form.

The text is a Python expression over the symbols' names and dualogic's functions, with Python's precedence: evaluating it
with the symbols at hand gives the same node back (a test does so).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from dualogic.formula import connective
from dualogic.formula.atom import ClassEqual, ClassIn, Comparison
from dualogic.formula.connective import Cardinality, Complement, Equivalence, Implication, Junction, Quantifier, Resting
from dualogic.formula.evidence import Evidence
from dualogic.formula.function import Application
from dualogic.formula.indexing import format_items
from dualogic.formula.inspect import INDEXED, SYMBOLS
from dualogic.formula.node import Node, walk
from dualogic.formula.number import NumberArithmetic, NumberTable
from dualogic.formula.relation import ClassRelation
from dualogic.formula.shape import format_count
from dualogic.formula.symbol import MaskComplement, MaskJunction, Probabilities
from dualogic.formula.term import Absolute, Arithmetic, Constant, MatrixProduct, Negation, Number, Reduction

# Python's binding strengths, loosest first.
COMPARISON, OR, AND, SHIFT, SUM, PRODUCT, UNARY, POWER, CALL = range(9)
_STRENGTH = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "**": POWER, "&": AND, "|": OR}
_FUNCTIONS = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge", "!=": "ne"}

TEXT_LIMIT: Final = 1_000_000
"""How many characters a text may have; longer ones are cut off. Parts that are shared are written out at every place, so a text
can be exponentially longer than what it stands for.
"""
_SHOWN = 1000


class Rope:
    """A text as the sequence of its parts, texts and ropes, which may be parts of others too.

    Its length is known without writing it out: a part that is used twice is counted twice and kept once.
    """

    __slots__ = ("length", "parts")

    def __init__(self, *parts: str | Rope) -> None:
        self.parts = parts
        self.length: int = sum(len(part) if isinstance(part, str) else part.length for part in parts)

    def start(self, limit: int) -> str:
        """The first ``limit`` characters."""
        found: list[str] = []
        stack: list[str | Rope] = [self]
        while stack and limit > 0:
            part = stack.pop()
            if isinstance(part, str):
                found.append(part[:limit])
                limit -= len(part)
            else:
                stack.extend(reversed(part.parts))
        return "".join(found)

    def digest(self) -> str:
        """A fingerprint that two ropes of the same parts have in common, in a time that is linear in what is kept."""
        done: dict[int, bytes] = {}
        stack: list[Rope] = [self]
        while stack:
            rope = stack[-1]
            lacking = [part for part in rope.parts if isinstance(part, Rope) and id(part) not in done]
            if lacking and id(rope) not in done:
                stack.extend(lacking)
                continue
            stack.pop()
            whole = hashlib.sha256()
            for part in rope.parts:
                whole.update(b"text" + hashlib.sha256(part.encode()).digest() if isinstance(part, str) else done[id(part)])
            done[id(rope)] = whole.digest()
        return done[id(self)].hex()


Text = tuple[Rope, int]


def to_text(node: Node, limit: int | None = TEXT_LIMIT) -> str:
    """The text of any node, in a time that is linear in the nodes and in what is shown.

    Of a text that is longer than ``limit`` characters the beginning is given, and how long it would be.
    """
    rope = to_rope(node)
    if limit is None or rope.length <= limit:
        return rope.start(rope.length)
    return f"{rope.start(min(limit, _SHOWN))}... (cut off: the text would have {format_count(rope.length)} characters)"


def fingerprint(node: Node) -> str:
    """A text that stands for a node where it is saved; of one that is too long to be written out, its beginning and a digest."""
    rope = to_rope(node)
    if rope.length <= TEXT_LIMIT:
        return rope.start(rope.length)
    return f"{rope.start(100)}... ({format_count(rope.length)} characters, sha256 of the parts {rope.digest()})"


def stands_for(text: str, node: Node) -> bool:
    """Whether a saved text is that of a node: its fingerprint, or all of its text, which was saved whatever its length once."""
    if len(text) <= TEXT_LIMIT:
        return text == fingerprint(node)
    rope = to_rope(node)
    return len(text) == rope.length and text == rope.start(rope.length)


def to_rope(node: Node) -> Rope:
    """The text of any node, with the parts that it shares."""
    texts = _Texts()
    for part in walk(node):
        texts[id(part)] = _RENDERERS[type(part)](part, texts)
    return texts[id(node)][0]


class _Texts(dict[int, Text]):
    """The texts of the nodes below one, by their ids."""

    def bare(self, node: Node) -> Rope:
        """A part where nothing binds to it."""
        return self[id(node)][0]

    def wrap(self, node: Node, strength: int) -> Rope:
        """A part in brackets, unless it binds at least as strongly as its place asks for."""
        text, own = self[id(node)]
        return text if own >= strength else Rope("(", text, ")")


def _called(opening: str, operands: Sequence[Node], texts: _Texts, closing: str = ")") -> Text:
    return Rope(opening, _listed([texts.bare(operand) for operand in operands]), closing), CALL


def _listed(parts: list[Rope], separator: str = ", ") -> Rope:
    return Rope(*[piece for part in parts for piece in (separator, part)][1:])


def format_number(value: float) -> str:
    """``9`` for 9.0, otherwise the shortest text that reads back as the same number."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def format_rows(rows: Any) -> str:
    """The entries of a constant, as nested lists of such numbers."""
    return format_number(rows) if isinstance(rows, float) else f"[{', '.join(map(format_rows, rows))}]"


def _arithmetic(node: Arithmetic | NumberArithmetic, texts: _Texts) -> Text:
    strength = _STRENGTH[node.operation]
    # Python groups '**' to the right and everything else to the left.
    left, right = (CALL, POWER) if node.operation == "**" else (strength, strength + 1)
    return Rope(texts.wrap(node.left, left), f" {node.operation} ", texts.wrap(node.right, right)), strength


def _negation(node: Negation, texts: _Texts) -> Text:
    # '-' in front of a number would read as a negative constant.
    if isinstance(node.operand, Number):
        return Rope("-(", texts.bare(node.operand), ")"), UNARY
    return Rope("-", texts.wrap(node.operand, UNARY)), UNARY


def _dims(node: Any) -> str:
    if len(node.dims) == len(node.operand.shape):
        return ""
    return str(node.dims[0]) if len(node.dims) == 1 else str(node.dims)


def _comparison(node: Comparison, texts: _Texts) -> Text:
    if node.margin:
        margin = f", margin={format_number(node.margin)})"
        return _called(f"{_FUNCTIONS[node.operation]}(", (node.left, node.right), texts, margin)
    return _compared(node, texts, node.operation)


def _compared(node: Any, texts: _Texts, sign: str) -> Text:
    left, right = (texts.wrap(side, COMPARISON + 1) for side in (node.left, node.right))
    return Rope(left, f" {sign} ", right), COMPARISON


def _class_in(node: ClassIn, texts: _Texts, sign: str = "==") -> Text:
    labels = [node.operand.symbol.class_label(index) for index in node.classes]
    if len(labels) == 1:
        return Rope(texts.wrap(node.operand, COMPARISON + 1), f" {sign} {labels[0]}"), COMPARISON
    return Rope(texts.wrap(node.operand, CALL), f".isin([{', '.join(labels)}])"), CALL


def _junction(node: Any, texts: _Texts) -> Text:
    strength = _STRENGTH[node.operation]
    operands = node.operands if isinstance(node, Junction) else (node.left, node.right)
    # Formulas never nest a chain directly in one of the same kind (a Level stands between); masks may, to the left.
    first = strength if isinstance(node, MaskJunction) else strength + 1
    # Python reads a & b >> c as a & (b >> c); people read (a & b) >> c. So implications always get parentheses.
    parts = [
        texts.wrap(operand, SHIFT + 1 if isinstance(operand, (Implication, Resting)) else strength + 1 if position else first)
        for position, operand in enumerate(operands)
    ]
    return _listed(parts, f" {node.operation} "), strength


def _complement(node: Any, texts: _Texts) -> Text:
    operand = node.operand
    if isinstance(operand, ClassEqual) or (isinstance(operand, ClassRelation) and operand.operation == "=="):
        return _compared(operand, texts, "!=")
    if isinstance(operand, ClassIn) and len(operand.classes) == 1:
        return _class_in(operand, texts, "!=")
    return Rope("~", texts.wrap(operand, UNARY)), UNARY


def _implication(node: Implication | Resting, texts: _Texts) -> Text:
    # Python groups '>>' to the left and logicians group '->' to the right, so nested ones always get parentheses.
    return Rope(texts.wrap(node.antecedent, SHIFT + 1), " >> ", texts.wrap(node.consequent, SHIFT + 1)), SHIFT


def _evidence(node: Evidence, texts: _Texts) -> Text:
    share = "" if node.share == 1.0 else f", {format_number(node.share)}"
    return _called("evidence(", (node.operand,), texts, f"{share})")


def _quantifier(node: Quantifier, texts: _Texts) -> Text:
    options = [Rope(_dims(node))] if _dims(node) else []
    if node.where is not None:
        options.append(Rope("where=", texts.bare(node.where)))
    if node.tied:
        options.append(Rope('duals="tied"'))
    return Rope(texts.wrap(node.operand, CALL), f".{node.operation}(", _listed(options), ")"), CALL


_RENDERERS: dict[type, Callable[[Any, _Texts], Text]] = {
    **dict.fromkeys(SYMBOLS, lambda node, _: (Rope(node.name), CALL)),
    **dict.fromkeys(INDEXED, lambda node, texts: (Rope(texts.wrap(node.operand, CALL), format_items(node.items)), CALL)),
    Number: lambda node, _: (Rope(format_number(node.value)), UNARY if node.value < 0 else CALL),
    Constant: lambda node, _: (Rope(format_rows(node.rows()) if node.name is None else node.name), CALL),
    **dict.fromkeys((Arithmetic, NumberArithmetic), _arithmetic),
    MatrixProduct: lambda node, texts: (Rope(texts.wrap(node.left, PRODUCT), " @ ", texts.wrap(node.right, UNARY)), PRODUCT),
    Negation: _negation,
    Absolute: lambda node, texts: _called("abs(", (node.operand,), texts),
    Reduction: lambda node, texts: (Rope(texts.wrap(node.operand, CALL), f".{node.operation}({_dims(node)})"), CALL),
    **dict.fromkeys((Application, NumberTable), lambda node, texts: _called(f"{node.name}(", node.operands, texts)),
    Probabilities: lambda node, texts: (Rope(texts.wrap(node.operand, CALL), ".probabilities"), CALL),
    Comparison: _comparison,
    ClassIn: _class_in,
    ClassEqual: lambda node, texts: _compared(node, texts, "=="),
    ClassRelation: lambda node, texts: _compared(node, texts, node.operation),
    **dict.fromkeys((Junction, MaskJunction), _junction),
    **dict.fromkeys((Complement, MaskComplement), _complement),
    **dict.fromkeys((Implication, Resting), _implication),
    connective.Premise: lambda node, texts: texts[id(node.operand)],
    Equivalence: lambda node, texts: _called("Xor(" if node.negated else "Iff(", (node.left, node.right), texts),
    Cardinality: lambda node, texts: _called("ExactlyOne(" if node.exact else f"AtMost({node.bound}, ", node.operands, texts),
    Quantifier: _quantifier,
    connective.Level: lambda node, texts: _called("level(", (node.operand,), texts),
    Evidence: _evidence,
}
