"""Reductions over windows that are left to JAX where registers are rows of one axis, in which elements are dear to move against each other.

On a TPU sums over windows along rows are one kernel of XLA, forward and backward, and what flows back through an extremum has a unit of its own: Harris corners took
23 kernels for 19 raised, a pool of 3 x 3 two positions apart 26 for 6.
"""

from __future__ import annotations

from math import prod

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.steps import Step
from jaxte.lang import dtypes

_COMPARED = 12  # kernels of comparisons, two dimensions one after the other, more than of select_and_scatter, which reads and writes as much again


def moves_along_rows(step: Step) -> bool:
    """Whether windows are more than one position of the last axis, which is that of registers."""
    return step.eqn.params["window_dimensions"][-1] > 1


def is_left_to_scatter(step: Step) -> bool:
    """Whether what flows back through an extremum over windows is left to ``select_and_scatter``, one kernel where windows are compared one dimension after the other.

    A TPU has it where two dimensions or more are not in a window. Windows apart from each other gain from as many bytes of an argument on as the further
    kernels take to start; what is computed before stays on the chip.
    """
    facts, (source, *_), params = planned_facts(), step.inputs, step.eqn.params
    windows = list(zip(params["window_dimensions"], params["window_strides"], strict=True))
    if not facts.reads_windows_again or sum(own == (1, 1) for own in windows) < 2:
        return False
    *rest, last = source.shape
    moved = prod(rest) * -(-last // facts.lanes) * facts.lanes * dtypes.width(source.dtype)
    least = (
        _COMPARED * facts.rates.stream / facts.rates.kernel if source.origin is None else facts.rates.cache
    )
    return moved < least or any(size > stride for size, stride in windows)
