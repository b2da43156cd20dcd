"""What answers the CPU's compiler is emitted for the CPU only: others fuse pads, slices and products by themselves, and start kernels dearly."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

OTHERS = ("gpu", "tpu")


def struct(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, "float32")


def flux(u: Any) -> Any:
    """A step of a diffusion whose fluxes several neighbours read, around the ends."""
    n, m = u.shape
    d = te.compute((n, m), lambda i, j: te.tanh(u[(i + 1) % n, j] - u[i, j]) * te.exp(-(u[i, j] ** 2)), "d")
    return te.compute((n, m), lambda i, j: u[i, j] + 0.1 * (d[i, j] - d[(i - 1) % n, j]), "y")


def padded(u: Any) -> Any:
    """A window of nine points among zeros."""
    n, m = u.shape
    k, q = te.reduce_axis((-1, 2), "k"), te.reduce_axis((-1, 2), "q")
    inside = lambda a, b: (a >= 0) & (a < n) & (b >= 0) & (b < m)  # noqa: E731
    return te.compute(
        (n, m),
        lambda i, j: te.sum(te.select(inside(i + k, j + q), te.exp(u[i + k, j + q]), 0.0), axis=(k, q)),
        "y",
    )


def variance(u: Any) -> Any:
    """Sums of squares over windows of nine: few operations more than passes along one axis after the other."""
    b, n, m = u.shape
    k, q = te.reduce_axis((0, 9), "k"), te.reduce_axis((0, 9), "q")
    return te.compute(
        (b, n - 8, m - 8),
        lambda b, i, j: te.sum(u[b, i + k, j + q] * u[b, i + k, j + q], axis=(k, q)),
        "v",
    )


def forces(w: Any, x: Any) -> Any:
    """Weighted differences of pairs, in three coordinates."""
    n, c = x.shape
    j = te.reduce_axis((0, n), "j")
    return te.compute((n, c), lambda i, c: te.sum(w[i, j] * (x[i, c] - x[j, c]), axis=j), "f")


def returns(r: Any) -> Any:
    """Geometric sums of what is to come."""
    b, n = r.shape
    s = te.reduce_axis((0, n), "s")
    return te.compute((b, n), lambda b, t: te.sum(0.97 ** (s - t) * r[b, s], axis=s, where=s >= t), "g")


def weights(h: Any, x: Any) -> Any:
    """The gradient of a filter along columns for its taps: sums of products with seven shifts of an image."""
    b, n, m = h.shape
    i, j, c = te.reduce_axis((0, n), "i"), te.reduce_axis((0, m), "j"), te.reduce_axis((0, b), "c")
    return te.compute((7,), lambda p: te.sum(te.tanh(h[c, i, j]) * x[c, i + p, j], axis=(c, i, j)), "w")


def plain_weights(h: Any, x: Any) -> Any:
    return jnp.stack([jnp.sum(jnp.tanh(h) * x[:, p : p + h.shape[1]]) for p in range(7)])


def plain_flux(u: Any) -> Any:
    d = jnp.tanh(jnp.roll(u, -1, 0) - u) * jnp.exp(-(u**2))
    return u + 0.1 * (d - jnp.roll(d, 1, 0))


def plain_padded(u: Any) -> Any:
    return lax.reduce_window(jnp.exp(u), 0.0, lax.add, (3, 3), (1, 1), "SAME")


def plain_variance(u: Any) -> Any:
    return lax.reduce_window(u**2, 0.0, lax.add, (1, 9, 9), (1, 1, 1), "VALID")


def plain_forces(w: Any, x: Any) -> Any:
    return jnp.sum(w[:, :, None] * (x[:, None] - x[None]), 1)


def plain_returns(r: Any) -> Any:
    at = np.arange(r.shape[1])
    return r @ np.where(at[:, None] >= at, 0.97 ** (at[:, None] - at).astype("float32"), 0).astype("float32")


class Case(NamedTuple):
    """A definition, the same in plain JAX, shapes, and what only the CPU is to have in its text."""

    builder: Any
    plain: Any
    shapes: tuple[Any, ...]
    answers: tuple[str, ...]


CASES = {
    "edges": Case(
        flux, plain_flux, (struct(256, 256),), ("dynamic_update_slice", "optimization_barrier", "_apart")
    ),
    "pads": Case(padded, plain_padded, (struct(256, 256),), ("optimization_barrier", "_apart")),
    "windows": Case(variance, plain_variance, (struct(4, 64, 64),), ("v_over",)),
    "coordinates": Case(forces, plain_forces, (struct(1024, 1024), struct(1024, 3)), ("f_from", "f_tile")),
    "columns": Case(
        weights, plain_weights, (struct(8, 256, 256), struct(8, 262, 256)), ("lax.reduce", "einsum")
    ),
    "steps": Case(returns, plain_returns, (struct(16, 256),), ("g_carried_step",)),
}


LARGEST = {"steps": 130, "columns": 262}


@pytest.mark.parametrize("name", CASES)
def test_answers_to_the_cpu_stay_there(name: str) -> None:
    case = CASES[name]
    of = {p: str(te.source(te.function(case.builder, platform=p), *case.shapes)) for p in ("cpu", *OTHERS)}
    assert any(answer in of["cpu"] for answer in case.answers)
    plain = ("gpu",) if name in ("windows",) else OTHERS  # a TPU starts a loop sooner
    assert not [(p, a) for p in plain for a in case.answers if a in of[p]]


@pytest.mark.parametrize("platform", OTHERS)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, platform: str, rng: np.random.Generator) -> None:
    case = CASES[name]
    args = [
        rng.normal(size=tuple(min(e, LARGEST.get(name, 24)) for e in s.shape)).astype("float32")
        for s in case.shapes
    ]
    expected, pull = jax.vjp(case.plain, *args)
    head = rng.normal(size=expected.shape).astype("float32")
    found, own_pull = jax.vjp(te.function(case.builder, platform=platform), *args)
    for a, b in zip((found, *own_pull(head)), (expected, *pull(head)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def taps(h: Any, x: Any) -> Any:
    """The gradient of a filter of each channel by itself for its taps, channels last."""
    b, n, m, c = h.shape
    i, j, k = te.reduce_axis((0, n), "i"), te.reduce_axis((0, m), "j"), te.reduce_axis((0, b), "k")
    return te.compute(
        (3, 3, c), lambda p, q, c: te.sum(h[k, i, j, c] * x[k, i + p, j + q, c], axis=(k, i, j)), "w"
    )


@pytest.mark.parametrize("platform", OTHERS)
def test_channels_that_stand_last_are_turned_before_their_rows_are_summed(
    platform: str, rng: np.random.Generator
) -> None:
    h, x = struct(4, 32, 32, 64), struct(4, 34, 34, 64)
    chosen = te.explain(te.function(taps, platform="gpu"), h, x).forms["w"]
    assert (
        chosen == "sums in one pass"
    )  # a convolution in groups takes its positions one after the other there
    own = te.function(taps, platform=platform, forms={"w": "sums in one pass"})
    args = [rng.normal(size=s).astype("float32") for s in ((2, 5, 6, 16), (2, 7, 8, 16))]
    expected = [
        [np.sum(args[0] * args[1][:, p : p + 5, q : q + 6], axis=(0, 1, 2)) for q in range(3)]
        for p in range(3)
    ]
    np.testing.assert_allclose(own(*args), expected, rtol=1e-4, atol=1e-4)
    assert "transpose(0, 3, 1, 2)" in str(te.source(own, h, x))


def gaussians(x: Any, y: Any) -> Any:
    n, m, c = x.shape[0], y.shape[0], x.shape[1]
    j, d = te.reduce_axis((0, m), "j"), te.reduce_axis((0, c), "d")
    square = lambda i: te.sum((x[i, d] - y[j, d]) ** 2, axis=d)  # noqa: E731
    return te.compute((n,), lambda i: te.sum(te.exp(-square(i)), axis=j), "s")


def test_what_the_memory_of_a_gpu_holds_needs_no_tiles() -> None:
    points = struct(8192, 3), struct(8192, 3)
    for platform, tiled in (("cpu", True), ("gpu", False)):
        forward = str(te.source(te.function(gaussians, platform=platform), *points)).partition(
            "def backward"
        )[0]
        assert ("lax.map" in forward) is tiled
    large = te.function(gaussians, platform="gpu", max_memory=2**20)
    assert "lax.map" in str(te.source(large, *points))


def scores(q: Any, k: Any) -> Any:
    """Products of the channels of each point with those of its neighbours in a window."""
    c, n, m = q.shape
    d = te.reduce_axis((0, c), "d")
    return te.compute((9, 9, n, m), lambda p, s, i, j: te.sum(q[d, i, j] * k[d, i + p, j + s], axis=d), "s")


def text_for(platform: str, build: Any, *shapes: Any) -> str:
    return str(te.source(te.function(build, platform=platform), *shapes))


def test_padded_windows_of_maxima_are_one_call_on_a_tpu_and_those_of_sums_are_slices() -> None:
    x = struct(4, 32, 64, 64)
    pools = {"max": te.ops.max_pool2d, "sum": te.ops.avg_pool2d}
    called = {
        name: "reduce_window" in text_for("tpu", lambda x, pool=pool: pool(x, 3, strides=1, padding=1), x)
        for name, pool in pools.items()
    }
    assert called == {"max": True, "sum": False}


def test_rows_that_overlap_are_blocks_on_a_tpu() -> None:
    shapes = struct(32, 48, 48), struct(32, 56, 56)
    tiled = {p: "jnp.tile" in text_for(p, scores, *shapes) for p in OTHERS}
    assert tiled == {"gpu": True, "tpu": False}


def test_weights_that_are_computed_sooner_than_a_loop_starts_are_no_lines() -> None:
    def correlated(r: Any) -> Any:
        """Averages whose weights fall with the distance, on both sides."""
        b, n = r.shape
        s = te.reduce_axis((0, n), "s")
        return te.compute((b, n), lambda b, t: te.sum(te.exp(-((s - t) ** 2) / 100.0) * r[b, s], axis=s), "g")

    lines = {
        n: {p for p in ("cpu", *OTHERS) if "g_line" in text_for(p, correlated, struct(64, n))}
        for n in (512, 2048)
    }
    assert lines == {512: {"cpu"}, 2048: {"cpu", *OTHERS}}


def overlaps(h: Any, g: Any) -> Any:
    k = te.reduce_axis((0, h.shape[1]), "k")
    return te.compute(
        (h.shape[0], g.shape[0]), lambda i, j: te.sum(te.minimum(h[i, k], g[j, k]), axis=k), "s"
    )


def test_what_is_reduced_has_its_dimensions_as_most_arrays_have_them_on_a_tpu(
    rng: np.random.Generator,
) -> None:
    """Of ``H[i, j]``, ``h[i, k]`` and ``g[j, k]`` none is transposed; where one contradicts the others, the smallest is."""
    shapes = struct(64, 8), struct(48, 8)
    transposed = {p: text_for(p, overlaps, *shapes).count(".T") for p in ("cpu", "tpu")}
    assert transposed["tpu"] == 0 < transposed["cpu"]

    def contradicted(h: Any, g: Any) -> Any:
        j = te.reduce_axis((0, h.shape[1]), "j")
        return te.compute(
            (h.shape[0],), lambda i: te.sum(te.tanh(h[i, j] - g[j, i % g.shape[1]]), axis=j), "s"
        )

    assert "g.T" in text_for("tpu", contradicted, struct(64, 8), struct(8, 64))
    h, g = (rng.normal(size=s.shape).astype("float32") for s in shapes)
    expected, pull = jax.vjp(lambda h, g: jnp.sum(jnp.minimum(h[:, None], g[None]), axis=-1), h, g)
    found, own_pull = jax.vjp(te.function(overlaps, platform="tpu"), h, g)
    for a, b in zip((found, *own_pull(expected)), (expected, *pull(expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
