"""Products of small matrices with many rows, or many with one another: XLA calls a routine for large ones, or one for each.

Written out, ``x[n, 0] * r[0, j] + x[n, 1] * r[1, j] + ...``, they are part of the loop around them.
"""

from __future__ import annotations

from math import prod

from jaxte.frontends.jaxpr.equations.steps import Step
from jaxte.lang.dtypes import is_float

_MANY_ROWS = 1024  # for one matrix
_ODD, _LONGEST_SIDE = (
    3,
    4,
)  # of one matrix, for many rows; two or four numbers fill vectors also in a product of matrices
_MANY_MATRICES = 512
_LONGEST_OF_MANY = 8
_LEAST_OF_MANY = 32  # multiplications for each; fewer XLA writes out itself


def is_small_product(step: Step) -> bool:
    """Whether ``step`` multiplies many rows by one small matrix, or many small matrices with one another."""
    if step.name != "dot_general" or any(0 in s.shape or not is_float(s.dtype) for s in step.inputs):
        return False
    contracted, batched = step.eqn.params["dimension_numbers"]
    x, y = step.inputs
    k = prod(x.shape[d] for d in contracted[0])
    batch = prod(x.shape[d] for d in batched[0])
    m, n = (prod(s.shape) // (k * batch) for s in (x, y))
    if batch > 1:
        sides = m, k, n
        return (
            batch >= _MANY_MATRICES
            and 2 <= min(sides)
            and max(sides) <= _LONGEST_OF_MANY
            and m * k * n >= _LEAST_OF_MANY
        )
    rows, side = max(m, n), min(m, n)
    many = contracted[0] if m >= n else contracted[1]
    is_small = 2 <= min(side, k) and max(side, k) <= _LONGEST_SIDE and _ODD in (side, k)
    return is_small and rows >= _MANY_ROWS and 0 not in many
