"""Adjoints of cumulative reductions, ``out[j] = reduce over k <= j + c of x[k]``, in linear work.

Written as ``F[m] = F[m - 1] (+) x[m]`` with the combiner ``(+)``, the total adjoint ``T`` of ``F`` follows the recurrence

    T[m] = H[m] + T[m + 1] * d F[m + 1] / d F[m],        dx[m] = T[m] * d F[m] / d x[m]

which is linear in ``T`` and therefore itself a cumulative reduction, from the other end: that of the affine maps
``t -> H[l] + A[l] t`` under composition. For a combiner of several values ``T`` is a vector and ``A`` a matrix.
A suffix, ``k >= j + c``, is a prefix of the reversed sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxte.autodiff.prefixes import Scan
from jaxte.autodiff.scalar import Contribution, contributions, is_zero, plus, times
from jaxte.autodiff.simplify import collect
from jaxte.autodiff.zeros import summands
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
from jaxte.lang.identity import among
from jaxte.lang.operators import MAXIMUM, MINIMUM, SELECT
from jaxte.lang.walk import combine, free_axes, substitute
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.tensors.tensor import Compute

Value = Callable[[Expr], Expr]  # an element of a sequence at a position


def scan_contributions(
    tensor: Compute, scan: Scan, seed: Expr, wanted: Callable[[Expr], bool]
) -> list[Contribution]:
    """The contributions of ``seed``, the adjoint of ``tensor``, to every wanted read in the reduced expressions."""
    prefix = [a for a in free_axes(seed) if not among(a, tensor.axes)]
    outer = [a for a in tensor.axes if a is not scan.moving]
    states = _states(tensor, scan, outer)
    head = _head_of_state(tensor, scan, states[scan.node.position], seed, prefix, outer)
    values = _values(tensor, scan, states, outer)
    totals = _totals(tensor, scan, values, head, prefix, outer)
    at = [Read(t, (*prefix, *outer, scan.step)) for t in totals]
    found: list[Contribution] = []
    for position, expr in enumerate(scan.node.exprs):
        value = _flow(scan, _before(scan, values), at, rhs=position)
        if not is_zero(value):
            inner = contributions(expr, (*outer, scan.step), value, None, wanted)
            found += [
                Contribution(c.read, c.axes, call_and(scan.node.where, c.where), c.value) for c in inner
            ]
    return found


def call_and(a: Expr, b: Expr) -> Expr:
    return conjunction([*conjuncts(a), *conjuncts(b)])


def _states(tensor: Compute, scan: Scan, outer: Sequence[Axis]) -> list[Compute]:
    """``F[.., m]``, the reductions of the first ``m + 1`` elements."""
    states = []
    for position in range(scan.node.reducer.arity):
        axes = [Axis(a.name, 0, a.hi) for a in outer]
        last = Axis(scan.step.name, 0, scan.step.hi)
        table: dict[Expr, Expr] = dict(zip(outer, axes, strict=True))
        exprs = [substitute(e, table) for e in scan.node.exprs]
        where = call_and(scan.step <= last, substitute(scan.node.where, table))
        node = Reduce(scan.node.reducer, exprs, (scan.step,), where, position)
        states.append(Compute(f"state_{tensor.name}", (*axes, last), node))
    return states


def _values(tensor: Compute, scan: Scan, states: Sequence[Compute], outer: Sequence[Axis]) -> list[Value]:
    """``F[.., m]`` as functions of ``m``: elements of ``tensor`` itself where it has all of them."""

    def read(state: Compute) -> Value:
        return lambda m: Read(state, (*outer, m))

    values = [read(state) for state in states]
    place = _place_in(tensor, scan)
    if place is not None:
        values[scan.node.position] = lambda m: Read(
            tensor, [normal(place(m)) if a is scan.moving else a for a in tensor.axes]
        )
    return values


def _place_in(tensor: Compute, scan: Scan) -> Value | None:
    """Where along ``moving`` the tensor holds ``F[m]``, if it holds all of them: ``at`` solved for ``moving``."""
    form = linear(scan.at)
    sign, offset = form.coefficient(scan.moving), from_linear(form.without(scan.moving))

    def place(m: Expr) -> Expr:
        return m - offset if sign == 1 else offset - m

    ends = [place(as_expr(0)), place(scan.step.hi - 1)]
    margins = [normal(ends[sign < 0]), normal(scan.moving.hi - 1 - ends[sign > 0])]
    return place if all(isinstance(m, Const) and int(m) >= 0 for m in margins) else None


def _head_of_state(
    tensor: Compute, scan: Scan, state: Compute, seed: Expr, prefix: Sequence[Axis], outer: Sequence[Axis]
) -> Compute:
    """The adjoint of ``F`` from that of ``tensor``, which reads it at ``at(j)`` or at its end."""
    last = call(MINIMUM, scan.at, scan.step.hi - 1)
    inside = scan.at >= 0
    body = call(
        SELECT,
        inside,
        Read(state, (*outer, call_max(last))),
        _identity(scan.node.reducer, scan.node.position),
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


def _identity(reducer: Reducer, position: int) -> Expr:
    return reducer.identity[position]


def _totals(
    tensor: Compute,
    scan: Scan,
    values: Sequence[Value],
    head: Compute,
    prefix: Sequence[Axis],
    outer: Sequence[Axis],
) -> list[Compute]:
    """``T[.., m]`` for each state: the solution of the linear recurrence, as a reduction of affine maps."""
    arity = len(values)
    dtype = tensor.dtype
    reducer = _affine_maps(arity, dtype)
    later = Axis(scan.step.name, 0, scan.step.hi, reduction=True)
    slopes = _slopes(scan, values, later)
    own_head = Read(head, (*prefix, *outer, later))
    offsets = [own_head if p == scan.node.position else Const(0.0, dtype) for p in range(arity)]
    totals = []
    for position in range(arity):
        axes = [Axis(a.name, 0, a.hi) for a in (*prefix, *outer, scan.step)]
        table: dict[Expr, Expr] = dict(zip((*prefix, *outer), axes[:-1], strict=True))
        elements = [cast(substitute(e, table), dtype) for e in (*slopes, *offsets)]
        node = Reduce(reducer, elements, (later,), axes[-1] <= later, arity * arity + position)
        totals.append(Compute(f"total_{tensor.name}", axes, node))
    return totals


def _slopes(scan: Scan, values: Sequence[Value], at: Axis) -> list[Expr]:
    """``A[p][q] = d F_q[at + 1] / d F_p[at]``, row by row; 0 at the end."""
    after: dict[Expr, Expr] = {scan.step: at + 1}
    states = [value(at) for value in values]
    elements = [substitute(e, after) for e in _masked(scan)]
    table = []
    for p in range(len(states)):
        for q in range(len(states)):
            slope = _partial(scan.node.reducer, q, states, elements, lhs=p)
            table.append(call(SELECT, at + 1 < at.hi, slope, Const(0.0)))
    return table


def _masked(scan: Scan) -> list[Expr]:
    """The elements, the identity where the reduction leaves them out."""
    if not conjuncts(scan.node.where):
        return list(scan.node.exprs)
    pairs = zip(scan.node.exprs, scan.node.reducer.identity, strict=True)
    return [call(SELECT, scan.node.where, e, identity) for e, identity in pairs]


def _before(scan: Scan, values: Sequence[Value]) -> list[Expr]:
    """``F[m - 1]`` at ``m = step``, the identity at the start."""
    index = scan.step - 1
    return [
        call(SELECT, scan.step >= 1, value(index), _identity(scan.node.reducer, n))
        for n, value in enumerate(values)
    ]


def _flow(scan: Scan, before: Sequence[Expr], totals: Sequence[Expr], rhs: int) -> Expr:
    """``sum over q of T_q * d F_q[m] / d x[m]``."""
    result: Expr = Const(0.0)
    for q, total in enumerate(totals):
        slope = _partial(scan.node.reducer, q, before, scan.node.exprs, rhs=rhs)
        result = plus(result, times(total, slope))
    return result


def _partial(
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


def _affine_maps(arity: int, dtype: str) -> Reducer:
    """Composition of maps ``t -> A t + b`` of ``arity`` values, the earlier one applied last."""

    def symbols(side: str) -> tuple[list[list[Symbol]], list[Symbol]]:
        matrix = [[Symbol(f"{side}{p}{q}", dtype) for q in range(arity)] for p in range(arity)]
        return matrix, [Symbol(f"{side}{p}", dtype) for p in range(arity)]

    (a1, b1), (a2, b2) = symbols("a"), symbols("b")
    matrix = [_dot(a1[p], [a2[r][q] for r in range(arity)]) for p in range(arity) for q in range(arity)]
    vector = [b1[p] + _dot(a1[p], b2) for p in range(arity)]
    flat1, flat2 = ([*(s for row in a for s in row), *b] for a, b in ((a1, b1), (a2, b2)))
    unit = [Const(1.0 if p == q else 0.0, dtype) for p in range(arity) for q in range(arity)]
    identity = (*unit, *(Const(0.0, dtype) for _ in range(arity)))
    return Reducer("custom", "recurrence", "even", tuple(flat1), tuple(flat2), (*matrix, *vector), identity)


def _dot(row: Sequence[Expr], column: Sequence[Expr]) -> Expr:
    total: Expr = row[0] * column[0]
    for a, b in zip(row[1:], column[1:], strict=True):
        total = total + a * b
    return total
