"""Functions of elements that several places compute, in one definition at other positions or in several: a tensor of their own, computed once.

    f[i] = relu(log1p(x[i + 1]) - log1p(x[i]))     is   f[i] = relu(l[i + 1] - l[i])   with   l[p] = log1p(x[p])

    s[i] = sum over j of exp(-d[i, j]),   t[i] = sum over j of exp(-d[i, j]) * y[j]     read one w[i, j] = exp(-d[i, j])

    s[i, j] = sum over k of b[p[i + k], q[j + k]]     is     sum over k of g[i + k, j + k]     with     g[u, v] = b[p[u], q[v]]

What flows back to the element is added up before the slope of the function, which is computed once as well. Whoever writes the element as a tensor has this
already; a function of Python's that returns an expression has not.
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
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW_POSITIONS, FUNCTION, MARGIN, MOST_HELD, MOST_PARTS, SMALL_ARRAY
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import (
    depends_on,
    free_axes,
    postorder,
    reads_data,
    reads_of,
    reductions,
    rewrite,
    substitute,
)
from jaxte.planning.asked import intermediates
from jaxte.planning.indices.lines import on_lines
from jaxte.planning.indices.window_functions import is_window_function
from jaxte.planning.terms import Coordinates, Rewriting, Split, coordinates, reads_windows, term_bounds
from jaxte.sets.affine import Linear, from_linear
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import extent, known
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


class Shared(Compute):
    """What several places compute."""

    __slots__ = ()


@dataclass(frozen=True)
class _Place:
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


def with_shared_elements(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """``outputs`` with what several places of their definitions compute as tensors; the same tuple where there is none."""
    outputs = _without_doubles(outputs)
    order = topological_order(outputs)
    places: dict[Expr, list[_Place]] = {}
    for tensor in order:
        if type(tensor) is Compute and tensor.override is None and not tensor.facts:
            for place in _places(tensor):
                places.setdefault(place.key, []).append(place)
    table = _reads(places)
    if not table:
        return outputs
    new: dict[Tensor, Compute] = {}
    for tensor in order:
        if isinstance(tensor, Compute):
            own = table.get(tensor, {})
            for shared in {read.tensor for read in own.values()} - new.keys():
                new[shared] = _of_new(shared, new)
            body = _replaced(tensor, own, new)
            if body is not tensor.body:
                new[tensor] = tensor.renewed(body)
                new[tensor].with_override(tensor.override)
    return tuple(new.get(t, t) for t in outputs)


def _of_new(shared: Tensor, new: dict[Tensor, Compute]) -> Shared:
    """``shared`` of the ``new`` tensors in place of those that it was found of, which share elements of others in turn."""
    assert isinstance(shared, Shared)
    body = _replaced(shared, {}, new)
    return shared if body is shared.body else Shared(shared.name, shared.axes, body)


def _without_doubles(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """``outputs`` with reductions within expressions, each of which is a tensor, that are the same in several definitions as one."""
    firsts: dict[tuple[Expr, tuple[Expr | int, ...]], Compute] = {}
    new: dict[Tensor, Compute] = {}
    order = topological_order(outputs)
    for tensor in order:
        if not isinstance(tensor, Compute):
            continue
        body = _replaced(tensor, {}, new)
        own = tensor if body is tensor.body else tensor.renewed(body)
        if own is not tensor:
            own.with_override(tensor.override)
        if _is_within(tensor) and not among(tensor, outputs):
            key = substitute(body, dict(zip(tensor.axes, _CANONICAL, strict=False)))
            own = firsts.setdefault((key, tuple(tensor.shape)), own)
        if own is not tensor:
            new[tensor] = own
    return tuple(new.get(t, t) for t in outputs)


def _is_within(tensor: Compute) -> bool:
    """Whether ``tensor`` is a reduction within an expression, ``y_0`` of ``y``, or is called so."""
    plain = type(tensor) is Compute and tensor.override is None and not tensor.facts
    return plain and tensor.name.rpartition("_")[2].isdigit() and len(tensor.axes) <= len(_CANONICAL)


def _replaced(tensor: Compute, table: dict[Expr, Read], new: dict[Tensor, Compute]) -> Expr:
    """The body of ``tensor`` that reads the ``new`` tensors, and what ``table`` says in place of its nodes."""

    def rule(node: Expr) -> Expr:
        return Read(new[node.tensor], node.indices) if isinstance(node, Read) and node.tensor in new else node

    body = substitute(tensor.body, dict(table)) if table else tensor.body
    return rewrite(body, rule) if any(r.tensor in new for r in reads_of(body)) else body


# --- places


def _places(tensor: Compute) -> Iterator[_Place]:
    """The largest functions of elements in the body of ``tensor``, and what they are functions of."""
    functions = [n for n in postorder(tensor.body) if isinstance(n, Call) and _is_function(n)]
    if functions:  # what one number decides is computed once for each of its values
        lines = [f for n in reductions(tensor.body) for f in on_lines(n)]
        functions = [n for n in functions if not among(n, postorder(*lines))] if lines else functions
    gathers = [r for r in reads_of(tensor.body) if _is_gather(r)]
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


def _is_gather(node: Expr) -> bool:
    """Whether ``node`` is an element at positions that are data, of which a sum may read the same ones from several places: what flows back is added up before it is scattered."""
    return isinstance(node, Read) and dtypes.is_float(node.dtype) and any(map(reads_of, node.indices))


def _is_row_of_products(place: _Place) -> bool:
    """Whether ``place`` is in a row, at a position that is data, that a matrix is multiplied by: the products of all rows of a table may be gathered as well."""
    if not isinstance(place.node, Read) or not _is_operand(place):
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


def _place(tensor: Compute, node: Expr, guards: Sequence[Expr], is_chosen: bool) -> _Place | None:
    split = Split((), [node])
    conditions = [c for guard in guards for c in conjuncts(guard)]
    found = coordinates(
        split.terms, term_bounds(split.terms, conditions), tuple(free_axes(node)), turned=True
    )
    if found is None or any(known(as_expr(c.extent)) is None for c in found.order):
        return None
    axes = (
        tuple(_CANONICAL[n] for n in range(len(found.order))) if len(found.order) <= len(_CANONICAL) else ()
    )
    body = None if not axes else _at(Rewriting(split, found, {})(node), found, axes)
    if body is None or not set(free_axes(body)) <= set(axes):
        return None
    offsets = [_first_offset(body, a) for a in axes]
    key = simplify_reads(substitute(body, {a: a - s for a, s in zip(axes, offsets, strict=True) if s}))
    lows = tuple(c.start + s for c, s in zip(found.order, offsets, strict=True))
    highs = tuple(low + (known(as_expr(c.extent)) or 0) for low, c in zip(lows, found.order, strict=True))
    positions = tuple(c.form + Linear({}, s) for c, s in zip(found.order, offsets, strict=True))
    return _Place(tensor, node, key, axes, positions, lows, highs, is_chosen)


_CANONICAL = tuple(Axis(f"p{n}", 0, 2**40) for n in range(6))


def _at(body: Expr, found: Coordinates, axes: Sequence[Axis]) -> Expr:
    """``body``, over the axes of ``found``, at positions that count from 0 of what is read."""
    table = {c.axis: a - c.start if c.start else a for c, a in zip(found.order, axes, strict=True)}
    return simplify_reads(substitute(body, table))


def _first_offset(body: Expr, axis: Axis) -> int:
    """What is added to ``axis`` where it is first read by itself; 0 where it never is."""
    for read in (n for n in postorder(body) if isinstance(n, Read)):
        for index in read.indices:
            form = linear_or_none(index) if depends_on(index, (axis,)) else None
            if form is not None and form.coefficient(axis) == 1 and len(form.terms) == 1:
                return form.constant
    return 0


# --- tensors


def _reads(places: dict[Expr, list[_Place]]) -> dict[Compute, dict[Expr, Read]]:
    """What stands in place of the nodes of each tensor: reads of what is shared, of larger nodes first."""
    table: dict[Compute, dict[Expr, Read]] = {}
    for own in sorted(places.values(), key=lambda group: -len(postorder(group[0].key))):
        left = [p for p in own if not _is_covered(p, table.get(p.tensor, {}))]
        left = _computed_anyway(left)
        shared = _shared(left)
        if shared is None:
            continue
        tensor, starts = shared
        for place in left:
            indices = [from_linear(place.positions[n] + Linear({}, -low)) for n, low in starts.items()]
            table.setdefault(place.tensor, {})[place.node] = Read(tensor, indices)
    return table


def _is_covered(place: _Place, table: dict[Expr, Read]) -> bool:
    """Whether all that ``place`` is part of is read instead."""
    if not table:
        return False
    cut = substitute(place.tensor.body, dict(table))
    return not among(place.node, postorder(cut))


def _computed_anyway(places: Sequence[_Place]) -> list[_Place]:
    """Those of ``places`` whose elements no condition keeps from being computed, there or in another one: what a choice excludes may be infinite."""
    whole = [p for p in places if not p.is_chosen]
    while True:
        if not whole:
            return []
        lows, highs = _hull(whole)
        if _fill(whole, lows, highs):
            break
        whole.pop()
    within = [p for p in places if p.is_chosen and _hull([*whole, p]) == (lows, highs)]
    return [*whole, *within]


def _hull(places: Sequence[_Place]) -> tuple[list[int], list[int]]:
    count = range(len(places[0].axes))
    return [min(p.lows[n] for p in places) for n in count], [max(p.highs[n] for p in places) for n in count]


def _fill(places: Sequence[_Place], lows: Sequence[int], highs: Sequence[int]) -> bool:
    """Whether every point between ``lows`` and ``highs`` is one of a place: all run as far along all axes but one, on which they meet."""
    apart = [
        n for n in range(len(lows)) if {(p.lows[n], p.highs[n]) for p in places} != {(lows[n], highs[n])}
    ]
    if len(apart) > 1:
        return False
    for n in apart:
        runs = sorted((p.lows[n], p.highs[n]) for p in places)
        reach = runs[0][1]
        for low, high in runs[1:]:
            if low > reach:
                return False
            reach = max(reach, high)
    return True


def _shared(places: Sequence[_Place]) -> tuple[Shared, dict[int, int]] | None:
    """The tensor for ``places``, and for each of its axes which position it is, and where that begins; None where it gains nothing."""
    if not places:
        return None
    again = sum(p.points for p in places if _is_operand(p))
    first = places[0]
    if len(places) < 2 and not again and not _is_spread(first) and not _is_gather(first.node):
        return None  # of rows that are read once, there are as many as points
    lows, highs = _hull(places)
    count = prod(high - low for low, high in zip(lows, highs, strict=True))
    size = count * dtypes.width(first.key.dtype)
    if not SMALL_ARRAY <= size <= MOST_HELD or count * MARGIN > again + sum(p.points for p in places):
        return None
    if reads_windows(first.key) and any(map(_is_weight_of_as_many, places)):
        return None
    if intermediates().within and any(is_window_function(r.tensor) for r in reads_of(first.key)):
        return None
    axes = [
        Axis(_axis_of(f).name, 0, high - low)
        for f, low, high in zip(first.positions, lows, highs, strict=True)
    ]
    body = simplify_reads(
        substitute(first.key, {c: a + low for c, a, low in zip(first.axes, axes, lows, strict=True)})
    )
    summed = [not among(_axis_of(f), first.tensor.axes) for f in first.positions]
    # Positions of a sum that are written one after the other, each a slice.
    order = sorted(range(len(axes)), key=lambda n: summed[n] and highs[n] - lows[n] > FEW_POSITIONS)
    axes = [axes[n] for n in order]
    if not reads_inside(axes, body):
        return None
    name = f"{first.tensor.name}_{first.node.op.name if isinstance(first.node, Call) else 'rows'}"
    return Shared(name, axes, body), {n: lows[n] for n in order}


def _axis_of(position: Linear) -> Axis:
    """After which an axis is called; those of the first definition stand before what it sums over, so that several tensors are laid out alike, but not before taps."""
    return next(axis for atom in position.terms for axis in free_axes(atom))


def is_kept(tensor: Tensor) -> bool:
    """Whether ``tensor`` is what several places compute, and is rather kept than computed again: XLA finds the functions of it that the forward pass took."""
    return isinstance(tensor, Shared) and not reads_windows(tensor.body)


def _is_spread(place: _Place) -> bool:
    """Whether ``place`` stands at quotients or remainders, so that several points have the same element of it: ``cos(a[i // 2])``."""
    return any(not isinstance(atom, Axis) for form in place.positions for atom in form.terms)


def _is_operand(place: _Place) -> bool:
    """Whether ``place`` is one matrix of a product of them: an array in any case, which what flows back to the other one is multiplied by, too."""
    body, axes = place.tensor.body, set(free_axes(place.node))
    if not isinstance(body, Reduce) or body.reducer.name != "sum" or body.where is not TRUE:
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


def _is_weight_of_as_many(place: _Place) -> bool:
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
