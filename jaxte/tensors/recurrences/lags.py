"""How far a recurrence looks back: the lags of its reads, and sums over lags written out, ``sum over k of a[k] * h[t - 1 - k]``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from jaxte.lang.expr import Axis, Const, Expr, Reduce, as_expr, call
from jaxte.lang.operators import ADD, MAXIMUM, MINIMUM, MULTIPLY, SELECT
from jaxte.lang.walk import free_axes, reads_of, rewrite, substitute
from jaxte.sets.index_forms import linear_or_none
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.recurrences.steps import not_known_yet

MOST_LAGS = 64  # terms of a sum over lags, which is written out
_FOLDS = {"sum": ADD, "prod": MULTIPLY, "max": MAXIMUM, "min": MINIMUM}


def lags_of(
    bodies: Sequence[Expr],
    axes: Sequence[Sequence[Axis]],
    places: dict[State, int],
    reverse: bool,
) -> dict[State, int]:
    """How far each state is looked back at, as far as that is a fixed number of positions."""
    found: dict[State, int] = {}
    for number, body in enumerate(bodies):
        own = axes[number][list(places.values())[number]]
        for read in reads_of(body):
            if isinstance(read.tensor, State) and read.tensor in places:
                form = linear_or_none(read.indices[places[read.tensor]] - own)
                if form is not None and form.is_constant:
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
    """Whether positions of states are those of ``axis`` before another one, rather than any."""
    reads = [r for r in reads_of(*node.children) if isinstance(r.tensor, State) and r.tensor in places]
    positions = [set(free_axes(r.indices[places[r.tensor]])) for r in reads]
    return any(axis in own and len(own) > 1 for own in positions)


def _written_out(node: Reduce, axis: Axis) -> Expr:
    lo, hi = axis.lo, axis.hi
    if not (isinstance(lo, Const) and isinstance(hi, Const)) or node.reducer.name not in _FOLDS:
        return node
    positions = range(int(lo.value), int(hi.value))  # type: ignore[arg-type]
    if not 0 < len(positions) <= MOST_LAGS:
        return node
    rest = tuple(a for a in node.axes if a is not axis)
    op = _FOLDS[node.reducer.name]
    terms: list[Expr] = []
    for position in positions:
        table: dict[Expr, Expr] = {axis: as_expr(position)}
        (expr, where) = (substitute(child, table) for child in node.children)
        if rest:
            terms.append(Reduce(node.reducer, (expr,), rest, where, node.position))
        else:
            terms.append(call(SELECT, where, expr, node.reducer.identity[0]))
    return reduce(lambda a, b: call(op, a, b), terms)
