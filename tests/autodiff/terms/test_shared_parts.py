"""Nonlinear functions of shifted reads: what several taps share is computed once, in counts and in values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.autodiff.terms.shared import Shared
from jaxte.lang.scalars.times import ALIKE, taking
from jaxte.tensors.structure import topological_order
from tests.agreement import QUICKEST


def smoothness(u: Callable[[int], Any]) -> Any:
    """A quotient of weights of three stencils, as WENO schemes have."""
    a, b, c, d = (u(n) for n in range(4))
    w0 = 1.0 / (0.1 + (a - 2.0 * b + c) ** 2) ** 2
    w1 = 2.0 / (0.1 + (b - 2.0 * c + d) ** 2) ** 2
    return (w0 * (a + 2.0 * b - c) + w1 * (b - 3.0 * c + d)) / (w0 + w1)


def diffusion(u: Callable[[int], Any]) -> Any:
    """A flux with a conductance of its own gradient (Perona and Malik)."""
    a, b, c = u(0), u(1), u(2)
    east, west = c - b, b - a
    return east / (1.0 + east * east * 4.0) ** 2 - west / (1.0 + west * west * 4.0) ** 2


def curvature(u: Callable[[int], Any]) -> Any:
    a, b, c = u(0), u(1), u(2)
    slope = 0.5 * (c - a)
    return (a - 2.0 * b + c) / (1.0 + slope * slope) ** 1.5


def softmax_of_neighbours(u: Callable[[int], Any]) -> Any:
    a, b, c, d = (u(n) for n in range(4))
    e = [te.exp(x) if isinstance(x, te.Expr) else jnp.exp(x) for x in (a, b, c, d)]
    return (e[0] * a + e[1] * b + e[2] * c + e[3] * d) / (e[0] + e[1] + e[2] + e[3])


CASES = {f.__name__: f for f in (smoothness, diffusion, curvature, softmax_of_neighbours)}
N = 40


def _definition(flux: Callable[..., Any]) -> tuple[te.Tensor, te.Tensor]:
    x = te.placeholder((3, N), name="x")
    return x, te.compute((3, N - 3), lambda b, i: flux(lambda n: x[b, i + n]), "f")


@pytest.mark.parametrize("name", CASES)
def test_counts(name: str) -> None:
    x, y = _definition(CASES[name])
    (dx,) = te.differentiate(y, [x], te.placeholder(y.shape, name="H"))
    assert any(isinstance(t, Shared) for t in topological_order([dx]))
    assert te.cost([dx]).multiplications <= 5 * te.cost([y]).multiplications


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, rng: np.random.Generator) -> None:
    x, y = _definition(CASES[name])
    array, h = (
        rng.standard_normal((3, N)).astype("float32"),
        rng.standard_normal((3, N - 3)).astype("float32"),
    )

    def reference(x: Any) -> Any:
        return CASES[name](lambda n: x[:, n : N - 3 + n])

    found, expected = (
        jax.jit(lambda h, a, f=f: jax.vjp(f, a)[1](h)[0])
        .lower(h, array)
        .compile(compiler_options=QUICKEST)(h, array)
        for f in (te.function([x], y), reference)
    )
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


def _numbers(tensor: te.Tensor) -> dict[te.Tensor, Any]:
    """Something for each input."""
    inputs = [t for t in topological_order([tensor]) if not t.inputs]
    return {t: np.linspace(0, 1, 3 * N, dtype="float32").reshape(3, N) for t in inputs}


def _inside(flux: Callable[..., Any]) -> tuple[te.Tensor, te.Tensor]:
    """The same in the interior, around which the array is as it was."""
    x = te.placeholder((3, N), name="x")
    inside = lambda b, i: flux(lambda n: x[b, i + n - 1])  # noqa: E731
    return x, te.compute(
        (3, N), lambda b, i: te.select((i >= 1) & (i < N - 2), inside(b, i), x[b, i] ** 3), "f"
    )


@pytest.mark.parametrize("name", ["smoothness", "curvature", "softmax_of_neighbours"])
def test_what_conditions_keep_inside_is_shared_under_them(name: str, rng: np.random.Generator) -> None:
    x, y = _inside(CASES[name])
    (dx,) = te.differentiate(y, [x], te.placeholder(y.shape, name="H"))
    shared = [t for t in topological_order([dx]) if isinstance(t, Shared)]
    assert any(" if " in te.formula(t) for t in shared)
    assert all(np.isfinite(te.interpret(t, _numbers(t))).all() for t in shared), "zero where it is excluded"
    array, h = (rng.standard_normal((3, N)).astype("float32") for _ in range(2))

    def reference(x: Any) -> Any:
        inside = CASES[name](lambda n: x[:, n : N - 3 + n])
        return jnp.concatenate([x[:, :1] ** 3, inside, x[:, N - 2 :] ** 3], axis=1)

    found, expected = (
        jax.jit(lambda h, a, f=f: jax.vjp(f, a)[1](h)[0])
        .lower(h, array)
        .compile(compiler_options=QUICKEST)(h, array)
        for f in (te.function([x], y), reference)
    )
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


def test_what_is_little_is_no_tensor() -> None:
    x = te.placeholder((N,), name="x")
    linear = te.compute((N - 2,), lambda i: x[i] - 2 * x[i + 1] + x[i + 2], "y")
    square = te.compute((N - 1,), lambda i: (x[i + 1] - x[i]) ** 2, "z")
    for y in (linear, square):
        (dx,) = te.differentiate(y, [x], te.placeholder(y.shape, name="H"))
        assert not any(isinstance(t, Shared) for t in topological_order([dx]))


def test_guarded_reads_stay_guarded() -> None:
    """A part that would read outside of the tensor where a choice excludes it is left where it is."""
    x = te.placeholder((N,), "float64", "x")

    def element(i: te.Expr) -> te.Expr:
        left, right = te.select(i > 0, x[i - 1], 0.0), te.select(i < N - 1, x[i + 1], 0.0)
        return te.exp(left * right * x[i]) / (1 + left * left + right * right)

    y = te.compute((N,), element, "y")
    (dx,) = te.differentiate(y, [x], te.placeholder(y.shape, "float64", "H"))
    feeds: dict[te.Tensor, Any] = {t: np.linspace(0, 1, N) for t in topological_order([dx]) if not t.inputs}
    h = 1e-6

    def value(array: Any) -> Any:
        return np.sum(np.linspace(0, 1, N) * te.interpret(y, {x: array}))

    own = te.interpret(dx, feeds)
    for n in (0, 5, N - 1):
        step = np.zeros(N)
        step[n] = h
        difference = (value(feeds[x] + step) - value(feeds[x] - step)) / (2 * h)
        np.testing.assert_allclose(own[n], difference, rtol=1e-5, atol=1e-7)


def angle(u: Callable[[int, int], Any]) -> Any:
    """The cosine of the angle at the middle one of three points."""
    a, b = [[u(n, c) - u(1, c) for c in range(3)] for n in (0, 2)]

    def dot(u: Any, v: Any) -> Any:
        return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]

    return dot(a, b) / (dot(a, a) * dot(b, b) + 0.1) ** 0.5


def spins(u: Callable[[int], Any]) -> Any:
    return te.cos(u(1) - u(0))


def p_laplace(u: Callable[[int], Any]) -> Any:
    return te.abs(u(1) - u(0)) ** 1.7


def log_orders(u: Callable[[int], Any]) -> Any:
    return te.lgamma(u(1) + u(0))


@pytest.mark.parametrize("element", [spins, p_laplace, log_orders])
def test_one_dear_function_is_worth_a_tensor_where_it_is_dear(element: Callable[..., Any]) -> None:
    def has_parts(length: int) -> bool:
        x = te.placeholder((length,), name="x")
        y = te.compute((length - 1,), lambda i: element(lambda n: x[i + n]), "y")
        (dx,) = te.differentiate(y, [x], te.placeholder(y.shape, name="H"))
        return any(isinstance(t, Shared) for t in topological_order([dx]))

    assert has_parts(4000)
    assert not has_parts(N)  # one more loop takes longer than so few functions
    with taking(ALIKE):
        assert not has_parts(4000)


def test_equal_parts_of_several_adjoints_are_one() -> None:
    """What flows back to three tensors has the same parts; two layers of them, as steps of a loop have, too."""
    points = [te.placeholder((N, 3), name=f"p{n}") for n in range(3)]
    y = te.compute((N,), lambda i: angle(lambda n, c: points[n][i, c]), "y")
    z = te.compute((N,), lambda i: angle(lambda n, c: points[n][i, c] * y[i]), "z")
    for output, most in ((y, 3), (z, 8)):
        adjoints = te.differentiate(output, points, te.placeholder((N,), name="H"))
        parts = [t for t in topological_order(list(adjoints)) if isinstance(t, Shared)]
        keys = {(str(t.body).replace(t.axes[0].name, "i"), tuple(t.inputs)) for t in parts}
        assert len(keys) == len(parts) <= most


def lengths(x: Any, t: Any) -> Any:
    """Of steps on a sphere."""
    h = te.sin((x[t + 1, 0] - x[t, 0]) / 2) ** 2 + te.sin((x[t + 1, 1] - x[t, 1]) / 2) ** 2
    return te.sqrt(h + 0.01) * te.exp(-h)


def bending(x: Any, t: Any) -> Any:
    a = x[t + 2, 0] - 2 * x[t + 1, 0] + x[t, 0]
    return a * a / (1 + a * a + (x[t + 1, 1] - x[t, 1]) ** 2) ** 1.5


def torsion(x: Any, t: Any) -> Any:
    return te.tanh(x[t, 0] * x[t + 1, 1] - x[t, 1] * x[t + 1, 0]) ** 2 / (1 + x[t, 0] ** 2)


@pytest.mark.parametrize("element", [lengths, bending, torsion])
def test_sums_of_taps_share_at_the_points_of_the_sum(
    element: Callable[..., Any], rng: np.random.Generator
) -> None:
    x, h = te.placeholder((N, 2), "float64", "x"), te.placeholder((), "float64", "h")
    t = te.reduce_axis((0, N - 2), "t")
    y = te.compute((), lambda: te.sum(element(x, t), axis=t), "y")
    (dx,) = te.differentiate(y, [x], h)
    parts = [s for s in topological_order([dx]) if isinstance(s, Shared)]
    assert parts and all(tuple(s.shape) == (N - 2,) for s in parts)
    array, step = rng.standard_normal((N, 2)), 1e-6
    own = te.interpret(dx, {x: array, h: np.float64(1.5)})
    for n, c in ((0, 0), (1, 1), (N - 2, 0), (N - 1, 1)):
        moved = np.zeros((N, 2))
        moved[n, c] = step
        up, down = (te.interpret(y, {x: array + s * moved}) for s in (1, -1))
        np.testing.assert_allclose(own[n, c], 1.5 * (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("element", [lengths, bending, torsion])
def test_an_axis_of_one_position_keeps_nothing_from_being_shared(element: Callable[..., Any]) -> None:
    """An energy of shape ``(1,)`` takes what one of shape ``()`` does."""
    x = te.placeholder((N, 2), name="x")
    taken = []
    for shape in ((), (1,), (1, 1)):
        t = te.reduce_axis((0, N - 2), "t")
        y = te.compute(shape, lambda *_, t=t: te.sum(element(x, t), axis=t), "y")
        (dx,) = te.differentiate(y, [x], te.placeholder(shape, name="h"))
        parts = [s for s in topological_order([dx]) if isinstance(s, Shared)]
        assert parts and all(tuple(s.shape) == (N - 2,) for s in parts)
        taken.append(te.cost([dx]).multiplications)
    assert taken[1:] == taken[:1] * 2


def test_sums_whose_points_pass_on_to_the_same_elements_share_nothing() -> None:
    """Of all pairs, what two of them have in common would be an array of all pairs."""
    x = te.placeholder((N,), name="x")
    j = te.reduce_axis((0, N), "j")
    y = te.compute((N,), lambda i: te.sum(te.exp(-((x[i] - x[j]) ** 2)) / (1 + x[i] * x[j]), axis=j), "y")
    (dx,) = te.differentiate(y, [x], te.placeholder((N,), name="H"))
    assert not any(isinstance(t, Shared) for t in topological_order([dx]))


def spline(x: Callable[[int], Any], t: Any) -> Any:
    """Catmull and Rom's spline through four points."""
    a, b, c, d = (x(n) for n in range(4))
    return 0.5 * (
        2.0 * b + (c - a) * t + (2.0 * a - 5.0 * b + 4.0 * c - d) * t**2 + (3.0 * b - a - 3.0 * c + d) * t**3
    )


def hermite(x: Callable[[int], Any], t: Any) -> Any:
    a, b, c = (x(n) for n in range(3))
    return (2.0 * t**3 - 3.0 * t**2 + 1.0) * a + (3.0 * t**2 - 2.0 * t**3) * b + (t**3 - t**2) * (c - a)


def damped(x: Callable[[int], Any], t: Any) -> Any:
    a, b, c = (x(n) for n in range(3))
    decay, rise = (te.exp(-t), te.tanh(t)) if isinstance(t, te.Expr) else (np.exp(-t), np.tanh(t))
    return a + (b - a) * decay * rise + (c - b) * decay * rise


@pytest.mark.parametrize("between", [spline, hermite, damped])
def test_what_known_weights_multiply_is_no_part(
    between: Callable[..., Any], rng: np.random.Generator
) -> None:
    """Powers of eight fractions are computed eight times: nothing over the points of the definition is held for them."""
    steps, m, n = 8, 5, 12
    fractions = (np.arange(steps) / steps).astype("float32")
    x, t = te.placeholder((m, n, 3), name="x"), te.constant(fractions, "t")
    shape = (m, (n - 3) * steps, 3)
    y = te.compute(shape, lambda b, i, c: between(lambda k: x[b, i // steps + k, c], t[i % steps]), "y")
    (dx,) = te.differentiate(y, [x], te.placeholder(shape, name="H"))
    assert not any(isinstance(own, Shared) for own in topological_order([dx]))

    def plain(x: Any) -> Any:
        return between(lambda k: x[:, k : n - 3 + k, None], fractions[:, None]).reshape(shape)

    array, h = (rng.standard_normal(own).astype("float32") for own in ((m, n, 3), shape))
    found, expected = (
        jax.jit(lambda h, a, f=f: jax.vjp(f, a)[1](h)[0]).lower(h, array).compile(compiler_options=QUICKEST)
        for f in (te.function([x], y), plain)
    )
    np.testing.assert_allclose(found(h, array), expected(h, array), rtol=2e-4, atol=2e-4)
