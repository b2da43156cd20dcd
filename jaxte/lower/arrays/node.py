"""What all nodes of the array language are: frozen, interned, with a shape and a dtype that are inferred when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache, cached_property
from operator import is_
from threading import Lock
from typing import Any, TypeVar

from jaxte.lang.dtypes import Kind
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import ONE, Const, Expr, Reducer
from jaxte.lang.graphs import field_names
from jaxte.lang.interning import ByKey
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.intervals import plus, same

Shape = tuple[Expr, ...]
_N = TypeVar("_N")
_NUMBERS = (bool, int, float, complex)
_lock = Lock()
_nodes: ByKey[Any] = ByKey()


class ArrayError(LoweringError):
    """An array program that has no meaning: shapes or dtypes that do not meet, an index out of range."""


class Interned(type):
    """Makes equal nodes one object: a node of a class is found by its fields."""

    def __call__(cls: Callable[..., _N], *args: Any, **given: Any) -> _N:
        if given or len(args) < len(field_names(cls)):
            args = _all_fields(cls, args, given)
        # numbers that Python takes for equal, as 1 and 1.0 and True, are written differently
        key: tuple[Any, ...] = (cls, *args)
        for value in args:
            if isinstance(value, _NUMBERS):
                key = (cls, *[(type(v), repr(v)) if isinstance(v, _NUMBERS) else v for v in args])
                break
        with _lock:
            there = _nodes.references.get(key)
            node = None if there is None else there()
            if node is None:
                node = object.__new__(cls)  # type: ignore[arg-type]
                # no constructor of a node does more
                node.__dict__.update(zip(field_names(cls), args, strict=True))
                _nodes.add(key, node)
        return node


def _all_fields(cls: Any, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Any, ...]:
    own = list(args)
    for f in _fields(cls)[len(args) :]:
        value = given.pop(f.name) if f.name in given else f.default
        if value is MISSING:
            raise TypeError(f"{cls.__name__} needs {f.name}")
        own.append(value)
    if given:
        raise TypeError(f"{cls.__name__} has no {', '.join(given)}")
    return tuple(own)


@dataclass(frozen=True, eq=False)
class Node(metaclass=Interned):
    """An array, or a tuple of arrays, and how it is computed from others."""

    @property
    def shape(self) -> Shape:
        """The extents.

        Raises:
            ArrayError: it is no single array, or is made of arrays that do not fit.
        """
        raise ArrayError(f"{type(self).__name__} has no shape")

    @property
    def kind(self) -> Kind:
        """The dtype that JAX gives it, and whether it is weak."""
        raise ArrayError(f"{type(self).__name__} has no dtype")

    @property
    def is_tuple(self) -> bool:
        """Whether it is several arrays, or what only a function of the user knows: there is no shape then."""
        return False

    @property
    def dtype(self) -> str:
        return self.kind[0]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @cached_property
    def operands(self) -> tuple[Node, ...]:
        """The nodes that it is made of, in the order of its fields."""
        found: list[Node] = []
        waiting = [*map(self.__dict__.__getitem__, reversed(names_of(self)))]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                waiting += reversed(value)
        return tuple(found)

    @cached_property
    def kinds(self) -> frozenset[type]:
        """The classes of the node and of all that it is made of: what a pass looks for is in few statements."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting[-1]
            own: set[type] = {type(node)}
            before = len(waiting)
            for operand in node.operands:
                below = operand.__dict__.get("kinds")
                if below is None:
                    waiting.append(operand)
                else:
                    own |= below
            if len(waiting) == before:
                node.__dict__["kinds"] = frozenset(own)
                waiting.pop()
        return self.__dict__["kinds"]  # type: ignore[no-any-return]


@cache
def _fields(cls: Any) -> tuple[Field[Any], ...]:
    return fields(cls)


def names_of(value: Any) -> tuple[str, ...]:
    """The names of the fields of a node, or of another record."""
    kind: Any = type(value)
    return field_names(kind)


def extents_in(node: Node) -> Iterator[Expr]:
    """The index expressions and extents in the fields of ``node`` itself."""
    for name in names_of(node):
        yield from _exprs_in(getattr(node, name))


def _exprs_in(value: Any) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _exprs_in(item)
    elif is_dataclass(value) and not isinstance(value, (Node, Reducer)):
        for name in names_of(value):
            yield from _exprs_in(getattr(value, name))


def nodes_below(*roots: Node) -> list[Node]:
    """Every node that ``roots`` are made of, each once, operands first: :func:`ordered`, which is asked for these more than for all else."""
    done: list[Node] = []
    stack: list[Node | None] = [*reversed(roots)]
    entered: set[Node] = set()
    while stack:
        node = stack.pop()
        if node is None:  # what the next one needs is done
            done.append(stack.pop())  # type: ignore[arg-type]
        elif node not in entered:
            entered.add(node)
            if own := node.operands:
                stack += (node, None, *own[::-1])
            else:
                done.append(node)
    return done


def replaced(root: Node, table: Mapping[Node, Node]) -> Node:
    """``root`` with the nodes that are keys of ``table`` replaced by its values."""
    nodes = nodes_below(root)
    if table.keys().isdisjoint(nodes):
        return root
    memo = dict(table)
    for node in nodes:
        if node not in memo:
            memo[node] = rebuilt(node, memo)
    return memo[root]


def rewritten(root: Node, rule: Callable[[Node], Node]) -> Node:
    """``root`` with ``rule`` of each node below it in place of the node, operands first."""
    made: dict[Node, Node] = {}
    for node in nodes_below(root):
        made[node] = rule(rebuilt(node, made))
    return made[root]


def rebuilt(node: Node, table: Mapping[Node, Node]) -> Node:
    """``node`` with its operands replaced by what ``table`` has for them; itself where these are the same."""
    for operand in node.operands:
        if table.get(operand, operand) is not operand:
            break
    else:
        return node
    return type(node)(*(_replaced_in(getattr(node, name), table) for name in names_of(node)))


def _replaced_in(value: Any, table: Mapping[Node, Node]) -> Any:
    if isinstance(value, Node):
        return table.get(value, value)
    if isinstance(value, tuple):
        items = tuple(_replaced_in(item, table) for item in value)
        return value if all(map(is_, value, items)) else items
    if is_dataclass(value) and not isinstance(value, (type, Expr, Reducer)):
        own = [getattr(value, name) for name in names_of(value)]
        new = [_replaced_in(item, table) for item in own]
        # an entry of an index is told by identity
        return value if all(map(is_, own, new)) else type(value)(*new)
    return value


# --- extents


def times(a: Expr, b: Expr) -> Expr:
    """The product of two extents, one of them a number."""
    number, other = (a, b) if isinstance(a, Const) else (b, a)
    if not isinstance(number, Const):
        raise ArrayError(f"the product of {a!r} and {b!r} is no extent")
    return from_linear(linear(other) * int(number.value))  # type: ignore[arg-type]


def windows(
    extent: Expr, spacing: int, padding: tuple[Expr, Expr], size: Expr, dilation: int, stride: int
) -> Expr:
    """How many windows of ``size`` elements, ``dilation`` apart, begin ``stride`` apart on an array with padding.

    The ``extent`` elements of the array are ``spacing`` apart.
    """
    room = plus(times(plus(spacing), plus(extent, -1)), 1, *padding)
    reach = plus(times(plus(dilation), plus(size, -1)), 1)
    return normal((room - reach) // stride + 1)


def same_shape(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def broadcast_shape(shapes: Sequence[Sequence[Expr]]) -> Shape:
    """The shape that arrays of ``shapes`` have together.

    Raises:
        ArrayError: they do not fit.
    """
    result: list[Expr] = []
    for own in shapes:
        result = [ONE] * (len(own) - len(result)) + result
        for n, extent in enumerate(own, len(result) - len(own)):
            if result[n] is ONE:
                result[n] = extent
            elif extent is not ONE and not same(extent, result[n]):
                raise ArrayError(f"arrays of shapes {list(map(list, shapes))} do not fit")
    return tuple(result)
