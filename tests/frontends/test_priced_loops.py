"""Bodies of loops that are raised because the prices of both programs say so, with the body as often as it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te


def looped(body: Callable[..., Any], turns: int) -> Callable[..., Any]:
    def f(x: Any, *rest: Any) -> Any:
        return jnp.sum(lax.scan(lambda x, _: (body(x, *rest), None), x, None, turns)[0] ** 2)

    return f


def wrapped_convolution(u: Any, w: Any) -> Any:
    around = jnp.pad(u, 1, mode="wrap")[None, ..., None]
    out = lax.conv_general_dilated(around, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(out[0, ..., 0])


def viscous(u: Any) -> Any:
    flux = u - 0.1 * (u**2 - jnp.roll(u, 1, -1) ** 2) / 2
    return flux + 0.05 * (jnp.roll(flux, 1, -1) + jnp.roll(flux, -1, -1) - 2 * flux)


def saved_at_intervals(u: Any) -> Any:
    def save(u: Any, _: Any) -> Any:
        u = lax.scan(lambda u, _: (viscous(u), None), u, None, 10)[0]
        return u, u

    return jnp.mean(lax.scan(save, u, None, 10)[1] ** 2)


def attended(x: Any) -> Any:
    scores = jax.nn.softmax(jnp.sum(x[:, None] * x[None], -1) / 8, -1)
    return x + 0.1 * jnp.tanh(jnp.sum(scores[..., None] * x[None], 1))


def normalised(x: Any, scale: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return x + jax.nn.gelu((x - mean) * lax.rsqrt(variance + 1e-5) * scale)


def repelled(x: Any) -> Any:
    """Functions of all pairs, of which the derivative is computed anew in each turn back: 0.4 of the speed."""
    apart = x[:, None] - x[None]
    return x - 0.01 * jnp.sum(jnp.tanh(apart) * jnp.exp(-(apart**2)), 1)


def attracted(x: Any, p: Any) -> Any:
    return x + 0.01 * jnp.stack(
        [p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]]
    )


def by_features(u: Any, w: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    groups = u.shape[-1] // w.shape[2]
    return u + 0.1 * lax.conv_general_dilated(
        u, w, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def flow(x: Any, w: Any, v: Any) -> Any:
    """A field that is a small network, with the trace of its derivative: products, of which the loop has no matrix to take out."""

    def field(z: Any) -> Any:
        return jnp.tanh(z @ w) @ v

    def one(z: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            z, log = carry
            return (z + 0.1 * field(z), log + 0.1 * jnp.trace(jax.jacfwd(field)(z))), None

        (z, log), _ = lax.scan(step, (z, jnp.zeros(())), None, 20)
        return jnp.sum(z**2) + log

    return jnp.mean(jax.vmap(one)(x))


RAISED = {
    "a loop in a loop": (saved_at_intervals, ((32, 256),)),
    "sums of products": (looped(attended, 8), ((64, 32),)),
    "norms": (looped(normalised, 12), ((256, 256), (256,))),
    "a flow with its divergence": (flow, ((128, 3), (3, 32), (32, 3))),
}
CONVOLVED = {
    "a kernel that is learned": (looped(wrapped_convolution, 20), ((64, 64), (3, 3, 1, 1))),
    "a kernel that is known": (
        looped(lambda u: wrapped_convolution(u, np.ones((3, 3, 1, 1), "float32")), 20),
        ((64, 64),),
    ),
    "each feature by itself": (looped(by_features, 6), ((2, 24, 24, 8), (3, 3, 1, 8))),
    "features in groups": (looped(by_features, 6), ((2, 24, 24, 8), (3, 3, 4, 8))),
}
KEPT = {
    "within the margin": (looped(repelled, 10), ((200,),)),
    "short turns": (looped(attracted, 2000), ((3,), (3,))),
    "a product of matrices": (looped(lambda x, w: normalised(x @ w, 1.0), 12), ((256, 256), (256, 256))),
    "few turns of little work": (looped(normalised, 2), ((8, 8), (8,))),
}  # fmt: skip


def _report(f: Any, shapes: Any) -> Any:
    return te.explain(te.adjoint(f), *(jax.ShapeDtypeStruct(s, "float32") for s in shapes))


@pytest.mark.parametrize("name", RAISED)
def test_raised_by_the_price_of_all_turns(name: str) -> None:
    found = _report(*RAISED[name])
    assert found.regions and found.priced is not None


@pytest.mark.parametrize("name", CONVOLVED)
def test_convolutions_are_raised_in_loops_as_outside(name: str) -> None:
    """XLA takes as long for them there."""
    assert _report(*CONVOLVED[name]).regions


@pytest.mark.parametrize("name", KEPT)
def test_kept_by_price(name: str) -> None:
    found = _report(*KEPT[name])
    assert found.priced is None and not found.regions


@pytest.mark.parametrize("name", ["a loop in a loop", "a flow with its divergence", *CONVOLVED])
def test_gradients_agree(name: str, rng: np.random.Generator) -> None:
    f, shapes = (RAISED | CONVOLVED)[name]
    args = [jnp.asarray(0.3 * rng.normal(size=s), "float32") for s in shapes]
    nums = tuple(range(len(args)))
    for a, b in zip(jax.jit(te.grad(f, nums))(*args), jax.grad(f, nums)(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())
