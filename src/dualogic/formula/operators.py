"""The operators that real-valued terms and whole numbers made of classes share: arithmetic, and the six comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from dualogic.errors import FormulaTypeError
from dualogic.formula.node import Node

if TYPE_CHECKING:
    from dualogic.formula.connective import Formula

Value = TypeVar("Value", bound=Node)


class Operators(Node, Generic[Value]):
    """``+ - * **`` on either side of something else, and comparisons with it; a subclass says what is made of them."""

    def _calculate(self, operation: str, left: Any, right: Any) -> Value:
        raise NotImplementedError

    def _compare(self, operation: str, other: Any) -> Formula:
        raise NotImplementedError

    _no_formula: ClassVar[str]
    """What to say of one between connectives."""

    def _refuse_logic(self, other: Any = None) -> Formula:
        raise FormulaTypeError(self._no_formula.format(self.brief()))

    __and__ = __rand__ = __or__ = __ror__ = __rshift__ = __rrshift__ = _refuse_logic

    def __invert__(self) -> Formula:
        return self._refuse_logic()

    def __add__(self, other: Any) -> Value:
        return self._calculate("+", self, other)

    def __radd__(self, other: Any) -> Value:
        return self._calculate("+", other, self)

    def __sub__(self, other: Any) -> Value:
        return self._calculate("-", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self._calculate("-", other, self)

    def __mul__(self, other: Any) -> Value:
        return self._calculate("*", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self._calculate("*", other, self)

    def __pow__(self, other: Any) -> Value:
        return self._calculate("**", self, other)

    def __rpow__(self, other: Any) -> Value:
        return self._calculate("**", other, self)

    def __le__(self, other: Any) -> Formula:
        return self._compare("<=", other)

    def __lt__(self, other: Any) -> Formula:
        return self._compare("<", other)

    def __ge__(self, other: Any) -> Formula:
        return self._compare(">=", other)

    def __gt__(self, other: Any) -> Formula:
        return self._compare(">", other)

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return self._compare("!=", other)

    __hash__ = Node.__hash__
