"""Turn formulas in negation normal form into a plan, computing nodes of one signature together."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dualogic.compile import instructions as ops
from dualogic.compile.signature import COMPARISON_KIND, Signatures, strip_levels
from dualogic.compile.tree import Branch, JunctionBranch, Leaf, Level, QuantifierBranch
from dualogic.formula.atom import STRICT, Boolean, BooleanIndex, ClassIn, Comparison
from dualogic.formula.connective import Complement, Formula, Junction, Quantifier
from dualogic.formula.node import Node
from dualogic.formula.shape import Ragged, Shape, Size, max_shape, max_size
from dualogic.formula.symbol import (
    Categorical,
    ClassExpression,
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
    Application,
    Arithmetic,
    Constant,
    Index,
    MatrixProduct,
    Negation,
    Number,
    Reduction,
    items_to_key,
)

_ARITHMETIC: dict[str, Callable[[Any, Any], Tensor]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
_SYMBOLS = (Variable, Categorical, Boolean, Mask)


class Value(NamedTuple):
    """Where a term's value is found and how it is laid out.

    Attributes:
        register: its register, or -1 for a plain number.
        lanes: its lanes; none if it is the same for all of them.
        rank: the number of its declared axes.
        number: the value itself, for a plain number.
    """

    register: int
    lanes: tuple[int, ...]
    rank: int
    number: float = 0.0


class Builder:
    """Collects the instructions, constants and levels of one plan.

    Args:
        mode: what atoms are worth: ``"probability"`` or ``"log"`` costs, ``"truth"``, or ``"degree"`` (costs for
            comparisons, probabilities for classes and Booleans).
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.signatures = Signatures()
        self.instructions: list[ops.Instruction] = []
        self.constants: list[Tensor] = []
        self.levels: list[Level] = []
        self.width = 0
        self.leaves: list[Leaf] = []
        self._values: dict[Any, Value] = {}
        self._numbers: dict[Any, int] = {}

    # ------------------------------------------------------------------ roots and connectives

    def roots(self, rules: Mapping[str, Formula]) -> list[tuple[Branch, list[int]]]:
        """Compile the rules, those of one signature together; returns each group with the rules' positions."""
        formulas = [strip_levels(formula) for formula in rules.values()]
        self.signatures.add(*formulas)
        groups: dict[int, list[int]] = {}
        for position, formula in enumerate(formulas):
            groups.setdefault(self.signatures[formula], []).append(position)
        names = list(rules)
        return [
            (self.formula([formulas[place] for place in places], (len(places),), [names[place] for place in places], frozenset()), places)
            for places in groups.values()
        ]

    def formula(self, nodes: list[Formula], lanes: tuple[int, ...], paths: list[str], tied: frozenset[int]) -> Branch:
        """Compile formulas of one signature, one for each lane.

        Args:
            nodes: the formulas, lanes in row-major order.
            lanes: the shape of the lanes.
            paths: where each formula stands.
            tied: axes, counted from the end, along which weights are shared.
        """
        first = nodes[0]
        if isinstance(first, Junction):
            return self._junction(nodes, lanes, paths, tied)
        if isinstance(first, Quantifier):
            return self._quantifier(nodes, lanes, paths, tied)
        return self._leaf(nodes, lanes)

    def _junction(self, nodes: list[Any], lanes: tuple[int, ...], paths: list[str], tied: frozenset[int]) -> Branch:
        first: Junction = nodes[0]
        groups: dict[int, list[int]] = {}
        for position, operand in enumerate(first.operands):
            groups.setdefault(self.signatures[operand], []).append(position)
        places = [place for group in groups.values() for place in group]
        order = [0] * len(places)
        for slot, position in enumerate(places):
            order[position] = slot
        axes = max_shape(first.shape)
        shared = tuple(len(lanes) + len(axes) + dim for dim in sorted(tied) if -dim <= len(axes))
        level = self._level(
            operation=first.operation,
            sizes=(len(places),),
            rest=(*lanes, *axes),
            lanes=len(lanes),
            shared=shared,
            uniform=False,
            ragged=any(isinstance(size, Ragged) for size in first.shape),
            order=tuple(order),
            paths=tuple(paths),
            formulas=tuple(nodes),
        )
        branches, ranks = [], []
        for group in groups.values():
            below = [strip_levels(node.operands[place]) for place in group for node in nodes]
            names = [f"{path}/{place}" for place in group for path in paths]
            rank = len(below[0].shape)
            branches.append(self.formula(below, (len(group), *lanes), names, frozenset(d for d in tied if -d <= rank)))
            ranks.append(rank)
        return JunctionBranch(
            level=level,
            groups=tuple(branches),
            counts=tuple(map(len, groups.values())),
            lanes=lanes,
            ranks=tuple(ranks),
            rank=len(first.shape),
            can_be_empty=any(branch.can_be_empty for branch in branches),
        )

    def _quantifier(self, nodes: list[Any], lanes: tuple[int, ...], paths: list[str], tied: frozenset[int]) -> Branch:
        first: Quantifier = nodes[0]
        shape = first.operand.shape
        rank = len(shape)
        kept = [dim for dim in range(rank) if dim not in first.dims]
        # Tied axes of this formula are counted from the end of what is kept; below, from the end of the operand's axes.
        outer = frozenset(kept[dim] - rank for dim in tied)
        below = outer | frozenset(dim - rank for dim in first.dims) if first.tied else outer
        rest = tuple(max_size(shape[dim]) for dim in kept)
        level = self._level(
            operation="&" if first.operation == "all" else "|",
            sizes=tuple(max_size(shape[dim]) for dim in first.dims),
            rest=(*lanes, *rest),
            lanes=len(lanes),
            shared=tuple(len(lanes) + len(rest) + dim for dim in sorted(tied)),
            uniform=first.tied,
            ragged=any(isinstance(size, Ragged) for size in shape),
            order=(),
            paths=tuple(paths),
            formulas=tuple(nodes),
        )
        operand = self.formula([strip_levels(node.operand) for node in nodes], lanes, [f"{path}/0" for path in paths], below)
        mask = None
        if first.where is not None:
            mask = self._expand(self.term([node.where for node in nodes], lanes), lanes, rank)
        fixed = all(isinstance(size, int) for size in shape)
        empty = first.operation == "any" and first.where is not None
        return QuantifierBranch(
            level=level,
            operand=operand,
            dims=tuple(1 + len(lanes) + dim for dim in first.dims),
            mask=mask,
            full_shape=(*lanes, *max_shape(shape)) if fixed else None,
            can_be_empty=empty or operand.can_be_empty,
        )

    def _level(self, **fields: Any) -> Level:
        rest = list(fields.pop("rest"))
        for position in fields["shared"]:
            rest[position] = 1
        level = Level(number=len(self.levels), offset=self.width, rest=tuple(rest), **fields)
        self.levels.append(level)
        self.width += level.width
        return level

    # ------------------------------------------------------------------ atoms

    def _leaf(self, nodes: list[Any], lanes: tuple[int, ...]) -> Leaf:
        atom = nodes[0].operand if isinstance(nodes[0], Complement) else nodes[0]
        if isinstance(atom, Comparison):
            kind, value = "comparison", self._comparison(nodes, lanes)
        elif isinstance(atom, ClassIn):
            kind, value = "class", self._class(nodes, lanes)
        else:
            kind, value = "boolean", self._boolean(nodes, lanes)
        leaf = Leaf(self._expand(value, lanes, len(nodes[0].shape)), kind, tuple(nodes))
        self.leaves.append(leaf)
        return leaf

    def _comparison(self, nodes: list[Comparison], lanes: tuple[int, ...]) -> Value:
        rank = len(nodes[0].shape)
        signs = [-1.0 if node.operation in (">", ">=") else 1.0 for node in nodes]
        left, right = self.term([node.left for node in nodes], lanes), self.term([node.right for node in nodes], lanes)
        kind = COMPARISON_KIND[nodes[0].operation]
        if kind == "order" and set(signs) == {-1.0}:
            left, right, signs = right, left, [1.0]
        if right.register < 0 and right.number == 0.0 and len(left.lanes) + left.rank > 0:
            difference = left
        else:
            difference = self._binary(operator.sub, left, right, rank)
        value_lanes = difference.lanes
        per_lane = [
            self._vary(signs, lanes, difference.rank) if kind == "order" else 1.0,
            self._vary([node.margin for node in nodes], lanes, difference.rank),
            self._vary([float(node.operation in STRICT) for node in nodes], lanes, difference.rank),
        ]
        if any(isinstance(value, tuple) for value in per_lane) and not value_lanes:
            difference = self._spread(difference, lanes)
        sign, margin, strict = per_lane
        compare = ops.Compare(
            kind, difference.register, sign, margin, strict if isinstance(strict, tuple) else strict > 0, self.mode == "truth"
        )
        return Value(self._emit(compare), difference.lanes, difference.rank)

    def _boolean(self, nodes: list[Any], lanes: tuple[int, ...]) -> Value:
        atoms = [node.operand if isinstance(node, Complement) else node for node in nodes]
        value = self.term(atoms, lanes)
        negated = [isinstance(node, Complement) for node in nodes]
        sign = self._vary([-1.0 if flag else 1.0 for flag in negated], lanes, value.rank)
        offset = self._vary([1.0 if flag else 0.0 for flag in negated], lanes, value.rank)
        if isinstance(sign, tuple) and not value.lanes:
            value = self._spread(value, lanes)
        logits = atoms[0].symbol.input == "logits"
        return Value(self._emit(ops.BooleanValue(self.mode, value.register, logits, sign, offset)), value.lanes, value.rank)

    def _class(self, nodes: list[Any], lanes: tuple[int, ...]) -> Value:
        negated = isinstance(nodes[0], Complement)
        atoms: list[ClassIn] = [node.operand if negated else node for node in nodes]
        symbol = atoms[0].operand.symbol
        logarithm = self.mode == "log" and symbol.input == "logits"
        if not negated and len(atoms[0].classes) == 1 and self.mode != "truth":
            value = self._access([(atom.operand, (("at", atom.classes[0]),)) for atom in atoms], lanes)
            return Value(self._emit(ops.ClassValue(self.mode, value.register, logarithm)), value.lanes, value.rank)
        value = self.term([atom.operand for atom in atoms], lanes)
        chosen = [[float((label in atom.classes) != negated) for label in range(symbol.size)] for atom in atoms]
        rank = value.rank - 1
        if all(row == chosen[0] for row in chosen):
            members = self._constant(torch.tensor(chosen[0], dtype=torch.float64))
            result_lanes, operand = value.lanes, (value.register, None)
        else:
            shape = (1, *lanes, *(1,) * rank, symbol.size)
            members = self._constant(torch.tensor(chosen, dtype=torch.float64).reshape(shape))
            result_lanes, operand = lanes, self._expand(value, lanes, value.rank)
        instruction = ops.ClassSetValue(self.mode, operand, members, negated, logarithm)
        return Value(self._emit(instruction), result_lanes, rank)

    # ------------------------------------------------------------------ terms

    def term(self, nodes: Sequence[Any], lanes: tuple[int, ...]) -> Value:
        """The value of terms (or masks, classes, Booleans) of one signature, one for each lane."""
        first = nodes[0]
        if all(node is first for node in nodes):
            nodes, lanes = [first], ()
        key = (lanes, tuple(map(id, nodes)))
        if key not in self._values:
            self._values[key] = self._term(list(nodes), lanes)
        return self._values[key]

    def _term(self, nodes: list[Any], lanes: tuple[int, ...]) -> Value:
        first = nodes[0]
        if isinstance(first, Number):
            if not lanes:
                return Value(-1, (), 0, first.value)
            return Value(self._fixed([node.value for node in nodes], (1, *lanes)), lanes, 0)
        if isinstance(first, Constant):
            numbers = [number for node in nodes for number in node.numbers()]
            return Value(self._fixed(numbers, (1, *lanes, *first.sizes)), lanes, len(first.sizes))
        if isinstance(first, _SYMBOLS):
            return self._access([(node, ()) for node in nodes], lanes)
        if isinstance(first, (Index, ClassIndex, BooleanIndex, MaskIndex)):
            return self._access([(node.operand, node.items) for node in nodes], lanes)
        if isinstance(first, Probabilities):
            return self._access([(node.operand, ()) for node in nodes], lanes, probabilities=True)
        if isinstance(first, Arithmetic):
            left, right = self.term([node.left for node in nodes], lanes), self.term([node.right for node in nodes], lanes)
            return self._binary(_ARITHMETIC[first.operation], left, right, len(first.shape))
        if isinstance(first, MaskJunction):
            left, right = self.term([node.left for node in nodes], lanes), self.term([node.right for node in nodes], lanes)
            return self._binary(operator.and_ if first.operation == "&" else operator.or_, left, right, len(first.shape))
        if isinstance(first, Application):
            operands = [self.term([operand], ()) for operand in first.operands]
            arguments = tuple(value.number if value.register < 0 else (value.register, None) for value in operands)
            return Value(self._emit(ops.Apply(first.function, arguments)), (), len(first.shape))
        if isinstance(first, MatrixProduct):
            matrix = self._constant(_tensor_of(first.right))
            left = self.term([node.left for node in nodes], lanes)
            return Value(self._emit(ops.Multiply(left.register, matrix)), left.lanes, len(first.shape))
        value = self.term([node.operand for node in nodes], lanes)
        if isinstance(first, Reduction):
            dims = tuple(dim - len(first.operand.shape) for dim in first.dims)
            return Value(self._emit(ops.Reduce(first.operation, value.register, dims)), value.lanes, len(first.shape))
        function = {Negation: operator.neg, Absolute: torch.abs, MaskComplement: torch.logical_not}[type(first)]
        return Value(self._emit(ops.Unary(function, value.register)), value.lanes, value.rank)

    def _access(
        self, places: list[tuple[Any, tuple[Any, ...]]], lanes: tuple[int, ...], probabilities: bool = False
    ) -> Value:
        """Index something, at a different position for each lane where positions differ.

        Args:
            places: what is indexed and the items, for each lane; items may go on to the class axis.
            lanes: the shape of the lanes.
            probabilities: read classes as probabilities whatever the mode.
        """
        bases = [base for base, _ in places]
        rows = [items for _, items in places]
        same_base = all(base is bases[0] for base in bases)
        if same_base and all(items == rows[0] for items in rows):
            base = self._base(bases[0], probabilities)
            return self._pick(base, rows[0]) if rows[0] else base
        shape = _indexed_shape(bases[0])
        if same_base:
            return self._gather(self._base(bases[0], probabilities), [], [[] for _ in rows], rows, lanes, shape)
        if isinstance(bases[0], _SYMBOLS):
            symbols = list(dict.fromkeys(bases))
            registers = tuple(self._base(symbol, probabilities).register for symbol in symbols)
            bank = self._emit_once(("stack", registers), lambda: ops.Stack(registers))
            number = {id(symbol): position for position, symbol in enumerate(symbols)}
            rank = self._base(symbols[0], probabilities).rank + 1
            which = [[number[id(base)]] for base in bases]
            return self._gather(Value(bank, (), rank), [len(symbols)], which, rows, lanes, shape)
        return self._gather_each(self.term(bases, lanes), rows, lanes)

    def _base(self, node: Node, probabilities: bool) -> Value:
        if isinstance(node, Categorical):
            logarithm = self.mode == "log" and node.input == "logits" and not probabilities
            register = self._emit_once(("class", node.name, logarithm), lambda: self._read_class(node, logarithm))
            return Value(register, (), len(node.sizes) + 1)
        if isinstance(node, (Variable, Boolean, Mask)):
            return Value(self._emit_once(("read", node.name), lambda: ops.Read(node.name)), (), len(node.sizes))
        if isinstance(node, ClassIndex) and probabilities:
            base = self._base(node.operand, True)
            return self._pick(base, node.items)
        return self.term([node], ())

    def _read_class(self, node: Categorical, logarithm: bool) -> ops.Instruction:
        register = self._emit_once(("read", node.name), lambda: ops.Read(node.name))
        if node.input == "probs":
            return ops.Unary(_identity, register)
        return ops.Unary(_log_softmax if logarithm else _softmax, register)

    def _pick(self, base: Value, items: tuple[Any, ...]) -> Value:
        """The same items for all lanes; trailing dimensions without an item stay."""
        key: list[Any] = [slice(None)] * (1 + len(base.lanes))
        register, rank = base.register, base.rank
        takes = [position for position, item in enumerate(items) if item[0] == "take"]
        if takes:
            place = takes[0]
            dim = 1 + len(base.lanes) + sum(item[0] != "new" for item in items[:place])
            numbers = torch.tensor(items[place][1])
            register = self._emit(ops.Take(register, dim, self._constant(numbers)))
            items = (*items[:place], ("range", None, None, None), *items[place + 1 :])
        rank += sum(item[0] == "new" for item in items) - sum(item[0] == "at" for item in items)
        if any(item != ("range", None, None, None) for item in items):
            register = self._emit(ops.Pick(register, (*key, *items_to_key(items))))
        return Value(register, base.lanes, rank)

    def _gather(
        self,
        base: Value,
        front: list[Size],
        which: list[list[int]],
        rows: list[tuple[Any, ...]],
        lanes: tuple[int, ...],
        shape: Shape,
    ) -> Value:
        """Positions that differ between lanes, of a value that does not.

        Args:
            base: the value, with dimensions of sizes ``front`` and then ``shape`` after the batch.
            front: the sizes of leading dimensions that ``which`` gathers.
            which: for each lane, its positions along those.
            rows: for each lane, its index items for the dimensions after them.
            lanes: the shape of the lanes.
            shape: the sizes that the items apply to.
        """
        first = rows[0]
        kept: Any = ("range", None, None, None)
        static = tuple(kept if item[0] == "at" else item for item in first)
        value = self._pick(base, (*(kept,) * len(front), *static)) if first else base
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
        if places != list(range(1, 1 + len(places))):
            source = register
            register = self._emit_once(("move", source, *places), lambda: ops.Move(source, tuple(places)))
        gathered = self._emit(self._gather_instruction(register, positions, sizes, lanes))
        return Value(gathered, lanes, value.rank - len(places))

    def _gather_instruction(
        self, register: int, positions: list[list[int]], sizes: list[Size], lanes: tuple[int, ...]
    ) -> ops.Instruction:
        columns = [torch.tensor([row[place] for row in positions]) for place in range(len(sizes))]
        if not all(isinstance(size, int) for size in sizes):
            return ops.GatherRagged(register, lanes, tuple(map(self._constant, columns)))
        flat = torch.zeros(len(positions), dtype=torch.long)
        for column, size in zip(columns, sizes):
            flat = flat * size + column
        span, stride = _pattern(flat.reshape(lanes))
        constant = self._constant(flat) if span is None and stride is None else None
        return ops.Gather(register, len(sizes), lanes, constant, span, stride)

    def _gather_each(self, base: Value, rows: list[tuple[Any, ...]], lanes: tuple[int, ...]) -> Value:
        """Positions that differ between lanes, of a value that differs too."""
        first = rows[0]
        static = tuple(("range", None, None, None) if item[0] == "at" else item for item in first)
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

    # ------------------------------------------------------------------ registers and constants

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
        key = (tensor.dtype, tuple(tensor.shape), tensor.numpy().tobytes() if tensor.numel() <= 64 else id(tensor))
        if key not in self._numbers:
            self._numbers[key] = len(self.constants)
            self.constants.append(tensor)
        return self._numbers[key]

    def _emit(self, instruction: ops.Instruction) -> int:
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _emit_once(self, key: Any, make: Callable[[], ops.Instruction]) -> int:
        if key not in self._values:
            instruction = make()
            self._values[key] = Value(self._emit(instruction), (), 0)
        return self._values[key].register


def _indexed_shape(node: Any) -> Shape:
    """The axes that can be indexed: the declared ones, and the class axis of a class."""
    return (*node.shape, node.symbol.size) if isinstance(node, ClassExpression) else node.shape


def _tensor_of(constant: Constant) -> Tensor:
    return torch.tensor(list(constant.numbers()), dtype=torch.float64).reshape(constant.sizes)


def _identity(value: Tensor) -> Tensor:
    return value


def _softmax(value: Tensor) -> Tensor:
    return torch.softmax(value, -1)


def _log_softmax(value: Tensor) -> Tensor:
    return torch.log_softmax(value, -1)


def _pattern(
    positions: Tensor,
) -> tuple[tuple[int, int, tuple[int, ...], tuple[int, ...]] | None, tuple[int, int, int] | None]:
    """Recognise positions that can be read without gathering: a permuted block, or a progression."""
    flat = positions.flatten().tolist()
    shape = tuple(positions.shape)
    start = flat[0]
    if min(flat) != start or len(flat) == 1:
        return (None, None) if len(flat) > 1 or start < 0 else (None, (start, start + 1, 1))
    strides = [0 if size == 1 else int(positions.movedim(dim, 0)[1].flatten()[0]) - start for dim, size in enumerate(shape)]
    expected = torch.full(shape, start)
    for dim, (size, stride) in enumerate(zip(shape, strides)):
        view = [1] * len(shape)
        view[dim] = size
        expected = expected + (torch.arange(size) * stride).reshape(view)
    if not torch.equal(expected, positions):
        return None, None
    real = [dim for dim, size in enumerate(shape) if size > 1]
    ordered = sorted(real, key=lambda dim: -strides[dim])
    block = 1
    for dim in reversed(ordered):
        if strides[dim] != block:
            break
        block *= shape[dim]
    else:
        sizes = tuple(shape[dim] for dim in ordered)
        return (start, math.prod(sizes), sizes, tuple(1 + ordered.index(dim) for dim in real)), None
    if len(real) == 1 and strides[real[0]] > 0:
        step = strides[real[0]]
        return None, (start, start + (len(flat) - 1) * step + 1, step)
    return None, None
