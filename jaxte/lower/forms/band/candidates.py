"""The forms of a banded product, by blocks of rows and by slices, with what each costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from jaxte.lang.expr import Axis
from jaxte.lower.arrays.counts import total_flops
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.body.candidates import Candidate
from jaxte.lower.body.evaluator import Body
from jaxte.lower.body.wanted import Wanted, way
from jaxte.lower.code.spec import Dry, on_names
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.band.diagonals import refusal_of_slices, slices_source, slices_work
from jaxte.lower.forms.band.spec import SCORES, Band, BandSpec, Dims
from jaxte.lower.forms.band.write_blocks import band_source, blocks_of
from jaxte.sets.intervals import extent_of

BLOCKS = "block-skew"
SLICES = "shifted products"


def band_candidates(body: Body, spec: BandSpec, wanted: Wanted) -> Iterator[Candidate]:
    """Blocks of rows against the columns that they meet, skewed by reshape; one slice after the other."""
    blocks = partial(band_source, spec, skewed=skewed_band(spec))
    yield way(body, wanted, BLOCKS, band_work(spec), spec.operands, partial(blocks, assign=body.shared))
    refusal = refusal_of_slices(spec, body.policy.facts)
    if refusal is None:
        slices = partial(slices_source, spec, assign=body.shared)
        yield way(body, wanted, SLICES, slices_work(spec, body.policy.facts), spec.operands, slices)
    elif refusal.reason:
        body.report.refuse(SLICES, refusal.reason)


def skewed_band(spec: BandSpec) -> int:
    """The number of the band whose blocks are the least work; the last one of those alike, which is next in memory."""
    return min(
        range(len(spec.bands)), key=lambda n: (blocks_of(spec.bands[n]).entries / _points(spec.bands[n]), -n)
    )


def _points(band: Band) -> int:
    return band.rows * band.window


def band_work(spec: BandSpec, width: int = 4) -> Work:
    """The work of ``spec`` in elements of ``width`` bytes: products counted from its nodes, copies as XLA was seen to make them."""
    skewed = skewed_band(spec)
    blocks, outer = blocks_of(spec.bands[skewed]), [b for n, b in enumerate(spec.bands) if n != skewed]
    sizes = {
        role: int(a.hi)
        for d in (spec.first, spec.second)
        for role, a in zip(d.roles, d.array.axes, strict=True)
    }
    entries = blocks.entries * prod(map(_points, outer))
    dry = Dry()
    flops = total_flops(dry.roots(band_source(spec, on_names(spec.operands), dry, skewed)), extent_of, Einsum)
    band = width * entries * prod(sizes[a] for a in _band_axes(spec))
    second = blocks.columns * prod(b.columns for b in outer) * prod(sizes[a] for a in _own(spec.second))
    plain = width * second * (blocks.spans + 1) / blocks.spans
    times = prod(b.window for b in outer)
    return Work(dot=flops, stream=4 * band + 2 * plain, kernel=4 + 4 * times, temporaries=band)


def _own(dims: Dims) -> set[Axis]:
    return {role for role in dims.roles if isinstance(role, Axis)}


def _band_axes(spec: BandSpec) -> set[Axis]:
    """The axes beside the band itself in what stands on its rows and diagonals."""
    if spec.kind == SCORES:
        return {role for role in spec.out if isinstance(role, Axis)}
    return _own(spec.first)
