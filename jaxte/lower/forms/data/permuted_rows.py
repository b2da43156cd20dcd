"""Rows in the order of a permutation, ``Y[i, j] = X[P[i], j]``, written each to its place where the inverse Q of P is known.

``X.at[Q].set(X)`` reads X from front to back and writes at positions that are data; a gather reads at such positions and writes
from front to back. XLA on the CPU copies rows of up to 75 elements one element after the other where a gather is all that a loop does (LLVM
unrolls it before it looks for vectors), so that few rows are on their way from memory at a time. The loop of a scatter is not
unrolled, and what is written need not be waited for. Every position occurs once, so that a copy of X is written over in whole; zeros in its
place would be one array for all scatters of a program, which XLA copies as well.
"""

from __future__ import annotations

import math

from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lower.arrays.data import IN_BOUNDS, Scatter
from jaxte.lower.arrays.node import Node
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.cost.signature import signature
from jaxte.lower.cost.work import Work
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of
from jaxte.tensors.facts import Permutation, find
from jaxte.tensors.tensor import Compute, Tensor

BY_INVERSE = "scatter by the inverse"


def inverse_of(read: Expr) -> Tensor | None:
    """The inverse of the permutation that ``read`` takes rows by, where they may as well be written to their places."""
    match read:
        case Read(tensor=table, indices=(Read(tensor=order, indices=(Axis() as row,)), *rest)):
            fact = find(order, Permutation)
        case _:
            return None
    if (
        fact is None or fact.inverse is None or table.dtype == "bfloat16"
    ):  # of which XLA makes float32 and back
        return None
    rows = normal(as_expr(order.shape[0]))
    if row.lo is not as_expr(0) or normal(row.hi) is not rows or normal(as_expr(table.shape[0])) is not rows:
        return None
    if not all(isinstance(index, Axis) for index in rest):
        return None
    return fact.inverse


def gathered(read: Read) -> Work:
    """The work of the gather that ``read`` is."""
    return Work(gathered_row=_elements(read), kernel=1)


def scattered(read: Read) -> Work:
    """The work of writing the rows of ``read`` to their places in a copy."""
    return Work(scattered_row=_elements(read), kernel=2)


def _elements(read: Read) -> int:
    return math.prod(map(extent_of, read.tensor.shape))


def scatter_code(base: Node, inverse: Node) -> Node:
    """The rows of ``base`` at the positions ``inverse``: all of them are written, so that what they are written over is no matter."""
    return Scatter(base, (inverse,), "set", base, IN_BOUNDS, ("unique_indices",))


def inverse_wanted(result: Tensor, policy: Policy) -> Tensor | None:
    """The index tensor that ``result`` of a function does not read, but is fastest written with."""
    if not isinstance(result, Compute) or (inverse := inverse_of(result.body)) is None:
        return None
    assert isinstance(result.body, Read)
    named = policy.forms.get(result.name, policy.forms.get(ANY))
    if named is not None or BY_INVERSE in policy.without:
        return inverse if named == BY_INVERSE else None
    measured = policy.measured.get(signature(result.axes, result.body), {})
    if BY_INVERSE in measured:
        return inverse if min(measured, key=lambda form: measured[form]) == BY_INVERSE else None
    taken = policy.facts.margin * scattered(result.body).seconds(policy.rates)
    return inverse if taken < gathered(result.body).seconds(policy.rates) else None
