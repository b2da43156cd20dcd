"""What zero elimination leaves: the printed adjoint, its cost, and the code emitted for it."""

from __future__ import annotations

import math
import re

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor

SCATTER = re.compile(r"\.at\[|scatter|segment_sum")
GATHER = re.compile(r"jnp\.take|\.at\[|\[jnp\.|gather")


def x(*shape: int, name: str = "X") -> Tensor:
    return te.placeholder(shape, name=name)


def adjoints(output: Tensor, *inputs: Tensor) -> list[Tensor]:
    head = te.placeholder(output.shape, output.dtype, "H")
    return list(te.differentiate(output, inputs or output.inputs, head))


def check(adjoint: Tensor, written: str, extra: int = 0) -> str:
    """The adjoint reads as ``written``, needs ``extra`` tensors besides, and is emitted without index arrays."""
    assert repr(adjoint) == written
    computed = [t for t in topological_order([adjoint]) if isinstance(t, te.Compute)]
    assert len(computed) == 1 + extra
    code = te.source(adjoint)
    assert not SCATTER.search(code)
    assert not GATHER.search(code)
    return code


def test_matmul_is_one_contraction_each() -> None:
    a, w, k = x(5, 4), x(6, 4, name="W"), te.reduce_axis((0, 4), "k")
    y = te.compute((5, 6), lambda i, j: te.sum(a[i, k] * w[j, k], axis=k), "Y")
    da, dw = adjoints(y, a, w)
    assert check(da, "dX[i, k] = sum(H[i, j] * W[j, k] for j in [0, 6))").count("einsum") == 1
    assert check(dw, "dW[j, k] = sum(H[i, j] * X[i, k] for i in [0, 5))").count("einsum") == 1
    assert te.cost([da]).iterations == 5 * 4 * 6


@pytest.mark.parametrize(
    ("shape", "body", "written"),
    [
        ((6, 6), lambda a: lambda i, j: a[i, j] + a[j, i], "dX[i, j] = H[i, j] + H[j, i]"),
        ((6,), lambda a: lambda i: a[i, i], "dX[i, i'] = select(i == i', H[i], 0.0)"),
        (
            (3, 2),
            lambda a: lambda i, j: a[i + 2, 3 * j],
            "dX[i, j] = select(2 <= i and i < 5 and j % 3 == 0, H[i - 2, j // 3], 0.0)",
        ),
        ((6, 6), lambda a: lambda i, j: a[j, i], "dX[j, i] = H[i, j]"),
        ((6, 6), lambda a: lambda i, j: a[5 - i, j], "dX[i, j] = H[5 - i, j]"),
        ((2, 6), lambda a: lambda i, j: a[i + 3, j], "dX[i, j] = select(3 <= i and i < 5, H[i - 3, j], 0.0)"),
        (
            (3, 12),
            lambda a: lambda i, j: a[2 * i + j // 6, j % 6],
            "dX[i, j] = H[i // 2, 6 * (i % 2) + j]",
        ),
        (
            (4, 9),
            lambda a: lambda i, j: a[(9 * i + j) // 6, (9 * i + j) % 6],
            "dX[i, i'] = H[(6 * i + i') // 9, (6 * i + i') % 9]",
        ),
        ((36,), lambda a: lambda i: a[i // 6, i % 6], "dX[i, i'] = H[6 * i + i']"),
        ((6, 12), lambda a: lambda i, j: a[i, j // 2], "dX[i, j] = sum(H[i, 2 * j + r] for r in [0, 2))"),
        ((6, 18), lambda a: lambda i, j: a[i, j % 6], "dX[i, j] = sum(H[i, 6 * q + j] for q in [0, 3))"),
        ((6, 6, 4), lambda a: lambda i, j, b: a[i, j], "dX[i, j] = sum(H[i, j, b] for b in [0, 4))"),
    ],
)
def test_reads_of_a_matrix(shape, body, written: str) -> None:
    a = x(6, 6)
    (da,) = adjoints(te.compute(shape, body(a), "Y"))
    check(da, written)


@pytest.mark.parametrize(
    ("shape", "body", "written"),
    [
        ((10,), lambda a: lambda i: a[9 - i], "dX[i] = H[9 - i]"),
        ((10,), lambda a: lambda i: a[i] * a[9 - i], "dX[i] = H[i] * X[9 - i] + H[9 - i] * X[9 - i]"),
        ((5, 2), lambda a: lambda i, j: a[2 * i + j], "dX[i] = H[i // 2, i % 2]"),
        ((3, 3), lambda a: lambda i, j: a[3 * i + j], "dX[i] = select(i <= 8, H[i // 3, i % 3], 0.0)"),
        ((12,), lambda a: lambda i: te.select((i > 0) & (i < 11), a[i - 1], 0.0), "dX[i] = H[i + 1]"),
        ((4,), lambda a: lambda i: a[3 * i], "dX[i] = select(i % 3 == 0, H[i // 3], 0.0)"),
    ],
)
def test_reads_of_a_vector(shape, body, written: str) -> None:
    a = x(10)
    (da,) = adjoints(te.compute(shape, body(a), "Y"))
    check(da, written)


def test_reshape_of_any_rank_is_a_reshape() -> None:
    a = x(2, 3, 4)

    def body(i, j):
        at = 6 * i + j
        return a[at // 12, (at // 4) % 3, at % 4]

    (da,) = adjoints(te.compute((4, 6), body, "Y"))
    code = te.source(da)
    assert code.count(".reshape(") == 1
    assert not GATHER.search(code)


def test_concatenate_split_and_stack_are_slices() -> None:
    a, b = x(3, name="A"), x(5, name="B")
    y = te.compute((8,), lambda i: te.select(i < 3, a[te.minimum(i, 2)], b[te.maximum(i - 3, 0)]), "Y")
    da, db = adjoints(y, a, b)
    check(da, "dA[i] = H[i]")
    check(db, "dB[i] = H[i + 3]")
    s = te.compute((2, 3), lambda n, i: te.select(n == 0, a[i], b[i]), "S")
    da, db = adjoints(s, a, b)
    check(da, "dA[i] = H[0, i]")
    check(db, "dB[i] = select(i < 3, H[1, i], 0.0)")


def _conv(rank: int, stride: int, dilation: int, pad: int, groups: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    data = x(2, 4, *[11] * rank)
    w = x(6, 4 // groups, *[3] * rank, name="W")
    y = (
        te.ops.conv2d(data, w, strides=stride, padding=pad, dilation=dilation, groups=groups)
        if rank == 2
        else None
    )
    if y is None:
        taps = [te.reduce_axis((0, 3), f"k{n}") for n in range(rank)]
        c = te.reduce_axis((0, 4 // groups), "c")
        extent = (11 + 2 * pad - 2 * dilation - 1) // stride + 1

        def body(n, o, *at):
            where = [stride * t + dilation * k - pad for t, k in zip(at, taps, strict=True)]
            inside = te.logical_and(*[(p >= 0) & (p < 11) for p in where], True)
            channel = (o // (6 // groups)) * (4 // groups) + c
            return te.sum(data[n, channel, *where] * w[o, c, *taps], [c, *taps], where=inside)

        y = te.compute((2, 6, *[extent] * rank), body, "Y")
    return y, data, w


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("pad", [0, 1])
def test_convolution_sums_over_the_taps_that_hit(rank: int, stride: int, dilation: int, pad: int) -> None:
    y, data, w = _conv(rank, stride, dilation, pad)
    dx, dw = adjoints(y, data, w)
    # A common divisor of stride and dilation leaves whole classes of elements without a tap; the others have more.
    common = math.gcd(stride, dilation)
    taps = -(-3 // (stride // common))
    summed = 2 * 4 * sum((i + pad) % common == 0 for i in range(11)) ** rank  # elements that have taps
    put = 2 * 4 * 11**rank if common > 1 else 0  # where the sums are put among zeros
    assert te.cost([dx]).iterations <= summed * 6 * taps**rank + put
    positions = 1
    for extent in y.shape[2:]:
        positions *= extent
    assert te.cost([dw]).iterations <= 6 * 4 * 3**rank * 2 * positions
    assert te.cost([dx, dw]).memory == summed + put + 6 * 4 * 3**rank


@pytest.mark.parametrize(
    ("stride", "kernel", "dilation"), [(2, 1, 1), (3, 1, 1), (2, 3, 2), (4, 2, 2), (3, 2, 3)]
)
def test_sums_at_multiples_are_put_there_by_one_pad(
    stride: int, kernel: int, dilation: int, rng: np.random.Generator
) -> None:
    """Where most elements have no tap: the sums of those that have some, and zeros between them."""
    data, w = x(2, 3, 13, 13), x(4, 3, kernel, kernel, name="W")
    y = te.ops.conv2d(data, w, strides=stride, dilation=dilation)
    dx, _ = adjoints(y, data, w)
    code = te.source(dx)
    assert (
        code.count("lax.pad(") == 1
        and "jnp.where" not in code
        and "repeat" not in code
        and "lhs_dilation" not in code
    )
    f = te.function([data, w], y)
    arrays = [rng.standard_normal(t.shape).astype("float32") for t in (data, w)]

    def reference(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(a, b, (stride,) * 2, "VALID", rhs_dilation=(dilation,) * 2)

    own, expected = (
        jax.grad(lambda a, g=g: jax.numpy.sum(g(a, arrays[1]) ** 2))(arrays[0]) for g in (f, reference)
    )
    np.testing.assert_allclose(own, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_adjoints_are_convolutions(stride: int, dilation: int, pad: int, groups: int) -> None:
    y, data, w = _conv(2, stride, dilation, pad, groups)
    for adjoint in adjoints(y, data, w):
        code = te.source(adjoint)
        assert code.count("lax.conv_general_dilated(") == 1
        assert not GATHER.search(code)


@pytest.mark.parametrize(
    ("stride", "dilation", "iterations", "memory"),
    [(1, 1, 6105, 437), (2, 1, 2273, 599), (3, 1, 1049, 599), (2, 2, 1625, 599)],
)
def test_cost_of_the_convolution_pair(stride: int, dilation: int, iterations: int, memory: int) -> None:
    data, w = x(1, 2, 10, 10), x(2, 2, 3, 3, name="W")
    cost = te.cost(adjoints(te.ops.conv2d(data, w, strides=stride, dilation=dilation), data, w))
    assert cost.iterations <= iterations
    assert cost.memory <= memory


def test_overlapping_average_pool_sums_over_its_windows() -> None:
    a, k = x(11), te.reduce_axis((0, 3), "k")
    (da,) = adjoints(te.compute((5,), lambda t: te.sum(a[2 * t + k], k) / 3, "Y"), a)
    assert te.cost([da]).iterations <= 11 * 2 + 5
    assert not GATHER.search(te.source(da))


def test_max_pool_compares_with_the_forward_result() -> None:
    a, k = x(11), te.reduce_axis((0, 3), "k")
    y = te.compute((5,), lambda t: te.max(a[2 * t + k], k), "Y")
    (da,) = adjoints(y)
    assert "X[i] < Y[" in repr(da) or "< Y[" in repr(da)
    assert "for t' in [0, 2)" in repr(da) or te.cost([da]).iterations <= 11 * 2 + 2 * 5 * 3 + 5 * 3
    assert not GATHER.search(te.source(da))


def test_prefix_sum_has_the_transposed_bounds() -> None:
    a, j = x(9), te.reduce_axis((0, 9), "j")
    (da,) = adjoints(te.compute((9,), lambda i: te.sum(a[j], j, where=j <= i), "Y"))
    assert repr(da) == "dX[j] = sum(H[i] for i in [0, 9) where j <= i)"
    assert "cumsum" in te.source(da)


def test_banded_sum_runs_over_the_band() -> None:
    a, j = x(50), te.reduce_axis((0, 50), "j")
    y = te.compute((50,), lambda i: te.sum(a[j] * i, j, where=(j <= i + 2) & (i <= j + 2)), "Y")
    (da,) = adjoints(y)
    assert te.cost([da]).iterations == 50 * 5


def test_minimum_in_an_index_splits_the_domain() -> None:
    a, j = x(10, 10), te.reduce_axis((0, 10), "j")
    y = te.compute((10, 5), lambda i, k: te.sum(a[te.minimum(j + k, 9), j] * a[i, k], j), "Y")
    (da,) = adjoints(y)
    assert not SCATTER.search(te.source(da))
    assert te.explain(da).scatters == []


def test_terms_of_a_trace_merge() -> None:
    a, i, k = x(4, 4, name="A"), te.reduce_axis((0, 4), "i"), te.reduce_axis((0, 4), "k")
    y = te.compute((), lambda: te.sum(a[i, k] * a[k, i], [i, k]), "Y")
    (da,) = adjoints(y)
    check(da, "dA[i, k] = 2.0 * (H[] * A[k, i])")


@pytest.mark.parametrize("log", [False, True])
def test_no_adjoint_for_the_running_maximum(log: bool) -> None:
    a, k = x(5, 8), te.reduce_axis((0, 8), "k")
    m = te.compute((5,), lambda i: te.max(a[i, k], k), "m")
    if log:
        z = te.compute((5, 8), lambda i, j: a[i, j] - m[i], "z")
        s = te.compute((5,), lambda i: te.sum(te.exp(z[i, k]), k), "s")
        y = te.compute((5, 8), lambda i, j: z[i, j] - te.log(s[i]), "y")
    else:
        e = te.compute((5, 8), lambda i, j: te.exp(a[i, j] - m[i]), "e")
        s = te.compute((5,), lambda i: te.sum(e[i, k], k), "s")
        y = te.compute((5, 8), lambda i, j: e[i, j] / s[i], "y")
    result = te.differentiate(y, [a], te.placeholder((5, 8), name="H"))
    assert repr(result.adjoints[m]) == "dm[i] = 0.0"
    needed = topological_order([result[0]])
    assert not any(t.name.startswith(("dm", "ties", "winner")) for t in needed)
    if not log:  # the value of the exponential is read, not computed again
        assert "exp" not in repr(result[0])


@pytest.mark.parametrize("operator", ["softmax", "log_softmax"])
def test_operators_have_no_adjoint_for_the_maximum(operator: str) -> None:
    a = x(5, 8)
    (da,) = adjoints(getattr(te.ops, operator)(a), a)
    names = [t.name for t in topological_order([da])]
    assert not any(name.startswith(("ties", "winner", "dlargest")) for name in names)


def test_product_is_linear_work() -> None:
    n = 64
    a, k = x(3, n), te.reduce_axis((0, n), "k")
    (da,) = adjoints(te.compute((3,), lambda i: te.prod(a[i, k], k), "Y"))
    code = te.source(da)
    assert "lax.scan(" not in code and code.count("jnp.concatenate(") == 6
    assert te.cost([da]).iterations <= 4 * 3 * n
    assert not GATHER.search(code)


def test_gather_becomes_a_scatter_with_its_reason() -> None:
    a, index = x(5, 3), te.placeholder((7,), "int32", "I")
    (da,) = adjoints(te.compute((7, 3), lambda i, j: a[index[i], j], "Y"), a)
    (reason,) = te.explain(da).scatters
    assert "data" in str(reason)
    head = te.placeholder(da.shape, name="G")
    back = te.differentiate(da, [t for t in topological_order([da]) if t.name == "H"], head)[0]
    assert not SCATTER.search(te.source(back).replace(".at[I].get(", "").replace(".at[I, :].get(", ""))


def test_nothing_comes_of_an_empty_domain_or_an_unused_input() -> None:
    a, b = x(4), x(3, name="B")
    y = te.compute((4,), lambda i: a[i] + te.select(i > 7, a[3 - i], 0.0), "Y")
    da, db = adjoints(y, a, b)
    check(da, "dX[i] = H[i]")
    assert repr(db) == "dB[i0] = 0.0"
    assert db.shape == (3,)


def test_jacobians_hold_no_identity_matrix() -> None:
    a, w, k = x(5, 4), x(6, 4, name="W"), te.reduce_axis((0, 4), "k")
    y = te.compute((5, 6), lambda i, j: te.sum(a[i, k] * w[j, k], axis=k), "Y")
    (full,) = te.differentiate(y, [a])
    assert repr(full) == "dX[i', j', i, k] = select(i' == i, W[j', k], 0.0)"


@pytest.mark.parametrize("log", [False, True])
def test_no_adjoint_for_the_maximum_of_a_cross_entropy(log: bool) -> None:
    """The labels pick one element of each row: a sum of which one term counts."""
    a, labels, n = x(5, 8), te.placeholder((5,), "int32", "labels"), te.reduce_axis((0, 5), "n")
    p = te.ops.log_softmax(a) if log else te.ops.softmax(a)
    picked = p[n, labels[n]] if log else te.log(p[n, labels[n]])
    loss = te.compute((), lambda: -te.sum(picked, n) / 5, "loss")
    (da,) = te.differentiate(loss, [a])
    names = [t.name for t in topological_order([da])]
    assert not any(name.startswith(("ties", "winner", "dlargest")) for name in names)
    assert te.explain(da).scatters == []
