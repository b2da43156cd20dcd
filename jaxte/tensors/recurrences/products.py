"""How far a recurrence looks back: the lags of its reads, and sums over lags written out, ``sum over k of a[k] * h[t - 1 - k]``.

What a nonlinear function in a step is taken of, where a product of matrices with a state is part of it, as a state: the gates of a cell, before their function.

    c[t] = sigmoid(x[t] + U h[t - 1]) * ...     ->     p[t] = x[t] + U h[t - 1],   c[t] = sigmoid(p[t]) * ...

Derivatives read it. A loop stacks a state where something reads it, and the adjoint of one is computed where the loop from the other end makes it; what is between states is
computed again from them, by as many products as the loop has.

A sum that the elements of several states are made of, as the force of infection is in what leaves one group and comes to another, is one: what it has and hands back is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from math import prod

from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, as_expr, call, cast
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import FEWER, FUNCTION, MOST_PARTS, MOST_TERMS
from jaxte.lang.operators import ADD, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, substitute, with_tensors
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import extent
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.recurrences.step import not_known_yet
from jaxte.tensors.shapes import Extent, as_extent
from jaxte.tensors.structure import CANONICAL
from jaxte.tensors.tensor import Compute, Tensor

_FOLDS = {"sum": ADD, "prod": MULTIPLY, "max": MAXIMUM, "min": MINIMUM}


def lags_of(
    bodies: Sequence[Expr], axes: Sequence[Sequence[Axis]], places: dict[State, int], reverse: bool
) -> dict[State, int]:
    """How far each state is looked back at, as far as that is a fixed number of positions."""
    found: dict[State, int] = {}
    for number, body in enumerate(bodies):
        own = axes[number][list(places.values())[number]]
        for read in reads_of(body):
            if not isinstance(read.tensor, State) or read.tensor not in places:
                continue
            form = linear_or_none(read.indices[places[read.tensor]] - own)
            if form is None or not form.is_constant:
                continue
            lag = form.constant if reverse else -form.constant
            if lag < 0:
                raise not_known_yet(read.tensor.name, read, own, reverse)
            found[read.tensor] = max(found.get(read.tensor, 0), lag)
    return {state: lag for state, lag in found.items() if lag > 0}


def unrolled(body: Expr, places: dict[State, int]) -> Expr:
    """``body`` with sums over lags, ``sum over k of a[k] * h[t - 1 - k]``, written out."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce):
            return node
        lags = [a for a in node.axes if _is_lag(a, node, places)]
        for axis in lags:
            node = _written_out(node, axis) if isinstance(node, Reduce) else node
        return node

    return rewrite(body, rule)


def _is_lag(axis: Axis, node: Reduce, places: dict[State, int]) -> bool:
    """Whether positions of states are those of ``axis`` before another one, rather than any: where a state is read at ``axis`` too, ``h[k] * h[t - 1 - k]``, all are at hand."""
    reads = [r for r in reads_of(*node.children) if isinstance(r.tensor, State) and r.tensor in places]
    positions = [own for r in reads if axis in (own := free_axes(r.indices[places[r.tensor]]))]
    return bool(positions) and all(len(own) > 1 for own in positions)


def _written_out(node: Reduce, axis: Axis) -> Expr:
    lo, hi = axis.lo, axis.hi
    if not (isinstance(lo, Const) and isinstance(hi, Const)) or node.reducer.name not in _FOLDS:
        return node
    positions = range(int(lo.value), int(hi.value))  # type: ignore[arg-type]
    # Terms of a sum over lags, which is written out.
    if not 0 < len(positions) <= MOST_PARTS:
        return node
    rest = tuple(a for a in node.axes if a is not axis)
    op = _FOLDS[node.reducer.name]
    terms: list[Expr] = []
    for position in positions:
        table: dict[Expr, Expr] = {axis: as_expr(position)}
        (expr, where) = (substitute(child, table) for child in node.children)
        if rest:
            terms.append(node.changed(exprs=(expr,), axes=rest, where=where))
        else:
            terms.append(call(SELECT, where, expr, node.reducer.identity[0]))
    return reduce(lambda a, b: call(op, a, b), terms)


_LINEAR = (ADD, SUBTRACT, NEGATIVE, SELECT)


def _with_equal_sums(group: Recurrence) -> Recurrence:
    """``group`` with the sums that several of its definitions have in common as one tensor of their own each."""
    firsts: dict[tuple[Expr, tuple[Extent, ...]], Compute] = {}
    new: dict[Tensor, Compute] = {}
    for tensor in group.inside:
        if not isinstance(tensor, Compute):
            continue
        body = with_tensors(tensor.body, new)
        own = tensor if body is tensor.body else tensor.renewed(body)
        if (
            isinstance(body, Reduce)
            and not among(tensor, group.definitions)
            and len(own.axes) <= len(CANONICAL)
        ):
            key = substitute(body, dict(zip(own.axes, CANONICAL, strict=False))), tuple(own.shape)
            own = firsts.setdefault(key, own)
        if own is not tensor:
            new[tensor] = own
    definitions = tuple(new.get(d, d) for d in group.definitions)
    return replace(group, definitions=definitions) if new else group


def with_products(group: Recurrence) -> Recurrence:
    """``group`` with such states, and with its equal sums as one."""
    return _with_extrema(_with_arguments(_with_equal_sums(group)))


def _with_extrema(group: Recurrence) -> Recurrence:
    """``group`` with the extrema of many elements that it takes on the way as states: whom their adjoints go to is asked of their values, and exponentials are taken beside them."""
    places = _long_extrema(group)
    if not places:
        return group
    new: dict[Tensor, Tensor] = {}
    states: dict[State, Compute] = {}
    for tensor in group.inside:
        if not isinstance(tensor, Compute):
            continue
        body = with_tensors(tensor.body, new)
        own = tensor if body is tensor.body else tensor.renewed(body)
        if tensor in places:
            new[tensor] = state = State(tensor.name, tensor.shape, tensor.dtype)
            states[state] = own
        elif own is not tensor:
            new[tensor] = own
    found = (new.get(d, d) for d in group.definitions)
    definitions = [d for d in found if isinstance(d, Compute)]
    return Recurrence(
        (*group.states, *states),
        (*definitions, *states.values()),
        (*group.places, *places.values()),
        group.reverse,
    )


def _long_extrema(group: Recurrence) -> dict[Tensor, int]:
    """The extrema of many elements that are none of the states, each with its axis that is the clock: all that reads them does at its own position."""
    if not all(isinstance(t, Compute) for t in group.inside):
        return {}
    rows = zip(group.definitions, group.places, strict=True)
    clocks: dict[Tensor, Axis] = {row: row.axes[place] for row, place in rows}
    between = frozenset(group.inside).difference(group.definitions)
    places: dict[Tensor, set[int]] = {}
    for reader in reversed(group.inside):
        for read in reads_of(reader.body) if isinstance(reader, Compute) else ():
            own = read.tensor
            if own in between and isinstance(own, Compute):
                at = [n for n, index in enumerate(read.indices) if index is clocks.get(reader)]
                places.setdefault(own, set()).add(at[0] if len(at) == 1 else -1)
                clocks[own] = own.axes[at[0] if at else 0]
    found = ((t, places.get(t, set())) for t in group.inside if _is_long_extremum(t))
    return {t: at.pop() for t, at in found if len(at) == 1 and -1 not in at}


def _is_long_extremum(tensor: Tensor) -> bool:
    body = tensor.body if isinstance(tensor, Compute) else None
    return isinstance(body, Reduce) and body.is_extremum and prod(map(extent, body.axes)) >= FEWER


def _with_arguments(group: Recurrence) -> Recurrence:
    """``group`` with what nonlinear functions are taken of as states."""
    states: list[State] = []
    made: list[Compute] = []
    places: list[int] = []
    definitions = []
    inside = frozenset(group.inside)
    known: dict[Expr, Expr] = {}
    for definition, place in zip(group.definitions, group.places, strict=True):
        table: dict[Expr, Expr] = {}
        for own in _arguments(definition, inside):
            axes = [a for a in definition.axes if a in free_axes(own)]
            if not among(definition.axes[place], axes):
                continue
            if own in known:
                table[own] = known[own]
                continue
            number = f"_{len(table)}" if table else ""
            name = f"{definition.name}_pre{number}"
            state = State(name, tuple(as_extent(a.extent) for a in axes), own.dtype)
            states.append(state)
            made.append(Compute(name, tuple(axes), cast(own, own.dtype)))
            places.append(place_of(definition.axes[place], axes))
            table[own] = known[own] = Read(state, axes)
        definitions.append(definition.renewed(substitute(definition.body, table)) if table else definition)
    if not states:
        return group
    return Recurrence(
        (*group.states, *states), (*definitions, *made), (*group.places, *places), group.reverse
    )


def _arguments(definition: Compute, inside: frozenset[Tensor]) -> list[Expr]:
    """What nonlinear functions are taken of in a body, with a long product among its terms; not that of which the body is the function, whose slope its value has."""
    linear = {n for n in postorder(definition.body) if _is_product(n, definition.axes, inside)}
    found: dict[Expr, None] = {}
    for node in postorder(definition.body) if linear else ():
        if not isinstance(node, Call):
            continue
        own = [a for a in node.children if a in linear]
        if own and node.op in _LINEAR and not (node.op is SELECT and node.children[0] in linear):
            linear.add(node)
        elif node is not definition.body or len(node.children) > 1:
            found.update(dict.fromkeys(a for a in own if is_inexact(a.dtype)))
    return list(found)


def _is_product(node: Expr, axes: Sequence[Axis], inside: frozenset[Tensor]) -> bool:
    """Whether ``node`` reads, at ``axes``, a long sum of products of which a state is a factor, or of functions, of which a short one takes as long."""
    if not isinstance(node, Read) or not isinstance(node.tensor, Compute) or isinstance(node.tensor, State):
        return False
    if any(not isinstance(i, Axis) or not among(i, axes) for i in node.indices):
        return False
    body = node.tensor.body
    if not isinstance(body, Reduce) or not body.is_sum or node.tensor not in inside:
        return False
    functions = (n for n in postorder(*body.exprs) if isinstance(n, Call) and n.op.name in TABLE)
    is_cheap = all(TABLE[n.op.name].cheap for n in functions) or _reads_the_present(body)
    each = 1 if is_cheap else FUNCTION
    return each * prod(map(extent, body.axes)) >= MOST_TERMS


def _reads_the_present(body: Expr) -> bool:
    """Whether a state is read where it is just made, as a maximum is that exponentials are taken beside: both are put back together, and nothing flows through either."""
    reads = [r for r in reads_of(body) if isinstance(r.tensor, State)]
    return any(all(isinstance(i, Axis) for i in r.indices) for r in reads)
