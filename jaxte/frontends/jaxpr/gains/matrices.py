"""Products of matrices whose gradients JAX writes in slower ways than index notation: raised by themselves, with nothing around them.

- ``x[b, t, k] @ w[k, n]``: JAX multiplies what flows back by ``x`` and transposes the result. XLA makes one product of it for which
  both are laid out again, and which the fast routine does not take; ``sum over b, t of x[b, t, k] * dy[b, t, n]`` it does.
- ``x @ x.T``: JAX differentiates both factors, two products; in index notation it is one, with the sum of what flows back and its transpose.
- Products of small matrices with many rows, or many with one another: XLA calls a routine for large ones, or one for each.

Products of matrices that are written as a product of repeated arrays and its sum, ``jnp.sum(a[:, None] * b[None], -1)``.

So are the scores of pairs that are vmapped twice, cosine similarities, and products of batches by hand. XLA writes all products of elements
before it adds them, and what flows back to each of them as well; in index notation it is one product of matrices, and so are its gradients.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.gains.sums import elements
from jaxte.lang.dtypes import is_complex, is_float, is_inexact, width
from jaxte.lang.limits import (
    FEW,
    FEW_POSITIONS,
    LEVELS,
    MANY_ELEMENTS,
    MARGIN,
    NARROW,
    SMALLEST,
    WORTH_MULTIPLYING,
)
from jaxte.lower.cost.paces import SIZES
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import Work

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
    if _is_large(step) and prod(step.inputs[0].shape[d] for d in contracted) >= NARROW:
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
    return step.name == "dot_general" and _is_plain(step) and _multiplications(step) >= WORTH_MULTIPLYING


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


def is_small_product(step: Step) -> bool:
    """Whether ``step`` multiplies many rows by one small matrix, or many small matrices (and of complex numbers vectors) with one another."""
    if step.name != "dot_general" or any(0 in s.shape or not is_inexact(s.dtype) for s in step.inputs):
        return False
    contracted, batched = step.eqn.params["dimension_numbers"]
    x, y = step.inputs
    k = prod(x.shape[d] for d in contracted[0])
    batch = prod(x.shape[d] for d in batched[0])
    m, n = (prod(s.shape) // (k * batch) for s in (x, y))
    sides = m, k, n
    if is_complex(x.dtype) or is_complex(y.dtype):
        # XLA calls a routine for each, of however few numbers, and multiplies many rows by one small matrix well.
        return batch > 1 and batch * m * n >= SMALLEST and max(sides) <= FEW_POSITIONS
    if batch > 1:
        # The sums of matrices with short sides are written out.
        return (
            batch * m * n >= MANY_ELEMENTS
            and 2 <= min(sides)
            and max(sides) <= FEW_POSITIONS
            and m * k * n >= SIZES.loop
        )
    rows, side = max(m, n), min(m, n)
    many = contracted[0] if m >= n else contracted[1]
    # An even number of numbers fills vectors also in a product of matrices.
    is_small = 2 <= min(side, k) and max(side, k) <= FEW and (side | k) & 1
    return bool(is_small) and rows >= SMALLEST and 0 not in many


_PASSES = 3  # the value, and the gradient of each factor
_PRODUCTS = ("mul", "square", "integer_pow")
_VIEWS = ("broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims")


def summed_product(step: Step) -> list[Step] | None:
    """The steps that repeat the factors and multiply them, of which ``step`` is the sum and the only reader; None where it is no such sum."""
    found = _factors(step)
    return None if found is None else found[1]


def _factors(step: Step) -> tuple[list[Slot], list[Step]] | None:
    """The factors of the product that ``step`` sums, all of them smaller than it, and the steps between."""
    if step.name != "reduce_sum" or not is_float(step.outputs[0].dtype):
        return None
    (product,) = step.inputs
    passed: list[Step] = []
    factors: list[Slot] = []
    stack = [(product, step)]
    # Few steps stand between the factors and the sum.
    while stack and len(passed) < LEVELS:
        slot, reader = stack.pop()
        own = slot.origin
        if own is not None and own.name in _PRODUCTS and set(slot.readers) == {reader} and slot.known is None:
            passed.append(own)
            stack += [(factor, own) for factor in own.inputs]
        else:
            factors.append(_before_views(slot, passed))
    if (
        stack
        or len(set(factors)) < 2
        or any(f.known is not None or f.dtype != product.dtype for f in factors)
    ):
        return None
    return (
        (factors, list(dict.fromkeys(passed[::-1])))
        if all(elements(f) < elements(product) for f in factors)
        else None
    )


def gain_of_sum(step: Step, facts: Platform) -> str:
    """What the sum of a product of repeated arrays gains as a product of matrices; empty where nothing."""
    if summed_product(step) is None:
        return ""
    as_it_is, raised = (work.seconds(facts.rates) for work in _works(step, facts))
    if as_it_is < MARGIN * raised:
        return ""
    return "a product of repeated arrays that is summed: a product of matrices, and so are its gradients"


def _works(step: Step, facts: Platform) -> tuple[Work, Work]:
    """The work of all passes as they stand, and as products of matrices."""
    (product,), found = step.inputs, _factors(step)
    size, item = elements(product), width(product.dtype)
    ends = elements(step.outputs[0]) + sum(map(elements, found[0] if found else ()))
    if facts.fuses_products:
        as_it_is = Work(tap=_PASSES * size, kernel=_PASSES)
    else:
        as_it_is = Work(stream=2.0 * _PASSES * size * item, temporaries=2.0 * size * item)
    raised = Work(dot=2.0 * _PASSES * size, stream=float(_PASSES * ends * item), kernel=_PASSES)
    return as_it_is, raised


def _before_views(slot: Slot, passed: list[Step]) -> Slot:
    """What ``slot`` is a view or a repetition of; the steps in between are put into ``passed``."""
    while (step := slot.origin) is not None and step.name in _VIEWS and slot.known is None:
        if prod(step.inputs[0].shape) == 1:
            break
        passed.append(step)
        slot = step.inputs[0]
    return slot
