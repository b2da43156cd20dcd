"""Sums over many shifts, as adjoints of filters have them: one loop, each expensive function once for each shift."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.expr import Axis, Reduce
from jaxte.lang.walk import postorder
from jaxte.lower.rewrites.merge_sums import with_shared_calls
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute, Tensor
from tests.lowered import arrays_for, check, program_of, run, text_of
from tests.xla_counts import Fused


def bilateral(shape: tuple[int, int], size: tuple[int, int], step: int = 1) -> tuple[Placeholder, Compute]:
    """A filter whose weights depend on how far the neighbours' values are from the first one's."""
    X = te.placeholder(shape, name="X")
    out = [(n - (s - 1) * step) for n, s in zip(shape, size, strict=True)]
    p, q, r, s = (te.reduce_axis((0, size[n % 2]), name) for n, name in enumerate("pqrs"))

    def weight(i: Any, j: Any, p: Any, q: Any) -> Any:
        far = te.cast(p * p + 3 * q, "float32") / 8
        return te.exp(-far - (X[i + step * p, j + step * q] - X[i, j]) ** 2)

    def body(i: Any, j: Any) -> Any:
        top = te.sum(weight(i, j, p, q) * X[i + step * p, j + step * q], axis=[p, q])
        return top / te.sum(weight(i, j, r, s), axis=[r, s])

    return X, te.compute(out, body, "Y")


def plain_bilateral(x: jax.Array, size: tuple[int, int], step: int = 1) -> jax.Array:
    rows, columns = (n - (s - 1) * step for n, s in zip(x.shape, size, strict=True))
    top, bottom = jnp.zeros((rows, columns)), jnp.zeros((rows, columns))
    for p in range(size[0]):
        for q in range(size[1]):
            tap = x[step * p : step * p + rows, step * q : step * q + columns]
            k = jnp.exp(-(p * p + 3 * q) / 8 - (tap - x[:rows, :columns]) ** 2)
            top, bottom = top + k * tap, bottom + k
    return top / bottom


def adjoint_of(X: Placeholder, Y: Compute) -> Tensor:
    H = te.placeholder(Y.shape, name="H")
    (dX,) = te.differentiate(Y, (X,), head=H)
    return dX


def compiled(tensor: Tensor) -> Any:
    namespace: dict[str, Any] = {}
    exec(text_of(tensor), namespace)
    return Fused(jax.jit(namespace["forward"]).lower(*arrays_for(program_of(tensor))))


@settings(max_examples=5, deadline=None)
@given(
    st.tuples(st.integers(11, 15), st.integers(11, 15)),
    st.tuples(st.integers(1, 4), st.integers(2, 4)),
    st.integers(1, 2),
)
def test_adjoints_of_filters(shape: tuple[int, int], size: tuple[int, int], step: int) -> None:
    X, Y = bilateral(shape, size, step)
    dX = adjoint_of(X, Y)
    program = program_of(dX)
    feeds = dict(zip([t.name for _, t in program.params], arrays_for(program), strict=True))
    _, pullback = jax.vjp(lambda x: plain_bilateral(x, size, step), feeds["X"])
    (found,), (wanted,) = run(program, [feeds[t.name] for _, t in program.params]), pullback(feeds["H"])
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)


def test_adjoints_of_filters_mean_what_is_interpreted() -> None:
    check(adjoint_of(*bilateral((5, 8), (2, 5))))


def test_each_shift_is_evaluated_once_in_each_direction() -> None:
    shape, size = (64, 64), (4, 4)
    X, Y = bilateral(shape, size)
    code = compiled(adjoint_of(X, Y))
    forwards = 3 * 16  # both sums of the filter, and the terms at the neighbours and at the first one
    assert code.as_text().count(" exponential(") <= forwards + 16
    assert (
        code.as_text().count(" pad(") <= 4
    )  # zeros around what is read, and around the terms at the first one
    assert code.memory_analysis().temp_size_in_bytes < 16 * 4 * 68 * 68


def test_many_shifts_are_chosen_by_masks() -> None:
    X, Y = bilateral((20, 20), (4, 4))
    lines = [line for line in text_of(adjoint_of(X, Y)).splitlines() if "pad(" in line]
    assert all("lax.optimization_barrier(jnp.pad(" in line for line in lines[:-1]), lines
    assert "jnp.where(" in text_of(adjoint_of(X, Y))


def test_few_shifts_are_padded() -> None:
    X, Y = bilateral((20, 20), (1, 3))
    assert "jnp.where(" not in text_of(adjoint_of(X, Y))


def sum_over_shifts(function: Any, count: int) -> Tensor:
    """The adjoint of ``sum over k of function(X[i + k], X[i])``."""
    X = te.placeholder((3 * count,), name="X")
    k = te.reduce_axis((0, count), "k")
    Y = te.compute((2 * count + 1,), lambda i: te.sum(function(X[i + k], X[i]), axis=k), "Y")
    return adjoint_of(X, Y)


def test_functions_that_are_infinite_at_zero_are_not_evaluated_out_of_range() -> None:
    dX = sum_over_shifts(lambda a, b: te.log(a) * te.exp(b) + b / a, 12)
    assert "jnp.where(" not in text_of(dX)
    program = program_of(dX)
    arrays = [np.abs(a) + 1 for a in arrays_for(program)]
    assert np.isfinite(run(program, arrays)[0]).all()


def test_masks_hold_back_what_is_infinite_in_the_data() -> None:
    dX = sum_over_shifts(lambda a, b: te.tanh(a - b) * a, 12)
    assert "jnp.where(" in text_of(dX)
    program = program_of(dX)
    arrays = arrays_for(program)
    x = next(a for (_, t), a in zip(program.params, arrays, strict=True) if t.name == "X")
    x[-1] = np.inf
    feeds = {t: a for (_, t), a in zip(program.params, arrays, strict=True)}
    expected = np.asarray(te.interpret(dX, feeds))
    np.testing.assert_allclose(run(program, arrays)[0], expected, rtol=1e-4, atol=1e-5)
    assert np.isfinite(expected[:12]).all()


# --- functions that several sums share


def sums_of(tensor: Compute) -> int:
    return sum(isinstance(node, Reduce) for node in postorder(with_shared_calls(tensor.body)))


A = te.placeholder((6, 8), name="A")
B = te.placeholder((8, 7), name="B")
C = te.placeholder((6, 8), name="C")
D = te.placeholder((8, 7), name="D")


def element(shape: tuple[int, ...], body: Any) -> Compute:
    """A tensor with its sums inside of it, as adjoints have them."""
    axes = [Axis(name, 0, extent) for name, extent in zip("ij", shape, strict=False)]
    return Compute("Y", axes, body(*axes))


def two_sums(first: Any, second: Any, shape: tuple[int, ...] = (6, 7)) -> Compute:
    k, m = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "m")
    return element(shape, lambda *i: te.sum(first(*i, k), k) - te.sum(second(*i, m), m))


SHARED = {
    "factor": two_sums(lambda i, j, k: te.exp(A[i, k]) * B[k, j], lambda i, j, k: D[k, j] * te.exp(A[i, k])),
    "alone": two_sums(lambda i, j, k: te.exp(A[i, k]) * B[k, j], lambda i, j, k: te.exp(A[i, k])),
    "several terms": two_sums(
        lambda i, k: te.exp(A[i, k]) * 2 * C[i, k] + -te.exp(A[i, k]) * 3,
        lambda i, k: te.exp(A[i, k]) - A[i, k] * te.exp(A[i, k]) * 5,
        (6,),
    ),
}
APART = {
    "nothing expensive": two_sums(lambda i, j, k: A[i, k] * B[k, j], lambda i, j, k: A[i, k] * D[k, j]),
    "other functions": two_sums(lambda i, k: te.exp(A[i, k]) * C[i, k], lambda i, k: te.exp(C[i, k]), (6,)),
    "a larger sum": two_sums(
        lambda i, j, k: te.exp(A[i, k]) * B[k, j], lambda i, j, k: te.exp(A[i, k]) * C[i, k]
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_sums_that_share_a_function_are_one(name: str) -> None:
    assert sums_of(SHARED[name]) == 1
    check(SHARED[name])
    assert text_of(SHARED[name]).count("jnp.exp(") == 1


@pytest.mark.parametrize("name", APART)
def test_other_sums_stay_apart(name: str) -> None:
    assert sums_of(APART[name]) == 2
    check(APART[name])


def test_the_adjoint_of_a_product_with_itself_is_one_product() -> None:
    X = te.placeholder((2, 9, 20), name="X")
    k = te.reduce_axis((0, 20), "k")
    gram = te.compute((2, 9, 9), lambda b, i, j: te.sum(X[b, i, k] * X[b, j, k], axis=k), "gram")
    (dX,) = te.differentiate(gram, [X], te.placeholder(gram.shape, name="H"))
    assert sums_of(dX) == 1 and text_of(dX).count("einsum") == 1
    check(dX)


@pytest.mark.parametrize("rows", [4, 40])
def test_products_with_one_matrix_are_one_where_adding_takes_less(rows: int) -> None:
    left = te.placeholder((rows, 8), name="left")
    k, m = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "m")
    Y = element(
        (rows, 7), lambda i, j: te.sum(left[i, k] * B[k, j], axis=k) - te.sum(D[m, j] * left[i, m], axis=m)
    )
    assert sums_of(Y) == (1 if rows > 8 else 2)
    check(Y)


def test_sums_behind_one_condition_are_joined() -> None:
    k, m = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "m")

    def body(i: Any) -> Any:
        first = te.select(i >= 2, te.sum(te.exp(A[i, k]) * C[i, k], k), 0.0)
        return first + te.select(i >= 2, -te.sum(te.exp(A[i, m]), m), 0.0)

    Y = element((6,), body)
    assert sums_of(Y) == 1
    check(Y)


def test_sums_under_different_conditions_are_not() -> None:
    k, m = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "m")

    def body(i: Any) -> Any:
        first = te.sum(te.exp(A[i, k]) * C[i, k], k, where=k <= i)
        return first + te.sum(te.exp(A[i, m]), m, where=m < i)

    Y = element((6,), body)
    assert sums_of(Y) == 2
    check(Y)


def test_a_choice_around_a_product_keeps_what_is_left_out_from_the_sum() -> None:
    W, x, k = (
        te.placeholder((64, 64), name="W"),
        te.placeholder((64,), name="x"),
        te.reduce_axis((0, 64), "k"),
    )
    Y = te.compute((64,), lambda i: te.sum(te.select(k <= i, W[i, k] * x[k], 0.0), axis=k), "Y")
    data = np.ones(64, "float32")
    data[62:] = np.nan, np.inf
    found = te.evaluate(Y, {W: np.ones((64, 64), "float32"), x: data})
    np.testing.assert_array_equal(found, [*range(1, 63), np.nan, np.nan])


def test_columns_take_what_of_a_condition_is_left() -> None:
    """Alternatives of positions, decided in each column: nothing is read in one that has no point, where it may be NaN."""
    t, x = te.placeholder((3, 3), name="t"), te.placeholder((5,), name="x")
    rows = te.placeholder((3,), "int32", "rows")
    i, j = te.reduce_axis((0, 3), "i"), te.reduce_axis((0, 3), "j")
    where = ((j == 2) & (i == 0)) | ((j == 0) & (i == 2))
    y = te.compute((), lambda: te.sum(t[i, j] * x[rows[j]], axis=(i, j), where=where), "y")
    text = te.source(y)
    assert "y = x_1 * t[2, 0] + x_2 * t[0, 2]" in text
    values = np.arange(9, dtype="float32").reshape(3, 3), np.arange(5, dtype="float32")
    arrays = {t: values[0], x: values[1], rows: np.array([1, -7, 3], "int32")}
    (found,) = te.evaluate([y], arrays)
    assert found == 2 * 3 + 6 * 1
