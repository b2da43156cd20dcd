"""Random programs with loops beside NumPy and differences."""

import pytest

from tests.loops.agreement import assert_agrees
from tests.loops.random_programs import arguments, random_program

pytestmark = pytest.mark.usefixtures("x64")
CHEAP = (1, 2, 4, 6, 11, 13, 14, 15, 20, 21, 195)  # below a second each


@pytest.mark.parametrize("seed", CHEAP)
def test_random_programs_agree_with_numpy_and_with_differences(seed: int) -> None:
    assert_agrees(random_program(seed), arguments(seed))
