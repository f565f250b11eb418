"""A walk through a tree with small tensors, recorded as the operations that it makes, with those of its backward pass.

They are made again, on other tensors of the same shapes, by functions without a branch: the same bits, without the walk. What no
caller sees lies in buffers that are used again, so that views of it are made once; numbers are tensors, which no operation needs
to convert; what comes out the same each time is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from dualogic.compile.straight_ways import Call, Found, Tensors, storage_of
from dualogic.compile.straight_writer import Writer

Later = Callable[[Tensor], Found]
FACTS = {"__get__", "__len__", "dim", "size", "stride", "numel", "is_floating_point", "is_complex", "element_size"}
FACTS |= {"promote_types", "_set_grad_enabled"}
"""What is known of a tensor without its values, and so the same at each run."""
UNREPEATABLE = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.nondeterministic_seeded}
"""What depends on values, or on chance."""


class Unrecordable(Exception):  # noqa: N818
    """A walk that reads a tensor's values, or changes what it was not given."""


class Straight:
    """A recorded walk.

    Args:
        walk: from tensors to tensors, and to a function that continues with one more, of the shape of the first of these.
        given: what it is called with; it meets copies of them.
        fixed: other tensors that it may read, which never change.

    Attributes:
        first: from a list like ``given`` to the walk's tensors and to what ``second`` needs.
        second: from that and the one more to what the continuation gives.
        late: the places in ``given`` of what ``second`` still reads.
        continues: whether ``second`` gives anything.

    Example:
        >>> import torch
        >>> line = Straight(lambda x: ([x.exp()], lambda slope: [slope * x.exp()]), [torch.zeros(2)], [])
        >>> (found,), kept = line.first([torch.ones(2)])
        >>> found, line.second(kept, torch.ones(2))
        (tensor([2.7183, 2.7183]), (tensor([2.7183, 2.7183]),))
    """

    def __init__(self, walk: Callable[..., tuple[Found, Later]], given: Tensors, fixed: Iterable[Tensor]) -> None:
        tape = _Tape()
        inputs = [_copy(tensor) for tensor in given]
        tape.know(inputs)
        tape.constants.update(tape.know(fixed))
        with _Reader(), tape:
            found, later = walk(*inputs)
        tape.protected = set(tape.storages)
        early, tape.calls = tape.calls, []
        assert found[0] is not None
        one_more = torch.ones_like(found[0]).detach()
        tape.know([one_more])
        with _Reader(), tape:
            slopes = later(one_more)
        with torch.no_grad():
            writer = Writer(early, tape.calls, tape.constants, [*inputs, one_more], found, slopes)
            self.source = writer.write()
        self.late, self.continues = writer.late, any(slope is not None for slope in slopes)
        exec(compile(self.source, "<recorded>", "exec"), writer.held)  # noqa: S102
        lock = threading.Lock()  # the buffers are of one run at a time
        first, second = writer.held["first"], writer.held["second"]
        sizes, views = writer.rented, [*writer.views]
        free: list[list[Tensor]] = []

        def rent() -> list[Tensor]:
            flats = {
                storage: torch.empty(sizes[storage] // dtype.itemsize, dtype=dtype, device="cpu")
                for storage, _, _, _, dtype in views
            }
            return [flats[storage].as_strided(shape, stride, offset) for storage, offset, shape, stride, _ in views]

        def run_first(given: Tensors) -> tuple[tuple[Tensor, ...], tuple[Any, _Room]]:
            with lock:
                room = _Room(free.pop() if free else rent(), free)
                found, kept = first(given, room.views)
                return found, (kept, room)

        def run_second(kept: tuple[Any, _Room], one_more: Tensor) -> tuple[Tensor | None, ...]:
            with lock:
                return second(kept[0], one_more, kept[1].views)  # type: ignore[no-any-return]

        self.first, self.second = run_first, run_second


def _copy(tensor: Tensor) -> Tensor:
    """A tensor with the same strides in memory of its own, however its numbers overlap."""
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
    flat = tensor.detach().as_strided((span,), (1,), tensor.storage_offset()).clone()
    return flat.as_strided(tensor.shape, tensor.stride())


class _Room:
    """Memory that a run keeps for its backward pass; it is free for another once nobody can ask for that any more."""

    def __init__(self, views: list[Tensor], free: list[list[Tensor]]) -> None:
        self.views, self.free = views, free

    def __del__(self) -> None:
        if len(self.free) < 2:  # a loop has no more at a time
            self.free.append(self.views)


class _Reader(TorchFunctionMode):
    """Refuses what reads a tensor without an operation that could be seen."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, func.__name__
        if name == "__setitem__" or "out" in kwargs:
            raise Unrecordable(f"{name} writes into a tensor")
        result = func(*args, **kwargs)
        several = result if isinstance(result, (tuple, list)) else (result,)
        if name not in FACTS and not all(each is None or isinstance(each, Tensor) for each in several):
            raise Unrecordable(f"{name} reads a tensor")
        return result


class _Tape(TorchDispatchMode):
    """Writes down the operations, those of autograd's too."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing here is compiled, and a compiler that would be loaded to skip it takes a second

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[Call] = []
        self.storages: dict[int, Tensor] = {}  # held, so that no two have the same number
        self.protected: set[int] = set()
        self.constants: set[int] = set()

    def know(self, tensors: Iterable[Tensor]) -> set[int]:
        """What is there before anything is recorded, and may not be changed."""
        found = {storage_of(tensor): tensor for tensor in tensors}
        self.storages.update(found)
        self.protected.update(found)
        return set(found)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = Call(func, args, kwargs or {}, [], None)
        if UNREPEATABLE.intersection(func.tags):
            raise Unrecordable(f"{call.name} reads a tensor")
        if call.name == "lift_fresh":  # what Python made
            self.constants.update(self.know(args))
        elif any(storage_of(tensor) not in self.storages for tensor in call.read()):
            raise Unrecordable("a tensor that comes from elsewhere")
        written = None
        if func._schema.is_mutable:
            written = storage_of(args[0])
            if call.name[-1] != "_" or written in self.protected:
                raise Unrecordable(f"{call.name} writes into a tensor")
        result = func(*args, **call.options)
        if call.name in FACTS:
            return result
        found = list(result) if isinstance(result, (list, tuple)) else [result]
        if not all(isinstance(each, Tensor) for each in found):
            raise Unrecordable(f"{call.name} reads a tensor")
        for each in found:
            self.storages.setdefault(storage_of(each), each)
        self.calls.append(Call(func, args, call.options, found, written))
        return result
