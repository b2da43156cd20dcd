"""Tensors in pieces that one other tensor reads, element by element: they are put together before that.

XLA writes pieces into one array in place, unless a loop over all elements reads it: it then makes them part of that loop, where each element asks
which piece it is in. That is two to four times the time of writing them and reading them again, more if the loop calls ``tanh`` or ``exp``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from jaxte.lang.expr import Axis
from jaxte.lang.walk import reads_of
from jaxte.lower.arrays.data import Updated
from jaxte.lower.arrays.elementwise import Kept
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.tensors.tensor import Compute, Tensor


def read_by_one(order: Iterable[Tensor], returned: frozenset[Tensor]) -> frozenset[Tensor]:
    """The tensors among those computed in ``order`` that one other reads, at its own axes only, and no caller."""
    times: Counter[Tensor] = Counter(returned)
    moved: set[Tensor] = set()
    for reader in order:
        if isinstance(reader, Compute):
            times.update(reader.inputs)
            moved |= {
                r.tensor for r in reads_of(reader.body) if not all(isinstance(i, Axis) for i in r.indices)
            }
    return frozenset(t for t, n in times.items() if n == 1 and t not in moved and t not in returned)


def put_together(statement: AnyStatement) -> AnyStatement:
    """``statement`` with its value computed before what reads it, if that is an array into which pieces are written."""
    if isinstance(statement, Statement) and isinstance(statement.source, Updated):
        return replace(statement, source=Kept(statement.source, "apart"))
    return statement
