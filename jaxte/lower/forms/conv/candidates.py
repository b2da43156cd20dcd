"""The forms of a convolution, with what each costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import ONE, ZERO, Axis, as_expr
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.candidates import Candidate
from jaxte.lower.body.evaluator import Body
from jaxte.lower.body.wanted import Wanted
from jaxte.lower.body.write_form import way
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.platforms import Platform
from jaxte.lower.cost.work import Work, extent_of, points
from jaxte.lower.forms.conv.folded import RANK, Fold, folded_source, folds_of
from jaxte.lower.forms.conv.fourier_candidates import fourier_candidates
from jaxte.lower.forms.conv.one_pass import TapSumsSpec, recognise_tap_sums, tap_sums_source
from jaxte.lower.forms.conv.per_group import groups_of, groups_source
from jaxte.lower.forms.conv.per_image import (
    Image,
    held_bytes,
    image_function,
    image_of,
    image_work,
    images_source,
    kernel_source,
)
from jaxte.lower.forms.conv.recognise import Matched
from jaxte.lower.forms.conv.residue_classes import Classes, classes_source, residue_classes
from jaxte.lower.forms.conv.spec import ConvolutionSpec, convolution_source, specify
from jaxte.lower.forms.conv.toeplitz_candidates import toeplitz_candidates

CONVOLUTION = "convolution"
PER_GROUP = "convolution per group"
GROUPED = "grouped convolution"  # a name to go without: by itself it is a convolution as others
ONE_PASS = "sums in one pass"
CLASSES = "residue classes"
FOLDED = "folded convolution"
FOLDED_GROUPS = f"{FOLDED} per group"
IMAGES = "product per image"


def convolution_candidates(body: Body, found: Matched, wanted: Wanted) -> Iterator[Candidate]:
    """Calls of ``lax.conv_general_dilated``, or all sums in one pass; slices multiplied and added are the general path."""
    axes, node, facts = wanted.axes, wanted.node, body.policy.facts
    spec = specify(found.match, axes, node.dtype, found.outer, found.guards)
    if any(extent is ZERO for operand in spec.operands for extent in operand.shape):
        body.report.refuse(
            "convolution", "nothing is read of an operand"
        )  # and XLA takes no window of no element
        return

    def own(form: str, work: Work, source: Callable[[list[Node]], Node]) -> Candidate:
        return way(body, wanted, form, work, spec.operands, source)

    if spec.groups is ONE or GROUPED not in body.policy.without:
        yield own(CONVOLUTION, convolution_work(spec, axes, facts), partial(convolution_source, spec))
    yield from toeplitz_candidates(body, found, wanted)
    yield from fourier_candidates(body, found, wanted)
    classes = residue_classes(spec)
    if isinstance(classes, Refusal):
        if any(alpha > 1 for alpha in spec.lhs_dilation):
            body.report.refuse(CLASSES, classes.reason)
    else:
        yield own(CLASSES, classes_work(spec, axes, classes, facts), partial(classes_source, spec, classes))
    groups = groups_of(spec)
    if isinstance(groups, Refusal):
        if spec.groups is not ONE:
            body.report.refuse(PER_GROUP, groups.reason)
    else:
        yield own(PER_GROUP, groups_work(spec, axes, groups, facts), partial(groups_source, spec))
    yield from _folded(body, spec, wanted)
    yield from _images(body, spec, wanted)
    sums = recognise_tap_sums(found.match, axes, node.dtype, found.outer, found.guards)
    if not isinstance(sums, Refusal):
        source = partial(tap_sums_source, sums, step=body.step)
        yield way(body, wanted, ONE_PASS, tap_sums_work(sums), sums.operands, source)


def _folded(body: Body, spec: ConvolutionSpec, wanted: Wanted) -> Iterator[Candidate]:
    """Three dimensions or more as two, whose groups may be apart."""
    axes = wanted.axes
    folds = folds_of(spec)
    if isinstance(folds, Refusal):
        if len(spec.strides) > RANK:
            body.report.refuse(FOLDED, folds.reason)
        return
    left = folds[-1].spec
    copies = folded_copies(spec, axes, folds)
    groups = groups_of(left)
    works = {FOLDED: convolution_work(left, axes, body.policy.facts)}
    if not isinstance(groups, Refusal):
        works[FOLDED_GROUPS] = groups_work(left, axes, groups, body.policy.facts)
    for form, work in works.items():
        source = partial(folded_source, spec, folds, step=body.step, grouped=form != FOLDED)
        yield way(body, wanted, form, work + copies, spec.operands, source)


def _images(body: Body, spec: ConvolutionSpec, wanted: Wanted) -> Iterator[Candidate]:
    """A matrix product for each image, on the CPU."""
    image = image_of(spec)
    if isinstance(image, Refusal):
        body.report.refuse(IMAGES, image.reason)
        return
    if not body.policy.facts.convolves_alone:
        body.report.refuse(IMAGES, "other platforms have convolutions that use all of their cores")
        return
    work, held = image_work(spec, wanted.axes, image, body.policy.facts), held_bytes(spec, wanted.axes)
    more = work.temporaries > held
    caution = f"copies of one image take {work.temporaries:,.0f} bytes, all images {held:,}" if more else ""

    def source(operands: list[Node], image: Image = image) -> Node:
        kernel, name = body.names.new(f"{body.target}_kernel"), body.names.new(f"{body.target}_image")
        matrix = body.step(kernel_source(spec, image, operands[1]), kernel)
        function = image_function(spec, image, matrix, body.label, name)
        body.add(function)
        return images_source(spec, image, function, operands)

    yield way(body, wanted, IMAGES, work, spec.operands, source, caution)


def folded_copies(spec: ConvolutionSpec, axes: tuple[Axis, ...], folds: Sequence[Fold]) -> Work:
    """Each operand that is laid out is read and written, and the result once more for its order."""
    width = dtypes.width("float32")
    laid_out = [width * prod(map(extent_of, fold.spec.lhs_shape or ())) for fold in folds]
    moved = points(axes) + prod(map(extent_of, spec.rhs_shape or spec.rhs.shape))
    return Work(
        stream=2.0 * (sum(laid_out) + width * moved), kernel=4 * len(folds), temporaries=max(laid_out)
    )


def convolution_work(spec: ConvolutionSpec, axes: tuple[Axis, ...], facts: Platform) -> Work:
    """The multiplications of every output with the kernel's window and input features of one group.

    In two dimensions, what a kernel meets is copied into the rows of a matrix first, once for each tap, the zeros of a dilated
    operand with it; no multiplication is done for them, and they matter less where there are few output features to multiply with.
    The rate is that of one core. Output features are all that cores share.
    """
    window = _window(spec)
    met = 2.0 * points(axes) * prod(window.values()) / window["O"]
    flops = met / prod(spec.lhs_dilation)  # the others are products with zeros between elements
    if extent_of(spec.groups) > 1 or window["I"] == 1 == window["O"]:
        return Work(grouped_convolution=flops, kernel=1)
    if not is_inexact(spec.lhs.dtype):  # no library has convolutions of integers
        return Work(grouped_convolution=met, kernel=1)
    few = max(1.0, facts.lanes / window["O"])
    if len(spec.strides) > RANK:  # a plain loop, which multiplies with the zeros too
        return Work(volume_convolution=met * few, kernel=1)
    copied, between = (n / 2 / window["O"] * dtypes.width("float32") for n in (flops, met - flops))
    return Work(convolution=flops * few / _cores(window, facts), stream=copied + between / few**2, kernel=1)


def classes_work(
    spec: ConvolutionSpec, axes: tuple[Axis, ...], classes: tuple[Classes, ...], facts: Platform
) -> Work:
    """The same multiplications without the zeros, and one more copy of the result."""
    window = _window(spec)
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


def groups_work(spec: ConvolutionSpec, axes: tuple[Axis, ...], groups: int, facts: Platform) -> Work:
    """The same multiplications in dense convolutions, slices of the operands, and one more copy of the result."""
    own = tuple(extent_of(e) for e in spec.rhs_shape or spec.rhs.shape)
    at = spec.dimension_numbers[1].index("O")
    features = tuple(extent // groups if n == at else extent for n, extent in enumerate(own))
    dense = replace(spec, groups=ONE, rhs_shape=tuple(map(as_expr, features)))
    one = convolution_work(dense, axes, facts)
    copies = 8.0 * (points(axes) + prod(map(extent_of, spec.lhs_shape or spec.lhs.shape)))
    return one + Work(stream=copies, kernel=2 * groups)


def _cores(window: dict[str, int], facts: Platform) -> int:
    """How many cores a convolution of two dimensions has."""
    several = window["O"] > facts.features_alone and prod(window.values()) >= facts.kernel_shared
    return facts.cores if several else 1


def _window(spec: ConvolutionSpec) -> dict[str, int]:
    """The extents of the kernel by letter."""
    shape = spec.rhs_shape or spec.rhs.shape
    return {letter: extent_of(e) for letter, e in zip(spec.dimension_numbers[1], shape, strict=True)}


def tap_sums_work(spec: TapSumsSpec) -> Work:
    """Every product, added on its own: the order of a sum is kept, so that nothing is done in vectors."""
    size = prod(map(extent_of, spec.rhs.shape))
    return Work(tap=2.5 * size * spec.sums, stream=8.0 * prod(map(extent_of, spec.lhs.shape)), kernel=3)
