"""Neighbours around the end of an axis of symbolic size: ``x[(i + 1) % n]`` with ``0 <= i < n``.

No solver divides by a size that is not known. But one step around the end leads to the other end and nowhere else, whatever
the size: ``(i + 1) % n`` is ``i + 1`` where that is below ``n``, else 0. So the read is a choice between two.
"""

from __future__ import annotations

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, call
from jaxte.lang.operators import LESS, MOD, SELECT
from jaxte.lang.walk import free_axes, postorder, rewrite, substitute
from jaxte.sets.affine import linear


def without_turns(body: Expr) -> Expr:
    """``body`` with a choice of reads for each that goes one step around the end of an axis of symbolic size."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Read):
            turn = next((t for index in node.indices for t in postorder(index) if _is_turn(t)), None)
            if turn is None:
                return node
            return _chosen(node, turn)
        return node

    return rewrite(body, rule)


def _chosen(read: Read, turn: Expr) -> Expr:
    """The choice between the neighbour and the other end."""
    step, axis, size = _parts(turn)
    inside, other = axis + step, ZERO if step == 1 else size - 1
    test = call(LESS, inside, size) if step == 1 else call(LESS, ZERO, axis)
    near, far = (without_turns(substitute(read, {turn: index})) for index in (inside, other))
    return call(SELECT, test, near, far)


def _is_turn(node: Expr) -> bool:
    if not (isinstance(node, Call) and node.op is MOD) or isinstance(node.args[1], Const):
        return False
    try:
        step, axis, size = _parts(node)
    except (IndexExpressionError, ValueError):
        return False
    return abs(step) == 1 and axis.lo is ZERO and axis.hi is size and not axis.reduction


def _parts(turn: Expr) -> tuple[int, Axis, Expr]:
    """The step, the axis and the size of ``(axis + step) % size``."""
    assert isinstance(turn, Call)
    moved, size = turn.args
    (axis,) = free_axes(moved)
    form = linear(moved) - linear(axis)
    if form.terms:
        raise ValueError("more than an axis and a step")
    return form.constant, axis, size
