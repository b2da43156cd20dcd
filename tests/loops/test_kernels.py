"""Kernels of NPBench under ``te.loops``, beside the same functions on NumPy arrays."""

import numpy as np
import pytest

from tests.loops.agreement import assert_agrees
from tests.loops.kernels import KERNELS

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_agree_with_numpy_and_with_differences(name: str) -> None:
    kernel = KERNELS[name]
    assert_agrees(kernel.run, kernel.make(np.random.default_rng(0)))
