"""Which forward tensors to keep within a budget of bytes, so that the least work is done again.

A tensor that the backward pass needs is kept, or computed again from its sources, which are then needed in turn: a linear program over numbers that are
0 or 1, as in Checkmate (Jain et al. 2020). HiGHS solves it, which comes with SciPy, and SciPy with JAX.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxte.lang.graphs import reached

_LARGEST = 1e6  # number of the objective: HiGHS ends within 1e-6 of the best choice
_MOST_NODES = 1000  # of the search; the best choice found so far is taken after these


@dataclass(frozen=True)
class Choices:
    """Tensors by number.

    Attributes:
        sources: those that each is computed from; what is there anyway is left out.
        work: what computing each again costs.
        size: bytes of each.
        needed: those that the backward pass reads.
        required: those that have to be kept where they are needed.
    """

    sources: Sequence[Sequence[int]]
    work: Sequence[int]
    size: Sequence[int]
    needed: frozenset[int]
    required: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Choice:
    """What is kept, with its bytes, and the work of computing the rest again."""

    kept: frozenset[int]
    bytes: int
    work: int


def best_choice(choices: Choices, budget: int) -> Choice | None:
    """The least work with at most ``budget`` bytes kept; None if there is no choice within it."""
    allowed = budget
    while (found := _solved(choices, allowed)) is not None and found.bytes > budget:
        allowed -= found.bytes - budget  # numbers near 0 and 1 were rounded
    return found


def smallest_choice(choices: Choices) -> Choice:
    """The choice with the fewest bytes, and of those the one with the least work."""
    least = _solved(choices, None)
    assert least is not None  # all may be kept
    return best_choice(choices, least.bytes) or least


def _solved(choices: Choices, budget: int | None) -> Choice | None:
    """The least work within ``budget`` bytes, or the fewest bytes where there is no budget."""
    if not choices.needed:
        return _choice(choices, set())
    optimize, sparse = (importlib.import_module(f"scipy.{name}") for name in ("optimize", "sparse"))
    count = len(choices.work)
    kept, again = range(count), range(count, 2 * count)  # the unknowns of each tensor
    rows = [{kept[n]: 1.0, again[n]: 1.0} for n in choices.needed]
    rows += [
        {kept[s]: 1.0, again[s]: 1.0, again[n]: -1.0} for n, own in enumerate(choices.sources) for s in own
    ]
    least = [1.0] * len(choices.needed) + [0.0] * (len(rows) - len(choices.needed))
    sizes, work = (np.array(own, float) / (max(own, default=0) or 1) for own in (choices.size, choices.work))
    if budget is not None:
        rows.append({n: -size for n, size in zip(kept, sizes, strict=True)})
        least.append(-budget / (max(choices.size, default=0) or 1))
    places = [(n, column) for n, row in enumerate(rows) for column in row]
    numbers = [number for row in rows for number in row.values()]
    matrix = sparse.csr_array((numbers, tuple(np.array(places).T)), (len(rows), 2 * count))
    result = optimize.milp(
        _LARGEST
        * np.concatenate([sizes if budget is None else 0 * sizes, 0 * work if budget is None else work]),
        integrality=np.ones(2 * count),
        bounds=optimize.Bounds(
            0, [float(n < count or n - count not in choices.required) for n in range(2 * count)]
        ),
        constraints=optimize.LinearConstraint(matrix, np.array(least)),
        options={"mip_rel_gap": 0.0, "node_limit": _MOST_NODES},
    )
    return None if result.x is None else _choice(choices, {n for n in kept if result.x[n] > 0.5})


def _choice(choices: Choices, kept: set[int]) -> Choice:
    found = reached(choices.needed, lambda n: () if n in kept else choices.sources[n])
    own = frozenset(n for n in found if n in kept)
    return Choice(own, sum(choices.size[n] for n in own), sum(choices.work[n] for n in found if n not in own))
