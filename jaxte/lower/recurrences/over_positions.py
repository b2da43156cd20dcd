"""What is asked over all positions of a loop, and made by the loop or there already: definitions, sums and extrema.

    dx[t] = du[t] * (1 - h[t] * h[t])    beside ``du``

reads every state behind the loop, so that all of them would have to be there. In the loop that computes the states again they are
at hand, and what is stacked is the definition alone: the gradients of the inputs of a network over time, beside those of its weights, which the loop adds up.

    dp[i, j] = (sum over t of du[t, i, j - 1]) - (sum over t of du[t, i, j + 1])        S[i, j] = sum over t of du[t, i, j]

The adjoint of what each step reads at several places is such sums. As one, it is added up once, by the loop itself where that takes less time.

    m[i] = max over k of f(x[i, k]),   held[i, k] = f(x[i, k]),   best[i] = max over k of held[i, k]

An adjoint that holds elements asks which of them are equal to ``best``, whose bits are those of the held elements. Where a program needs both and has neither, ``m`` is ``best``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.autodiff.terms.beside import all_beside
from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, as_expr, cast
from jaxte.lang.graphs import Members, among
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import free_axes, outermost, postorder, reads_of, substitute
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import index_stays_in
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State, recurrences_in
from jaxte.tensors.recurrences.steps import step_of, step_with
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class _Placed:
    """A sum at one place.

    Attributes:
        axes: of the sum as a tensor of its own.
        body: over these.
        place: the position of each of them that is read.
    """

    axes: tuple[Axis, ...]
    body: Expr
    place: tuple[Expr, ...]


def shared_sums(order: Sequence[Tensor], given: Members[Tensor]) -> Changed:
    """What stands for the tensors of ``order`` that read such sums. The arguments are those of ``within_loops``."""
    own = [t for t in order if t not in given]
    canonical: dict[tuple[object, ...], Axis] = {}
    found: dict[Reduce, _Placed] = {}
    work: dict[Reduce, int] = {}
    for tensor in (t for t in own if isinstance(t, Compute)):
        for node in outermost(tensor.body):
            placed = _placed(node, canonical)
            if placed is not None:
                found[node] = placed
                work[node] = points([a for a in tensor.axes if a in free_axes(node)])
    together: dict[Expr, list[Reduce]] = {}
    for node, placed in found.items():
        together.setdefault(placed.body, []).append(node)
    table: dict[Expr, Expr] = {}
    for body, nodes in together.items():
        axes = found[nodes[0]].axes
        if len({found[n].place for n in nodes}) > 1 and points(axes) <= sum(work[n] for n in nodes):
            (read, *_) = reads_of(body)
            whole = Compute(f"{read.tensor.name}_total", axes, cast(body, nodes[0].dtype))
            table |= {n: Read(whole, found[n].place) for n in nodes}
    return changes(own, lambda tensor, _: substitute(tensor.body, table), {}) if table else {}


def _placed(node: Reduce, canonical: dict[tuple[object, ...], Axis]) -> _Placed | None:
    """``node`` as a sum of its own, of what loops make; None for others."""
    reads = reads_of(*node.exprs, node.where)
    if not node.is_sum or not any(isinstance(r.tensor, Recurrent) for r in reads):
        return None
    if any(isinstance(n, Reduce) for n in postorder(*node.exprs)) or not all(
        isinstance(a.lo, Const) for a in node.axes
    ):
        return None
    table: dict[Expr, Expr] = {
        a: canonical.setdefault(("sum", n, a.lo, a.hi), Axis(a.name, a.lo, a.hi))
        for n, a in enumerate(node.axes)
    }
    own: dict[Expr, Axis] = {}
    chooses = node.where is not TRUE or any(
        isinstance(n, Call) and n.op is SELECT for n in postorder(*node.exprs)
    )
    for read in reads:
        for index, extent in zip(read.indices, read.tensor.shape, strict=True):
            free = [a for a in free_axes(index) if not among(a, node.axes)]
            if not free:
                continue
            if len(free) < len(free_axes(index)) or not is_index(index):
                return None
            if chooses and not index_stays_in(index, as_expr(extent)):
                return None  # the choice says where there is an element, and would be gone where each position has one
            key = ("place", len(own), as_expr(extent))
            axis = own.setdefault(index, canonical.setdefault(key, Axis(f"a{len(own)}", 0, as_expr(extent))))
            if axis.hi is not as_expr(extent):
                return None
    reduced = [canonical["sum", n, a.lo, a.hi] for n, a in enumerate(node.axes)]
    table |= own
    exprs, where = [substitute(e, table) for e in node.exprs], substitute(node.where, table)
    body = node.changed(exprs=exprs, axes=reduced, where=where)
    axes = tuple(own.values())
    return _Placed(axes, body, tuple(own)) if all(among(a, axes) for a in free_axes(body)) else None


def found_again(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for such extrema, and for their readers. The arguments are those of ``within_loops``."""
    own = [t for t in order if t not in given]
    there = frozenset(own)
    found: Changed = {}
    for tensor in own:
        if isinstance(tensor, Compute) and isinstance(tensor.body, Reduce) and tensor not in results:
            best = all_beside(tensor).get("best")
            if best in there and best is not None and _is_alike(tensor, best):
                found[tensor] = best
    known = {t: best for t, best in found.items() if found.keys().isdisjoint(topological_order([best]))}
    return changes(own, lambda tensor, _: tensor.body, {}, known=known) if known else {}


def _is_alike(tensor: Compute, best: Compute) -> bool:
    """Whether both have the same axes: elements that do not differ along one of them are held without it."""
    return tensor.ndim == best.ndim and all(map(same_extent, tensor.shape, best.shape))


@dataclass(frozen=True)
class _Row:
    """A definition as one more tensor of a recurrence, with the axis of the positions at ``place``."""

    state: State
    definition: Compute
    place: int


def rows_in_loops(order: Sequence[Tensor], given: Members[Tensor], again: Members[Tensor]) -> Changed:
    """What stands for the tensors of ``order`` where definitions that read every position of those ``again`` are part of the loop from the other end.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        again: tensors that are not to be read behind a loop, as they are computed again within one.
    """
    own = [t for t in order if t not in given]
    groups = recurrences_in(t for t in own if t not in again)
    readers = [g for g in groups if g.reverse and any(t in again for t in g.inputs)]
    if len(readers) != 1:
        return {}
    (group,) = readers
    rows: dict[Tensor, _Row] = {}
    longer = group
    below = set(topological_order(group.inputs))
    for tensor in own:
        if isinstance(tensor, Compute) and tensor not in below and any(t in again for t in tensor.inputs):
            row = _row(tensor, group)
            if row is None or not _is_met(group, _with(longer, row)):
                return {}
            rows[tensor] = row
            longer = _with(longer, row)
    numbers = {tensor: len(group.states) + n for n, tensor in enumerate(rows)}

    def body(tensor: Compute, known: Changed) -> Expr:
        if tensor not in rows:
            return tensor.body
        whole = known[group.tensors[0]]
        assert isinstance(whole, Recurrent)
        return Read(whole.group.tensors[numbers[tensor]], tensor.axes)

    return changes(own, body, {group: longer}) if rows else {}


def _row(tensor: Compute, group: Recurrence) -> _Row | None:
    """``tensor`` at the positions of ``group``, along the axis at which it reads the tensors of it; None where there is none.

    What the loop ends with is known behind it only.
    """
    reads = [
        (r, r.tensor)
        for r in reads_of(tensor.body)
        if isinstance(r.tensor, Recurrent) and r.tensor.group is group
    ]
    if any(type(whole) is not Recurrent for _, whole in reads):
        return None
    places = {
        n
        for read, whole in reads
        for n, axis in enumerate(tensor.axes)
        if read.indices[group.places[whole.position]] is axis and same_extent(axis.hi, group.extent)
    }
    if len(places) != 1:
        return None
    (place,) = places
    state = State(tensor.name, tensor.shape, tensor.dtype)
    states: dict[Tensor, Tensor] = dict(zip(group.tensors, group.states, strict=True))
    (definition,) = Rebuilt({**states, **{s: s for s in group.states}}).parts([tensor])
    assert isinstance(definition, Compute)
    return None if definition is tensor else _Row(state, definition, place)


def _is_met(group: Recurrence, longer: Recurrence) -> bool:
    """Whether a step of ``group`` has at hand what ``longer`` reads."""
    try:
        step = step_with(group, longer)
    except DefinitionError:  # it reads other positions than those that a step has
        return False
    return len(step.history) == len(step_of(group).history)


def _with(group: Recurrence, row: _Row) -> Recurrence:
    return Recurrence(
        (*group.states, row.state),
        (*group.definitions, row.definition),
        (*group.places, row.place),
        group.reverse,
    )
