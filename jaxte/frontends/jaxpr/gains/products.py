"""Products of matrices that are written as a product of repeated arrays and its sum, ``jnp.sum(a[:, None] * b[None], -1)``.

So are the scores of pairs that are vmapped twice, cosine similarities, and products of batches by hand. XLA writes all products of elements
before it adds them, and what flows back to each of them as well; in index notation it is one product of matrices, and so are its gradients.
"""

from __future__ import annotations

from math import prod

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.gains.pairs import elements
from jaxte.lang.dtypes import is_float, width
from jaxte.lower.cost.platforms import Platform
from jaxte.lower.cost.work import Work

_PASSES = 3  # the value, and the gradient of each factor
_MOST_STEPS = 16  # between the factors and the sum
_MARGIN = 1.3  # by which it has to be faster by estimate
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
    while stack and len(passed) < _MOST_STEPS:
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
    if as_it_is < _MARGIN * raised:
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
