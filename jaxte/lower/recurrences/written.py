"""One step of a recurrence as it is written: with what loops within it do beside, and with what it reads in frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from jaxte.lang.expr import Call, Reduce
from jaxte.lang.limits import MANY_OPERATIONS
from jaxte.lang.walk import postorder
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.frames import with_frames
from jaxte.lower.recurrences.sums import within_loops
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.recurrences.step import Step
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

_MANY = 512  # elements, of which another pass takes as long as a call


def written_step(group: Recurrence, policy: Policy, wanted: Collection[State] | None = None) -> Step:
    """One step of ``group``.

    Args:
        group: the recurrence.
        policy: has the rates of the platform.
        wanted: the states that something reads behind the loop, which are made beside those that are handed on; all of them by default.
    """
    step = step_of(group)
    needed = set(group.states if wanted is None else wanted)
    needed |= {state for state, _ in step.carried} | set(step.history)
    results = [r for s, r in zip(group.states, step.results, strict=True) if s in needed]
    return with_frames(_with_loops(step.only(results), results, policy))


def read_again(step: Step, policy: Policy) -> frozenset[Tensor]:
    """The tensors of ``step`` that XLA would compute for each that reads them, many operations on many elements: the adjoint of a sweep with edges, say."""
    if not policy.facts.drops_barriers:
        return frozenset()
    readers = Counter(t for own in step.order for t in own.inputs)
    readers.update(set(step.results))
    return frozenset(t for t in step.order if isinstance(t, Compute) and readers[t] > 1 and _is_long(t))


def _is_long(tensor: Compute) -> bool:
    nodes = postorder(tensor.body)
    calls = sum(isinstance(n, Call) and not n.weak for n in nodes)
    return (
        calls >= MANY_OPERATIONS
        and not any(isinstance(n, Reduce) for n in nodes)
        and points(tensor.axes) >= _MANY
    )


def _with_loops(step: Step, results: Collection[Compute], policy: Policy) -> Step:
    """``step`` with recurrences within it that do what those of a program do: add up sums, end with what alone is read of them."""
    if not any(isinstance(t, Recurrent) for t in step.order):
        return step
    made: set[Tensor] = {*step.order}
    given = frozenset(t for own in step.order for t in own.inputs if t not in made)
    known = within_loops(topological_order(results), given, frozenset(results), policy)
    if not known:
        return step
    order = topological_order(
        [known.get(t, t) for t in results], lambda tensor: () if tensor in given else tensor.inputs
    )
    return step.renewed([t for t in order if isinstance(t, (Compute, Recurrent))], known)
