"""Convolutions as nodes, ``lax.conv_general_dilated`` and what is done to its result, and their spatial dimensions in numbers, for the forms that take convolutions apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from jaxte.lang.expr import ZERO, Const, Expr, Var
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.elementwise import Number, Typed
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Convolution
from jaxte.lower.arrays.steps import Reshape, Step, Transpose
from jaxte.lower.arrays.views import Flip, Spread
from jaxte.lower.code.broadcasting import apply_steps, finished
from jaxte.lower.forms.conv.spec import ConvolutionSpec

_T = TypeVar("_T")


def convolution_source(spec: ConvolutionSpec, operands: Sequence[Node]) -> Node:
    """``spec`` on the nodes of ``spec.operands``."""
    return finished_source(spec, call_source(spec, operands), operands)


def finished_source(spec: ConvolutionSpec, result: Node, operands: Sequence[Node]) -> Node:
    """``result``, the convolution itself, brought to the output axes."""
    if spec.flipped:
        result = Flip(result, tuple(spec.flipped))
    result = rearranged(result, spec.shape, spec.order)
    return finished(result, spec.final_shape, spec.broadcast, operands[2] if spec.scale else None)


def rearranged(node: Node, shape: Sequence[Expr] | None, order: Sequence[int] | None) -> Node:
    """``node`` in another shape and then in another order, as far as these are given."""
    steps: list[Step] = [] if shape is None else [Reshape(tuple(shape))]
    if order is not None and list(order) != sorted(order):
        steps.append(Transpose(tuple(order)))
    return apply_steps(node, steps)


def call_source(
    spec: ConvolutionSpec, operands: Sequence[Node], pads: Sequence[tuple[Expr, Expr]] | None = None
) -> Node:
    """The convolution alone, with other zeros around its dimensions if they are given."""
    letters, kernel = spatial_letters(spec), spec.dimension_numbers[1]
    order = sorted(
        range(len(letters)), key=lambda n: kernel.index(letters[n])
    )  # lax has them as the kernel does

    def listed(values: Sequence[_T]) -> tuple[_T, ...]:
        return tuple(values[n] for n in order)

    shapes = (spec.lhs_shape, spec.rhs_shape)
    lhs, rhs = (rearranged(node, shape, None) for node, shape in zip(operands[:2], shapes, strict=True))
    padding = spec.padding if pads is None else tuple(pads)
    spread = spec.lhs_dilation
    if any(isinstance(node, Var) for pair in padding for node in postorder(*pair)):
        lhs, padding, spread = (
            _spread(spec, lhs, padding),
            ((ZERO, ZERO),) * len(padding),
            (1,) * len(padding),
        )
    dilations = listed(spread), listed(spec.rhs_dilation)
    return Convolution(
        lhs, rhs, listed(spec.strides), listed(padding), *dilations, spec.dimension_numbers, spec.groups
    )


def _spread(spec: ConvolutionSpec, lhs: Node, padding: Sequence[tuple[Expr, Expr]]) -> Node:
    """``lhs`` with its padding and dilation carried out: ``lax.conv_general_dilated`` takes no symbolic sizes there."""
    spatial = dict(zip(spatial_letters(spec), zip(padding, spec.lhs_dilation, strict=True), strict=True))
    widths = [
        (*spatial[letter][0], spatial[letter][1] - 1) if letter in spatial else (ZERO, ZERO, 0)
        for letter in spec.dimension_numbers[0]
    ]
    return Spread(lhs, Typed(Number(0), spec.lhs.dtype), tuple(widths))


def spatial_letters(spec: ConvolutionSpec) -> list[str]:
    """The letters of the spatial dimensions in the order of strides and padding."""
    return sorted(letter for letter in spec.dimension_numbers[0] if letter not in "NC")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One spatial dimension.

    Attributes:
        letter: its name in the dimension numbers.
        taps, extent: of the kernel and of lhs.
        stride, dilation, spacing: of the windows, of the kernel, of the elements of lhs.
        padding: zeros before and behind lhs.
    """

    letter: str
    taps: int
    extent: int
    stride: int
    dilation: int
    spacing: int
    padding: tuple[int, int]

    @property
    def padded(self) -> int:
        """The extent of lhs with the zeros between its elements and around it."""
        return self.spacing * (self.extent - 1) + 1 + sum(self.padding)

    @property
    def outputs(self) -> int:
        """The extent of the result."""
        return (self.padded - self.dilation * (self.taps - 1) - 1) // self.stride + 1


def dimension(spec: ConvolutionSpec, number: int) -> Dimension | None:
    """The spatial dimension ``number`` of ``spec``; None where its extents are not known."""
    letter = spatial_letters(spec)[number]
    x, taps = (
        shape[dims.index(letter)] for shape, dims in zip(spec.shapes, spec.dimension_numbers, strict=False)
    )
    before, behind = spec.padding[number]
    if not all(isinstance(e, Const) for e in (x, taps, before, behind)):
        return None
    steps = spec.strides[number], spec.rhs_dilation[number], spec.lhs_dilation[number]
    return Dimension(letter, int(taps), int(x), *steps, (int(before), int(behind)))
