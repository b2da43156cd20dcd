"""What is emitted for each benchmark case at full size: operations that tell forms apart, and the forms of all tensors."""

from __future__ import annotations

EXPECTED: dict[str, tuple[dict[str, int], str]] = {
    "attention_window_long": (
        {"while": 2, "dot_general": 7},
        "inside the tiles of largest and total and o, inside the tiles of sum_shared_softmax and dq and dkeys and dvalues, tiles of 100 i1: einsum, tiles of 100 i1: max, tiles of 100 i1: sum",
    ),
    "attention_window_output": ({"dot_general": 1}, "block-skew, shifted products"),
    "attention_window_scores": ({"dot_general": 1}, "block-skew, shifted products"),
    "avg_pool_3_2": ({}, "separable slices without a copy, shift-and-add"),
    "batch_norm": ({}, "sum"),
    "batched_matmul": ({"dot_general": 3}, "einsum"),
    "bilateral_filter": ({}, "shift-and-add"),
    "bilinear_resize": ({}, "peeled edges, shift-and-add"),
    "box_blur_15": ({}, "separable slices"),
    "box_blur_5": ({}, "separable slices without a copy"),
    "conv1d": ({"convolution": 3}, "convolution"),
    "conv1d_depthwise": ({}, "shift-and-add, sums in one pass"),
    "conv2d": (
        {"while": 2, "convolution": 1, "dot_general": 2},
        "convolution, product per image",
    ),
    "conv2d_depthwise": ({}, "shift-and-add, sums in one pass"),
    "conv2d_dilation_2": (
        {"while": 2, "convolution": 1, "dot_general": 2},
        "convolution, product per image",
    ),
    "conv2d_groups_4": ({"convolution": 12}, "convolution per group"),
    "conv2d_stride_2": ({"convolution": 6}, "convolution, residue classes"),
    "conv2d_transposed": ({"convolution": 6}, "convolution, residue classes"),
    "conv3d": ({"convolution": 3}, "folded convolution"),
    "conv_per_example_gradients": ({"convolution": 48}, "convolution per group"),
    "cost_volume": ({"dot_general": 9}, "block-skew, shifted products"),
    "cross_entropy": ({}, "max, sum"),
    "deformable_conv": (
        {"scatter": 4, "gather": 8, "dot_general": 3},
        "einsum, gather, gather + sum, scatter",
    ),
    "dense": ({"dot_general": 3}, "einsum, sum"),
    "embedding": ({"scatter": 1, "gather": 1}, "gather, scatter"),
    "gather_permutation": ({"gather": 2}, "gather"),
    "gaussian_sum_100000": (
        {"while": 2, "dot_general": 8},
        "inside the tiles of dx and dy_sum and db, inside the tiles of s, tiles of 5 i: einsum",
    ),
    "gaussian_sum_4096": (
        {"while": 2, "dot_general": 8},
        "inside the tiles of dx and dy_sum and db, inside the tiles of s, tiles of 64 i: einsum",
    ),
    "global_avg_pool": ({}, "sum"),
    "global_max_pool": ({}, "max, min"),
    "graph_attention": (
        {"scatter": 7, "gather": 11},
        "gather, gather + scatter, gather + sum, scatter",
    ),
    "group_norm": ({}, "shifted products, sum"),
    "l2_normalize": ({}, "sum"),
    "layer_norm": ({"dot_general": 2}, "einsum, sum"),
    "log_softmax": ({}, "max, sum"),
    "lrn": ({}, "shifted slices"),
    "max_pool_2_2": ({}, "interleaved, shifted slices"),
    "max_pool_3_1": ({}, "separable slices without a copy, shift-and-add, shifted slices"),
    "max_pool_3_2": ({}, "separable slices without a copy, shift-and-add, shifted slices"),
    "max_pool_7_1": ({}, "separable slices without a copy, shift-and-add, shifted slices"),
    "mesh_convolution": ({"gather": 4, "dot_general": 9}, "einsum, gather, gather + einsum, written out"),
    "nearest_upsampling": ({}, "shifted slices"),
    "prefix_maximum": ({}, "blocked scan"),
    "prefix_product": ({}, "blocked scan"),
    "prefix_sum": ({}, "blocked scan"),
    "product_reduction": ({}, "concatenate, prod"),
    "reshape_heads": ({}, ""),
    "reshape_transpose": ({}, ""),
    "rms_norm": ({"dot_general": 2}, "einsum, sum"),
    "soft_rasteriser": (
        {"while": 2},
        "inside the tiles of drows and dcolumns and dlength and dside_sum and dcorners_sum, tiles of 2 i: elementwise, tiles of 2 i: sum",
    ),
    "softmax": ({}, "max, sum"),
    "stencil_25_point": ({}, ""),
    "stencil_5_point_padded": ({}, "peeled edges"),
    "stencil_5_point_rolled": ({}, "peeled edges"),
    "toeplitz": ({"dot_general": 3}, "Toeplitz matrix, sums along diagonals"),
    "trace_of_product": ({}, "sum"),
}

# What the backward pass holds beyond the idiomatic form's temporaries, at most this many times as much, and why.
_PADDED = (
    "the operand with zeros around it, once, where reduce_window tests positions and is ten times slower"
)
MORE_TEMPORARIES: dict[str, tuple[float, str]] = {
    "avg_pool_3_2": (2.1, "what is between the two passes"),
    "box_blur_15": (3.3, _PADDED),
    "box_blur_5": (2.1, "what is between the two passes, forward and backward at the same time"),
    "bilinear_resize": (1.05, _PADDED),
    "conv1d_depthwise": (46, _PADDED),
    "conv2d_depthwise": (1.2, _PADDED),
    "conv3d": (
        6.5,
        "the images once for each tap of a dimension, for a convolution of two dimensions that takes a sixth of the time",
    ),
    "conv2d_groups_4": (
        1.8,
        "the groups of each operand apart, and their results before they are put together",
    ),
    "conv_per_example_gradients": (
        1.6,
        "the groups of each operand apart, and their results before they are put together",
    ),
    "deformable_conv": (1.1, "the samples, laid out once for each of the two products that read them"),
    "lrn": (1.1, _PADDED),
}

# What XLA counts as read and written beyond the idiomatic form's bytes, at most this many times as much, and why.
_COUNTED = "slices of one array are counted for each of them; reduce_window and convolutions count an array once, whatever they read"
_LAID_OUT = "copies of operands for products that take a part of the time"
MORE_BYTES: dict[str, tuple[float, str]] = {
    "avg_pool_3_2": (2.1, _COUNTED),
    "bilateral_filter": (1.05, _COUNTED),
    "box_blur_15": (8.6, _COUNTED),
    "box_blur_5": (2.4, _COUNTED),
    "conv1d_depthwise": (3.9, _COUNTED),
    "conv2d_depthwise": (1.95, _COUNTED),
    "conv2d_groups_4": (1.2, _LAID_OUT),
    "conv2d_stride_2": (1.15, _LAID_OUT),
    "conv2d_transposed": (1.1, _LAID_OUT),
    "conv3d": (2.8, _LAID_OUT),
    "conv_per_example_gradients": (3.8, _LAID_OUT),
    "lrn": (1.4, _COUNTED),
    "max_pool_7_1": (3.4, _COUNTED),
    "prefix_sum": (
        1.6,
        "blocks are read again for what the blocks before come to; a scan's loops are counted once",
    ),
}
