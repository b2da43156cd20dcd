"""Masks of a nearest point are weights that are large where both sides coincide: their differences stay together."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te


def nearest(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    (n, c), m = x.shape, y.shape[0]
    q, j = te.reduce_axis((0, c), "q"), te.reduce_axis((0, m), "j")
    d = te.compute((n, m), lambda i, j: te.sum((x[i, q] - y[j, q]) ** 2, axis=q), "d")
    return te.compute((n,), lambda i: te.min(d[i, j], axis=j), "m")


def test_gradients_of_clouds_that_nearly_match() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 3)).astype("float32")
    x = y + rng.normal(scale=1e-4, size=y.shape).astype("float32")
    fn = te.function(nearest)
    assert "those of a nearest point" in str(te.explain(fn, x, y))
    found = jax.jit(jax.grad(lambda x: jnp.sum(fn(x, y))))(x)
    expected = 2 * (x.astype("float64") - y)  # each point has its own as the nearest
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
