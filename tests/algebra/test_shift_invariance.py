"""Extrema on which nothing depends: they have no adjoint, and the gradient is that of plain JAX code, which differentiates through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.algebra import without_effect
from jaxte.tensors.structure import topological_order
from tests.agreement import compiled_run

N, M, C = 5, 7, 3
Build = Callable[..., te.Tensor]


def maxima(x: te.Tensor) -> te.Tensor:
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute((x.shape[0],), lambda i: te.max(x[i, j], axis=j), "m")


def totals(x: te.Tensor, name: str = "z") -> te.Tensor:
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute((x.shape[0],), lambda i: te.sum(x[i, j], axis=j), name)


def weights(x: te.Tensor, m: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i, j: te.exp(x[i, j] - m[i]), "e")


def attention(x: te.Tensor, v: te.Tensor) -> te.Tensor:
    """Divided at the end."""
    e, j = weights(x, maxima(x)), te.reduce_axis((0, M), "j")
    z = totals(e)
    return te.compute((N, C), lambda i, c: te.sum(e[i, j] * v[j, c], axis=j) / z[i], "y")


def warm(x: te.Tensor, v: te.Tensor) -> te.Tensor:
    """With a temperature for each row, and a mask behind the maximum."""
    m = maxima(x)
    e = te.compute(
        (N, M), lambda i, j: te.select(j != i, te.exp((x[i, j] - m[i]) / (v[i, 0] ** 2 + 1.0)), 0.0), "e"
    )
    z, j = totals(e), te.reduce_axis((0, M), "j")
    return te.compute((N,), lambda i: te.sum(e[i, j] * v[j, 1], axis=j) * (1.0 / z[i]), "y")


def logarithms(x: te.Tensor, v: te.Tensor) -> te.Tensor:
    """A loss by the logarithms of the weights."""
    m = maxima(x)
    e = weights(x, m)
    z = totals(e)
    p = te.compute((N, M), lambda i, j: x[i, j] - m[i] - te.log(z[i]), "p")
    i, j = te.reduce_axis((0, N), "i"), te.reduce_axis((0, M), "j")
    return te.compute((), lambda: -te.sum(p[i, j] * v[j, 0], axis=(i, j)), "y")


def sums_of_exponentials(x: te.Tensor, v: te.Tensor) -> te.Tensor:
    """Taken back, from a sum over everything."""
    i, j = te.reduce_axis((0, N), "i"), te.reduce_axis((0, M), "j")
    m = te.compute((), lambda: te.max(x[i, j], axis=(i, j)), "m")
    s = te.compute((), lambda: te.sum(te.exp(x[i, j] - m[()]) * te.exp(v[j, 0]), axis=(i, j)), "s")
    return te.compute((), lambda: m[()] + te.log(s[()]), "y")


def norms(x: te.Tensor, v: te.Tensor) -> te.Tensor:
    """Roots and squares of scaled elements."""
    e = weights(x, maxima(x))
    j = te.reduce_axis((0, M), "j")
    r = te.compute((N,), lambda i: te.sqrt(te.sum(e[i, j] ** 2, axis=j)), "r")
    return te.compute((N, M), lambda i, j: te.maximum(e[i, j], 0.0) / r[i] * v[j, 1], "y")


ROWS = np.array([0, 2, 1, 0, 3, 2, 2], "int32")


def segments(x: te.Tensor, v: te.Tensor) -> te.Tensor:
    """The weights of the edges of each node, which data tell."""
    rows, e = te.constant(ROWS, "rows"), te.reduce_axis((0, M), "e")
    m = te.compute((N - 1,), lambda i: te.max(x[0, e], axis=e, where=rows[e] == i), "m")
    w = te.compute((M,), lambda e: te.exp(x[0, e] - m[rows[e]]) * (1.0 + v[e, 1] ** 2), "w")
    z = te.compute((N - 1,), lambda i: te.sum(te.select(rows[e] == i, w[e], 0.0), axis=e), "z")
    return te.compute((M,), lambda e: w[e] / z[rows[e]], "y")


def library(x: te.Tensor, v: te.Tensor) -> te.Tensor:
    """A maximum of which no slope is taken, and which is no number where a row is empty."""
    j = te.reduce_axis((0, M), "j")
    return te.compute((N,), lambda i: te.logsumexp(x[i, j] * v[j, 0], axis=j), "y")


def as_jax(build: Build) -> Callable[[Any, Any], Any]:
    def exponentials(x: Any) -> Any:
        return jnp.exp(x - x.max(1, keepdims=True))

    def warm_jax(x: Any, v: Any) -> Any:
        e = jnp.exp((x - x.max(1, keepdims=True)) / (v[:N, :1] ** 2 + 1))
        e = jnp.where(jnp.arange(M)[None] != jnp.arange(N)[:, None], e, 0.0)
        return (e * v[:, 1]).sum(1) / e.sum(1)

    def segments_jax(x: Any, v: Any) -> Any:
        w = jnp.exp(x[0]) * (1 + v[:, 1] ** 2)
        return w / jax.ops.segment_sum(w, jnp.asarray(ROWS), N - 1)[ROWS]

    return {
        segments: segments_jax,
        library: lambda x, v: jax.nn.logsumexp(x * v[:, 0], axis=1),
        attention: lambda x, v: exponentials(x) @ v / exponentials(x).sum(1, keepdims=True),
        warm: warm_jax,
        logarithms: lambda x, v: -jnp.sum(jax.nn.log_softmax(x, axis=1) * v[:, 0]),
        sums_of_exponentials: lambda x, v: jnp.log(jnp.sum(jnp.exp(x) * jnp.exp(v[:, 0]))),
        norms: lambda x, v: jnp.exp(x) / jnp.sqrt(jnp.sum(jnp.exp(x) ** 2, 1, keepdims=True)) * v[:, 1],
    }[build]


def with_jacobians(fn: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """The value of ``fn``, and the Jacobians of its sine in reverse and in forward mode, in one compilation."""
    modes = [m(lambda *a: jnp.sin(fn(*a)), tuple(range(len(arrays)))) for m in (jax.jacrev, jax.jacfwd)]
    return compiled_run(lambda *a: (fn(*a), *(mode(*a) for mode in modes)), arrays, optimised=False)


INVARIANT = [attention, warm, logarithms, sums_of_exponentials, norms, segments, library]


@pytest.mark.parametrize("build", INVARIANT, ids=lambda b: b.__name__)
def test_the_maximum_has_no_adjoint_and_the_gradient_is_that_of_jax(build: Build) -> None:
    x, v = te.placeholder((N, M), "float64", "x"), te.placeholder((M, C), "float64", "v")
    found = te.differentiate(build(x, v), [x, v])
    for adjoint in found:
        assert "ties" not in te.source(adjoint)
        assert "elements_m" not in te.source(adjoint)
    with jax.enable_x64(True):
        draw = np.random.default_rng(0)
        arrays = draw.normal(size=(N, M)), draw.normal(size=(M, C))
        own, plain = with_jacobians(te.function(build), arrays), with_jacobians(as_jax(build), arrays)
        np.testing.assert_allclose(own[0], plain[0], rtol=1e-12)
        for reverse, forward, expected in zip(own[1], own[2], plain[1], strict=True):
            np.testing.assert_allclose(reverse, expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-12)


def other_row(x: te.Tensor) -> te.Tensor:
    """Each row divided by the sum of the next one."""
    e = weights(x, maxima(x))
    z = totals(e)
    return te.compute((N - 1, M), lambda i, j: e[i, j] / z[i + 1], "y")


def floor(x: te.Tensor) -> te.Tensor:
    """With a number that is not scaled beside the sum."""
    e = weights(x, maxima(x))
    z = totals(e)
    return te.compute((N, M), lambda i, j: e[i, j] / (z[i] + 0.1), "y")


def columns(x: te.Tensor) -> te.Tensor:
    """The sum goes over rows, each of which is scaled by itself."""
    e, i = weights(x, maxima(x)), te.reduce_axis((0, N), "i")
    z = te.compute((M,), lambda j: te.sum(e[i, j], axis=i), "z")
    return te.compute((N, M), lambda i, j: e[i, j] / z[j], "y")


def powers(x: te.Tensor) -> te.Tensor:
    """One is scaled by the square of what the other is."""
    e = weights(x, maxima(x))
    z = totals(e)
    return te.compute((N, M), lambda i, j: e[i, j] ** 2 / z[i], "y")


def half(x: te.Tensor) -> te.Tensor:
    """Only half of what is added is taken off."""
    m = maxima(x)
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j] - 0.5 * m[i]), "e")
    z = totals(e)
    return te.compute((N,), lambda i: m[i] + te.log(z[i]), "y")


def two_maxima(x: te.Tensor) -> te.Tensor:
    """The maximum is an output as well."""
    m = maxima(x)
    e = weights(x, m)
    z = totals(e)
    return te.compute((N, M), lambda i, j: e[i, j] / z[i] + m[i], "y")


def stopped(x: te.Tensor) -> te.Tensor:
    """What is put back has a slope, what is taken off has none."""
    m = maxima(x)
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j] - te.stop_gradient(m[i])), "e")
    z = totals(e)
    return te.compute((N,), lambda i: te.stop_gradient(m[i]) * 0.0 + m[i] + te.log(z[i]), "y")


def both_branches(x: te.Tensor) -> te.Tensor:
    """What a condition equates holds in one branch alone."""
    rows, j = te.constant(np.array([0, 1, 2, 3, 3], "int32"), "rows"), te.reduce_axis((0, M), "j")
    m = maxima(x)
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j] - m[rows[i]]), "e")
    z = te.compute((N,), lambda i: te.sum(te.select(rows[i] == i, e[i, j], 2.0 * e[i, j]), axis=j), "z")
    return te.compute((N, M), lambda i, j: te.exp(x[i, j] - m[i]) / z[i], "y")


@pytest.mark.parametrize(
    "build", [both_branches, other_row, floor, columns, powers, half, two_maxima], ids=lambda b: b.__name__
)
def test_a_maximum_that_counts_keeps_its_adjoint(build: Build) -> None:
    with jax.enable_x64(True):
        x = np.random.default_rng(1).normal(size=(N, M))
        fn = te.function(build)
        head = np.random.default_rng(2).normal(size=fn(x).shape)

        def loss(x: Any) -> Any:
            return jnp.sum(head * fn(x))

        steps = 1e-6 * np.eye(x.size).reshape(-1, *x.shape)
        losses = jax.vmap(loss)
        moved = (losses(x + steps) - losses(x - steps)) / 2e-6
        np.testing.assert_allclose(jax.grad(loss)(x).ravel(), moved, rtol=1e-6, atol=1e-8)


def test_a_slope_that_is_stopped_is_none() -> None:
    x = np.random.default_rng(3).normal(size=(N, M)).astype("float32")
    stop = jax.lax.stop_gradient

    def plain(x: Any) -> Any:
        m = x.max(1)
        return m + jnp.log(jnp.sum(jnp.exp(x - stop(m)[:, None]), 1))

    for own, expected in zip(jax.jacrev(te.function(stopped))(x), jax.jacrev(plain)(x), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-6)


def test_maxima_one_after_the_other_are_not_each_followed_to_the_end() -> None:
    x = te.placeholder((6, 5), name="x")
    value = te.compute((6,), lambda i: x[i, 0], "v")
    for step in range(120):
        j = te.reduce_axis((0, 5), "j")
        value = te.compute((6,), lambda i, v=value, j=j: te.max(x[i, j] + v[i], axis=j), f"v{step}")
    order = topological_order([value])
    followed: list[te.Tensor] = []
    with pytest.MonkeyPatch.context() as patch:
        plain = without_effect._Followed.add
        patch.setattr(
            without_effect._Followed,
            "add",
            lambda own, tensor: (followed.append(tensor), plain(own, tensor)),
        )
        assert not without_effect.without_effect(order, [value], ())
    assert len(followed) <= 33 * 120


def forward_algorithm(emissions: te.Tensor, moves: te.Tensor, scaled: bool = True) -> te.Tensor:
    """Sums of exponentials beside the largest, step by step; not ``scaled``, the largest is no shift of what is asked for."""
    steps, n = emissions.shape
    i, k = te.reduce_axis((0, n), "i"), te.reduce_axis((0, n), "k")

    def cell(a: Any, m: Any, t: te.Axis, j: te.Axis) -> Any:
        total = te.log(te.sum(te.exp(a[t - 1, i] + moves[i, j] - m[t, j]), axis=i))
        back = m[t, j] if scaled else 0.5 * m[t, j]
        return back + total + emissions[t, j], te.max(a[t - 1, k] + moves[k, j], axis=k)

    return te.recurrence((steps, n), cell, init=(0.0, 0.0))[0]


@pytest.mark.parametrize("scaled", [True, False])
def test_maxima_of_steps(scaled: bool) -> None:
    """Through the maxima of a forward algorithm nothing flows, in either mode; where they count, their places are found."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(4)
        e, moves, head = rng.normal(size=(9, 4)), rng.normal(size=(4, 4)), rng.normal(size=(9, 4))

        def plain(e: Any, moves: Any) -> Any:
            def step(a: Any, row: Any) -> Any:
                m = jnp.max(a[:, None] + moves, 0)
                a = (1.0 if scaled else 0.5) * m + jnp.log(jnp.sum(jnp.exp(a[:, None] + moves - m), 0)) + row
                return a, a

            return jax.lax.scan(step, jnp.zeros(4), e)[1]

        fn = te.function(lambda e, moves: forward_algorithm(e, moves, scaled))
        backward = str(te.source(fn, e, moves)).split("def backward")[1]
        assert any(name in backward for name in ("places", "ties")) is not scaled
        for own, expected in zip(
            jax.vjp(fn, e, moves)[1](head), jax.vjp(plain, e, moves)[1](head), strict=True
        ):
            np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)
        for mode in (jax.jacfwd, jax.jacrev):
            np.testing.assert_allclose(mode(fn, 1)(e, moves), mode(plain, 1)(e, moves), rtol=1e-9, atol=1e-9)


def test_maxima_of_steps_that_are_asked_for() -> None:
    """An output of the loop keeps its derivative."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(5)
        e, moves = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))

        def both(e: te.Tensor, moves: te.Tensor) -> tuple[te.Tensor, ...]:
            i, k = te.reduce_axis((0, 3), "i"), te.reduce_axis((0, 3), "k")
            return te.recurrence(
                (6, 3),
                lambda a, m, t, j: (
                    m[t, j] + te.log(te.sum(te.exp(a[t - 1, i] + moves[i, j] - m[t, j]), axis=i)) + e[t, j],
                    te.max(a[t - 1, k] + moves[k, j], axis=k),
                ),
                init=(0.0, 0.0),
            )

        fn = te.function(both)
        step = 1e-6 * rng.normal(size=moves.shape)
        moved = np.sum(fn(e, moves + step)[1] - fn(e, moves - step)[1])
        slope = jax.grad(lambda moves: jnp.sum(fn(e, moves)[1]))(moves)
        np.testing.assert_allclose(np.vdot(slope, 2 * step), moved, rtol=1e-5, atol=1e-10)
        tangent = jax.jvp(lambda moves: jnp.sum(fn(e, moves)[1]), (moves,), (2 * step,))[1]
        np.testing.assert_allclose(tangent, moved, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize("degree", [1, 2])
def test_weights_of_another_degree_count(degree: int) -> None:
    """A sum of weights that a pivot scales by different powers is scaled by none, so that the quotient depends on the pivot."""

    def build(x: te.Tensor) -> te.Tensor:
        m = maxima(x)
        e = te.compute(
            x.shape, lambda i, j: te.exp(x[i, j] - m[i]) + te.exp(0.5 * x[i, j] - degree * m[i]), "e"
        )
        z = totals(e)
        return te.compute(x.shape, lambda i, j: e[i, j] / z[i], "y")

    def plain(x: jax.Array) -> jax.Array:
        m = x.max(1, keepdims=True)
        e = jnp.exp(x - m) + jnp.exp(0.5 * x - degree * m)
        return e / e.sum(1, keepdims=True)

    x = np.random.default_rng(6).normal(size=(3, 4)).astype("float32")
    found, expected = (jax.jacrev(f)(x) for f in (te.function(build), plain))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
