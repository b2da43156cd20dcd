"""Affine indices on one dimension of a tensor: slices with pads, digits by reshape, overlaps by a sheared reshape."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import ONE, ZERO, Axis, Const, Expr, as_expr
from jaxte.lang.graphs import among, place_of
from jaxte.lang.text import text
from jaxte.lower.arrays.views import (
    ALL,
    Index,
    Only,
    Pad,
    Range,
    Repeat,
    Reshape,
    Roll,
    Step,
    Tile,
    Transpose,
)
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.digits import span
from jaxte.sets.index_forms import is_multiple
from jaxte.sets.intervals import at_most, constant, known, nonnegative, plus, same, times
from jaxte.sets.linear import Linear


def affine_view(extent: Expr, form: Linear) -> View | Refusal:
    terms = [(a, c) for a, c in form.terms.items() if isinstance(a, Axis)]
    offset = Linear({a: c for a, c in form.terms.items() if not isinstance(a, Axis)}, form.constant)
    if not terms:
        return _element(extent, offset)
    if len(terms) == 1:
        ((dim, stride),) = terms
        steps = fetch(extent, offset, stride, dim.hi)
        return steps if isinstance(steps, Refusal) else View(steps, (dim,))
    return _several(extent, offset, terms)


def _element(extent: Expr, offset: Linear) -> View | Refusal:
    if extent is ONE and from_linear(offset) is ZERO:
        return View((Index((Only(),)),), ())
    if nonnegative(offset) and at_most(offset + constant(1), extent):
        if offset.terms:  # jax.export takes symbolic sizes as the ends of slices, not as positions
            return View(
                (Index((Range(from_linear(offset), from_linear(offset + constant(1))),)), Index((ZERO,))), ()
            )
        return View((Index((from_linear(offset),)),), ())
    steps = fetch(extent, offset, 1, ONE)
    return steps if isinstance(steps, Refusal) else View((*steps, Index((ZERO,))), ())


def fetch(extent: Expr, start: Linear, stride: int, count: Expr) -> tuple[Step, ...] | Refusal:
    """The elements ``start + stride * p`` for p below ``count``; zeros outside."""
    if stride == 1 and not start.terms and isinstance(extent, Const) and (length := known(count)):
        return _fetch_row(known(extent) or 0, start.constant, length)
    last = start + (linear(count) - constant(1)) * stride
    low, high = (start, last) if stride > 0 else (last, start)
    if nonnegative(low) and at_most(high + constant(1), extent):
        return slice_steps(extent, start, last, stride)
    numbers = [known(from_linear(f)) for f in (start, linear(count), linear(extent))]
    if None not in numbers:
        return _fetch_known(numbers[2] or 0, numbers[0] or 0, stride, numbers[1] or 0)
    return _fetch_symbolic(extent, low, high, stride)


def _fetch_row(extent: int, start: int, count: int) -> tuple[Step, ...]:
    """The same of numbers, one element after the other, as most reads are."""
    if start < 0 or start + count > extent:
        return _fetch_known(extent, start, 1, count)
    row = row_of(extent, start, count)
    return () if row is ALL else (Index((row,)),)


def row_of(extent: int, start: int, count: int) -> Range:
    """``count`` elements from ``start`` on, all of which are there."""
    stop = start + count
    return (
        ALL
        if count == extent
        else Range(as_expr(start) if start else None, None if stop == extent else as_expr(stop))
    )


def slice_steps(extent: Expr, start: Linear, last: Linear, stride: int) -> tuple[Step, ...]:
    """``T[start : last + 1 : stride]``, all of it in range; nothing where that is the whole of T in order."""
    span = last + constant(stride) - start
    if stride > 1 and (not nonnegative(last + constant(1) - start) or _is_shifted(span, stride)):
        return _strided(extent, start, span, stride)
    if stride > 0:
        # A stop within one stride of the end takes the same elements as no stop; one below 0 would be counted from the end.
        near_end = at_most(extent, last + constant(stride))
        end = last + constant(1 if nonnegative(last + constant(1)) else stride)
        stop = None if near_end and not _counts_otherwise(extent, start, last, stride) else from_linear(end)
        begin = None if same(start, ZERO) else from_linear(start)
    else:
        to_start = at_most(last - constant(-stride), -ONE)
        if not nonnegative(start) or not (to_start or nonnegative(last - constant(1))):
            # sizes may leave nothing, or the first element
            forward = slice_steps(extent, last, start, -stride)
            return (*forward, Index((Range(None, None, -1),)))
        begin = None if same(start + constant(1), extent) else from_linear(start)
        stop = None if to_start else from_linear(last - constant(1))
    if begin is None and stop is None and stride == 1:
        return ()
    return (Index((Range(begin, stop, stride),)),)


def _strided(extent: Expr, start: Linear, span: Linear, stride: int) -> tuple[Step, ...]:
    """Every ``stride``-th of ``span`` elements from ``start`` on, which may be none, by slices that ``jax.export`` knows the extents of.

    Their ends are within the tensor and not before their begin, whatever the sizes are: with the elements that are left out after the last
    one, or before the first one too, or else with zeros after the end.
    """
    if at_most(start + span, extent) and not _is_shifted(span, stride):
        return (Index((Range(from_linear(start), from_linear(start + span), stride),)),)
    for more in range(1, stride):
        begin = start - constant(more)
        if nonnegative(begin) and at_most(begin + span, extent):
            rows = Range(from_linear(begin), from_linear(begin + span))
            return (
                Index((rows,)),
                Reshape((from_linear(span // stride), as_expr(stride))),
                Index((ALL, as_expr(more))),
            )
    pad = Pad(((ZERO, as_expr(stride - 1)),))
    return (pad, Index((Range(from_linear(start), from_linear(start + span), stride),)))


def _is_shifted(span: Linear, stride: int) -> bool:
    """Whether a slice would have an extent that ``jax.export`` writes otherwise: a half of ``n - 2`` elements, of an even ``n``."""
    return bool(span.constant) and is_multiple(from_linear(span), stride)


def _counts_otherwise(extent: Expr, start: Linear, last: Linear, stride: int) -> bool:
    """Whether jax.export would write the extent of a slice up to the end in another form than ``sets.written_sizes``."""
    counted = linear(extent) - start + constant(stride - 1)
    if not counted.terms or stride == 1 or not nonnegative(last):
        return False
    divided = all(c % stride == 0 for c in counted.terms.values())
    return divided or not 0 <= counted.constant < (stride if stride > 2 else 1)


def _fetch_known(extent: int, start: int, stride: int, count: int) -> tuple[Step, ...]:
    """Slices what is in range, then pads what is not."""
    inside = ends_inside(extent, start, stride, count)
    if not inside:
        return (Index((Range(ZERO, ZERO),)), Pad(((as_expr(count), ZERO),)))
    first, last = inside
    steps = slice_steps(
        as_expr(extent), constant(start + stride * first), constant(start + stride * last), stride
    )
    return (*steps, Pad(((as_expr(first), as_expr(count - 1 - last)),)))


def ends_inside(extent: int, start: int, stride: int, count: int) -> tuple[int, int] | tuple[()]:
    """The first and last p below ``count`` with ``start + stride * p`` in range; nothing if there is none."""
    if stride > 0:
        first, last = -(start // stride), (extent - 1 - start) // stride
    else:
        first, last = -((extent - 1 - start) // -stride), start // -stride
    first, last = max(first, 0), min(last, count - 1)
    return (first, last) if first <= last else ()


def _fetch_symbolic(extent: Expr, low: Linear, high: Linear, stride: int) -> tuple[Step, ...] | Refusal:
    """Pads first, where it is known on which sides the read leaves the tensor."""
    before = low * -1
    after = high + constant(1) - linear(extent)
    widths: list[Linear] = []
    for missing in (before, after):
        if nonnegative(missing):
            widths.append(missing)
        elif nonnegative(missing * -1):
            widths.append(constant(0))
        else:
            return Refusal(
                f"it depends on the sizes whether `{text(from_linear(missing))}` elements are missing"
            )
    begin, end = low + widths[0], high - widths[1]
    # Slices first, so that nothing is padded that is cut off again; a slice that might have less than no element is one of a padded array.
    if abs(stride) == 1 and nonnegative(end + constant(1) - begin):
        order = (begin, end) if stride > 0 else (end, begin)
        steps = slice_steps(extent, *order, stride)
        ends = widths if stride > 0 else widths[::-1]
        return (*steps, Pad(((from_linear(ends[0]), from_linear(ends[1])),)))
    padded = from_linear(linear(extent) + widths[0] + widths[1])
    pad = Pad(((from_linear(widths[0]), from_linear(widths[1])),))
    first, last = (low, high) if stride > 0 else (high, low)
    return (pad, *slice_steps(padded, first + widths[0], last + widths[0], stride))


def _several(extent: Expr, offset: Linear, terms: Sequence[tuple[Axis, int]]) -> View | Refusal:
    """Two or more dimensions on one dimension of the tensor."""
    flipped = [dim for dim, c in terms if c < 0]
    for dim, c in terms:
        if c < 0:
            offset = offset + (linear(dim.hi) - constant(1)) * c
    ordered = sorted(((dim, abs(c)) for dim, c in terms), key=lambda term: -term[1])
    view = _digits(extent, offset, ordered)
    if isinstance(view, Refusal) or not flipped:
        return view
    turned = tuple(Range(step=-1) if among(dim, flipped) else ALL for dim in view.dims)
    return View((*view.steps, Index(turned)), view.dims)


def _digits(extent: Expr, offset: Linear, terms: Sequence[tuple[Axis, int]]) -> View | Refusal:
    """``offset`` plus positive multiples of dimensions, the largest multiple first."""
    if len(terms) == 1:
        ((dim, stride),) = terms
        steps = fetch(extent, offset, stride, dim.hi)
        return steps if isinstance(steps, Refusal) else View(steps, (dim,))
    (dim, stride), rest = terms[0], terms[1:]
    if at_most(span(rest), constant(stride)):
        length = from_linear(linear(dim.hi) * stride)
        within = _within_block(extent, offset, linear(length), stride, rest)
        steps = fetch(extent, offset - constant(within), 1, length)
        inner = _digits(as_expr(stride), constant(within), rest)
        if isinstance(steps, Refusal) or isinstance(inner, Refusal):
            return steps if isinstance(steps, Refusal) else inner  # type: ignore[return-value]
        split = Reshape((dim.hi, as_expr(stride)))
        return View((*steps, split, *(lift(s, 1, 0, (dim.hi,)) for s in inner.steps)), (dim, *inner.dims))
    return _sheared(extent, offset, terms)


def _within_block(
    extent: Expr, offset: Linear, length: Linear, stride: int, rest: Sequence[tuple[Axis, int]]
) -> int:
    """How far into blocks of ``stride`` elements the ``rest`` begins, where zeros would be wanted after the last one if the blocks began there."""
    within = offset.constant % stride
    if offset.terms or at_most(offset + length, extent) or not nonnegative(offset):
        return 0
    return within if at_most(span(rest) + constant(within), constant(stride)) else 0


def _sheared(extent: Expr, offset: Linear, terms: Sequence[tuple[Axis, int]]) -> View | Refusal:
    """Overlapping dimensions: one row for each value of the shortest, each shifted by its multiple.

    Rows of ``length`` elements, read as rows of ``length + stride``, begin ``stride`` further on in each row. Where the
    extents are known, ``length`` is a power of two: XLA finds the place of each element by division and remainder.
    """
    number = min(
        range(len(terms)), key=lambda n: (known(terms[n][0].hi) is None, known(terms[n][0].hi) or 0, -n)
    )
    dim, stride = terms[number]
    rest = [term for n, term in enumerate(terms) if n != number]
    length = _row_length(from_linear(span(terms)))
    total, wide = times(dim.hi, length), plus(length, stride)
    if total is None:
        return Refusal("overlapping dimensions whose sizes are both symbolic")
    steps = fetch(extent, offset, 1, length)
    inner = _digits(wide, constant(0), rest)
    if isinstance(steps, Refusal) or isinstance(inner, Refusal):
        return steps if isinstance(steps, Refusal) else inner  # type: ignore[return-value]
    shear = (Tile(0, dim.hi), Pad(((ZERO, from_linear(linear(dim.hi) * stride)),)), Reshape((dim.hi, wide)))
    lifted = (lift(s, 1, 0, (dim.hi,)) for s in inner.steps)
    return View((*steps, *shear, *lifted), (dim, *inner.dims))


def _row_length(least: Expr) -> Expr:
    number = known(least)
    return least if number is None else as_expr(1 << (number - 1).bit_length())


def lift(
    step: Step, before: int, after: int, leading: Sequence[Expr] = (), trailing: Sequence[Expr] = ()
) -> Step:
    """``step`` on an array that has further dimensions before and after, a reshape those of extents ``leading`` and ``trailing``."""
    match step:
        case Index(entries):
            return Index((ALL,) * before + entries + (ALL,) * after)
        case Pad(widths, mode):
            return Pad(((ZERO, ZERO),) * before + widths + ((ZERO, ZERO),) * after, mode)
        case Reshape(shape):
            assert (before, after) == (len(leading), len(trailing))
            return Reshape((*leading, *shape, *trailing))
        case Transpose(order):
            kept = tuple(range(before))
            return Transpose((*kept, *(before + n for n in order)))
        case Roll(starts):
            return Roll((0,) * before + starts + (0,) * after)
        case Repeat(axis, count):
            return Repeat(axis + before, count)
        case Tile(axis, count, ndim):
            return Tile(axis + before, count, before + ndim + after)


def reorder(own: Sequence[Axis], wanted: Sequence[Axis]) -> tuple[Step, ...]:
    """The step that brings the dimensions ``own`` into the order ``wanted``."""
    order = tuple(place_of(d, list(own)) for d in wanted)
    return () if order == tuple(range(len(order))) else (Transpose(order),)
