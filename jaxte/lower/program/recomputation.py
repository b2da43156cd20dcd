"""Residuals as the user asked for them: all, none, those read once, named ones, or the best within a budget of bytes.

Any set of forward tensors will do, as long as what the backward pass reads can be computed from it and from the inputs. Inputs
and outputs of the function are in memory anyway; only what lies between is chosen. What
a definition takes is counted in operations, as a number or in terms of its symbolic sizes.

Within a budget the least work is done again. A tensor that the backward pass needs is kept, or computed again from its sources, which are then needed in turn: a linear
program over numbers that are 0 or 1, as in Checkmate (Jain et al. 2020). HiGHS solves it, which comes with SciPy, and SciPy with JAX.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Axis, Call, Const, Expr, Reduce
from jaxte.lang.graphs import reached
from jaxte.lang.text import text
from jaxte.lang.walk import substitute
from jaxte.lower.cost.policy import Save
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of
from jaxte.tensors.tensor import Compute, Tensor

_UNKNOWN_WORK = 100  # operations for each element of what a function of arrays returns


def chosen_residuals(
    save: Save,
    forward: Sequence[Tensor],
    needed: Sequence[Tensor],
    at_hand: Collection[Tensor],
    required: Collection[Tensor],
    automatic: Iterable[Tensor],
    bytes_of: dict[Tensor, int],
) -> set[Tensor]:
    """The tensors of ``forward`` that are kept.

    Args:
        forward: all tensors of the forward pass, each after its inputs.
        needed: those that the backward pass reads.
        at_hand: inputs and outputs.
        required: those that cannot be computed again.
        automatic: those that the default keeps.
        bytes_of: of each tensor; a guess where sizes are symbolic.

    Raises:
        LoweringError: a tensor that is not there, or a budget below what is needed.
    """
    between = [t for t in forward if t not in at_hand]
    said = save.of(forward)
    kept = {t for t, keep in said.items() if keep and t not in at_hand}
    match save.mode:
        case "auto":
            kept |= {t for t in automatic if t not in at_hand and said.get(t, True)}
        case "all":
            kept |= {t for t in needed if t not in at_hand}
        case "single_use":
            kept |= {t for t in needed if t not in at_hand and _readers(t, forward) == 1}
        case "budget":
            assert save.budget is not None
            kept |= _within(save.budget, between, needed, required, bytes_of)
    return kept | set(required)


def _readers(tensor: Tensor, forward: Sequence[Tensor]) -> int:
    return sum(any(s is tensor for s in reader.inputs) for reader in forward)


def _within(
    budget: int,
    between: Sequence[Tensor],
    needed: Sequence[Tensor],
    required: Collection[Tensor],
    bytes_of: dict[Tensor, int],
) -> set[Tensor]:
    """The choice with the least work among those of at most ``budget`` bytes."""
    number = {t: n for n, t in enumerate(between)}
    choices = Choices(
        [[number[s] for s in dict.fromkeys(t.inputs) if s in number] for t in between],
        [work_of(t) for t in between],
        [bytes_of[t] for t in between],
        frozenset(number[t] for t in (*needed, *required) if t in number),
        frozenset(number[t] for t in required),
    )
    found = best_choice(choices, budget)
    if found is None:
        raise LoweringError(
            f"save={budget:,} bytes is below the {smallest_choice(choices).bytes:,} that cannot be computed again "
            f"({', '.join(t.name for t in required)}); give at least as many"
        )
    return {between[n] for n in found.kept}


def work_of(tensor: Tensor) -> int:
    """The operations of computing ``tensor`` from what it reads; a guess where sizes are symbolic."""
    if isinstance(tensor, Compute):
        return operations(tensor, extent_of)
    elements = _UNKNOWN_WORK
    for extent in tensor.shape:
        elements *= extent_of(extent)
    return elements


def needed_for(
    wanted: Iterable[Tensor], kept: Collection[Tensor], at_hand: Collection[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """What is read and what is computed again to have ``wanted``: residuals, and tensors that are made from these."""

    def is_there(tensor: Tensor) -> bool:
        return tensor in kept or tensor in at_hand or not tensor.inputs

    found = reached(wanted, lambda tensor: () if is_there(tensor) else tensor.inputs)
    return [t for t in found if is_there(t)], [t for t in found if not is_there(t)]


_FREE = ("cast", "select", "and", "or", "not")


def operations(tensor: Compute, extent_of: Callable[[Any], int]) -> int:
    """Operations of computing all elements; ``extent_of`` says how many positions an extent stands for."""
    total = 0
    for extents, count in _scopes(tensor):
        points = count
        for extent in extents:
            points *= extent_of(extent)
        total += points
    return total


def operations_text(tensors: Sequence[Compute]) -> str:
    """Operations of computing ``tensors``, as a sum of products of sizes: ``6 * n * m + 128``."""
    return sum_text([scope for tensor in tensors for scope in _scopes(tensor)])


def sum_text(products: Sequence[tuple[Sequence[Expr], int]]) -> str:
    """The sum of numbers, each times the product of extents."""
    constant = 0
    terms: dict[str, int] = {}
    for extents, count in products:
        sizes: list[str] = []
        for extent in map(normal, extents):
            if isinstance(extent, Const):
                count *= int(extent)
            else:
                shown = text(extent)
                sizes.append(f"({shown})" if " " in shown else shown)
        if sizes:
            key = " * ".join(sorted(sizes))
            terms[key] = terms.get(key, 0) + count
        else:
            constant += count
    shown_terms = [key if count == 1 else f"{count:,} * {key}" for key, count in terms.items() if count]
    if constant or not shown_terms:
        shown_terms.append(f"{constant:,}")
    return " + ".join(shown_terms)


def _scopes(tensor: Compute) -> list[tuple[list[Expr], int]]:
    """For the body and each reduction in it, the extents of its points and the operations at each."""
    found: list[tuple[list[Expr], int]] = []
    pending: list[tuple[Sequence[Expr], list[Axis], int]] = [((tensor.body,), list(tensor.axes), 1)]
    seen: set[object] = set()
    while pending:
        roots, axes, own = pending.pop()
        nodes, reductions = _scope(roots)
        found.append(
            (
                [_extent(a) for a in axes],
                own + sum(isinstance(n, Call) and n.op.name not in _FREE for n in nodes),
            )
        )
        for node in reductions:
            one_pass = (node.exprs, node.axes, node.where)
            if one_pass not in seen:  # the results of a tuple reduction are found together
                seen.add(one_pass)
                pending.append((node.children, [*axes, *node.axes], 1))
    return found


def _scope(roots: Sequence[Expr]) -> tuple[list[Expr], list[Reduce]]:
    """The nodes below ``roots`` that are evaluated at each point, and the reductions at which they end."""
    found = reached(roots, lambda node: () if isinstance(node, Reduce) else node.children)
    reductions = [node for node in found if isinstance(node, Reduce)]
    return [node for node in found if not isinstance(node, Reduce)], reductions


def _extent(axis: Axis) -> Expr:
    """How many positions ``axis`` has at most: where its range depends on other axes, at the first of these."""
    extent = axis.extent
    return substitute(extent, {a: a.lo for a in _scope([extent])[0] if isinstance(a, Axis)})


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
