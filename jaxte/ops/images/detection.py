"""Boxes of single-shot detectors: anchors, their decoding, and suppression of those that overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxte.bridge.given.extern import extern
from jaxte.lang import functions as f
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import operator, pointwise, static_int
from jaxte.ops.arrays.joining import concatenate
from jaxte.ops.arrays.reshape import reshape
from jaxte.ops.arrays.shape import expand_dims
from jaxte.ops.images.windows import channel_and_spatial
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.inputs import constant
from jaxte.tensors.shapes import same_extent, shape_text
from jaxte.tensors.tensor import Tensor


@operator
def multibox_prior(
    data: Tensor,
    sizes: Sequence[float] = (1.0,),
    ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] | None = None,
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
    layout: str = "NCHW",
) -> Tensor:
    """The anchors of each pixel: one square for each of ``sizes``, then the first size in each further ratio.

    Args:
        data: features whose rows and columns count; their values do not, and have the gradient 0.
        sizes: of the anchors, as a part of the image's height.
        ratios: width over height; the first belongs to the squares.
        steps: from row to row and from column to column, by default ``1 / H`` and ``1 / W``.
        offsets: of the centre from the upper left corner of a pixel, in steps.
        clip: whether anchors are cut at the edges of the image.

    Returns:
        (1, H * W * (len(sizes) + len(ratios) - 1), 4): left, top, right, bottom, from 0 to 1 within the image.

    Formula: ``y[0, (i * W + j) * K + k] = (cx - w, cy - h, cx + w, cy + h)`` with ``cx = (j + offset) * step``,
    ``w = size * H / W * sqrt(ratio) / 2``, ``h = size / sqrt(ratio) / 2``

    Raises:
        ShapeError: no size or ratio, steps or offsets that are not two, an unknown layout.

    Source: Liu et al., SSD; relay ``multibox_prior``.

    Example:
        >>> te.ops.multibox_prior(np.zeros((1, 8, 1, 2), "float32"), (0.5,)).tolist()
        [[[0.125, 0.25, 0.375, 0.75], [0.625, 0.25, 0.875, 0.75]]]
    """
    name = "multibox_prior"
    _, spatial = channel_and_spatial(layout, data.ndim, name)
    h, w = _checked_extents(data, spatial, sizes, ratios, name)
    step_y, step_x = _pair(steps, "steps") if steps else (1 / h, 1 / w)
    offset_y, offset_x = _pair(offsets, "offsets")
    halves = _halves(h / w, sizes, ratios)
    kind = data.dtype if data.dtype in ("float16", "bfloat16", "float64") else "float32"

    def centre(row: Expr, column: Expr, side: Expr) -> Expr:
        x = (f.cast(column, kind) + offset_x) * step_x
        y = (f.cast(row, kind) + offset_y) * step_y
        return f.select(side % 2 == 0, x, y)

    centres = compute((h, w, 4), centre, "centre")
    reaches = constant([(-wide, -high, wide, high) for wide, high in halves], "reach", kind)

    def body(row: Expr, column: Expr, k: Expr, side: Expr) -> Expr:
        value = centres[row, column, side] + reaches[k, side]
        return f.minimum(f.maximum(value, 0.0), 1.0) if clip else value

    return reshape(compute((h, w, len(halves), 4), body, name), (1, -1, 4))


def _pair(values: Sequence[float], what: str) -> tuple[float, float]:
    if len(values) != 2:
        raise ShapeError(
            f"te.ops.multibox_prior: {what}={values!r}; give two numbers, of the rows and the columns"
        )
    return float(values[0]), float(values[1])


def _checked_extents(
    data: Tensor, spatial: Sequence[int], sizes: Sequence[float], ratios: Sequence[float], name: str
) -> list[int]:
    if len(spatial) != 2 or not sizes or not ratios:
        raise ShapeError(
            f"te.ops.{name}: {data.name} {shape_text(data.shape)}, sizes={sizes!r}, ratios={ratios!r}; give features with "
            "four axes, and at least one size and ratio"
        )
    return [
        static_int(data.shape[a], f"te.ops.{name}: extent of axis {a} of {data.name}", 1) for a in spatial
    ]


def _halves(slope: float, sizes: Sequence[float], ratios: Sequence[float]) -> list[tuple[float, float]]:
    """Half the width and half the height of each anchor of a pixel, of an image ``slope`` times as high as wide."""
    shapes = [(s, 1.0) for s in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
    return [(s * slope * math.sqrt(ratio) / 2, s / math.sqrt(ratio) / 2) for s, ratio in shapes]


@operator
def multibox_transform_loc(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> Tensor:
    """The boxes that a detector predicts: class, score and corners of each anchor.

    The corners have a gradient in ``loc_pred`` and ``anchor``, the score in ``cls_prob``; the class has none.

    Args:
        cls_prob: (N, classes, A); class 0 is the background.
        loc_pred: (N, A * 4): shift of the centre and logarithm of the growth, in units of ``variances``.
        anchor: (1, A, 4), as :func:`multibox_prior` makes them.
        clip: whether corners are held within 0 and 1.
        threshold: boxes whose best score is not above it get the class -1.

    Returns:
        (N, A, 6): the class (from 0 on, without the background), its score, left, top, right, bottom.

    Formula: ``centre = loc * variance * size + centre of the anchor``, ``size = exp(loc * variance) * size of the anchor``

    Raises:
        ShapeError: numbers of anchors that differ, boxes of another width than 4, fewer than two classes.

    Source: Liu et al., SSD; relay ``multibox_transform_loc``.

    Example:
        >>> anchor = np.float32([[[0.25, 0.25, 0.75, 0.75]]])
        >>> te.ops.multibox_transform_loc(np.float32([[[0.2], [0.8]]]), np.zeros((1, 4), "float32"), anchor)[0, 0, 2:].tolist()
        [0.25, 0.25, 0.75, 0.75]
    """
    _check_boxes(cls_prob, loc_pred, anchor, variances)
    batch, classes, count = cls_prob.shape
    k, j = r.reduce_axis((1, classes), "k"), r.reduce_axis((1, classes), "j")
    score = compute((batch, count), lambda n, a: r.max(cls_prob[n, k, a], axis=k), "score")
    best = compute((batch, count), lambda n, a: r.argmax(cls_prob[n, j, a], axis=j), "best")

    loc, scale = reshape(loc_pred, (batch, count, 4)), constant(variances, "variances", loc_pred.dtype)

    def centre(n: Expr, a: Expr, axis: Expr) -> Expr:
        low, high = anchor[0, a, axis], anchor[0, a, axis + 2]
        return loc[n, a, axis] * scale[axis] * (high - low) + (low + high) / 2

    def half(n: Expr, a: Expr, axis: Expr) -> Expr:
        size = anchor[0, a, axis + 2] - anchor[0, a, axis]
        return f.exp(loc[n, a, axis + 2] * scale[axis + 2]) * size / 2

    middle, extent = compute((batch, count, 2), centre, "centre"), compute((batch, count, 2), half, "half")
    first = compute(middle.shape, lambda *i: middle[i] - extent[i], "first")
    last = compute(middle.shape, lambda *i: middle[i] + extent[i], "last")
    if clip:
        first, last = (pointwise("held", lambda e: f.clip(e, 0.0, 1.0), end) for end in (first, last))

    def label(n: Expr, a: Expr, _: Expr) -> Expr:
        return f.select(score[n, a] > threshold, f.cast(best[n, a], loc_pred.dtype), -1.0)

    return concatenate([compute((batch, count, 1), label, "label"), expand_dims(score, 2), first, last], 2)


def _check_boxes(cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, variances: Sequence[float]) -> None:
    shapes = ", ".join(f"{t.name} {shape_text(t.shape)}" for t in (cls_prob, loc_pred, anchor))
    if cls_prob.ndim != 3 or loc_pred.ndim != 2 or anchor.ndim != 3:
        raise ShapeError(
            f"te.ops.multibox_transform_loc: {shapes}; give (N, classes, A), (N, A * 4) and (1, A, 4)"
        )
    if not same_extent(anchor.shape[2], 4) or not same_extent(anchor.shape[0], 1) or len(variances) != 4:
        raise ShapeError(
            f"te.ops.multibox_transform_loc: {shapes}, variances={variances!r}; a box has four numbers, and so have the variances"
        )
    if as_expr(cls_prob.shape[2] * 4) is not as_expr(loc_pred.shape[1]) or not same_extent(
        cls_prob.shape[2], anchor.shape[1]
    ):
        raise ShapeError(
            f"te.ops.multibox_transform_loc: {shapes} have different numbers of anchors; the second has four times as many"
        )
    if isinstance(cls_prob.shape[1], int) and cls_prob.shape[1] < 2:
        raise ShapeError(
            f"te.ops.multibox_transform_loc: {shapes}; give the background and at least one class"
        )


@operator
def nms(
    boxes: Tensor,
    scores: Tensor,
    iou_threshold: float = 0.5,
    score_threshold: float | None = None,
    max_output: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes without those that overlap one of a higher score: non-maximum suppression, greedy.

    Which boxes are kept has no gradient; the coordinates and the scores of those that are have theirs.

    Args:
        boxes: (A, 4): left, top, right, bottom.
        scores: (A,); of equal scores the first counts as higher.
        iou_threshold: boxes whose intersection over union with a kept one is above it are left out.
        score_threshold: boxes whose score is not above it are left out.
        max_output: how many rows the results have, by default A.

    Returns:
        ``(kept, boxes, scores)``: the numbers of the boxes that are kept, by falling score, their boxes and their scores;
        -1 in the rows that are left over.

    Formula: ``kept[r] = i`` with ``iou(boxes[i], boxes[j]) <= iou_threshold`` for all ``j`` kept before

    Raises:
        ShapeError: boxes of another width than 4, another number of scores, a negative ``max_output``.

    Source: ``tf.image.non_max_suppression``; relay ``non_max_suppression``.

    Example:
        >>> boxes = np.float32([[0, 0, 2, 2], [0, 0, 2, 2.1], [3, 3, 4, 4]])
        >>> te.ops.nms(boxes, np.float32([0.5, 0.9, 0.7]))[0].tolist()
        [1, 2, -1]
    """
    if boxes.ndim != 2 or not same_extent(boxes.shape[1], 4):
        raise ShapeError(
            f"te.ops.nms: {boxes.name} {shape_text(boxes.shape)}; give boxes of four numbers, (A, 4)"
        )
    if scores.ndim != 1 or not same_extent(scores.shape[0], boxes.shape[0]):
        raise ShapeError(
            f"te.ops.nms: {scores.name} {shape_text(scores.shape)} beside {boxes.name} {shape_text(boxes.shape)}; give one "
            "score for each box, (A,)"
        )
    count = static_int(boxes.shape[0], f"te.ops.nms: number of {boxes.name}")
    rows = count if max_output is None else static_int(max_output, "te.ops.nms: max_output")
    overlap = _overlaps(boxes, iou_threshold)
    least = -math.inf if score_threshold is None else float(score_threshold)
    struct = jax.ShapeDtypeStruct((rows,), "int32")
    kept = extern(struct, _Greedy(rows, least), [overlap, scores], "kept")

    def row(of: Tensor, at: Expr, *rest: Expr) -> Expr:
        return f.select(kept[at] >= 0, of[(kept[at], *rest)], -1)

    return (
        kept,
        compute((rows, 4), lambda i, c: row(boxes, i, c), "nms_boxes"),
        compute((rows,), lambda i: row(scores, i), "nms_scores"),
    )


def _overlaps(boxes: Tensor, threshold: float) -> Tensor:
    """Whether two boxes overlap by more than ``threshold`` of their union."""
    count = boxes.shape[0]

    def extent(i: Any, j: Any, axis: int) -> Expr:
        low = f.maximum(boxes[i, axis], boxes[j, axis])
        return f.maximum(f.minimum(boxes[i, axis + 2], boxes[j, axis + 2]) - low, 0)

    area = compute((count,), lambda i: extent(i, i, 0) * extent(i, i, 1), "area")
    both = compute((count, count), lambda i, j: extent(i, j, 0) * extent(i, j, 1), "both")
    return compute(
        (count, count), lambda i, j: both[i, j] > threshold * (area[i] + area[j] - both[i, j]), "overlap"
    )


class _Greedy:
    """The boxes that are kept, one after the other: a loop over data, which is no index expression."""

    __name__ = "kept"

    def __init__(self, rows: int, least: float) -> None:
        self.rows, self.least = rows, least

    def __call__(self, overlap: Any, scores: Any) -> Any:
        order = jnp.argsort(-scores, stable=True).astype("int32")

        def step(n: Any, state: Any) -> Any:
            kept, left, place = state
            box = order[n]
            take = left[box]
            # behind the last row nothing is written
            kept = kept.at[jnp.where(take, place, self.rows)].set(box, mode="drop")
            return kept, left & ~(take & overlap[box]), place + take

        start = jnp.full((self.rows,), -1, "int32"), scores > self.least, 0
        return lax.fori_loop(0, scores.shape[0], step, start)[0]
