"""Sums of products at many positions in two dimensions or more, as one product of matrices: each operand is laid out at the positions of some of them.

The gradient of a large kernel, or the correlation of two images at many shifts, is

    out[k, l] = sum over i, j of x[i + k, j + l] * h[i, j]   =   sum over p, j of x[p, j + l] * h[p - k, j]

One stack holds ``x`` at each ``l``, the other one ``h`` at each ``k``, with zeros around it: as many copies as there are positions in one dimension, where
windows of all positions are as many as there are products. XLA's convolution of one feature is a plain loop, and a sum for each position reads both images anew.
Zeros around ``h`` are multiplied, as those of a Toeplitz matrix are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from string import ascii_letters

from jaxte.algebra.product import may_spoil, product_of
from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Const
from jaxte.lang.limits import LONGEST_UNROLLED, MOST_PARTS
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.loops import Each, Stacked, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.steps import ALL, Entry, Index, Pad
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import moving
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.general import NARROW
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.conv.one_pass import TapSumsSpec, padded_operand, placed, recognise_tap_sums
from jaxte.lower.forms.conv.recognise import Matched
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of


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
