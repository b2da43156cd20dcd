"""Means, variances, logarithms of sums of exponentials, softmax, and losses made of these."""

from __future__ import annotations

from jaxte.lang import dtypes
from jaxte.lang import functions as f
from jaxte.lang.expr import Expr
from jaxte.ops._operator import normal_axis, operator, pointwise
from jaxte.ops.arithmetic.reductions import Axes, count, reduce, reduced_axes
from jaxte.tensors import reductions as r
from jaxte.tensors.tensor import Tensor


def inexact(e: Expr) -> Expr:
    """``e`` as a float, if it is an integer."""
    return e if dtypes.is_inexact(e.dtype) else f.cast(e, dtypes.to_inexact(e.kind)[0])


@operator
def mean(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """The mean along ``axis``.

    Formula: ``y[i] = sum over k of x[i, k] / K``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.mean``.

    Example:
        >>> te.ops.mean(np.array([1, 2])).tolist()
        1.5
    """
    axis = reduced_axes(axis, x.ndim, exclude, "mean")
    total = reduce(r.sum, x, axis, keepdims, "total", of=inexact)
    return pointwise("mean", lambda s: s / f.cast(count(x, axis, "mean"), s.dtype), total)


@operator
def variance(
    x: Tensor, axis: Axes = None, keepdims: bool = False, ddof: int = 0, exclude: bool = False
) -> Tensor:
    """The variance along ``axis``, over the number of elements less ``ddof``.

    Formula: ``y[i] = sum over k of (x[i, k] - m[i]) ** 2 / (K - ddof)``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.var``.

    Example:
        >>> te.ops.variance(np.float32([1, 3])).tolist()
        1.0
    """
    axis = reduced_axes(axis, x.ndim, exclude, "variance")
    mu = mean(x, axis, keepdims=True)
    centred = pointwise("centred", lambda e, m: inexact(e) - m, x, mu)
    total = reduce(r.sum, centred, axis, keepdims, "total", of=lambda e: e * e)
    return pointwise("variance", lambda s: s / f.cast(count(x, axis, "variance") - ddof, s.dtype), total)


@operator
def std(x: Tensor, axis: Axes = None, keepdims: bool = False, ddof: int = 0, exclude: bool = False) -> Tensor:
    """The standard deviation along ``axis``.

    Formula: ``y[i] = sqrt(sum over k of (x[i, k] - m[i]) ** 2 / (K - ddof))``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.std``.

    Example:
        >>> te.ops.std(np.float32([1, 5])).tolist()
        2.0
    """
    return pointwise("std", f.sqrt, variance(x, axis, keepdims, ddof, exclude))


@operator
def logsumexp(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """``log(sum(exp(x)))`` along ``axis``, without overflow.

    Formula: ``y[i] = log(sum over k of exp(x[i, k] - m[i])) + m[i]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jax.nn.logsumexp``.

    Example:
        >>> te.ops.logsumexp(np.float32([1000])).tolist()
        1000.0
    """
    axis = reduced_axes(axis, x.ndim, exclude, "logsumexp")
    largest = reduce(r.max, x, axis, True, "largest", of=inexact)
    shift = pointwise("shift", lambda m: f.stop_gradient(f.select(f.isfinite(m), m, 0)), largest)
    scaled = pointwise("scaled", lambda e, m: f.exp(e - m), x, shift)
    total = reduce(r.sum, scaled, axis, True, "total")
    result = pointwise("logsumexp", lambda s, m: f.log(s) + m, total, shift)
    return result if keepdims else reduce(r.sum, result, axis, False, "logsumexp")


@operator
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``axis``, without overflow.

    Formula: ``y[i] = exp(x[i] - m) / sum over k of exp(x[k] - m)``

    Raises:
        ShapeError: an axis out of range.

    Source: ``jax.nn.softmax``.

    Example:
        >>> te.ops.softmax(np.float32([3, 3])).tolist()
        [0.5, 0.5]
    """
    axis = normal_axis(axis, x.ndim, "softmax")
    largest = reduce(r.max, x, axis, True, "largest")
    # its adjoint vanishes, so that it may be a constant: second derivatives then do not ask where it is reached
    scaled = pointwise("scaled", lambda e, m: f.exp(e - f.stop_gradient(m)), x, largest)
    total = reduce(r.sum, scaled, axis, True, "total")
    return pointwise("softmax", f.divide, scaled, total)


@operator
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """``x - log(sum(exp(x)))`` along ``axis``, without overflow.

    Formula: ``y[i] = x[i] - m - log(sum over k of exp(x[k] - m))``

    Raises:
        ShapeError: an axis out of range.

    Source: ``jax.nn.log_softmax``.

    Example:
        >>> te.ops.log_softmax(np.float32([[3.0]])).tolist()
        [[0.0]]
    """
    axis = normal_axis(axis, x.ndim, "log_softmax")
    largest = reduce(r.max, x, axis, True, "largest")
    shifted = pointwise("shifted", lambda e, m: e - f.stop_gradient(m), x, largest)
    total = reduce(r.sum, shifted, axis, True, "total", of=f.exp)
    return pointwise("log_softmax", lambda e, s: e - f.log(s), shifted, total)


@operator
def cross_entropy(predictions: Tensor, targets: Tensor) -> Tensor:
    """The mean over the first axis of ``-sum(targets * log(predictions))`` along the last.

    Formula: ``y = -sum over n, k of targets[n, k] * log(predictions[n, k]) / N``

    Raises:
        ShapeError: shapes that do not broadcast.

    Source: relay ``cross_entropy``.

    Example:
        >>> te.ops.cross_entropy(np.float32([[1, 1]]), np.float32([[0, 1]])).tolist()
        -0.0
    """
    terms = pointwise("terms", lambda p, t: t * f.log(p), predictions, targets)
    return _negative_mean(terms)


@operator
def cross_entropy_with_logits(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over the first axis of ``-sum(targets * log_softmax(logits))`` along the last.

    Formula: ``y = -sum over n, k of targets[n, k] * log_softmax(logits)[n, k] / N``

    Raises:
        ShapeError: shapes that do not broadcast.

    Source: relay ``cross_entropy_with_logits``; ``optax.softmax_cross_entropy``.

    Example:
        >>> round(float(te.ops.cross_entropy_with_logits(np.float32([[0, 0]]), np.float32([[0, 1]]))), 4)
        0.6931
    """
    terms = pointwise("terms", f.multiply, log_softmax(logits), targets)
    return _negative_mean(terms)


def _negative_mean(terms: Tensor) -> Tensor:
    total = reduce(r.sum, terms, None, False, "total")
    return pointwise("cross_entropy", lambda s: -s / f.cast(terms.shape[0], s.dtype), total)
