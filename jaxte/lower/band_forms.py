"""The form of a banded product by blocks of rows, with what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from jaxte.expr import Axis, Reduce
from jaxte.lower.bands import BandSpec, Dims
from jaxte.lower.bands_source import band_source, blocks_of
from jaxte.lower.body import Body
from jaxte.lower.candidates import Candidate, Search
from jaxte.lower.ops import Code
from jaxte.lower.work import Work
from jaxte.lower.written import operands_text, whole

FORM = "block-skew"


def band_candidates(body: Body, spec: BandSpec, axes: tuple[Axis, ...], node: Reduce) -> Iterator[Candidate]:
    """Blocks of rows against the columns that they meet, skewed by reshape."""

    def assign(text: str) -> str:
        if text.isidentifier():
            return text
        target = body.names.numbered(body.target)
        body.assign(target, Code(text))
        return target

    def write() -> Search:
        texts = yield from operands_text(body, spec.operands)
        body.note(FORM)
        return whole(band_source(spec, texts, assign), axes, node)

    yield Candidate(FORM, band_work(spec), write)


def band_work(spec: BandSpec, width: int = 4) -> Work:
    """The work of ``spec`` in elements of ``width`` bytes."""
    blocks = blocks_of(spec)
    sizes = {
        role: int(a.hi)
        for d in (spec.first, spec.second)
        for role, a in zip(d.roles, d.array.axes, strict=True)
    }
    entries = blocks.count * blocks.size * blocks.width * spec.step
    products = entries * prod(n for role, n in sizes.items() if isinstance(role, Axis))
    band = width * entries * prod(sizes[a] for a in _band_axes(spec))
    plain = (
        width * blocks.columns * prod(sizes[a] for a in _own(spec.second)) * (blocks.spans + 1) / blocks.spans
    )
    return Work(dot=2 * products, stream=4 * band + 2 * plain, kernel=8, temporaries=band)


def _own(dims: Dims) -> set[Axis]:
    return {role for role in dims.roles if isinstance(role, Axis)}


def _band_axes(spec: BandSpec) -> set[Axis]:
    """The axes beside the band itself in what stands on its rows and diagonals."""
    if spec.kind == "scores":
        return {role for role in spec.out if isinstance(role, Axis)}
    return _own(spec.first)
