"""Adjoints of cumulative reductions, ``out[j] = reduce over k <= j + c of x[k]``, in linear work.

Written as ``F[m] = F[m - 1] (+) x[m]`` with the combiner ``(+)``, the total adjoint ``T`` of ``F`` follows the recurrence

    T[m] = H[m] + T[m + 1] * d F[m + 1] / d F[m],        dx[m] = T[m] * d F[m] / d x[m]

which is linear in ``T`` and therefore itself a cumulative reduction, from the other end (see ``recurrences``). For a combiner of several
values ``T`` is a vector, of which only the states are made that something is wanted of.
A suffix, ``k >= j + c``, is a prefix of the reversed sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import collect, plus, times
from jaxte.autodiff.rules.prefixes import Prefix, Recurrence, solve
from jaxte.autodiff.terms.scalar import Contribution, contributions
from jaxte.autodiff.terms.zeros import summands
from jaxte.lang.expr import (
    Axis,
    Const,
    Expr,
    Read,
    Reduce,
    Reducer,
    Symbol,
    as_expr,
    call,
    cast,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import among, place_of
from jaxte.lang.operators import MAXIMUM, MINIMUM, SELECT
from jaxte.lang.walk import combine, free_axes, reads_of, substitute
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.tensors.shapes import inserted
from jaxte.tensors.tensor import Compute

Value = Callable[[Expr], Expr]  # an element of a sequence at a position


def scan_contributions(
    tensor: Compute, scan: Prefix, seed: Expr, wanted: Callable[[Expr], bool]
) -> list[Contribution]:
    """The contributions of ``seed``, the adjoint of ``tensor``, to every wanted read in the reduced expressions."""
    prefix = [a for a in free_axes(seed) if not among(a, tensor.axes)]
    outer = [a for a in tensor.axes if a is not scan.moving]
    states = states_of(tensor, scan, outer)
    head = _head_of_state(tensor, scan, states[scan.node.position], seed, prefix)
    values = values_of(tensor, scan, states)
    flows = _flows(scan, before(scan, values), wanted)
    needed = {q for slopes in flows.values() for q, slope in enumerate(slopes) if not is_zero(slope)}
    totals = _totals(tensor, scan, values, head, prefix, outer, needed)
    found: list[Contribution] = []
    for position, slopes in flows.items():
        value: Expr = Const(0.0)
        for q, total in totals.items():
            value = plus(value, times(Read(total, (*prefix, *along(tensor, scan, scan.step))), slopes[q]))
        if not is_zero(value):
            inner = contributions(scan.node.exprs[position], (*outer, scan.step), value, None, wanted)
            found += [
                Contribution(c.read, c.axes, call_and(scan.node.where, c.where), c.value) for c in inner
            ]
    return found


def _flows(scan: Prefix, states: Sequence[Expr], wanted: Callable[[Expr], bool]) -> dict[int, list[Expr]]:
    """For each reduced expression with a wanted read, the slope ``d F_q[m] / d x[m]`` of every state."""
    node = scan.node
    every = range(len(states))
    return {
        position: [partial(node.reducer, q, states, node.exprs, rhs=position) for q in every]
        for position, expr in enumerate(node.exprs)
        if any(map(wanted, reads_of(expr)))
    }


def along(tensor: Compute, scan: Prefix, position: Expr) -> tuple[Expr, ...]:
    """The axes of ``tensor`` with ``position`` in place of the one that the reduction moves with."""
    return tuple(position if a is scan.moving else a for a in tensor.axes)


def call_and(a: Expr, b: Expr) -> Expr:
    return conjunction([*conjuncts(a), *conjuncts(b)])


def states_of(tensor: Compute, scan: Prefix, outer: Sequence[Axis]) -> list[Compute]:
    """``F[.., m]``, the reductions of the first ``m + 1`` elements."""
    states = []
    for position in range(scan.node.reducer.arity):
        axes = [Axis(a.name, 0, a.hi) for a in outer]
        last = Axis(scan.step.name, 0, scan.step.hi)
        table: dict[Expr, Expr] = dict(zip(outer, axes, strict=True))
        exprs = [substitute(e, table) for e in scan.node.exprs]
        where = call_and(scan.step <= last, substitute(scan.node.where, table))
        node = Reduce(scan.node.reducer, exprs, (scan.step,), where, position)
        own = inserted(axes, place_of(scan.moving, tensor.axes), last)
        states.append(Compute(f"state_{tensor.name}", own, node))
    return states


def values_of(tensor: Compute, scan: Prefix, states: Sequence[Compute]) -> list[Value]:
    """``F[.., m]`` as functions of ``m``: elements of ``tensor`` itself where it has all of them but the last one, which comes before none."""

    def read(state: Compute) -> Value:
        return lambda m: Read(state, along(tensor, scan, m))

    values = [read(state) for state in states]
    place = place_in(scan)
    if place is not None:
        values[scan.node.position] = lambda m: Read(tensor, along(tensor, scan, normal(place(m))))
    return values


def place_in(scan: Prefix) -> Value | None:
    """Where along ``moving`` the tensor holds ``F[m]``, if it holds all but the last one: ``at`` solved for ``moving``."""
    form = linear(scan.at)
    sign, offset = form.coefficient(scan.moving), from_linear(form.without(scan.moving))

    def place(m: Expr) -> Expr:
        return m - offset if sign == 1 else offset - m

    ends = [place(as_expr(0)), place(scan.step.hi - 2)]
    margins = [normal(ends[sign < 0]), normal(scan.moving.hi - 1 - ends[sign > 0])]
    return place if all(isinstance(m, Const) and int(m) >= 0 for m in margins) else None


def _head_of_state(
    tensor: Compute, scan: Prefix, state: Compute, seed: Expr, prefix: Sequence[Axis]
) -> Compute:
    """The adjoint of ``F`` from that of ``tensor``, which reads it at ``at(j)`` or at its end."""
    last = call(MINIMUM, scan.at, scan.step.hi - 1)
    inside = scan.at >= 0
    body = call(
        SELECT,
        inside,
        Read(state, along(tensor, scan, call_max(last))),
        identity_of(scan.node.reducer, scan.node.position),
    )
    parts = contributions(
        body, tensor.axes, seed, None, lambda leaf: isinstance(leaf, Read) and leaf.tensor is state
    )
    fresh = [Axis(a.name, 0, a.hi) for a in state.axes]
    terms = [term for part in parts for term in summands(part, fresh)]
    own = [Axis(a.name, 0, a.hi) for a in prefix]
    value = substitute(collect(terms), dict(zip(prefix, own, strict=True)))
    if value.weak or value.dtype != state.dtype:
        value = cast(value, state.dtype)
    return Compute(f"d{state.name}", (*own, *fresh), value)


def call_max(index: Expr) -> Expr:
    """``index`` kept at 0 or above, so that the read stays inside also where it is not taken."""
    return call(MAXIMUM, index, 0)


def identity_of(reducer: Reducer, position: int) -> Expr:
    return reducer.identity[position]


def _totals(
    tensor: Compute,
    scan: Prefix,
    values: Sequence[Value],
    head: Compute,
    prefix: Sequence[Axis],
    outer: Sequence[Axis],
    wanted: Iterable[int],
) -> dict[int, Compute]:
    """``T[.., m]`` for each state that is ``wanted`` and not zero: the solution of the linear recurrence."""
    later = Axis(scan.step.name, 0, scan.step.hi, reduction=True)
    own_head = Read(head, (*prefix, *along(tensor, scan, later)))
    offsets = [own_head if p == scan.node.position else Const(0.0) for p in range(len(values))]
    slopes = _slopes(scan, values, later)
    equations = Recurrence(
        slopes,
        offsets,
        later,
        (*prefix, *outer),
        len(prefix) + place_of(scan.moving, tensor.axes),
        True,
        tensor.dtype,
        f"total_{tensor.name}",
    )
    return solve(equations, wanted)


def _slopes(scan: Prefix, values: Sequence[Value], at: Axis) -> list[list[Expr]]:
    """``slopes[p][q] = d F_q[at + 1] / d F_p[at]``."""
    after: dict[Expr, Expr] = {scan.step: at + 1}
    states = [value(at) for value in values]
    elements = [substitute(e, after) for e in masked(scan)]
    every = range(len(states))
    return [[partial(scan.node.reducer, q, states, elements, lhs=p) for q in every] for p in every]


def masked(scan: Prefix) -> list[Expr]:
    """The elements, the identity where the reduction leaves them out."""
    if not conjuncts(scan.node.where):
        return list(scan.node.exprs)
    pairs = zip(scan.node.exprs, scan.node.reducer.identity, strict=True)
    return [call(SELECT, scan.node.where, e, identity) for e, identity in pairs]


def before(scan: Prefix, values: Sequence[Value]) -> list[Expr]:
    """``F[m - 1]`` at ``m = step``, the identity at the start."""
    index = scan.step - 1
    return [
        call(SELECT, scan.step >= 1, value(index), identity_of(scan.node.reducer, n))
        for n, value in enumerate(values)
    ]


def partial(
    reducer: Reducer, result: int, left: Sequence[Expr], right: Sequence[Expr], lhs: int = -1, rhs: int = -1
) -> Expr:
    """The derivative of one result of the combiner with respect to one of its arguments."""
    xs = [Symbol(f"left{n}", e.dtype) for n, e in enumerate(left)]
    ys = [Symbol(f"right{n}", e.dtype) for n, e in enumerate(right)]
    wanted = xs[lhs] if lhs >= 0 else ys[rhs]
    combined = combine(reducer, xs, ys)[result]
    slope: Expr = Const(0.0)
    for part in contributions(combined, (), Const(1.0), None, lambda leaf: leaf is wanted):
        slope = plus(slope, part.value)
    table: dict[Expr, Expr] = dict(zip((*xs, *ys), (*left, *right), strict=True))
    return substitute(slope, table)
