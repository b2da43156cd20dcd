"""Index arithmetic that knows the ranges of axes: what is composed of views comes out as one index expression."""

from __future__ import annotations

from collections.abc import Mapping

from jaxte.lang.divisions import Division, Quotient, division
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import FALSE, TRUE, Axis, Call, Expr, Read, Reduce, as_expr
from jaxte.lang.operators import COMPARISONS, MAXIMUM, MINIMUM
from jaxte.lang.walk import postorder
from jaxte.sets.affine import Linear, from_linear, linear
from jaxte.sets.intervals import decide, reach


def quotient(index: Expr, divisor: int) -> Expr:
    """``index // divisor``, without a division where the range allows."""
    return _divided(index, divisor)[0]


def remainder(index: Expr, divisor: int) -> Expr:
    """``index % divisor``, without a division where the range allows."""
    return _divided(index, divisor)[1]


def _divided(index: Expr, divisor: int) -> tuple[Expr, Expr]:
    form = linear(index)
    whole = Linear({a: c // divisor for a, c in form.terms.items() if c % divisor == 0})
    rest = form - whole * divisor
    shift = rest.constant // divisor
    near = rest - Linear({}, shift * divisor)
    found = reach(near)
    if found is not None and found[0] // divisor == found[1] // divisor:
        steps = found[0] // divisor
        quotient = whole + Linear({}, shift + steps)
        return from_linear(quotient), from_linear(near - Linear({}, steps * divisor))
    return index // divisor, index % divisor


def clamped(index: Expr, low: int, high: int) -> Expr:
    """``index`` held between ``low`` and ``high``, as far as its range asks for it."""
    found = reach(linear(index))
    if found is None or found[0] < low:
        index = _extremum(MAXIMUM, index, low)
    return index if found is not None and found[1] <= high else _extremum(MINIMUM, index, high)


def _extremum(op: object, index: Expr, limit: int) -> Expr:
    return as_expr(index)._apply(op, (index, as_expr(limit)))  # type: ignore[arg-type]


def decided(condition: Expr) -> Expr:
    """A comparison of index expressions as TRUE or FALSE where the ranges say which."""
    if not (isinstance(condition, Call) and condition.op in COMPARISONS):
        return condition
    left, right = condition.args
    if not (_is_position(left) and _is_position(right)):
        return condition
    try:
        holds = decide(condition.op, left, right)
    except IndexExpressionError:
        return condition
    return condition if holds is None else TRUE if holds else FALSE


def _is_position(expr: Expr) -> bool:
    return (
        expr.weak
        and expr.dtype == "int32"
        and not any(isinstance(n, (Read, Reduce)) for n in postorder(expr))
    )


def replaced(body: Expr, table: Mapping[Axis, Expr]) -> Expr:
    """``body`` with axes replaced by index expressions, its indices and conditions simplified for their ranges."""
    memo: dict[Expr, Expr] = {axis: index for axis, index in table.items()}  # noqa: C416
    for node in postorder(body):
        if node in memo:
            continue
        children = [memo[child] for child in node.children]
        same = all(new is old for new, old in zip(children, node.children, strict=True))
        memo[node] = node if same else _rebuilt(node, children)
    return memo[body]


def _rebuilt(node: Expr, children: list[Expr]) -> Expr:
    if isinstance(node, Read):
        return Read(node.tensor, [_normal(i) for i in children])
    match division(node):
        case Division(_, int() as divisor) as found if _is_position(node):
            return (quotient if isinstance(found, Quotient) else remainder)(children[0], divisor)
    return decided(node.rebuild(children))


def _normal(index: Expr) -> Expr:
    return from_linear(linear(index)) if _is_position(index) else index
