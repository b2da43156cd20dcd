"""Random JAX functions, raised as far as there are rules: values and gradients beside those of JAX.

JAXTE_FUNCTIONS=10000 pytest tests/frontends/test_random_functions.py
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.frontends.random_functions import random_function

pytestmark = pytest.mark.usefixtures("compiled_quickly")
COUNT = int(os.environ.get("JAXTE_FUNCTIONS", "8"))
FIRST = int(os.environ.get("JAXTE_FIRST_FUNCTION", "0"))


def gradients(f, x, y):
    return jax.jit(jax.value_and_grad(f, (0, 1)))(x, y)


def check(seed: int) -> None:
    rng = np.random.default_rng(seed)
    f = random_function(rng)
    x, y = (jnp.asarray(rng.normal(size=(6, 5)), "float32") for _ in range(2))
    found = gradients(te.adjoint(f, everything=True), x, y)
    expected = gradients(f, x, y)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(
            a, b, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(b).max())), err_msg=f"seed {seed}"
        )


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_gradients_of_random_functions(seed: int) -> None:
    check(seed)
