"""Expensive weights of a difference of positions are computed once for each difference: what is emitted, and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from jaxte.planning.graph import planned
from jaxte.planning.indices.lines import Line
from jaxte.planning.orders import geometric
from jaxte.tensors.structure import topological_order
from tests.xla_counts import Fused

N = 40
Build = Callable[[te.Tensor], te.Tensor]


@pytest.fixture(autouse=True)
def steps_are_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Geometric weights are no loop, as on a GPU."""
    monkeypatch.setattr(geometric, "has_cheap_steps", lambda: False)


def weighted(weight: Callable[[Any, Any], Any], where: Callable[[Any, Any], Any] | None = None) -> Build:
    def build(r: te.Tensor) -> te.Tensor:
        s = te.reduce_axis((0, r.shape[1]), "s")

        def element(b: Any, t: Any) -> Any:
            condition = None if where is None else where(s, t)
            return te.sum(weight(s, t) * r[b, s], axis=s, where=condition)

        return te.compute(r.shape, element, "g")

    return build


#: the definition, its matrix of weights by numpy, and how many values stand on the line (None for no line)
S, T = np.arange(N)[None, :], np.arange(N)[:, None]
CASES: dict[str, tuple[Build, np.ndarray, int | None]] = {
    "discount": (
        weighted(lambda s, t: 0.9 ** (s - t), lambda s, t: s >= t),
        np.where(S >= T, 0.9 ** (S - T).clip(0), 0),
        N,
    ),
    "Gaussian": (weighted(lambda s, t: te.exp(-((s - t) ** 2) / 8)), np.exp(-((S - T) ** 2) / 8), 2 * N - 1),
    "two shifts": (
        weighted(lambda s, t: te.exp(-0.1 * (s - t + 3)) * te.cos(0.2 * (s - t)), lambda s, t: s - t >= -2),
        np.where(S - T >= -2, np.exp(-0.1 * (S - T + 3)) * np.cos(0.2 * (S - T)), 0),
        N + 2,
    ),
    "twice the same": (
        weighted(lambda s, t: te.exp(-0.1 * (s - t)) * te.exp(-0.1 * (s - t)), lambda s, t: s >= t),
        np.where(S >= T, np.exp(-0.2 * (S - T)), 0),
        N,
    ),
    "steps of two": (
        weighted(lambda s, t: te.exp(-0.1 * (2 * t - 2 * s)), lambda s, t: t >= s),
        np.where(T >= S, np.exp(-0.2 * (T - S)), 0),
        N,
    ),
    "cheap": (weighted(lambda s, t: s - t + 0.5), S - T + 0.5, None),
    "of both": (weighted(lambda s, t: te.cos(0.1 * s * t)), np.cos(0.1 * S * T), None),
    "of several sums": (
        weighted(lambda s, t: te.exp(-0.1 * (s - t)) * te.exp(0.1 * (s + t))),
        np.exp(0.2 * T + 0 * S),
        None,  # each of the two would be laid out to meet the other
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_forms_and_values(name: str, rng: np.random.Generator) -> None:
    build, weights, values = CASES[name]
    r = te.placeholder((3, N), name="r")
    lines = [t for t in topological_order(planned([build(r)])) if isinstance(t, Line)]
    assert all(line.shape == (values,) for line in lines) and bool(lines) == (values is not None)
    own, h = (rng.standard_normal((3, N)).astype("float32") for _ in range(2))
    fn = te.function(build)
    y, pull = te.vjp(fn, own)
    np.testing.assert_allclose(y, own @ weights.T, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(pull(h)[0], h @ weights, rtol=2e-4, atol=2e-4)


def test_a_line_has_the_dtype_of_the_sum() -> None:
    r = te.placeholder((3, N), "float16", "r")
    (g,) = planned([CASES["discount"][0](r)])
    assert g.dtype == "float16"
    (line,) = (t for t in topological_order([g]) if isinstance(t, Line))
    assert line.dtype == "float16"


def test_few_points_have_no_line() -> None:
    k = te.reduce_axis((0, 3), "k")
    x = te.placeholder((9, 3), name="x")
    y = te.compute((9,), lambda i: te.sum(te.exp(-0.1 * (i - k)) * x[i, k], axis=k), "y")
    assert planned([y])[0] is y


def test_the_corpus_function_computes_a_row_of_powers() -> None:
    text = te.source(te.function(CASES["discount"][0]), jnp.zeros((3, N)))
    assert text.count("0.9 ** jnp.arange(40") == 2 and "jnp.where" not in text


def attention_by_distance(x: te.Tensor, s: te.Tensor) -> te.Tensor:
    """Each head weighs what is far away by a rate of its own."""
    k = te.reduce_axis((0, x.shape[0]), "k")
    n, heads, c = x.shape
    body = lambda h, i, c: te.sum(te.exp(-s[h] * te.abs(i - k)) * x[k, h, c], axis=k)  # noqa: E731
    return te.compute((heads, n, c), body, "y")


def plain_attention_by_distance(x: jax.Array, s: jax.Array) -> jax.Array:
    far = jnp.abs(jnp.arange(len(x))[:, None] - jnp.arange(len(x)))
    return jnp.einsum("hik,khc->hic", jnp.exp(-s[:, None, None] * far), x)


def state_space(x: te.Tensor, s: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Each channel decays and turns at rates of its own; products of two functions are one line."""
    k = te.reduce_axis((0, x.shape[0]), "k")
    body = lambda i, c: te.sum(  # noqa: E731
        te.exp(-s[c] * (i - k)) * te.cos(w[c] * (i - k)) * x[k, c], axis=k, where=k <= i
    )
    return te.compute(x.shape, body, "y")


def plain_state_space(x: jax.Array, s: jax.Array, w: jax.Array) -> jax.Array:
    d = jnp.arange(len(x))[:, None] - jnp.arange(len(x))
    weights = jnp.exp(-s * d.clip(0)[:, :, None]) * jnp.cos(w * d[:, :, None])
    return jnp.einsum("ikc,kc->ic", jnp.where(d[:, :, None] >= 0, weights, 0), x)


def waves(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """What a number that is learned decides, in both factors."""
    k = te.reduce_axis((0, x.shape[0]), "k")
    body = lambda t, c: te.sum(  # noqa: E731
        x[k, c] * te.sin(a[0] * (t - k)) * te.exp(-0.1 * (t - k)), axis=k, where=k <= t
    )
    return te.compute(x.shape, body, "y")


def plain_waves(x: jax.Array, a: jax.Array) -> jax.Array:
    d = jnp.arange(len(x))[:, None] - jnp.arange(len(x))
    return jnp.where(d >= 0, jnp.sin(a[0] * d) * jnp.exp(-0.1 * d.clip(0)), 0) @ x


#: functions whose weights read tensors, plain ones, shapes, how many functions are evaluated at most, forward and backward together
LEARNED: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...], int]] = {
    "distances": (attention_by_distance, plain_attention_by_distance, ((60, 4, 8), (4,)), 3 * 4 * 119),
    "states": (state_space, plain_state_space, ((60, 8), (8,), (8,)), 6 * 8 * 60),
    "waves": (waves, plain_waves, ((60, 8), (1,)), 6 * 60),
}


@pytest.mark.parametrize("name", LEARNED)
def test_weights_that_read_are_computed_for_each_difference(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes, functions = LEARNED[name]
    arrays = [rng.uniform(0.1, 0.9, size=s).astype("float32") for s in shapes]
    expected, pull = jax.vjp(plain, *arrays)
    head = rng.normal(size=expected.shape).astype("float32")
    both = Fused(jax.jit(with_gradients(te.function(build), range(len(arrays)))).lower([head], *arrays))
    found = jax.tree.leaves(both([head], *arrays))
    for own, other in zip(found, [expected, *pull(head)], strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-4)
    assert both.cost_analysis()["transcendentals"] <= functions


def test_what_a_condition_keeps_finite_stays_under_it(rng: np.random.Generator) -> None:
    def build(x: te.Tensor, a: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, N), "k")
        body = lambda t: te.sum(x[k] * te.sin(a[0] * (t - k)) / (t - k), axis=k, where=k != t)  # noqa: E731
        return te.compute((N,), body, "y")

    x, a = rng.standard_normal(N).astype("float32"), np.array([0.7], "float32")
    d = np.where(S != T, T - S, 1).astype("float64")
    weights, slopes = (np.where(S != T, own, 0) for own in (np.sin(0.7 * d) / d, np.cos(0.7 * d)))
    y, pull = te.vjp(te.function(build), x, a)
    np.testing.assert_allclose(y, weights @ x, rtol=2e-4, atol=2e-4)
    dx, da = pull(np.ones(N, "float32"))
    np.testing.assert_allclose(dx, weights.sum(0), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(da, [(slopes @ x).sum()], rtol=2e-4, atol=2e-4)


def test_lines_meet_no_other_weights_of_both_positions() -> None:
    """To meet scores the line would be laid out, which takes longer than a function of each."""
    q, v = te.placeholder((N, 4), name="q"), te.placeholder((N, 4), name="v")
    k, c = te.reduce_axis((0, N), "k"), te.reduce_axis((0, 4), "c")
    s = te.compute((N, N), lambda i, k: te.tanh(te.sum(q[i, c] * q[k, c], axis=c)), "s")
    y = te.compute((N, 4), lambda i, o: te.sum(s[i, k] * te.exp(-te.abs(i - k)) * v[k, o], axis=k), "y")
    assert not any(isinstance(t, Line) for t in topological_order(planned([y])))
