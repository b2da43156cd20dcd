"""A grouped convolution as one convolution for each group, side by side.

The groups of a convolution have nothing in common: group ``g`` maps the input features ``[g * I, (g + 1) * I)`` to the output
features ``[g * O, (g + 1) * O)``. XLA's own grouped convolution is a plain loop on the CPU, up to a hundred times slower than the
dense one, most of all where the kernel is as large as an image, as in the gradient of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxte.lang.expr import ONE, Const, Expr
from jaxte.lower.arrays.leaves import Name
from jaxte.lower.arrays.loops import Each, Joined, Parts
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.conv.spec import ConvolutionSpec
from jaxte.lower.forms.conv.write import call_source, finished_source, rearranged
from jaxte.lower.limits import MOST_COPIES
from jaxte.sets.affine import normal


def groups_of(spec: ConvolutionSpec) -> int | Refusal:
    """How many convolutions ``spec`` takes apart into."""
    if spec.groups is ONE:
        return Refusal("there is one group only")
    if not isinstance(spec.groups, Const):
        return Refusal("the number of groups is not known")
    count = int(spec.groups)
    return count if count <= MOST_COPIES else Refusal(f"{count} groups are more than {MOST_COPIES}")


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
