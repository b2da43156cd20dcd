"""Random programs with loops beside NumPy and differences."""

import pytest

from tests.loops import random_meanings, random_names, random_sweeps
from tests.loops.agreement import assert_agrees, assert_agrees_or_refused, assert_nodes_agree
from tests.loops.random_programs import arguments, random_program

pytestmark = pytest.mark.usefixtures("x64")
COMPILED = (1, 4, 14, 20)  # below a second each
NAMES = (1000, 1002, 1003, 1006, 1019, 1025, 1030, 1046)
MEANINGS = (13, 17, 28, 39, 49, 75, 93, 124, 171, 240, 263, 319)
SWEEPS = (0, 3, 7, 12, 119, 120)
BY_NODES = (
    2,
    6,
    11,
    13,
    15,
    21,
    36,
    88,
    128,
    129,
    195,
    700250,
    910010,
    910086,
    3000170,
    3000194,
    3000252,
    3000359,
    3000773,
    3000917,
    3000934,
    3000988,
    3001137,
    3010332,
    3020092,
    4060001,
    12020002,
    25200025,
    46000060,
    46000368,
    46002363,
)


@pytest.mark.parametrize("seed", COMPILED)
def test_random_programs_agree_with_numpy_and_with_differences(seed: int) -> None:
    assert_agrees(random_program(seed), arguments(seed))


@pytest.mark.parametrize("seed", BY_NODES)
def test_nodes_of_random_programs_agree_with_numpy_and_with_differences(seed: int) -> None:
    assert_nodes_agree(random_program(seed), arguments(seed))


@pytest.mark.parametrize("seed", SWEEPS)
def test_nodes_of_random_sweeps_agree_with_numpy_and_with_differences(seed: int) -> None:
    assert_nodes_agree(random_sweeps.random_sweeps(seed), random_sweeps.arguments(seed))


@pytest.mark.parametrize("seed", NAMES)
def test_what_names_mean_agrees_with_numpy_and_with_differences(seed: int) -> None:
    """Each was wrong before arrays that are made anew, and parts that are exchanged, were what NumPy has."""
    assert_nodes_agree(random_names.random_names(seed), random_names.arguments(seed))


@pytest.mark.parametrize("seed", MEANINGS)
def test_what_numpy_means_agrees_or_is_refused(seed: int) -> None:
    """Each was wrong, or taken where NumPy refuses it, before views, functions, lists and kinds of numbers were what NumPy has."""
    assert_agrees_or_refused(random_meanings.random_meanings(seed), random_meanings.arguments(seed))
