"""Intermediates made of gathers, with the rows that are read last, and weights outside of sums over gathered rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.rewrites import hoist
from jaxte.tensors.tensor import Tensor


def bilinear(x: Tensor, at: Tensor, v: Tensor) -> Tensor:
    """y[n, o] = sum of v[o, c, i] times x[n, c, 0] between the positions at and at + 1, zero outside."""
    images, channels, _, length = x.shape
    i, c = te.reduce_axis((0, at.shape[1]), "i"), te.reduce_axis((0, channels), "c")
    first = te.compute(at.shape, lambda n, i: te.cast(te.floor(at[n, i]), "int32"), "first")

    def sample(n: Any, c: Any, i: Any) -> Any:
        part = at[n, i] - te.floor(at[n, i])
        ends = []
        for k in range(2):
            place = first[n, i] + k
            inside = (place >= 0) & (place < length)
            ends.append(te.select(inside, x[n, c, 0, place], 0.0) * (part if k else 1 - part))
        return ends[0] + ends[1]

    s = te.compute((images, channels, at.shape[1]), sample, "s")
    return te.compute(
        (images, v.shape[0]), lambda n, o: te.sum(v[o, c, i] * te.sin(s[n, c, i]), axis=[c, i]), "y"
    )


def plain(x: Any, at: Any, v: Any) -> Any:
    first, part = jnp.floor(at).astype("int32"), at - jnp.floor(at)
    total = 0.0
    for k in range(2):
        place = first + k
        inside = (place >= 0) & (place < x.shape[3])
        rows = jnp.take_along_axis(x[:, :, 0], jnp.clip(place, 0, x.shape[3] - 1)[:, None], 2)
        total += jnp.where(inside[:, None], rows, 0.0) * (part if k else 1 - part)[:, None]
    return jnp.einsum("oci,nci->no", v, jnp.sin(total))


def arrays(channels: int) -> list[np.ndarray]:
    rng = np.random.default_rng(channels)
    shapes = (2, channels, 1, 7), (2, 5), (3, channels, 5)
    x, _, v = (rng.standard_normal(s).astype(np.float32) for s in shapes)
    return [x, rng.uniform(-2, 8, shapes[1]).astype(np.float32), v]


def graded(fn: Callable[..., Any]) -> Callable[..., Any]:
    return jax.value_and_grad(lambda *a: jnp.sum(jnp.sin(fn(*a))), (0, 1, 2))


@pytest.mark.parametrize("channels", [2, 8, 13])
def test_values_and_gradients(channels: int) -> None:
    own = arrays(channels)
    found, wanted = jax.jit(graded(te.function(bilinear)))(*own), graded(plain)(*own)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_rows_are_last_in_what_is_made_of_gathers() -> None:
    source = te.function(bilinear).source(*arrays(8))
    text = source[source.index("def forward(") : source.index("def backward(")]
    assert "s[n, i, c] = " in text
    assert "transpose" not in text
    few = te.function(bilinear).source(*arrays(2))  # rows of two are not worth it
    assert "s[n, c, i] = " in few


def test_outputs_and_overridden_graphs_keep_their_axes() -> None:
    def both(x: Tensor, at: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        y = bilinear(x, at, v)
        return y, y.inputs[1]

    own = arrays(8)
    samples = te.function(both)(*own)[1]
    assert samples.shape == (2, 8, 5)
    assert "s[n, c, i] = " in te.function(both).source(*own)


@pytest.mark.parametrize("few", [False, True])
def test_weights_leave_the_sums_over_rows(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sum over rows for each place, also under guards, and of what is negated; a single one where the rows are few."""
    if not few:
        monkeypatch.setattr(hoist, "LARGE_ROWS", 0)

    def definition(x: Tensor, g: Tensor, at: Tensor, w: Tensor) -> Tensor:
        c = te.reduce_axis((0, x.shape[1]), "c")

        def body(i: Any) -> Any:
            above = te.select(at[i] + 1 < x.shape[0], x[at[i] + 1, c], 0.0)
            return te.sum(g[i, c] * w[i, 0] * x[at[i], c] - (g[i, c] * w[i, 1] * above), axis=c)

        return te.compute(at.shape, body, "y")

    rng = np.random.default_rng(0)
    x, g, w = (rng.standard_normal(s).astype(np.float32) for s in ((4, 3), (5, 3), (5, 2)))
    at = np.array([0, 3, 2, 1, 2], np.int32)
    source = te.function(definition).source(x, g, at, w)
    text = source[source.index("def forward(") : source.index("def backward(")].split('"""')[2]
    sums = len(re.findall(r"jnp\.sum\(g \* \w+, axis=1\)|jnp\.einsum\(\"ic,ic->i\", g, \w+\)", text))
    assert sums == (0 if few else 2)
    padded = np.concatenate([x, np.zeros_like(x[:1])])
    wanted = w[:, 0] * np.sum(g * x[at], 1) - w[:, 1] * np.sum(g * padded[at + 1], 1)
    np.testing.assert_allclose(te.function(definition)(x, g, at, w), wanted, rtol=1e-5)


def test_a_weight_that_is_infinite_where_a_guard_excludes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hoist, "LARGE_ROWS", 0)

    def definition(x: Tensor, g: Tensor, at: Tensor, w: Tensor) -> Tensor:
        c = te.reduce_axis((0, x.shape[1]), "c")

        def body(i: Any) -> Any:
            inside = at[i] < x.shape[0]
            one, two = (te.select(inside, x[at[i], c] * g[i, c] / w[i, k], 0.0) for k in range(2))
            return te.sum(one + two, axis=c)

        return te.compute(at.shape, body, "y")

    rng = np.random.default_rng(0)
    x, g, w = (rng.standard_normal(s).astype(np.float32) for s in ((4, 3), (5, 3), (5, 2)))
    at = np.array([0, 3, 4, 1, 2], np.int32)
    w[2] = 0
    found = te.function(definition)(x, g, at, w)
    rows = np.sum(x[np.minimum(at, 3)] * g, 1)
    wanted = np.where(at < 4, rows * np.divide(1, w, where=w != 0, out=np.zeros_like(w)).sum(1), 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
