"""Terms made by a user's own function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualogic.errors import FormulaTypeError, ShapeError, SymbolError
from dualogic.formula.number import NumberExpression, NumberTable, as_number
from dualogic.formula.shape import Shape, as_axes, check_name, declare_shape, max_shape
from dualogic.formula.term import Term, as_term

PRINTED_FUNCTIONS = frozenset(
    {"abs", "And", "AtMost", "ExactlyOne", "Iff", "Implies", "Not", "Or", "Xor"}
    | {"eq", "evidence", "ge", "gt", "le", "level", "lt", "ne"}
)
"""What the text form calls already; a user's function of that name would read as something else."""


class Application(Term):
    """``function(*operands)`` for a differentiable function that dualogic does not look into."""

    name: str
    function: Callable[..., Any]
    operands: tuple[Term, ...]
    sizes: Shape


def apply(function: Callable[..., Any], *terms: Any, name: str | None = None, shape: Any = None) -> Any:
    """Use any differentiable function of bound tensors as a term.

    The function gets one tensor for each term, of shape ``(batch, *term.shape)``, and returns one of shape
    ``(batch, *shape)``. It is opaque: rules print it by its name.

    Of classes it makes a table: the function gets integer tensors of one shape and returns whole numbers of that shape, and is
    asked once for every combination of values.

    Args:
        function: called with tensors; must treat every sample by itself and keep the batch axis first.
        terms: its arguments.
        name: how it prints; the function's own name by default.
        shape: the axes of the result; found by a call with zeros by default. A table has those of its classes.

    Example:
        >>> import dualogic as dl, torch
        >>> dl.apply(torch.sigmoid, dl.var("z", 3), name="sigmoid").max() <= 0.5
        sigmoid(z).max() <= 0.5
        >>> a, b, s = (dl.categorical(name, 10) for name in "abs")
        >>> dl.apply(lambda n: n % 10, a + b, name="last_digit") == s
        last_digit(a + b) == s
    """
    if not callable(function):
        raise FormulaTypeError(f"dl.apply needs a function first; got {function!r}")
    label = name if name is not None else getattr(function, "__name__", None)
    if label is None or label == "<lambda>":
        raise SymbolError(f"dl.apply needs a name for {function!r}, which has none of its own: dl.apply(..., name=...)")
    label = check_name(label, "function")
    if label in PRINTED_FUNCTIONS:
        raise SymbolError(f"a function cannot be called {label!r} in a rule, which has a meaning already; give another name=...")
    try:
        hash(function)
    except TypeError as error:
        raise FormulaTypeError(
            f"dl.apply needs a hashable function, because equal rules must be recognised; got {function!r}: wrap it in a plain "
            f"function, or make its class hashable (eq=False for a dataclass)"
        ) from error
    if not terms:
        raise FormulaTypeError(f"dl.apply({label}) needs at least one term")
    if any(isinstance(term, NumberExpression) for term in terms):
        return NumberTable(label, function, tuple(map(as_number, terms)))
    operands = tuple(map(as_term, terms))
    sizes = _probe(function, label, operands) if shape is None else declare_shape(as_axes(shape), label)
    return Application(label, function, operands, sizes)


def _probe(function: Callable[..., Any], label: str, operands: tuple[Term, ...]) -> Shape:
    """The axes of a function's result, from a call with zeros for a batch of 2."""
    import torch

    with torch.no_grad():
        try:
            result = function(*(torch.zeros(2, *max_shape(operand.shape)) for operand in operands))
        except Exception as error:
            raise ShapeError(
                f"the axes of {label}(...) could not be found by a call with zeros, which failed ({type(error).__name__}: "
                f"{error}); declare them with dl.apply(..., shape=(...))"
            ) from error
    if not isinstance(result, torch.Tensor) or result.shape[:1] != (2,):
        raise ShapeError(
            f"the function {label} must return a tensor whose first axis is the batch; for a batch of 2 it returned "
            f"{tuple(result.shape) if isinstance(result, torch.Tensor) else result!r}"
        )
    found = tuple(result.shape[1:])
    # A result that kept the arguments' axes keeps their ragged sizes too.
    return next((operand.shape for operand in operands if max_shape(operand.shape) == found), found)
