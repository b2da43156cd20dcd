"""A spatial dimension of a convolution in numbers, for the forms that take convolutions apart."""

from __future__ import annotations

from dataclasses import dataclass

from jaxte.lang.expr import Const
from jaxte.lower.forms.conv.spec import ConvolutionSpec
from jaxte.lower.forms.conv.write import spatial_letters


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
