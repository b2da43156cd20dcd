"""Points that are out of range, or read by nobody: what is computed there is NaN, or stays as it is.

Rows gathered at positions that may be out of range, of which a function is taken, are multiplied by NaN there, not chosen.
Between a gather and a function such as ``exp``, a choice keeps XLA on the CPU from computing the function of several elements at a time:
``tanh(x[s] - x[t])`` takes two to three times as long as without it. The nearest rows times 1 where a position is in range, and 0 / 0 elsewhere, have the same
elements, 0 with its sign and infinity among them. (Of a choice between 1 and NaN that is multiplied in, XLA makes one between elements and NaN.)

A sum within a choice is a tensor of its own that sums where it is asked for,

    s[i, j] = sum(q[i, c] * k[j, c] for c in [0, 16) where j <= i)
    S[i, j] = select(j <= i, s[i, j] / 4, -1e9)

As a product of matrices it is computed everywhere. Zeros in place of what nobody reads would be chosen twice, once for ``s`` and once for ``S``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from jaxte.lang import dtypes
from jaxte.lang.expr import Expr, Read, Reduce, as_expr, conjuncts
from jaxte.lang.graphs import Members, among
from jaxte.lang.operators import DIVIDE, LESS, MULTIPLY
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.arrays.data import CLIP, FILL, Gather
from jaxte.lower.arrays.elementwise import Apply, Cast, Name, Number, size
from jaxte.lower.arrays.node import Node, nodes_below
from jaxte.lower.arrays.views import ALL, NEW, Broadcast, Index, View
from jaxte.lower.code.lines import Names
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.lower.tiles.tiling import Tiles
from jaxte.lower.views.condition_box import split_conditions
from jaxte.lower.views.scope import Scope
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.tensor import Compute, Tensor

Flows = dict[str, frozenset[str]]


def with_rows_multiplied(statements: Sequence[AnyStatement], names: Names) -> list[AnyStatement]:
    """``statements`` in which NaN is multiplied into the rows that functions are taken of."""
    gathers = {s.target: s.source for s in statements if isinstance(s, Statement) and _is_row(s.source)}
    wanted = _met_by_functions(statements, frozenset(gathers)) if gathers else frozenset()
    found: list[AnyStatement] = []
    factors: dict[Node, Name] = {}  # 1 where a position is inside, NaN elsewhere
    for statement in statements:
        if isinstance(statement, Statement) and statement.target in wanted:
            own = gathers[statement.target]
            assert isinstance(own, Gather)
            position = _position(own)
            assert position is not None
            if position not in factors:
                one = _one_inside(own, position)
                inside = Name(names.new(f"{statement.target}_inside"), one.shape, one.kind)
                factor = Name(names.new(f"{statement.target}_nan_outside"), one.shape, one.kind)
                found.append(Statement(statement.scope, inside.identifier, one))
                found.append(Statement(statement.scope, factor.identifier, Apply(DIVIDE, (inside, inside))))
                factors[position] = factor
            statement = replace(statement, source=_multiplied(own, factors[position]))
        found.append(statement)
    return found


def _is_row(source: Node) -> bool:
    """Whether ``source`` is rows that are gathered at one array of positions, with NaN outside."""
    if not isinstance(source, Gather) or source.mode != FILL or not dtypes.is_float(source.dtype):
        return False
    position = _position(source)
    is_nan = (
        isinstance(source.fill, Number)
        and isinstance(source.fill.value, float)
        and math.isnan(source.fill.value)
    )
    return is_nan and position is not None and position.dtype == "int32" and position.ndim < source.ndim


def _position(gather: Gather) -> Node | None:
    """The array of positions, if there is only one."""
    given = [p for p in gather.positions if p is not None]
    return given[0] if len(given) == 1 else None


def _one_inside(gather: Gather, position: Node) -> Node:
    """1 where the position is in range, else 0. Those below zero are large as numbers without a sign."""
    dim = next(n for n, p in enumerate(gather.positions) if p is not None)
    return Cast(Apply(LESS, (Cast(position, "uint32"), size(as_expr(gather.array.shape[dim])))), gather.dtype)


def _multiplied(gather: Gather, factor: Name) -> Node:
    dim = next(n for n, p in enumerate(gather.positions) if p is not None)
    row: Node = factor
    behind = gather.array.ndim - dim - 1
    if behind:
        row = View(row, Index((*[ALL] * factor.ndim, *[NEW] * behind)))
    return Apply(MULTIPLY, (replace(gather, mode=CLIP, fill=None), row))


def _met_by_functions(statements: Sequence[AnyStatement], rows: frozenset[str]) -> frozenset[str]:
    """Those of ``rows`` of which a function is taken, of what elements of them give in a few operations too."""
    flows: Flows = {name: frozenset({name}) for name in rows}
    met: set[str] = set()
    for statement in statements:
        if isinstance(statement, Statement):
            own = dict(_flows(statement.source, flows))
            met.update(*(own[n] for n in own if isinstance(n, Apply) and not TABLE[n.op.name].cheap))
            flows.setdefault(statement.target, own[statement.source])
    return frozenset(met)


def _flows(source: Node, flows: Flows) -> Iterator[tuple[Node, frozenset[str]]]:
    """For each node below ``source``, the rows that its elements are made of, each from the same row."""
    found: dict[Node, frozenset[str]] = {}
    for node in nodes_below(source):
        if isinstance(node, Name):
            found[node] = flows.get(node.identifier, frozenset())
        elif isinstance(node, (Apply, Cast, View, Broadcast)):
            found[node] = frozenset().union(*(found[o] for o in node.operands))
        else:
            found[node] = frozenset()
        yield node, found[node]


def unread_points(
    order: Sequence[Tensor | Tiles], results: Members[Tensor], original: Mapping[Tensor, Tensor]
) -> dict[Tensor, tuple[Expr, ...]]:
    """For sums of ``order`` that are none of ``results``: conditions on their own positions that hold wherever they are read.

    Args:
        order: what a program computes.
        results: what it returns.
        original: the tensors that are read, where others are computed in their place.
    """
    own = {original.get(t, t): _conditions(t) for t in order if isinstance(t, Compute)}
    asked = {t: held for t, held in own.items() if held and t not in results}
    for item in order if asked else ():
        for tensor in _read_otherwise(item):
            asked.pop(tensor, None)
        if isinstance(item, Compute):
            _ask(item, asked)
    return asked


def _conditions(tensor: Compute) -> tuple[Expr, ...]:
    """Conditions on two positions of ``tensor`` without which its sum is zero."""
    if not isinstance(tensor.body, Reduce):
        return ()
    parts = split_conditions(tensor.body.where, Scope(tensor.axes)) or ()
    return tuple(p for p in parts if len(free_axes(p)) > 1 and _is_of(p, tensor))


def _is_of(condition: Expr, tensor: Compute) -> bool:
    return not reads_of(condition) and all(among(a, tensor.axes) for a in free_axes(condition))


def _read_otherwise(item: Tensor | Tiles) -> Iterable[Tensor]:
    """What ``item`` reads that is not chosen by conditions: of a sum, factors are masked, or all of them where one is zero."""
    if isinstance(item, Compute) and not item.body.reduces:
        return ()
    return item.inputs


def _ask(reader: Compute, asked: dict[Tensor, tuple[Expr, ...]]) -> None:
    """Leaves in ``asked`` what holds wherever ``reader`` reads."""
    reads = {r for r in reads_of(reader.body) if r.tensor in asked}
    for read, axes, held in contexts(reader.axes, reader.body, reads) if reads else ():
        tensor = read.tensor
        left = tuple(c for c in asked.get(tensor, ()) if _holds(c, read, held, Scope(axes)))
        if left:
            asked[tensor] = left
        else:
            asked.pop(tensor, None)


def _holds(condition: Expr, read: Read, held: Sequence[Expr], scope: Scope) -> bool:
    assert isinstance(read.tensor, Compute)
    there = substitute(condition, dict(zip(read.tensor.axes, read.indices, strict=True)))
    wanted = split_conditions(there, scope)
    known = [k for c in held for part in conjuncts(c) for k in split_conditions(part, scope) or ()]
    return wanted is not None and all(among(w, known) for w in wanted)
