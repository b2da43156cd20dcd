"""Sums by columns for the same few positions, one pass for each step of a chain, are summed up together at last."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

STEPS = 3


def plane(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")
    rows, columns = (extent - 2 for extent in x.shape)
    body = lambda i, j: te.sum(te.tanh(x[i + k, j + m]) * w[k, m], axis=[k, m])  # noqa: E731
    return te.compute((rows, columns), body)


def plain_plane(x: Any, w: Any) -> Any:
    rows, columns = (extent - 2 for extent in x.shape)
    h = jnp.tanh(x)
    return sum(w[k, m] * h[k : k + rows, m : m + columns] for k in range(3) for m in range(3))


def channels(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Each channel with a kernel of its own."""
    k = te.reduce_axis((0, 5), "k")
    n, c, m = x.shape
    return te.compute((n, c, m - 4), lambda n, c, i: te.sum(te.sin(x[n, c, i + k]) * w[c, k], axis=k))


def plain_channels(x: Any, w: Any) -> Any:
    m = x.shape[2] - 4
    return sum(w[:, k, None] * jnp.sin(x)[:, :, k : k + m] for k in range(5))


def reflected(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """The transposed kernel, subtracted from the elements."""
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")
    rows, columns = (extent - 2 for extent in x.shape)
    body = lambda i, j: x[i, j] - te.sum(x[i + k, j + m] ** 2 * w[m, k], axis=[k, m])  # noqa: E731
    return te.compute((rows, columns), body)


def plain_reflected(x: Any, w: Any) -> Any:
    rows, columns = (extent - 2 for extent in x.shape)
    near = [[x[k : k + rows, m : m + columns] ** 2 for m in range(3)] for k in range(3)]
    return x[:rows, :columns] - sum(w[m, k] * near[k][m] for k in range(3) for m in range(3))


CASES: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...]]] = {
    "planes": (plane, plain_plane, ((70, 64), (3, 3))),
    "channels": (channels, plain_channels, ((6, 4, 300), (4, 5))),
    "reflected": (reflected, plain_reflected, ((70, 64), (3, 3))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another term"])
def test_one_last_sum_for_all_steps(name: str, beside: bool, rng: np.random.Generator) -> None:
    step, plain, shapes = CASES[name]

    def chain(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        scale = te.compute(w.shape, lambda *at: w[at] ** 2)
        for _ in range(STEPS):
            x = step(x, w)
        corner = tuple(0 for _ in w.shape)
        return te.compute(x.shape, lambda *at: x[at] + scale[corner]) if beside else x

    def plain_chain(x: Any, w: Any) -> Any:
        start = w.ravel()[0] ** 2
        for _ in range(STEPS):
            x = plain(x, w)
        return x + start if beside else x

    arrays = [0.3 * rng.normal(size=shape).astype("float32") for shape in shapes]
    expected, pull = jax.vjp(plain_chain, *arrays)
    h = rng.normal(size=expected.shape).astype("float32")
    function = te.function(chain)
    own = jax.jit(lambda *a: jax.vjp(function, *a)[1](h))(*arrays)
    for found, right in zip(own, pull(h), strict=True):
        np.testing.assert_allclose(found, right, rtol=2e-4, atol=2e-4 * np.abs(right).max())
    text = str(function.source(*arrays))
    assert text.count("lax.reduce(") == STEPS
    assert text.count("jnp.concatenate([item for items in zip(") == 1
    assert len(re.findall(r"jnp\.sum\(", text)) == 1 + beside
    assert "jnp.stack(" not in text


def test_one_pass_alone_is_stacked() -> None:
    x, w = te.placeholder((70, 64), name="x"), te.placeholder((3, 3), name="w")
    text = str(te.function([x, w], plane(x, w)).source())
    assert "jnp.stack(" in text
    assert "jnp.concatenate(" not in text


def test_sizes_that_are_symbols(rng: np.random.Generator) -> None:
    n = te.var("n")
    x, w = te.placeholder((n, 64), name="x"), te.placeholder((3, 3), name="w")
    y = plane(plane(x, w), w)
    function = te.function([x, w], y)
    arrays = [0.3 * rng.normal(size=shape).astype("float32") for shape in ((40, 64), (3, 3))]
    expected, pull = jax.vjp(lambda x, w: plain_plane(plain_plane(x, w), w), *arrays)
    _, own = jax.vjp(function, *arrays)
    for found, right in zip(own(np.ones_like(expected)), pull(np.ones_like(expected)), strict=True):
        np.testing.assert_allclose(found, right, rtol=2e-4, atol=2e-4 * np.abs(right).max())
    assert "for items in zip(" in str(function.source())
