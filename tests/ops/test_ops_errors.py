"""Bad input of the operators: the message names the argument, its value, and what would be accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte import ops


def tensor(*shape: int, name: str = "X", dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


X, IMAGE = tensor(2, 3, 4), tensor(1, 4, 5, 6)
W = tensor(4, 2, 3, 3, name="W")

ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "add": (lambda: ops.add(X, tensor(5, name="Y")), r"add of X and Y: shapes \(2, 3, 4\) and \(5,\) do not broadcast"),
    "kernel too large": (lambda: ops.conv2d(IMAGE, tensor(2, 4, 7, 3, name="W"), padding=((0, 1), 0)), r"conv2d: a window of 7 elements over an axis of 5 with padding \(0, 1\)"),
    "pool too large": (lambda: ops.avg_pool2d(IMAGE, 7), "avg_pool2d: a window of 7 elements over an axis of 5"),
    "negative padding": (lambda: ops.conv2d(IMAGE, tensor(2, 4, 1, 1, name="W"), padding=-1), "padding=-1: give at least 0"),
    "groups": (lambda: ops.conv2d(IMAGE, W, groups=3), r"X \(1, 4, 5, 6\) has 4 channels and W .* in each of 3 groups"),
    "negative size": (lambda: ops.zeros((2, -1)), "extent of axis 1 of zeros is -1"),
    "transposed channels": (lambda: ops.conv2d_transpose(IMAGE, tensor(3, 2, 3, 3, name="W")), r"has 4 channels and W \(3, 2, 3, 3\) takes 3"),
    "transposed groups": (lambda: ops.conv2d_transpose(IMAGE, W, groups=3), "4 channels, which is not 3 equal groups"),
    "transposed rank": (lambda: ops.conv2d_transpose(IMAGE, X), "X has 4 axes and X 3; give equally many"),
    "transposed cut": (lambda: ops.conv2d_transpose(tensor(1, 4, 1, 1), W, padding=2), r"padding \(2, 2\) cuts more than the 3 elements"),
    "output_padding": (lambda: ops.conv2d_transpose(IMAGE, W, 2, output_padding=2), "output_padding=2 with strides 2; give less"),
    "winograd kernel": (lambda: ops.conv2d_winograd_weight_transform(tensor(2, 2, 5, 5, name="W")), r"W \(2, 2, 5, 5\); give kernels, \(O, C, 3, 3\)"),
    "winograd tile": (lambda: ops.conv2d_winograd_weight_transform(W, 3), "tile_size=3; there are .* give 2 or 4"),
    "winograd shape": (lambda: ops.conv2d_winograd_without_weight_transform(IMAGE, W), r"W \(4, 2, 3, 3\); give .* \(6, 6, O, C\)"),
    "winograd channels": (lambda: ops.conv2d_winograd_without_weight_transform(IMAGE, tensor(4, 4, 8, 3, name="U"), 2), r"has 4 channels and U \(4, 4, 8, 3\) takes 3"),
    "winograd image": (lambda: ops.conv2d_winograd_without_weight_transform(tensor(1, 4, 2, 6), tensor(4, 4, 8, 4), 2), "is smaller than a kernel of 3 by 3"),
    "slices without steps": (lambda: ops.strided_slice(X, (0,), (2,), (0,)), r"strided_slice: strides=\(0,\); give positive or negative strides"),
    "slices of one axis": (lambda: ops.strided_slice(X, (0, 1), (2, 2), axes=(1, -2)), r"strided_slice: axis=\(1, -2\) names an axis twice"),
    "fractional strides": (lambda: ops.max_pool2d(IMAGE, 2, strides=1.5), r"max_pool2d: strides=1\.5: give a Python integer"),
    "fractional padding": (lambda: ops.max_pool2d(IMAGE, 2, padding=(1, 0.5)), r"max_pool2d: padding=0\.5: give a Python integer"),
    "resize method": (lambda: ops.resize(IMAGE, 3, "linear"), "resize: method='linear'; give one of 'nearest', 'bilinear', 'bicubic'"),
    "resize align": (lambda: ops.resize(IMAGE, 3, align="corners"), "align='corners'; give one of 'half_pixel'"),
    "resize size": (lambda: ops.resize(IMAGE, (3, 0)), r"resize: size=0: give at least 1"),
    "resize sizes": (lambda: ops.resize(IMAGE, (3, 3, 3)), r"size=\(3, 3, 3\); give one number, or 2 of them"),
    "resize nothing": (lambda: ops.resize(tensor(1, 1, 0, 3), 2), "extent of axis 2 of X=0: give at least 1"),
    "upsampling": (lambda: ops.upsampling(IMAGE, 0), "upsampling: scale=0: give at least 1"),
    "upsampling layout": (lambda: ops.upsampling(IMAGE, 2, "CHWN"), "layout='CHWN' for 4 axes; layouts are"),
    "prior": (lambda: ops.multibox_prior(IMAGE, ()), r"sizes=\(\).*give features with four axes, and at least one size"),
    "prior steps": (lambda: ops.multibox_prior(IMAGE, steps=(0.1,)), r"steps=\(0.1,\); give two numbers"),
    "transform_loc": (lambda: ops.multibox_transform_loc(X, tensor(2, 16, name="L"), tensor(1, 4, 5, name="A")), r"A \(1, 4, 5\).* a box has four numbers"),
    "transform_loc anchors": (lambda: ops.multibox_transform_loc(X, tensor(2, 12, name="L"), tensor(1, 4, 4, name="A")), r"L \(2, 12\).*different numbers of anchors"),
    "transform_loc rank": (lambda: ops.multibox_transform_loc(X, X, X), r"give \(N, classes, A\), \(N, A \* 4\) and \(1, A, 4\)"),
    "transform_loc classes": (lambda: ops.multibox_transform_loc(tensor(2, 1, 4), tensor(2, 16, name="L"), tensor(1, 4, 4, name="A")), "the background and at least one class"),
    "nms": (lambda: ops.nms(tensor(5, 3, name="B"), tensor(5, name="S")), r"nms: B \(5, 3\); give boxes of four numbers, \(A, 4\)"),
    "nms scores": (lambda: ops.nms(tensor(5, 4, name="B"), tensor(4, name="S")), r"S \(4,\) beside B \(5, 4\); give one score for each box"),
    "nms output": (lambda: ops.nms(tensor(5, 4, name="B"), tensor(5, name="S"), max_output=-1), "max_output=-1: give at least 0"),
    "roll": (lambda: ops.roll(X, (1, 2), (0, 1, 2)), "roll: 2 shifts along 3 axes; give one shift, or one for each axis"),
    "roll axis": (lambda: ops.roll(X, 1, 3), "axis"),
    "take_along_axis": (lambda: ops.take_along_axis(X, tensor(5, dtype="int32")), "has 1 axis and X has 3; give as many"),
    "take_along_axis rest": (lambda: ops.take_along_axis(X, te.placeholder((5, 3, 4), "int32", "I"), 2), "take_along_axis of X and I beside axis 2"),
    "top_k": (lambda: ops.top_k(X, 5), "top_k: k=5, but axis 2 of X has 4 elements"),
    "broadcast_to_like": (lambda: ops.broadcast_to_like(X, tensor(2, 3, 5, name="Y")), r"X \(2, 3, 4\) does not broadcast to \(2, 3, 5\)"),
    "collapse_sum_like": (lambda: ops.collapse_sum_like(X, tensor(2, 4, name="Y")), r"X \(2, 3, 4\) does not collapse to Y \(2, 4\)"),
    "collapse_sum_like rank": (lambda: ops.collapse_sum_like(X, tensor(1, 2, 3, 4, name="Y")), r"X \(2, 3, 4\) does not collapse to Y \(1, 2, 3, 4\)"),
    "slice_like": (lambda: ops.slice_like(X, tensor(2, 3, 5, name="Y")), "axis 2 of X has 4 elements and of Y 5"),
    "slice_like rank": (lambda: ops.slice_like(X, tensor(2, 3, name="Y")), r"Y \(2, 3\) have different numbers of axes; give axes="),
    "slice_like axes": (lambda: ops.slice_like(X, tensor(2, 3, name="Y"), (2,)), r"axis 2, but Y \(2, 3\) has 2 axes"),
    "reverse_reshape": (lambda: ops.reverse_reshape(X, (0, 2, 3, 4)), r"shape=\(0, 2, 3, 4\) copies the extent 4 axes from the last"),
    "reverse_reshape two": (lambda: ops.reverse_reshape(X, (-1, -1)), "-1 more than once"),
    "device": (lambda: ops.device_copy(X, "abacus"), "device_copy: device='abacus'; there are cpu:0"),
    "device number": (lambda: ops.on_device(X, "cpu:99"), "on_device: device='cpu:99'; there are cpu:0"),
    "device type": (lambda: ops.on_device(X, 3), "device is int 3; give a jax.Device, a sharding or text"),
    "layout": (lambda: ops.layout_transform(IMAGE, "NCHW", "NC-HW"), "dst_layout='NC-HW'; a layout has capital letters"),
    "layout letters": (lambda: ops.layout_transform(IMAGE, "NCHW", "OIHW"), "'NCHW' and dst_layout='OIHW' have different letters"),
    "layout twice": (lambda: ops.layout_transform(IMAGE, "NCHW", "NCHWC"), "dst_layout='NCHWC'; each letter stands once"),
    "layout rank": (lambda: ops.layout_transform(X, "NCHW", "NHWC"), r"src_layout='NCHW' has 4 axes, but X \(2, 3, 4\) has 3"),
    "layout split": (lambda: ops.layout_transform(IMAGE, "NCHW", "NCHW3c"), "C has 4 elements, which dst_layout='NCHW3c' splits by 3"),
    "layout factor": (lambda: ops.layout_transform(X, "NC8c", "NC"), r"X \(2, 3, 4\) has extent 4 where src_layout='NC8c' has 8c"),
    "depth_to_space": (lambda: ops.depth_to_space(IMAGE, 3), "has 4 channels, which block_size=3 squared"),
    "depth_to_space mode": (lambda: ops.depth_to_space(IMAGE, 2, "RCD"), "mode='RCD'; the modes are 'DCR' and 'CRD'"),
    "space_to_depth": (lambda: ops.space_to_depth(IMAGE, 2), r"axis 2 of X \(1, 4, 5, 6\) is not whole blocks of 2"),
    "einsum": (lambda: ops.einsum("ij,jk->ik", X, X), r"'ij' in subscripts='ij,jk->ik' names 2 axes, but X \(2, 3, 4\) has 3"),
    "einsum operands": (lambda: ops.einsum("ijk->i", X, X), "has 1 operands, but 2 are given"),
    "einsum extents": (lambda: ops.einsum("ijk,ikj->i", X, X), "'k' of subscripts=.* has 3 elements in X .* and 4 elsewhere"),
    "einsum result": (lambda: ops.einsum("ijk->il", X), "the result has 'l', which must stand in an operand"),
    "einsum text": (lambda: ops.einsum("i1k->i", X), "subscripts='i1k->i'; give letters, commas"),
    "einsum type": (lambda: ops.einsum(X, X), "subscripts is .* give a string"),
    "group_norm": (lambda: ops.group_norm(IMAGE, 3), "has 4 elements, groups=3; give groups that divide"),
    "group_norm gamma": (lambda: ops.group_norm(IMAGE, 2, tensor(5, name="G")), r"G \(5,\) beside X \(1, 4, 5, 6\) .* on axis 1; give one number for each channel, \(4,\)"),
    "bias_add": (lambda: ops.bias_add(X, tensor(4, name="B")), r"bias_add: B \(4,\) beside X \(2, 3, 4\)"),
    "prelu": (lambda: ops.prelu(X, tensor(3, 1, name="S")), r"prelu: S \(3, 1\) beside X"),
    "batch_norm": (lambda: ops.batch_norm(X, None, tensor(2, name="B"), training=True), r"batch_norm: B \(2,\) beside X"),
    "attention rank": (lambda: ops.attention(X, X, tensor(4, name="V")), r"V \(4,\); give \(..., T, D\), \(..., S, D\)"),
    "attention depth": (lambda: ops.attention(X, tensor(2, 3, 5, name="K"), X), r"axis -1 of X \(2, 3, 4\) and of K \(2, 3, 5\) differ"),
    "attention mask": (lambda: ops.attention(X, X, X, tensor(2, 3, name="M")), r"M \(2, 3\) does not broadcast to \(2, 3, 3\)"),
    "attention window": (lambda: ops.attention(X, X, X, window=-1), "window=-1: give at least 0"),
    "attention lengths": (lambda: ops.attention(X, tensor(2, 5, 4), tensor(2, 5, 4), window=1), "window=1 with 3 queries and 5 keys"),
    "attention window pair": (lambda: ops.attention(X, X, X, window=(1, 2, 3)), r"window=\(1, 2, 3\); give one number, or \(before, after\)"),
    "dropout": (lambda: ops.dropout(X, 0.5), "give key=, of jax.random, or mask="),
    "dropout rate": (lambda: ops.dropout(X, 1.0, mask=tensor(4, dtype="bool")), "rate is float 1.0; give a number from 0 to below 1"),
    "dropout mask": (lambda: ops.dropout(X, 0.5, mask=tensor(4, name="M")), "M has dtype float32; a mask is boolean"),
    "dropout key": (lambda: ops.dropout(X, 0.5, tensor(2, name="K")), "K has dtype float32 and 1 axis; give a key of jax.random"),
    "unfold": (lambda: ops.unfold(X, 2), r"X \(2, 3, 4\); give images, \(N, C, H, W\)"),
    "unfold kernel": (lambda: ops.unfold(IMAGE, 9), "unfold: a window of 9 elements over an axis of 5"),
    "fold": (lambda: ops.fold(X, (3, 3), 2), "has 3 rows, which are not whole windows of 2 by 2"),
    "fold columns": (lambda: ops.fold(tensor(1, 4, 5), (3, 3), 2), "has 5 columns, but an image of 3 by 3 has 2 by 2 windows"),
    "grid": (lambda: ops.grid_sample(IMAGE, tensor(1, 2, 2, 3, name="G")), r"G \(1, 2, 2, 3\); give \(N, C, H, W\) and \(N, OH, OW, 2\)"),
    "grid batch": (lambda: ops.grid_sample(IMAGE, tensor(2, 2, 2, 2, name="G")), "have different batches"),
    "grid dtype": (lambda: ops.bilinear(IMAGE, tensor(1, 2, 2, 2, name="G", dtype="int32")), "G has dtype int32; places are floats"),
    "grid mode": (lambda: ops.grid_sample(IMAGE, tensor(1, 2, 2, 2), padding_mode="wrap"), "padding_mode='wrap'; give one of 'zeros', 'border'"),
    "warp": (lambda: ops.warp(IMAGE, tensor(1, 5, 6, 2, name="F")), r"F \(1, 5, 6, 2\); give \(N, C, H, W\) and \(N, 2, H, W\)"),
    "correlation": (lambda: ops.correlation(IMAGE, X), r"X \(2, 3, 4\); give two images of one shape"),
    "correlation reach": (lambda: ops.correlation(IMAGE, IMAGE, -1), "max_displacement=-1: give at least 0"),
    "cost_volume": (lambda: ops.cost_volume(IMAGE, IMAGE, 0), "max_disparity=0: give at least 1"),
    "gather_nd dtype": (lambda: ops.gather_nd(X, tensor(2, 5, name="I")), "gather_nd: I_0 has dtype float32; indices are integers"),
    "embedding dtype": (lambda: ops.embedding(tensor(2, name="I"), X), "I has dtype float32; indices are integers"),
    "one_hot dtype": (lambda: ops.one_hot(tensor(2, name="I"), 3), "one_hot: I has dtype float32; indices are integers"),
    "arange": (lambda: ops.arange("3"), "arange: stop is str '3'; give a number"),
    "batch_flatten": (lambda: ops.batch_flatten(tensor()), "X has no axes; the first one is the batch"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(te.JaxteError, match=message):
        call()


def test_a_typed_key_and_its_data_draw_the_same_mask() -> None:
    x, key = np.ones((4, 5), np.float32), jax.random.key(7)
    found = ops.dropout(x, 0.5, key)
    np.testing.assert_array_equal(found, ops.dropout(x, 0.5, jax.random.PRNGKey(7)))
    np.testing.assert_array_equal(found, jax.random.bernoulli(key, 0.5, x.shape) * 2.0)


def test_arange_of_floats() -> None:
    np.testing.assert_allclose(te.evaluate(ops.arange(0.5, 2, 0.4), {}), np.arange(0.5, 2, 0.4), rtol=1e-6)
    assert te.evaluate(ops.arange(3, dtype="float32"), {}).dtype == "float32"
