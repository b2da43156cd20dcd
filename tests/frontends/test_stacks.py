"""Stacks of shifts of one array: one read, and reductions along them, which are over windows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused


def rolling(x):
    return jnp.stack([x[:, i : i + 41] for i in range(10)]).max(0)


def eroded(x):
    p = jnp.pad(x, 1, mode="edge")
    return jnp.stack([p[i : 16 + i, j : 50 + j] for i in range(3) for j in range(3)], -1).min(-1)


def averaged(x):
    return jnp.stack([jnp.roll(x, s, 0) for s in range(-3, 4)], 1).mean(1)


def greatest(x):
    return jnp.concatenate([x[None, :, 2 * s : 2 * s + 40] for s in range(5)]).max(0)


def dilated(x):
    p = jnp.pad(x, 2, constant_values=-9)
    return jnp.stack([p[i : 16 + i, j : 50 + j] + x[i, j] for i in range(5) for j in range(5)]).max(0)


def farthest(x):
    return jnp.stack([jnp.abs(x[1:-1, s : s + 44] - x[1:-1, 3:-3]) for s in range(7)], -1).max(-1)


def weighted(x):
    return jnp.stack([x[0, s] * x[1:, s : s + 44] for s in range(7)]).sum(0)


def loss(function):
    return lambda x: jnp.sum(function(x) ** 2)


@pytest.mark.parametrize("function", [rolling, eroded, averaged, greatest, dilated, farthest, weighted])
def test_reductions_along_stacks_of_shifts_are_windows(function):
    x = jnp.asarray(np.random.default_rng(0).integers(-4, 5, (16, 50)), "float32")  # with ties
    raised = te.adjoint(loss(function))
    report = te.explain(raised, x)
    assert any("stack of shifts" in line.reason for region in report.regions for line in region.lines)
    np.testing.assert_allclose(jax.grad(raised)(x), jax.grad(loss(function))(x), rtol=1e-5, atol=1e-6)
    temporaries = [
        Fused(jax.jit(jax.grad(f)).lower(x)).memory_analysis().temp_size_in_bytes
        for f in (raised, loss(function))
    ]
    lines = -(-4 * jax.eval_shape(function, x).size // 64)
    # sums of seven terms are an array, in whole lines of 64 bytes, before the loop of the loss, which is 3 to 12 times as fast
    apart = 64 * lines if function is weighted else 0
    assert temporaries[0] <= temporaries[1] + apart


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.stack([x[:, i : i + 41] for i in range(10)]).std(0),
        lambda x: jnp.stack([x, 2 * x, jnp.tanh(x), x + 1]).max(0),
        lambda x: jnp.stack([x * x[s, 0] for s in range(6)]).max(0),
        lambda x: jnp.stack([x[:, i : i + 41] for i in range(10)]).max(1),
    ],
    ids=["deviations", "no shifts", "multiples", "along another axis"],
)
def test_other_reductions_of_stacks_stay(function):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(16, 50)), "float32")
    report = te.explain(te.adjoint(loss(function)), x)
    assert not any("stack of shifts" in line.reason for region in report.regions for line in region.lines)
    np.testing.assert_allclose(te.grad(loss(function))(x), jax.grad(loss(function))(x), rtol=1e-4, atol=1e-5)
