"""Convolutions that index notation writes better: those that are slices multiplied and added, and those that are products of matrices.

Between them, with several features and overlapping windows, XLA's convolutions are as good, and so are JAX's derivatives of them.

Reductions over windows are left to JAX where registers are rows of one axis, in which elements are dear to move against each other.
On a TPU sums over windows along rows are one kernel of XLA, forward and backward, and what flows back through an extremum has a unit of its own: Harris corners took
23 kernels for 19 raised, a pool of 3 x 3 two positions apart 26 for 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.steps import Step
from jaxte.frontends.jaxpr.gains.parts import kernel_selection
from jaxte.lang import dtypes
from jaxte.lang.dtypes import is_float, width
from jaxte.lang.limits import FEW, MARGIN, MOST_KEPT
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import Work


@dataclass(frozen=True)
class _Sizes:
    """Of a convolution: images, positions of what it reads and makes, of the kernel, and features; whether these are last, and whether positions are a line without strides."""

    images: int
    read: int
    made: int
    kernel: int
    features_in: int
    features_out: int
    are_last: bool
    line: bool

    @property
    def multiplications(self) -> int:
        return self.images * self.made * self.kernel * self.features_in * self.features_out


def slow_convolution(step: Step) -> str:
    """What a convolution gains together with what is around it; empty where nothing."""
    p = step.eqn.params
    spec = p["dimension_numbers"].rhs_spec
    if kernel_selection(step.inputs[1].known, spec) is not None:
        return "a convolution whose kernel chooses elements: windows, which are reads"
    if _is_of_few(step) and not planned_facts().moves_lanes_apart:
        return "a convolution of few features, which is slices multiplied and added"
    if p["feature_group_count"] > 1 and not _is_in_library(step):
        return "a convolution in groups, which is slices multiplied and added"
    if any(d > 1 for d in p["lhs_dilation"]):
        return "a convolution of an array with zeros between its elements"
    return ""


def _is_in_library(step: Step) -> bool:
    """Whether the platform has a convolution in groups of its own, as those of one dimension are where these have a unit for themselves."""
    facts, numbers = planned_facts(), step.eqn.params["dimension_numbers"]
    lines = facts.moves_lanes_apart and len(numbers.lhs_spec) == 3
    return lines or (facts.groups_by_library and _has_channels_last(step))


def _has_channels_last(step: Step) -> bool:
    """Whether ``step`` is a convolution of two dimensions whose features stand behind its positions."""
    numbers = step.eqn.params["dimension_numbers"]
    return len(numbers.lhs_spec) == 4 and numbers.lhs_spec[1] == numbers.out_spec[1] == 3


def gain_of_patches(step: Step, facts: Platform) -> str:
    """What a convolution gains whose windows do not overlap, as the embedding of patches and one of single points; empty where nothing."""
    if step.name != "conv_general_dilated" or not _is_apart(step):
        return ""
    sizes = _sizes(step)
    item = width(step.outputs[0].dtype)
    if _as_it_is(sizes, facts, item).seconds(facts.rates) < MARGIN * _as_product(sizes, item).seconds(
        facts.rates
    ):
        return ""
    return "a convolution whose windows do not overlap: a product of matrices, and so are its gradients"


def _is_of_few(step: Step) -> bool:
    sizes = _sizes(step)
    # The gradient of a kernel reads all windows of one feature side by side.
    if sizes.images * sizes.made * sizes.kernel * width(step.outputs[0].dtype) > MOST_KEPT:
        return False
    if step.eqn.params["feature_group_count"] == 1 and sizes.features_in == 1:
        # Features made of one, with which a convolution is no product of matrices.
        return sizes.features_out <= FEW
    moves_on = max(step.eqn.params["window_strides"], default=1) > 1
    return sizes.features_out == 1 and sizes.features_in <= FEW and not moves_on


def _is_apart(step: Step) -> bool:
    """Whether windows of several features follow each other without a gap, or are single points."""
    p: Any = step.eqn.params
    (out,) = step.outputs
    kernel = [step.inputs[1].shape[d] for d in p["dimension_numbers"].rhs_spec[2:]]
    strides = zip(kernel, p["window_strides"], strict=True)
    dilations = (*p["lhs_dilation"], *p["rhs_dilation"])
    plain = all(is_float(s.dtype) and s.dtype == out.dtype for s in step.inputs)
    alone = p["feature_group_count"] == p["batch_group_count"] == 1 and p["precision"] is None
    apart = all(k == 1 for k in kernel) or all(k == s for k, s in strides)
    inside = all(low == high == 0 for low, high in p["padding"]) and all(d == 1 for d in dilations)
    several = 0 not in out.shape and _sizes(step).features_in > 1
    return plain and alone and apart and inside and several


def _sizes(step: Step) -> _Sizes:
    numbers = step.eqn.params["dimension_numbers"]
    x, w, out = (s.shape for s in (*step.inputs, *step.outputs))
    read, made, kernel = (
        prod(shape[d] for d in spec[2:])
        for shape, spec in ((x, numbers.lhs_spec), (out, numbers.out_spec), (w, numbers.rhs_spec))
    )
    features_out, features_in = (w[d] for d in numbers.rhs_spec[:2])
    are_last = numbers.lhs_spec[1] == len(x) - 1 and numbers.out_spec[1] == len(x) - 1
    line = len(x) == 3 and read == made  # of single points, all of which are read
    return _Sizes(x[numbers.lhs_spec[0]], read, made, kernel, features_in, features_out, are_last, line)


def _as_it_is(sizes: _Sizes, facts: Platform, item: int) -> Work:
    """The value and both gradients as convolutions: each copies what its windows meet, and the gradient of the image meets zeros between
    what flows back. Of few features that it makes, most of a vector is empty. Of single points along a line XLA makes products itself, but for the gradient of the kernel.
    """
    once = 2.0 * sizes.multiplications
    work, every = Work(kernel=3), [sizes.features_out, sizes.features_in, sizes.features_out]
    if sizes.kernel == 1 and sizes.line:
        work, every = Work(kernel=3, dot=2 * once), [sizes.features_out]
    for features in every:
        few = max(1.0, facts.lanes / features) ** 0.5
        work += Work(convolution=once * few, stream=once / 2 / features * item)
    return work


def _as_product(sizes: _Sizes, item: int) -> Work:
    """The same as products of matrices; of patches, what is read is laid out for each, and so is its gradient. What is made is laid out once more where its features are not last."""
    copies = 6.0 * sizes.images * sizes.read * sizes.features_in * item if sizes.kernel > 1 else 0.0
    copies += 0.0 if sizes.are_last else 2.0 * sizes.images * sizes.made * sizes.features_out * item
    return Work(dot=6.0 * sizes.multiplications, stream=copies, kernel=3 if sizes.kernel == 1 else 6)


_COMPARED = 12  # kernels of comparisons, two dimensions one after the other, more than of select_and_scatter, which reads and writes as much again


def moves_along_rows(step: Step) -> bool:
    """Whether windows are more than one position of the last axis, which is that of registers."""
    return step.eqn.params["window_dimensions"][-1] > 1


def is_left_to_scatter(step: Step) -> bool:
    """Whether what flows back through an extremum over windows is left to ``select_and_scatter``, one kernel where windows are compared one dimension after the other.

    A TPU has it where two dimensions or more are not in a window. Windows apart from each other gain from as many bytes of an argument on as the further
    kernels take to start; what is computed before stays on the chip.
    """
    facts, (source, *_), params = planned_facts(), step.inputs, step.eqn.params
    windows = list(zip(params["window_dimensions"], params["window_strides"], strict=True))
    if not facts.reads_windows_again or sum(own == (1, 1) for own in windows) < 2:
        return False
    *rest, last = source.shape
    moved = prod(rest) * -(-last // facts.lanes) * facts.lanes * dtypes.width(source.dtype)
    least = (
        _COMPARED * facts.rates.stream / facts.rates.kernel if source.origin is None else facts.rates.cache
    )
    return moved < least or any(size > stride for size, stride in windows)
