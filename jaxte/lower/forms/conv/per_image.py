"""A convolution of two dimensions as one matrix product for each image.

Of the taps, those along the rows are laid out among the features that are contracted, those along the columns among the features that
are made, and the columns are added where they belong:

    rows[(k, c), i, q] = image[c, stride * i + dilation * k, q]                     the image, once for each k
    sums[l, o, i, q]   = sum over (k, c) of kernel[l, o, (k, c)] * rows[(k, c), i, q]   the product
    y[o, i, j]         = sum over l of sums[l, o, i, stride * j + dilation * l]

Both copies and sums are of whole rows of memory. With three by three taps there are six copies of an image and of its result, where all
windows are nine, and both fit into a cache. XLA on the CPU shares a convolution among cores by its output features only, so that one with
64 runs on a single core however many there are; it shares a product among all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import ONE, Axis, as_expr
from jaxte.lang.limits import MOST_TERMS
from jaxte.lower.arrays.counts import bytes_of, flops
from jaxte.lower.arrays.elementwise import Name, Number, Typed
from jaxte.lower.arrays.loops import Each, Joined, MapOver, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Tensordot
from jaxte.lower.arrays.views import ALL, Index, Pad, Range, Spread
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import moving
from jaxte.lower.code.spec import Refusal, on_names
from jaxte.lower.code.vocabulary import Function, Statement
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import Work, points
from jaxte.lower.forms.conv.spec import ConvolutionSpec
from jaxte.lower.forms.conv.write import Dimension, dimension, finished_source, rearranged
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of

_DTYPES = ("float32", "float64")  # the sums of each column are rounded before they are added


@dataclass(frozen=True, slots=True)
class Image:
    """The dimension whose taps are contracted and the one whose sums are added."""

    rows: Dimension
    columns: Dimension


def image_of(spec: ConvolutionSpec) -> Image | Refusal:
    """The dimensions of ``spec``: the columns are the last one in memory, which is not copied in pieces."""
    if len(spec.strides) != 2:
        return Refusal(
            f"it slides along {len(spec.strides)} {'axis' if len(spec.strides) == 1 else 'axes'}, not two"
        )
    if spec.groups is not ONE:
        return Refusal("there is more than one group")
    if any(alpha > 1 for alpha in spec.lhs_dilation):
        return Refusal("there are zeros between the elements of the image")
    if spec.lhs.dtype not in _DTYPES:
        return Refusal(f"sums of {spec.lhs.dtype} would be rounded once more")
    lhs = spec.dimension_numbers[0]
    if lhs.endswith("C"):
        return Refusal("features come last, as in XLA's own convolutions")
    if spec.shapes[0][lhs.index("N")] is ONE:
        return Refusal("there is one image only")
    lines = [own for number in range(2) if (own := dimension(spec, number)) is not None]
    if len(lines) < 2:
        return Refusal("extents depend on sizes")
    if min(own.taps for own in lines) == 0:
        return Refusal("there are no taps")
    taps = max(own.taps for own in lines)
    if taps > MOST_TERMS:
        return Refusal(f"{taps} slices are more than {MOST_TERMS}")
    rows, columns = sorted(lines, key=lambda own: lhs.index(own.letter))
    return Image(rows, columns)


def _window(own: Dimension, tap: Axis) -> Range:
    """The slice of the positions that ``tap`` meets."""
    reach = own.stride * (own.outputs - 1) + 1
    if own.taps == 1:
        whole = reach == own.padded and own.stride == 1
        return ALL if whole else Range(None, as_expr(reach), own.stride)
    return moving(own.dilation * tap, reach, own.stride)


# --- what it takes


def image_work(spec: ConvolutionSpec, axes: Sequence[Axis], image: Image, facts: Platform) -> Work:
    """Products with every column of the image, whatever the stride, as the function of one image has them.

    Rows and sums are written and found in a cache. The zeros around an image and the copy of its result are not counted: XLA's
    convolution copies both into another order, and that is not counted either.
    """
    lhs, _, out = spec.dimension_numbers
    count = extent_of(spec.shapes[0][lhs.index("N")])
    matrix = kernel_source(spec, image, on_names(spec.operands)[1])
    inside = {
        s.target: s.source
        for s in image_function(spec, image, matrix, "", "").statements
        if isinstance(s, Statement)
    }
    written = bytes_of(inside["rows"], extent_of) + bytes_of(inside["sums"], extent_of)
    dims = f"NC{image.rows.letter}{image.columns.letter}"
    moved = (lhs != dims) * _size(spec) + (out != dims) * points(axes)
    return Work(
        dot=count * flops(inside["sums"], extent_of),
        stream=float(count * written + 2 * dtypes.width(spec.lhs.dtype) * moved),
        kernel=facts.turn * count,
        temporaries=written,
    )


def held_bytes(spec: ConvolutionSpec, axes: Sequence[Axis]) -> int:
    """What XLA's convolution holds: all images and results in another order."""
    width = dtypes.width(spec.lhs.dtype)
    return width * (_size(spec) + points(axes))


def _size(spec: ConvolutionSpec) -> int:
    return prod(map(extent_of, spec.shapes[0]))


# --- text


def kernel_source(spec: ConvolutionSpec, image: Image, kernel: Node) -> Node:
    """The kernel as a matrix for each column."""
    dims = spec.dimension_numbers[1]
    shape = dict(zip(dims, spec.shapes[1], strict=True))
    order = (image.columns.letter, "O", image.rows.letter, "I")
    moved = rearranged(kernel, spec.rhs_shape, [dims.index(d) for d in order])
    columns = () if image.columns.taps == 1 else (shape[image.columns.letter],)
    return rearranged(moved, (*columns, shape["O"], normal(shape[image.rows.letter] * shape["I"])), None)


def image_function(spec: ConvolutionSpec, image: Image, kernel: Node, scope: str, name: str) -> Function:
    """The function of one image."""
    lhs = spec.dimension_numbers[0]
    shape = dict(zip(lhs, spec.shapes[0], strict=True))
    kind = (spec.lhs.dtype, False)
    own = Name("image", (shape["C"], shape[image.rows.letter], shape[image.columns.letter]), kind)
    statements: list[Statement] = []

    def assign(target: str, node: Node) -> Name:
        statements.append(Statement(scope, target, node))
        return Name(target, node.shape, node.kind)

    pads = [(0, 0), image.rows.padding, image.columns.padding]
    if any(map(any, pads)):
        own = assign("image", _padded(own, pads, spec.lhs.dtype))
    turns = loop("i", image.rows.taps)
    rows: Node = apply_steps(own, [Index((ALL, _window(image.rows, turns.axis)))])
    rows = assign("rows", Joined((Each(rows, (turns,)),), 0) if image.rows.taps > 1 else rows)
    sums = assign("sums", Tensordot(kernel, rows))
    turns = loop("j", image.columns.taps)
    window = _window(image.columns, turns.axis)
    if image.columns.taps > 1:
        part = apply_steps(sums, [Index((turns.axis, ALL, ALL, window))])
        return Function(scope, name, ("image",), tuple(statements), Total(Each(part, (turns,))))
    return Function(
        scope, name, ("image",), tuple(statements), apply_steps(sums, [Index((ALL, ALL, window))])
    )


def _padded(image: Node, pads: Sequence[tuple[int, int]], dtype: str) -> Node:
    widths = tuple((as_expr(before), as_expr(behind)) for before, behind in pads)
    if min(map(min, pads)) < 0:
        return Spread(image, Typed(Number(0), dtype), tuple((*pair, 0) for pair in widths))
    return apply_steps(image, [Pad(widths)])


def images_source(spec: ConvolutionSpec, image: Image, function: Function, operands: Sequence[Node]) -> Node:
    """``function`` of every image, brought to the output axes."""
    lhs, _, out = spec.dimension_numbers
    dims = ("N", "C", image.rows.letter, image.columns.letter)
    images = rearranged(operands[0], spec.lhs_shape, [lhs.index(d) for d in dims])
    assert function.result is not None
    shape = (images.shape[0], *function.result.shape)
    result = MapOver(function.name, images, shape, function.result.kind)
    return finished_source(spec, rearranged(result, None, [dims.index(d) for d in out]), operands)
