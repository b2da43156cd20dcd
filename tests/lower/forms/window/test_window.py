"""Reductions over windows: pooling, box filters, bands, and what is unrolled instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from jaxte.derivatives.reverse import differentiate
from jaxte.lang import functions as f
from jaxte.lang.expr import Expr, Reduce
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.window.recognise import UnrollSpec, WindowSpec, recognise_window
from jaxte.lower.forms.window.write import (
    DOUBLING,
    PADDED_APART,
    REDUCE_WINDOW,
    SEPARABLE,
    SLICES,
    WINDOW_FUNCTIONS,
    is_padded_apart,
    window_source,
)
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.inputs import placeholder, var
from jaxte.tensors.reductions import reduce_axis
from jaxte.tensors.tensor import Compute, Tensor
from tests.emitted import NAMES, Steps, check, feeds, nodes, split_guard

X = placeholder((2, 12, 11), name="X")
V = placeholder((100,), name="V")


def verify(tensor: Compute, arrays: dict[Tensor, np.ndarray], form: str = SLICES) -> list[str]:
    assert isinstance(tensor.body, Reduce)
    spec = recognise_window(tensor.axes, tensor.body)
    assert isinstance(spec, WindowSpec), spec
    forms = (
        (SEPARABLE, DOUBLING, REDUCE_WINDOW)
        if spec.reducer.name in WINDOW_FUNCTIONS
        else (SEPARABLE, DOUBLING)
    )
    for other in (*forms, PADDED_APART) if is_padded_apart(spec) else forms:
        check(tensor, written(spec, NAMES, other), spec, arrays, 1e-4)
    source = written(spec, NAMES, form)
    check(tensor, source, spec, arrays, 1e-4)
    return source


def written(spec: WindowSpec, names: Sequence[str], form: str = SLICES, **sizes: Any) -> list[str]:
    steps = Steps(**sizes)
    window_source(spec, nodes(spec, names), "Y", steps, form)
    return steps.lines


def pool(reducer: Callable[..., Any], size: int, stride: int, pad: int = 0) -> Compute:
    k, m = reduce_axis((0, size), "k"), reduce_axis((0, size), "m")
    shape = (2, (12 + 2 * pad - size) // stride + 1, (11 + 2 * pad - size) // stride + 1)

    def body(n: Expr, y: Expr, x: Expr) -> Expr:
        row, column = stride * y + k - pad, stride * x + m - pad
        inside = (row >= 0) & (row < 12) & (column >= 0) & (column < 11) if pad else None
        return reducer(X[n, row, column], [k, m], where=inside)

    return compute(shape, body)


def test_a_pool_without_padding_is_slices(rng):
    assert verify(pool(r.max, 2, 2), feeds(rng, X)) == [
        "Y = jnp.maximum(jnp.maximum(jnp.maximum(A[:, :11:2, :9:2], A[:, :11:2, 1:10:2]), "
        "A[:, 1:12:2, :9:2]), A[:, 1:12:2, 1:10:2])"
    ]


def test_padding_is_the_identity(rng):
    assert verify(pool(r.max, 3, 2, 1), feeds(rng, X)) == [
        "Y = lax.optimization_barrier(jnp.pad(A, ((0, 0), (1, 0), (1, 1)), constant_values=-jnp.inf))",
        "Y = functools.reduce(jnp.maximum, [Y[:, i:i + 11:2, j:j + 11:2] for i in range(3) for j in range(3)])",
    ]


def test_one_dimension_after_the_other(rng):
    assert verify(pool(r.sum, 5, 1, 2), feeds(rng, X), SEPARABLE) == [
        "Y = lax.optimization_barrier(jnp.pad(A, ((0, 0), (2, 2), (0, 0))))",
        "Y = lax.optimization_barrier(sum(Y[:, i:i + 12] for i in range(5)))",
        "Y = lax.optimization_barrier(jnp.pad(Y, ((0, 0), (0, 0), (2, 2))))",
        "Y = sum(Y[:, :, i:i + 11] for i in range(5))",
    ]


@pytest.mark.parametrize("reducer", [r.sum, r.max, r.min, r.prod])
@pytest.mark.parametrize(
    ("size", "stride", "before"), [(2, 1, 1), (3, 1, 1), (3, 2, 1), (5, 1, 4), (7, 3, 3)]
)
def test_shifted_rows_are_padded_one_by_one(rng, reducer, size, stride, before):
    source = verify(pool(reducer, size, stride, before), feeds(rng, X), PADDED_APART)
    assert source[0] == "Y = _first(A)" and "lax.pad(Y" in source[1]
    assert not any("jnp.pad(A" in line for line in source)


def test_where_a_padded_copy_is_made(rng):
    """For many rows, and where nothing is padded after them: XLA would hold each of the shifted arrays."""
    k, m = reduce_axis((0, 3), "k"), reduce_axis((0, 3), "m")
    inside = lambda y: (y + k >= 1) & (y + k < 13)  # noqa: E731
    whole = compute((2, 12, 9), lambda n, y, x: r.sum(X[n, y + k - 1, x + m], [k, m], where=inside(y)))
    row = compute((100,), lambda i: r.sum(V[i + k - 1], k, where=(i + k >= 1) & (i + k < 101)))
    for tensor in (pool(r.sum, 9, 1, 3), whole, row):
        spec = recognise_window(tensor.axes, tensor.body)
        assert isinstance(spec, WindowSpec) and not is_padded_apart(spec)


def test_windows_of_powers_of_two_side_by_side(rng):
    k = reduce_axis((0, 7), "k")
    for reducer, last in (
        (r.sum, "Y_3[:90] + Y_2[4:94] + A[6:96]"),
        (r.max, "jnp.maximum(Y_3[:90], Y_3[3:93])"),
    ):
        Y = compute((90,), lambda i: reducer(V[i + k], k))  # noqa: B023
        source = verify(Y, feeds(rng, V), DOUBLING)
        assert [line.split(" = ")[0] for line in source] == ["Y_2", "Y_3", "Y"]
        assert source[-1] == f"Y = {last}"


@pytest.mark.parametrize("reducer", [r.sum, r.prod, r.min, r.max])
@pytest.mark.parametrize(
    ("size", "stride", "pad"), [(1, 1, 0), (3, 1, 1), (3, 3, 0), (4, 2, 1), (2, 3, 1), (7, 1, 3)]
)
def test_pools(rng, reducer: Callable[..., Any], size: int, stride: int, pad: int):
    verify(pool(reducer, size, stride, pad), feeds(rng, X))


@pytest.mark.parametrize("reducer", [r.sum, r.max, r.min, r.prod])
def test_many_taps_are_a_reduce_window(rng, reducer: Callable[..., Any]):
    w = reduce_axis((0, 40), "w")
    inside = lambda i: (2 * i + 2 * w >= 20) & (2 * i + 2 * w < 120)  # noqa: E731
    Y = compute((30,), lambda i: reducer(V[2 * i + 2 * w - 20], w, where=inside(i)))
    (line,) = verify(Y, feeds(rng, V), REDUCE_WINDOW)
    assert line.startswith("Y = lax.reduce_window(A, ") and "window_dimensions=(40,)" in line


def test_dilation_and_reversal(rng):
    k = reduce_axis((0, 3), "k")
    dilated = compute((8,), lambda y: r.sum(X[0, y + 2 * k, 1], k))
    assert verify(dilated, feeds(rng, X)) == ["Y = A[:8] + A[2:10] + A[4:12]"]
    verify(compute((8,), lambda y: r.sum(X[0, 11 - y - k, 1], k)), feeds(rng, X))
    verify(compute((4,), lambda y: r.sum(X[0, 11 - 2 * y - k, 1], k)), feeds(rng, X))


def test_bands_are_windows(rng):
    j = reduce_axis((0, 100), "j")
    band = compute((100,), lambda i: r.sum(V[j], j, where=(j <= i + 2) & (j >= i - 2)))
    assert verify(band, feeds(rng, V)) == [
        "Y = lax.optimization_barrier(jnp.pad(A, (2, 2)))",
        "Y = sum(Y[i:i + 100] for i in range(5))",
    ]
    prefix = compute((100,), lambda i: r.sum(V[j], j, where=j <= i))
    assert isinstance(recognise_window(prefix.axes, prefix.body), Refusal)


@pytest.mark.parametrize(
    ("size", "stride", "pad"), [(2, 2, 0), (3, 2, 0), (3, 2, 1), (3, 1, 1), (5, 2, 2), (3, 3, 0)]
)
def test_the_adjoint_of_an_average_pool(rng, size: int, stride: int, pad: int):
    Y = pool(r.sum, size, stride, pad)
    H = placeholder(Y.shape, name="H")
    (dX,) = differentiate(Y, [X], H)
    if not isinstance(dX.body, Reduce):
        assert size <= stride or split_guard(dX.body)
        return
    spec = recognise_window(dX.axes, dX.body)
    assert isinstance(spec, WindowSpec), spec
    assert all(d.spacing == stride for d in spec.dims)
    verify(dX, feeds(rng, H))


def test_other_reduced_axes_are_reduced_on_the_array(rng):
    k, c = reduce_axis((0, 3), "k"), reduce_axis((0, 11), "c")
    Y = compute((10, 2), lambda y, n: r.sum(f.exp(X[n, y + k, c]) * 2.0, [k, c]))
    spec = recognise_window(Y.axes, Y.body)
    assert isinstance(spec, WindowSpec) and isinstance(spec.array.body, Reduce)
    verify(Y, feeds(rng, X))


def test_factors_of_the_output_and_missing_axes(rng):
    S, k = placeholder((10,), name="S"), reduce_axis((0, 3), "k")
    Y = compute((2, 10, 3), lambda n, y, extra: r.sum(S[y] * X[n, y + k, 4], k))
    (line,) = verify(Y, feeds(rng, X, S))
    assert line.startswith("Y = B * jnp.broadcast_to(")


def test_masks_on_data(rng):
    M, k = placeholder((2, 12, 11), name="M"), reduce_axis((0, 3), "k")
    Y = compute((2, 10, 11), lambda n, y, x: r.max(X[n, y + k, x], k, where=M[n, y + k, x] > 0))
    verify(Y, feeds(rng, X, M))


def test_bodies_of_the_output_and_the_window_are_unrolled():
    M, k, z = placeholder((2, 6, 11), name="M"), reduce_axis((0, 2), "k"), reduce_axis((0, 2), "z")
    compared = lambda n, y, x: r.sum(f.select(X[n, 2 * y + k, x] == M[n, y, x], 1.0, 0.0), k)  # noqa: E731
    Y = compute((2, 6, 11), compared)
    spec = recognise_window(Y.axes, Y.body)
    assert isinstance(spec, UnrollSpec) and spec.axes == (k,) and spec.taps == ((0,), (1,))

    def gathered(n: Expr, a: Expr, x: Expr) -> Expr:
        at = a // 2 - z
        return r.sum(f.select(X[n, a, x] == M[n, at, x], M[n, at, x], 0.0), z, where=at >= 0)

    dX = compute((2, 12, 11), gathered)
    spec = recognise_window(dX.axes, dX.body)
    assert isinstance(spec, UnrollSpec) and [list(t.values()) for t in spec.tables()] == [[0], [1]]
    assert "more than 1" in recognise_window(dX.axes, dX.body, most_taps=1).reason


def test_several_values_are_unrolled():
    k = reduce_axis((0, 3), "k")
    Y = compute((2, 10), lambda n, y: r.argmax(X[n, y + k, 0], k))
    assert isinstance(recognise_window(Y.axes, Y.body), UnrollSpec)


def test_loops_do_not_hide_operands(rng):
    Y = pool(r.sum, 3, 1)
    spec = recognise_window(Y.axes, Y.body)
    assert isinstance(spec, WindowSpec)
    assert written(spec, ["i"]) == ["Y = sum(i[:, j:j + 10, k:k + 9] for j in range(3) for k in range(3))"]


def test_what_is_no_window():
    k, c = reduce_axis((0, 12), "k"), reduce_axis((0, 11), "c")
    for body in (lambda n: r.max(X[n, k, 3], k), lambda n: r.sum(X[n, k, c] * X[n, k, c], [k, c])):
        Y = compute((2,), body)
        assert isinstance(recognise_window(Y.axes, Y.body), Refusal)


def test_symbolic_sizes():
    n, k = var("n"), reduce_axis((0, 3), "k")
    W = placeholder((n + 2,), name="W")
    Y = compute((n,), lambda i: r.sum(W[i + k], k))
    spec = recognise_window(Y.axes, Y.body)
    assert isinstance(spec, WindowSpec)
    assert written(spec, ["A"], SLICES, n=n) == ["Y = A[:n] + A[1:n + 1] + A[2:n + 2]"]


def test_dtypes(rng):
    k = reduce_axis((0, 3), "k")
    for dtype in ("int32", "float16"):
        D = placeholder((12,), dtype, "D")
        arrays = {D: (5 * rng.standard_normal(12)).astype(dtype)}
        verify(compute((12,), lambda i: r.max(D[i + k - 1], k, where=(i + k >= 1) & (i + k < 13))), arrays)  # noqa: B023
