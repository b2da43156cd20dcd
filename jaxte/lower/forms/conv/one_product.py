"""Convolutions with a large kernel, and their gradients, as one product of matrices: what is read at each position is laid out in stacks.

A convolution is one product and a few slices that are added:

    y[i, j] = sum over k, l of x[i + k, j + l] * w[k, l]   =   sum over k of P[k, i + k, j]   with   P[k, p, j] = sum over l of w[k, l] * x[p, j + l]

What ``x`` is at each ``l`` is one stack of as many slices as the kernel has columns, and ``P`` has an array for each of its rows. Windows of all taps would be as many
elements as there are products, and one loop over all taps takes long to compile and to run from about a hundred on. XLA's convolution of a few features on a
CPU is a plain loop.

The gradient of a large kernel, or the correlation of two images at many shifts, is a product of two stacks:

    out[k, l] = sum over i, j of x[i + k, j + l] * h[i, j]   =   sum over p, j of x[p, j + l] * h[p - k, j]

One holds ``x`` at each ``l``, the other one ``h`` at each ``k``, with zeros around it: as many copies as there are positions in one dimension, where
windows of all positions are as many as there are products. A sum for each position would read both images anew.
Zeros around ``h`` are multiplied, as those of a Toeplitz matrix are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_letters

from jaxte.algebra.product import may_spoil, product_of
from jaxte.lang import dtypes
from jaxte.lang.expr import ONE, ZERO, Axis, Const, as_expr
from jaxte.lang.limits import LONGEST_UNROLLED, MOST_PARTS, MOST_UNROLLED, NARROW
from jaxte.lower.arrays.elementwise import Name, Number, Typed
from jaxte.lower.arrays.loops import Each, Stacked, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.views import ALL, Entry, Index, Pad, Range, Spread
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import moving
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.conv.one_pass import TapSumsSpec, padded_operand, placed, recognise_tap_sums
from jaxte.lower.forms.conv.recognise import Matched
from jaxte.lower.forms.conv.spec import ConvolutionSpec
from jaxte.lower.forms.conv.write import Dimension, dimension, finished_source, rearranged
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of


@dataclass(frozen=True, slots=True)
class RowProducts:
    """``spec`` of two dimensions: ``rows``, whose taps are added up, and ``columns``, whose taps are contracted."""

    spec: ConvolutionSpec
    rows: Dimension
    columns: Dimension


def row_products_of(spec: ConvolutionSpec) -> RowProducts | Refusal:
    """``spec`` by its rows, where it has so many taps that they are no slices."""
    if len(spec.strides) != 2 or spec.groups is not ONE:
        return Refusal("it has not two dimensions, or groups")
    rows, columns = dimension(spec, 0), dimension(spec, 1)
    if rows is None or columns is None:
        return Refusal("extents depend on sizes")
    if max(rows.spacing, columns.spacing) > 1 or spec.lhs.dtype in dtypes.NARROW:
        return Refusal("there are zeros between elements, or products are rounded")
    if rows.taps * columns.taps <= MOST_UNROLLED:
        return Refusal(f"its taps are {MOST_UNROLLED} at most, slices that are multiplied and added")
    if max(rows.taps, columns.taps) > LONGEST_UNROLLED:
        return Refusal(f"its kernel is longer than {LONGEST_UNROLLED}")
    return RowProducts(spec, rows, columns)


def row_products_source(own: RowProducts, operands: Sequence[Node], step: Callable[[Node], Node]) -> Node:
    """``own`` on the nodes of the operands of its specification; ``step`` gives a node a name."""
    spec, rows, columns = own.spec, own.rows, own.columns
    numbers = [dims.replace(rows.letter, "H").replace(columns.letter, "W") for dims in spec.dimension_numbers]
    lhs, rhs = (
        rearranged(node, shape, None)
        for node, shape in zip(operands[:2], (spec.lhs_shape, spec.rhs_shape), strict=True)
    )
    lhs = step(_padded(spec, {"H": rows.padding, "W": columns.padding}, numbers[0], lhs))
    stack = _slices(lhs, numbers[0].index("W"), columns, "j")
    first = numbers[0].lower()
    second = numbers[1].translate(str.maketrans("OIHW", "ocrs"))
    out = numbers[2].translate(str.maketrans("NCHW", "nohw"))
    products = step(Einsum(f"s{first},{second}->r{out}", (step(Stacked((stack,), 0)), rhs)))
    turn = loop("i", rows.taps)
    at = numbers[2].index("H")
    entries: tuple[Entry, ...] = (turn.axis, *(ALL,) * at, _moving(rows, turn.axis))
    total = step(Total(Each(apply_steps(products, [Index(entries)]), (turn,))))
    return step(finished_source(spec, total, operands))


def _slices(array: Node, at: int, own: Dimension, name: str) -> Each:
    turn = loop(name, own.taps)
    return Each(apply_steps(array, [Index((*(ALL,) * at, _moving(own, turn.axis)))]), (turn,))


def _moving(own: Dimension, tap: Axis) -> Range:
    return moving(own.dilation * tap, own.stride * (own.outputs - 1) + 1, own.stride)


def _padded(spec: ConvolutionSpec, padding: dict[str, tuple[int, int]], dims: str, lhs: Node) -> Node:
    """lhs with zeros around it, or without what no window meets."""
    widths = [padding.get(letter, (0, 0)) for letter in dims]
    if not any(map(any, widths)):
        return lhs
    if min(min(own) for own in widths) < 0:
        zero = Typed(Number(0), spec.lhs.dtype)
        return Spread(lhs, zero, tuple((as_expr(a), as_expr(b), 0) for a, b in widths))
    return apply_steps(lhs, [Pad(tuple((as_expr(a), as_expr(b)) for a, b in widths))])


def row_products_work(own: RowProducts) -> Work:
    """A product of matrices that are written to memory, and slices of it that are added in one loop."""
    spec, rows, columns = own.spec, own.rows, own.columns
    lhs, rhs = (
        dict(zip(dims, map(extent_of, shape), strict=True))
        for dims, shape in zip(spec.dimension_numbers, spec.shapes, strict=False)
    )
    width = dtypes.width(spec.lhs.dtype)
    lines = lhs["N"] * rows.padded * columns.outputs
    copied, made = lines * lhs["C"] * columns.taps, lines * rhs["O"] * rows.taps
    results = lhs["N"] * rhs["O"] * rows.outputs * columns.outputs
    narrow = min(rows.taps * rhs["O"], columns.taps * lhs["C"])
    return Work(
        dot=2.0 * made * columns.taps * lhs["C"] * (1 + NARROW / narrow),
        stream=2.0 * width * (copied + made),
        tap=float(results * rows.taps),
        kernel=5,
        temporaries=width * (copied + made),
    )


def recognise_two_stacks(found: Matched, axes: Sequence[Axis], dtype: str) -> TapSumsSpec | Refusal:
    """The sums that a convolution is, where they are too many for one pass."""
    spec = recognise_tap_sums(
        found.match, axes, dtype, found.outer, found.guards, most=LONGEST_UNROLLED * LONGEST_UNROLLED
    )
    if isinstance(spec, Refusal):
        return spec
    rows, *others = (w[0] for w in spec.windows)
    if not others or max(rows, prod(others)) > LONGEST_UNROLLED or rows * prod(others) <= MOST_PARTS:
        return Refusal("there are no two stacks of a few slices, or sums in one pass are few enough")
    if spec.windows[0][3] != 1 or dtype in dtypes.NARROW:
        return Refusal("elements of the first dimension are taken apart, or rounded in each product")
    if any(map(may_spoil, product_of(spec.lhs.body).factors)):
        return Refusal(
            "zeros around one operand would be multiplied by what may be infinite in the other one"
        )
    return spec


def two_stacks_source(
    spec: TapSumsSpec, operands: Sequence[Node], step: Callable[..., Name], shared: Callable[[Node], Name]
) -> Node:
    """``spec`` on the nodes of ``spec.operands``; arguments as those of ``tap_sums_source``."""
    rows, move, flipped, _, count = spec.windows[0]
    around = Const(move * (rows - 1))
    before = [ALL] * spec.first
    turns, entries = [], list[Entry]([*before, ALL])
    for name, (size, by, backwards, every, own) in zip("jklmn", spec.windows[1:], strict=False):
        turns.append(loop(name, size, backwards=backwards))
        entries.append(moving(by * turns[-1].axis, normal(every * (own - 1) + 1), every))
    lhs = padded_operand(spec, operands[0], shared)
    first = Stacked((Each(apply_steps(lhs, [Index(tuple(entries))]), tuple(turns)),), 0)
    widths = tuple((around, around) if n == spec.first else (ZERO, ZERO) for n in range(len(spec.rhs.axes)))
    rhs = step(apply_steps(operands[1], [Pad(widths)]))
    turn = loop("i", rows, backwards=flipped)
    part = moving(normal(around - move * turn.axis), normal(count + around))
    second = Stacked((Each(apply_steps(rhs, [Index((*before, part))]), (turn,)),), 0)
    own_letters, y, z = ascii_letters[: len(spec.lhs.axes)], "y", "z"
    out = "".join(own_letters[n] for n in spec.kept)
    product = Einsum(f"{y}{own_letters},{z}{own_letters}->{out}{y}{z}", (step(second), step(first)))
    return step(placed(spec, step(product), operands))


def two_stacks_work(spec: TapSumsSpec) -> Work:
    """The product of two matrices that are written to memory."""
    width = dtypes.width(spec.lhs.dtype)
    rows, move, *_ = spec.windows[0]
    others = spec.sums // rows
    each = prod(map(extent_of, spec.rhs.shape))
    count = extent_of(spec.windows[0][4])
    each = each // count * (count + move * (rows - 1))
    copied = width * each * (rows + others)
    return Work(
        dot=2.0 * each * spec.sums * (1 + NARROW / min(rows, others)),
        stream=2.0 * copied,
        kernel=5,
        temporaries=copied,
    )
