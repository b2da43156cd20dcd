"""Convolutions as nodes, ``lax.conv_general_dilated`` and what is done to its result, and their spatial dimensions in numbers, for the forms that take convolutions apart.

One of these: a convolution of a dilated operand is convolutions without dilation, one for each residue class of the output.

Where the elements of lhs are ``alpha`` apart, the output ``t`` meets the taps ``k`` with ``gamma * t + beta * k == before (mod alpha)``
only: every other one is a product with a zero between elements. With ``m = alpha / gcd(alpha, gamma)`` the outputs ``t = m * u + r``
of one residue ``r`` meet the same taps ``k0, k0 + alpha / gcd(alpha, beta), ...``, so that they are a convolution of the elements
of lhs side by side:

    stride gamma / gcd(alpha, gamma), dilation of rhs beta / gcd(alpha, beta), padding (before - gamma r - beta k0) / alpha.

The classes, stacked next to the dimension that they are of and reshaped, are the output. This is the forward pass of transposed
convolutions, and the gradient of a strided convolution for its image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import TypeVar

from jaxte.lang.expr import ZERO, Axis, Const, Expr, Var, as_expr
from jaxte.lang.limits import MOST_PARTS
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.elementwise import Number, Typed
from jaxte.lower.arrays.loops import Choices, Each, Stacked
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Convolution
from jaxte.lower.arrays.views import ALL, Flip, Index, Range, Reshape, Spread, Step, Transpose
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.spec import Refusal
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
    return spec.finish.of(result, operands[2:])


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
    # lax has them as the kernel does
    order = sorted(range(len(letters)), key=lambda n: kernel.index(letters[n]))

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
        lhs,
        rhs,
        listed(spec.strides),
        listed(padding),
        *dilations,
        spec.dimension_numbers,
        spec.groups,
        spec.by_batch,
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


_LOOPS = "ijklmn"


@dataclass(frozen=True, slots=True)
class Class:
    """The taps from ``first`` on that the outputs of one residue meet, ``count`` of them, and the padding of lhs."""

    first: int
    count: int
    padding: tuple[int, int]

    @property
    def row(self) -> tuple[int, int, int]:
        return self.first, *self.padding


@dataclass(frozen=True, slots=True)
class Classes:
    """One spatial dimension: its residue classes in order, how far apart their taps are, and what each convolution has.

    ``length`` is the extent of the output, ``each`` that of every class.
    """

    classes: tuple[Class, ...]
    step: int
    stride: int
    dilation: int
    length: int
    each: int


def residue_classes(spec: ConvolutionSpec) -> tuple[Classes, ...] | Refusal:
    """The classes of each spatial dimension of ``spec``."""
    if all(alpha == 1 for alpha in spec.lhs_dilation):
        return Refusal("nothing is dilated")
    found: list[Classes] = []
    for n in range(len(spec.strides)):
        dim = dimension(spec, n)
        if dim is None:
            return Refusal("extents depend on sizes")
        own = _classes(dim)
        if any(c.count == 0 for c in own.classes):
            return Refusal(f"no tap reaches some of every {len(own.classes)} outputs")
        found.append(own)
    total = prod(len(own.classes) for own in found)
    return tuple(found) if total <= MOST_PARTS else Refusal(f"{total} classes are more than {MOST_PARTS}")


def _classes(dim: Dimension) -> Classes:
    k, before = dim.taps, dim.padding[0]
    alpha, gamma, beta = dim.spacing, dim.stride, dim.dilation
    number, step = alpha // gcd(alpha, gamma), alpha // gcd(alpha, beta)
    stride, dilation = gamma // gcd(alpha, gamma), beta // gcd(alpha, beta)
    each = -(-dim.outputs // number)
    found: list[Class] = []
    for rest in range(number):
        first = next((n for n in range(min(k, alpha)) if (gamma * rest + beta * n - before) % alpha == 0), k)
        count = len(range(first, k, step))
        offset = (gamma * rest + beta * first - before) // alpha
        reach = stride * (each - 1) + dilation * (count - 1) + 1
        found.append(Class(first, count, (-offset, reach + offset - dim.extent)))
    return Classes(tuple(found), step, stride, dilation, dim.outputs, each)


def classes_source(spec: ConvolutionSpec, classes: Sequence[Classes], operands: Sequence[Node]) -> Node:
    """``spec`` on the nodes of ``spec.operands``."""
    _, rhs, out = spec.dimension_numbers
    shapes = (spec.lhs_shape, spec.rhs_shape)
    lhs, kernel = (rearranged(node, shape, None) for node, shape in zip(operands[:2], shapes, strict=True))
    entries: list[Range] = [ALL] * len(rhs)
    pads: list[tuple[Expr, Expr]] = []
    loops: dict[str, Choices] = {}
    names = iter(_LOOPS)
    for letter, own in zip(spatial_letters(spec), classes, strict=True):
        turns = None if len(own.classes) == 1 else _turns(own, next(names))
        first, before, behind = turns.axes if turns is not None else map(as_expr, own.classes[0].row)
        entries[rhs.index(letter)] = Range(None if first is ZERO else first, None, own.step)
        pads.append((before, behind))
        if turns is not None:
            loops[letter] = turns
    dense = replace(
        spec,
        lhs_shape=None,
        rhs_shape=None,
        strides=tuple(own.stride for own in classes),
        lhs_dilation=(1,) * len(classes),
        rhs_dilation=tuple(own.dilation for own in classes),
    )
    result = call_source(dense, (lhs, apply_steps(kernel, [Index(tuple(entries))])), pads)
    # the last dimension is the innermost list
    for letter in sorted(loops, key=lambda letter: -out.index(letter)):
        result = Stacked((Each(result, (loops[letter],)),), out.index(letter) + 1)
    return finished_source(spec, _joined(spec, classes, result), operands)


def _turns(own: Classes, name: str) -> Choices:
    """The first tap of each class, and the zeros before and behind lhs."""
    rows = tuple(c.row for c in own.classes)
    names = (name, f"{name}_before", f"{name}_behind")
    axes = tuple(
        Axis(called, min(column), max(column) + 1)
        for called, column in zip(names, zip(*rows, strict=True), strict=True)
    )
    return Choices(axes, rows)


def _joined(spec: ConvolutionSpec, classes: Sequence[Classes], result: Node) -> Node:
    """Each dimension with its classes as one, cut to its length."""
    lhs, rhs, out = spec.dimension_numbers
    by_letter = dict(zip(spatial_letters(spec), classes, strict=True))
    batch = spec.shapes[0][lhs.index("N")]
    features = spec.shapes[1][rhs.index("O")]
    extents = {"N": batch, "C": features}
    extents |= {letter: as_expr(own.each * len(own.classes)) for letter, own in by_letter.items()}
    result = rearranged(result, [extents[letter] for letter in out], None)
    if all(own.each * len(own.classes) == own.length for own in classes):
        return result
    cut = [ALL if letter in "NC" else Range(None, as_expr(by_letter[letter].length)) for letter in out]
    return apply_steps(result, [Index(tuple(cut))])
