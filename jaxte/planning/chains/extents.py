"""How large the tensors of a chain are, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Const, Expr, as_expr
from jaxte.planning.chains.found import Chain


class Apart(Exception):
    """Steps that are no recurrence."""


@dataclass(frozen=True)
class Extents:
    """How large the tensors of one role are.

    Attributes:
        largest: extents that all of them fit into.
        own: of axes along which they differ, the extent as what it is at the first step and how much it grows in each.
    """

    largest: tuple[Expr, ...]
    own: Mapping[int, tuple[int, int]]


def extents_of(chain: Chain, role: int) -> Extents:
    """The extents of the tensors of ``role``.

    Raises:
        Apart: they differ by more than a number of elements in each step.
    """
    tensors = [*chain.roles[role]]
    starts = [t for (own, _), t in chain.starts.items() if own == role]
    if any(t.ndim != tensors[0].ndim or t.dtype != tensors[0].dtype for t in starts):
        raise Apart
    largest: list[Expr] = []
    own: dict[int, tuple[int, int]] = {}
    for axis in range(tensors[0].ndim):
        every = [as_expr(t.shape[axis]) for t in (*tensors, *starts)]
        if all(e is every[0] for e in every):
            largest.append(every[0])
            continue
        numbers = [e.value for e in every if isinstance(e, Const) and isinstance(e.value, int)]
        if len(numbers) < len(every):
            raise Apart
        own[axis] = line(numbers[: len(tensors)])
        largest.append(as_expr(max(numbers)))
    return Extents(tuple(largest), own)


def line(numbers: Sequence[int]) -> tuple[int, int]:
    """The first of ``numbers``, and by how much each is larger than the one before.

    Raises:
        Apart: they are not on a line.
    """
    step = numbers[1] - numbers[0]
    if any(n != numbers[0] + k * step for k, n in enumerate(numbers)):
        raise Apart
    return numbers[0], step
