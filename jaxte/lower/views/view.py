"""A read as a view: slices, pads, reshapes and transposes of the tensor, never an index array.

First the dimensions of the tensor that are read as digits of one number (``X[f // 4, f % 4]``) are merged by a
reshape. Then each dimension has steps of its own (``axis_views``), which are carried out side by side. Last, a
dimension read twice (``X[i, i]``) is a stride over the flattened pair: ``jnp.diagonal`` gathers, a slice does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from jaxte.lang.divisions import Remainder, division, divisions
from jaxte.lang.expr import ZERO, Axis, Expr, as_expr
from jaxte.lang.graphs import among, place_of
from jaxte.lower.arrays.views import (
    ALL,
    Entry,
    Index,
    Pad,
    Range,
    Repeat,
    Reshape,
    Roll,
    Step,
    Tile,
    Transpose,
    shape_after,
)
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.affine import fetch, lift, row_of
from jaxte.lower.views.one_axis import axis_view
from jaxte.lower.views.rotated import elements_copied, flat_views, is_worth_making, shares_axes
from jaxte.sets.affine import floor_divide, from_linear, linear, mod, normal
from jaxte.sets.intervals import constant, dims_of, known, same, stays_in, times
from jaxte.sets.resolved import simplify


def view(shape: Sequence[Expr], indices: Sequence[Expr], order: Sequence[Axis] = ()) -> View | Refusal:
    """The array ``T[indices]`` over the dimensions in ``indices``, for a tensor of ``shape``; zeros out of range.

    Of dimensions that overlap and are as long, those that come first in ``order`` are the rows.
    """
    own = {dim for index in indices for dim in dims_of(index)}
    return _view(tuple(shape), tuple(indices), tuple([d for d in order if d in own]))


@lru_cache(maxsize=4096)  # tensors of one shape are read alike, and each scope asks for itself
def _view(shape: tuple[Expr, ...], indices: tuple[Expr, ...], order: tuple[Axis, ...]) -> View | Refusal:
    indices = tuple([simplify(i, {}) for i in indices])
    found = _by_dimensions(shape, indices, order)
    if isinstance(found, Refusal) or not any(isinstance(step, (Tile, Repeat)) for step in found.steps):
        return found
    return _least_copied(shape, indices, found)


def _by_dimensions(shape: Sequence[Expr], indices: Sequence[Expr], order: Sequence[Axis]) -> View | Refusal:
    """The view that takes the dimensions of the tensor each by itself, and axes that stand in two of them last."""
    plain = _plain_slices(shape, indices)
    if plain is not None:
        return plain
    merged = _merged_neighbours(shape, indices)
    if isinstance(merged, Refusal):
        return merged
    first, extents, indices = merged
    parts: list[View] = []
    for extent, index in zip(extents, indices, strict=True):
        part = axis_view(extent, index, order=tuple(order) if len(dims_of(index)) > 1 else ())
        if isinstance(part, Refusal):
            return part
        parts.append(part)
    joined = View((*first, *_side_by_side(parts, extents)), tuple(d for part in parts for d in part.dims))
    return _take_diagonals(joined)


def _plain_slices(shape: Sequence[Expr], indices: Sequence[Expr]) -> View | None:
    """The view of indices that are axes, each another one, at a distance from them and in range, as most are; None of others."""
    dims: list[Axis] = []
    entries: list[Entry] = []
    for extent, index in zip(shape, indices, strict=True):
        form = linear(index)
        dim = next(iter(form.terms), None)
        if len(form.terms) != 1 or not isinstance(dim, Axis) or form.terms[dim] != 1 or among(dim, dims):
            return None
        size, count = known(extent), known(dim.hi)
        if size is None or not count or not 0 <= form.constant <= size - count:
            return None
        dims.append(dim)
        entries.append(row_of(size, form.constant, count))
    sliced = any(entry is not ALL for entry in entries)
    return View((Index(tuple(entries)),) if sliced else (), tuple(dims))


def _least_copied(shape: Sequence[Expr], indices: Sequence[Expr], found: View) -> View | Refusal:
    """``found``, or one of the flat tensor that copies less; none where that is many times what is read and returned."""
    others = flat_views(shape, indices) if shares_axes(indices) else []
    best = min((found, *others), key=lambda f: sum(elements_copied(f.steps, shape)))
    made = max(elements_copied(best.steps, shape), default=0)
    if not is_worth_making(best, shape, made):
        return Refusal(f"its view would copy {made:,} elements")
    return best


# --- merging

Merged = tuple[list[Step], list[Expr], list[Expr]]
"""Steps that merge dimensions, the extents that are left, and the indices of these."""


def _merged_neighbours(shape: Sequence[Expr], indices: Sequence[Expr]) -> Merged | Refusal:
    """As :func:`_merge_digits`, where digits of one number may stand around single positions, which are taken first then."""
    plain = _merge_digits(list(shape), list(indices))
    fixed = [n for n, i in enumerate(indices) if linear(i).is_constant and stays_in(linear(i), shape[n])]
    kept = [n for n in range(len(indices)) if n not in fixed]
    if not fixed or not kept or kept[-1] - kept[0] + 1 == len(kept):
        return plain
    found = _merge_digits([shape[n] for n in kept], [indices[n] for n in kept])
    if isinstance(found, Refusal) or (
        not isinstance(plain, Refusal) and len(plain[1]) <= len(found[1]) + len(fixed)
    ):
        return plain
    steps, extents, left = found
    return [Index(tuple(i if n in fixed else ALL for n, i in enumerate(indices))), *steps], extents, left


def _merge_digits(shape: list[Expr], indices: list[Expr]) -> Merged | Refusal:
    steps: list[Step] = []
    position = 0
    while position + 1 < len(indices):
        merged = _merged(indices[position], indices[position + 1], shape[position + 1])
        if merged is None:
            position += 1
            continue
        index, base, top = merged
        for axis, wanted in ((position, top), (position + 1, base)):
            if wanted is None or same(shape[axis], wanted):
                continue
            taken = fetch(shape[axis], constant(0), 1, wanted)
            if isinstance(taken, Refusal):
                return taken
            steps += [lift(s, axis, len(shape) - axis - 1) for s in taken]
            shape[axis] = wanted
        whole = times(shape[position], shape[position + 1])
        if whole is None:
            position += 1
            continue
        shape[position : position + 2] = [whole]
        indices[position : position + 2] = [simplify(index, {})]
        steps.append(Reshape(tuple(shape)))
        position = max(position - 1, 0)
    return steps, shape, indices


def _merged(upper: Expr, lower: Expr, extent: Expr) -> tuple[Expr, Expr, Expr | None] | None:
    """``base * upper + lower`` where that is simpler than the two, with the extents that both have then."""
    if not _divisions(lower):
        return None
    rest = division(lower)
    match rest:
        case Remainder(_, int() as divisor):
            base = rest.divisor
        case _ if known(extent) is not None:
            base, divisor = extent, known(extent) or 1
        case _:
            return None
    joined = normal(from_linear(linear(upper) * divisor + linear(lower)))
    if _divisions(joined) < _divisions(upper) + _divisions(lower) and stays_in(linear(lower), base):
        return joined, base, None
    match division(upper), rest:  # (f // c) % m * c + f % c == f % (m * c)
        case Remainder(quotient, int() as modulus), Remainder(number):
            if from_linear(floor_divide(linear(number), divisor)) is quotient:
                whole = from_linear(mod(linear(number), divisor * modulus))
                return whole, base, as_expr(modulus)
    return None


def _divisions(index: Expr) -> int:
    return sum(bool(dims_of(d.node)) for d in divisions(index))


# --- side by side


def _side_by_side(parts: Sequence[View], extents: Sequence[Expr]) -> list[Step]:
    """The steps of each dimension carried out together: all that can be one slice is one slice, and so on."""
    queues = [list(part.steps) for part in parts]
    shapes: list[tuple[Expr, ...]] = [(extent,) for extent in extents]
    steps: list[Step] = []
    while any(queues):
        heads = [queue[0] if queue else None for queue in queues]
        first = _most_urgent(heads)
        chosen = [h if h is not None and _together(h, first) else None for h in heads]
        if isinstance(first, (Repeat, Tile)):
            number = next(n for n, h in enumerate(heads) if h is first)
            chosen = [h if n == number else None for n, h in enumerate(chosen)]
        steps.append(_combined(chosen, shapes))
        for n, step in enumerate(chosen):
            if step is not None:
                shapes[n] = shape_after(step, shapes[n])
                queues[n].pop(0)
    return steps


_ORDER = (Index, Pad, Roll, Tile, Repeat, Transpose, Reshape)


def _most_urgent(heads: Sequence[Step | None]) -> Step:
    """Slices before pads before reshapes, so that steps of several dimensions meet."""
    kinds = [type(head) for head in heads]
    return heads[kinds.index(next(filter(kinds.__contains__, _ORDER)))]  # type: ignore[return-value]


def _together(a: Step, b: Step) -> bool:
    return type(a) is type(b) and (not isinstance(a, Pad) or (isinstance(b, Pad) and a.mode == b.mode))


def _combined(chosen: Sequence[Step | None], shapes: Sequence[tuple[Expr, ...]]) -> Step:
    """One step on the whole array that does ``chosen[n]`` on its n-th part."""
    first = next(step for step in chosen if step is not None)
    parts = list(zip(chosen, shapes, strict=True))
    match first:
        case Index():
            entries = [s.entries if isinstance(s, Index) else (ALL,) * len(e) for s, e in parts]
            return Index(tuple(chain(*entries)))
        case Pad():
            widths = [s.widths if isinstance(s, Pad) else ((ZERO, ZERO),) * len(e) for s, e in parts]
            return Pad(tuple(chain(*widths)), first.mode)
        case Roll():
            starts = [s.starts if isinstance(s, Roll) else (0,) * len(e) for s, e in parts]
            return Roll(tuple(chain(*starts)))
        case Reshape():
            return Reshape(tuple(chain(*(s.shape if isinstance(s, Reshape) else e for s, e in parts))))
        case Transpose():
            order: list[int] = []
            for step, shape in parts:
                own = step.order if isinstance(step, Transpose) else range(len(shape))
                order += [n + len(order) for n in own]
            return Transpose(tuple(order))
        case Repeat(axis, count) | Tile(axis, count):
            before = sum(len(shapes[n]) for n in range([step is first for step in chosen].index(True)))
            if isinstance(first, Repeat):
                return Repeat(axis + before, count)
            return Tile(axis + before, count, sum(map(len, shapes)))
    raise AssertionError(first)


# --- diagonals


def _take_diagonals(whole: View) -> View | Refusal:
    """Every dimension once: pairs of one dimension are flattened and read with a stride."""
    dims, steps = list(whole.dims), list(whole.steps)
    while len(set(dims)) < len(dims):
        dim = next(d for n, d in enumerate(dims) if among(d, dims[n + 1 :]))
        first = place_of(dim, dims)
        second = first + 1 + place_of(dim, dims[first + 1 :])
        if second != first + 1:
            order = [n for n in range(len(dims)) if n != second]
            order.insert(first + 1, second)
            steps.append(Transpose(tuple(order)))
        dims.pop(second)
        extent = known(dim.hi)
        if extent is None:
            return Refusal(f"the diagonal over {dim.name} has a symbolic stride")
        shape = [d.hi for d in dims]
        steps.append(Reshape((*shape[:first], ZERO + extent * extent, *shape[first + 1 :])))
        steps.append(Index((ALL,) * first + (Range(step=extent + 1),) + (ALL,) * (len(dims) - first - 1)))
    return View(tuple(steps), tuple(dims))
