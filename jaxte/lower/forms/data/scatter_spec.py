"""What a reduction at positions that are data is: values accumulated at arrays of positions in some dimensions of an array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from jaxte.lang.expr import ZERO, Expr
from jaxte.lower.code.spec import Array, Finish

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Position:
    """One entry of an index: all of a dimension, or an array of positions.

    Attributes:
        operand: which operand holds the positions; None for all of the dimension, or for ``count``.
        dims: the dimensions of the indexed block that the positions vary over.
        count: positions 0, 1, ..., count - 1 along one dimension of the block.
    """

    operand: int | None = None
    dims: tuple[int, ...] = ()
    count: Expr | None = None

    @property
    def whole(self) -> bool:
        return self.operand is None and self.count is None


@dataclass(frozen=True, slots=True)
class ScatterSpec:
    """Identities of ``shape`` with ``values`` accumulated at positions that are data.

    ``positions`` has an entry for each dimension; the arrays in ``indices`` vary over a block of ``block`` dimensions.
    ``method`` is how, as ``.at`` calls it, and ``identity`` what it starts from.
    ``finish`` is what is done to the result, which is 0 where ``guard`` does not hold. ``flags`` say what is known of the
    positions; ``order`` is how the dimensions are transposed in the end, None for not at all. ``hits`` are the conditions
    under which a value falls into the output. ``unsure`` says that positions may be out of range, ``flat`` that they are counted over all dimensions together.
    """

    values: Array
    indices: tuple[Array, ...]
    positions: tuple[Position, ...]
    block: int
    shape: tuple[Expr, ...]
    dtype: str
    finish: Finish
    guard: Array | None
    reason: str
    flags: tuple[str, ...] = ()
    order: tuple[int, ...] | None = None
    method: str = "add"
    identity: Expr = ZERO
    hits: tuple[Expr, ...] = ()
    unsure: bool = True
    flat: bool = False

    @property
    def target(self) -> int:
        """The first scattered dimension of the output."""
        return next(n for n, p in enumerate(self.positions) if p.operand is not None)

    @property
    def operands(self) -> tuple[Array, ...]:
        guards = () if self.guard is None else (self.guard,)
        return (self.values, *self.indices, *self.finish.operands, *guards)


def result_dims(positions: Sequence[Position], whole: Sequence[_T], block: Sequence[_T]) -> list[_T]:
    """The axes, or whatever stands for them, of ``base[positions]`` in NumPy's order: the block where the arrays stand side by side, else in front."""
    arrays = [n for n, p in enumerate(positions) if not p.whole]
    together = arrays[-1] - arrays[0] == len(arrays) - 1
    start = arrays[0] if together else 0
    slices = [axis for axis, p in zip(whole, positions, strict=True) if p.whole]
    return [*slices[:start], *block, *slices[start:]]
