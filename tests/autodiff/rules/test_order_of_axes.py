"""What the adjoint of a cumulative reduction is computed over stands in the order of the axes that the reduction has: nothing is transposed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

SHAPE = (5, 6, 7)
REDUCTIONS = {
    "product": (te.prod, jnp.cumprod),
    "maximum": (te.max, jax.lax.cummax),
    "sum": (te.sum, jnp.cumsum),
}


@pytest.mark.parametrize("axis", [0])  # a loop over another one has its steps first
@pytest.mark.parametrize("name", REDUCTIONS)
def test_nothing_is_transposed(name, axis):
    reduce, plain = REDUCTIONS[name]

    def define(x):
        def element(*at):
            k = te.reduce_axis((0, SHAPE[axis]), "k")
            return reduce(x[(*at[:axis], k, *at[axis + 1 :])], axis=k, where=k <= at[axis])

        return te.compute(SHAPE, lambda i, j, m: element(i, j, m), "y")

    f = te.function(define)
    x = jnp.asarray(np.random.default_rng(0).uniform(0.5, 1.5, SHAPE), "float32")
    h = jnp.asarray(np.random.default_rng(1).normal(size=SHAPE), "float32")
    assert "transpose" not in te.source(f, x)
    expected, pull = jax.vjp(lambda a: plain(a, axis=axis), x)
    np.testing.assert_allclose(f(x), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.vjp(f, x)[1](h)[0], pull(h)[0], rtol=1e-4, atol=1e-5)
    tangent = jax.jvp(f, (x,), (h,))[1]
    np.testing.assert_allclose(
        tangent, jax.jvp(lambda a: plain(a, axis=axis), (x,), (h,))[1], rtol=1e-4, atol=1e-5
    )
