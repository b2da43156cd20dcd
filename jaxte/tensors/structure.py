"""The graph that tensors form, and what a definition is up to names: equal definitions of other tensors over other axes have equal structures.

Bodies that are equal up to constants, too, node by node: the same node of every step of a loop is a row.

The kinds of tensors that planning takes out of definitions, and that others tell from what a user defined; of what each is a part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import TypeVar
from weakref import WeakValueDictionary

from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, Reducer, as_expr
from jaxte.lang.graphs import ordered
from jaxte.lang.walk import fold, postorder, reads_of, substitute
from jaxte.tensors.tensor import Compute, Tensor


def topological_order(
    tensors: Iterable[Tensor], sources: Callable[[Tensor], Sequence[Tensor]] | None = None
) -> list[Tensor]:
    """Every tensor that ``tensors`` need, each after its ``sources``, by default its inputs, in a fixed order."""
    return ordered(tensors, (lambda tensor: tensor.inputs) if sources is None else sources)


Structure = tuple[Hashable, ...]
Kind = TypeVar("Kind", bound=Compute)


def structure_of(tensor: Compute) -> Structure | None:
    """The definition of ``tensor`` with numbers for the axes and tensors in it; None where more is known of these than their shapes.

    Nodes that are no axes and no reads are told apart by their identity, so that a structure says something only while a tensor that has it
    exists.
    """
    if tensor.facts or any(source.facts for source in tensor.inputs):
        return None
    return _written(tensor)


@lru_cache(maxsize=4096)  # planning, differentiating and lowering ask of the same tensors
def _written(tensor: Compute) -> Structure | None:
    naming = _Naming()
    axes = [naming.axis(axis) for axis in tensor.axes]
    written = id(type(tensor)), tensor.dtype, *axes, *naming.written(tensor.body)
    return written if naming.is_plain else None


Said = TypeVar("Said")
SaysOf = Callable[[Expr], Mapping[Tensor, Said]]


def of_each_kind(most: int) -> Callable[[SaysOf[Said]], SaysOf[Said]]:
    """What a function says of the tensors that a body reads, found once for all bodies that are equal but for these and for their axes.

    Args:
        most: bodies that are remembered.
    """

    def decorate(function: SaysOf[Said]) -> SaysOf[Said]:
        @lru_cache(maxsize=most)
        def first(kind: _Kind) -> Sequence[tuple[int, Said]]:
            numbers = {tensor: n for n, tensor in enumerate(kind.tensors)}
            return [(numbers[tensor], said) for tensor, said in function(kind.body).items()]

        @wraps(function)
        def call(body: Expr) -> Mapping[Tensor, Said]:
            kind = _kind_of(body)
            return function(body) if kind is None else {kind.tensors[n]: said for n, said in first(kind)}

        return call

    return decorate


@dataclass(frozen=True)
class _Kind:
    """A body up to the tensors that it reads and to its axes, which are numbers in its ``structure``: one is as good as another."""

    structure: Structure
    body: Expr = field(compare=False)
    tensors: Sequence[Tensor] = field(compare=False)


def _kind_of(body: Expr) -> _Kind | None:
    """The kind of ``body``; None where more is known of its axes or tensors than their shapes."""
    naming = _Naming()
    written = naming.written(body)
    tensors = naming.tensors
    return _Kind(written, body, tensors) if naming.is_plain and not any(t.facts for t in tensors) else None


class _Naming:
    """Numbers for axes and tensors, in order of appearance."""

    def __init__(self) -> None:
        self.is_plain = True
        self._axes: dict[Axis, int] = {}
        self._tensors: dict[Tensor, int] = {}

    @property
    def tensors(self) -> Sequence[Tensor]:
        """Those that were read, by their numbers."""
        return list(self._tensors)

    def written(self, body: Expr) -> Structure:
        """The nodes of ``body``, each with the numbers of those that it is made of."""
        found: list[Hashable] = []
        numbers: dict[Expr, int] = {}
        for node in postorder(body):
            found.append((self.label(node), tuple(map(numbers.__getitem__, node.children))))
            numbers[node] = len(numbers)
        return tuple(found)

    def axis(self, axis: Axis) -> Hashable:
        if axis.given is not TRUE or axis.ends != (None, None) or _has_axes(axis.lo, axis.hi):
            self.is_plain = False
        number = self._axes.setdefault(axis, len(self._axes))
        return number, axis.name, id(axis.lo), id(axis.hi), axis.reduction

    def label(self, node: Expr) -> Hashable:
        match node:
            case Axis():
                return self.axis(node)
            case Call(op):
                return op.name, op.result, node.dtype, node.weak
            case Read(tensor):
                return self._tensor(tensor)
            case Reduce():
                own = tuple(self.axis(axis) for axis in node.axes)
                return _reducer(node.reducer), own, node.position
        return id(node)

    def _tensor(self, tensor: Tensor) -> Hashable:
        number = self._tensors.setdefault(tensor, len(self._tensors))
        return number, id(type(tensor)), tensor.dtype, tuple(id(as_expr(extent)) for extent in tensor.shape)


def _reducer(reducer: Reducer) -> Hashable:
    nodes: Sequence[Expr] = (*reducer.lhs, *reducer.rhs, *reducer.results, *reducer.identity)
    return reducer.name, reducer.label, reducer.ties, *map(id, nodes)


def _has_axes(*ends: Expr) -> bool:
    return any(end.free for end in ends)


Row = tuple[Expr, ...]
"""The same node of every step, the first step first."""


class Unlike(Exception):
    """The step ``number`` is not like the last one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def outline(body: Expr, known: dict[Hashable, int]) -> int:
    """A number that bodies of one structure share, whatever constants and tensors stand in them."""

    def rule(node: Expr, children: list[int]) -> int:
        key = (*_label(node), *children)
        return known.setdefault(key, len(known))

    return fold(body, rule)  # type: ignore[no-any-return]


def rows_of(bodies: Row, axes: Sequence[Row]) -> list[Row]:
    """The nodes of ``bodies``, over ``axes`` each, row by row: those that others are made of first.

    Raises:
        Unlike: with the last step whose nodes are of another kind.
    """
    done: dict[Row, None] = {}
    bound = set(axes)
    stack: list[tuple[Row, bool]] = [(bodies, False)]
    while stack:
        row, ready = stack.pop()
        if ready:
            done[row] = None
        elif row not in done:
            last = row[-1]
            label = _label(last)
            for number in range(len(row) - 2, -1, -1):
                if row[number] is not last and _label(row[number]) != label:
                    raise Unlike(number)
            if isinstance(last, Reduce):
                bound.update(zip(*(node.axes for node in row if isinstance(node, Reduce)), strict=True))
            stack.append((row, True))
            below = list(zip(*(node.children for node in row), strict=True))
            stack.extend((own, False) for own in reversed(below))
    for row in done:
        if isinstance(row[-1], Axis) and row not in bound:
            raise Unlike(max(n for n in range(len(row) - 1)))
    return list(done)


def _label(node: Expr) -> tuple[Hashable, ...]:
    """What nodes of one row have in common."""
    match node:
        case Axis():
            # what is stated of an axis is an expression of itself, and says nothing of the axis of another step
            plain = node.given is TRUE and node.ends == (None, None)
            return Axis, node.reduction, None if plain else id(node)
        case Const(value):
            differs = type(value) in (int, float)
            return Const, *node.kind, type(value).__name__, "" if differs else repr(value)
        case Call(op):
            return Call, op.name, op.result, node.kind, len(node.args)
        case Read(tensor):
            return Read, tensor.dtype, tensor.ndim
        case Reduce():
            own = tuple((id(a.lo), id(a.hi)) for a in node.axes)
            return Reduce, _reducer(node.reducer), own, node.position, len(node.exprs)
    return type(node).__name__, id(node)


class PartialSum(Compute):
    """A sum over some axes of a larger sum, or a reduction at the terms of its indices."""

    __slots__ = ()


class Known(Compute):
    """A function of positions alone, which is computed when the function that reads it is traced."""

    __slots__ = ()


_LAYOUTS: WeakValueDictionary[Hashable, Compute] = WeakValueDictionary()
CANONICAL = tuple(Axis(f"i{n}", 0, 2**40) for n in range(8))


def laid_out(kind: type[Kind], name: str, axes: Sequence[Axis], element: Expr) -> Kind:
    """A tensor of this ``kind`` that lays another one out, the same one for all definitions that read it so: what flows back to them is added up before it is laid out again."""
    if len(axes) > len(CANONICAL):
        return kind(name, axes, element)
    key = kind, substitute(element, dict(zip(axes, CANONICAL, strict=False))), tuple(a.extent for a in axes)
    found = _LAYOUTS.get(key)
    if not isinstance(found, kind):
        found = _LAYOUTS[key] = kind(name, axes, element)
    return found


class Rows(Compute):
    """Rows of a tensor at positions that are data."""

    __slots__ = ()


def mark_parts(tensor: Compute, old: Expr, new: Expr) -> None:
    """Says of the tensors in ``new``, which takes the place of ``old``, that they are parts of ``tensor``."""
    if new is old:
        return
    known = {read.tensor for read in reads_of(old)}
    order = topological_order(
        [read.tensor for read in reads_of(new)], lambda t: () if t in known else t.inputs
    )
    for part in order:
        if isinstance(part, Compute) and part not in known and part.part_of == part.name:
            part.as_part_of(tensor.part_of)


def axis_names_of(tensor: Tensor) -> list[str]:
    """The names of the axes of a definition; i0, i1, ... of other tensors."""
    return (
        [a.name for a in tensor.axes]
        if isinstance(tensor, Compute)
        else [f"i{n}" for n in range(tensor.ndim)]
    )
