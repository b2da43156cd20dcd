"""Convolutions that XLA on the CPU has no fast one for, as those that it has: folded, or one for each group.

A convolution of three or more dimensions is one of two, with the windows of a dimension laid out among batch and features.

For each output ``t`` of a dimension the taps ``k`` meet ``x[gamma * t + beta * k - before]``. Laid out as an array over ``t`` and ``k``,
the outputs are further examples of a batch and the taps further features that are contracted, of the operand and of the kernel:

    y[n, o, t, i, j] = sum over (c, k), p, q of x_laid_out[(n, t), (c, k), i + p, j + q] * w[o, (c, k), p, q]

XLA on the CPU has a fast convolution of two dimensions; its convolutions of three take ten times as long for the same products. What is
laid out is as many times as large as there are taps, so it is the dimension with the fewest.

The groups of a convolution have nothing in common: group ``g`` maps the input features ``[g * I, (g + 1) * I)`` to the output features
``[g * O, (g + 1) * O)``. XLA's own grouped convolution is a plain loop on the CPU, up to a hundred times slower than the dense one, most of all where the
kernel is as large as an image, as in the gradient of the weights. One convolution for each group stands side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxte.lang.expr import ONE, Const, Expr, as_expr
from jaxte.lang.limits import LONGEST_UNROLLED, MOST_PARTS
from jaxte.lower.arrays.elementwise import Name, Number, Typed
from jaxte.lower.arrays.loops import Each, Joined, Parts, Stacked, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import ALL, Index, Pad, Range, Spread
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import NO_WIDTH, moving
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.conv.spec import ConvolutionSpec
from jaxte.lower.forms.conv.write import Dimension, call_source, dimension, finished_source, rearranged
from jaxte.sets.affine import normal


def groups_of(spec: ConvolutionSpec) -> int | Refusal:
    """How many convolutions ``spec`` takes apart into."""
    if spec.groups is ONE:
        return Refusal("there is one group only")
    if not isinstance(spec.groups, Const):
        return Refusal("the number of groups is not known")
    count = int(spec.groups)
    return count if count <= MOST_PARTS else Refusal(f"{count} groups are more than {MOST_PARTS}")


def groups_source(spec: ConvolutionSpec, operands: Sequence[Node]) -> Node:
    """``spec`` on the nodes of ``spec.operands``."""
    return finished_source(spec, per_group_source(spec, operands), operands)


def per_group_source(spec: ConvolutionSpec, operands: Sequence[Node]) -> Node:
    """The convolutions alone, side by side."""
    count = int(spec.groups)
    lhs, rhs, out = spec.dimension_numbers
    shapes = (spec.lhs_shape, spec.rhs_shape)
    arrays = tuple(rearranged(node, shape, None) for node, shape in zip(operands[:2], shapes, strict=True))
    places = lhs.index("C"), rhs.index("O")
    names = tuple(
        Name(name, _part(array.shape, place, count), array.kind)
        for name, array, place in zip("ab", arrays, places, strict=True)
    )
    dense = replace(spec, groups=ONE, lhs_shape=None, rhs_shape=None)
    groups = Parts(names, arrays, places, count)
    return Joined((Each(call_source(dense, names), (groups,)),), out.index("C"))


def _part(shape: Sequence[Expr], axis: int, count: int) -> tuple[Expr, ...]:
    """The shape of a part of an array that is split into ``count`` along ``axis``."""
    return tuple(normal(e // count) if n == axis else e for n, e in enumerate(shape))


RANK = 2  # the dimensions that are left

Assign = Callable[..., Name]  # of a node, and the name that it is to have


@dataclass(frozen=True, slots=True)
class Fold:
    """A spatial dimension, and the convolution that is left without it."""

    own: Dimension
    spec: ConvolutionSpec

    @property
    def slices(self) -> int:
        """What it is laid out in: taps, or outputs where these are fewer."""
        return min(self.own.taps, self.own.outputs)


def folds_of(spec: ConvolutionSpec) -> list[Fold] | Refusal:
    """What to lay out, one dimension after the other, until two are left."""
    found: list[Fold] = []
    while len(spec.strides) > RANK:
        offers = [fold for n in range(len(spec.strides)) if (fold := _fold(spec, n)) is not None]
        if not offers:
            return Refusal("extents depend on sizes")
        found.append(min(offers, key=lambda fold: fold.slices))
        spec = found[-1].spec
    if not found:
        return Refusal("it has two dimensions at most")
    slices = max(fold.slices for fold in found)
    if slices > LONGEST_UNROLLED:
        return Refusal(f"its windows are {slices} slices, more than {LONGEST_UNROLLED}")
    return found


def _fold(spec: ConvolutionSpec, number: int) -> Fold | None:
    """The spatial dimension ``number`` of ``spec``; None where its extents are not known."""
    own = dimension(spec, number)
    if own is None:
        return None
    lhs, rhs, out = spec.dimension_numbers
    left = replace(
        spec,
        lhs_shape=_without(spec.shapes[0], lhs, own.letter, {"N": own.outputs, "C": own.taps}),
        rhs_shape=_without(spec.shapes[1], rhs, own.letter, {"I": own.taps}),
        strides=spec.strides[:number] + spec.strides[number + 1 :],
        padding=spec.padding[:number] + spec.padding[number + 1 :],
        lhs_dilation=spec.lhs_dilation[:number] + spec.lhs_dilation[number + 1 :],
        rhs_dilation=spec.rhs_dilation[:number] + spec.rhs_dilation[number + 1 :],
        dimension_numbers=(
            lhs.replace(own.letter, ""),
            rhs.replace(own.letter, ""),
            out.replace(own.letter, ""),
        ),
    )
    return Fold(own, left)


def _without(shape: Sequence[Expr], dims: str, letter: str, times: dict[str, int]) -> tuple[Expr, ...]:
    """``shape`` without the dimension ``letter``, others ``times`` as large."""
    return tuple(
        normal(extent * times.get(own, 1)) for own, extent in zip(dims, shape, strict=True) if own != letter
    )


# --- text


def folded_source(
    spec: ConvolutionSpec,
    folds: Sequence[Fold],
    operands: Sequence[Node],
    step: Assign,
    grouped: bool = False,
) -> Node:
    """``spec`` on the nodes of ``spec.operands``.

    Args:
        spec: the convolution of all dimensions.
        folds: those that are laid out, from :func:`folds_of`.
        operands: nodes of the operands.
        step: gives a node a name, by default a new one.
        grouped: whether what is left is one convolution for each group.
    """
    whole = spec
    shapes = (spec.lhs_shape, spec.rhs_shape)
    lhs, rhs = (rearranged(node, shape, None) for node, shape in zip(operands[:2], shapes, strict=True))
    for fold in folds:
        lhs = _laid_out(spec, fold, lhs, step)
        rhs = _folded_kernel(spec, fold, rhs)
        spec = fold.spec
    left = replace(spec, lhs_shape=None, rhs_shape=None)
    result: Node = step((per_group_source if grouped else call_source)(left, (lhs, rhs)))
    before = [whole, *(fold.spec for fold in folds[:-1])]
    for spec, fold in zip(reversed(before), reversed(folds), strict=True):
        result = _unfolded(spec, fold, result)
    return step(finished_source(whole, result, operands))


def _laid_out(spec: ConvolutionSpec, fold: Fold, lhs: Node, step: Assign) -> Node:
    """lhs with zeros around it, its slices stacked, and outputs and taps merged, one after the other under one name."""
    dims = spec.dimension_numbers[0]
    own, at = fold.own, dims.index(fold.own.letter)
    target = ""
    padded = _padded(spec, fold, lhs, at)
    if padded is not lhs or not isinstance(lhs, Name):
        lhs = named = step(padded)
        target = named.identifier
    by_tap = own.taps <= own.outputs
    count, move = (own.taps, own.dilation) if by_tap else (own.outputs, own.stride)
    length, pace = (own.outputs, own.stride) if by_tap else (own.taps, own.dilation)
    reach = pace * (length - 1) + 1
    place = {d: n for n, d in enumerate(dims)}
    if count == 1:
        lhs = apply_steps(lhs, [Index((*(ALL,) * at, Range(None, as_expr(reach), pace)))])
        with_them = {"N" if by_tap else "C": at}
    else:
        turns = loop("i", count)
        part = apply_steps(lhs, [Index((*(ALL,) * at, moving(move * turns.axis, reach, pace)))])
        lhs = named = step(Stacked((Each(part, (turns,)),), at), target)
        target = named.identifier
        # the slices come before what is left of the dimension
        place = {d: n + (n > at) for d, n in place.items()}
        with_them = {"C": at, "N": at + 1} if by_tap else {"N": at, "C": at + 1}
    order = [
        p
        for d in dims
        if d != fold.own.letter
        for p in (place[d], *([with_them[d]] if d in with_them else []))
    ]
    return step(rearranged(rearranged(lhs, None, order), fold.spec.lhs_shape, None), target)


def _padded(spec: ConvolutionSpec, fold: Fold, lhs: Node, at: int) -> Node:
    if fold.own.padding == (0, 0) and fold.own.spacing == 1:
        return lhs
    before, behind = map(as_expr, fold.own.padding)
    ndim = len(spec.dimension_numbers[0])
    if fold.own.spacing == 1 and min(fold.own.padding) >= 0:
        return apply_steps(lhs, [Pad(tuple((before, behind) if n == at else NO_WIDTH for n in range(ndim)))])
    entries = [(before, behind, fold.own.spacing - 1) if n == at else (*NO_WIDTH, 0) for n in range(ndim)]
    return Spread(lhs, Typed(Number(0), spec.lhs.dtype), tuple(entries))


def _folded_kernel(spec: ConvolutionSpec, fold: Fold, rhs: Node) -> Node:
    """The kernel with the taps of the dimension merged into its input features."""
    dims = spec.dimension_numbers[1]
    at = dims.index(fold.own.letter)
    order = [p for n, d in enumerate(dims) if n != at for p in ([n, at] if d == "I" else [n])]
    return rearranged(rearranged(rhs, None, order), fold.spec.rhs_shape or (), None)


def _unfolded(spec: ConvolutionSpec, fold: Fold, result: Node) -> Node:
    """The result with the outputs of the dimension, which are among its batch, at their own place."""
    out, left = spec.dimension_numbers[2], fold.spec.dimension_numbers[2]
    dims = [d for own in left for d in ((own, fold.own.letter) if own == "N" else (own,))]
    batch = spec.shapes[0][spec.dimension_numbers[0].index("N")]
    extents = {
        **dict(zip(left, result.shape, strict=True)),
        "N": batch,
        fold.own.letter: as_expr(fold.own.outputs),
    }
    return rearranged(result, [extents[d] for d in dims], [dims.index(d) for d in out])
