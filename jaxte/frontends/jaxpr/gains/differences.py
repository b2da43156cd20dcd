"""Functions of differences of neighbours along several axes: Huber's, clipped or saturated ones, in priors of images and fields.

What flows back to the array is one pad for each slice of it. XLA fuses the function's slope with each of these pads, and where there are
several, its loop tests each element and uses no vectors. In index notation the slopes are an array, which slices of it are added from.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.frontends.jaxpr.equations.steps import OWN_DERIVATIVES, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.frontends.jaxpr.gains.gains import DEAR, gain_of
from jaxte.frontends.jaxpr.gains.pairs import elements
from jaxte.lang.dtypes import width
from jaxte.lower.cost.platforms import Platform
from jaxte.lower.cost.work import Work

_MARGIN = 1.2  # by which it has to be faster by estimate
_DEAR = DEAR | {"sqrt", "rsqrt", "cbrt"}
_SAVED = 3  # cheap functions in the time that is left for a dear one, whose slope JAX keeps as an array
_LOOPS = 4  # more loops for each difference: its slopes, and the edges of what is added


def slopes_are_dear(steps: Sequence[Step], reads: int, facts: Platform) -> bool:
    """Whether the slopes of functions of shifted reads take longer in JAX's transposes, of which ``reads`` are of one array, than as arrays."""
    slices, rolls = (_shifts(steps, name) for name in ("slice", "concatenate"))
    shifted = rolls or slices
    if not shifted:
        return False
    size = max(elements(s.outputs[0]) for s in shifted)
    differences = len(rolls) if rolls else max(1, len(slices) // 2)
    functions = _functions(steps, size // 2) / differences
    item = width(shifted[0].outputs[0].dtype)
    as_it_is = Work(tap=reads * functions * size)
    raised = Work(tap=functions * size, stream=(2.5 if rolls else 2.0) * item * size, kernel=_LOOPS)
    return as_it_is.seconds(facts.rates) > _MARGIN * raised.seconds(facts.rates)


def _shifts(steps: Sequence[Step], name: str) -> list[Step]:
    return [s for s in steps if s.name == name and gain_of(s)]


def _functions(steps: Sequence[Step], least: int) -> int:
    """Functions of at least so many elements, those that are dear subtracted."""
    own = [s for s in steps if _is_elementwise(s) and elements(s.outputs[0]) >= least]
    dear = sum(s.name in _DEAR for s in own)
    return max(0, len(own) - (1 + _SAVED) * dear)


def _is_elementwise(step: Step) -> bool:
    if step.name in OWN_DERIVATIVES:
        return True
    return (
        step.name in RULES
        and RULES[step.name].reads in (Reads.POINTWISE, Reads.LINEAR)
        and not step.name.startswith("broadcast")
        and step.name not in ("concatenate", "pad", "slice")
    )
