"""Bodies that are equal up to names, constants and the tensors that they read, node by node: the same node of every step of a loop is a row."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, Reducer
from jaxte.lang.walk import fold

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


def _reducer(reducer: Reducer) -> Hashable:
    nodes = (*reducer.lhs, *reducer.rhs, *reducer.results, *reducer.identity)
    return reducer.name, reducer.label, reducer.ties, *map(id, nodes)
