"""Sums inside of choices: matrix products where a choice does not depend on what is summed; values, gradients and counts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from jaxte.planning.indices import fewer_axes
from jaxte.planning.orders import contraction
from tests.agreement import interpreted
from tests.xla_counts import Fused


def hats(x: te.Tensor, c: te.Tensor) -> te.Tensor:
    """A layer of piecewise linear functions, by their values at whole numbers."""
    i, k = te.reduce_axis((0, x.shape[1]), "i"), te.reduce_axis((0, c.shape[2]), "k")
    hat = lambda b: te.relu(1 - te.abs(x[b, i] - k))  # noqa: E731
    return te.compute((x.shape[0], c.shape[1]), lambda b, o: te.sum(hat(b) * c[i, o, k], axis=(i, k)), "y")


def plain_hats(x: jax.Array, c: jax.Array) -> jax.Array:
    hat = jax.nn.relu(1 - jnp.abs(x[:, :, None] - jnp.arange(c.shape[2])))
    return jnp.einsum("bik,iok->bo", hat, c)


def histogram(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """A soft histogram of two variables."""
    i = te.reduce_axis((0, x.shape[0]), "i")
    share = lambda z, a: te.maximum(1 - te.abs(z[i] - a), 0)  # noqa: E731
    return te.compute((12, 14), lambda a, b: te.sum(share(x, a) * share(y, b), axis=i), "y")


def plain_histogram(x: jax.Array, y: jax.Array) -> jax.Array:
    share = lambda z, n: jnp.maximum(1 - jnp.abs(z[:, None] - jnp.arange(n)), 0)  # noqa: E731
    return share(x, 12).T @ share(y, 14)


def hinges(x: te.Tensor, t: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A layer of functions with learned kinks."""
    i, k = te.reduce_axis((0, x.shape[1]), "i"), te.reduce_axis((0, t.shape[0]), "k")
    return te.compute(
        (x.shape[0], w.shape[2]),
        lambda b, o: te.sum(te.relu(x[b, i] - t[k]) * w[i, k, o], axis=(i, k)),
        "y",
    )


def plain_hinges(x: jax.Array, t: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.einsum("bik,iko->bo", jax.nn.relu(x[:, :, None] - t), w)


def votes(s: te.Tensor, q: te.Tensor, v: te.Tensor) -> te.Tensor:
    """Scores of pairs, counted where a third array says so, with another sign elsewhere: a choice that is written."""
    j, d = te.reduce_axis((0, s.shape[1]), "j"), te.reduce_axis((0, q.shape[1]), "d")

    def term(i: te.Axis) -> te.Expr:
        product = q[i, d] * v[j, d]
        return te.select(s[i, j] > 1, 2 * product, te.select(s[i, j] > 0, product, -product * s[i, j]))

    return te.compute((s.shape[0],), lambda i: te.sum(term(i), axis=(j, d)), "y")


def plain_votes(s: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.sum((q @ v.T) * jnp.where(s > 1, 2.0, jnp.where(s > 0, 1.0, -s)), axis=1)


CASES: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...]]] = {
    "hats": (hats, plain_hats, ((40, 12), (12, 32, 8))),
    "histogram": (histogram, plain_histogram, ((300,), (300,))),
    "hinges": (hinges, plain_hinges, ((40, 12), (6,), (12, 6, 32))),
    "votes": (votes, plain_votes, ((40, 30), (40, 16), (30, 16))),
}


def arrays_of(name: str, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.uniform(-0.9, 1.9, size=s).astype("float32") for s in CASES[name][2]]


def compiled(function: Any, head: np.ndarray, arrays: list[np.ndarray]) -> Any:
    both = with_gradients(function, tuple(range(len(arrays))))
    return Fused(jax.jit(both).lower([head], *arrays))


@pytest.mark.parametrize("name", CASES)
def test_beside_products_of_matrices(
    name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, plain, _ = CASES[name]
    arrays = arrays_of(name, rng)
    head = rng.normal(size=plain(*arrays).shape).astype("float32")
    value, pull = jax.vjp(te.function(build), *arrays)
    expected, plain_pull = jax.vjp(plain, *arrays)
    for a, b in zip((value, *pull(head)), (expected, *plain_pull(head)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * float(np.abs(b).max()))
    own = compiled(te.function(build), head, arrays)
    theirs = compiled(plain, head, arrays)
    assert own.cost_analysis()["flops"] <= 1.2 * theirs.cost_analysis()["flops"]
    assert (
        own.memory_analysis().temp_size_in_bytes <= 1.5 * theirs.memory_analysis().temp_size_in_bytes + 8192
    )
    assert "while" not in own.as_text()
    monkeypatch.setattr(contraction, "FEW_POSITIONS", 10**9)
    monkeypatch.setattr(fewer_axes, "FEWER", 10**9)
    without = compiled(te.function(build), head, arrays)
    assert without.cost_analysis()["flops"] >= 1.3 * own.cost_analysis()["flops"]


def test_what_a_choice_leaves_out_may_be_infinite(rng: np.random.Generator) -> None:
    """A quotient stays in its branch, and a matrix product is summed where the choice is made."""
    s, v = te.placeholder((6, 8), name="s"), te.placeholder((8, 9), name="v")
    j, d = te.reduce_axis((0, 8), "j"), te.reduce_axis((0, 9), "d")
    q = te.placeholder((6, 9), name="q")
    y = te.compute(
        (6,),
        lambda i: te.sum(te.select(s[i, j] != 0, q[i, d] * v[j, d] / s[i, j], 0.0), axis=(j, d)),
        "y",
    )
    feeds = {t: rng.normal(size=t.shape).astype("float32") for t in (s, q, v)}
    feeds[s][:, ::3] = 0.0
    np.testing.assert_allclose(
        te.function([s, q, v], y)(*feeds.values()), interpreted(y, feeds), rtol=1e-4, atol=1e-4
    )


def test_an_infinity_that_no_choice_takes_counts_for_nothing(rng: np.random.Generator) -> None:
    arrays = arrays_of("hinges", rng)
    arrays[2][3, 5] = np.inf
    arrays[0][:, 3] = arrays[1][5] - 1.0
    head = np.ones((40, 32), "float32")
    _, pull = jax.vjp(te.function(hinges), *arrays)
    assert np.isfinite(pull(head)[0]).all()
