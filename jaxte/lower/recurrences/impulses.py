"""What a definition over the positions of a loop says at a single one of them, as a tensor of its own from before the loop.

    D[q, i] = (dv[i - 1] * 0.5 if q == 19 and i >= 1 else 0) + (du[i] if q == 19 else 0)

A loop that reads ``D`` makes it in its steps, and no array of all positions that is zeros but for one. What is added in one step alone would be computed in all
of them, to be thrown away in the others; so a step chooses between zero and one array, ``D[19]``. The adjoint of an inner loop of which the outer one reads
the last position begins with such a term.
"""

from __future__ import annotations

from jaxte.algebra.sums import addends, summed
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr, call, cast, conjuncts
from jaxte.lang.operators import EQUAL, SELECT
from jaxte.lang.walk import postorder, substitute
from jaxte.sets.index_forms import difference, is_index
from jaxte.sets.intervals import known
from jaxte.sets.resolved import decided
from jaxte.tensors.tensor import Compute


def with_impulses(tensor: Compute, place: int) -> Expr:
    """The body of ``tensor``, whose terms at one position along the axis at ``place`` are reads of tensors that are these positions."""
    axis = tensor.axes[place]
    terms: list[Expr] = []
    by_position: dict[int, list[Expr]] = {}
    for term in addends(tensor.body):
        at = _position(term, axis)
        (terms if at is None else by_position.setdefault(at, [])).append(term)
    rest = [a for a in tensor.axes if a is not axis]
    for at, own in by_position.items():
        total = decided(substitute(summed(own), {axis: as_expr(at)}))
        if _is_read(total):
            terms += own
            continue
        made = Compute(f"{tensor.name}_at", rest, total)
        zero = cast(as_expr(0), total.dtype)
        terms.append(call(SELECT, call(EQUAL, axis, as_expr(at)), Read(made, rest), zero))
    return summed(terms)


def is_impulse(tensor: Compute, place: int) -> bool:
    """Whether ``tensor`` is zero at all positions along the axis at ``place`` but one, of several."""
    axis = tensor.axes[place]
    found = {_position(term, axis) for term in addends(tensor.body)}
    return len(found) == 1 and None not in found and known(axis.hi) != 1


def _position(term: Expr, axis: Axis) -> int | None:
    """The position along ``axis`` outside of which ``term`` is zero."""
    match term:
        case Call(op, (test, _, Const(0))) if op is SELECT:
            return next((at for c in conjuncts(test) if (at := _fixed(c, axis)) is not None), None)
    return None


def _fixed(condition: Expr, axis: Axis) -> int | None:
    """The position of ``axis`` that ``condition`` is that it has."""
    if not isinstance(condition, Call) or condition.op is not EQUAL or not all(map(is_index, condition.args)):
        return None
    form = difference(condition)
    if form is None or len(form.terms) != 1:
        return None
    ((atom, factor),) = form.terms.items()
    if atom is not axis or abs(factor) != 1:
        return None
    at, extent = -form.constant * factor, known(axis.hi)
    return at if extent is not None and 0 <= at < extent else None


def _is_read(total: Expr) -> bool:
    """Whether ``total`` is one read, or zero where a condition does not hold: a step has that in place."""
    nodes = [n for n in postorder(total) if isinstance(n, (Read, Call)) and not is_index(n)]
    reads = [n for n in nodes if isinstance(n, Read)]
    rest = [n for n in nodes if isinstance(n, Call) and n.dtype != "bool" and n.op is not SELECT]
    return len(reads) <= 1 and not rest
