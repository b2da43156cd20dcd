"""Functions of elements that several places compute, in one definition at other positions or in several: a tensor of their own, computed once.

    f[i] = relu(log1p(x[i + 1]) - log1p(x[i]))     is   f[i] = relu(l[i + 1] - l[i])   with   l[p] = log1p(x[p])

    s[i] = sum over j of exp(-d[i, j]),   t[i] = sum over j of exp(-d[i, j]) * y[j]     read one w[i, j] = exp(-d[i, j])

    s[i, j] = sum over k of b[p[i + k], q[j + k]]     is     sum over k of g[i + k, j + k]     with     g[u, v] = b[p[u], q[v]]

What flows back to the element is added up before the slope of the function, which is computed once as well. Whoever writes the element as a tensor has this
already; a function of Python's that returns an expression has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.algebra.simplify import simplify_reads
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Expr, Read
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW_POSITIONS, MARGIN, MOST_HELD, SMALL_ARRAY
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.indices.shared_places import (
    CANONICAL,
    Place,
    is_gather,
    is_operand,
    is_spread,
    is_weight_of_as_many,
    is_window_function,
    places_in,
)
from jaxte.planning.terms import reads_windows
from jaxte.sets.affine import from_linear
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import extent
from jaxte.sets.linear import Linear
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


class Shared(Compute):
    """What several places compute."""

    __slots__ = ()


def with_shared_elements(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """``outputs`` with what several places of their definitions compute as tensors; the same tuple where there is none."""
    outputs = _without_doubles(outputs)
    order = topological_order(outputs)
    places: dict[Expr, list[Place]] = {}
    for tensor in order:
        if type(tensor) is Compute and tensor.override is None and not tensor.facts:
            for place in places_in(tensor):
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
            key = substitute(body, dict(zip(tensor.axes, CANONICAL, strict=False)))
            own = firsts.setdefault((key, tuple(tensor.shape)), own)
        if own is not tensor:
            new[tensor] = own
    return tuple(new.get(t, t) for t in outputs)


def _is_within(tensor: Compute) -> bool:
    """Whether ``tensor`` is a reduction within an expression, ``y_0`` of ``y``, or is called so."""
    plain = type(tensor) is Compute and tensor.override is None and not tensor.facts
    return plain and tensor.name.rpartition("_")[2].isdigit() and len(tensor.axes) <= len(CANONICAL)


def _replaced(tensor: Compute, table: dict[Expr, Read], new: dict[Tensor, Compute]) -> Expr:
    """The body of ``tensor`` that reads the ``new`` tensors, and what ``table`` says in place of its nodes."""

    def rule(node: Expr) -> Expr:
        return Read(new[node.tensor], node.indices) if isinstance(node, Read) and node.tensor in new else node

    body = substitute(tensor.body, dict(table)) if table else tensor.body
    return rewrite(body, rule) if any(r.tensor in new for r in reads_of(body)) else body


# --- places


# --- tensors


def _reads(places: dict[Expr, list[Place]]) -> dict[Compute, dict[Expr, Read]]:
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


def _is_covered(place: Place, table: dict[Expr, Read]) -> bool:
    """Whether all that ``place`` is part of is read instead."""
    if not table:
        return False
    cut = substitute(place.tensor.body, dict(table))
    return not among(place.node, postorder(cut))


def _computed_anyway(places: Sequence[Place]) -> list[Place]:
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


def _hull(places: Sequence[Place]) -> tuple[list[int], list[int]]:
    count = range(len(places[0].axes))
    return [min(p.lows[n] for p in places) for n in count], [max(p.highs[n] for p in places) for n in count]


def _fill(places: Sequence[Place], lows: Sequence[int], highs: Sequence[int]) -> bool:
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


def _shared(places: Sequence[Place]) -> tuple[Shared, dict[int, int]] | None:
    """The tensor for ``places``, and for each of its axes which position it is, and where that begins; None where it gains nothing."""
    if not places:
        return None
    again = sum(p.points for p in places if is_operand(p))
    first = places[0]
    if len(places) < 2 and not again and not is_spread(first) and not is_gather(first.node):
        return None  # of rows that are read once, there are as many as points
    lows, highs = _hull(places)
    count = prod(high - low for low, high in zip(lows, highs, strict=True))
    size = count * dtypes.width(first.key.dtype)
    if not SMALL_ARRAY <= size <= MOST_HELD or count * MARGIN > again + sum(p.points for p in places):
        return None
    if reads_windows(first.key) and any(map(is_weight_of_as_many, places)):
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
    order = _as_it_lies(body, axes) or order
    axes = [axes[n] for n in order]
    if not reads_inside(axes, body):
        return None
    name = f"{first.tensor.name}_{first.node.op.name if isinstance(first.node, Call) else 'rows'}"
    return Shared(name, axes, body), {n: lows[n] for n in order}


def _as_it_lies(body: Expr, axes: Sequence[Axis]) -> list[int] | None:
    """The places of ``axes`` in the order of the one array that ``body`` is a function of, element by element; None where it reads another, or few positions along an axis.

    A function of an array in another order is computed again for each product that reads it, or copied.
    """
    read, *others = reads_of(body)
    if others or len(read.indices) != len(axes) or any(extent(a) <= FEW_POSITIONS for a in axes):
        return None
    forms = [linear_or_none(index) for index in read.indices]
    found = [
        n
        for f in forms
        if f is not None
        for n, a in enumerate(axes)
        if f.coefficient(a) == 1 and len(f.terms) == 1
    ]
    return found if len({*found}) == len(found) == len(axes) else None


def _axis_of(position: Linear) -> Axis:
    """After which an axis is called; those of the first definition stand before what it sums over, so that several tensors are laid out alike, but not before taps."""
    return next(axis for atom in position.terms for axis in free_axes(atom))


def is_kept(tensor: Tensor) -> bool:
    """Whether ``tensor`` is what several places compute, and is rather kept than computed again: XLA finds the functions of it that the forward pass took."""
    return isinstance(tensor, Shared) and not reads_windows(tensor.body)
