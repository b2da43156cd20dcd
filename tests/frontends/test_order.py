"""Results that are known although a source of theirs is not: they wait for nothing, so that there is an order."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te


def test_the_gradient_of_a_gradient_of_pairs(rng) -> None:
    """The derivative of a choice is a call that returns both a mask, which is known, and what it masks."""
    n = 5

    def energy(r):
        squares = jnp.sum((r[:, None] - r[None]) ** 2, -1)
        return jnp.sum(jnp.where(jnp.eye(n, dtype=bool), 0, 1 / (squares + 1)))

    def loss(r):
        return jnp.sum(jax.grad(energy)(r) ** 2)

    r = jnp.asarray(rng.normal(size=(n, 3)), "float32")
    want = jax.grad(loss)(r)
    np.testing.assert_allclose(te.grad(loss)(r), want, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(jax.grad(te.adjoint(loss, everything=True))(r), want, rtol=2e-4, atol=1e-5)
