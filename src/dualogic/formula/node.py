"""Interned, immutable nodes: two nodes that look the same *are* the same object; and the operators of those that are numbers."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from weakref import WeakValueDictionary

from typing_extensions import Self, dataclass_transform

from dualogic.errors import FormulaTypeError
from dualogic.formula.indexing import items_to_key, resolve_index
from dualogic.formula.shape import BRIEF, WHOLE, Shape, broadcast, remove_dims, shorten

if TYPE_CHECKING:
    from dualogic.formula.connective import Formula

_interned: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()
# Reentrant: a finaliser that runs while a node is being made may make nodes too.
_lock = threading.RLock()


def _fingerprint(value: Any) -> Any:
    # Children are interned already, so their identity stands for their structure; comparing them with ``==`` is not
    # possible, because ``==`` between terms builds a formula.
    if isinstance(value, Node):
        return id(value)
    if isinstance(value, tuple):
        return tuple(map(id if value and isinstance(value[0], Node) else _fingerprint, value))
    return (type(value), value)


@dataclass_transform(frozen_default=True, eq_default=False)
class _Interning(type):
    def __init__(cls, *arguments: Any) -> None:
        super().__init__(*arguments)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)  # type: ignore[arg-type]
        cls._names: tuple[str, ...] = cls.__match_args__  # type: ignore[attr-defined]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return intern(super().__call__(*args, **kwargs))


def intern(node: Any) -> Any:
    """The one node with these fields: ``node`` itself, or one that was made before."""
    key = node._key()
    with _lock:
        return _interned.setdefault(key, node)


class Node(metaclass=_Interning):
    """Base of terms, formulas, classes and masks; each class of them is a frozen dataclass.

    Structural equality is identity, because construction returns the one node with the given fields. That makes
    equality and hashing free, and lets the compiler recognise a shared sub-term by looking at ``id``. Nodes hold
    numbers, names and other nodes, never tensors, so they can be pickled, shared between processes and kept as keys.
    """

    __hash__ = object.__hash__
    _names: ClassVar[tuple[str, ...]]  # of the fields
    shape: ClassVar[Shape]  # the axes after the batch axis; set for each node
    # numpy arrays on the left of an operator give way to the node's own reflected operator.
    __array_ufunc__ = None

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(function, "__name__", "the function")
        if name.startswith("__"):  # an operator with a tensor on its left, which gives way to the node's own
            return NotImplemented
        nodes = [value.brief() for value in args if isinstance(value, Node)] or ["x"]
        own = len(nodes) == 1 and name in ("sum", "max", "min", "all", "any")
        remedy = f"write {nodes[0]}.{name}()" if own else f"let the rule call it: dl.apply(torch.{name}, {', '.join(nodes)})"
        raise FormulaTypeError(f"torch's {name} works on tensors, and a rule has none before they are bound; {remedy}")

    def _key(self) -> tuple[Any, ...]:
        """What tells this node from all others."""
        return (type(self), *map(_fingerprint, self.fields()))

    def __post_init__(self) -> None:
        # The axes of a symbol, or of all parts together; indexed or reduced. A node with others finds its own.
        node: Any = self
        names = self._names
        shape = node.sizes if "sizes" in names else broadcast([child.shape for child in children(self)], self)
        if "items" in names:
            _, shape = resolve_index(shape, items_to_key(node.items), self)
        self._derive("shape", remove_dims(shape, node.dims) if "dims" in names else shape)

    def _derive(self, name: str, value: Any) -> None:
        """Set a derived attribute (a shape, for instance) on this frozen node."""
        object.__setattr__(self, name, value)

    def fields(self) -> list[Any]:
        """The values of the fields, in order."""
        return [getattr(self, name) for name in self._names]

    def __reduce__(self) -> tuple[Any, ...]:
        # One flat list, children first: a long sum is a deep tree, and pickle would recurse into it.
        nodes = walk(self)
        places = {id(node): _Place(number) for number, node in enumerate(nodes)}
        records = [(type(node), map_fields(node.fields(), Node, lambda child: places[id(child)])) for node in nodes]
        return _rebuild, (records,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return self

    def brief(self) -> str:
        """The text of this node, cut off where it would drown an error message."""
        from dualogic.formula.printing import to_rope

        return shorten(to_rope(self).start(BRIEF + 1))

    def __repr__(self) -> str:
        from dualogic.formula.printing import to_text

        return to_text(self)

    _no_truth: ClassVar[str]  # what to say where Python asks whether a node is true: {0} is its text, {1} what to write instead
    _no_loop: ClassVar[str]  # where it loops over it
    _instead: ClassVar[str] = ""

    def __bool__(self) -> bool:
        raise FormulaTypeError(self._no_truth.format(self.brief(), self._instead))

    def __iter__(self) -> Any:
        raise FormulaTypeError(self._no_loop.format(self.brief()))

    def _index(self, kind: Any, key: Any) -> Any:
        """A node of this kind for ``self[key]``; this node itself if the key keeps all of it."""
        items, _ = resolve_index(self.shape, key, self)
        return kind(self, items) if any(item != WHOLE for item in items) else self


class _Place(int):
    """Stands for the node at this position of a pickled list."""


def map_fields(fields: Iterable[Any], kind: type, change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The fields of a node, with ``change`` of all that is of a kind in its place."""
    found = list(fields)
    for place, value in enumerate(found):
        if isinstance(value, kind):
            found[place] = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], kind):
            found[place] = tuple(map(change, value))
    return tuple(found)


def _rebuild(records: list[tuple[type[Node], tuple[Any, ...]]]) -> Node:
    nodes: list[Node] = []
    for kind, fields in records:
        nodes.append(kind(*map_fields(fields, _Place, nodes.__getitem__)))
    return nodes[-1]


def children(node: Node) -> tuple[Node, ...]:
    """The nodes that ``node`` is made of, in order."""
    found: list[Node] = []
    for value in node.fields():
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, Node))
    return tuple(found)


def walk(*roots: Node) -> list[Node]:
    """All distinct nodes below ``roots`` in post-order (children before parents), without recursion."""
    seen: set[int] = set()
    order: list[Node] = []
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children(node)))
    return order


Value = TypeVar("Value", bound=Node)


def arithmetic(sign: str, reflected: bool = False) -> Callable[[Operators[Value], Any], Value]:
    """A method for a sign, with the node on its left, or on its right."""

    def calculate(self: Operators[Value], other: Any) -> Value:
        return self._calculate(sign, other, self) if reflected else self._calculate(sign, self, other)

    return calculate


def _comparison(sign: str) -> Callable[[Any, Any], Formula]:
    return lambda self, other: self._compare(sign, other)


class Operators(Node, Generic[Value]):
    """``+ - * **`` on either side of something else, and comparisons with it; a subclass says what is made of them."""

    _no_formula: ClassVar[str]  # what to say of one between connectives

    def _calculate(self, operation: str, left: Any, right: Any) -> Value:
        raise NotImplementedError

    def _compare(self, operation: str, other: Any) -> Formula:
        from dualogic.formula.atom import compare

        return compare(operation, self, other)

    def _refuse_logic(self, other: Any = None) -> Formula:
        raise FormulaTypeError(self._no_formula.format(self.brief()))

    def __pos__(self) -> Self:
        return self

    __and__ = __rand__ = __or__ = __ror__ = __rshift__ = __rrshift__ = _refuse_logic

    def __invert__(self) -> Formula:
        return self._refuse_logic()

    __add__, __radd__ = arithmetic("+"), arithmetic("+", True)
    __sub__, __rsub__ = arithmetic("-"), arithmetic("-", True)
    __mul__, __rmul__ = arithmetic("*"), arithmetic("*", True)
    __pow__, __rpow__ = arithmetic("**"), arithmetic("**", True)
    __le__, __lt__, __ge__, __gt__ = map(_comparison, ("<=", "<", ">=", ">"))
    __eq__, __ne__ = _comparison("=="), _comparison("!=")  # type: ignore[assignment]
    __hash__ = Node.__hash__
