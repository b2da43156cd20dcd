"""Sums over many axes: a search that is bounded, and text that grows with the axes and not with their points."""

from itertools import pairwise

import jax
import numpy as np

import jaxte as te
from jaxte.planning.orders.contraction_search import Search


def _shifted(count: int):
    def build(x):
        axes = [te.reduce_axis((0, 3), f"k{n}") for n in range(count)]
        return te.compute((9,), lambda i: te.sum(x[i + sum(axes[1:], start=axes[0])], axis=axes), "y")

    return te.function(build)


def test_shifts_that_meet_again_are_summed_one_after_the_other(rng) -> None:
    lengths = [len(te.source(_shifted(n), jax.ShapeDtypeStruct((9 + 2 * n,), "float32"))) for n in (4, 7, 10)]
    assert lengths[2] - lengths[1] < 1.5 * (lengths[1] - lengths[0])
    count = 7
    taps = np.ones(1)
    for _ in range(count):
        taps = np.convolve(taps, np.ones(3))
    x, head = rng.normal(size=9 + 2 * count).astype("float32"), rng.normal(size=9).astype("float32")
    value, back = jax.vjp(_shifted(count), x)
    np.testing.assert_allclose(value, np.correlate(x, taps, "valid"), rtol=1e-4, atol=1e-3 * taps.max())
    np.testing.assert_allclose(back(head)[0], np.convolve(head, taps), rtol=1e-4, atol=1e-3 * taps.max())


def test_the_search_for_an_order_is_bounded(monkeypatch) -> None:
    """Nine matrices in a ring, one of them askew: nine factorial orders, of which few are looked at."""
    asked = []
    step_over = Search.step_over
    monkeypatch.setattr(Search, "step_over", lambda self, *args: asked.append(1) or step_over(self, *args))

    def build(m):
        axes = [te.reduce_axis((0, 3), f"k{n}") for n in range(9)]
        product = m[axes[-1] + 1, axes[0]]
        for first, second in pairwise(axes):
            product = product * m[first, second]
        return te.compute((), lambda: te.sum(product, axis=axes), "trace")

    te.source(te.function(build), jax.ShapeDtypeStruct((4, 3), "float32"))
    assert 0 < len(asked) < 2_000
