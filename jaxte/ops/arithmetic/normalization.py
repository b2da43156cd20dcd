"""Normalisations: mean 0 and variance 1 along axes, in groups of channels, or among neighbouring channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from jax.typing import ArrayLike

from jaxte.bridge.functions.builder_function import Array
from jaxte.lang import functions as f
from jaxte.lang.checks import counted
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import check_channels_of, normal_axes, normal_axis, operator, pointwise, static_int
from jaxte.ops.arithmetic.reductions import Axes, reduce
from jaxte.ops.arithmetic.statistics import inexact, mean
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Tensor


def _affine(x: Tensor, gamma: Any, beta: Any, name: str) -> Tensor:
    """``x * gamma + beta``, as far as they are given."""
    if gamma is not None:
        x = pointwise(name, f.multiply, x, gamma)
    return x if beta is None else pointwise(name, f.add, x, beta)


def _scaled(value: Expr, gamma: Tensor | None, beta: Tensor | None, channel: Expr) -> Expr:
    """``value`` at ``channel``, times ``gamma`` plus ``beta`` there, as far as they are given."""
    value = value if gamma is None else value * gamma[channel]
    return value if beta is None else value + beta[channel]


@operator
def layer_norm(
    x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, axis: Axes = -1, eps: float = 1e-5
) -> Tensor:
    """``x`` with mean 0 and variance 1 along ``axis``, times ``gamma`` plus ``beta``, which broadcast.

    Formula: ``y[n, i] = (x[n, i] - m[n]) / sqrt(v[n] + eps) * gamma[i] + beta[i]``

    Raises:
        ShapeError: an axis out of range or named twice, shapes that do not broadcast.

    Source: Ba et al., Layer Normalization; ``torch.nn.LayerNorm``.

    Example:
        >>> te.ops.layer_norm(np.float32([1, 3]), eps=0.0).tolist()
        [-1.0, 1.0]
    """
    axis = normal_axes(axis, x.ndim, "layer_norm")
    centred = pointwise("centred", lambda e, m: inexact(e) - m, x, mean(x, axis, keepdims=True))
    variance = mean(pointwise("square", f.square, centred), axis, keepdims=True)
    normalized = pointwise("layer_norm", lambda e, v: e * f.rsqrt(v + eps), centred, variance)
    return _affine(normalized, gamma, beta, "layer_norm")


@operator
def rms_norm(x: Tensor, gamma: Tensor | None = None, axis: Axes = -1, eps: float = 1e-6) -> Tensor:
    """``x`` over the root of its mean square along ``axis``, times ``gamma``, which broadcasts.

    Formula: ``y[n, i] = x[n, i] / sqrt(sum over k of x[n, k] ** 2 / K + eps) * gamma[i]``

    Raises:
        ShapeError: an axis out of range or named twice, shapes that do not broadcast.

    Source: ``Zhang and Sennrich, Root Mean Square Layer Normalization``.

    Example:
        >>> te.ops.rms_norm(np.float32([2, -2]), eps=0.0).tolist()
        [1.0, -1.0]
    """
    axis = normal_axes(axis, x.ndim, "rms_norm")
    scale = mean(pointwise("square", f.square, x), axis, keepdims=True)
    return _affine(
        pointwise("rms_norm", lambda e, s: e * f.rsqrt(s + eps), x, scale), gamma, None, "rms_norm"
    )


def _over_groups(x: Tensor, channel: int, groups: int, value: Callable[[Expr], Expr], name: str) -> Tensor:
    """The mean of ``value`` of each group of channels of an image, over all other axes."""
    size = x.shape[channel] // groups
    others = [a for a in range(1, x.ndim) if a != channel]
    k, *own = [r.reduce_axis((0, size), "k"), *(r.reduce_axis((0, x.shape[a]), f"k{a}") for a in others)]
    count: Any = size
    for a in others:
        count = count * x.shape[a]

    def body(n: Expr, g: Expr) -> Expr:
        at = {0: n, channel: size * g + k} | dict(zip(others, own, strict=True))
        total = r.sum(value(x[tuple(at[a] for a in range(x.ndim))]), axis=[k, *own])
        return total / f.cast(count, total.dtype)

    return compute((x.shape[0], groups), body, name)


@operator
def group_norm(
    x: Tensor,
    groups: int,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    axis: int = 1,
    eps: float = 1e-5,
) -> Tensor:
    """Each image of ``x`` with mean 0 and variance 1 in each group of channels, times ``gamma`` plus ``beta``.

    Args:
        x: (N, ..., C, ...) with the channels on ``axis``.
        groups: how many groups of neighbouring channels there are.
        gamma: (C,).
        beta: (C,).

    Formula: ``y[n, c, i] = (x[n, c, i] - m[n, c // S]) / sqrt(v[n, c // S] + eps) * gamma[c] + beta[c]``, mean and variance
    over the ``S = C / groups`` channels of the group and all other axes but the first

    Raises:
        ShapeError: groups that do not divide the channels, channels on the first axis, an axis out of range, other numbers
            than one a channel.

    Source: Wu and He, Group Normalization; ``torch.nn.GroupNorm``.

    Example:
        >>> te.ops.group_norm(np.float32([[[1, 3], [1, 3]]]), 1, eps=0.0).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    channel = normal_axis(axis, x.ndim, "group_norm")
    number = static_int(groups, "te.ops.group_norm: groups", 1)
    total = static_int(x.shape[channel], f"te.ops.group_norm: channels of {x.name}")
    if channel == 0 or total % number:
        raise ShapeError(
            f"te.ops.group_norm: axis {channel} of {x.name} {shape_text(x.shape)} has {counted(total, 'element', 'elements')}, groups={number}; give "
            "groups that divide the channels, on another axis than the first"
        )
    for v in (gamma, beta):
        check_channels_of(v, x, channel, "group_norm")
    size = total // number
    m = _over_groups(x, channel, number, inexact, "group_mean")
    centred = compute(x.shape, lambda *i: x[i] - m[i[0], i[channel] // max(size, 1)], "centred")
    v = _over_groups(centred, channel, number, f.square, "group_variance")

    def body(*i: Expr) -> Expr:
        c = i[channel]
        return _scaled(centred[i] * f.rsqrt(v[i[0], c // max(size, 1)] + eps), gamma, beta, c)

    return compute(x.shape, body, "group_norm")


@operator
def l2_normalize(x: Tensor, axis: Axes = -1, eps: float = 1e-12) -> Tensor:
    """``x`` over its norm along ``axis``, the square of which counts as ``eps`` at least.

    Formula: ``y[n, i] = x[n, i] / sqrt(maximum(sum over k of x[n, k] ** 2, eps))``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: relay ``l2_normalize``.

    Example:
        >>> te.ops.l2_normalize(np.float32([0, 2])).tolist()
        [0.0, 1.0]
    """
    axis = normal_axes(axis, x.ndim, "l2_normalize")
    total = reduce(r.sum, x, axis, True, "total", of=f.square)
    return pointwise("l2_normalize", lambda e, s: e * f.rsqrt(f.maximum(s, eps)), x, total)


@overload
def batch_norm(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor | None = None,
    var: Tensor | None = None,
    axis: int = 1,
    eps: float = 1e-5,
    training: Literal[False] = False,
) -> Tensor: ...
@overload
def batch_norm(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor | None = None,
    var: Tensor | None = None,
    axis: int = 1,
    eps: float = 1e-5,
    *,
    training: Literal[True],
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def batch_norm(
    x: ArrayLike,
    gamma: ArrayLike | None,
    beta: ArrayLike | None,
    mean: ArrayLike | None = None,
    var: ArrayLike | None = None,
    axis: int = 1,
    eps: float = 1e-5,
    training: Literal[False] = False,
) -> Array: ...
@overload
def batch_norm(
    x: ArrayLike,
    gamma: ArrayLike | None,
    beta: ArrayLike | None,
    mean: ArrayLike | None = None,
    var: ArrayLike | None = None,
    axis: int = 1,
    eps: float = 1e-5,
    *,
    training: Literal[True],
) -> tuple[Array, Array, Array]: ...
@operator
def batch_norm(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor | None = None,
    var: Tensor | None = None,
    axis: int = 1,
    eps: float = 1e-5,
    training: bool = False,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """``(x - mean) / sqrt(var + eps) * gamma + beta`` for each channel on ``axis``.

    With ``training`` the mean and the variance are those of the batch, the result is ``(y, mean, var)``, and
    gradients pass through both.

    Formula: ``y[n, c, i] = (x[n, c, i] - mean[c]) / sqrt(var[c] + eps) * gamma[c] + beta[c]``

    Raises:
        ShapeError: neither statistics nor ``training``, an axis out of range, other numbers than one a channel.

    Source: ``Ioffe and Szegedy, Batch Normalization``.

    Example:
        >>> te.ops.batch_norm(np.float32([[1], [3]]), None, None, eps=0.0, training=True)[1].tolist()
        [2.0]
    """
    channel = normal_axis(axis, x.ndim, "batch_norm")
    for v in (gamma, beta, mean, var):
        check_channels_of(v, x, channel, "batch_norm")
    if training:
        mean, var = _moments(x, channel)
    if mean is None or var is None:
        raise ShapeError("te.ops.batch_norm: give mean and var, or training=True to take those of the batch")
    m, v = mean, var

    def body(*i: Expr) -> Expr:
        c = i[channel]
        return _scaled((x[i] - m[c]) * f.rsqrt(v[c] + eps), gamma, beta, c)

    y = compute(x.shape, body, "batch_norm")
    return (y, m, v) if training else y


def _moments(x: Tensor, channel: int) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel."""
    others = tuple(a for a in range(x.ndim) if a != channel)
    m = mean(x, others)
    centred = compute(x.shape, lambda *i: x[i] - m[i[channel]], "centred")
    return m, mean(pointwise("square", f.square, centred), others)


@operator
def lrn(
    x: Tensor, size: int = 5, bias: float = 2.0, alpha: float = 1e-4, beta: float = 0.75, axis: int = 1
) -> Tensor:
    """``x / (bias + alpha / size * sum of squares over size neighbouring channels) ** beta``.

    Formula: ``y[n, c, i] = x[n, c, i] / (bias + alpha / size * sum over |k| <= size / 2 of x[n, c + k, i] ** 2) ** beta``

    Raises:
        ShapeError: a size below 1, an axis out of range.

    Source: Krizhevsky et al., ImageNet Classification; ``torch.nn.LocalResponseNorm``.

    Example:
        >>> te.ops.lrn(np.float32([[1, 2]]), 1, 0.0, 1.0, 0.5).tolist()
        [[1.0, 1.0]]
    """
    channel = normal_axis(axis, x.ndim, "lrn")
    size = static_int(size, "te.ops.lrn: size", 1)
    k = r.reduce_axis((0, size), "k")

    def squares(*i: Expr) -> Expr:
        c = i[channel] + k - size // 2
        inside = (c >= 0) & (c < x.shape[channel])
        value = x[(*i[:channel], c, *i[channel + 1 :])]
        return r.sum(value * value, axis=k, where=inside)

    total = compute(x.shape, squares, "squares")
    return pointwise("lrn", lambda e, s: e / (bias + alpha / size * s) ** beta, x, total)
