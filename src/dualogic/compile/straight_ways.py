"""Operations that were recorded, and how Python makes each soonest; see :mod:`dualogic.compile.straight`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

NUMBERS = {"add", "sub", "mul", "div", "gt", "ge", "lt", "le", "masked_fill"}
"""They take a tensor of no dimensions in place of a number, and then have nothing to convert."""
Tensors = Sequence[Tensor]
Found = Sequence["Tensor | None"]
aten = torch.ops.aten
PAIRS = {"sum": aten.add.Tensor, "amin": aten.minimum.default, "amax": aten.maximum.default}
"""What takes their place where there are two numbers."""


def storage_of(tensor: Tensor) -> int:
    """A number for the memory that a tensor lies in."""
    return int(tensor.untyped_storage()._cdata)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Those of an argument."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)


class Call(NamedTuple):
    """An operation that was made."""

    function: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    results: list[Tensor]
    written: int | None
    """The storage of the tensor that it changes in place."""

    @property
    def name(self) -> str:
        return str(self.function.overloadpacket.__name__)

    @property
    def is_view(self) -> bool:
        """Whether it makes no memory of its own."""
        return self.written is not None or {*map(storage_of, self.results)} <= {storage_of(each) for each in self.read()}

    def read(self) -> Iterator[Tensor]:
        yield from tensors_in(self.arguments)
        yield from tensors_in(tuple(self.options.values()))


class Way(NamedTuple):
    """How Python makes an operation soonest."""

    function: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    into: bool
    """Whether it can write its result into a given tensor."""


class Ways:
    """Finds them.

    Attributes:
        numbers: those that operations read, as tensors.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, Tensor] = {}

    def find(self, call: Call) -> Way:
        """For one operation; what it gives is compared, to the bit."""
        name, arguments, options = call.name, call.arguments, call.options
        if call.written is not None:
            expected = call.function(arguments[0].clone(), *arguments[1:], **options)
            if name == "pow_" and _is_square(arguments):
                name, arguments = "mul_", (arguments[0], arguments[0])
            changed = self._convert(name[:-1], arguments)
            # The same kernels again and again are made sooner than ones of their own.
            again = Way(getattr(torch, name[:-1], None), changed, {**options, "out": arguments[0]}, False)
            if again.function is not None and _agrees(expected, again, arguments[0].clone()):
                return again
            return Way(getattr(Tensor, name, call.function), changed, options, False)
        expected = call.function(*arguments, **options)
        if name == "rsub" and len(arguments) == 2 and not options:
            name, arguments = "sub", arguments[::-1]
        elif name == "pow" and _is_square(arguments):
            name, arguments = "mul", (arguments[0], arguments[0])
        elif name == "_to_copy":
            name, arguments, options = "clone", arguments[:1], {}
        elif name in ("_softmax", "_log_softmax"):
            name, arguments, options = name[1:], arguments[:2], {}
        special = name.startswith("special_")
        quick: Any = getattr(
            torch.special if special else torch, name.removeprefix("special_"), getattr(torch._C._nn, name, None)
        )
        for changed in (self._convert(name, arguments), arguments) if quick is not None else ():
            way = Way(quick, changed, options, False)
            if _agrees(expected, way):
                into = _agrees(expected, way, torch.empty_like(expected)) if isinstance(expected, Tensor) else False
                return way._replace(into=into)
        return Way(getattr(call.function, "_op", call.function), call.arguments, call.options, False)

    def _convert(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Numbers as tensors, where an operation takes either."""
        like = next((each for each in arguments if isinstance(each, Tensor)), None)
        if name not in NUMBERS or like is None:
            return arguments
        changed = []
        for each in arguments:
            if type(each) is int or (type(each) is float and like.is_floating_point()):
                key = (float(each), like.dtype)
                each = self.numbers.setdefault(key, torch.tensor(float(each), dtype=like.dtype))
            changed.append(each)
        return tuple(changed)


def shorten(call: Call) -> Call:
    """The same by an operation that is sooner done: sums and extremes of two."""
    name, arguments = call.name, call.arguments
    if name not in PAIRS or len(arguments) < 2 or call.options or [arguments[0].shape[dim] for dim in arguments[1]] != [2]:
        return call
    (dim,), keep = arguments[1], arguments[2:] == (True,)
    sides = [arguments[0].narrow(dim, side, 1) if keep else arguments[0].select(dim, side) for side in (0, 1)]
    sooner = Call(PAIRS[name], tuple(sides), {}, call.results, None)
    return sooner if _is_same(call.function(*arguments), sooner.function(*sides)) else call


def _is_square(arguments: tuple[Any, ...]) -> bool:
    """Whether a power's exponent is the number 2; it may be a tensor, which compares number by number."""
    return not isinstance(arguments[1], Tensor) and arguments[1] == 2


def _agrees(expected: Any, way: Way, into: Tensor | None = None) -> bool:
    """Whether a way gives the same tensors as the operation, to the bit."""
    try:
        found = way.function(*way.arguments, **{**way.options, **({} if into is None else {"out": into})})
    except (TypeError, RuntimeError, ValueError, IndexError):
        return False
    pairs = list(zip(tensors_in(expected), tensors_in(found)))
    return isinstance(found, Tensor) == isinstance(expected, Tensor) and all(_is_same(*pair) for pair in pairs)


def _is_same(one: Tensor, other: Tensor) -> bool:
    alike = (one.shape, one.stride(), one.dtype) == (other.shape, other.stride(), other.dtype)
    return alike and bool(((one == other) | (one.isnan() & other.isnan())).all())
