"""Steps of a loop that was written out: what is asked of a definition is asked once for all that are equal but for names."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.autodiff.terms import support
from jaxte.lower.program.across import padded_once, pieces_within
from jaxte.planning.conditions import distances
from tests.loop_steps import mixing


def waves(count):
    """Electromagnetic waves: two fields at half steps, added to in place."""

    def f(e, eps):
        hx, hy = jnp.zeros_like(e), jnp.zeros_like(e)
        for _ in range(count):
            hx = hx.at[:, :-1].add(-0.5 * (e[:, 1:] - e[:, :-1]))
            hy = hy.at[:-1].add(0.5 * (e[1:] - e[:-1]))
            curl = (hy[1:-1, 1:-1] - hy[:-2, 1:-1]) - (hx[1:-1, 1:-1] - hx[1:-1, :-2])
            e = e.at[1:-1, 1:-1].add(0.5 / eps[1:-1, 1:-1] * curl)
        return jnp.sum(e**2)

    return f


def smoothing(count):
    def f(u, k):
        for _ in range(count):
            p = jnp.pad(u, 1, mode="edge")
            u = u + k * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)
        return jnp.sum(u**2)

    return f


LOOPS = [waves, mixing, smoothing]
ASKED = [
    (padded_once, "by_tensor"),
    (pieces_within, "is_in_pieces"),
    (distances, "_over_distances"),
    (support, "substitute"),
]


@pytest.mark.parametrize("make", LOOPS)
def test_more_steps_ask_no_more(make, monkeypatch):
    asked: dict[str, int] = {}

    def counted(name, own):
        return lambda *a: asked.update({name: asked.get(name, 0) + 1}) or own(*a)

    for module, name in ASKED:
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))

    def count(steps):
        asked.clear()
        fields = (
            jnp.ones((33 + steps, 29)),
            jnp.full((33 + steps, 29), 2.0),
        )  # sizes that nothing is known of yet
        jax.jit(te.grad(make(steps), (0, 1))).lower(*fields)
        return dict(asked)

    fewer, more = count(8), count(14)
    assert (
        fewer["_over_distances"] and {name: n for name, n in more.items() if n > fewer.get(name, 0) + 3} == {}
    )


@pytest.mark.parametrize("make", LOOPS)
def test_gradients(make, rng):
    u, k = (jnp.asarray(rng.uniform(0.5, 1.0, size=(40, 30)), "float32") for _ in range(2))
    k = k if make is waves else 0.1 * k
    got, expected = te.grad(make(5), (0, 1))(u, k), jax.grad(make(5), (0, 1))(u, k)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
