"""Graphs whose definitions are planned: each by the steps of ``STEPS`` in turn, its sums by those of :mod:`jaxte.planning.sums`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxte.lang.budget import bounded
from jaxte.lang.expr import Expr, Read
from jaxte.lang.rules import Rule, applied
from jaxte.lang.walk import reads_of, rewrite_reads
from jaxte.planning.asked import Asked, intermediates
from jaxte.planning.chains.at_once import in_blocks
from jaxte.planning.chains.groups import with_other_groups, without_held_ends
from jaxte.planning.chains.idle_axes import without_idle_axes
from jaxte.planning.chains.rolled import with_chains, with_known_chains
from jaxte.planning.conditions.data_equations import bodies_where_read
from jaxte.planning.conditions.distances import with_distances
from jaxte.planning.conditions.piecewise_choices import with_piecewise_reads
from jaxte.planning.conditions.plain_conditions import with_narrow_reads
from jaxte.planning.conditions.prefix_differences import window_bodies
from jaxte.planning.indices.digits import Digits
from jaxte.planning.indices.fewer_axes import with_fewer_axes
from jaxte.planning.indices.fewer_elements import read_in_part, where_read
from jaxte.planning.indices.known import with_known
from jaxte.planning.indices.pairs import with_pairs
from jaxte.planning.indices.phases import with_phases_as_one
from jaxte.planning.indices.repeats import layouts, read_through, with_repeats_counted
from jaxte.planning.indices.shared_elements import with_shared_elements
from jaxte.planning.indices.strides import with_rows
from jaxte.planning.sum_steps import SUMS
from jaxte.planning.sums import CONDITIONS, DEFINITIONS, Definition, planned_body, renewed
from jaxte.tensors.copies import Extended
from jaxte.tensors.structure import Known, PartialSum, mark_parts, topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class Surroundings:
    """What the steps know of the other tensors of a graph.

    Attributes:
        windows: bodies without prefixes, of tensors in which differences of prefix sums stand.
        around: bodies of sums under the conditions on data where they are read.
        few: the sums of which fewer elements are read than there are.
        layouts: the tensors that only reductions read, which may read through them.
        copies: those with continued ends that exist, which grow.
        parts: partial sums that exist.
    """

    windows: Mapping[Tensor, Expr]
    around: Mapping[Tensor, Expr]
    few: dict[Tensor, Compute]
    layouts: Mapping[Tensor, Compute]
    copies: dict[object, Extended] = field(default_factory=dict)
    parts: Sequence[PartialSum] = ()


@dataclass(frozen=True)
class InGraph(Asked):
    """Where a step for a tensor of a graph is asked.

    Attributes:
        original: the tensor as it was defined.
        graph: what is known of the others.
    """

    original: Compute | None = None
    graph: Surroundings = field(default_factory=lambda: Surroundings({}, {}, {}, {}))


Step = Rule[Expr, InGraph]
Outputs = tuple[Tensor, ...]


def _window(body: Expr, at: InGraph) -> Expr:
    assert at.original is not None
    return at.graph.windows.get(at.original, body)


def _around(body: Expr, at: InGraph) -> Expr:
    assert at.original is not None
    return at.graph.around.get(at.original, body) if body is at.original.body else body


# of bodies that read the tensors as they were defined
READING = (
    Step("windows for prefixes", _window, "differences of prefix sums are sums over windows"),
    Step("conditions around", _around, "what no element that is read reads is not multiplied by zeros"),
    Step(
        "read in part",
        lambda body, at: where_read(body, at.graph.few),
        "of a sum, the elements that are read are computed",
    ),
    Step(
        "read through",
        lambda body, at: read_through(body, at.graph.layouts),
        "sums read elements where they come from, not in a copy",
    ),
    Step(
        "repeats counted",
        lambda body, at: with_repeats_counted(body),
        "equal elements are counted, not read one after the other",
    ),
)
# of tensors whose inputs are planned
PLAIN = (
    CONDITIONS,
    Step("narrow reads", lambda body, at: with_narrow_reads(body), "an end that is never reached is not held"),
    Step("reads at edges", lambda body, at: with_piecewise_reads(body), "choices at edges are one read that is held there"),
    Step("rows gathered once", lambda body, at: with_rows(body), "a row at a position that is data is gathered once"),
)  # fmt: skip
WHOLE = (
    Rule[Compute, InGraph](
        "known matrices",
        lambda own, at: _with(own, at, with_known(own)),
        "functions of positions alone are computed when the program is traced",
    ),
    Rule[Compute, InGraph](
        "fewer axes",
        lambda own, at: _with(own, at, with_fewer_axes(own)),
        "what does not depend on all axes is computed once for all points that have it",
    ),
)
PAIRS = Rule[Compute, InGraph](
    "pairs", lambda own, at: _with(own, at, with_pairs(own)), "a function of two sides is computed once for both"
)  # fmt: skip


def _graph(name: str, apply: Callable[[Outputs], Outputs], reason: str) -> Rule[Outputs, Asked]:
    """A row for all tensors of a graph together."""
    return Rule(name, lambda outputs, at: apply(outputs), reason)


# of what loops compute; the first is that of plain definitions
LOOPS = (
    _graph(
        "narrow reads",
        lambda outputs: with_other_groups(outputs, without_held_ends),
        "an end that is never reached is not held",
    ),
    _graph(
        "idle axes of states",
        lambda outputs: with_other_groups(outputs, without_idle_axes),
        "what is the same at all positions of an axis is carried once for all of them",
    ),
    _graph(
        "several positions at once",
        lambda outputs: with_other_groups(outputs, in_blocks),
        "positions of a recurrence that read none of each other are one step of its loop",
    ),
)
GRAPHS = (
    _graph(
        "distances",
        with_distances,
        "of what two positions make, the elements near a diagonal are computed where no others are read",
    ),
    _graph(
        "shared elements",
        with_shared_elements,
        "functions of elements that several places compute are computed once",
    ),
    _graph(
        "phases as one",
        with_phases_as_one,
        "sums at all remainders of a stride, as at even and at odd rows, are one sum",
    ),
)


CHAINS = _graph(
    "steps in a loop",
    with_chains,
    "steps of one loop that are alike are derived, written and compiled once",
)
STEPS: tuple[Rule, ...] = (
    *LOOPS[1:],
    *GRAPHS,
    *READING,
    *PLAIN,
    *WHOLE,
    *DEFINITIONS,
    *SUMS,
    PAIRS,
    CHAINS,
)


def planned(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """``outputs`` with the definitions of all tensors that they need planned.

    A tensor of which only a read of a partial sum is left, ``y[i, j, k] = y_over_m[i + k, j]``, is read through.
    """
    loops: tuple[Tensor, ...] = applied(tuple(outputs), LOOPS, Asked())
    outputs = loops if CHAINS.name in Asked().without else with_known_chains(loops)
    plain = _apart_from_others(outputs)
    if not plain:
        return outputs
    order = topological_order(plain)
    with bounded(len(order)):
        asked = Asked()
        near = applied(plain, GRAPHS, asked)
        order = order if near is plain else topological_order(near)
        each = _planned_in_order(order, near)
        whole = Asked()
        made = dict(zip(plain, CHAINS.at(each, whole), strict=True))
        for before, after, old in zip(plain, near, each, strict=True):
            own = made[before]
            fired = [*(asked.fired if after is not before else ()), *(whole.fired if own is not old else ())]
            if fired and isinstance(own, Compute):
                own.as_planned_by([*fired, *own.planned_by])
    return tuple(made.get(t, t) for t in outputs)


def _apart_from_others(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Those of ``outputs`` that need plain definitions alone, and none that one of the other outputs needs.

    Tensors of other kinds know the ones that they were made for, as what an adjoint was planned into does, and would not know their planned definitions.
    """
    needed = {t: [n for n in topological_order([t]) if n.inputs] for t in dict.fromkeys(outputs)}
    left = {t for t, below in needed.items() if any(type(n) is not Compute for n in below)}
    while left:
        held = {n for t in left for n in needed[t]}
        more = {t for t, below in needed.items() if t not in left and not held.isdisjoint(below)}
        if not more:
            break
        left |= more
    return tuple(t for t in outputs if t not in left) if left else outputs


def _planned_in_order(order: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    windows = window_bodies(order, outputs)
    around = Surroundings(
        windows, bodies_where_read(order, outputs), read_in_part(order, outputs), layouts(order, outputs)
    )
    known = {*order}
    made = {t: [r.tensor for r in reads_of(body) if r.tensor not in known] for t, body in windows.items()}
    order = [own for t in order for own in (*dict.fromkeys(made.get(t, ())), t)]
    new = _each_planned(order, around)
    found = [t for t in topological_order(list(new.values())) if isinstance(t, PartialSum)]
    if found and intermediates().loop:  # what exists saves a loop
        new = _each_planned(order, replace(around, copies={}, parts=found))
    return tuple(new.get(t, t) for t in outputs)


def _each_planned(order: Sequence[Tensor], around: Surroundings) -> dict[Tensor, Compute]:
    new: dict[Tensor, Compute] = {}
    for tensor in order:
        if isinstance(tensor, Compute):
            own = _planned(tensor, new, InGraph(original=tensor, graph=around))
            if own is not tensor:
                new[tensor] = own
    return new


def _planned(tensor: Compute, new: Mapping[Tensor, Compute], at: InGraph) -> Compute:
    """``tensor`` by all steps, where ``new`` are the planned ones in place of its inputs."""
    body = applied(tensor.body, READING, at)
    through = [
        own for r in reads_of(body) if (own := new.get(r.tensor)) is not None and _is_read_through(own)
    ]
    at.fired.extend(dict.fromkeys(name for own in through for name in own.planned_by))
    body = _reading(body, new) if any(r.tensor in new for r in reads_of(body)) else body
    own = _with(tensor, at, applied(body, PLAIN, at))
    own = applied(own, WHOLE, at)
    sums = Definition(at.without, at.fired, at.graph.copies, at.graph.parts)
    own = PAIRS.at(_with(own, at, planned_body(own, sums)), at)
    return own if own is tensor else own.as_planned_by(at.fired)


def _with(own: Compute, at: InGraph, body: Expr) -> Compute:
    """``own``, which stands for a tensor of the graph, with another ``body``, the tensors in which are parts of that."""
    assert at.original is not None
    mark_parts(at.original, own.body, body)
    return renewed(own, body)


def _reading(body: Expr, new: Mapping[Tensor, Compute]) -> Expr:
    """``body`` with the new tensors in place of the old ones."""
    return rewrite_reads(
        body, lambda read, over: _element(new[read.tensor], over.indices) if read.tensor in new else over
    )


def _element(tensor: Compute, indices: Sequence[Expr]) -> Expr:
    """The element of ``tensor`` at ``indices``: of the tensor that it is a read of where planning made that."""
    if _is_read_through(tensor):
        return tensor.element(indices)
    return Read(tensor, indices)


def _is_read_through(tensor: Compute) -> bool:
    """Whether ``tensor`` is a read of a tensor that planning made, unless its derivative is given."""
    part = tensor.body
    made = isinstance(part, Read) and isinstance(part.tensor, (PartialSum, Known, Digits))
    return made and tensor.override is None
