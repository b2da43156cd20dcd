"""Gradients by a distance in tiles: a block of rows adds to a slab as long as the block and its halo, at one position for each row."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


def pairs(n: int, where: str):
    """A sum over weighted pairs, with a table of what their distance counts."""
    distance = {
        "ahead": lambda i, j: i - j + n - 1,
        "behind": lambda i, j: j - i + n - 1,
        "until then": lambda i, j: i - j,
    }[where]

    def build(x, y, table):
        j = te.reduce_axis((0, n), "j")
        weight = te.compute((n, n), lambda i, j: te.exp(-((x[i] - y[j]) ** 2)), "weight")

        def element(i):
            counts = where != "until then" or j <= i
            return te.sum(te.sin(weight[i, j] * table[distance(i, j)]), axis=j, where=counts)

        return te.compute((n,), element, "o")

    def plain(x, y, table):
        i = np.arange(n)
        weight = jnp.exp(-((x[:, None] - y) ** 2))
        terms = jnp.sin(weight * table[distance(i[:, None], i[None])])
        if where == "until then":
            terms = jnp.where(i[:, None] >= i, terms, 0)
        return terms.sum(1)

    return build, plain


@pytest.mark.parametrize("n", [16, 23])
@pytest.mark.parametrize("where", ["ahead", "behind", "until then"])
def test_tables_of_distances_and_all_other_gradients_are_one_pass(where: str, n: int, rng) -> None:
    build, plain = pairs(n, where)
    args = [rng.normal(size=s) for s in (n, n, n if where == "until then" else 2 * n - 1)]
    with jax.enable_x64(True):
        tiled = te.function(build, max_memory=8 * n * 4)
        assert str(te.source(tiled, *args)).split("def backward")[1].count("lax.scan(") == 1
        loss = lambda f: lambda *args: jnp.sum(jnp.sin(f(*args)))  # noqa: E731
        want = jax.grad(loss(plain), (0, 1, 2))(*args)
        for own, other in zip(jax.grad(loss(tiled), (0, 1, 2))(*args), want, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


def test_tiles_of_many_rows_whatever_the_size() -> None:
    """1,024 tiles of one row took a thousand times as long as twice the rows of half the size."""
    for n in (1024, 2048):
        shapes = [(4, n, 32)] * 3 + [(4, 2 * n - 1)]
        source = te.source(attention(n), *[jax.ShapeDtypeStruct(s, "float32") for s in shapes])
        backward = source[source.index("def backward") :]
        steps = [int(step) for step in re.findall(rf"jnp\.arange\(0, {n}, (\d+)\)\)", backward)]
        assert len(steps) == 1 and steps[0] >= 16 and f"jnp.arange({n}))" not in backward


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
