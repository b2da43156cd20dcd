"""Running reductions of a combiner of one's own: which positions they leave out, and where they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N = 6
Condition = Callable[[Any, Any], Any]

# which positions k of the sequence the element at i has
POSITIONS: dict[str, Condition] = {
    "all so far": lambda i, k: k <= i,
    "those before": lambda i, k: k < i,
    "those two before": lambda i, k: k <= i - 2,
    "one ahead": lambda i, k: k <= i + 1,
    "even ones": lambda i, k: (k <= i) & (k % 2 == 0),
    "odd ones before": lambda i, k: (k < i) & (k % 2 == 1),
    "from the third on": lambda i, k: (k <= i) & (k >= 2),
}


def linear() -> Any:
    """Maps ``h -> a * h + b``, one after the other."""
    return te.comm_reducer(
        lambda first, then: (first[0] * then[0], then[0] * first[1] + then[1]),
        lambda t0, t1: (te.const(1, t0), te.const(0, t1)),
        name="linear",
    )


@pytest.mark.parametrize("state", [0, 1])
@pytest.mark.parametrize("name", POSITIONS)
def test_value_and_gradient(name: str, state: int, rng: np.random.Generator) -> None:
    condition = POSITIONS[name]
    own = linear()

    @te.function
    def running(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, N), "k")
        return te.compute((N,), lambda i: own((a[k], b[k]), axis=k, where=condition(i, k)), "h")[state]

    def plain(a: Any, b: Any) -> Any:
        found = []
        for i in range(N):
            total = (1.0, 0.0)
            for k in range(N):
                if condition(i, k):
                    total = total[0] * a[k], a[k] * total[1] + b[k]
            found.append(total[state])
        return jnp.stack([jnp.asarray(v, a.dtype) for v in found])

    with jax.enable_x64(True):
        a, b, head = (rng.normal(size=N) for _ in range(3))
        np.testing.assert_allclose(running(a, b), plain(a, b), rtol=1e-12)
        own_gradients, expected = (
            jax.grad(lambda a, b, f=f: (f(a, b) * head).sum(), argnums=(0, 1))(jnp.asarray(a), jnp.asarray(b))
            for f in (running, plain)
        )
        for found, wanted in zip(own_gradients, expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_reductions_of_those_before_are_not_computed_again(rng: np.random.Generator) -> None:
    """Light that passes all samples in front of one: the gradient reads what the forward pass has."""

    def seen(a: te.Tensor) -> te.Tensor:
        rows, n = a.shape
        j, k = te.reduce_axis((0, n), "j"), te.reduce_axis((0, n), "k")
        passed = te.compute(a.shape, lambda i, m: te.prod(1 - a[i, k], axis=k, where=k < m), "passed")
        return te.compute((rows,), lambda i: te.sum(a[i, j] * passed[i, j], axis=j), "seen")

    def plain(a: Any) -> Any:
        passed = jnp.concatenate([jnp.ones((a.shape[0], 1)), jnp.cumprod(1 - a, 1)[:, :-1]], 1)
        return (a * passed).sum(1)

    with jax.enable_x64(True):
        a, head = rng.uniform(0, 0.3, (3, 40)), rng.normal(size=3)
        own = te.function(seen)
        np.testing.assert_allclose(own(a), plain(a), rtol=1e-12)
        found, wanted = (jax.vjp(f, a)[1](head)[0] for f in (own, plain))
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-13)
        assert own.source(a).count("lax.scan(") == 2
