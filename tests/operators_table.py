"""The names of the compatibility table of operators, level by level, as ``te.ops`` has them."""

LEVELS: dict[str, str] = {
    "1": """log sqrt exp sigmoid tanh add subtract multiply divide mod
        concatenate expand_dims softmax log_softmax relu bias_add dropout batch_norm""",
    "2": """conv2d conv2d_transpose dense max_pool2d avg_pool2d global_max_pool2d global_avg_pool2d conv1d conv3d depthwise_conv2d
        upsampling flatten batch_flatten pad lrn l2_normalize
        conv2d_winograd_weight_transform conv2d_winograd_without_weight_transform""",
    "3": """leaky_relu prelu reshape reshape_like copy transpose squeeze floor ceil trunc clip round abs negative take zeros
        zeros_like ones ones_like full full_like cast split stack gather_nd one_hot arange repeat tile flip""",
    "4": """right_shift left_shift equal not_equal greater greater_equal less less_equal
        maximum minimum power where argmax argmin sum max min mean prod strided_slice broadcast_to variance std logsumexp any all""",
    "5": "resize multibox_prior multibox_transform_loc nms",
    "10": """broadcast_to_like collapse_sum_like slice_like layout_transform device_copy on_device
        cross_entropy cross_entropy_with_logits reverse_reshape""",
    "+": """einsum matmul batch_matmul tensordot layer_norm rms_norm group_norm gelu silu softplus elu cumsum cumprod cummax
        roll take_along_axis top_k attention embedding unfold fold grid_sample bilinear warp correlation cost_volume depth_to_space space_to_depth""",
}

# where positions are data; all other operators are certified to scatter nothing
SCATTERING = {
    "take",
    "take_along_axis",
    "top_k",
    "gather_nd",
    "embedding",
    "grid_sample",
    "bilinear",
    "warp",
    "nms",
}
