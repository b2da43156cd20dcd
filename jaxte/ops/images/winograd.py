"""Winograd's convolution of 3x3 kernels: fewer multiplications, on tiles that overlap by two."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from jaxte.lang import functions as f
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import Padding, operator, static_int
from jaxte.ops.images.windows import paddings
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import same_extent, shape_text
from jaxte.tensors.tensor import Tensor

_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)
# F(m x m, 3 x 3): y = A ((G w G') * (B x B')) A' for a tile of m + 2 rows and columns
_MATRICES: dict[int, dict[str, list[list[Any]]]] = {
    2: {
        "G": [[1, 0, 0], [_HALF, _HALF, _HALF], [_HALF, -_HALF, _HALF], [0, 0, 1]],
        "B": [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        "A": [[1, 1, 1, 0], [0, 1, -1, -1]],
    },
    4: {
        "G": [
            [_QUARTER, 0, 0],
            [-Fraction(1, 6)] * 3,
            [-Fraction(1, 6), Fraction(1, 6), -Fraction(1, 6)],
            [Fraction(1, 24), Fraction(1, 12), Fraction(1, 6)],
            [Fraction(1, 24), -Fraction(1, 12), Fraction(1, 6)],
            [0, 0, 1],
        ],
        "B": [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        "A": [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    },
}


@operator
def conv2d_winograd_weight_transform(w: Tensor, tile_size: int = 4) -> Tensor:
    """Kernels as :func:`conv2d_winograd_without_weight_transform` takes them.

    Args:
        w: kernels, (O, C, 3, 3).
        tile_size: 2 for F(2x2, 3x3), 4 for F(4x4, 3x3).

    Returns:
        (tile_size + 2, tile_size + 2, O, C)

    Formula: ``u[a, b, o, c] = sum over p, q of G[a, p] * G[b, q] * w[o, c, p, q]``

    Raises:
        ShapeError: kernels that are not 3 by 3, another tile size.

    Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks; relay's operator of this name.

    Example:
        >>> te.ops.conv2d_winograd_weight_transform(te.placeholder((8, 4, 3, 3)), 2).shape
        (4, 4, 8, 4)
    """
    name = "conv2d_winograd_weight_transform"
    m = _tile_size(tile_size, name)
    if w.ndim != 4 or not all(same_extent(e, 3) for e in w.shape[2:]):
        raise ShapeError(f"te.ops.{name}: {w.name} {shape_text(w.shape)}; give kernels, (O, C, 3, 3)")
    rows = _transformed(w, 2, "G", m, "rows")
    both = _transformed(rows, 3, "G", m, "both")
    return compute((m + 2, m + 2, *w.shape[:2]), lambda a, b, o, c: both[o, c, a, b], name)


@operator
def conv2d_winograd_without_weight_transform(
    x: Tensor, w: Tensor, tile_size: int = 4, padding: Padding = 0
) -> Tensor:
    """:func:`conv2d` with stride 1, of kernels that were transformed before.

    Args:
        x: images, (N, C, H, W).
        w: what :func:`conv2d_winograd_weight_transform` makes, (tile_size + 2, tile_size + 2, O, C).
        padding: as in :func:`conv2d`.

    Returns:
        (N, O, OH, OW)

    Formula: ``y = A (w * (B x B')) A'`` for each tile, summed over the channels

    Raises:
        ShapeError: channels or tiles that do not fit, images smaller than a kernel.

    Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks; relay's operator of this name.

    Example:
        >>> u = te.ops.conv2d_winograd_weight_transform(te.placeholder((8, 4, 3, 3)), 2)
        >>> te.ops.conv2d_winograd_without_weight_transform(te.placeholder((1, 4, 9, 9)), u, 2, padding=1).shape
        (1, 8, 9, 9)
    """
    name = "conv2d_winograd_without_weight_transform"
    m = _tile_size(tile_size, name)
    if x.ndim != 4 or w.ndim != 4 or not all(same_extent(e, m + 2) for e in w.shape[:2]):
        raise ShapeError(
            f"te.ops.{name}: {x.name} {shape_text(x.shape)} and {w.name} {shape_text(w.shape)}; give (N, C, H, W) and "
            f"({m + 2}, {m + 2}, O, C) with tile_size={m}"
        )
    if not same_extent(w.shape[3], x.shape[1]):
        raise ShapeError(
            f"te.ops.{name}: {x.name} {shape_text(x.shape)} has {x.shape[1]} channels and {w.name} "
            f"{shape_text(w.shape)} takes {w.shape[3]}; must be equal"
        )
    tiles, sizes = _tiles(x, m, padding, name)
    n, channels, high, _, wide, _ = tiles.shape
    seen = _transformed(_transformed(tiles, 3, "B", m, "rows"), 5, "B", m, "both")
    c = r.reduce_axis((0, channels), "c")

    def product(a: Expr, b: Expr, o: Expr, n: Expr, i: Expr, j: Expr) -> Expr:
        return r.sum(w[a, b, o, c] * seen[n, c, i, a, j, b], axis=c)

    products = compute((m + 2, m + 2, w.shape[2], n, high, wide), product, "products")
    whole = _transformed(_transformed(products, 0, "A", m, "lines"), 1, "A", m, "results")
    return compute(
        (n, w.shape[2], *sizes), lambda n, o, i, j: whole[i % m, j % m, o, n, i // m, j // m], name
    )


def _tile_size(tile_size: int, name: str) -> int:
    m = static_int(tile_size, f"te.ops.{name}: tile_size")
    if m not in _MATRICES:
        raise ShapeError(f"te.ops.{name}: tile_size={m}; there are F(2x2, 3x3) and F(4x4, 3x3): give 2 or 4")
    return m


def _tiles(x: Tensor, m: int, padding: Any, name: str) -> tuple[Tensor, list[int]]:
    """Tiles of ``m + 2`` rows and columns, ``m`` apart, as (N, C, rows of tiles, row, columns of tiles, column)."""
    spatial = [static_int(e, f"te.ops.{name}: rows and columns of {x.name}") for e in x.shape[2:]]
    pads = paddings(padding, spatial, [3, 3], [1, 1], name)
    sizes = [e + sum(pad) - 2 for e, pad in zip(spatial, pads, strict=True)]
    if min(sizes) < 1:
        raise ShapeError(
            f"te.ops.{name}: {x.name} {shape_text(x.shape)} with padding {pads} is smaller than a kernel of 3 by 3"
        )
    (top, _), (left, _) = pads
    high, wide = (-(-size // m) for size in sizes)

    def body(n: Expr, c: Expr, i: Expr, a: Expr, j: Expr, b: Expr) -> Expr:
        row, column = i * m + a - top, j * m + b - left
        inside = (row >= 0) & (row < spatial[0]) & (column >= 0) & (column < spatial[1])
        return f.select(inside, x[n, c, row, column], 0)

    return compute((*x.shape[:2], high, m + 2, wide, m + 2), body, "tiles"), sizes


def _transformed(x: Tensor, axis: int, which: str, m: int, name: str) -> Tensor:
    """``sum over k of matrix[i, k] * x[..., k, ...]``, written out: most of the entries are 0, 1 or -1."""
    matrix = _MATRICES[m][which]

    def row(entries: Sequence[Any], i: Sequence[Expr]) -> Any:
        total: Any = None
        for k, entry in enumerate(entries):
            if entry:
                read = x[(*i[:axis], k, *i[axis + 1 :])]
                term = read if abs(entry) == 1 else read * float(abs(entry))
                total = (
                    (-term if entry < 0 else term)
                    if total is None
                    else total - term
                    if entry < 0
                    else total + term
                )
        return total

    def body(*i: Expr) -> Expr:
        value: Any = row(matrix[-1], i)
        for number in reversed(range(len(matrix) - 1)):
            value = f.select(i[axis] < number + 1, row(matrix[number], i), value)
        return as_expr(value)

    shape = [len(matrix) if a == axis else e for a, e in enumerate(x.shape)]
    return compute(shape, body, name)
