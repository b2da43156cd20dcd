"""What is reduced of slices is one array before it is reduced; XLA would copy each of the slices. Sums of many slices are taken in parts."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

Build = Callable[..., te.Tensor]


def variation(x: te.Tensor) -> te.Tensor:
    n, m = x.shape
    i, j = te.reduce_axis((0, n - 1), "i"), te.reduce_axis((0, m - 1), "j")
    step = lambda: te.abs(x[i + 1, j] - x[i, j]) + te.abs(x[i, j + 1] - x[i, j])  # noqa: E731
    return te.compute((), lambda: te.sum(step(), axis=(i, j)), "y")


def plain_variation(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.abs(x[1:, :-1] - x[:-1, :-1]) + jnp.abs(x[:-1, 1:] - x[:-1, :-1]))


def roughness(x: te.Tensor) -> te.Tensor:
    n, m = x.shape
    j = te.reduce_axis((0, m - 2), "j")
    bend = lambda i: (x[i, j] - 2 * x[i, j + 1] + x[i, j + 2]) * te.tanh(x[i, j + 1])  # noqa: E731
    return te.compute((n,), lambda i: te.sum(bend(i), axis=j), "y")


def plain_roughness(x: jax.Array) -> jax.Array:
    return jnp.sum((x[:, :-2] - 2 * x[:, 1:-1] + x[:, 2:]) * jnp.tanh(x[:, 1:-1]), axis=1)


def steepest(x: te.Tensor) -> te.Tensor:
    n, m = x.shape
    i = te.reduce_axis((0, n - 1), "i")
    return te.compute((m,), lambda j: te.max(te.abs(x[i + 1, j] - x[i, j]), axis=i), "y")


def plain_steepest(x: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(x[1:] - x[:-1]), axis=0)


def colours(x: te.Tensor) -> te.Tensor:
    """The variation of all channels of a pixel together."""
    n, m, _ = x.shape
    c, i, j = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, n - 1), "i"), te.reduce_axis((0, m - 1), "j")
    step = lambda i, j: (x[i + 1, j, c] - x[i, j, c]) ** 2 + (x[i, j + 1, c] - x[i, j, c]) ** 2  # noqa: E731
    g = te.compute((n - 1, m - 1), lambda i, j: te.sum(step(i, j), axis=c), "g")
    return te.compute((), lambda: te.sum(te.sqrt(g[i, j] + 1e-3), axis=(i, j)), "y")


def plain_colours(x: jax.Array) -> jax.Array:
    steps = (x[1:, :-1] - x[:-1, :-1]) ** 2 + (x[:-1, 1:] - x[:-1, :-1]) ** 2
    return jnp.sum(jnp.sqrt(jnp.sum(steps, -1) + 1e-3))


def lengths(x: te.Tensor) -> te.Tensor:
    """How far points move, in all steps together."""
    n, m, _ = x.shape
    c, t = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, n - 1), "t")
    d = te.compute((n - 1, m), lambda t, i: te.sum((x[t + 1, i, c] - x[t, i, c]) ** 2, axis=c), "d")
    far = te.compute((n - 1, m), lambda t, i: te.sqrt(d[t, i] + 1e-3), "far")
    return te.compute((m,), lambda i: te.sum(far[t, i], axis=t), "y")


def plain_lengths(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sqrt(jnp.sum((x[1:] - x[:-1]) ** 2, -1) + 1e-3), axis=0)


def angles(x: te.Tensor) -> te.Tensor:
    """The largest cosine between a vector and the next one in its row."""
    n, m, _ = x.shape
    c, e, j = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, 3), "e"), te.reduce_axis((0, m - 1), "j")
    norm = te.compute((n, m), lambda i, j: te.sum(x[i, j, c] * x[i, j, c], axis=c), "norm")
    dot = te.compute((n, m - 1), lambda i, j: te.sum(x[i, j, e] * x[i, j + 1, e], axis=e), "dot")
    return te.compute((n,), lambda i: te.max(dot[i, j] / (1 + norm[i, j]), axis=j), "y")


def plain_angles(x: jax.Array) -> jax.Array:
    return jnp.max(jnp.sum(x[:, :-1] * x[:, 1:], -1) / (1 + jnp.sum(x * x, -1)[:, :-1]), axis=1)


VECTORS = {
    "colours": (colours, plain_colours),
    "lengths": (lengths, plain_lengths),
    "angles": (angles, plain_angles),
}
CASES = {
    "variation": (variation, plain_variation),
    "roughness": (roughness, plain_roughness),
    "steepest": (steepest, plain_steepest),
}


def temporaries(function: Callable[..., jax.Array], x: np.ndarray) -> int:
    compiled = Fused(jax.jit(function).lower(x))
    return int(compiled.memory_analysis().temp_size_in_bytes)


@pytest.mark.parametrize("name", CASES)
def test_one_array_in_place_of_the_slices(name: str, rng: np.random.Generator) -> None:
    build, plain = CASES[name]
    x = rng.standard_normal((96, 80)).astype("float32")
    own = te.function(build)
    np.testing.assert_allclose(own(x), plain(x), rtol=1e-5, atol=1e-4)
    held = temporaries(own, x)
    assert held < 1.3 * 96 * 80 * 4 and temporaries(plain, x) >= 1.8 * held
    slope = lambda f: jax.grad(lambda a: jnp.sum(f(a) ** 2))(x)  # noqa: E731
    np.testing.assert_allclose(slope(own), slope(plain), rtol=1e-3, atol=1e-2)


def test_small_and_whole_arrays_and_other_platforms_stay_as_they_are() -> None:
    a, b = te.placeholder((96, 80), name="a"), te.placeholder((96, 80), name="b")
    i, j = te.reduce_axis((0, 96), "i"), te.reduce_axis((0, 80), "j")
    whole = te.compute((), lambda: te.sum(te.exp(a[i, j]) * b[i, j], axis=(i, j)), "whole")
    small = variation(te.placeholder((20, 20), name="x"))
    assert "_apart(jnp" not in te.source(whole) + te.source(small)
    assert "_apart(jnp" in te.source(variation(a))
    x = np.zeros((96, 80), "float32")
    assert "_apart(jnp" not in te.function(variation, platform="gpu").source(x)


def copied(function: Callable[..., jax.Array], *args: np.ndarray) -> int:
    """How many slices are no part of a loop that computes something."""
    text = jax.jit(function).lower(*args).compile().as_text()
    return len(re.findall(r"= f32\S* slice\(", text[text.index("ENTRY") :]))


@pytest.mark.parametrize("name", VECTORS)
def test_elements_of_vectors_that_other_tensors_take_apart_are_not_copied(
    name: str, rng: np.random.Generator
) -> None:
    build, plain = VECTORS[name]
    x = rng.standard_normal((48, 40, 3)).astype("float32")
    own = te.function(build)
    np.testing.assert_allclose(own(x), plain(x), rtol=1e-5, atol=1e-4)
    assert copied(own, x) == 0
    slope = lambda f: jax.grad(lambda a: jnp.sum(f(a)))(x)  # noqa: E731
    np.testing.assert_allclose(slope(own), slope(plain), rtol=1e-4, atol=1e-5)
    assert "_apart" not in te.function(build, platform="gpu").source(x).split("def backward")[0]


def test_what_is_returned_too_is_an_array_as_it_is(rng: np.random.Generator) -> None:
    def build(x: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
        c, j = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, 40), "j")
        d = te.compute((48, 40), lambda i, j: te.sum(x[i, j, c] ** 2, axis=c), "d")
        return d, te.compute((48,), lambda i: te.sum(te.sqrt(d[i, j]), axis=j), "y")

    x = rng.standard_normal((48, 40, 3)).astype("float32")
    assert "_apart" not in te.function(build).source(x).split("def backward")[0]


# --- sums of many slices


def filtered(taps: int) -> Build:
    """Each feature by a filter of its own."""

    def build(x: te.Tensor, h: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, taps), "k")
        element = lambda b, t, c: te.sum(x[b, t - k, c] * h[k, c], axis=k, where=k <= t)  # noqa: E731
        return te.compute(x.shape, element, "y")

    return build


def plain_filtered(x: jax.Array, h: jax.Array) -> jax.Array:
    taps, length = h.shape[0], x.shape[1]
    padded = jnp.pad(x, ((0, 0), (taps - 1, 0), (0, 0)))
    windows = jnp.stack([padded[:, taps - 1 - k : taps - 1 - k + length] for k in range(taps)])
    return jnp.einsum("kbtc,kc->btc", windows, h)


def faded(taps: int) -> Build:
    """The sequence, gated, by weights of the distance, gated again."""

    def build(x: te.Tensor, h: te.Tensor) -> te.Tensor:
        s = te.reduce_axis((0, x.shape[1]), "s")
        gate = lambda b, s, c: te.sigmoid(x[b, s, c]) * x[b, s, c]  # noqa: E731
        near = lambda s, t: (s <= t) & (t < s + taps)  # noqa: E731
        element = lambda b, t, c: te.sum(gate(b, s, c) * h[t - s, c], axis=s, where=near(s, t))  # noqa: E731
        return te.compute(x.shape, element, "y")

    return build


def plain_faded(x: jax.Array, h: jax.Array) -> jax.Array:
    return plain_filtered(jax.nn.sigmoid(x) * x, h)


def ahead(taps: int) -> Build:
    """What comes next, weighted by how far away it is."""

    def build(x: te.Tensor, h: te.Tensor) -> te.Tensor:
        n = x.shape[1]
        k = te.reduce_axis((0, taps), "k")
        element = lambda b, t, c: te.sum(x[b, t + k, c] * h[k, c], axis=k, where=t + k < n)  # noqa: E731
        return te.compute(x.shape, element, "y")

    return build


def plain_ahead(x: jax.Array, h: jax.Array) -> jax.Array:
    return plain_filtered(x[:, ::-1], h)[:, ::-1]


@pytest.mark.parametrize(
    ("build", "plain"), [(filtered, plain_filtered), (faded, plain_faded), (ahead, plain_ahead)]
)
def test_many_slices_are_added_in_parts(
    build: Callable[[int], Build], plain: Callable[..., jax.Array], rng: np.random.Generator
) -> None:
    arrays = [rng.standard_normal(s).astype("float32") for s in ((2, 112, 4), (112, 4))]
    own = te.function(build(112), forms={"*": "slices of a line"})
    assert "_added((" in own.source(*arrays)
    assert max(map(len, loops(own, *arrays))) <= 64  # two slices in each of 32 terms
    np.testing.assert_allclose(own(*arrays), plain(*arrays), rtol=1e-4, atol=1e-4)
    slopes = lambda f: jax.grad(lambda x, h: jnp.sum(f(x, h) ** 2), (0, 1))(*arrays)  # noqa: E731
    for ours, theirs in zip(slopes(own), slopes(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-2)
    tangents = [rng.standard_normal(a.shape).astype("float32") for a in arrays]
    ours, theirs = (jax.jvp(f, arrays, tangents)[1] for f in (own, plain))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_few_slices_and_other_platforms_add_in_one_loop() -> None:
    arrays = [np.zeros(s, "float32") for s in ((2, 112, 4), (112, 4))]
    assert "_added(" not in te.function(filtered(96), forms={"*": "slices of a line"}).source(
        arrays[0], arrays[1][:96]
    )
    for platform in ("gpu", "tpu"):
        assert "_added(" not in te.function(filtered(112), platform=platform).source(*arrays)


def loops(function: Callable[..., jax.Array], *args: np.ndarray) -> list[list[str]]:
    """The slices in each loop of what XLA compiles."""
    text = jax.jit(function).lower(*args).compile().as_text()
    return [re.findall(r" slice\(", part) for part in text.split("\n}\n")]
