"""A walk through a tree with small tensors, recorded as the calls of torch's functions that it makes.

They are made again, on other tensors of the same shapes, by a function without a branch: the same bits, without the walk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

Later = Callable[[Tensor], Sequence["Tensor | None"]]
FACTS = {"__get__", "__len__", "dim", "size", "stride", "numel", "is_floating_point", "element_size", "_set_grad_enabled"}
"""What is known of a tensor without its values, and so the same at each run."""


class Unrecordable(Exception):  # noqa: N818
    """A walk that reads a tensor's values, or changes what it was not given."""


class Straight:
    """A recorded walk.

    Args:
        walk: from tensors to tensors, and to a function that continues with one more, of the shape of the first of these.
        given: what it is called with, without a gradient.
        fixed: other tensors that it may read, which never change.

    Attributes:
        first: from a list like ``given`` to the walk's tensors and to what ``second`` needs.
        second: from that and the one more to what the continuation gives.

    Example:
        >>> import torch
        >>> line = Straight(lambda x: ([x.exp()], lambda slope: [slope * x.exp()]), [torch.zeros(2)], [])
        >>> (found,), kept = line.first([torch.ones(2)])
        >>> found, line.second(kept, torch.ones(2))
        (tensor([2.7183, 2.7183]), (tensor([2.7183, 2.7183]),))
    """

    def __init__(
        self, walk: Callable[..., tuple[Sequence[Tensor], Later]], given: Sequence[Tensor], fixed: Iterable[Tensor]
    ) -> None:
        recorder = _Recorder()
        for place, tensor in enumerate(given):
            recorder.name(tensor, f"x{place}")
        for tensor in fixed:
            recorder.name(tensor, recorder.hold(tensor))
        recorder.protect()
        with recorder:
            found, later = walk(*given)
        recorder.protect()
        one_more = torch.ones_like(found[0])
        recorder.name(one_more, "one_more")
        early, recorder.calls = recorder.calls, []
        with recorder:
            slopes = later(one_more)
        recorder.arguments = set()
        results, late = [recorder.write(tensor) for tensor in found], [recorder.write(slope) for slope in slopes]
        own = {name for call in recorder.calls for name in call.results}
        kept = sorted(filter(_is_local, {name for call in recorder.calls for name in call.arguments}.union(late) - own))
        lines = ["def first(given):", *(f"x{place} = given[{place}]" for place in range(len(given)))]
        lines += [*_write(early, {*results, *kept}), f"return ({_join(results)}), ({_join(kept)})"]
        lines += ["def second(kept, one_more):", f"({_join(kept)}) = kept"]
        lines += [*_write(recorder.calls, set(late)), f"return ({_join(late)})"]
        self.source = "\n".join(line if line.startswith("def") else f"    {line}" for line in lines)
        exec(compile(self.source, "<recorded>", "exec"), recorder.held)  # noqa: S102
        self.first: Callable[[Sequence[Tensor]], tuple[tuple[Tensor, ...], tuple[Tensor, ...]]] = recorder.held["first"]
        self.second: Callable[[tuple[Tensor, ...], Tensor], tuple[Tensor | None, ...]] = recorder.held["second"]


class _Call(NamedTuple):
    results: list[str]
    line: str
    arguments: set[str]


class _Recorder(TorchFunctionMode):
    """Writes down the calls of torch's functions, each as a line of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[int, str] = {}
        self.alive: list[Any] = []  # so that no two things have the same id
        self.held: dict[str, Any] = {}
        self.holders: dict[int | str, str] = {}
        self.views: dict[str, list[str]] = {}
        self.calls: list[_Call] = []
        self.arguments: set[str] = set()
        self.protected: set[int] = set()

    def protect(self) -> None:
        """From now on, what is there may not be changed in place."""
        self.protected |= {each.untyped_storage().data_ptr() for each in self.alive if isinstance(each, Tensor)}

    def name(self, tensor: Tensor, name: str) -> str:
        self.alive.append(tensor)
        return self.names.setdefault(id(tensor), name)

    def hold(self, value: Any) -> str:
        """The name of something that is the same at each run."""
        key = repr(value) if isinstance(value, slice) else id(value)
        if key not in self.holders:
            self.alive.append(value)
            self.holders[key] = f"{getattr(value, '__name__', 'held').strip('_')}_{len(self.holders)}"
            self.held[self.holders[key]] = value
        return self.holders[key]

    def write(self, value: Any) -> str:
        """An argument as Python."""
        if isinstance(value, Tensor):
            if id(value) not in self.names:
                raise Unrecordable("a tensor that comes from elsewhere")
            self.arguments.add(self.names[id(value)])
            return self.names[id(value)]
        if isinstance(value, (list, tuple)):
            inner = _join(map(self.write, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner})"
        plain = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))
        return repr(value) if plain else self.hold(value)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.__name__
        in_place = name[0] != "_" and name[-1] == "_"
        if name == "__setitem__" or "out" in kwargs or (in_place and args[0].untyped_storage().data_ptr() in self.protected):
            raise Unrecordable(f"{name} writes into a tensor")
        result = func(*args, **kwargs)
        several = result if isinstance(result, (tuple, list)) else (result,)
        if not all(isinstance(each, Tensor) for each in several) or isinstance(result, torch.Size):
            if name not in FACTS:
                raise Unrecordable(f"{name} reads a tensor")
            return result
        if in_place or any(id(each) not in self.names for each in several):
            self.arguments = set()
            given = [*map(self.write, args), *(f"{key}={self.write(value)}" for key, value in kwargs.items())]
            text = f"{self.hold(func)}({', '.join(given)})"
            if in_place:
                self.calls.append(_Call([], text, self.arguments))
            elif name == "detach" and _is_local(given[0]) and given[0][0] == "v":
                self.name(result, given[0])  # nothing here has a gradient
            elif text in self.views:
                for each, known in zip(several, self.views[text]):
                    self.name(each, known)
            else:
                found = [self.name(each, f"v{len(self.alive)}") for each in several]
                target = found[0] if several is not result else _join(found)
                self.calls.append(_Call(found, f"{target} = {text}", self.arguments))
                if all(each._is_view() for each in several):
                    self.views[text] = found
        return result


def _join(names: Iterable[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _is_local(name: str) -> bool:
    return name[1:].isdigit()


def _write(calls: Sequence[_Call], wanted: set[str]) -> list[str]:
    """Those lines whose results anything needs, and where each is needed no more."""
    lines: list[str] = []
    needed = set(wanted)
    for call in reversed(calls):
        if call.results and not needed.intersection(call.results):
            continue
        over = sorted(name for name in call.arguments.union(call.results) - needed if _is_local(name))
        lines += [f"del {', '.join(over)}"] if over else []
        lines.append(call.line)
        needed |= call.arguments
    return lines[::-1]
