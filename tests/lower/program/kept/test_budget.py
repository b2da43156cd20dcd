"""The choice of residuals within a budget is the best one: beside every choice there is, on small graphs."""

from __future__ import annotations

import itertools
import random

import pytest

from jaxte.lower.program.recomputation import Choice, Choices, best_choice, smallest_choice


def every_choice(choices: Choices) -> list[tuple[int, int]]:
    """Bytes and work of all choices, by trying each subset."""
    found = []
    count = len(choices.work)
    for bits in itertools.product((False, True), repeat=count):
        stack, needed = list(choices.needed), set()
        while stack:
            n = stack.pop()
            if n not in needed:
                needed.add(n)
                stack.extend(() if bits[n] else choices.sources[n])
        kept = {n for n in needed if bits[n]}
        if choices.required & (needed - kept):
            continue
        found.append((sum(choices.size[n] for n in kept), sum(choices.work[n] for n in needed - kept)))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_the_best_choice_is_that_of_trying_all(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 9)
    choices = Choices(
        [sorted({rng.randrange(n) for _ in range(rng.randint(0, 3))}) if n else [] for n in range(count)],
        [rng.randint(0, 20) for _ in range(count)],
        [rng.randint(1, 12) for _ in range(count)],
        frozenset(rng.sample(range(count), rng.randint(1, count))),
        frozenset(rng.sample(range(count), rng.randint(0, 1))),
    )
    every = every_choice(choices)
    smallest = smallest_choice(choices)
    assert smallest.bytes == min(size for size, _ in every)
    for budget in sorted({size for size, _ in every} | {0, 7}):
        allowed = [work for size, work in every if size <= budget]
        found = best_choice(choices, budget)
        assert (found is None) == (not allowed)
        if found is not None:
            assert found.bytes <= budget
            assert found.work == min(allowed)


@pytest.mark.parametrize("count", [0, 3])
def test_where_nothing_is_needed_nothing_is_kept(count: int) -> None:
    choices = Choices([[]] * count, [1] * count, [8] * count, frozenset())
    assert smallest_choice(choices) == best_choice(choices, 16) == Choice(frozenset(), 0, 0)


def test_a_long_chain_is_quick() -> None:
    chain = Choices([[n - 1] if n else [] for n in range(120)], [10] * 120, [8] * 120, frozenset(range(120)))
    found = best_choice(chain, 8 * 30)
    assert found is not None and len(found.kept) == 30 and found.work == 900


def test_tensors_of_very_different_sizes_and_work_are_chosen_among_exactly() -> None:
    rng = random.Random(1)
    sources = [sorted({max(0, n - rng.randint(1, 5)) for _ in range(2)}) if n else [] for n in range(100)]
    work = [rng.randint(1, 10 ** rng.randint(3, 11)) for _ in range(100)]
    size = [4 * rng.randint(1, 10 ** rng.randint(3, 8)) for _ in range(100)]
    found = best_choice(Choices(sources, work, size, frozenset(rng.sample(range(100), 50))), sum(size) // 4)
    # as minimal cuts for each price of a byte find it, with branch and bound
    assert found is not None and (found.work, found.bytes) == (17_387_225, 1_001_029_016)
