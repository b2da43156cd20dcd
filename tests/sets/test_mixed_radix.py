"""Numbers and their digits: solved at once, whatever their number, their signs and where they begin."""

import itertools

import numpy as np
import pytest

import jaxte as te
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.solving.pinning import digits_of
from jaxte.sets.tabulate import evaluate_index


@pytest.mark.parametrize("seed", range(6))
def test_digits_of_random_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    extents = rng.integers(2, 4, size=4)
    lows = rng.integers(-2, 3, size=4)
    unit = int(rng.integers(1, 4))
    weights = unit * np.cumprod([1, *extents[:-1]]) * rng.choice([1, -1], size=4)
    axes = [
        te.reduce_axis((int(lo), int(lo + e)), f"d{n}")
        for n, (lo, e) in enumerate(zip(lows, extents, strict=True))
    ]
    a = te.reduce_axis((-40, 120), "a")
    shift = int(rng.integers(-5, 6))
    form = linear(sum((int(w) * d for w, d in zip(weights, axes, strict=True)), start=shift - a))
    bounds = {d: (int(lo), int(lo + e - 1)) for d, lo, e in zip(axes, lows, extents, strict=True)}
    found = digits_of(form, axes, bounds)
    assert found is not None
    points = {
        shift + int(np.dot(weights, p)): p
        for p in itertools.product(*(range(lo, hi + 1) for lo, hi in bounds.values()))
    }
    for value in range(-40, 120):
        holds = all(_holds(c, a, value) for c in found.conditions)
        assert holds == (value in points)
        if holds:
            assert (
                tuple(evaluate_index(from_linear(found.values[d]), {a: value}) for d in axes) == points[value]
            )


def _holds(condition, axis, value) -> bool:
    return any(
        True for _ in te.Domain([axis], [condition, axis == value], {axis: (value, value + 1)}).points()
    )


def test_what_are_no_digits() -> None:
    d = [te.reduce_axis((0, 2), f"d{n}") for n in range(4)]
    a = te.reduce_axis((0, 20), "a")
    bounds = dict.fromkeys(d, (0, 1))
    overlapping = linear(4 * d[0] + 2 * d[1] + 2 * d[2] + d[3] - a)
    few = linear(4 * d[0] + 2 * d[1] + d[2] - a)
    assert digits_of(overlapping, d, bounds) is None and digits_of(few, d, bounds) is None


def test_one_bit_after_the_other_is_turned_over(rng) -> None:
    """``s ^ (1 << q)`` for each of sixteen bits, in both passes, without a scatter or a sum over pairs of states."""
    bits = 16

    @te.function
    def energy(x):
        s = te.reduce_axis((0, 2**bits), "s")
        turned = sum((x[s ^ (1 << q)] for q in range(1, bits)), start=x[s ^ 1])
        return te.compute((), lambda: te.sum(x[s] * turned, axis=s), "e")

    x = rng.normal(size=2**bits).astype("float32")
    source = te.source(energy, x)
    assert ".at[" not in source and "lax.map" not in source and len(source) < 10_000
    states = np.arange(2**bits)
    turned = sum(x[states ^ (1 << q)].astype("float64") for q in range(bits))
    np.testing.assert_allclose(energy(x), np.sum(x * turned), rtol=1e-3, atol=1)
    np.testing.assert_allclose(te.grad(energy)(x), 2 * turned, rtol=1e-4, atol=1e-4)
