"""One program of each kind that ``make volume`` draws beside definitions and JAX functions: by the thousand, ``--kind hessian``, ``bits``, ``nested``, ``empty``."""

from __future__ import annotations

import pytest

from tests.agreement import at_random, check, check_nodes
from tests.choices import Seeded
from tests.frontends.random_choices import RandomChoices, check_choices
from tests.frontends.random_functions import RandomFunction, check_forward, check_raised, without_elements
from tests.random_definitions import definition
from tests.random_exclusions import RandomExclusions, check_exclusions, check_moved
from tests.random_hessians import check_hessian
from tests.random_integers import reading_at_integers
from tests.random_masks import RandomMasks
from tests.random_options import check_budgets, check_checkpoints
from tests.random_recurrences import RandomRecurrences, check_recurrences
from tests.random_repeated import Repeating
from tests.random_symbols import RandomSymbols, check_symbols
from tests.random_uses import (
    RandomPattern,
    RandomStep,
    check_kept,
    check_overridden,
    check_pattern,
    check_scan,
    check_short,
)

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("seed", [5, 9])
def test_second_derivatives_in_both_orders(seed: int) -> None:
    """At a perfect fit, and where elements are equal."""
    check_hessian(definition(Seeded(f"hessian {seed}"), stages=(1, 1)), seed)


@pytest.mark.parametrize(("seed", "bits"), [("integers True", True), ("nested 2018", False)])
def test_reads_at_nested_integers(seed: str, bits: bool) -> None:
    p = at_random(reading_at_integers(Seeded(seed), bits))
    assert p is not None
    check(p, residuals=False, optimised=False, by_jax=False)


@pytest.mark.parametrize("seed", [3, 2043])
def test_arrays_without_elements(seed: int) -> None:
    """The second sorts an array without elements, and reads one result of it."""
    check_raised(without_elements(seed))


def test_forward_mode_of_what_is_raised() -> None:
    check_forward(RandomFunction(2, steps=3), everything=True)


@pytest.mark.parametrize("seed", range(3))
def test_nodes_of_definitions(seed: int) -> None:
    """What is emitted, evaluated in NumPy: as many as there is time for, ``--kind nodes``."""
    p = at_random(definition(Seeded(f"nodes {seed}"), stages=(1, 2)))
    assert p is not None
    check_nodes(p)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize("seed", range(3, 6))
def test_nodes_of_definitions_on_chips(seed: int, platform: str) -> None:
    """``--kind chips``."""
    p = at_random(definition(Seeded(f"nodes {seed}"), stages=(1, 2)))
    assert p is not None
    check_nodes(p, platform=platform)


@pytest.mark.parametrize("seed", range(4))
def test_nodes_of_bodies_that_repeat_themselves(seed: int) -> None:
    """``--kind repeated``."""
    p = at_random(definition(Seeded(f"repeated {seed}"), stages=(1, 1), kinds="bodies", writes=Repeating))
    assert p is not None
    check_nodes(p)


def test_an_operand_that_lacks_the_rows_is_none_of_a_band() -> None:
    """Emission of a second derivative ended with an error of letters: it depends on columns and diagonals, which tell the rows."""
    own = Seeded("repeated-twice 44001225")
    p = at_random(definition(own, stages=(1, 1), kinds="bodies", writes=Repeating), order=2)
    assert p is not None
    check_nodes(p, 1e-8)


def test_a_rotated_axis_that_nothing_depends_on() -> None:
    """Beside the position that is largest, what is rotated is the same at all of an axis."""
    p = at_random(reading_at_integers(Seeded("bits 433")))
    assert p is not None
    check_nodes(p)


@pytest.mark.parametrize("seed", [0, 3, 48, 66, 1079, 1096])
def test_choices_within_choices(seed: int) -> None:
    """Steep functions within choices; of the last four, an extremum stands between a steep function and the choice."""
    check_choices(RandomChoices(seed))


@pytest.mark.parametrize("seed", [38, 69, 231, 430, 666, 45000242])
def test_sizes_that_are_symbols(seed: int) -> None:
    """Windows that leave out elements, conditions on positions that wrap, ends of loops of fewer positions than there are results, two halves of a size."""
    check_symbols(RandomSymbols(seed))


@pytest.mark.parametrize("seed", [7, 14, 17, 123, 136, 185, 213, 237, 2027, 2171, 5200587])
def test_what_choices_exclude_may_be_anything(seed: int) -> None:
    """Quotients, roots and positions of data that no point takes, beside masks of other operands, in windows, convolutions and sums of slices."""
    check_exclusions(RandomExclusions(seed), order=1 + seed % 2)


@pytest.mark.parametrize("seed", [108, 132, 1133, 2071, 7010028])
def test_tensors_of_which_choices_exclude_elements(seed: int) -> None:
    """Products, of which a choice in another tensor takes elements: zeros by data, by position, beside adjoints of other readers, turned around."""
    check_exclusions(RandomExclusions(seed, outside=True), order=1 + seed % 2)


@pytest.mark.parametrize("seed", [47000015, 47000057, 47000227, 47000436])
def test_what_several_masks_exclude_together_may_be_anything(seed: int) -> None:
    check_exclusions(RandomMasks(seed), order=1 + seed % 2)


@pytest.mark.parametrize("seed", [70, 78, 202, 207])
def test_gradients_of_which_choices_exclude_elements_move_in_both_orders(seed: int) -> None:
    """Residuals that are NaN, what flows back into these, and factors that have left a sum without points."""
    assert not check_moved(RandomExclusions(seed, outside=seed % 2 == 0))


@pytest.mark.parametrize("seed", [0, 1])
def test_short_floats(seed: int) -> None:
    check_short(seed)


def test_what_is_kept_and_what_is_overridden() -> None:
    check_kept(0)
    check_overridden(0)


@pytest.mark.parametrize("seed", [0, 3])
def test_checkpoints_of_recurrences(seed: int) -> None:
    """``--kind checkpoints``: the first one's second derivative, too."""
    check_checkpoints(seed)


@pytest.mark.parametrize("seed", range(4))
def test_budgets_and_rows_that_are_left_out(seed: int) -> None:
    """``--kind budgets``."""
    check_budgets(seed)


def test_patterns_and_scans() -> None:
    check_pattern(RandomPattern(3))
    check_scan(RandomStep(0))


@pytest.mark.parametrize("seed", (0, 1, 41))
def test_recurrences_that_others_read_in_part(seed: int) -> None:
    """``--kind recurrences``: in the last, a loop that exists was run again over the part of its input that an adjoint computed again."""
    check_recurrences(RandomRecurrences(seed))


@pytest.mark.parametrize(("seed", "platform"), [(3, "tpu"), (78, "cpu"), (130, "gpu")])
def test_recurrences_mixed_with_other_kinds(seed: int, platform: str) -> None:
    """``--kind mixed``: in the last two, equal elements of a combiner passed on more than they received."""
    p = at_random(RandomRecurrences(seed, mixed=True).definition())
    assert p is not None
    check_nodes(p, platform=platform)


@pytest.mark.parametrize("seed", [2, 35])
def test_mixed_graphs_of_sizes_that_are_symbols(seed: int) -> None:
    """``--kind mixed-symbols``: in the last, weights of 32 bits stood beside a factor of 64 where sizes are numbers."""
    check_symbols(RandomRecurrences(seed, mixed=True, symbolic=True))
