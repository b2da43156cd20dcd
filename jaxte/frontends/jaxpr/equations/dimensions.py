"""Which dimension of a result each dimension of an operand is, of primitives that go position by position along the dimensions that both have.

    mul of (i, j) and (i, j)                            (0, 1) and (0, 1)
    broadcast_in_dim of (j,) to (i, j)                  (1,)
    reduce_sum of (i, j) along j                        (0, None)
    dot_general of (b, m, k) and (b, k, n) to (b, m, n) (0, 1, None) and (0, None, 2)

All else that is asked of such primitives follows: what of an operand a part of the result needs, where the result is zero, what its elements depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from jaxte.frontends.jaxpr.rules.elementwise import ELEMENTWISE

# of an operand, as those of the result; None of one that it does not have
Dimensions = tuple[int | None, ...]
Shapes = Sequence[Sequence[int]]


def dimensions(eqn: Any) -> list[Dimensions] | None:
    """Those of each operand; None of a primitive that mixes positions in another way. What is repeated along a dimension does not have it."""
    row = _ROWS.get(eqn.primitive.name)
    found = None if row is None else row(eqn.params, [v.aval.shape for v in eqn.invars])
    if found is None:
        return None
    made = eqn.outvars[0].aval.shape
    return [
        tuple(None if d is None or e != made[d] else d for d, e in zip(own, v.aval.shape, strict=True))
        for own, v in zip(found, eqn.invars, strict=True)
    ]


def _same(p: Any, shapes: Shapes) -> Sequence[Dimensions]:
    return [tuple(range(len(s))) for s in shapes]


def _broadcast(p: Any, shapes: Shapes) -> Sequence[Dimensions] | None:
    return [p["broadcast_dimensions"]] if len(shapes) == 1 else None  # others are symbolic sizes


def _transposed(p: Any, shapes: Shapes) -> Sequence[Dimensions]:
    return [tuple(p["permutation"].index(d) for d in range(len(shapes[0])))]


def _squeezed(p: Any, shapes: Shapes) -> Sequence[Dimensions]:
    rank = len(shapes[0])
    return [_without(rank, {d % rank for d in p["dimensions"]})]


def _expanded(p: Any, shapes: Shapes) -> Sequence[Dimensions]:
    rank = len(shapes[0]) + len(p["dimensions"])
    new = {d % rank for d in p["dimensions"]}
    return [tuple(d for d in range(rank) if d not in new)]


def _reduced(p: Any, shapes: Shapes) -> Sequence[Dimensions]:
    return [_without(len(shapes[0]), p["axes"])]


def _without(rank: int, gone: Container[int]) -> Dimensions:
    kept = [d for d in range(rank) if d not in gone]
    return tuple(kept.index(d) if d in kept else None for d in range(rank))


def _product(p: Any, shapes: Shapes) -> Sequence[Dimensions]:
    summed, batched = p["dimension_numbers"]
    found: list[Dimensions] = []
    before = len(batched[0])
    for shape, own, batch in zip(shapes, summed, batched, strict=True):
        free = [d for d in range(len(shape)) if d not in own and d not in batch]
        at = {**{d: n for n, d in enumerate(batch)}, **{d: before + n for n, d in enumerate(free)}}
        found.append(tuple(at.get(d) for d in range(len(shape))))
        before += len(free)
    return found


REDUCTIONS = (
    "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "reduce_xor", "argmax", "argmin",
)  # fmt: skip
_ROWS: dict[str, Callable[[Any, Shapes], Sequence[Dimensions] | None]] = {
    **dict.fromkeys((*ELEMENTWISE, "stop_gradient", "reduce_precision"), _same),
    **dict.fromkeys(REDUCTIONS, _reduced),
    "broadcast_in_dim": _broadcast,
    "transpose": _transposed,
    "squeeze": _squeezed,
    "expand_dims": _expanded,
    "dot_general": _product,
}
NAMES = tuple(_ROWS)  # of these primitives
