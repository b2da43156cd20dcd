"""The forms of a reduction over windows, with what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Read, Reduce
from jaxte.lang.graphs import identical
from jaxte.lang.limits import LARGE_RESULT, MOST_PARTS
from jaxte.lang.walk import depends_on, reads_of
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.candidates import Candidate, Search, Wanted, way
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.general import general_work
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import Work, expensive_calls, long_text, points
from jaxte.lower.forms.window.recognise import UnrollSpec, WindowDim, WindowSpec
from jaxte.lower.forms.window.unrolled import unrolled
from jaxte.lower.forms.window.write import (
    DOUBLING,
    PADDED_APART,
    REDUCE_WINDOW,
    SEPARABLE,
    SLICES,
    WINDOW_FUNCTIONS,
    is_padded_apart,
    window_source,
)
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import extent_of


def window_candidates(body: Body, spec: WindowSpec | UnrollSpec, wanted: Wanted) -> Iterator[Candidate]:
    """The ways to reduce windows of an array, or of a body that is no array by itself."""
    if isinstance(spec, UnrollSpec):
        yield from _unrolled(body, spec, wanted)
    else:
        yield from _of_array(body, spec, wanted)


def _of_array(body: Body, spec: WindowSpec, wanted: Wanted) -> Iterator[Candidate]:
    """Shifted slices, all at once or one dimension after the other, doubling, and ``lax.reduce_window``."""
    axes, node = wanted.axes, wanted.node

    def own(form: str, work: Work) -> Candidate:
        def source(operands: list[Node]) -> Node:
            return window_source(spec, operands, body.names.numbered(body.target), body.step, form)

        return way(body, wanted, form, work, spec.operands, source)

    sizes = [d.size for d in spec.dims]
    made = Work(transcendental=points(spec.array.axes) * expensive_calls([spec.array.body]))
    if isinstance(spec.array.body, Reduce):  # what belongs to no window, reduced before
        made += general_work(spec.array.axes, spec.array.body, body.policy.facts)
    called = made + _called_work(spec, float(points(axes)), body.policy.facts)
    if body.policy.facts.moves_lanes_apart:
        made += _strided_work(spec, node)
    if prod(sizes) <= MOST_PARTS:
        yield own(SLICES, made + slices_work(spec, node))
    if len(sizes) > 1 and max(sizes) <= MOST_PARTS:
        yield own(SEPARABLE, made + separable_work(spec, node))
        if body.policy.facts.fuses_pads and points(axes) >= LARGE_RESULT and is_padded_apart(spec):
            yield own(PADDED_APART, made + separable_work(spec, node, True))
    if max(sizes).bit_length() > 2:  # once doubled are the slices themselves (box_blur_5)
        yield own(DOUBLING, made + doubling_work(spec, node))
    if spec.reducer.name in WINDOW_FUNCTIONS:
        yield own(REDUCE_WINDOW, called)


def _unrolled(body: Body, spec: UnrollSpec, wanted: Wanted) -> Iterator[Candidate]:
    """A copy of the body for each position, on slices."""
    axes, node = wanted.axes, wanted.node
    written = unrolled(node, spec)
    if isinstance(written, Refusal):
        body.report.refuse(SLICES, written.reason)
        return

    def write() -> Search:
        body.report.note(SLICES)
        value = yield written, Scope(axes, hits=wanted.scope.hits)
        return body.cast(value, node.dtype)

    everywhere = float(points(axes)) * len(spec.taps)
    calls = everywhere * expensive_calls([*node.exprs, node.where])
    work = Work(tap=everywhere, transcendental=calls, kernel=1) + long_text(len(spec.taps))
    apart = len([r for r in reads_of(*node.exprs) if any(map(reads_of, r.indices)) and depends_on(r, axes)])
    if apart:  # each is gathered by itself for each position, where one gather takes all at once
        moved = 2.0 * dtypes.width(node.dtype) * everywhere
        work += Work(stream=apart * moved, kernel=apart * len(spec.taps))
    yield Candidate(SLICES, work, write)


def slices_work(spec: WindowSpec, node: Reduce) -> Work:
    """Every position of every window, and the array with what is around it once."""
    before, after = _points(spec)[0], _points(spec)[-1]
    own = _made(spec, spec.dims, before, node)
    slices = prod(d.size for d in spec.dims)
    return own + Work(tap=float(after) * slices, kernel=1) + long_text(slices)


def _called_work(spec: WindowSpec, count: float, facts: Platform) -> Work:
    """``lax.reduce_window`` for ``count`` windows."""
    fast = spec.reducer.is_extremum or any(d.stride * d.spacing > 1 for d in spec.dims)
    met = count * prod(d.size for d in spec.dims) / (facts.window_extrema if fast else 1)
    return Work(window=met, kernel=facts.window_call)


def _strided_work(spec: WindowSpec, node: Reduce) -> Work:
    """Slices with a stride along one of the last two axes, each of which is an array."""
    rows = len(spec.array.axes) - 2
    if all(d.stride == 1 or d.axis < rows for d in spec.dims):
        return Work()
    slices = prod(d.size for d in spec.dims)
    return Work(stream=2.0 * _width(node) * _points(spec)[-1] * slices, kernel=slices)


def separable_work(spec: WindowSpec, node: Reduce, apart: bool = False) -> Work:
    """The windows of each dimension over what those before have left, which is written and read.

    Args:
        spec: the windows.
        node: the reduction.
        apart: whether the first pass makes no padded copy.
    """
    total = Work()
    counts = _points(spec)
    for d, before, after in zip(spec.dims, counts[:-1], counts[1:], strict=True):
        if d is not spec.dims[0]:
            total += _copied(before, node)
        elif not apart:
            total += _made(spec, (d,), before, node)
        total += Work(tap=float(after) * d.size, kernel=1) + long_text(d.size)
    return total


def doubling_work(spec: WindowSpec, node: Reduce) -> Work:
    """An array written for each power of two, and the powers that the window is made of combined."""
    total = Work()
    counts = _points(spec)
    for d, before, after in zip(spec.dims, counts[:-1], counts[1:], strict=True):
        steps, pieces = d.size.bit_length() - 1, d.size.bit_count()
        total += _made(spec, (d,), before, node) if d is spec.dims[0] else _copied(before, node)
        moved = float(_width(node) * before * steps)
        taps = float(before) * 2 * steps + float(after) * pieces
        total += Work(tap=taps, stream=moved, kernel=steps + 1) + long_text(steps + pieces)
    return total


def _made(spec: WindowSpec, dims: Sequence[WindowDim], count: int, node: Reduce) -> Work:
    """Writing and reading what is sliced, unless it is a tensor as it is."""
    as_it_is = isinstance(spec.array.body, Read) and identical(spec.array.body.indices, spec.array.axes)
    if as_it_is and all(identical(d.padding, (ZERO, ZERO)) and d.spacing == 1 for d in dims):
        return Work()
    return _copied(count, node)


def _copied(count: int, node: Reduce) -> Work:
    return Work(stream=2.0 * _width(node) * count, kernel=1)


def _points(spec: WindowSpec) -> list[int]:
    """How many elements the padded array has, and what is left of them after each dimension."""
    extents = [extent_of(a.extent) for a in spec.array.axes]
    for d in spec.dims:
        reach = d.stride * (extent_of(d.length) - 1) + d.dilation * (d.size - 1) + 1
        extents[d.axis] = max(extents[d.axis], reach)
    found = [prod(extents)]
    for d in spec.dims:
        extents[d.axis] = extent_of(d.length)
        found.append(prod(extents))
    return found


def _width(node: Reduce) -> int:
    return dtypes.width(node.dtype)
