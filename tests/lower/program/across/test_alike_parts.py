"""Parts that differ in a position alone are a loop in the text, and the same to XLA."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te


def distances(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), "k")
    i, j = te.reduce_axis((0, x.shape[0]), "i"), te.reduce_axis((0, y.shape[0]), "j")
    return te.compute(
        (), lambda: te.sum(te.exp(-te.sum((x[i, k] - y[j, k]) ** 2, axis=k)), axis=(i, j)), "energy"
    )


def test_columns_are_a_loop() -> None:
    fn, plain = te.function(distances), lambda x, y: np.exp(-((x[:, None] - y) ** 2).sum(-1)).sum()
    x, y = (np.random.default_rng(n).normal(size=(50 - 9 * n, 3)).astype("float32") for n in range(2))
    text = fn.source(x, y)
    assert "jnp.stack([2 * jnp.sum(dmmd" not in text
    assert text.count("for k in range(3)]") == 2 and text.count("x[:, k, None] - y[None, :, k]") == 2
    np.testing.assert_allclose(fn(x, y), plain(x, y), rtol=1e-6)
    slopes = jax.grad(lambda *a: jnp.exp(-((a[0][:, None] - a[1]) ** 2).sum(-1)).sum(), (0, 1))(x, y)
    for own, expected in zip(jax.grad(fn, (0, 1))(x, y), slopes, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-6)


def test_parts_that_differ_in_more_stay_as_they_are() -> None:
    x = te.placeholder((6, 9), name="x")
    for places in ([0, 1, 3, 4], [0, 2, 1, 3]):
        rows = te.stack(
            [
                te.compute((6,), lambda i, p=p: te.sin(x[i, p]) * x[i, 8] + te.cos(x[i, p]), "r")
                for p in places
            ]
        )
        assert "range(" not in te.source(rows)
