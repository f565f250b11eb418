"""Makes two functions without a branch of recorded operations; see :mod:`dualogic.compile.straight`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.straight_ways import Call, Found, Tensors, Way, Ways, shorten, storage_of, tensors_in

LIKE = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
"""They read nothing of the tensor that they are given but its shape."""
COPIES = {"clone", "_to_copy"}
PARTS = {"select_backward": torch.ops.aten.select.int, "slice_backward": torch.ops.aten.slice.Tensor}
"""They put a tensor into one of zeros; with what finds it there."""
JOINS = {"cat", "stack"}
EXACT = {*JOINS, "add", "sub", "rsub", "mul", "div", "neg", "abs", "sgn", "lt", "le", "gt", "ge", "eq"}
"""They give the same bits however their numbers lie in memory."""
MANY = 2
"""A tensor of which there are more views than this is worth a copy in a buffer."""
FEW = 1024
"""A tensor of no more numbers than this is sooner copied than a view of it is made."""
MOST_KEPT = 2**23
"""So many bytes of buffers are kept; where a walk needs more it makes all of them anew each time."""


class Writer:
    """Chooses what is done, where its results lie, and how it is written.

    Args:
        early: the operations of the first function.
        late: those of the second.
        constants: storages that never change.
        inputs: what the first is given, and then the one more of the second.
        found: what the first returns.
        slopes: what the second returns.

    Attributes:
        held: what the functions name, to be their globals.
        rented: storages that a run keeps for the second function and nobody else sees, with their bytes.
        views: of these, which both functions are given.
        late: the places in ``inputs`` of what the second still reads.
    """

    def __init__(
        self, early: list[Call], late: list[Call], constants: set[int], inputs: Tensors, found: Found, slopes: Found
    ) -> None:
        self.held: dict[str, Any]
        self.holders: dict[Any, str]
        self.names: dict[Any, str]
        self.left: int
        self.constants, self.inputs, self.found, self.slopes = constants, inputs, found, slopes
        self.same: dict[int, int] = {}
        self.laid: dict[Any, Tensor] = {}
        self.padded: set[int] = set()
        self.changed = {call.written for call in (*early, *late)}
        returned = {storage_of(each) for each in tensors_in([*found, *slopes])}
        early, late = self._simplify(early, returned), self._simplify(late, returned)
        late, needed = self._keep_needed(late, self._owners(slopes))
        made = {self._own(each) for call in late if not call.is_view for each in call.results}
        self.kept = sorted(needed - made - self.constants - {storage_of(inputs[-1])})
        self.late = [place for place, tensor in enumerate(inputs) if self._own(tensor) in self.kept]
        early, _ = self._keep_needed(early, self._owners(found).union(self.kept))
        self.lasting = self._owners([*found, *slopes]).union(self.kept)
        ways = Ways()
        self.parts = [[(call, ways.find(call)) for call in calls] for calls in (early, late)]
        self.constants.update(map(storage_of, ways.numbers.values()))
        for calls in self.parts:
            self._lay(calls, self._owners([*found, *slopes]))
        views: dict[int, set[Any]] = {}
        for call in early:
            for each in call.read():
                views.setdefault(self._own(each), set()).add(self._key(each))
        few = {
            self._own(each)
            for each in inputs[:-1]
            if each.numel() <= FEW and views.get(self._own(each), set()) - {self._key(each)}
        }
        expanded = {self._own(each) for each in inputs if 0 in each.stride()}  # nothing can be written there
        self.busy = few.union(storage for storage, keys in views.items() if len(keys) > MANY) - self.constants - expanded
        inside = set(self.kept) - self._owners([*found, *slopes])
        firsts = [call.results[0] for call, way in self.parts[0] if way.into and self._own(call.results[0]) in inside]
        self.rented = {self._own(each): self._at(each).untyped_storage().nbytes() for each in firsts}

    def write(self) -> str:
        """The functions ``first`` and ``second``."""
        for most in (MOST_KEPT, 0):
            self.rented, self.laid, self.padded = (self.rented, self.laid, self.padded) if most else ({}, {}, set())
            self.left, self.names, self.fresh = most - sum(self.rented.values()), {}, map("v{}".format, itertools.count(1))
            self.held, self.holders = {"as_strided": torch.as_strided}, {}
            self.views: dict[Any, str] = {}
            names = [self._begin(tensor, f"x{place}") for place, tensor in enumerate(self.inputs)]
            early = [f"({_join(names[:-1])}) = given", *self._lines(self.parts[0], self.inputs[:-1])]
            results = [self._write(tensor, early) for tensor in self.found]
            early.append(f"return ({_join(results)}), ({_join(self._kept())})")
            self.names = {key: name for key, name in self.names.items() if name in self._kept() or name == names[-1]}
            lines = [f"({_join(self._kept())}) = kept", *self._lines(self.parts[1], [])]
            for made in [each for call, _ in self.parts[1] for each in call.results]:
                self._divide(made, lines)
            slopes = [self._write(slope, lines) for slope in self.slopes]
            lines.append(f"return ({_join(slopes)})")
            unpack = f"({_join(list(self.views.values()))}) = room"
            lines = ["def first(given, room):", unpack, *early, f"def second(kept, {names[-1]}, room):", unpack, *lines]
            if self.left >= 0:
                break
        return "\n".join(line if line.startswith("def") else f"    {line}" for line in lines)

    def _lay(self, calls: list[tuple[Call, Way]], seen: set[int]) -> None:
        """Find what need not be joined, because each piece can be written where it is to lie."""
        uses: dict[int, list[tuple[Call, Way, Tensor]]] = {}
        for call, way in calls:
            for each in (*call.read(), *call.results):
                uses.setdefault(self._own(each), []).append((call, way, each))
        for call in [call for call, _ in calls if call.name in JOINS and self._own(call.results[0]) not in seen]:
            result, joined = call.results[0], call.arguments[0]
            dim = (*call.arguments[1:], 0)[0]
            slots = result.split([1 if call.name == "stack" else each.shape[dim] for each in joined], dim)
            laid: dict[Any, Tensor] = {}
            for piece, slot in zip(map(self._own, joined), slots):
                users = uses.pop(piece, [])
                fine = users and users[0][1].into and users[0][2] is users[0][0].results[0] and piece not in self.lasting
                fine = fine and all(user.name.removesuffix("_") in EXACT and not user.options for user, _, _ in users)
                fine = fine and (users[-1][0] is call or self.changed.isdisjoint((piece, self._own(result))))
                alike = (slot.numel(), result.dtype, True)
                if fine and all((each.numel(), each.dtype, each.is_contiguous()) == alike for _, _, each in users):
                    laid.update({(piece, each.shape): slot.reshape(each.shape) for _, _, each in users})
            if len({piece for piece, _ in laid}) == len(joined) and {*map(storage_of, laid.values())} == {storage_of(result)}:
                uses.pop(self._own(result))
                self.laid.update(laid)
        for call in [call for call, _ in calls if call.name in PARTS]:
            result, piece = call.results[0], self._own(call.arguments[0])
            users = uses.get(piece, []) if self._own(result) in uses else []
            fine = len(users) == 2 and users[0][1].into and users[0][2] is users[0][0].results[0]
            fine = fine and users[0][0].name in EXACT and not users[0][0].options
            if fine and self.changed.union(self.lasting).isdisjoint((piece, self._own(result))):
                slot = PARTS[call.name](result, *call.arguments[2:])
                whole = all(each.is_contiguous() and each.numel() == slot.numel() for _, _, each in users)
                laid = {(piece, each.shape): slot.reshape(each.shape) for _, _, each in users} if whole else {}
                if {*map(storage_of, laid.values())} == {storage_of(result)}:
                    self.laid.update(laid)
                    self.padded.add(storage_of(result))

    def _at(self, tensor: Tensor) -> Tensor:
        return self.laid.get((self.same.get(storage_of(tensor), storage_of(tensor)), tensor.shape), tensor)

    def _own(self, value: Tensor | int) -> int:
        number = value if isinstance(value, int) else storage_of(self._at(value))
        return self.same.get(number, number)

    def _owners(self, value: Any) -> set[int]:
        return {self._own(each) for each in tensors_in(value)}

    def _key(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            value = self._at(value)
            return (self._own(value), value.storage_offset(), value.shape, value.stride(), value.dtype)
        if isinstance(value, (list, tuple)):
            return tuple(map(self._key, value))
        return (type(value), value)

    def _simplify(self, calls: list[Call], returned: set[int]) -> list[Call]:
        """Without views, which are made where they are needed, without what is always the same, and without repetitions."""
        left: list[Call] = []
        known: dict[Any, list[int]] = {}
        versions: dict[int, int] = {}
        kept = {*map(storage_of, self.inputs)}
        for call in map(shorten, calls):
            if call.is_view:
                if call.written is not None:
                    left.append(call)
                    versions[call.written] = len(left)
                continue
            made, read = list(map(storage_of, call.results)), self._owners(list(call.read()))
            if self.changed.isdisjoint(made):
                same = self.changed.isdisjoint(read) and returned.isdisjoint(made)
                if same and (call.name in LIKE or read <= self.constants):
                    self.constants.update(made)
                    continue
                if same and call.name in COPIES and read.isdisjoint(kept | returned):
                    alike = self._key(call.results[0])[1:] == self._key(call.arguments[0])[1:]
                    self.same.update((each, min(read)) for each in made if alike)  # what nobody changes needs no copy
                    if alike:
                        continue
                key = (call.function, self._key(call.arguments), self._key(tuple(sorted(call.options.items()))))
                key += tuple(versions.get(storage, 0) for storage in sorted(read))
                if key in known:
                    self.same.update(zip(made, known[key]))
                    continue
                known[key] = made
            left.append(call)
        return left

    def _keep_needed(self, calls: list[Call], wanted: set[int]) -> tuple[list[Call], set[int]]:
        needed, left = set(wanted), []
        for call in reversed(calls):
            if not needed.isdisjoint(self._owners(call.results)):
                left.append(call)
                needed |= self._owners(list(call.read()))
        return left[::-1], needed

    def _hold(self, key: Any, value: Any) -> str:
        """The name of something that is the same at each run."""
        if key not in self.holders:
            name = getattr(value, "__name__", "held").strip("_").replace(".", "_")
            self.holders[key] = f"{name}_{len(self.holders)}"
            self.held[self.holders[key]] = value
        return self.holders[key]

    def _begin(self, tensor: Tensor, name: str) -> str:
        """Name a tensor that is not a view of another."""
        self.names[self._key(tensor)] = self.names[self._own(tensor)] = name
        return name

    def _kept(self) -> list[str]:
        return [self.names[storage] for storage in self.kept if storage not in self.rented]

    def _lines(self, calls: list[tuple[Call, Way]], inputs: Tensors) -> list[str]:
        lines: list[str] = []
        last: list[str] = []
        ends: dict[int, int] = {}
        for place, (call, _) in enumerate(calls):
            ends.update(dict.fromkeys(self._owners([*call.read(), *call.results]), place))
        ending: dict[int, list[int]] = {}
        for storage, place in ends.items():
            if storage not in self.lasting:
                ending.setdefault(place, []).append(storage)
        self.buffers: dict[int, Tensor] = {}
        free: dict[Any, list[Tensor]] = {}
        zeroed: set[int] = set()
        for tensor in inputs:
            if self._own(tensor) in self.busy and self._take(tensor, free):
                lines.append(f"{self._hold('copy', Tensor.copy_)}({self._refer(tensor, lines)}, {self.names[self._key(tensor)]})")
        for place, (call, way) in enumerate(calls):
            first = next(tensors_in(call.arguments), None)
            if call.name in {*JOINS, *PARTS} and first is not None and self._own(first) == self._own(call.results[0]):
                continue
            given = [self._write(each, lines) for each in way.arguments]
            given += [f"{key}={self._write(each, lines)}" for key, each in way.options.items()]
            function = self._hold(id(way.function), way.function)
            result, own = call.results[0], self._own(call.results[0])
            inside, rented = own not in self.lasting, own in self.rented
            if call.written is not None:
                lines.append(f"{function}({', '.join(given)})")
            elif call.name in PARTS and inside and self._take(result, {}):
                self.buffers[own].zero_()
                part = self._refer(PARTS[call.name](result, *call.arguments[2:]), lines)
                lines.append(f"{self._hold('copy', Tensor.copy_)}({part}, {given[0]})")
                zeroed.add(own)
            elif own in self.padded and self._take(result, {}):
                self.buffers[own].zero_()
                lines.append(f"{function}({', '.join(given)}, out={self._refer(result, lines)})")
                zeroed.add(own)
            elif rented or own in self.buffers or (way.into and (inside or own in self.busy) and self._take(result, free)):
                into = self._refer(result, lines)
                lines.append(f"{function}({', '.join(given)}, out={into})")
                if not (inside or rented):  # worth a copy at the end
                    last.append(f"{self._begin(result, next(self.fresh))} = {self._hold('clone', torch.clone)}({into})")
            else:
                made = [self._begin(each, next(self.fresh)) for each in call.results]
                target = made[0] if len(made) == 1 and isinstance(call.function._schema.returns, list) else _join(made)
                lines.append(f"{target} = {function}({', '.join(given)})")
            for storage in ending.get(place, ()):
                if storage in self.buffers:
                    flat = self.buffers.pop(storage)
                    if storage not in zeroed:
                        free.setdefault((flat.dtype, flat.numel()), []).append(flat)
                elif storage in self.names:
                    over = {
                        name for key, name in self.names.items() if storage in (key, key[0] if isinstance(key, tuple) else key)
                    }
                    lines.append(f"del {', '.join(sorted(over))}")
        self.buffers = {}
        return lines + last

    def _take(self, tensor: Tensor, free: dict[Any, list[Tensor]]) -> bool:
        """Find a buffer for a tensor."""
        tensor = self._at(tensor)
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        known = free.get((tensor.dtype, size))
        if known:
            self.buffers[self._own(tensor)] = known.pop()
            return True
        self.left -= tensor.untyped_storage().nbytes()
        if self.left >= 0:
            self.buffers[self._own(tensor)] = torch.empty(size, dtype=tensor.dtype)
        return self.left >= 0

    def _refer(self, tensor: Tensor, lines: list[str]) -> str:
        """What a tensor is called; a view that has no name yet is made."""
        tensor = self._at(tensor)
        storage, key = self._own(tensor), self._key(tensor)
        if storage in self.constants:
            return self._hold(key, tensor.detach())
        offset = tensor.storage_offset()
        if storage in self.rented:
            return self.views.setdefault(key, f"r{len(self.views)}")
        if storage in self.buffers:
            view = self.buffers[storage].as_strided(tensor.shape, tensor.stride(), offset)
            return self._hold((key, view.data_ptr()), view)
        if key not in self.names:
            base, name = self.names[storage], next(self.fresh)
            start = f"{base}.storage_offset() + {offset}" if base[0] == "x" else offset
            lines.append(f"{name} = as_strided({base}, {tuple(tensor.shape)}, {tensor.stride()}, {start})")
            self.names[key] = name
        return self.names[key]

    def _divide(self, tensor: Tensor, lines: list[str]) -> None:
        """Make many views of a tensor, which are to be returned, by one call."""
        wanted = [slope for slope in self.slopes if slope is not None and self._own(slope) == self._own(tensor)]
        for dim in range(tensor.dim() if len(wanted) > MANY and self._key(tensor) in self.names else 0):
            parts = tensor.unbind(dim)
            if len(parts) <= 2 * len(wanted) and {*map(self._key, wanted)} <= {*map(self._key, parts)}:
                base = self.names[self._key(tensor)]
                names = [self.names.setdefault(self._key(part), next(self.fresh)) for part in parts]
                lines.append(f"{_join(names)} = {self._hold('unbind', torch.unbind)}({base}, {dim})")
                return

    def _write(self, value: Any, lines: list[str]) -> str:
        """An argument as Python."""
        if isinstance(value, Tensor):
            return self._refer(value, lines)
        if isinstance(value, (list, tuple)):
            inner = _join([self._write(each, lines) for each in value])
            return f"[{inner}]" if isinstance(value, list) else f"({inner})"
        plain = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))
        return repr(value) if plain else self._hold((type(value), str(value)), value)


def _join(names: Sequence[str]) -> str:
    return "".join(f"{name}, " for name in names)
