"""Images at places that are data: between the pixels, and outside."""

from __future__ import annotations

from typing import Any

from jaxte.lang import dtypes
from jaxte.lang import functions as f
from jaxte.lang.errors import DtypeError, ShapeError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import operator
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import same_extent, shape_text
from jaxte.tensors.tensor import Tensor

METHODS = ("bilinear", "nearest")
PADDINGS = ("zeros", "border")


@operator
def grid_sample(
    x: Tensor,
    grid: Tensor,
    method: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Images at the places of a grid, which are numbers from -1 to 1.

    Args:
        x: images, (N, C, H, W).
        grid: (N, OH, OW, 2): the column, then the row; -1 is the left or upper edge, 1 the right or lower one.
        method: "bilinear" or "nearest"; the nearest has no gradient in the grid.
        padding_mode: outside are "zeros", or the nearest pixel of the "border".
        align_corners: whether -1 and 1 are the centres of the outermost pixels, not their outer edges.

    Formula: ``y[n, c, i, j] = sum over the four pixels around of weight * x[n, c, row, column]``

    Raises:
        ShapeError: other ranks, batches that differ, a last axis of the grid that is not 2, an unknown mode.
        DtypeError: a grid of integers.

    Source: ``torch.nn.functional.grid_sample``.

    Example:
        >>> x = np.float32([[[[1, 2], [3, 4]]]])
        >>> te.ops.grid_sample(x, np.float32([[[[0, 0], [0.5, 0.5]]]])).ravel().tolist()
        [2.5, 4.0]
    """
    _check(x, grid, method, padding_mode, "grid_sample")

    def place(extent: Any, e: Expr) -> Expr:
        count = f.cast(extent, grid.dtype)
        return (e + 1) * (count - 1) / 2 if align_corners else ((e + 1) * count - 1) / 2

    shape = grid.shape[:3]
    rows = compute(shape, lambda n, i, j: place(x.shape[2], grid[n, i, j, 1]), "rows")
    columns = compute(shape, lambda n, i, j: place(x.shape[3], grid[n, i, j, 0]), "columns")
    return _sampled(x, rows, columns, method, padding_mode, "grid_sample")


@operator
def bilinear(x: Tensor, points: Tensor, padding_mode: str = "zeros") -> Tensor:
    """Images at fractional places, counted in pixels.

    Args:
        x: images, (N, C, H, W).
        points: (N, OH, OW, 2): the row, then the column; (0, 0) is the centre of the first pixel.
        padding_mode: as in :func:`grid_sample`.

    Formula: ``y[n, c, i, j] = sum over the four pixels around of weight * x[n, c, row, column]``

    Raises:
        ShapeError: other ranks, batches that differ, a last axis of the points that is not 2, an unknown mode.
        DtypeError: points of integers.

    Source: ``jax.scipy.ndimage.map_coordinates`` with ``order=1``.

    Example:
        >>> x = np.float32([[[[1, 2], [3, 4]]]])
        >>> te.ops.bilinear(x, np.float32([[[[0.5, 0.5], [0, 1]]]])).ravel().tolist()
        [2.5, 2.0]
    """
    _check(x, points, "bilinear", padding_mode, "bilinear")
    rows, columns = (
        compute(points.shape[:3], lambda n, i, j, k=k: points[n, i, j, k], name)
        for k, name in enumerate(("rows", "columns"))
    )
    return _sampled(x, rows, columns, "bilinear", padding_mode, "bilinear")


@operator
def warp(x: Tensor, flow: Tensor, method: str = "bilinear", padding_mode: str = "zeros") -> Tensor:
    """Images whose pixels are taken from where a flow points to.

    Args:
        x: images, (N, C, H, W).
        flow: (N, 2, H, W): how many rows further down, then how many columns further right.
        method: as in :func:`grid_sample`.
        padding_mode: as in :func:`grid_sample`.

    Formula: ``y[n, c, i, j] = x[n, c, i + flow[n, 0, i, j], j + flow[n, 1, i, j]]``, between pixels as ``method`` says

    Raises:
        ShapeError: a flow that has not the shape (N, 2, H, W), an unknown mode.
        DtypeError: a flow of integers.

    Source: Jaderberg et al., Spatial Transformer Networks; ``jax.scipy.ndimage.map_coordinates``.

    Example:
        >>> te.ops.warp(np.float32([[[[1, 2, 4]]]]), np.float32([[[[0, 0, 0]], [[0.5, 0.5, 0]]]])).ravel().tolist()
        [1.5, 3.0, 4.0]
    """
    if x.ndim != 4 or flow.ndim != 4 or flow.shape != (x.shape[0], 2, *x.shape[2:]):
        raise ShapeError(
            f"te.ops.warp: {x.name} {shape_text(x.shape)} and {flow.name} {shape_text(flow.shape)}; give (N, C, H, W) and "
            "(N, 2, H, W)"
        )
    _check_modes(flow, method, padding_mode, "warp")
    shape = (flow.shape[0], *flow.shape[2:])
    rows = compute(shape, lambda n, i, j: flow[n, 0, i, j] + f.cast(i, flow.dtype), "rows")
    columns = compute(shape, lambda n, i, j: flow[n, 1, i, j] + f.cast(j, flow.dtype), "columns")
    return _sampled(x, rows, columns, method, padding_mode, "warp")


def _check(x: Tensor, places: Tensor, method: str, padding_mode: str, name: str) -> None:
    if x.ndim != 4 or places.ndim != 4 or not same_extent(places.shape[3], 2):
        raise ShapeError(
            f"te.ops.{name}: {x.name} {shape_text(x.shape)} and {places.name} {shape_text(places.shape)}; give "
            "(N, C, H, W) and (N, OH, OW, 2)"
        )
    if not same_extent(places.shape[0], x.shape[0]):
        raise ShapeError(
            f"te.ops.{name}: {x.name} {shape_text(x.shape)} and {places.name} {shape_text(places.shape)} have different "
            "batches; the first axes must be equal"
        )
    _check_modes(places, method, padding_mode, name)


def _check_modes(places: Tensor, method: str, padding_mode: str, name: str) -> None:
    for what, value, known in (("method", method, METHODS), ("padding_mode", padding_mode, PADDINGS)):
        if value not in known:
            raise ShapeError(f"te.ops.{name}: {what}={value!r}; give one of {', '.join(map(repr, known))}")
    if not dtypes.is_inexact(places.dtype):
        raise DtypeError(f"te.ops.{name}: {places.name} has dtype {places.dtype}; places are floats")


def _sampled(x: Tensor, rows: Tensor, columns: Tensor, method: str, padding_mode: str, name: str) -> Tensor:
    """``x`` at ``rows`` and ``columns``, (N, OH, OW), counted in pixels."""
    if padding_mode == "border":
        rows, columns = (
            compute(at.shape, lambda *i, at=at, e=e: f.clip(at[i], 0, f.cast(e - 1, at.dtype)), at.name)
            for at, e in ((rows, x.shape[2]), (columns, x.shape[3]))
        )
    whole = f.round if method == "nearest" else f.floor
    first, left = (
        compute(at.shape, lambda *i, at=at: f.cast(whole(at[i]), "int32"), f"{at.name}_before")
        for at in (rows, columns)
    )

    def pixel(n: Expr, c: Expr, row: Expr, column: Expr) -> Expr:
        inside = (row >= 0) & (row < x.shape[2]) & (column >= 0) & (column < x.shape[3])
        return f.select(inside, x[n, c, row, column], 0)

    def body(n: Expr, c: Expr, i: Expr, j: Expr) -> Expr:
        at = (n, i, j)
        if method == "nearest":
            return pixel(n, c, first[at], left[at])
        down, right = (p[at] - f.floor(p[at]) for p in (rows, columns))
        upper = (1 - right) * pixel(n, c, first[at], left[at]) + right * pixel(n, c, first[at], left[at] + 1)
        lower = (1 - right) * pixel(n, c, first[at] + 1, left[at]) + right * pixel(
            n, c, first[at] + 1, left[at] + 1
        )
        return (1 - down) * upper + down * lower

    return compute((*x.shape[:2], *rows.shape[1:]), body, name)
