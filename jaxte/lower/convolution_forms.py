"""The forms of a convolution, with what each costs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from jaxte.expr import Axis, Reduce
from jaxte.lower.body import Body
from jaxte.lower.candidates import Candidate, Search
from jaxte.lower.conv_spec import ConvolutionSpec, convolution_source
from jaxte.lower.work import Work, extent_of, points
from jaxte.lower.written import operands_text, whole


def convolution_candidates(
    body: Body, spec: ConvolutionSpec, axes: tuple[Axis, ...], node: Reduce
) -> Iterator[Candidate]:
    """``lax.conv_general_dilated``; slices, multiplied and added, are the general path."""

    def write() -> Search:
        texts = yield from operands_text(body, spec.operands)
        body.note("convolution")
        return whole(convolution_source(spec, texts, body.sizes.text), axes, node)

    yield Candidate("convolution", convolution_work(spec, axes), write)


def convolution_work(spec: ConvolutionSpec, axes: tuple[Axis, ...]) -> Work:
    """The multiplications of every output with the kernel's window and input features of one group."""
    layout = spec.dimension_numbers[1]
    sizes = dict(zip(layout, (spec.rhs_shape or spec.rhs.shape), strict=True))
    flops = 2.0 * points(axes) * prod(extent_of(e) for letter, e in sizes.items() if letter != "O")
    if extent_of(spec.groups) > 1 or extent_of(sizes["I"]) == 1 == extent_of(sizes["O"]):
        return Work(grouped_convolution=flops, kernel=1)
    return Work(convolution=flops, kernel=1)
