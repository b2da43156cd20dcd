"""Random JAX functions, raised as far as there are rules: values and gradients beside those of JAX.

By the thousand: ``python -m tests.volume 10000 --kind raised``, and ``--kind raised-twice`` for second derivatives.
"""

import os

import jax
import pytest

from tests.frontends.random_functions import RandomFunction, check_raised

COUNT = int(os.environ.get("JAXTE_FUNCTIONS", "8"))
FIRST = int(os.environ.get("JAXTE_FIRST_FUNCTION", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_gradients_of_random_functions(seed: int) -> None:
    with jax.enable_x64(True):
        check_raised(RandomFunction(seed))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT // 4))
def test_second_derivatives_of_random_functions(seed: int) -> None:
    with jax.enable_x64(True):
        check_raised(RandomFunction(seed, 4), 2)
