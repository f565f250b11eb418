"""Interned, immutable nodes: two nodes that look the same *are* the same object; and the operators of those that are numbers."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast
from weakref import WeakValueDictionary

from typing_extensions import dataclass_transform

from dualogic.errors import FormulaTypeError
from dualogic.formula.indexing import items_to_key, resolve_index
from dualogic.formula.shape import BRIEF, Deferred, Shape, broadcast, shorten

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
    shape: ClassVar[Shape]  # the axes after the batch axis; set for each node
    # numpy arrays on the left of an operator give way to the node's own reflected operator.
    __array_ufunc__ = None

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(function, "__name__", "the function")
        if name.startswith("__"):  # an operator with a tensor on its left, which gives way to the node's own
            return NotImplemented
        raise FormulaTypeError(
            f"torch's {name} works on tensors, and a rule has none before they are bound; let the rule call it: "
            f"dl.apply(torch.{name}, x)"
        )

    @classmethod
    def _field_names(cls) -> tuple[str, ...]:
        names = cls.__dict__.get("_names")
        if names is None:
            names = tuple(field.name for field in dataclasses.fields(cls))
            cls._names = names  # type: ignore[attr-defined]
        return cast("tuple[str, ...]", names)

    def _key(self) -> tuple[Any, ...]:
        """What tells this node from all others."""
        return (type(self), *[_fingerprint(getattr(self, name)) for name in self._field_names()])

    _written: ClassVar[str] = ""  # of a node with two sides: what a message calls it whose axes do not fit

    def __post_init__(self) -> None:
        # The axes of two sides, of a symbol, of what is indexed, and of what has one operand; any other node finds its own.
        node: Any = self
        names = self._field_names()
        if self._written:
            first, second = (node.left, node.right) if "left" in names else (node.antecedent, node.consequent)
            shape = broadcast((first.shape, second.shape), Deferred(lambda: self._written.format(self)))
        else:
            shape = node.sizes if "sizes" in names else node.operand.shape
        if "items" in names:
            _, shape = resolve_index(shape, items_to_key(node.items), Deferred(self.__str__))
        self._derive("shape", shape)

    def _derive(self, name: str, value: Any) -> None:
        """Set a derived attribute (a shape, for instance) on this frozen node."""
        object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # One flat list, children first: a long sum is a deep tree, and pickle would recurse into it.
        places = {id(node): _Place(number) for number, node in enumerate(walk(self))}
        records = [
            (type(node), tuple(_encode(getattr(node, name), places) for name in node._field_names())) for node in walk(self)
        ]
        return _rebuild, (records,)

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return self

    def brief(self) -> str:
        """The text of this node, cut off where it would drown an error message."""
        from dualogic.formula.printing import to_rope

        return shorten(to_rope(self).start(BRIEF + 1))

    def __str__(self) -> str:
        from dualogic.formula.printing import to_text

        return to_text(self)

    def __repr__(self) -> str:
        return str(self)


class _Place(int):
    """Stands for the node at this position of a pickled list."""


def _encode(value: Any, places: dict[int, _Place]) -> Any:
    if isinstance(value, Node):
        return places[id(value)]
    return tuple(_encode(item, places) for item in value) if isinstance(value, tuple) else value


def _decode(value: Any, nodes: list[Node]) -> Any:
    if isinstance(value, _Place):
        return nodes[value]
    return tuple(_decode(item, nodes) for item in value) if isinstance(value, tuple) else value


def _rebuild(records: list[tuple[type[Node], tuple[Any, ...]]]) -> Node:
    nodes: list[Node] = []
    for kind, fields in records:
        nodes.append(kind(*(_decode(value, nodes) for value in fields)))
    return nodes[-1]


def children(node: Node) -> tuple[Node, ...]:
    """The nodes that ``node`` is made of, in order."""
    found: list[Node] = []
    for name in node._field_names():
        value = getattr(node, name)
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
