"""One step of a recurrence as it is written: with what loops within it do beside, and with what it reads in frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxte.lang.expr import Call, Reduce, as_expr
from jaxte.lang.limits import MANY_OPERATIONS
from jaxte.lang.walk import postorder, reads_of
from jaxte.lower.arrays.data import DynamicSlice
from jaxte.lower.arrays.elementwise import Full, Name, Number
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.choice import Choice
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.frames import with_frames
from jaxte.lower.recurrences.sums import within_loops
from jaxte.sets.intervals import extent_of
from jaxte.tensors.recurrences.node import Final, Recurrence, Recurrent, State
from jaxte.tensors.recurrences.step import Step
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.shapes import Shape
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


FORM = "recurrence"


def spread(step: Step) -> int:
    """At how many places what a step begins with is read for one element of its results, by chains of reads that XLA fuses: sums and loops are not."""
    found: dict[Tensor, Counter[Tensor]] = {t: Counter([t]) for t in step.carried.values()}
    for tensor in step.order:
        own = found[tensor] = Counter[Tensor]()
        if isinstance(tensor, Compute) and not tensor.body.reduces:
            for read in dict.fromkeys(reads_of(tensor.body)):
                own.update(found.get(read.tensor, {}))
    return max((n for t in step.results for n in found.get(t, {}).values()), default=0)


def window(node: Node, axis: int, at: Node, length: int) -> Node:
    """``length`` elements along ``axis``."""
    sizes = tuple(length if n == axis else extent_of(e) for n, e in enumerate(node.shape))
    return DynamicSlice(node, tuple(at if n == axis else None for n in range(len(sizes))), sizes)


def zeros(shape: Shape, dtype: str) -> Full:
    return Full(tuple(map(as_expr, shape)), Number(False if dtype == "bool" else 0), dtype)


def ended_by(wanted: Sequence[Recurrent]) -> frozenset[State]:
    """The states of which the last value is among ``wanted``."""
    return frozenset(t.group.states[t.position] for t in wanted if isinstance(t, Final))


def choices_of(wanted: Sequence[Recurrent], step: Step, inner: Sequence[Choice]) -> list[Choice]:
    """What became of the tensors, and of those that exist in a step only."""
    shown = " and ".join(t.name for t in wanted)
    carried = ", ".join(dict.fromkeys(s.name for s in (*(s for s, _ in step.carried), *step.history)))
    form = f"{FORM}: one scan over {step.clock.name}, which carries {carried}"
    found = [Choice(t.name, form) for t in wanted]
    return [*found, *(replace(c, form=f"in each step of {shown}: {c.form}", target="") for c in inner)]


@dataclass(frozen=True)
class Beside:
    """Tensors at a fixed distance from the position of a step, a parameter of it."""

    parameter: str
    offset: int
    names: Mapping[Tensor, Name]
