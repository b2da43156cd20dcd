"""Reductions over a few positions of which each reads other slices: written out, one copy of the body for each position.

A window of one array is one array, sliced (see ``window``). Where the body mixes the positions of a window with the output in
another way, as in ``min over k of select(X[2*i + k] == M[i], k, none)``, it is written out: each copy is elementwise code on slices,
and XLA makes one loop of all of them.

A least number among those of the positions at which a condition holds is the number of the first such position, if the numbers
increase: ``where(c0, 0, where(c1, 1, none))`` instead of the minimum of ``where(c0, 0, none)`` and ``where(c1, 1, none)``; a
greatest number is that of the last. The position of the winner of a maximum is such a number.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Call, Const, Expr, Reduce, call
from jaxte.lang.identity import among
from jaxte.lang.operators import AND, SELECT
from jaxte.lang.walk import substitute
from jaxte.lower.arrays.reductions import OPS
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.window.recognise import UnrollSpec
from jaxte.lower.rewrites.short_axes import term_at, together
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import is_index


def unrolled(node: Reduce, spec: UnrollSpec) -> Expr | Refusal:
    """``node`` without its reduction, as one expression of the output axes."""
    if node.reducer.name not in OPS or node.reducer.name == "sum":
        return Refusal(f"{node.reducer.label} is not written out position by position")
    if len(spec.axes) < len(node.axes):
        return Refusal(f"it runs over {next(a.name for a in node.axes if not among(a, spec.axes))} besides")
    tables = spec.tables()
    first = _first(node, tables)
    if first is not None:
        return first
    return together(node, [term_at(node, table) for table in tables])


def _first(node: Reduce, tables: Sequence[dict[Expr, Expr]]) -> Expr | None:
    """The number of the first position at which the condition holds, where that is the least number."""
    found = numbered_conditions(node, tables)
    if found is None:
        return None
    result: Expr = node.reducer.identity[0]
    for number, test in reversed(found):
        result = call(SELECT, test, Const(number, node.dtype), result)
    return result


def numbered_conditions(node: Reduce, tables: Sequence[dict[Expr, Expr]]) -> list[tuple[int, Expr]] | None:
    """The number of each position and when it counts, if ``node`` is the least or greatest number of those that count.

    The first of them that counts is the result, so they are in ascending order for the least, else in descending order.
    """
    match node.exprs[0]:
        case Call(op, (condition, number, Const() as none)) if op is SELECT:
            pass
        case _:
            return None
    if node.reducer.name not in ("min", "max") or none is not node.reducer.identity[0]:
        return None
    numbers = [_number(substitute(number, table)) for table in tables]
    known = [n for n in numbers if n is not None]
    if len(known) < len(numbers) or sorted(set(known)) != known:
        return None
    tests = [call(AND, substitute(node.where, t), substitute(condition, t)) for t in tables]
    found = list(zip(known, tests, strict=True))
    return found if node.reducer.name == "min" else found[::-1]


def _number(expr: Expr) -> int | None:
    """The whole number that an index expression, or a cast of one, is."""
    while isinstance(expr, Call) and expr.op.name == "cast":
        expr = expr.args[0]
    if not is_index(expr):
        return None
    form = linear(expr)
    return form.constant if form.is_constant else None
