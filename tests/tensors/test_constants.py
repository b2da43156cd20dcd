"""Arrays of numbers in definitions, short ones as literals and long ones handed to the module."""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def filtered(taps: Any, x: Any) -> Any:
    g = te.constant(taps, "G")
    k = te.reduce_axis((0, g.shape[0]), "k")
    own = te.function(
        lambda X: te.compute((X.shape[0] - len(taps) + 1,), lambda i: te.sum(g[k] * X[i + k], k), "y")
    )
    return own, own(x)


@pytest.mark.parametrize("count", [1, 2, 5, 64, 65, 200])
@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "list", "jax"])
def test_taps(count: int, kind: str, rng: np.random.Generator) -> None:
    taps: Any = rng.integers(-5, 5, count) if kind == "int64" else rng.standard_normal(count)
    given = {"list": taps.tolist(), "jax": jnp.asarray(taps, "float32")}.get(kind)
    given = taps.astype(kind) if given is None else given
    x = rng.standard_normal(250).astype("float32")
    own, y = filtered(given, x)
    expected = np.correlate(x.astype("float64"), taps.astype("float64"), "valid")
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
    assert y.dtype == "float32"
    source = te.source(own, x)
    assert ("jnp.array([" in source) == (1 < count <= 64)
    assert ("G_fn" in source) == (count > 64)
    h = rng.standard_normal(len(y)).astype("float32")
    (dx,) = jax.vjp(own, x)[1](h)
    np.testing.assert_allclose(dx, np.convolve(h, taps, "full"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [3, 20])
def test_elementwise_and_under_transformations(size: int, rng: np.random.Generator) -> None:
    """Arrays and lists beside Tensors, on both sides."""
    a, b, x = (rng.standard_normal((3, size)).astype("float32") for _ in range(3))

    own = te.function(
        lambda X: te.sin(a * X + jnp.asarray(b)) * np.arange(float(size)) - [[1.0], [2.0], [3.0]]
    )
    reference = lambda x: jnp.sin(a * x + b) * jnp.arange(float(size)) - jnp.array([[1.0], [2.0], [3.0]])  # noqa: E731
    v = rng.standard_normal((3, size)).astype("float32")
    for transformed in (
        lambda f: f(x),
        lambda f: jax.jvp(f, (x,), (v,))[1],
        lambda f: jax.grad(lambda x: f(x).sum())(x),
        lambda f: jax.vmap(f)(np.stack([x, v])),
        lambda f: jax.vmap(jax.grad(lambda x: f(x).sum()))(np.stack([x, v])),
        lambda f: jax.hessian(lambda x: f(x).sum())(x),
        lambda f: jax.jit(f)(x),
    ):
        np.testing.assert_allclose(transformed(own), transformed(reference), rtol=1e-5, atol=1e-5)


def test_a_long_constant_is_not_saved() -> None:
    own, _ = filtered(np.hanning(100), np.ones(250, "float32"))
    assert "forward_with_residuals" not in te.source(own, np.ones(250, "float32"))


def test_interpretation_and_definitions() -> None:
    G = te.constant([[1, 2], [3, 4]], "G")
    X = te.placeholder((2, 2), name="X")
    y = te.compute((2, 2), lambda i, j: G[j, i] * X[i, j], "y")
    x = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(te.interpret(y, {X: x}), [[1, 6], [6, 16]])
    assert te.definitions(y).splitlines()[-1].startswith("y[i, j] = G[j, i] * X[i, j]")
    (dx,) = te.differentiate(y, [X])
    assert not any(name == "dG" for name in te.definitions(dx))


def test_integers_of_a_table_are_positions(rng: np.random.Generator) -> None:
    order = te.constant([2, 0, 1, 1], "order")
    x = rng.standard_normal(3).astype("float32")
    own = te.function(lambda X: te.compute((4,), lambda i: X[order[i]], "y"))
    np.testing.assert_array_equal(own(x), x[[2, 0, 1, 1]])
    np.testing.assert_allclose(jax.grad(lambda x: (own(x) * jnp.arange(4.0)).sum())(x), [1.0, 5.0, 0.0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "bfloat16", "float16", "float32", "bool"])
@pytest.mark.parametrize("beside", ["bool", "int8", "int64", "uint16", "float16", "float32", "float64"])
def test_arrays_promote_as_in_jax(dtype: str, beside: str) -> None:
    """Without 64-bit types, as jax.numpy does; an array is never made smaller than its numbers."""
    array = np.array([1, 0]).astype(beside)
    x = te.placeholder((2,), dtype, name="x")
    assert (x * array).dtype == (array * x).dtype == (jnp.ones(2, dtype) * array).dtype


@pytest.mark.parametrize(
    ("dtype", "numbers", "expected"),
    [
        ("int8", [1, 2], "int8"),
        ("float16", [1.5], "float16"),
        ("int8", [1.5], "float32"),
        ("float64", [1], "float64"),
    ],
)
def test_lists_promote_as_their_numbers(dtype: str, numbers: list[float], expected: str) -> None:
    assert (te.placeholder((len(numbers),), dtype, name="x") + numbers).dtype == expected


def test_beside_64_bits_nothing_is_narrowed() -> None:
    x = te.placeholder((1,), "float64", name="x")
    assert te.interpret(x + np.array([1e-12]), {x: np.ones(1)})[0] == 1 + 1e-12
    n = te.placeholder((1,), "int64", name="n")
    assert (n + np.array([2**40])).dtype == "int64"


@pytest.mark.parametrize("count", [3, 100])
@pytest.mark.parametrize("given", [list, np.asarray, jnp.asarray])
def test_64_bits_are_kept_where_jax_keeps_them(count: int, given: Any, rng: np.random.Generator) -> None:
    values, x = rng.random(count), rng.random(count)
    with jax.enable_x64(True):
        own = te.function(
            lambda X: te.compute((count,), lambda i: te.constant(given(values), "G")[i] * X[i], "y")
        )
        np.testing.assert_array_equal(own(x), values * x)
        np.testing.assert_array_equal(jax.grad(lambda x: own(x).sum())(x), values)
        assert te.constant(given(values)).dtype == "float64"
        assert te.constant(given([1, 2])).dtype == "int64"
    assert te.constant(values).dtype == "float32"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: te.constant(np.array([1, 2**40]), "G"),
            'G: the element 1099511627776 .* int32; .* dtype="int64"',
        ),
        (
            lambda: te.constant([300], "G", dtype="int8"),
            'the element 300 is beyond the numbers of int8; .* dtype="int64"',
        ),
        (lambda: te.constant([-1], dtype="uint8"), "the element -1 is beyond the numbers of uint8"),
        (
            lambda: te.constant([float("nan")], dtype="int32"),
            "the element nan is beyond the numbers of int32; .* dtype=.float32.*finite numbers",
        ),
        (lambda: te.constant(np.array([1e300]), "G"), 'the element 1e\\+300 .* float32; .* dtype="float64"'),
        (
            lambda: te.placeholder((1,), "int8", name="x") * [1000],
            "the element 1000 is beyond the numbers of int8",
        ),
    ],
)
def test_numbers_that_a_dtype_does_not_hold(make: Any, message: str) -> None:
    with pytest.raises(te.DtypeError, match=message):
        make()


def test_infinities_are_kept() -> None:
    assert te.constant([float("inf"), -1.0]).dtype == "float32"


def test_integers_beyond_32_bits() -> None:
    """Beside floats they are these numbers, in indices they are exact, beside integers of 64 bits they fit; elsewhere they were cut in silence."""
    x = np.arange(4, dtype="float32")
    X, I = te.placeholder((4,), name="X"), te.placeholder((4,), "int32", name="I")  # noqa: E741
    k = te.reduce_axis((0, 4), "k")
    big = 2**40
    for body, expected in (
        (lambda i: big * X[i], big * x),
        (lambda i: te.select(X[i] > 1, X[i], -big), np.where(x > 1, x, -float(big))),
        (lambda i: te.sum(te.maximum(X[k], big), axis=k), np.full(4, 4.0 * big)),
        (lambda i: te.select(i < big, X[i * big // big], 0.0), x),
    ):
        made = te.compute((4,), body)
        for found in (te.evaluate(made, {X: x}), te.interpret(made, {X: x})):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(te.define("Y[i] = 4294967296 * X[i]")(x), 2.0**32 * x)
    for wrong in (
        lambda i: big * i + X[i],
        lambda i: I[i] + big,
        lambda i: te.sum(big, axis=k),
        lambda i: big,
        lambda i: 10**400 * X[i],
    ):
        with pytest.raises(
            te.DtypeError, match=r"the body of T has the integer 10.*, which does not fit into 32 bits"
        ):
            te.compute((4,), wrong)
    rows = np.int32([-(2**31), 0, 7, 2**31 - 1])
    for number in (big, -big, 2**31):  # of no int32: each comparison is that of the numbers
        for compare in (operator.lt, operator.ge, te.equal, te.not_equal):
            ours = te.function(lambda x, c=compare, n=number: te.compute(lambda i: (c(x[i], n), c(n, x[i]))))
            plain = {te.equal: operator.eq, te.not_equal: operator.ne}.get(compare, compare)
            wanted = [[plain(int(v), number) for v in rows], [plain(number, int(v)) for v in rows]]
            assert [found.tolist() for found in ours(rows)] == wanted
    wide = te.placeholder((4,), "int64", name="wide")
    assert te.compute((4,), lambda i: wide[i] + big).dtype == "int64"
    with pytest.raises(te.DtypeError, match="the body of Y has the integer 4294967296"):
        te.define("Y[i] = 4294967296 * i + X[i]")(x)
