"""Terms, computed together where they have the same signature: each lane of a value belongs to one of them."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dualogic.compile import instructions as ops
from dualogic.compile.signature import Signatures
from dualogic.formula.function import Application
from dualogic.formula.indexing import items_to_key
from dualogic.formula.inspect import INDEXED, SYMBOLS
from dualogic.formula.node import Node
from dualogic.formula.shape import WHOLE, Item, Shape, Size, max_shape
from dualogic.formula.symbol import Categorical, ClassExpression, MaskComplement, MaskJunction, Probabilities
from dualogic.formula.term import ARITHMETIC, Absolute, Arithmetic, Constant, MatrixProduct, Negation, Number, Reduction
from dualogic.numerics import tame

_UNARY: dict[type, Callable[[Tensor], Tensor]] = {Negation: operator.neg, Absolute: torch.abs, MaskComplement: torch.logical_not}
_REDUCTIONS: dict[str, Callable[..., Tensor]] = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}
_softmax: Callable[[Tensor], Tensor] = functools.partial(torch.softmax, dim=-1)
_log_softmax: Callable[[Tensor], Tensor] = functools.partial(torch.log_softmax, dim=-1)
_SMALL = 64
"""Up to so many numbers of a sample a gradient of zeros for symbols that are not read costs less than operations of their own."""


class Value(NamedTuple):
    """Where a term's value is found and how it is laid out."""

    register: int  # its register, or -1 for a plain number
    lanes: tuple[int, ...]  # its lanes; none if it is the same for all of them
    rank: int  # the number of its declared axes
    number: float = 0.0  # the value itself, for a plain number


class TermBuilder:
    """Collects the instructions and constants of one plan; modes are those of :class:`~dualogic.compile.build.Builder`."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.signatures = Signatures()
        self.instructions: list[ops.Instruction] = []
        self.constants: list[Tensor] = []
        self._values: dict[Any, Value] = {}
        self._numbers: dict[Any, int] = {}
        self._banks: list[tuple[bool, int, dict[Any, int]]] = []

    def term(self, nodes: Sequence[Any], lanes: tuple[int, ...], probabilities: bool = False) -> Value:
        """The value of terms (or masks, classes, Booleans) of one signature, one for each lane, in row-major order.

        With ``probabilities`` classes are read as such whatever the mode.
        """
        # A sum written as a Python loop is a tree as deep as it is long: its inner sums are computed first, not recursively.
        pending = []
        while True:
            first = nodes[0]
            if all(node is first for node in nodes):
                nodes, lanes = [first], ()
            key = (lanes, tuple(map(id, nodes)), probabilities)
            if key in self._values:
                break
            pending.append((key, nodes, lanes))
            if not isinstance(first, Arithmetic):
                break
            nodes = [node.left for node in nodes]
        for key, nodes, lanes in reversed(pending):
            self._values[key] = self._term(list(nodes), lanes, probabilities)
        return self._values[key]

    def _term(self, nodes: list[Any], lanes: tuple[int, ...], probabilities: bool) -> Value:
        first = nodes[0]
        if isinstance(first, Number):
            if not lanes:
                return Value(-1, (), 0, first.value)
            return Value(self._fixed([node.value for node in nodes], (1, *lanes)), lanes, 0)
        if isinstance(first, Constant):
            numbers = [number for node in nodes for number in node.numbers()]
            return Value(self._fixed(numbers, (1, *lanes, *first.sizes)), lanes, len(first.sizes))
        if isinstance(first, SYMBOLS):
            return self._access([(node, ()) for node in nodes], lanes, probabilities)
        if isinstance(first, INDEXED):
            return self._access([(node.operand, node.items) for node in nodes], lanes, probabilities)
        if isinstance(first, Probabilities):
            return self.term([node.operand for node in nodes], lanes, probabilities=True)
        if isinstance(first, Arithmetic):
            function, sides = ARITHMETIC[first.operation], self._sides(nodes, lanes)
            plain = sides[1].register < 0 and (first.operation == "/" or (sides[1].number >= 0 and sides[1].number.is_integer()))
            if first.operation in ("/", "**") and not plain:
                function = functools.partial(tame, function)
            return self._binary(function, *sides, len(first.shape))
        if isinstance(first, MaskJunction):
            function = operator.and_ if first.operation == "&" else operator.or_
            return self._binary(function, *self._sides(nodes, lanes), len(first.shape))
        if isinstance(first, Application):
            operands = [self.term([operand], ()) for operand in first.operands]
            arguments = tuple(value.number if value.register < 0 else value.register for value in operands)
            return Value(self._emit(ops.Apply(first.name, first.function, arguments, first.shape)), (), len(first.shape))
        if isinstance(first, MatrixProduct):
            matrix = self._constant(torch.tensor(first.right.rows(), dtype=torch.float64))
            left = self.term([node.left for node in nodes], lanes)
            return Value(self._emit(ops.WithConstant(operator.matmul, left.register, matrix)), left.lanes, len(first.shape))
        value = self.term([node.operand for node in nodes], lanes)
        if isinstance(first, Reduction):
            dims = tuple(dim - len(first.operand.shape) for dim in first.dims)
            reduce = functools.partial(_REDUCTIONS[first.operation], dim=dims)
            return Value(self._emit(ops.Unary(reduce, value.register)), value.lanes, len(first.shape))
        return Value(self._emit(ops.Unary(_UNARY[type(first)], value.register)), value.lanes, value.rank)

    def _sides(self, nodes: Sequence[Any], lanes: tuple[int, ...]) -> tuple[Value, Value]:
        return self.term([node.left for node in nodes], lanes), self.term([node.right for node in nodes], lanes)

    def _access(self, places: list[tuple[Any, tuple[Item, ...]]], lanes: tuple[int, ...], probabilities: bool) -> Value:
        """Index something, at a different position for each lane where positions differ; items may go on to the class axis."""
        bases = [base for base, _ in places]
        rows = [items for _, items in places]
        same_base = all(base is bases[0] for base in bases)
        if same_base and all(items == rows[0] for items in rows):
            base = self._base(bases[0], probabilities)
            return self._pick(base, rows[0]) if rows[0] else base
        shape = _indexed_shape(bases[0])
        if same_base:
            return self._gather(self._base(bases[0], probabilities), [], [[] for _ in rows], rows, lanes, shape)
        if isinstance(bases[0], SYMBOLS):
            bank, number = self._bank(tuple(dict.fromkeys(bases)), probabilities)
            which = [[number[base]] for base in bases]
            return self._gather(Value(bank, (), len(shape) + 1), [len(number)], which, rows, lanes, shape)
        return self._gather_each(self.term(bases, lanes, probabilities), rows, lanes)

    def _bank(self, symbols: tuple[Any, ...], probabilities: bool) -> tuple[int, dict[Any, int]]:
        """The register of several symbols side by side, and where each stands; an earlier one may hold more than these."""
        small = math.prod(max_shape(_indexed_shape(symbols[0]))) <= _SMALL
        for kind, register, number in self._banks if small else ():
            if kind is probabilities and number.keys() >= set(symbols):
                return register, number
        function = _softmax if probabilities or self.mode != "log" else _log_softmax
        if all(isinstance(symbol, Categorical) and symbol.input == "logits" for symbol in symbols):
            reads = tuple(self._read(symbol) for symbol in symbols)
            stack = self._emit_once(("stack", reads), lambda: ops.Stack(reads))
            register = self._emit_once((function, reads), lambda: ops.Unary(function, stack))
        else:
            registers = tuple(self._base(symbol, probabilities).register for symbol in symbols)
            register = self._emit_once(("stack", registers), lambda: ops.Stack(registers))
        number = {symbol: position for position, symbol in enumerate(symbols)}
        self._banks.append((probabilities, register, number))
        return register, number

    def _read(self, node: Any) -> int:
        return self._emit_once(("read", node.name), lambda: ops.Read(node.name))

    def _base(self, node: Node, probabilities: bool) -> Value:
        if not isinstance(node, SYMBOLS):
            return self.term([node], (), probabilities)
        register = self._read(node)
        if not isinstance(node, Categorical):
            return Value(register, (), len(node.sizes))
        if node.input == "logits":
            function = _log_softmax if self.mode == "log" and not probabilities else _softmax
            read = register
            register = self._emit_once((function, node.name), lambda: ops.Unary(function, read))
        return Value(register, (), len(node.sizes) + 1)

    def _pick(self, base: Value, items: tuple[Item, ...]) -> Value:
        """The same items for all lanes; trailing dimensions without an item stay."""
        key: list[Any] = [slice(None)] * (1 + len(base.lanes))
        register, rank = base.register, base.rank
        if takes := [position for position, item in enumerate(items) if item[0] == "take"]:
            place = takes[0]
            dim = 1 + len(base.lanes) + sum(item[0] != "new" for item in items[:place])
            take = functools.partial(_index_select, dim, min(items[place][1]) < 0)
            register = self._emit(ops.WithConstant(take, register, self._constant(torch.tensor(items[place][1]))))
            items = (*items[:place], WHOLE, *items[place + 1 :])
        rank += sum(item[0] == "new" for item in items) - sum(item[0] == "at" for item in items)
        if any(item != WHOLE for item in items):
            register = self._emit(ops.Pick(register, (*key, *items_to_key(items))))
        return Value(register, base.lanes, rank)

    def _gather(
        self,
        base: Value,
        front: list[Size],
        which: list[list[int]],
        rows: list[tuple[Item, ...]],
        lanes: tuple[int, ...],
        shape: Shape,
    ) -> Value:
        """Positions that differ between lanes, of a value that does not.

        The value has dimensions of sizes ``front`` and then ``shape`` after the batch: ``which`` has each lane's positions
        along the former, ``rows`` its index items for the latter.
        """
        first = rows[0]
        static = tuple(WHOLE if item[0] == "at" else item for item in first)
        value = self._pick(base, (*(WHOLE,) * len(front), *static)) if first else base
        places, sizes = list(range(1, 1 + len(front))), list(front)
        dim, axis = 1 + len(front), 0
        for item in first:
            if item[0] == "at":
                places.append(dim)
                sizes.append(shape[axis])
            dim += 1
            axis += item[0] != "new"
        positions = [[*which[lane], *(item[1] for item in items if item[0] == "at")] for lane, items in enumerate(rows)]
        register = value.register
        leading = list(range(1, 1 + len(places)))
        if places != leading:
            source, move = register, functools.partial(torch.movedim, source=places, destination=leading)
            register = self._emit_once(("move", source, *places), lambda: ops.Unary(move, source))
        gathered = self._emit(self._gather_instruction(register, positions, sizes, lanes))
        return Value(gathered, lanes, value.rank - len(places))

    def _gather_instruction(
        self, register: int, positions: list[list[int]], sizes: list[Size], lanes: tuple[int, ...]
    ) -> ops.Instruction:
        columns = [torch.tensor([row[place] for row in positions]) for place in range(len(sizes))]
        fixed = [size for size in sizes if isinstance(size, int)]
        if len(fixed) < len(sizes):
            return ops.GatherRagged(register, lanes, tuple(map(self._constant, columns)))
        flat = torch.zeros(len(positions), dtype=torch.long)
        for column, size in zip(columns, fixed):
            flat = flat * size + column
        span, stride = ops.find_pattern(flat.reshape(lanes))
        constant = self._constant(flat) if span is None and stride is None else None
        return ops.Gather(register, len(sizes), lanes, constant, span, stride)

    def _gather_each(self, base: Value, rows: list[tuple[Item, ...]], lanes: tuple[int, ...]) -> Value:
        """Positions that differ between lanes, of a value that differs too."""
        first = rows[0]
        static = tuple(WHOLE if item[0] == "at" else item for item in first)
        value = self._pick(base, static)
        dims, dim = [], 1 + len(lanes)
        for item in first:
            if item[0] == "at":
                dims.append(dim)
            dim += 1
        if not dims:
            return value
        positions = [[item[1] for item in items if item[0] == "at"] for items in rows]
        numbers = tuple(self._constant(torch.tensor([row[place] for row in positions])) for place in range(len(dims)))
        register = self._emit(ops.GatherEach(value.register, len(lanes), tuple(dims), numbers))
        return Value(register, lanes, value.rank - len(dims))

    def _binary(self, function: Callable[[Any, Any], Tensor], left: Value, right: Value, rank: int) -> Value:
        lanes = left.lanes or right.lanes
        operands = [value.number if value.register < 0 else self._expand(value, lanes, rank) for value in (left, right)]
        return Value(self._emit(ops.Binary(function, operands[0], operands[1])), lanes, rank)

    def _expand(self, value: Value, lanes: tuple[int, ...], rank: int) -> ops.Operand:
        """The index that inserts the lanes and leading axes that a value lacks."""
        missing = rank - value.rank
        if lanes and not value.lanes:
            position, count = 1, len(lanes) + missing
        else:
            position, count = 1 + len(value.lanes), missing
        if not count:
            return value.register, None
        return value.register, (*(slice(None),) * position, *(None,) * count)

    def _spread(self, value: Value, lanes: tuple[int, ...]) -> Value:
        """Give a value that is the same for all lanes one dimension of size 1 for each."""
        key = self._expand(value, lanes, value.rank)[1]
        return Value(self._emit(ops.Pick(value.register, key or ())), lanes, value.rank)

    def _vary(self, numbers: list[float], lanes: tuple[int, ...], rank: int) -> float | tuple[int]:
        """A number if all lanes agree, otherwise a constant shaped to be broadcast."""
        if all(number == numbers[0] for number in numbers):
            return numbers[0]
        shape = (1, *lanes, *(1,) * rank)
        return (self._constant(torch.tensor(numbers, dtype=torch.float64).reshape(shape)),)

    def _fixed(self, numbers: list[float], shape: tuple[int, ...]) -> int:
        return self._emit(ops.Fixed(self._constant(torch.tensor(numbers, dtype=torch.float64).reshape(shape))))

    def _constant(self, tensor: Tensor) -> int:
        # Bytes, because 0.0 and -0.0 are equal; not through numpy, which torch does without.
        content = bytes(tensor.flatten().view(torch.uint8).tolist()) if tensor.numel() <= 64 else id(tensor)
        if (key := (tensor.dtype, tuple(tensor.shape), content)) not in self._numbers:
            self._numbers[key] = len(self.constants)
            self.constants.append(tensor)
        return self._numbers[key]

    def _emit(self, instruction: ops.Instruction) -> int:
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _emit_once(self, key: Any, make: Callable[[], ops.Instruction]) -> int:
        if key not in self._values:
            self._values[key] = Value(self._emit(make()), (), 0)
        return self._values[key].register


def _index_select(dim: int, backwards: bool, value: Tensor, places: Tensor) -> Tensor:
    # Positions from the end of a ragged axis stay negative until its length is known.
    return value.index_select(dim, places % value.shape[dim] if backwards else places)


def _indexed_shape(node: Any) -> Shape:
    """The axes that can be indexed: the declared ones, and the class axis of a class."""
    return (*node.shape, node.symbol.size) if isinstance(node, ClassExpression) else node.shape
