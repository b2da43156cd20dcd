"""The forms of a convolution, with what each costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from jaxte.lang.expr import ONE, ZERO, Const
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.candidates import Candidate, Wanted, way
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Dry, Refusal, on_names
from jaxte.lower.cost.general import times_of_channels
from jaxte.lower.cost.platform import Platform
from jaxte.lower.forms.conv.folded import RANK, folded_source, folds_of, groups_of, groups_source
from jaxte.lower.forms.conv.lines.candidates import fourier_candidates, toeplitz_candidates
from jaxte.lower.forms.conv.one_pass import recognise_tap_sums, tap_sums_source
from jaxte.lower.forms.conv.one_product import (
    RowProducts,
    recognise_two_stacks,
    row_products_of,
    row_products_source,
    row_products_work,
    two_stacks_source,
    two_stacks_work,
)
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
from jaxte.lower.forms.conv.spec import ConvolutionSpec, specify
from jaxte.lower.forms.conv.work import (
    classes_work,
    convolutions_work,
    folded_copies,
    groups_copies,
    kernel_extents,
    tap_sums_work,
)
from jaxte.lower.forms.conv.write import classes_source, convolution_source, dimension, residue_classes

CONVOLUTION = "convolution"
PER_GROUP = "convolution per group"
GROUPED = "grouped convolution"
ONE_PASS = "sums in one pass"
GROUPS_OF_BATCH = "convolution in groups of the batch"
CLASSES = "residue classes"
FOLDED = "folded convolution"
FOLDED_GROUPS = f"{FOLDED} per group"
IMAGES = "product per image"
TWO_STACKS = "product of two stacks"
ROWS = "products of rows"


def convolution_candidates(body: Body, found: Matched, wanted: Wanted) -> Iterator[Candidate]:
    """Calls of ``lax.conv_general_dilated``, or products of matrices; slices multiplied and added are the general path."""
    spec = specify(found.match, wanted.axes, wanted.node.dtype, found.outer, found.guards)
    if any(extent is ZERO for operand in spec.operands for extent in operand.shape):
        # and XLA takes no window of no element
        body.report.refuse(CONVOLUTION, "nothing is read of an operand")
        return
    yield from _by_library(body, found, spec, wanted)
    yield from toeplitz_candidates(body, found, wanted)
    yield from fourier_candidates(body, found, wanted)
    yield from _by_residues(body, spec, wanted)
    yield from _by_groups(body, spec, wanted)
    yield from _folded(body, spec, wanted)
    yield from _images(body, spec, wanted)
    yield from _summed(body, found, spec, wanted)


def _by_library(body: Body, found: Matched, spec: ConvolutionSpec, wanted: Wanted) -> Iterator[Candidate]:
    """The convolution as one call, by the groups of its features, or of its batch."""
    facts = body.policy.facts
    calls = {CONVOLUTION if spec.groups is ONE else GROUPED: spec}
    if facts.groups_by_library and _is_of_filter(spec, facts):
        calls[GROUPS_OF_BATCH] = specify(
            found.match, wanted.axes, wanted.node.dtype, found.outer, found.guards, by_batch=True
        )
    for form, own in calls.items():
        source = partial(convolution_source, own)
        work = convolutions_work([source(on_names(own.operands))], facts)
        yield way(body, wanted, form, work, own.operands, source)


def _by_residues(body: Body, spec: ConvolutionSpec, wanted: Wanted) -> Iterator[Candidate]:
    """A convolution of each residue class of an array with zeros between its elements."""
    classes = residue_classes(spec)
    if isinstance(classes, Refusal):
        if any(alpha > 1 for alpha in spec.lhs_dilation):
            body.report.refuse(CLASSES, classes.reason)
        return
    work = classes_work(spec, wanted.axes, classes, body.policy.facts)
    yield way(body, wanted, CLASSES, work, spec.operands, partial(classes_source, spec, classes))


def _by_groups(body: Body, spec: ConvolutionSpec, wanted: Wanted) -> Iterator[Candidate]:
    """A dense convolution of each group of features."""
    groups = groups_of(spec)
    if isinstance(groups, Refusal):
        if spec.groups is not ONE:
            body.report.refuse(PER_GROUP, groups.reason)
        return
    source = partial(groups_source, spec)
    dense = convolutions_work([source(on_names(spec.operands))], body.policy.facts)
    work = dense + groups_copies(spec, wanted.axes, groups)
    yield way(body, wanted, PER_GROUP, work, spec.operands, source)


def _summed(body: Body, found: Matched, spec: ConvolutionSpec, wanted: Wanted) -> Iterator[Candidate]:
    """All sums in one pass where they are few, else one product of matrices for all of them."""
    axes, node, facts = wanted.axes, wanted.node, body.policy.facts
    sums = recognise_tap_sums(found.match, axes, node.dtype, found.outer, found.guards, facts.sums_columns)
    if not isinstance(sums, Refusal):
        source = partial(tap_sums_source, sums, step=body.step, shared=body.shared)
        work = tap_sums_work(sums, times_of_channels(axes, node, facts))
        yield way(body, wanted, ONE_PASS, work, sums.operands, source)
    rows = row_products_of(spec)
    if isinstance(rows, RowProducts):
        source = partial(row_products_source, rows, step=body.step)
        yield way(body, wanted, ROWS, row_products_work(rows), spec.operands, source)
    stacks = recognise_two_stacks(found, axes, node.dtype)
    if not isinstance(stacks, Refusal):
        source = partial(two_stacks_source, stacks, step=body.step, shared=body.shared)
        yield way(body, wanted, TWO_STACKS, two_stacks_work(stacks), stacks.operands, source)


def _is_of_filter(spec: ConvolutionSpec, facts: Platform) -> bool:
    """Whether it is the gradient of a filter in groups, of several features but where one is as good: the kernel, what flows back, is larger than the
    result in each dimension."""
    alone = 1 if facts.groups_as_dense else kernel_extents(spec)["O"]
    if not isinstance(spec.groups, Const) or int(spec.groups) in (1, alone):
        return False
    dims = [dimension(spec, n) for n in range(len(spec.strides))]
    return all(dim is not None and dim.outputs < dim.taps for dim in dims)


def _folded(body: Body, spec: ConvolutionSpec, wanted: Wanted) -> Iterator[Candidate]:
    """Three dimensions or more as two, whose groups may be apart."""
    axes = wanted.axes
    folds = folds_of(spec)
    if isinstance(folds, Refusal):
        if len(spec.strides) > RANK:
            body.report.refuse(FOLDED, folds.reason)
        return
    copies = folded_copies(spec, axes, folds)
    groups = groups_of(folds[-1].spec)
    for form in (FOLDED,) if isinstance(groups, Refusal) else (FOLDED, FOLDED_GROUPS):
        grouped = form != FOLDED
        source = partial(folded_source, spec, folds, grouped=grouped)
        dry = Dry()
        work = convolutions_work(dry.roots(source(on_names(spec.operands), step=dry)), body.policy.facts)
        if grouped and not isinstance(groups, Refusal):
            work += groups_copies(folds[-1].spec, axes, groups)
        yield way(body, wanted, form, work + copies, spec.operands, partial(source, step=body.step))


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
