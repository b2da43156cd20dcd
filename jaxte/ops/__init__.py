"""Operators: functions from Tensors to Tensors in index notation, which also take arrays.

On Tensors they build definitions; on JAX or NumPy arrays they run, and are differentiated by jaxte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxte.lang.checks import no_attribute
from jaxte.lang.errors import OPERATORS
from jaxte.ops.arithmetic.attention import attention
from jaxte.ops.arithmetic.elementwise import (
    abs,
    add,
    bias_add,
    cast,
    ceil,
    clip,
    copy,
    cos,
    divide,
    elu,
    equal,
    erf,
    exp,
    expm1,
    floor,
    floor_divide,
    gelu,
    greater,
    greater_equal,
    isfinite,
    isnan,
    leaky_relu,
    left_shift,
    less,
    less_equal,
    log,
    log1p,
    log_sigmoid,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    prelu,
    relu,
    relu6,
    right_shift,
    round,
    rsqrt,
    sigmoid,
    sign,
    silu,
    sin,
    softplus,
    sqrt,
    square,
    subtract,
    tanh,
    trunc,
    where,
)
from jaxte.ops.arithmetic.linear import batch_matmul, dense, einsum, matmul, tensordot
from jaxte.ops.arithmetic.normalization import batch_norm, group_norm, l2_normalize, layer_norm, lrn, rms_norm
from jaxte.ops.arithmetic.random import dropout
from jaxte.ops.arithmetic.reductions import (
    all,
    any,
    argmax,
    argmin,
    cummax,
    cumprod,
    cumsum,
    max,
    min,
    prod,
    sum,
)
from jaxte.ops.arithmetic.statistics import (
    cross_entropy,
    cross_entropy_with_logits,
    log_softmax,
    logsumexp,
    mean,
    softmax,
    std,
    variance,
)
from jaxte.ops.arrays.creation import arange, full, full_like, ones, ones_like, zeros, zeros_like
from jaxte.ops.arrays.indexing import embedding, gather_nd, one_hot, take, take_along_axis, top_k
from jaxte.ops.arrays.joining import concatenate, pad, repeat, stack, tile
from jaxte.ops.arrays.layouts import depth_to_space, layout_transform, space_to_depth
from jaxte.ops.arrays.like import (
    broadcast_to_like,
    collapse_sum_like,
    device_copy,
    on_device,
    reverse_reshape,
    slice_like,
)
from jaxte.ops.arrays.parts import flip, roll, split, strided_slice
from jaxte.ops.arrays.reshape import batch_flatten, flatten, reshape, reshape_like
from jaxte.ops.arrays.shape import broadcast_to, expand_dims, squeeze, transpose
from jaxte.ops.images.convolution import conv1d, conv2d, conv2d_transpose, conv3d, depthwise_conv2d
from jaxte.ops.images.detection import multibox_prior, multibox_transform_loc, nms
from jaxte.ops.images.matching import correlation, cost_volume
from jaxte.ops.images.pooling import avg_pool2d, global_avg_pool2d, global_max_pool2d, max_pool2d
from jaxte.ops.images.resize import resize, upsampling
from jaxte.ops.images.sampling import bilinear, grid_sample, warp
from jaxte.ops.images.windows import fold, unfold
from jaxte.ops.images.winograd import (
    conv2d_winograd_weight_transform,
    conv2d_winograd_without_weight_transform,
)

__all__ = [
    "abs", "add", "all", "any", "arange", "argmax", "argmin", "attention", "avg_pool2d", "batch_flatten",
    "batch_matmul", "batch_norm", "bias_add", "bilinear", "broadcast_to", "broadcast_to_like", "cast",
    "ceil", "clip", "collapse_sum_like", "concatenate", "conv1d", "conv2d", "conv2d_transpose",
    "conv2d_winograd_weight_transform", "conv2d_winograd_without_weight_transform", "conv3d", "copy",
    "correlation", "cos", "cost_volume", "cross_entropy", "cross_entropy_with_logits", "cummax", "cumprod",
    "cumsum", "dense", "depth_to_space", "depthwise_conv2d", "device_copy", "divide", "dropout", "einsum",
    "elu", "embedding", "equal", "erf", "exp", "expand_dims", "expm1", "flatten", "flip", "floor",
    "floor_divide", "fold", "full", "full_like", "gather_nd", "gelu", "global_avg_pool2d",
    "global_max_pool2d", "greater", "greater_equal", "grid_sample", "group_norm", "isfinite", "isnan",
    "l2_normalize", "layer_norm", "layout_transform", "leaky_relu", "left_shift", "less", "less_equal",
    "log", "log1p", "log_sigmoid", "log_softmax", "logaddexp", "logical_and", "logical_not", "logical_or",
    "logsumexp", "lrn", "matmul", "max", "max_pool2d", "maximum", "mean", "min", "minimum", "mod",
    "multibox_prior", "multibox_transform_loc", "multiply", "negative", "nms", "not_equal", "on_device",
    "one_hot", "ones", "ones_like", "pad", "power", "prelu", "prod", "relu", "relu6", "repeat", "reshape",
    "reshape_like", "resize", "reverse_reshape", "right_shift", "rms_norm", "roll", "round", "rsqrt",
    "sigmoid", "sign", "silu", "sin", "slice_like", "softmax", "softplus", "space_to_depth", "split",
    "sqrt", "square", "squeeze", "stack", "std", "strided_slice", "subtract", "sum", "take",
    "take_along_axis", "tanh", "tensordot", "tile", "top_k", "transpose", "trunc", "unfold", "upsampling",
    "variance", "warp", "where", "zeros", "zeros_like",
]  # fmt: skip


if not TYPE_CHECKING:  # to which every name that is not above is an error

    def __getattr__(name: str) -> Any:
        raise no_attribute("jaxte.ops", name, __all__, OPERATORS.get(name, ""))


def __dir__() -> list[str]:
    """The operators, not the modules that they come from."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
