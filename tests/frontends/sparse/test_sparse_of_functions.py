"""Sparse Jacobians and Hessians of JAX functions: elements and patterns beside the dense ones of JAX, and how they are found."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax import lax

import jaxte as te

N = 24


@jax.custom_jvp
def rounded(u: Any) -> Any:
    """Whole numbers, by way of integers, with the slope of the identity."""
    return u.astype("int32").astype(u.dtype) + jax.lax.stop_gradient(u - u)


@rounded.defjvp
def _straight_through(primals: Any, tangents: Any) -> Any:
    return rounded(*primals), tangents[0]


@jax.custom_vjp
def clipped(u: Any) -> Any:
    return jnp.sin(u)


clipped.defvjp(lambda u: (jnp.sin(u), u), lambda u, head: (jnp.clip(head * jnp.cos(u), -1, 1),))


def solved(u: Any) -> Any:
    """Systems of one matrix that is known, written inside of the function."""
    A = 3 * jnp.eye(4) + 0.1
    return jax.vmap(lambda b: jnp.linalg.solve(A, b) * b)(u.reshape(6, 4))


def own_systems(u: Any) -> Any:
    """Systems each of which has its own matrix and its own right-hand side."""
    return jax.vmap(lambda b: jnp.linalg.solve(jnp.diag(b) + 0.1, b[::-1]))(u.reshape(6, 4))


def heat(u: Any) -> Any:
    return u + 0.1 * (jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u)


def steps(u: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, v: heat(v) * v, u)


def sorted_steps(u: Any) -> Any:
    return jnp.cumsum(jnp.sin(u.reshape(4, -1)), axis=1)[:, ::2]


def laplacian(u: Any) -> Any:
    p = jnp.pad(u.reshape(4, 6), 1)
    return (
        p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * p[1:-1, 1:-1] + jnp.exp(p[1:-1, 1:-1])
    )


def scattered(u: Any) -> Any:
    return (
        jnp.zeros(8).at[jnp.array([1, 2, 2, 7])].add(u[:4] ** 2)
        + lax.cumlogsumexp(u[:8].reshape(2, 4), axis=1).ravel()
    )


def bundle(u: Any) -> Any:
    cameras, points = u[:12].reshape(4, 3), u[12:].reshape(4, 3)
    camera, point = np.array([0, 1, 2, 3, 0]), np.array([1, 0, 3, 2, 2])
    d = points[point] - cameras[camera]
    return d[:, :2] / (3 + d[:, 2:] ** 2)


def chosen(u: Any) -> Any:
    return lax.cond(True, lambda v: v[::2] ** 2, lambda v: v[1::2], u)


def blocks(u: Any) -> Any:
    return jax.vmap(lambda row: jnp.linalg.inv(row.reshape(2, 2) + 4 * jnp.eye(2)).ravel())(u.reshape(6, 4))


def filtered(u: Any) -> Any:
    return lax.scan(lambda h, row: (0.5 * row[0] * h[0:1], h[0] + row[1]), jnp.ones(1), u.reshape(-1, 2))[1]


# with how the elements are found
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "stencil": (heat, "definition"),
    "two dimensions": (laplacian, "definition"),
    "spline differences": (lambda u: jnp.diff(u, 2) ** 2, "definition"),
    "slices": (lambda u: u[1:] * u[:-1] + u[0], "definition"),
    "steps in a loop": (steps, "10 vectors forward"),
    "running sums": (sorted_steps, "definition"),
    "scattered": (scattered, "5 vectors forward"),
    "bundle adjustment": (bundle, " vectors forward"),
    "a choice": (chosen, "2 vectors forward"),
    "a filter": (filtered, ""),
    "inverses": (blocks, ""),
    "sorted": (lambda u: jnp.sort(u.reshape(4, 6), axis=1), ""),
    "systems": (solved, "4 vectors forward"),
    "matrices and right-hand sides": (own_systems, ""),
    "softmaxes": (lambda u: jax.nn.softmax(u.reshape(6, 4)), ""),
    "spectra": (lambda u: jnp.abs(jnp.fft.rfft(u.reshape(6, 4))) ** 2, ""),
    "a reverse pass of its own": (lambda u: jnp.sort(clipped(u).reshape(6, 4)), "4 vectors back"),
    "straight through integers": (lambda u: jnp.sort(rounded(u).reshape(6, 4)) + rounded(u)[:4], ""),
    "one element": (lambda u: u[3] ** 2, "definition"),
    "everything": (lambda u: jnp.sum(u**2), ""),
    "nothing": (lambda u: jnp.ones(3) + 0 * jnp.floor(u[:3]), ""),
}
SECOND: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rosenbrock": (lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), "definition"),
    "a chain": (lambda x: jnp.sum(jnp.cos(x[1:] - x[:-1])), "definition"),
    "reprojection": (lambda x: jnp.sum(bundle(x) ** 2), ""),
    "state space": (lambda x: jnp.sum(filtered(x) ** 2) + jnp.sum(x**4), ""),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elements_are_those_of_the_dense_jacobian(name: str, rng: np.random.Generator) -> None:
    f, way = FUNCTIONS[name]
    x = jnp.asarray(rng.uniform(0.5, 1.5, N).astype("float32"))
    sparse = te.jacobian(f, sparse=True)
    expected = (jax.jacrev if name == "a reverse pass of its own" else jax.jacobian)(f)(x)
    found = sparse(x)
    np.testing.assert_allclose(found.todense(), expected, rtol=1e-4, atol=1e-5)
    assert found.shape == expected.shape and found.indices_sorted and found.unique_indices
    assert way in sparse.way(x)


@pytest.mark.parametrize("name", SECOND)
def test_hessians(name: str, rng: np.random.Generator) -> None:
    f, way = SECOND[name]
    x = jnp.asarray(rng.uniform(0.5, 1.5, N).astype("float32"))
    sparse = te.hessian(f, sparse=True)
    expected = jax.hessian(f)(x)
    np.testing.assert_allclose(sparse(x).todense(), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(jax.jit(sparse)(x).todense(), expected, rtol=1e-3, atol=1e-3)
    assert way in sparse.way(x)


def test_patterns_have_what_is_read_and_no_more() -> None:
    x = jnp.ones(N)
    assert te.jacobian(heat, sparse=True)(x).nse == 3 * N
    assert te.jacobian(steps, sparse=True)(x).nse == 7 * N
    assert te.hessian(SECOND["rosenbrock"][0], sparse=True)(x).nse == 3 * N - 2
    assert te.jacobian(FUNCTIONS["sorted"][0], sparse=True)(x).nse == 6 * N
    assert te.jacobian(bundle, sparse=True)(x).nse == 5 * 2 * 4
    for name in ("systems", "softmaxes"):  # a block for each row
        assert te.jacobian(FUNCTIONS[name][0], sparse=True)(x).nse == 6 * 4 * 4, name
    assert te.jacobian(FUNCTIONS["spectra"][0], sparse=True)(x).nse == 6 * 3 * 4


def test_diagonals_and_the_main_one(rng: np.random.Generator) -> None:
    x = jnp.asarray(rng.uniform(0.5, 1.5, N).astype("float32"))
    expected = np.asarray(jax.jacobian(steps)(x))
    found = te.jacobian(steps, sparse="diagonals")(x)
    assert sorted(found) == sorted(k for k in range(-N + 1, N) if np.any(np.diagonal(expected, k)))
    for offset, values in found.items():
        own = np.array([expected[i, i + offset] if 0 <= i + offset < N else 0 for i in range(N)])
        np.testing.assert_allclose(values, own, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(te.diagonal(steps)(x), np.diagonal(expected), rtol=1e-4)


def tridiagonal(u: Any) -> Any:
    """As many elements as there are, each of it and of its neighbours, one of which is two places away."""
    p = jnp.pad(u, (1, 2))
    return 4 * u + jnp.sin(p[:-3]) - 0.5 * p[3:] * u


@pytest.mark.parametrize("f", [steps, tridiagonal, solved, lambda u: jnp.diff(u, 2), lambda u: u[::3] * u[1]])
def test_rows_and_bands(f: Callable[[Any], Any], rng: np.random.Generator) -> None:
    x = jnp.asarray(rng.uniform(0.5, 1.5, N).astype("float32"))
    expected = np.asarray(jax.jacobian(f)(x)).reshape(-1, N)
    rows = te.jacobian(f, sparse="bcsr")(x)
    assert (rows.shape, rows.nse) == (expected.shape, te.jacobian(f, sparse=True)(x).nse)
    np.testing.assert_allclose(rows.todense(), expected, rtol=1e-4, atol=1e-6)
    v = rng.normal(size=N).astype("float32")
    np.testing.assert_allclose(rows @ v, expected @ v, rtol=1e-4, atol=1e-5)
    for found in (te.jacobian(f, sparse="banded")(x), jax.jit(te.jacobian(f, sparse="banded"))(x)):
        assert found.elements.shape == (found.lower + found.upper + 1, N)
        np.testing.assert_allclose(found.todense(), expected, rtol=1e-4, atol=1e-6)


def test_bands_are_those_that_lapack_solves_with(rng: np.random.Generator) -> None:
    x, b = (jnp.asarray(rng.uniform(0.5, 1.5, N).astype("float32")) for _ in range(2))
    found = te.jacobian(tridiagonal, sparse="banded")(x)
    assert (found.lower, found.upper, found.shape) == (1, 2, (N, N))
    solution = scipy.linalg.solve_banded((found.lower, found.upper), found.elements, b)
    np.testing.assert_allclose(solution, np.linalg.solve(jax.jacobian(tridiagonal)(x), b), rtol=1e-4)
    second = te.hessian(lambda u: jnp.sum((u[1:] - u[:-1] ** 2) ** 2), sparse="banded")(x)
    assert (second.lower, second.upper) == (1, 1)


def test_other_arguments_and_what_is_closed_over() -> None:
    w, x = jnp.arange(1.0, 5.0), jnp.arange(4.0)
    f = lambda a, x, scale=1.0: scale * a * jnp.roll(x, 1) * w  # noqa: E731
    found = te.jacobian(f, 1, sparse=True)
    np.testing.assert_allclose(found(w, x, scale=2.0).todense(), jax.jacobian(f, 1)(w, x, scale=2.0))
    np.testing.assert_allclose(found(2 * w, x).todense(), jax.jacobian(f, 1)(2 * w, x))


def test_a_dense_one_is_that_of_jax() -> None:
    x = jnp.arange(4.0)
    np.testing.assert_allclose(te.jacobian(heat)(x), jax.jacobian(heat)(x))


def test_errors_say_what_where_and_the_remedy() -> None:
    x = jnp.ones(4)
    with pytest.raises(
        te.ArgumentError, match=r'sparse=3; give True or "bcoo", "bcsr", "banded" or "diagonals"'
    ):
        te.jacobian(heat, sparse=3)
    with pytest.raises(te.ArgumentError, match="is of a scalar"):
        te.hessian(heat, sparse=True)(x)
    with pytest.raises(te.ArgumentError, match=r"to one argument, and argnums is \(0, 1\); ask for each"):
        te.jacobian(lambda x, y: x * y, sparse=True, argnums=(0, 1))  # type: ignore[call-overload]
    with pytest.raises(te.ArgumentError, match="argument 1: it is called with 1"):
        te.jacobian(heat, 1, sparse=True)(x)
    with pytest.raises(te.ArgumentError, match="ravel a tree of arrays"):
        te.jacobian(lambda p: p["a"], sparse=True)({"a": x, "b": x})
    with pytest.raises(te.ArgumentError, match="one array of floats; <lambda> returns"):
        te.jacobian(lambda x: (x, x), sparse=True)(x)
    with pytest.raises(te.ArgumentError, match="as many elements as it takes"):
        te.diagonal(lambda x: x[:2])(x)


@pytest.mark.parametrize("size", (0, 3))
@pytest.mark.parametrize(
    "f", (lambda x: x[:0] ** 2, lambda x: jnp.sort(x), lambda x: jnp.ones(2) * jnp.sum(x**2))
)
def test_results_and_arguments_without_elements(f: Callable[[Any], Any], size: int) -> None:
    x = jnp.arange(1.0, 1.0 + size)
    expected = jax.jacobian(f)(x)
    np.testing.assert_allclose(te.jacobian(f, sparse=True)(x).todense(), expected)
    if expected.shape[0] == size:
        assert te.diagonal(f)(x).shape == x.shape
    hessian = te.hessian(lambda x: jnp.sum(f(x)), sparse=True)(x)
    np.testing.assert_allclose(hessian.todense(), jax.hessian(lambda x: jnp.sum(f(x)))(x))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("given", [jnp.asarray, np.asarray])
def test_elements_have_the_dtype_of_the_argument(dtype: str, given: Any, x64: None) -> None:
    """Those that are numbers alone, 0.1 among them, too; arrays of NumPy of any floats are arrays."""
    x = given(jnp.arange(4).astype(dtype))
    f = lambda scale, u: scale * (0.1 * u + 0.3 * jnp.roll(u, 1))  # noqa: E731
    for argument, scale in ((0.5, 0.5), (x, x)):
        dense = jax.jacobian(f, 1)(argument, jnp.asarray(x))
        found = te.jacobian(f, argnums=1, sparse=True)(scale, x)
        assert found.dtype == te.diagonal(f, 1)(scale, x).dtype == dense.dtype == dtype
        tolerance = float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(*(np.asarray(a, "float64") for a in (found.todense(), dense)), tolerance)
    mixed = lambda u: u**2 + jnp.roll(u, 1)  # noqa: E731
    assert te.jacobian(mixed, sparse=True)(x).dtype == te.diagonal(mixed)(x).dtype == dtype
    energy = lambda u: jnp.sum(0.1 * u * u)  # noqa: E731
    assert te.hessian(energy, sparse=True)(x).dtype == dtype
    np.testing.assert_array_equal(te.hessian(energy, sparse=True)(x).data, jnp.full(4, 0.2, dtype))
