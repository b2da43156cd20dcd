"""Where definitions compute a function of elements, at other positions or in several of them: the places, and which of them are not to be shared.

Functions of windows: a few operations on elements at the sum of two axes, among them sums over a few coordinates, as weights by distances of colours are.

    d[i, j] = sum over c below 3 of (x[i + j, c] - x[i, c])**2,   w[i, j] = exp(-d[i, j])

An array of one is as many times as large as its windows are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.algebra.product import product_of
from jaxte.algebra.simplify import simplify_reads
from jaxte.algebra.sums import weight
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, as_expr, conjuncts
from jaxte.lang.graphs import among, reached
from jaxte.lang.limits import FEW, FUNCTION, LONGEST_UNROLLED, MOST_PARTS
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import (
    all_of,
    depends_on,
    free_axes,
    postorder,
    reads_data,
    reads_of,
    reductions,
    substitute,
)
from jaxte.planning.indices.lines import on_lines
from jaxte.planning.terms import Coordinates, Rewriting, Split, coordinates, term_bounds
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import extent, known
from jaxte.sets.linear import Linear
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class Place:
    """``node`` of ``tensor``: ``key`` at ``positions``, which run from ``lows`` to ``highs``; ``is_chosen`` where a condition decides whether it counts."""

    tensor: Compute
    node: Expr
    key: Expr
    axes: tuple[Axis, ...]
    positions: tuple[Linear, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]
    is_chosen: bool

    @property
    def points(self) -> int:
        return prod(map(extent, free_axes(self.node)))


def places_in(tensor: Compute) -> Iterator[Place]:
    """The largest functions of elements in the body of ``tensor``, and what they are functions of."""
    functions = [n for n in all_of(Call, tensor.body) if _is_function(n)]
    if functions:  # what one number decides is computed once for each of its values
        lines = [f for n in reductions(tensor.body) for f in on_lines(n)]
        functions = [n for n in functions if not among(n, postorder(*lines))] if lines else functions
    gathers = [r for r in reads_of(tensor.body) if is_gather(r)]
    nodes = [*functions, *(a for n in functions for a in n.args if _is_outer(a)), *gathers]
    if not nodes or len(nodes) > MOST_PARTS or len(tensor.axes) == 0:
        return
    guards, always = guards_of(tensor.body, set(nodes)), computed_always(tensor.body, nodes)
    for node in nodes:
        found = _place(tensor, node, guards.get(node, ()), node not in always)
        if found is not None and not _is_row_of_products(found):
            yield found


def computed_always(body: Expr, nodes: Sequence[Expr]) -> set[Expr]:
    """Those of ``nodes`` that ``body`` computes at each of its points, whichever branch of a choice is taken."""
    own = {node: 1 << n for n, node in enumerate(nodes)}
    known: dict[Expr, int] = {}  # as bits
    for node in postorder(body):
        match node:
            case Call(op, (test, taken, other)) if op is SELECT:
                found = known[test] | (known[taken] & known[other])
            case Reduce(where=where) if where is not TRUE:
                found = known[where]
            case _:
                found = 0
                for child in node.children:
                    found |= known[child]
        known[node] = found | own.get(node, 0)
    return {node for node, bit in own.items() if known[body] & bit}


def _is_function(node: Call) -> bool:
    """Whether ``node`` is an expensive function of what is read at positions that are known."""
    if not dtypes.is_float(node.dtype) or weight(node) < FUNCTION or not reads_of(node):
        return False
    return not reads_data(node)


def is_gather(node: Expr) -> bool:
    """Whether ``node`` is an element at positions that are data, of which a sum may read the same ones from several places: what flows back is added up before it is scattered."""
    return isinstance(node, Read) and dtypes.is_float(node.dtype) and any(map(reads_of, node.indices))


def _is_row_of_products(place: Place) -> bool:
    """Whether ``place`` is in a row, at a position that is data, that a matrix is multiplied by: the products of all rows of a table may be gathered as well."""
    if not isinstance(place.node, Read) or not is_operand(place):
        return False
    row = [a for index in place.node.indices if not reads_of(index) for a in free_axes(index)]
    return any(among(a, place.tensor.body.axes) for a in row)  # type: ignore[attr-defined]


def _is_outer(node: Expr) -> bool:
    """Whether ``node``, of which a function is taken, is computed of several elements, some of which are those of other points, too.

    What flows back to each of these is a sum over slopes of the function. With ``node`` as a tensor, slopes are computed once, and what flows back to it from
    all its functions is one tensor.
    """
    if not isinstance(node, Call) or not dtypes.is_float(node.dtype):
        return False
    axes, reads = set(free_axes(node)), reads_of(node)
    return len(reads) > 1 and any(not axes <= set(free_axes(r)) for r in reads)


def _place(tensor: Compute, node: Expr, guards: Sequence[Expr], is_chosen: bool) -> Place | None:
    split = Split((), [node])
    conditions = [c for guard in guards for c in conjuncts(guard)]
    found = coordinates(
        split.terms, term_bounds(split.terms, conditions), tuple(free_axes(node)), turned=True
    )
    if found is None or any(known(as_expr(c.extent)) is None for c in found.order):
        return None
    axes = tuple(CANONICAL[n] for n in range(len(found.order))) if len(found.order) <= len(CANONICAL) else ()
    body = None if not axes else _at(Rewriting(split, found, {})(node), found, axes)
    if body is None or not set(free_axes(body)) <= set(axes):
        return None
    offsets = [_first_offset(body, a) for a in axes]
    key = simplify_reads(substitute(body, {a: a - s for a, s in zip(axes, offsets, strict=True) if s}))
    lows = tuple(c.start + s for c, s in zip(found.order, offsets, strict=True))
    highs = tuple(low + (known(as_expr(c.extent)) or 0) for low, c in zip(lows, found.order, strict=True))
    positions = tuple(c.form + Linear({}, s) for c, s in zip(found.order, offsets, strict=True))
    return Place(tensor, node, key, axes, positions, lows, highs, is_chosen)


CANONICAL = tuple(Axis(f"p{n}", 0, 2**40) for n in range(6))


def _at(body: Expr, found: Coordinates, axes: Sequence[Axis]) -> Expr:
    """``body``, over the axes of ``found``, at positions that count from 0 of what is read."""
    table = {c.axis: a - c.start if c.start else a for c, a in zip(found.order, axes, strict=True)}
    return simplify_reads(substitute(body, table))


def _first_offset(body: Expr, axis: Axis) -> int:
    """What is added to ``axis`` where it is first read by itself; 0 where it never is."""
    for read in (n for n in reads_of(body)):
        for index in read.indices:
            form = linear_or_none(index) if depends_on(index, (axis,)) else None
            if form is not None and form.coefficient(axis) == 1 and len(form.terms) == 1:
                return form.constant
    return 0


def is_spread(place: Place) -> bool:
    """Whether ``place`` stands at quotients or remainders, so that several points have the same element of it: ``cos(a[i // 2])``."""
    return any(not isinstance(atom, Axis) for form in place.positions for atom in form.terms)


def is_operand(place: Place) -> bool:
    """Whether ``place`` is one matrix of a product of them: an array in any case, which what flows back to the other one is multiplied by, too."""
    body, axes = place.tensor.body, set(free_axes(place.node))
    if not isinstance(body, Reduce) or not body.is_sum or body.where is not TRUE:
        return False
    factors = [f.expr for f in product_of(body.exprs[0]).factors]
    others = [f for f in factors if f is not place.node]
    return (
        len(others) == 1 == len(factors) - 1
        and bool(reads_of(others[0]))
        and any(not among(a, body.axes) for a in axes)
        and any(among(a, body.axes) for a in axes.intersection(free_axes(others[0])))
        and not axes <= set(free_axes(others[0]))
    )


def is_weight_of_as_many(place: Place) -> bool:
    """Whether a sum multiplies what ``place`` computes by something else along all of its axes.

    Such a sum of windows is one loop, which computes the function again in registers: non-local means take 0.66 to 0.85 of the time that they take with an
    array of their weights. Weights of what has fewer axes are a matrix, and their sum is a product.
    """
    body, axes = place.tensor.body, set(free_axes(place.node))
    if not isinstance(body, Reduce) or len(body.exprs) != 1:
        return False
    factors = [f.expr for f in product_of(body.exprs[0]).factors]
    others = [f for f in factors if not among(place.node, postorder(f))]
    return len(others) < len(factors) and any(axes <= set(free_axes(f)) for f in others)


_DTYPES = ("float32", "float64")  # sums of narrower ones are kept in float32


def is_window_function(tensor: object, kinds: Sequence[type] = (Compute,)) -> bool:
    """Whether ``tensor`` is of one of ``kinds``, and a function of windows, or of such a function."""
    if not isinstance(tensor, Compute) or not _may_be(tensor, kinds):
        return False
    below = reached([tensor], lambda t: [s for s in t.inputs if isinstance(s, Compute) and _may_be(s, kinds)])
    return any(_reads_windows(t) for t in below)


def positions(node: Reduce) -> int | None:
    """Over how many positions ``node`` runs, where that is known."""
    extents = [known(as_expr(a.extent)) for a in node.axes]
    return None if None in extents else prod(e for e in extents if e is not None)


def _may_be(tensor: Compute, kinds: Sequence[type]) -> bool:
    """Whether ``tensor`` has an axis as short as those of windows, and takes a few operations."""
    if type(tensor) not in kinds or tensor.dtype not in _DTYPES or not any(map(_is_short, tensor.axes)):
        return False
    if tensor.override is not None or tensor.facts or reads_data(tensor.body):
        return False
    return all(_is_sum_of_few(n) for n in reductions(tensor.body))


def _is_short(axis: Axis) -> bool:
    extent = known(as_expr(axis.extent))
    return extent is not None and extent <= LONGEST_UNROLLED


def _is_sum_of_few(node: Reduce) -> bool:
    count = positions(node)
    # Positions of a sum that is written out wherever it is computed.
    return node.is_sum and count is not None and count <= FEW


def _reads_windows(tensor: Tensor) -> bool:
    if not isinstance(tensor, Compute):
        return False
    indices = [index for read in reads_of(tensor.body) for index in read.indices]
    return any(sum(among(a, tensor.axes) for a in free_axes(index)) > 1 for index in indices)
