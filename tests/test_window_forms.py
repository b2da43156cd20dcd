"""Winners of windows written out position by position, against jax.grad of ``lax.reduce_window``."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte import ops


@pytest.mark.parametrize("form", ["shifted slices", "separable slices", "doubling slices", "general"])
@pytest.mark.parametrize(("size", "stride", "pad"), [(2, 2, 0), (3, 2, 0), (3, 2, 1), (3, 1, 1), (4, 1, 2)])
def test_the_first_of_equal_maxima_gets_the_gradient(form: str, size: int, stride: int, pad: int) -> None:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(0, 3, (2, 2, 8, 9)), jnp.float32)  # many are equal, some of them 0

    def plain(x):
        window, step, pads = (1, 1, size, size), (1, 1, stride, stride), [(0, 0)] * 2 + [(pad, pad)] * 2
        return lax.reduce_window(x, -jnp.inf, lax.max, window, step, pads)

    run = te.function(lambda x: ops.max_pool2d(x, size, stride, pad), forms={"*": form})
    head = jnp.asarray(rng.standard_normal(plain(x).shape), jnp.float32)
    np.testing.assert_array_equal(run(x), plain(x))
    expected = jax.vjp(plain, x)[1](head)[0]
    np.testing.assert_allclose(jax.vjp(run, x)[1](head)[0], expected, rtol=1e-5, atol=1e-5)
    if form == "shifted slices":
        hlo = jax.jit(lambda x: jax.vjp(run, x)[1](head)).lower(x).as_text()
        assert not any(
            f"stablehlo.{op}" in hlo for op in ("scatter", "gather", "while", "select_and_scatter")
        )
