"""Symbols: the named holes of a rule, to which the network's outputs are bound."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from dualogic.errors import FormulaTypeError, SymbolError, suggest
from dualogic.formula.node import Node
from dualogic.formula.number import NumberExpression
from dualogic.formula.shape import Item, Shape, as_axes, as_int, check_name, declare_shape, shorten
from dualogic.formula.term import Term

if TYPE_CHECKING:
    from dualogic.formula.connective import Formula

INPUTS = ("probs", "logits")


def check_input(kind: str, name: str) -> None:
    """Refuse anything but ``"probs"`` and ``"logits"``."""
    if kind not in INPUTS:
        raise SymbolError(f"input of {name!r} must be 'probs' or 'logits'; got {kind!r}")


class Variable(Term):
    """A real-valued symbol; made by :func:`var`."""

    name: str
    sizes: Shape


class ClassExpression(NumberExpression):
    """Something that has a class: a categorical symbol, or an indexed one.

    ``f == 6``, ``f != 9``, ``f.isin([4, 6])`` and ``f == g`` give formulas. A class without names also counts as the number that
    is its index: ``f + g <= 9``, ``f < g``.
    """

    @property
    def values(self) -> Sequence[int]:  # type: ignore[override]
        return range(self.symbol.size)

    @property
    def symbol(self) -> Categorical:
        """The categorical below any indexing."""
        return self if isinstance(self, Categorical) else cast("ClassIndex", self).operand.symbol

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        from dualogic.formula.atom import class_equals

        return class_equals(self, other)

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        from dualogic.formula.join import Not

        return Not(self == other)

    __hash__ = Node.__hash__

    def isin(self, classes: Sequence[Any]) -> Formula:
        """The class is one of ``classes`` (indices or names).

        Example:
            >>> import dualogic as dl
            >>> dl.categorical("f", 10).isin([6, 4])
            f.isin([4, 6])
        """
        from dualogic.formula.atom import class_in

        return class_in(self, classes)

    @property
    def probabilities(self) -> Term:
        """The class probabilities as a real-valued term with one more axis, of the number of classes."""
        return Probabilities(self)

    def __getitem__(self, key: Any) -> ClassExpression:
        return self._index(ClassIndex, key)  # type: ignore[no-any-return]

    _no_loop = "{0} cannot be looped over; index it instead"
    _no_truth = "{0} has no truth value; compare it with a class, as in {0} == 0"
    _no_formula = (
        "'&', '|' and '>>' join formulas, but {} is a class; comparisons bind less tightly than these in Python, so put each one "
        "in parentheses, as in (f == 1) >> (g == 2)"
    )

    def __invert__(self) -> Formula:
        raise FormulaTypeError(f"{self} is a class, not a formula; write {self} != ... for 'is not', as in {self} != 0")


class Categorical(ClassExpression):
    """A class with ``size`` values; made by :func:`categorical`."""

    name: str
    size: int
    sizes: Shape
    classes: tuple[str, ...] | None
    input: str

    def class_index(self, value: Any) -> int:
        """The position of a class given by index or name."""
        if isinstance(value, str):
            if self.classes is None:
                raise SymbolError(
                    f"{self.name!r} has no class names, so it cannot be compared with {value!r}; declare them with "
                    f"dl.categorical({self.name!r}, {self.size}, classes=[...])"
                )
            if value not in self.classes:
                known = shorten(", ".join(self.classes)) + suggest(value, self.classes)
                raise SymbolError(f"{self.name!r} has no class {value!r}; its classes are {known}")
            return self.classes.index(value)
        number = as_int(value)
        if number is None:
            raise FormulaTypeError(f"{self.name!r} must be compared with a class index or name; got {value!r}")
        if not 0 <= number < self.size:
            raise SymbolError(f"class {number} is out of range for {self.name!r}, whose classes are 0 to {self.size - 1}")
        return number

    def class_label(self, index: int) -> str:
        """How a class prints: its name in quotes, or its index."""
        return str(index) if self.classes is None else json.dumps(self.classes[index], ensure_ascii=False)


class ClassIndex(ClassExpression):
    """``operand[items]`` of a categorical with axes."""

    operand: ClassExpression
    items: tuple[Item, ...]


class Probabilities(Term):
    """The class probabilities of a categorical as a term; its last axis is the class."""

    operand: ClassExpression

    def __post_init__(self) -> None:
        self._derive("shape", (*self.operand.shape, self.operand.symbol.size))


class MaskExpression(Node):
    """Which entries of an axis exist: a mask, an indexed one, or several joined by ``& | ~``."""

    _no_loop = "the mask {0} cannot be looped over"
    _no_truth = "the mask {0} has no truth value; pass it as where= to .all() or .any()"

    def __getitem__(self, key: Any) -> MaskExpression:
        return self._index(MaskIndex, key)  # type: ignore[no-any-return]

    def __and__(self, other: Any) -> MaskExpression:
        return MaskJunction("&", self, as_mask(other))

    def __or__(self, other: Any) -> MaskExpression:
        return MaskJunction("|", self, as_mask(other))

    def __invert__(self) -> MaskExpression:
        return MaskComplement(self)


class Mask(MaskExpression):
    """A symbol bound to a bool tensor; made by :func:`mask`."""

    name: str
    sizes: Shape


class MaskIndex(MaskExpression):
    """``operand[items]``."""

    operand: MaskExpression
    items: tuple[Item, ...]


class MaskJunction(MaskExpression):
    """``left & right`` or ``left | right``."""

    operation: str
    left: MaskExpression
    right: MaskExpression


class MaskComplement(MaskExpression):
    """``~operand``."""

    operand: MaskExpression


def as_mask(value: Any) -> MaskExpression:
    """Check that ``value`` is a mask."""
    if isinstance(value, MaskExpression):
        return value
    raise FormulaTypeError(f"expected a mask made by dl.mask(name, *shape); got {value!r} of type {type(value).__name__}")


def var(name: str, *shape: Any) -> Term:
    """Declare a real-valued symbol.

    Args:
        name: the keyword under which its tensor is bound.
        shape: the axes after the batch axis, as sizes or ``dl.axis`` objects; none for one number per sample.

    Example:
        >>> import dualogic as dl, torch
        >>> p = dl.var("p", 3)
        >>> (p.sum() <= 1).cost(p=torch.tensor([[0.5, 0.5, 0.25]]))
        tensor([0.2500])
    """
    return Variable(check_name(name, "variable"), declare_shape(shape, name))


def categorical(
    name: str, k: int, *, shape: Sequence[Any] | int = (), classes: Sequence[str] | None = None, input: str = "probs"
) -> Categorical:
    """Declare a class.

    Args:
        name: the keyword under which its tensor, ``(batch, *shape, k)``, is bound.
        k: the number of classes.
        shape: axes before the class axis, for several classes per sample.
        classes: names of the classes, by which they may be compared and are printed.
        input: ``"probs"`` or ``"logits"``; with logits, logarithmic costs keep their precision at the extremes.

    Example:
        >>> import dualogic as dl
        >>> f, g = dl.categorical("f", 10), dl.categorical("g", 10)
        >>> (g == 9) >> (f == 6)
        (g == 9) >> (f == 6)
    """
    name = check_name(name, "categorical")
    check_input(input, name)
    size = as_int(k)
    if size is None or size < 2:
        given: Any = k  # names of classes are often given in place of their number
        remedy = f"; write dl.categorical({name!r}, {len(given)}, classes={given!r})" if isinstance(given, (list, tuple)) else ""
        raise SymbolError(f"categorical {name!r} needs at least two classes; got k={k!r}{remedy}")
    names = None
    if classes is not None:
        if isinstance(classes, (set, frozenset, Mapping)):
            raise SymbolError(f"classes of {name!r} must be a list, in the network's order; got a {type(classes).__name__}")
        names = tuple(classes) if isinstance(classes, Iterable) and not isinstance(classes, str) else (classes,)
        if len(names) != size or len(set(names)) != size or not all(isinstance(label, str) and label for label in names):
            raise SymbolError(f"classes of {name!r} must be {size} different non-empty names; got {shorten(repr(list(names)))}")
        names = tuple(map(str.__str__, names))  # of numpy, or of an enumeration
    return Categorical(name, size, declare_shape(as_axes(shape), name), names, input)


def mask(name: str, *shape: Any) -> Mask:
    """Declare which entries of a ragged axis exist; bound to a bool tensor ``(batch, *shape)``.

    Example:
        >>> import dualogic as dl, torch
        >>> n = dl.axis("n", max=4)
        >>> x, valid = dl.var("x", n), dl.mask("valid", n)
        >>> rule = (x <= 1).all(where=valid)
        >>> rule.satisfied(x=torch.tensor([[0.0, 5.0]]), valid=torch.tensor([[True, False]]))
        tensor([True])
    """
    return Mask(check_name(name, "mask"), declare_shape(shape, name))
