"""What convolutions take: their nodes counted with what the platform makes of them, and the copies around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis
from jaxte.lang.limits import MOST_DIAGONALS
from jaxte.lower.arrays.counts import features, flops, in_turns, window
from jaxte.lower.arrays.counts import points as points_of_loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Convolution
from jaxte.lower.cost.platform import DenseGroups, Platform
from jaxte.lower.cost.work import Work, points
from jaxte.lower.forms.conv.folded import RANK, Fold
from jaxte.lower.forms.conv.one_pass import TapSumsSpec
from jaxte.lower.forms.conv.spec import ConvolutionSpec
from jaxte.lower.forms.conv.write import Classes
from jaxte.sets.intervals import extent_of


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
    ordinary = (node.by_batch or extent_of(node.groups) == 1) and all(s == 1 for s in node.strides)
    # Positions of a kernel.
    return facts.convolution_call + (
        0 if ordinary or positions <= MOST_DIAGONALS else positions / facts.kernel_positions
    )


def _multiplied(node: Convolution, facts: Platform) -> Work:
    met, counted = 2.0 * points_of_loop(node, extent_of), flops(node, extent_of)
    own, out = {letter: extent_of(e) for letter, e in window(node).items()}, extent_of(features(node))
    groups = extent_of(node.groups)
    if facts.groups_as_dense and groups > 1 and groups == out and (own["I"] == 1 or node.by_batch):
        return _of_channels(node, met, out, facts.groups_as_dense, facts.lanes)
    # of several features of a group, over more than a short kernel of one: a product of matrices for each group
    summed = out > groups and (
        own["I"] > 1 or (prod(own.values()) > MOST_DIAGONALS and facts.groups_by_library)
    )
    if (groups > 1 and (facts.groups_in_loops or not summed)) or own["I"] == 1 == out:
        return Work(grouped_convolution=counted)
    if not dtypes.is_inexact(node.lhs.dtype):  # no library has convolutions of integers
        return Work(grouped_convolution=met)
    few = max(1.0, facts.lanes * groups / out)
    if len(node.strides) > RANK:  # a plain loop, which multiplies with the zeros too
        return Work(volume_convolution=met * few)
    few = 1.0 if _is_vector(own, out, facts) else few
    width = dtypes.width("float32")
    copied, between = (n / 2 / out * width for n in (counted, met - counted))
    several = out > facts.features_alone and out * prod(own.values()) >= facts.kernel_shared
    cores = facts.cores if several else 1
    return Work(convolution=counted * few / cores, stream=copied + between / few**2)


def _is_vector(own: dict[str, int], out: int, facts: Platform) -> bool:
    """Whether a kernel is a vector, by which the matrix of what it meets is multiplied: of one output feature, and of no more features of the input
    than the algorithm has lanes, beyond which XLA on the CPU takes another one (16 features: 10 to 15e9 operations a second, 17: 0.6e9)."""
    return facts.convolves_alone and out == 1 and own["I"] <= facts.lanes


def _of_channels(node: Convolution, met: float, out: int, dense: DenseGroups, lanes: int) -> Work:
    """The multiplications with all features of each register, and copies of what is read and written, padded to registers.

    Parts of the rows stand in place of a batch that does not fill a register, for which more is copied.
    """
    padded = -(-out // lanes) * lanes
    everywhere = met / 2 / out * padded
    lhs, rhs = (
        dtypes.width("float32") * prod(map(extent_of, operand.shape)) / out * padded
        for operand in (node.lhs, node.rhs)
    )
    batch = extent_of(node.lhs.shape[node.dimensions[0].index("C" if node.by_batch else "N")])
    if node.by_batch:
        copies = dense.copies_of_few if 1 < batch < dense.batch else dense.copies_of_filter
        return Work(convolution=everywhere * lanes / dense.of_filter, stream=copies * (lhs + rhs))
    copies = dense.copies_of_few if batch < dense.batch else dense.copies
    return Work(convolution=everywhere * lanes / dense.products, stream=copies * max(lhs, rhs))


def folded_copies(spec: ConvolutionSpec, axes: tuple[Axis, ...], folds: Sequence[Fold]) -> Work:
    """Each operand that is laid out is read and written, and the result once more for its order."""
    width = dtypes.width("float32")
    laid_out = [width * prod(map(extent_of, fold.spec.lhs_shape or ())) for fold in folds]
    moved = points(axes) + prod(map(extent_of, spec.shapes[1]))
    return Work(
        stream=2.0 * (sum(laid_out) + width * moved), kernel=4 * len(folds), temporaries=max(laid_out)
    )


def classes_work(
    spec: ConvolutionSpec, axes: tuple[Axis, ...], classes: tuple[Classes, ...], facts: Platform
) -> Work:
    """The same multiplications without the zeros, and one more copy of the result.

    Not counted from the nodes: the windows of a class are a turn of a loop, whose padding is known in that turn only.
    """
    window = kernel_extents(spec)
    flops = 2.0 * points(axes) * prod(window.values()) / window["O"] / prod(spec.lhs_dilation)
    calls = prod(len(own.classes) for own in classes)
    copies = Work(stream=8.0 * points(axes), kernel=facts.call * calls)
    if extent_of(spec.groups) > 1 or window["I"] == 1 == window["O"]:
        return copies + Work(grouped_convolution=flops)
    few = max(1.0, facts.lanes / window["O"])
    if len(spec.strides) > RANK:
        return copies + Work(volume_convolution=flops * few)
    copied = flops / 2 / window["O"] * dtypes.width("float32")
    return copies + Work(convolution=flops * few / _cores(window, facts), stream=copied)


def groups_copies(spec: ConvolutionSpec, axes: tuple[Axis, ...], groups: int) -> Work:
    """Slices of the operands, and one more copy of the result, beside the dense convolutions."""
    copies = 8.0 * (points(axes) + prod(map(extent_of, spec.shapes[0])))
    return Work(stream=copies, kernel=groups + 1)


def _cores(window: dict[str, int], facts: Platform) -> int:
    """How many cores a convolution of two dimensions has."""
    several = window["O"] > facts.features_alone and prod(window.values()) >= facts.kernel_shared
    return facts.cores if several else 1


def kernel_extents(spec: ConvolutionSpec) -> dict[str, int]:
    """The extents of the kernel by letter."""
    shape = spec.shapes[1]
    return {letter: extent_of(e) for letter, e in zip(spec.dimension_numbers[1], shape, strict=True)}


def tap_sums_work(spec: TapSumsSpec, times: float) -> Work:
    """Every product, added on its own: the order of a sum is kept, so that nothing is done in vectors.

    Stated: a product takes two and a half times as long as one that is added in vectors (measured), or ``times`` as long as that. What is summed
    at the end is written first.
    """
    extents = [extent_of(e) for e in spec.rhs.shape]
    size = prod(extents)
    left = 8.0 * spec.sums * size / prod(extents[n] for n in spec.in_pass)
    own = Work(
        tap=2.5 * times * size * spec.sums, stream=8.0 * prod(map(extent_of, spec.lhs.shape)), kernel=3
    )
    if spec.is_turned:
        own += Work(stream=16.0 * size, kernel=2)
    return own + Work(stream=2 * left, temporaries=left)
