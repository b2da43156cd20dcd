"""Reductions at all remainders of a stride are one; those at some of them, or that differ otherwise, stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

Build = Callable[..., te.Tensor]


def pruned(L: te.Tensor, P: te.Tensor) -> te.Tensor:
    """What is below two branches of each node of a tree: likelihoods of states."""
    t, s = te.reduce_axis((0, 4), "t"), te.reduce_axis((0, 4), "s")
    return te.compute(
        (5, 7, 4),
        lambda i, site, a: (
            te.sum(P[2 * i, a, t] * L[2 * i, site, t], axis=t)
            * te.sum(P[2 * i + 1, a, s] * L[2 * i + 1, site, s], axis=s)
        ),
        "y",
    )


def pruned_by_jax(L: Any, P: Any) -> Any:
    below = jnp.einsum("nat,nlt->nla", P, L)
    return below[::2] * below[1::2]


def tournament(x: te.Tensor) -> te.Tensor:
    """Largest and smallest of three neighbours' best elements."""
    k = te.reduce_axis((0, 6), "k")
    best = [te.compute((4,), lambda i, r=r: te.max(x[3 * i + r, k], axis=k), f"best{r}") for r in range(3)]
    return te.compute((4,), lambda i: best[0][i] * best[2][i] - best[1][i], "y")


def tournament_by_jax(x: Any) -> Any:
    best = x.max(1)
    return best[::3] * best[2::3] - best[1::3]


def halves(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A filter at even positions beside that at odd ones, one later."""
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")
    even = te.compute((2, 8), lambda b, i: te.sum(x[b, 2 * i + k] * w[k], axis=k), "even")
    odd = te.compute((2, 8), lambda b, i: te.sum(x[b, 2 * i + 1 + m] * w[m], axis=m), "odd")
    return te.compute((2, 8), lambda b, i: te.maximum(even[b, i], odd[b, 7 - i]), "y")


def halves_by_jax(x: Any, w: Any) -> Any:
    full = sum(x[:, k : k + 16] * w[k] for k in range(3))
    return jnp.maximum(full[:, ::2], full[:, 1::2][:, ::-1])


CASES: dict[str, tuple[Build, Callable[..., Any], tuple[tuple[int, ...], ...], tuple[str, ...]]] = {
    "pruned": (pruned, pruned_by_jax, ((10, 7, 4), (10, 4, 4)), ("y_0", "y_1")),
    "tournament": (tournament, tournament_by_jax, ((12, 6),), ("best0", "best1", "best2")),
    "halves": (halves, halves_by_jax, ((2, 18), (3,)), ("even", "odd")),
}


@pytest.mark.parametrize("name", CASES)
def test_one_reduction_with_its_gradient(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes, parts = CASES[name]
    with jax.enable_x64(True):
        arrays = [rng.normal(size=s) for s in shapes]
        own = te.function(build)
        value = plain(*arrays)
        head = rng.normal(size=value.shape)
        np.testing.assert_allclose(own(*arrays), value, rtol=1e-12, atol=1e-13)
        found, wanted = (jax.vjp(f, *arrays)[1](head) for f in (own, plain))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
        text = own.source(*arrays)
        assert [p for p in parts if f'jax.named_scope("{p}")' in text] == [parts[0]]


def _apart(second: Callable[[te.Tensor, Any, Any], Any]) -> Build:
    def build(x: te.Tensor) -> te.Tensor:
        k, m = te.reduce_axis((0, 6), "k"), te.reduce_axis((0, 6), "m")
        a = te.compute((4,), lambda i: te.sum(te.exp(x[2 * i, k]), axis=k), "a")
        b = te.compute((4,), lambda i: te.sum(second(x, i, m), axis=m), "b")
        return te.compute((4,), lambda i: a[i] / b[i], "y")

    return build


@pytest.mark.parametrize(
    "second",
    [
        lambda x, i, m: te.exp(x[2 * i + 2, m]),  # the same remainder
        lambda x, i, m: te.exp(-x[2 * i + 1, m]),  # another function
        lambda x, i, m: te.exp(x[3 * i + 1, m]),  # another stride
        lambda x, i, m: te.exp(x[2 * i + 1, m]) * i,  # the position itself
        lambda x, i, m: te.exp(x[2 * i + 1, 5 - m]),  # in another order
    ],
)
def test_others_stay(second: Callable[..., Any], rng: np.random.Generator) -> None:
    x = rng.normal(size=(12, 6)).astype("float32")
    text = te.function(_apart(second)).source(x)
    assert all(f'jax.named_scope("{p}")' in text for p in "ab")
