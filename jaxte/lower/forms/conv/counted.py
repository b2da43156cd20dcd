"""The work of convolutions as their nodes say it, each at the rate of what a platform makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from jaxte.lang import dtypes
from jaxte.lower.arrays.counts import features, flops, in_turns, points, window
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Convolution
from jaxte.lower.cost.platforms import Platform
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.conv.folded import RANK
from jaxte.sets.intervals import extent_of

_SHORT = 128  # positions of a kernel


def convolutions_work(roots: Iterable[Node], facts: Platform) -> Work:
    """The work of all convolutions below ``roots``."""
    total = Work()
    for node, times in in_turns(*roots):
        if isinstance(node, Convolution):
            total += convolution_work(node, facts) * times
    return total


def convolution_work(node: Convolution, facts: Platform) -> Work:
    """The multiplications of every output with the kernel's window and input features of one group.

    In two dimensions, what a kernel meets is copied into the rows of a matrix first, once for each tap, the zeros of a dilated
    operand with it; no multiplication is done for them, and they matter less where there are few output features to multiply with.
    The rate is that of one core. Output features are all that cores share.
    """
    return _multiplied(node, facts) + Work(kernel=_started(node, facts))


def _started(node: Convolution, facts: Platform) -> float:
    """The kernels that a convolution takes as long as, beyond its multiplications: libraries have no algorithm for a long kernel that is
    in groups or moves by more than one, and take its positions one after the other."""
    letters = window(node)
    positions = prod(extent_of(e) for letter, e in letters.items() if letter != "I")
    ordinary = extent_of(node.groups) == 1 and all(s == 1 for s in node.strides)
    return facts.convolution_call + (
        0 if ordinary or positions <= _SHORT else positions / facts.kernel_positions
    )


def _multiplied(node: Convolution, facts: Platform) -> Work:
    met, counted = 2.0 * points(node, extent_of), flops(node, extent_of)
    own, out = {letter: extent_of(e) for letter, e in window(node).items()}, extent_of(features(node))
    groups = extent_of(node.groups)
    if (groups > 1 and (facts.groups_in_loops or own["I"] == 1)) or own["I"] == 1 == out:
        return Work(grouped_convolution=counted)
    if not dtypes.is_inexact(node.lhs.dtype):  # no library has convolutions of integers
        return Work(grouped_convolution=met)
    few = max(1.0, facts.lanes * groups / out)
    if groups > 1:
        few *= max(1.0, facts.depth / own["I"])
    if len(node.strides) > RANK:  # a plain loop, which multiplies with the zeros too
        return Work(volume_convolution=met * few)
    width = dtypes.width("float32")
    copied, between = (n / 2 / out * width for n in (counted, met - counted))
    several = out > facts.features_alone and out * prod(own.values()) >= facts.kernel_shared
    cores = facts.cores if several else 1
    return Work(convolution=counted * few / cores, stream=copied + between / few**2)
