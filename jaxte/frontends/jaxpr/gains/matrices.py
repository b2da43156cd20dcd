"""Products of matrices whose gradients JAX writes in slower ways than index notation: raised by themselves, with nothing around them.

- ``x[b, t, k] @ w[k, n]``: JAX multiplies what flows back by ``x`` and transposes the result. XLA makes one product of it for which
  both are laid out again, and which the fast routine does not take; ``sum over b, t of x[b, t, k] * dy[b, t, n]`` it does.
- ``x @ x.T``: JAX differentiates both factors, two products; in index notation it is one, with the sum of what flows back and its transpose.
- Products of small matrices with many rows, or many with one another: XLA calls a routine for large ones, or one for each.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.lang.dtypes import is_float

_LEAST = 1 << 19  # multiplications, below which nothing is to be gained
_SHORTEST = (
    16  # elements that are summed for each of a product of an array with itself: it adds two of its results
)
TRANSPOSES = ("transpose", "copy")


def gain_of_layer(step: Step) -> str:
    """What a product of a matrix with rows along several axes gains; empty where nothing."""
    if _is_large(step) and any(_is_turned(step, n) for n in (0, 1)):
        return (
            "a matrix times rows along several axes: its gradient is one product as it stands, not transposed"
        )
    return ""


def gain_of_square(step: Step) -> str:
    """What a product of an array with itself gains; empty where nothing."""
    (contracted, _), _ = step.eqn.params["dimension_numbers"]
    if _is_large(step) and prod(step.inputs[0].shape[d] for d in contracted) >= _SHORTEST:
        return "a product of an array with itself: its gradient is one product, not two"
    return ""


def squared(step: Step) -> list[Step] | None:
    """The transpositions before ``step`` where both factors are the same array, transposed or not; None where they are not."""
    if step.name != "dot_general":
        return None
    found: list[Step] = []
    sources = [_source(slot, found) for slot in step.inputs]
    return found if sources[0] is sources[1] else None


def _is_large(step: Step) -> bool:
    return step.name == "dot_general" and _is_plain(step) and _multiplications(step) >= _LEAST


def _source(slot: Slot, passed: list[Step]) -> Slot:
    while slot.origin is not None and slot.origin.name in TRANSPOSES:
        passed.append(slot.origin)
        slot = slot.origin.inputs[0]
    return slot


def _is_plain(step: Step) -> bool:
    """Whether both factors are differentiated, and the product is what its factors say, in their precision."""
    p: Any = step.eqn.params
    (out,) = step.outputs
    asked = p.get("preferred_element_type")
    return (
        all(s.known is None and is_float(s.dtype) and s.dtype == out.dtype for s in step.inputs)
        and p.get("precision") is None
        and (asked is None or str(asked) == out.dtype)
        and p.get("out_sharding") is None
    )


def _multiplications(step: Step) -> int:
    (contracted, _), _ = step.eqn.params["dimension_numbers"]
    return prod(step.outputs[0].shape) * prod(step.inputs[0].shape[d] for d in contracted)


def _is_turned(step: Step, matrix: int) -> bool:
    """Whether JAX transposes the gradient of factor ``matrix``, after summing over several axes of the other one.

    Of a matrix XLA does this in the product; with three dimensions it transposes the result. For a matrix that was transposed itself,
    it is transposed twice, which is not at all.
    """
    contracted, batched = step.eqn.params["dimension_numbers"]
    slot = step.inputs[matrix]
    if any(batched) or len(slot.shape) != 2 or contracted[matrix] != (0,):
        return False
    if slot.origin is not None and slot.origin.name in TRANSPOSES:
        return False
    return len(step.inputs[1 - matrix].shape) - 1 > 1


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
