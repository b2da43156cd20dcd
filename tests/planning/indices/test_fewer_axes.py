"""What does not depend on all axes of a definition is computed and differentiated once for all points that have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from harness.sides import with_gradients
from jaxte.planning.graph import planned
from jaxte.planning.indices import fewer_axes
from jaxte.tensors.structure import topological_order
from tests.agreement import interpreted
from tests.xla_counts import Fused


def bands(p: te.Tensor, low: te.Tensor, mid: te.Tensor, high: te.Tensor) -> te.Tensor:
    """Spectra in triangular bands whose corners are learned."""
    f = te.reduce_axis((0, p.shape[1]), "f")

    def band(b: te.Axis, m: te.Axis) -> te.Expr:
        up = (te.cast(f, "float32") - low[m]) / (mid[m] - low[m])
        down = (high[m] - te.cast(f, "float32")) / (high[m] - mid[m])
        return te.sum(p[b, f] ** 2 * te.maximum(0.0, te.minimum(up, down)), axis=f)

    return te.compute((p.shape[0], *low.shape), band, "y")


def plain_bands(p: jax.Array, low: jax.Array, mid: jax.Array, high: jax.Array) -> jax.Array:
    f = jnp.arange(p.shape[1], dtype="float32")[:, None]
    return p**2 @ jnp.maximum(0.0, jnp.minimum((f - low) / (mid - low), (high - f) / (high - mid)))


def normals(z: te.Tensor) -> te.Tensor:
    """Unit normals of a surface, their components by a choice."""

    def normal(i: te.Axis, j: te.Axis, c: te.Axis) -> te.Expr:
        dx, dy = z[i + 1, j + 2] - z[i + 1, j], z[i + 2, j + 1] - z[i, j + 1]
        scale = te.rsqrt(dx * dx + dy * dy + 4)
        return te.select(c == 0, -dx * scale, te.select(c == 1, -dy * scale, 2 * scale))

    n, m = z.shape
    return te.compute((n - 2, m - 2, 3), normal, "y")


def plain_normals(z: jax.Array) -> jax.Array:
    dx, dy = z[1:-1, 2:] - z[1:-1, :-2], z[2:, 1:-1] - z[:-2, 1:-1]
    scale = lax.rsqrt(dx * dx + dy * dy + 4)
    return jnp.stack([-dx * scale, -dy * scale, 2 * scale], -1)


def clipped(x: te.Tensor, g: te.Tensor, v: te.Tensor) -> te.Tensor:
    """A layer whose weights are scaled and held in a range."""
    k = te.reduce_axis((0, x.shape[1]), "k")
    weight = lambda o: te.minimum(te.maximum(g[o] * v[o, k], -1.0), 1.0) + 0.1 * te.tanh(v[o, k])  # noqa: E731
    return te.compute((x.shape[0], g.shape[0]), lambda b, o: te.sum(x[b, k] * weight(o), axis=k), "y")


def plain_clipped(x: jax.Array, g: jax.Array, v: jax.Array) -> jax.Array:
    return x @ (jnp.clip(g[:, None] * v, -1.0, 1.0) + 0.1 * jnp.tanh(v)).T


def polar(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Radius, cosine and sine of points."""

    def parts(n: te.Axis, c: te.Axis) -> te.Expr:
        r = te.sqrt(x[n] * x[n] + y[n] * y[n] + 0.1)
        return te.select(c == 0, te.log(r), te.select(c == 1, x[n] / r, y[n] / r))

    return te.compute((*x.shape, 3), parts, "y")


def plain_polar(x: jax.Array, y: jax.Array) -> jax.Array:
    r = jnp.sqrt(x * x + y * y + 0.1)
    return jnp.stack([jnp.log(r), x / r, y / r], -1)


def relations(g: te.Tensor, p: te.Tensor) -> te.Tensor:
    """Products of genotypes that are less their expected values, over their variances: one product of matrices for each factor."""
    k = te.reduce_axis((0, g.shape[1]), "k")

    def term(i: te.Axis, j: te.Axis) -> te.Expr:
        return (g[i, k] - 2 * p[k]) * (g[j, k] - 2 * p[k]) / (p[k] * (20 - p[k]))

    return te.compute((g.shape[0], g.shape[0]), lambda i, j: te.sum(term(i, j), axis=k), "y")


def plain_relations(g: jax.Array, p: jax.Array) -> jax.Array:
    return ((g - 2 * p) / (p * (20 - p))) @ (g - 2 * p).T


def mixed(x: te.Tensor, p: te.Tensor, m: te.Tensor, w: te.Tensor) -> te.Tensor:
    """What is mixed of two arrays is multiplied by weights: what flows back to the mixture goes to both and to the weights of the mixture."""
    c = te.reduce_axis((0, x.shape[1]), "c")
    return te.compute(
        (x.shape[0], w.shape[1]),
        lambda t, o: te.sum((x[t, c] * m[c] + p[t, c] * (1 - m[c])) * w[c, o], axis=c),
        "y",
    )


def plain_mixed(x: jax.Array, p: jax.Array, m: jax.Array, w: jax.Array) -> jax.Array:
    return (x * m + p * (1 - m)) @ w


def paths(z: te.Tensor, v: te.Tensor) -> te.Tensor:
    """Running sums of what two tensors make: what flows back to each step is one running sum."""
    s = te.reduce_axis((0, z.shape[1]), "s")
    return te.compute(z.shape, lambda p, t: te.sum(v[0] * z[p, s] - v[0] * v[0], axis=s, where=s <= t), "y")


def plain_paths(z: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.cumsum(v[0] * z - v[0] * v[0], axis=1)


def bumps(x: te.Tensor, grid: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A layer of bumps: each weight of the product is a larger array than all that it is made from."""
    i, k = (te.reduce_axis((0, e), n) for n, e in zip("ik", w.shape, strict=False))
    return te.compute(
        (x.shape[0], w.shape[2]),
        lambda b, o: te.sum(te.exp(-((x[b, i] - grid[k]) ** 2)) * w[i, k, o], axis=(i, k)),
        "y",
    )


def plain_bumps(x: jax.Array, grid: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.einsum("bik,iko->bo", jnp.exp(-((x[..., None] - grid) ** 2)), w)


CASES: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...], float]] = {
    "bands": (bands, plain_bands, ((40, 65), (12,), (12,), (12,)), 5),
    "normals": (normals, plain_normals, ((66, 67),), 1.2),
    "clipped": (clipped, plain_clipped, ((64, 32), (24,), (24, 32)), 2),
    # without it, each part passes on one element, too, and what they have in common is computed once
    "polar": (polar, plain_polar, ((500,), (500,)), 0.83),
    "relations": (relations, plain_relations, ((30, 70), (70,)), 1.2),
    "mixed": (mixed, plain_mixed, ((40, 32), (40, 32), (32,), (32, 24)), 1.3),
    "paths": (paths, plain_paths, ((50, 32), (1,)), 2),
    # without it, shared elements keep as much of this one
    "bumps": (bumps, plain_bumps, ((256, 32), (8,), (32, 8, 8)), 1.0),
}


def flops(function: Any, arrays: list[np.ndarray], head: np.ndarray) -> float:
    both = with_gradients(function, tuple(range(len(arrays))))
    return float(Fused(jax.jit(both).lower([head], *arrays)).cost_analysis()["flops"])


@pytest.mark.parametrize("name", CASES)
def test_slopes_are_computed_once_for_all_points(
    name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, plain, shapes, gain = CASES[name]
    arrays = [rng.normal(size=s).astype("float32") + 3.0 * n for n, s in enumerate(shapes)]
    function = te.function(build)
    value, pull = jax.vjp(function, *arrays)
    expected, plain_pull = jax.vjp(plain, *arrays)
    head = rng.normal(size=expected.shape).astype("float32")
    for a, b in zip((value, *pull(head)), (expected, *plain_pull(head)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4 * float(np.abs(b).max()))
    own = flops(function, arrays, head)
    monkeypatch.setattr(fewer_axes, "WORTH_A_TENSOR", 10**9)
    monkeypatch.setattr(fewer_axes, "FEWER", 10**9)
    assert flops(te.function(build), arrays, head) >= gain * own


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_interpreter(name: str, rng: np.random.Generator) -> None:
    build, _, shapes, _ = CASES[name]
    inputs = [te.placeholder(tuple(min(e, 6) for e in s), name=f"a{n}") for n, s in enumerate(shapes)]
    y = build(*inputs)
    head = te.placeholder(y.shape, name="head")
    feeds = {t: (rng.normal(size=t.shape) + 3.0 * n).astype("float32") for n, t in enumerate((*inputs, head))}
    value, pull = jax.vjp(te.function(inputs, y), *(feeds[t] for t in inputs))
    expected = [interpreted(t, feeds) for t in (y, *te.differentiate(y, inputs, head))]
    for a, b in zip((value, *pull(feeds[head])), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * float(np.abs(b).max()))


def quotient(condition: Callable[[te.Axis], te.Expr]) -> tuple[list[te.Tensor], te.Tensor]:
    x, w = te.placeholder((4, 8), name="x"), te.placeholder((8,), name="w")
    v = te.placeholder((8,), name="v")
    return [x, w, v], te.compute(
        (4, 8), lambda b, i: te.select(condition(i), x[b, i] * te.sqrt(w[i] / v[i] + v[i] * w[i]), 0.0), "y"
    )


def test_what_a_guard_leaves_out_passes_nothing_on(rng: np.random.Generator) -> None:
    """The slope at ``w[0]`` is infinite, and no point asks for it."""
    inputs, y = quotient(lambda i: i > 0)
    function = te.function(inputs, y)
    x, w = rng.normal(size=(4, 8)).astype("float32"), np.arange(8, dtype="float32")
    grads = jax.grad(lambda *a: function(*a).sum(), (0, 1, 2))(x, w, np.arange(8, dtype="float32"))
    assert all(np.isfinite(g).all() for g in grads)
    assert "_part" not in te.source(function)


def test_what_data_leave_out_stays_in_place() -> None:
    x, w, v = te.placeholder((4, 8), name="x"), te.placeholder((8,), name="w"), te.placeholder((8,), name="v")
    function = te.function(
        [x, w, v],
        te.compute((4, 8), lambda b, i: te.select(v[i] > 0, x[b, i] * te.sqrt(w[i] / v[i]), 0.0), "y"),
    )
    assert "_part" not in te.source(function)


def test_weights_of_corners_stay_in_their_sum() -> None:
    """They lack an axis of the sum alone: a matter of the order of sums, and no weight is used at several elements."""
    f, v = te.placeholder((30, 2), name="f"), te.placeholder((30, 2, 2), name="v")
    k, m = te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 2), "m")
    weight = lambda p: te.select(k == 0, 1 - f[p, 0] * f[p, 1], f[p, 0] / (1 + f[p, 1] * f[p, 1]))  # noqa: E731
    y = te.compute((30,), lambda p: te.sum(weight(p) * v[p, k, m], axis=(k, m)), "y")
    assert "_part" not in te.source(te.function([f, v], y))


def before(s: te.Tensor, d: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, s.shape[1]), "k")
    return te.compute(s.shape, lambda i, j: te.sum(s[i, k] * d[k], axis=k, where=k < j), "y")


def behind(s: te.Tensor, d: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, s.shape[1]), "k")
    return te.compute(s.shape, lambda i, j: te.sum(s[i, k] * d[k], axis=k, where=k > j), "y")


def deviations(s: te.Tensor, d: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, s.shape[1]), "k")
    return te.compute(s.shape, lambda i, j: te.sum((s[i, k] - d[k]) * d[k], axis=k, where=k + 1 < j), "y")


PREFIXES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[int, ...]]] = {
    "before": (before, lambda s, d: jnp.cumsum(s * d, 1) - s * d, (10, 19)),
    "behind": (behind, lambda s, d: jnp.cumsum((s * d)[:, ::-1], 1)[:, ::-1] - s * d, (10, 19)),
    "deviations": (
        deviations,
        lambda s, d: jnp.pad(jnp.cumsum((s - d) * d, 1), ((0, 0), (2, 0)))[:, :-2],
        (10, 18),
    ),
}


@pytest.mark.parametrize("name", PREFIXES)
def test_elements_that_a_sum_asks_for_are_a_part(name: str, rng: np.random.Generator) -> None:
    """Of the positions before an element the last is none, nor is the first of those behind it: what flows back to the others is one sum for both factors."""
    build, reference, shape = PREFIXES[name]
    arrays = [rng.uniform(0.5, 2, size=s).astype("float32") for s in ((10, 20), (20,))]
    (part,) = [
        t
        for t in topological_order(
            planned([build(te.placeholder((10, 20), name="s"), te.placeholder((20,), name="d"))])
        )
        if isinstance(t, fewer_axes.FewerAxes)
    ]
    assert part.shape == shape
    fn = te.function(build)
    ours, theirs = (jax.vjp(f, *arrays) for f in (fn, reference))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-4, atol=1e-4)
    for own, other in zip(ours[1](theirs[0]), theirs[1](theirs[0]), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-2)


def test_what_a_prefix_never_asks_for_passes_nothing_on() -> None:
    """The last factor is infinite, and no sum has it: zero times it would be NaN in what flows back to the other one."""
    s, d = jnp.ones((10, 20)), jnp.ones(20).at[-1].set(jnp.inf)
    ds, dd = jax.grad(lambda s, d: te.function(before)(s, d).sum(), argnums=(0, 1))(s, d)
    expected = np.arange(19, -1, -1.0)
    np.testing.assert_array_equal(ds, np.broadcast_to(expected, (10, 20)))
    np.testing.assert_array_equal(dd, 10 * expected)
