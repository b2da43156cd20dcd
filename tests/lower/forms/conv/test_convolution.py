"""Convolutions recognised from their indices: forward, both adjoints, and look-alikes that are none."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxte.derivatives.reverse import differentiate
from jaxte.lang import functions as f
from jaxte.lang.expr import TRUE, Call, Const, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.text import text
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.conv.spec import ConvolutionSpec
from jaxte.lower.forms.conv.write import convolution_source
from jaxte.meaning.interpret import interpret
from jaxte.tensors.compute import compute
from jaxte.tensors.inputs import Placeholder, placeholder, var
from jaxte.tensors.reductions import max as te_max
from jaxte.tensors.reductions import reduce_axis
from jaxte.tensors.reductions import sum as te_sum
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor
from tests.emitted import check, feeds, nodes, run, split_guard, sum_of, text_of
from tests.lowered import recognise_convolution


def recognised(tensor: Compute) -> ConvolutionSpec:
    node, guards = split_guard(tensor.body)
    spec = recognise_convolution(tensor.axes, node, guards)
    assert not isinstance(spec, Refusal), spec.reason
    return spec


def refused(tensor: Compute) -> str:
    assert isinstance(tensor.body, Reduce)
    spec = recognise_convolution(tensor.axes, tensor.body)
    assert isinstance(spec, Refusal)
    return spec.reason


def source_of(spec: ConvolutionSpec) -> str:
    return text_of(convolution_source(spec, nodes(spec)))


def verify(tensor: Compute, arrays: dict[Tensor, np.ndarray], tolerance: float = 1e-4) -> str:
    tensor = sum_of(tensor)
    spec = recognised(tensor)
    source = source_of(spec)
    check(tensor, source, spec, arrays, tolerance)
    return source


def x(*shape: int, name: str = "X", dtype: str = "float32") -> Placeholder:
    return placeholder(shape, dtype, name)


def conv(
    X: Placeholder,
    W: Placeholder,
    stride: int = 1,
    dilation: int = 1,
    padding: tuple[int, int] = (0, 0),
    groups: int = 1,
) -> Compute:
    """NC... with OI..., every spatial dimension alike."""
    extents, taps = X.shape[2:], W.shape[2:]
    c = reduce_axis((0, W.shape[1]), "c")
    ks = [reduce_axis((0, k), f"k{n}") for n, k in enumerate(taps)]
    lengths = [
        (e + sum(padding) - dilation * (k - 1) - 1) // stride + 1 for e, k in zip(extents, taps, strict=True)
    ]
    per_group = W.shape[0] // groups

    def body(n: Expr, o: Expr, *ts: Expr) -> Expr:
        at = [stride * t + dilation * k - padding[0] for t, k in zip(ts, ks, strict=True)]
        inside = TRUE
        for index, extent in zip(at, extents, strict=True):
            if any(padding):
                inside = inside & (index >= 0) & (index < extent)
        channel = c if groups == 1 else (o // per_group) * W.shape[1] + c
        return te_sum(X[(n, channel, *at)] * W[(o, c, *ks)], [c, *ks], where=inside)

    return compute((X.shape[0], W.shape[0], *lengths), body, "Y")


# --- what is emitted


def test_the_three_convolutions_of_a_layer_read_as_one_would_write_them(rng):
    X, W = x(2, 3, 11, 11), x(4, 3, 3, 3, name="W")
    Y = conv(X, W, stride=2, padding=(1, 1))
    H = x(*Y.shape, name="H")
    dX, dW = differentiate(Y, [X, W], H)
    assert verify(Y, feeds(rng, X, W)) == (
        "lax.conv_general_dilated(A, B, window_strides=(2, 2), padding=((1, 1), (1, 1)), "
        'dimension_numbers=("NCHW", "OIHW", "NCHW"))'
    )
    assert verify(dX, feeds(rng, H, W)) == (
        "lax.conv_general_dilated(A, B, window_strides=(1, 1), padding=((1, 1), (1, 1)), lhs_dilation=(2, 2), "
        'dimension_numbers=("NCHW", "IOHW", "NCHW"))'
    )
    assert text(recognised(dX).rhs.body).count("2 - ") == 2  # the kernel is read backwards
    assert verify(dW, feeds(rng, H, X)) == (
        "lax.conv_general_dilated(A, B, window_strides=(1, 1), padding=((1, 1), (1, 1)), rhs_dilation=(2, 2), "
        'dimension_numbers=("CNHW", "IOHW", "CNHW"))'
    )


def test_an_adjoint_in_solved_form(rng):
    """The adjoint as zero elimination writes it, by hand."""
    H, W = x(2, 4, 6, 6, name="H"), x(4, 3, 3, 3, name="W")
    o, z, w = reduce_axis((0, 4), "o"), reduce_axis((0, 2), "z"), reduce_axis((0, 2), "w")

    def body(n: Expr, c: Expr, a: Expr, b: Expr) -> Expr:
        y, v, k, m = (a + 1) // 2 - z, (b + 1) // 2 - w, (a + 1) % 2 + 2 * z, (b + 1) % 2 + 2 * w
        inside = (y < 6) & (y >= 0) & (v < 6) & (v >= 0) & (k < 3) & (m < 3)
        return te_sum(H[n, o, y, v] * W[o, c, k, m], [o, z, w], where=inside)

    source = verify(compute((2, 3, 11, 11), body), feeds(rng, H, W))
    assert "lhs_dilation=(2, 2)" in source and "padding=((1, 1), (1, 1))" in source


def test_a_congruence_is_a_dilation(rng):
    """Stride 2 and dilation 2 reach every other element; a guard says so, outside of the sum."""
    H, W = x(9, name="H"), x(3, name="W")
    z = reduce_axis((0, 3), "z")
    inside = lambda a: ((a + 1) % 2 == 0) & ((a + 1) // 2 - z >= 0) & ((a + 1) // 2 - z < 9)  # noqa: E731
    dX = compute((20,), lambda a: te_sum(H[(a + 1) // 2 - z] * W[z], z, where=inside(a)))
    assert "lhs_dilation=(2,), rhs_dilation=(2,)" in verify(dX, feeds(rng, H, W))


# --- a grid against jax's own gradients

GRID = [
    (s, d, p)
    for s, d, p in itertools.product((1, 2, 3, 4), (1, 2, 3), ((0, 0), (1, 1), (2, 0), (0, 3)))
    if (s + d + sum(p)) % 2 == 0
]


@pytest.mark.parametrize(("stride", "dilation", "padding"), GRID)
def test_strides_dilations_and_paddings(rng, stride: int, dilation: int, padding: tuple[int, int]):
    X, W = x(2, 3, 13), x(4, 3, 3, name="W")
    Y = conv(X, W, stride, dilation, padding)
    H = x(*Y.shape, name="H")
    arrays = feeds(rng, X, W, H)
    dX, dW = differentiate(Y, [X, W], H)

    def reference(a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(a, b, (stride,), [padding], rhs_dilation=(dilation,))

    value, pull = jax.vjp(reference, jnp.asarray(arrays[X]), jnp.asarray(arrays[W]))
    expected = [value, *pull(jnp.asarray(arrays[H]))]
    for tensor, wanted in zip((Y, dX, dW), expected, strict=True):
        inner = sum_of(tensor)
        if isinstance(inner.body, Call) and isinstance(inner.body.args[1], Read):
            # one tap at most for each element: partial sums over the channels, and a read of the one that counts
            assert tensor is dX and stride >= 3
            order = topological_order([tensor])
            needed = {t: a for t, a in arrays.items() if among(t, order)}
            np.testing.assert_allclose(interpret(tensor, needed), wanted, rtol=1e-4, atol=1e-4)
            continue
        node, guards = split_guard(inner.body)
        spec = recognise_convolution(inner.axes, node, guards)
        if isinstance(spec, Refusal):
            # one tap at most, at the quotient and the remainder: a contraction of digits
            assert tensor is dX and stride >= 3 and dilation == 1, spec.reason
            continue
        source = source_of(spec)
        assert source.count("conv_general_dilated") == 1 and "flip" not in source
        found = run(source, spec, arrays)
        if inner is not tensor:
            assert wanted.shape[2] > found.shape[2] > 0
            first = int(np.flatnonzero(np.any(np.asarray(wanted), axis=(0, 1)))[0]) % math.gcd(
                stride, dilation
            )
            wanted = wanted[:, :, first :: math.gcd(stride, dilation)]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
def test_any_number_of_dimensions(rng, dims: int):
    X, W = x(2, 2, *[5, 6, 4, 4][:dims]), x(3, 2, *[3, 2, 2, 1][:dims], name="W")
    Y = conv(X, W)
    H = x(*Y.shape, name="H")
    dX, dW = differentiate(Y, [X, W], H)
    arrays = feeds(rng, X, W, H)
    for tensor, needed in ((Y, (X, W)), (dX, (H, W)), (dW, (H, X))):
        assert "conv_general_dilated" in verify(tensor, {t: arrays[t] for t in needed})


@pytest.mark.parametrize(("groups", "per_group", "features"), [(2, 3, 4), (3, 1, 6), (6, 1, 6)])
def test_groups(rng, groups: int, per_group: int, features: int):
    X, W = x(2, groups * per_group, 9), x(features, per_group, 3, name="W")
    Y = conv(X, W, stride=2, padding=(1, 1), groups=groups)
    H = x(*Y.shape, name="H")
    arrays = feeds(rng, X, W, H)
    source = verify(Y, {X: arrays[X], W: arrays[W]})
    assert f"feature_group_count={groups}" in source and "A, B" in source
    for tensor, needed in zip(differentiate(Y, [X, W], H), ((H, W), (H, X)), strict=True):
        # with one channel to a group, each output feature may be a group of its own
        assert "feature_group_count=" in verify(tensor, {t: arrays[t] for t in needed})


def test_depthwise(rng):
    X, W = x(2, 5, 9), x(5, 3, name="W")
    k = reduce_axis((0, 3), "k")
    Y = compute((2, 5, 7), lambda n, c, t: te_sum(X[n, c, t + k] * W[c, k], k))
    assert "B.reshape(1, 5, 3)" in verify(Y, feeds(rng, X, W))


# --- names and orders make no difference


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
def test_axes_in_any_order(rng, order: tuple[int, ...]):
    shapes = {0: 2, 1: 3, 2: 8, 3: 9}
    X, W = x(*(shapes[n] for n in order)), x(2, 4, 3, 3, name="W")
    c, k, m = reduce_axis((0, 3), "c"), reduce_axis((0, 2), "k"), reduce_axis((0, 3), "m")

    def body(col: Expr, o: Expr, row: Expr, n: Expr) -> Expr:
        index = {0: n, 1: c, 2: row + k, 3: col + m}
        return te_sum(W[k, o, c, m] * X[tuple(index[i] for i in order)], [m, c, k])

    source = verify(compute((7, 4, 7, 2), body), feeds(rng, X, W))
    assert "transpose" not in source and "reshape" not in source


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
def test_steps_of_each_dimension_with_the_kernel_in_any_order(rng, order: tuple[int, ...]):
    shapes = {0: 4, 1: 3, 2: 2, 3: 3}
    X, W = x(2, 3, 9, 11), x(*(shapes[n] for n in order), name="W")
    c, k, m = reduce_axis((0, 3), "c"), reduce_axis((0, 2), "k"), reduce_axis((0, 3), "m")

    def body(n: Expr, o: Expr, row: Expr, col: Expr) -> Expr:
        index = {0: o, 1: c, 2: k, 3: m}
        return te_sum(X[n, c, 3 * row + k, col + 2 * m] * W[tuple(index[i] for i in order)], [c, k, m])

    assert "transpose" not in verify(compute((2, 4, 3, 7), body), feeds(rng, X, W))


def test_several_batch_and_feature_axes_are_merged(rng):
    X, W = x(2, 3, 2, 2, 9), x(2, 2, 2, 3, 2, name="W")
    c, d, k = reduce_axis((0, 2), "c"), reduce_axis((0, 2), "d"), reduce_axis((0, 3), "k")
    Y = compute(
        (2, 3, 2, 2, 7), lambda a, b, o, p, t: te_sum(X[a, b, c, d, t + k] * W[c, d, o, k, p], [c, d, k])
    )
    assert ".reshape(2, 3, 2, 2, 7)" in verify(Y, feeds(rng, X, W))
    mixed = compute(
        (2, 2, 3, 7, 2), lambda a, o, b, t, p: te_sum(X[a, b, c, d, t + k] * W[c, d, o, k, p], [c, d, k])
    )
    assert ".transpose(" in verify(mixed, feeds(rng, X, W))


def test_operands_are_functions_of_several_tensors(rng):
    X, M, H = x(2, 3, 9), x(2, 3, 9, name="M"), x(2, 4, 7, name="H")
    n, t = reduce_axis((0, 2), "n"), reduce_axis((0, 7), "t")
    relu = lambda c, i: f.select(M[n, c, i] > 0, X[n, c, i], 0)  # noqa: E731
    dW = compute((4, 3, 3), lambda o, c, k: te_sum(f.exp(H[n, o, t]) * relu(c, t + k), [n, t]))
    spec = recognised(dW)
    assert {text(o.body) for o in spec.operands} == {
        "select(M[n, c, k] > 0, X[n, c, k], 0)",
        "exp(H[n, o, t])",
    }
    verify(dW, feeds(rng, X, M, H))


def test_factors_of_the_output_leave_the_sum(rng):
    X, W, S = x(2, 3, 9), x(4, 3, 3, name="W"), x(4, name="S")
    c, k = reduce_axis((0, 3), "c"), reduce_axis((0, 3), "k")
    Y = compute((2, 4, 7), lambda n, o, t: te_sum(S[o] * X[n, c, t + k] * W[o, c, k], [c, k]))
    assert verify(Y, feeds(rng, X, W, S)).startswith("C * lax.conv")


def test_axes_of_one_operand_are_summed_first_and_missing_ones_broadcast(rng):
    X, W = x(2, 3, 9), x(4, 3, 3, name="W")
    c, o, k = reduce_axis((0, 3), "c"), reduce_axis((0, 4), "o"), reduce_axis((0, 3), "k")
    Y = compute((2, 5, 7), lambda n, extra, t: te_sum(X[n, c, t + k] * W[o, c, k], [c, o, k]))
    assert "jnp.broadcast_to" in verify(Y, feeds(rng, X, W))


def test_reversed_reads(rng):
    A, B = x(9, name="A"), x(9, name="B")
    j = reduce_axis((0, 9), "j")
    product = compute((17,), lambda i: te_sum(A[j] * B[i - j], j, where=(i >= j) & (i - j < 9)))
    assert "padding=((8, 8),)" in verify(product, feeds(rng, A, B))
    k = reduce_axis((0, 3), "k")
    verify(compute((7,), lambda i: te_sum(A[8 - i - k] * B[k], k)), feeds(rng, A, B))


def test_narrow_conditions_shorten_an_operand(rng):
    X, W = x(12), x(5, name="W")
    k = reduce_axis((0, 5), "k")
    Y = compute((8,), lambda t: te_sum(X[t + k] * W[k], k, where=(t + k >= 2) & (t + k < 11)))
    assert text(recognised(Y).lhs.body) == "X[t + 2]"
    verify(Y, feeds(rng, X, W))


def test_a_mask_on_data_belongs_to_its_operand(rng):
    X, M, W = x(3, 12), x(3, 12, name="M"), x(2, 3, 5, name="W")
    c, k = reduce_axis((0, 3), "c"), reduce_axis((0, 5), "k")
    Y = compute((2, 8), lambda o, t: te_sum(X[c, t + k] * W[o, c, k], [c, k], where=M[c, t + k] > 0))
    verify(Y, feeds(rng, X, M, W))


def test_symbolic_sizes():
    n = var("n")
    X, W = placeholder((2, 3, n), name="X"), x(4, 3, 3, name="W")
    c, k = reduce_axis((0, 3), "c"), reduce_axis((0, 3), "k")
    inside = lambda t: (t + k >= 1) & (t + k < n + 1)  # noqa: E731
    Y = compute((2, 4, n), lambda b, o, t: te_sum(X[b, c, t + k - 1] * W[o, c, k], [c, k], where=inside(t)))
    spec = recognise_convolution(Y.axes, Y.body)
    assert not isinstance(spec, Refusal) and spec.padding[0] == (Const(1), Const(1))


@pytest.mark.parametrize("dtype", ["float16", "int32", "complex64"])
def test_dtypes(rng, dtype: str):
    X, W = x(2, 3, 9, dtype=dtype), x(4, 3, 3, name="W", dtype=dtype)
    arrays = {t: (3 * rng.standard_normal(t.shape)).astype(dtype) for t in (X, W)}
    verify(conv(X, W, padding=(1, 1)), arrays, tolerance=0.05 if dtype == "float16" else 1e-4)


# --- look-alikes


def test_refusals_say_why():
    X, W, V, U = x(9), x(9, name="W"), x(9, 9, name="V"), x(9, 9, name="U")
    I = placeholder((9,), "int32", "I")  # noqa: E741
    j, k = reduce_axis((0, 9), "j"), reduce_axis((0, 3), "k")
    cases = {
        "no index that mixes": compute((9,), lambda i: te_sum(V[i, j] * X[j], j)),
        "no product of two": compute((7,), lambda i: te_sum(X[i + k], k)),
        "is no sum": compute((7,), lambda i: te_max(X[i + k] * W[k], k)),
        # a diagonal window: one reduced axis moves two indices
        "not those of one spatial dimension": compute((7, 7), lambda a, b: te_sum(V[a + k, b + k] * W[k], k)),
        "3 operands": compute((7,), lambda i: te_sum(X[i + k] * V[k, j] * U[j, i], [j, k])),
    }
    for reason, tensor in cases.items():
        assert reason in refused(tensor), (reason, refused(tensor))
    triangular = compute((7,), lambda i: te_sum(X[i + k] * W[k], k, where=k <= i))
    assert "are not the points" in refused(triangular)
    by_data = compute((7,), lambda i: te_sum(X[I[i] + k] * W[k], k))
    assert isinstance(recognise_convolution(by_data.axes, by_data.body), Refusal)


def test_holes_in_the_points_are_seen(rng):
    """One missing point makes it another sum."""
    X, W = x(9), x(3, name="W")
    k = reduce_axis((0, 3), "k")
    whole = compute((7,), lambda i: te_sum(X[i + k] * W[k], k))
    verify(whole, feeds(rng, X, W))
    pierced = compute((7,), lambda i: te_sum(X[i + k] * W[k], k, where=(i != 3) | (k != 1)))
    assert "are not the points" in refused(pierced)


def test_the_interpreter_agrees_with_lax(rng):
    """The grid above rests on ``conv`` meaning what lax means."""
    X, W = x(2, 4, 8, 7), x(6, 2, 3, 3, name="W")
    arrays = feeds(rng, X, W)
    expected = lax.conv_general_dilated(arrays[X], arrays[W], (2, 2), [(1, 2)] * 2, feature_group_count=2)
    found = interpret(conv(X, W, 2, 1, (1, 2), groups=2), arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
