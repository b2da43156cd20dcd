"""Rows that several tensors gather: known before any of them is lowered, so that the order in which they are shows in no form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from jaxte.lang.expr import Expr, Read
from jaxte.lang.walk import reads_of
from jaxte.tensors.tensor import Tensor

Rows = tuple[Tensor, tuple[Tensor | None, ...]]
"""A tensor and, for each of its dimensions, the tensor of positions that it is read at, if that is one."""


def rows_of(read: Read) -> Rows | None:
    """What ``read`` gathers; None where no position is data."""
    positions = tuple(index.tensor if isinstance(index, Read) else None for index in read.indices)
    return (read.tensor, positions) if any(p is not None for p in positions) else None


def gathered_twice(bodies: Iterable[Expr]) -> frozenset[Rows]:
    """The rows that more than one of ``bodies`` gathers."""
    counts = Counter(rows for body in bodies for rows in {rows_of(read) for read in reads_of(body)})
    return frozenset(rows for rows, count in counts.items() if rows is not None and count > 1)
