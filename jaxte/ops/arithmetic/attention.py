"""Attention: of everything to everything, or within a window that slides along."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxte.lang import functions as f
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import element, operator, static_int
from jaxte.ops.arithmetic.statistics import softmax
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, Shape, broadcast_shapes, same_extent, shape_text
from jaxte.tensors.tensor import Tensor


@operator
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    window: int | Sequence[int] | None = None,
    scale: float | None = None,
) -> Tensor:
    """Values averaged with the softmax of the products of queries and keys.

    With a ``window`` only the scores within it are computed: O(T * window), not O(T * S).

    Args:
        q: queries, (..., T, D).
        k: keys, (..., S, D).
        v: values, (..., S, E).
        mask: broadcasts to (..., T, S): booleans, true where a query may attend; or floats that are added to the scores.
        window: how many places before and after its own a query attends to: one number, or (before, after); ``(w, 0)``
            is causal. T and S are equal then.
        scale: of the scores, by default ``1 / sqrt(D)``.

    Returns:
        (..., T, E). A query that may attend to nothing gives NaN, as a softmax of minus infinities does.

    Formula: ``y[t, e] = sum over s of softmax over s (scale * sum over d of q[t, d] * k[s, d]) * v[s, e]``

    Raises:
        ShapeError: ranks, depths or lengths that do not fit, a mask that does not broadcast, a negative window.

    Source: Vaswani et al., Attention Is All You Need; ``jax.nn.dot_product_attention``; the window of Beltagy et al.,
    Longformer.

    Example:
        >>> x = np.float32([[[1], [2], [4]]])
        >>> te.ops.attention(np.zeros_like(x), x, x, window=(1, 0)).ravel().tolist()
        [1.0, 1.5, 3.0]
    """
    lead = _checked(q, k, v)
    factor = (
        1 / math.sqrt(static_int(q.shape[-1], f"te.ops.attention: depth of {q.name}", 1))
        if scale is None
        else scale
    )
    if mask is not None:
        _check_mask(mask, (*lead, q.shape[-2], k.shape[-2]))
    # scaled before the products: there are fewer queries than scores, and a maximum over scores that are read, not
    # computed once more, finds its places in every loop
    q = compute(q.shape, lambda *i: q[i] * factor, "scaled")
    if window is None:
        return _everywhere(q, k, v, mask, lead)
    if not same_extent(q.shape[-2], k.shape[-2]):
        raise ShapeError(
            f"te.ops.attention: window={window!r} with {q.shape[-2]} queries and {k.shape[-2]} keys; a window needs as many "
            "keys as queries"
        )
    listed = (window, window) if hasattr(window, "__index__") else tuple(window)  # type: ignore[arg-type]
    if len(listed) != 2:
        raise ShapeError(f"te.ops.attention: window={window!r}; give one number, or (before, after)")
    before, after = (static_int(e, "te.ops.attention: window") for e in listed)
    return _in_window(q, k, v, mask, lead, (before, after))


def _checked(q: Tensor, k: Tensor, v: Tensor) -> Shape:
    """The axes in front, after a look at the others."""
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(
            f"te.ops.attention: {q.name} {shape_text(q.shape)}, {k.name} {shape_text(k.shape)}, {v.name} "
            f"{shape_text(v.shape)}; give (..., T, D), (..., S, D) and (..., S, E)"
        )
    for a, b, axis in ((q, k, -1), (k, v, -2)):
        if not same_extent(a.shape[axis], b.shape[axis]):
            raise ShapeError(
                f"te.ops.attention: axis {axis} of {a.name} {shape_text(a.shape)} and of {b.name} {shape_text(b.shape)} "
                "differ; must be equal"
            )
    return broadcast_shapes([q.shape[:-2], k.shape[:-2], v.shape[:-2]], "te.ops.attention")


def _check_mask(mask: Tensor, shape: Shape) -> None:
    own = shape[len(shape) - mask.ndim :] if mask.ndim <= len(shape) else ()
    if len(own) != mask.ndim or not all(
        same_extent(e, 1) or same_extent(e, t) for e, t in zip(mask.shape, own, strict=True)
    ):
        raise ShapeError(
            f"te.ops.attention: {mask.name} {shape_text(mask.shape)} does not broadcast to {shape_text(shape)}, "
            "the shape of the scores"
        )


def _masked(score: Expr, mask: Tensor | None, at: tuple[Any, ...]) -> Expr:
    if mask is None:
        return score
    own = element(mask, at)
    return f.select(own, score, float("-inf")) if mask.dtype == "bool" else score + own


def _everywhere(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, lead: Shape) -> Tensor:
    d, s = r.reduce_axis((0, q.shape[-1]), "d"), r.reduce_axis((0, k.shape[-2]), "s")

    def product(*i: Expr) -> Expr:
        *n, t, s = i
        return r.sum(element(q, (*n, t, d)) * element(k, (*n, s, d)), axis=d)

    products = compute((*lead, q.shape[-2], k.shape[-2]), product, "products")
    scores = compute(products.shape, lambda *i: _masked(products[i], mask, i), "scores")
    weights = softmax(scores, -1)

    def body(*i: Expr) -> Expr:
        *n, t, e = i
        return r.sum(weights[(*n, t, s)] * element(v, (*n, s, e)), axis=s)

    return compute((*lead, q.shape[-2], v.shape[-1]), body, "attention")


def _in_window(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, lead: Shape, window: tuple[int, int]
) -> Tensor:
    """The scores of a band of the matrix, one row for each query."""
    before, after = window
    length: Extent = q.shape[-2]
    width = before + after + 1
    d = r.reduce_axis((0, q.shape[-1]), "d")

    def inside(t: Expr, w: Any) -> Any:
        found: Any = as_expr(True)
        found = found & (t + w >= before) if before else found
        return found & (t + w < length + before) if after else found

    def product(*i: Expr) -> Expr:
        *n, t, w = i
        of_key = element(k, (*n, t + w - before, d))
        return r.sum(element(q, (*n, t, d)) * of_key, axis=d, where=inside(t, w))

    products = compute((*lead, length, width), product, "products")

    def score(*i: Expr) -> Expr:
        *n, t, w = i
        own = _masked(products[i], mask, (*n, t, t + w - before))
        return f.select(inside(t, w), own, float("-inf"))

    weights = softmax(compute(products.shape, score, "scores"), -1)
    w = r.reduce_axis((0, width), "w")

    def body(*i: Expr) -> Expr:
        *n, t, e = i
        return r.sum(weights[(*n, t, w)] * element(v, (*n, t + w - before, e)), axis=w, where=inside(t, w))

    return compute((*lead, length, v.shape[-1]), body, "attention")
