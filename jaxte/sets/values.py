"""Values of index expressions at points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from jaxte.lang.expr import Axis, Call, Const, Expr, Var
from jaxte.lang.walk import postorder
from jaxte.sets.quasi_affine import index_of


def evaluate_index(expr: Expr, point: Mapping[Expr, int]) -> int:
    """The value of an index expression at a point."""
    return values_at(expr, [point])[0]


def values_at(expr: Expr, points: Iterable[Mapping[Expr, int]]) -> list[int]:
    """The values of an index expression at each of ``points``."""
    nodes = postorder(index_of(expr))
    return [_value(nodes, point) for point in points]


def _value(nodes: Sequence[Expr], point: Mapping[Expr, int]) -> int:
    """The value of the last of ``nodes``, which stand after what they are made of."""
    memo: dict[Expr, int] = {}
    for node in nodes:
        match node:
            case Const(value):
                memo[node] = int(value)  # type: ignore[arg-type]
            case Axis() | Var():
                memo[node] = point[node]
            case Call(op, args):
                memo[node] = _INTEGER_OPS[op.name](*[memo[a] for a in args])
    return memo[nodes[-1]]


_INTEGER_OPS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "negative": lambda a: -a,
    "floor_divide": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "minimum": min,
    "maximum": max,
    "cast": lambda a: a,
}
