"""Situations that a tape is for elsewhere, and recurrences of signals, statistics and solvers, under ``te.loops``, beside NumPy and differences."""

import numpy as np
import pytest

from tests.loops.agreement import assert_nodes_agree
from tests.loops.models import MODELS
from tests.loops.tapes import TAPES

pytestmark = pytest.mark.usefixtures("x64")
EVERY = {**TAPES, **MODELS}


@pytest.mark.parametrize("name", EVERY)
def test_nodes_agree_with_numpy_and_with_differences(name: str) -> None:
    kernel = EVERY[name]
    assert_nodes_agree(kernel.run, kernel.make(np.random.default_rng(0)))
