"""Adjoints of single definitions against finite differences, through the interpreter alone."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.autodiff.sums.blocks import jacobian
from jaxte.derivatives.reverse import differentiate
from jaxte.lang import functions as f
from jaxte.lang.graphs import among
from jaxte.meaning.interpret import interpret
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.inputs import Placeholder, placeholder
from jaxte.tensors.reductions import reduce_axis
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor
from tests.numeric import numeric_adjoint

CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def x(*shape: int, name: str = "X") -> Placeholder:
    return placeholder(shape, "float64", name)


@case
def contraction() -> Tensor:
    a, b, k = x(3, 4), x(5, 4, name="W"), reduce_axis((0, 4), "k")
    return compute((3, 5), lambda i, j: r.sum(a[i, k] * b[j, k], k))


@case
def symmetric() -> Tensor:
    a = x(4, 4)
    return compute((4, 4), lambda i, j: a[i, j] * 2 + a[j, i] * a[i, j])


@case
def diagonal() -> Tensor:
    a = x(5, 5)
    return compute((5,), lambda i: a[i, i] * a[i, 4 - i])


@case
def mirrored() -> Tensor:
    a = x(7)
    return compute((7,), lambda i: a[i] * a[6 - i])


@case
def strided_slice() -> Tensor:
    a = x(8, 10)
    return compute((4, 3), lambda i, j: a[i + 2, 3 * j])


@case
def reshape() -> Tensor:
    a = x(6, 4)
    return compute((3, 8), lambda i, j: a[(8 * i + j) // 4, (8 * i + j) % 4] * 3)


@case
def flatten_that_does_not_divide() -> Tensor:
    a = x(25)
    return compute((7, 4), lambda i, j: f.select(4 * i + j < 25, a[f.minimum(4 * i + j, 24)], 0.0))


@case
def upsampling() -> Tensor:
    a = x(5)
    return compute((9,), lambda i: a[i // 2] * a[i // 2])


@case
def tiling() -> Tensor:
    a = x(5)
    return compute((12,), lambda i: a[i % 5])


def _conv(stride: int, dilation: int, pad: int, size: int = 9, taps: int = 3) -> Tensor:
    a, w = x(2, size), x(3, 2, taps, name="W")
    c, k = reduce_axis((0, 2), "c"), reduce_axis((0, taps), "k")
    extent = (size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1

    def body(o, t):
        at = stride * t + dilation * k - pad
        return r.sum(a[c, at] * w[o, c, k], [c, k], where=(at >= 0) & (at < size))

    return compute((3, extent), body)


for _stride in (1, 2, 3, 4):
    for _dilation in (1, 2, 3):
        for _pad in (0, 1, 2):
            CASES[f"conv_{_stride}_{_dilation}_{_pad}"] = lambda a=_stride, b=_dilation, c=_pad: _conv(
                a, b, c
            )
CASES["conv_even_taps"] = lambda: _conv(2, 3, 1, 12, 4)
CASES["conv_5_taps"] = lambda: _conv(3, 2, 3, 12, 5)


@case
def max_pool_overlapping() -> Tensor:
    a, k = x(9), reduce_axis((0, 3), "k")
    return compute((4,), lambda t: r.max(a[2 * t + k], k))


@case
def max_pool_first() -> Tensor:
    a, k = x(8), reduce_axis((0, 3), "k")
    return compute((6,), lambda t: r.max(a[t + k], k, ties="first"))


@case
def average_pool() -> Tensor:
    a, k = x(9), reduce_axis((0, 3), "k")
    return compute((4,), lambda t: r.sum(a[2 * t + k] / 3, k))


@case
def prefix_sum() -> Tensor:
    a, j = x(6), reduce_axis((0, 6), "j")
    return compute((6,), lambda i: r.sum(a[j], j, where=j <= i))


@case
def dependent_range() -> Tensor:
    a = x(6)

    def body(i):
        j = reduce_axis((0, i + 1), "j")
        return r.sum(a[j] * a[i], j)

    return compute((6,), body)


@case
def banded() -> Tensor:
    a, b, d = x(7, 2), x(7, 2, name="K"), reduce_axis((0, 2), "d")
    return compute(
        (7, 5),
        lambda i, w: r.sum(
            a[i, d] * b[f.clip(i + w - 2, 0, 6), d], d, where=(i + w - 2 >= 0) & (i + w - 2 < 7)
        ),
    )


@case
def split_extrema() -> Tensor:
    a, b, j = x(6, 5), x(4, 6, name="B"), reduce_axis((0, 5), "j")
    return compute((4, 3), lambda i, k: r.sum(a[f.minimum(j + k, 5), j] * b[i, f.maximum(k, 1)], j))


@case
def trace_of_product() -> Tensor:
    a, i, k = x(4, 4), reduce_axis((0, 4), "i"), reduce_axis((0, 4), "k")
    return compute((), lambda: r.sum(a[i, k] * a[k, i], [i, k]))


@case
def product() -> Tensor:
    a, k = x(3, 4), reduce_axis((0, 4), "k")
    return compute((3,), lambda i: r.prod(a[i, k], k))


@case
def product_over_two_axes() -> Tensor:
    a, k, m = x(2, 3, 2), reduce_axis((0, 3), "k"), reduce_axis((0, 2), "m")
    return compute((2,), lambda i: r.prod(a[i, k, m], [k, m]))


@case
def max_of_product() -> Tensor:
    a, b, k = x(3, 4), x(4, name="b"), reduce_axis((0, 4), "k")
    return compute((3,), lambda i: r.max(a[i, k] * b[k], k))


@case
def prefix_product() -> Tensor:
    a, k = x(2, 5), reduce_axis((0, 5), "k")
    return compute((2, 5), lambda i, j: r.prod(a[i, k] + 1, k, where=k <= j))


@case
def suffix_product_with_offset() -> Tensor:
    a, k = x(2, 5), reduce_axis((1, 5), "k")
    return compute((7, 2), lambda j, i: r.prod(a[i, k], k, where=k > j - 2))


@case
def prefix_maximum() -> Tensor:
    a, k = x(6), reduce_axis((0, 6), "k")
    return compute((6,), lambda j: r.max(a[k] * a[k], k, where=k < j + 1))


@case
def prefix_of_tuples() -> Tensor:
    a, b, k = x(5), x(5, name="B"), reduce_axis((0, 5), "k")
    affine = te.comm_reducer(
        lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]),
        lambda s, t: (f.const(1.0, s), f.const(0.0, t)),
        name="affine",
    )
    u, v = compute((5,), lambda j: affine((a[k], b[k]), k, where=(k <= j) & (k != 2)))
    return compute((5,), lambda j: u[j] + v[j] * v[j])


@case
def custom_combiner() -> Tensor:
    a, k = x(3, 4), reduce_axis((0, 4), "k")
    log_sum = te.comm_reducer(lambda p, q: p + q + p * q, lambda t: f.const(0.0, t), name="circle")
    return compute((3,), lambda i: log_sum(a[i, k], k))


@case
def tuple_combiner() -> Tensor:
    a, b, k = x(3, 4), x(3, 4, name="B"), reduce_axis((0, 4), "k")
    times = te.comm_reducer(
        lambda p, q: (p[0] * q[0] - p[1] * q[1], p[0] * q[1] + p[1] * q[0]),
        lambda s, t: (f.const(1.0, s), f.const(0.0, t)),
        name="complex_product",
    )
    re, im = compute((3,), lambda i: times((a[i, k], b[i, k]), k))
    return compute((3,), lambda i: re[i] * im[i])


@case
def softmax() -> Tensor:
    a, k = x(3, 4), reduce_axis((0, 4), "k")
    m = compute((3,), lambda i: r.max(a[i, k], k), "m")
    e = compute((3, 4), lambda i, j: f.exp(a[i, j] - m[i]), "e")
    s = compute((3,), lambda i: r.sum(e[i, k], k), "s")
    return compute((3, 4), lambda i, j: e[i, j] / s[i], "y")


@case
def nested_reduction() -> Tensor:
    a, k, m = x(3, 4), reduce_axis((0, 4), "k"), reduce_axis((0, 4), "m")
    return compute((3,), lambda i: r.sum(a[i, k] * r.sum(a[i, m] * a[i, k], m), k) / 2)


@case
def gather() -> Tensor:
    a, index = x(5, 3), placeholder((7,), "int32", "I")
    return compute((7, 3), lambda i, j: a[index[i], j] * a[index[i], j])


@case
def axis_as_value() -> Tensor:
    a = x(5)
    return compute((5,), lambda i: a[i] ** 2 * f.cast(i, "float64") + i * a[i])


@case
def scalars() -> Tensor:
    a, b = x(), x(name="b")
    return compute((), lambda: f.sin(a[()]) * b[()] + a[()] / b[()])


@case
def unequal_steps() -> Tensor:
    a, j = x(40), reduce_axis((0, 4), "j")
    return compute((5,), lambda i: r.sum(a[6 * i + 4 * j] * a[3 * j + 2 * i], j))


@case
def mixed_division() -> Tensor:
    a, k = x(8), reduce_axis((0, 3), "k")
    return compute((7,), lambda i: r.sum(a[(2 * i + k) // 3] * a[(i + k) % 5], k))


def _feeds(output: Tensor, seed: int) -> dict[Tensor, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for tensor in topological_order([output]):
        if isinstance(tensor, Placeholder):
            if tensor.dtype == "int32":
                found[tensor] = rng.integers(-1, 6, tensor.shape).astype(np.int32)
            else:
                found[tensor] = rng.standard_normal(tensor.shape)
    return found


@pytest.mark.parametrize("name", CASES)
def test_against_finite_differences(name: str) -> None:
    output = CASES[name]()
    feeds = _feeds(output, seed=len(name))
    head = placeholder(output.shape, "float64", "H")
    cotangent = np.random.default_rng(0).standard_normal(output.shape)
    inputs = [t for t in feeds if t.dtype == "float64"]
    reads_out_of_range = name == "gather"
    for wrt, adjoint in zip(inputs, differentiate(output, inputs, head), strict=True):
        used = {t: v for t, v in {**feeds, head: cotangent}.items() if among(t, topological_order([adjoint]))}
        got = interpret(adjoint, used)
        if reads_out_of_range:
            expected = _gather_adjoint(feeds, wrt, cotangent)
        else:
            expected = numeric_adjoint(output, wrt, feeds, cotangent)
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6)


def _gather_adjoint(feeds, wrt, cotangent):
    """2 * x summed over the rows that are in range; the others are dropped."""
    index = next(v for t, v in feeds.items() if t.dtype == "int32")
    expected = np.zeros_like(feeds[wrt])
    for i, row in enumerate(index):
        if 0 <= row < expected.shape[0]:
            expected[row] += 2 * feeds[wrt][row] * cotangent[i]
    return expected


@pytest.mark.parametrize(
    "name", ["contraction", "strided_slice", "conv_2_1_1", "prefix_sum", "split_extrema"]
)
def test_jacobian_with_and_without_elimination(name: str) -> None:
    output = CASES[name]()
    feeds = _feeds(output, seed=1)
    for wrt in output.inputs:
        used = lambda t: {p: v for p, v in feeds.items() if among(p, topological_order([t]))}  # noqa: E731
        fast, slow = jacobian(output, wrt), jacobian(output, wrt, optimize=False)
        assert fast.shape == output.shape + wrt.shape
        np.testing.assert_allclose(interpret(fast, used(fast)), interpret(slow, used(slow)))


@pytest.mark.parametrize(
    "name", ["product", "prefix_product", "custom_combiner", "softmax", "max_of_product", "conv_2_1_1"]
)
def test_second_derivative_against_finite_differences(name: str) -> None:
    output = CASES[name]()
    head = placeholder(output.shape, "float64", "H")
    rng = np.random.default_rng(3)
    feeds = _feeds(output, seed=2) | {head: rng.standard_normal(output.shape)}
    (first,) = differentiate(output, [next(iter(feeds))], head)
    second_head = placeholder(first.shape, "float64", "HH")
    cotangent = rng.standard_normal(first.shape)
    inputs = [t for t in topological_order([first]) if isinstance(t, Placeholder) and t in feeds]
    feeds = {t: feeds[t] for t in inputs}
    for wrt, second in zip(inputs, differentiate(first, inputs, second_head), strict=True):
        every = {**feeds, second_head: cotangent}
        got = interpret(second, {t: v for t, v in every.items() if among(t, topological_order([second]))})
        expected = numeric_adjoint(first, wrt, feeds, cotangent)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
