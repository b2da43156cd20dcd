"""Gradients by a distance in tiles: a block of rows adds to a slab as long as the block and its halo, at one position for each row."""

import re

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te


def attention(n: int):
    def build(q, k, v, bias):
        c, j = te.reduce_axis((0, q.shape[2]), "c"), te.reduce_axis((0, n), "j")
        scores = te.compute(
            (q.shape[0], n, n),
            lambda a, i, j: te.sum(q[a, i, c] * k[a, j, c], axis=c) + bias[a, i - j + n - 1],
            "scores",
        )
        p = te.ops.softmax(scores)
        return te.compute(v.shape, lambda a, i, c: te.sum(p[a, i, j] * v[a, j, c], axis=j), "o")

    return te.function(build)


def test_tiles_of_many_rows_whatever_the_size() -> None:
    """1,024 tiles of one row took a thousand times as long as twice the rows of half the size."""
    for n in (1024, 2048):
        shapes = [(4, n, 32)] * 3 + [(4, 2 * n - 1)]
        source = te.source(attention(n), *[jax.ShapeDtypeStruct(s, "float32") for s in shapes])
        backward = source[source.index("def backward") :]
        steps = [int(step) for step in re.findall(rf"jnp\.arange\(0, {n}, (\d+)\)\)", backward)]
        assert steps and min(steps) >= 16 and f"jnp.arange({n}))" not in backward


def test_values_in_tiles(rng) -> None:
    n = 17
    q, k, v = (jnp.asarray(rng.normal(size=(2, n, 3)), "float32") for _ in range(3))
    bias = jnp.asarray(rng.normal(size=(2, 2 * n - 1)), "float32")

    def plain(q, k, v, bias):
        i = np.arange(n)
        scores = jnp.einsum("aic,ajc->aij", q, k) + bias[:, i[:, None] - i[None] + n - 1]
        return jnp.einsum("aij,ajc->aic", jax.nn.softmax(scores, -1), v)

    fn = attention(n)
    tiled = te.function(lambda *args: fn(*args), max_memory=2 * n * 4 * 5)
    assert "lax.scan" in te.source(tiled, q, k, v, bias)
    loss = lambda f: lambda *args: jnp.sum(jnp.sin(f(*args)))  # noqa: E731
    want = jax.grad(loss(plain), (0, 1, 2, 3))(q, k, v, bias)
    for own, other in zip(jax.grad(loss(tiled), (0, 1, 2, 3))(q, k, v, bias), want, strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-5)
