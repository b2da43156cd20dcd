"""What other libraries call things that jaxte has under another name, for the hints of messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def _called(**others: str) -> Mapping[str, str]:
    """From each other name to the own one; the other names of one thing stand in one text."""
    return {other: own for own, listed in others.items() for other in listed.split()}


# of einops, einx, KeOps, TVM, Tullio and deep learning frameworks, among the names of te
PUBLIC = _called(
    einsum="rearrange repeat reduce pack get_at contract einx tullio",
    compute="LazyTensor Vi Vj Genred lambda_",
    function="build create_prim_func",
    floor_divide="floordiv indexdiv truncdiv",
    mod="floormod indexmod truncmod",
    reduce_axis="range iter_var thread_axis",
    grad="mgrad gradients backward derivative",
    source="create_schedule",
    sum="reduce_sum",
    recurrence="scan",
    var="size_var",
    constant="array asarray",
    variance="moments",
    formula="print_formula",
)

# among those of te.ops
OPERATORS = _called(
    dense="linear Linear Dense fully_connected",
    conv2d="conv convolution Conv Conv2d",
    conv2d_transpose="conv_transpose2d deconv2d",
    avg_pool2d="avg_pool mean_pool AvgPool2d",
    max_pool2d="max_pool MaxPool2d",
    concatenate="cat concat",
    batch_matmul="bmm",
    attention="scaled_dot_product_attention dot_product_attention",
    resize="interpolate upsample",
    transpose="permute swapaxes moveaxis",
    cast="astype to",
    expand_dims="unsqueeze",
    take_along_axis="gather",
    take="index_select",
    reshape="view",
    variance="var",
    depth_to_space="pixel_shuffle",
    space_to_depth="pixel_unshuffle",
    silu="swish",
    clip="hard_tanh hardtanh",
    lrn="local_response_norm",
    sum="reduce_sum",
    max="reduce_max amax",
    min="reduce_min amin",
    mean="reduce_mean",
    prod="reduce_prod",
)

# parameters
PARAMETERS = _called(
    axis="dim dims",
    keepdims="keepdim",
    strides="stride",
    layout="data_format",
    window="kernel_size",
    padding="pad",
    w="weight kernel",
    x="input",
    b="bias",
    eps="epsilon",
    ord="p",
)

# reductions, and what is not over an axis
OF_VALUES = {
    "max": "of two values it is te.maximum(a, b)",
    "min": "of two values it is te.minimum(a, b)",
    "all": "of several conditions it is te.logical_and(a, b, c)",
    "any": "of several conditions it is te.logical_or(a, b, c)",
}

# functions and reductions that formulas write out
IN_FORMULAS = {
    "sqdist": "a squared distance is sum[c]((x[i, c] - y[j, c]) ** 2)",
    "sqnorm2": "a squared norm is sum[c](x[i, c] ** 2)",
    "argkmin": "the places of the k least of many are te.ops.top_k",
    "kmin": "the k least of many are te.ops.top_k",
    "clamp": "did you mean clip?",
}

# modes of padding
PADS = _called(
    zero="zeros constant same 0",
    edge="replicate nearest border",
    wrap="circular periodic",
    reflect="mirror reflection",
)


def nearest(name: str, known: Iterable[str]) -> str:
    """What a misspelled ``name`` may have meant, in whatever case, as the end of a message."""
    listed = list(known)
    alike = [own for own in listed if own.lower() == name.lower()]
    found = alike or get_close_matches(name, listed, n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""
