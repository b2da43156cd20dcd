"""Index expressions and conditions in the syntax of isl, whether isl understands them, and questions to it within a budget.

What isl answers as expressions: affine functions with integer divisions, their pieces, and constraints.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import islpy as isl

from jaxte.lang.budget import (
    FEW_OPERATIONS,
    OPERATIONS,
    OPERATIONS_OF_A_STEP,
    QUESTION,
    allowed,
    charge,
    ran_short,
)
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Symbol, Var, as_expr, call
from jaxte.lang.operators import EQUAL, MAXIMUM, MINIMUM, NOT
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.sets.affine import normal
from jaxte.sets.quasi_affine import index_of

SPENT = "maximal number of operations"  # what isl says where a question has taken those that it may

_COMPARE = {
    "equal": ("=", "!="),
    "not_equal": ("!=", "="),
    "less": ("<", ">="),
    "less_equal": ("<=", ">"),
    "greater": (">", "<="),
    "greater_equal": (">=", "<"),
}
EMPTY_TEXT, FULL_TEXT = "1 = 0", "0 = 0"


@lru_cache(maxsize=1024)
def is_decidable(condition: Expr) -> bool:
    """Whether ``condition`` is free of data, so that isl knows exactly where it holds."""
    return all(not isinstance(node, (Read, Symbol)) for node in postorder(condition)) and "?" not in _shape(
        condition
    )


def _shape(condition: Expr) -> str:
    """ "?" for a condition with parts that isl does not understand."""
    stack = [condition]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.op.name in ("logical_and", "logical_or", "logical_not"):
            stack.extend(node.args)
        elif not isinstance(node, Const) and _comparison_text(node, {}, True) is None:
            return "?"
    return ""


def index_text(expr: Expr, names: Mapping[Expr, str]) -> str:
    """``expr`` in isl's syntax."""
    memo: dict[Expr, str] = {}
    if not expr.children:  # most are an axis or a number
        return _index_node_text(expr, memo, names)
    index = index_of(expr)
    for node in postorder(index):
        memo[node] = _index_node_text(node, memo, names)
    return memo[index]


def _index_node_text(node: Expr, memo: Mapping[Expr, str], names: Mapping[Expr, str]) -> str:
    match node:
        case Axis() | Var():
            if names and node not in names:  # of a reduction within the condition, which is data then
                raise IndexExpressionError(f"`{text(node)}` is no variable here")
            return names.get(node, "0")
        case Const(int() as value):
            return f"({int(value)})" if value < 0 else str(int(value))
        case Call(op, args) if node.dtype != "bool":  # of which the sum is no sum of integers
            parts = [memo[a] for a in args]
            match op.name:
                case "add" | "subtract":
                    return f"({parts[0]} {'+' if op.name == 'add' else '-'} {parts[1]})"
                case "negative":
                    return f"(0 - {parts[0]})"
                case "multiply" if isinstance(args[0], Const):
                    return f"({int(args[0].value)}*{parts[1]})"  # type: ignore[arg-type]
                case "multiply" if isinstance(args[1], Const):
                    return f"({int(args[1].value)}*{parts[0]})"  # type: ignore[arg-type]
                case "floor_divide" if isinstance(args[1], Const):
                    return f"floor({parts[0]} / {args[1].value})"
                case "mod" if isinstance(args[1], Const):
                    return f"({parts[0]} mod {args[1].value})"
                case "minimum" | "maximum":
                    return f"{op.name[:3]}({parts[0]}, {parts[1]})"
                case "cast":
                    return parts[0]
    raise IndexExpressionError(f"`{text(node)}` is not affine in axes and sizes")


def condition_text(condition: Expr, names: Mapping[Expr, str]) -> str:
    """``condition`` in isl's syntax; parts that depend on data are taken to hold, negated or not."""
    return _condition_text(condition, tuple(names.items()))


@lru_cache(maxsize=4096)  # each of several conditions is asked of the set of the others
def _condition_text(condition: Expr, named: tuple[tuple[Expr, str], ...]) -> str:
    names = dict(named)
    memo: dict[tuple[Expr, bool], str] = {}
    stack = [(condition, True)]
    while stack:
        node, positive = stack[-1]
        if (node, positive) in memo:
            stack.pop()
            continue
        if isinstance(node, Call) and node.op.name in ("logical_and", "logical_or", "logical_not"):
            inner = [(a, positive != (node.op is NOT)) for a in node.args]
            missing = [key for key in inner if key not in memo]
            if missing:
                stack.extend(missing)
                continue
            parts = [memo[key] for key in inner]
            if node.op is NOT:
                memo[node, positive] = parts[0]
            else:
                word = "and" if (node.op.name == "logical_and") == positive else "or"
                memo[node, positive] = f"({parts[0]} {word} {parts[1]})"
        elif isinstance(node, Const):
            memo[node, positive] = FULL_TEXT if bool(node.value) == positive else EMPTY_TEXT
        else:
            memo[node, positive] = _comparison_text(node, names, positive) or FULL_TEXT
        stack.pop()
    return memo[condition, True]


def _comparison_text(node: Expr, names: Mapping[Expr, str], positive: bool) -> str | None:
    if not (isinstance(node, Call) and node.op.name in _COMPARE):
        return None
    try:
        left, right = (index_text(a, names) for a in node.args)
    except IndexExpressionError:
        return None
    return f"{left} {_COMPARE[node.op.name][0 if positive else 1]} {right}"


def pw_aff_expr(value: isl.PwAff, nodes: Mapping[str, Expr]) -> Expr | None:
    """A piecewise affine function of sizes; several pieces become their maximum or minimum where that is exact. None also of one that is defined nowhere."""
    pieces: list[isl.Aff] = [piece for _, piece in value.get_pieces()]
    if not pieces:
        return None
    exprs = [normal(aff_expr(piece, nodes)) for piece in pieces]
    if len(exprs) == 1:
        return exprs[0]
    for op, union in ((MAXIMUM, "max"), (MINIMUM, "min")):
        whole = isl.PwAff.from_aff(pieces[0])
        for piece in pieces[1:]:
            whole = getattr(whole, union)(isl.PwAff.from_aff(piece))
        if whole.intersect_domain(value.domain()).is_equal(value):
            result = exprs[0]
            for other in exprs[1:]:
                result = call(op, result, other)
            return result
    return None


def whole(value: isl.Val) -> int:
    """The integer that ``value`` is.

    Raises:
        isl.Error: the operations of a question were used up while it was written, of which isl says nothing itself.
    """
    written = value.to_str()
    if written is None:
        raise isl.Error(SPENT)
    return int(written)


def constraint_expr(constraint: isl.Constraint, nodes: Mapping[str, Expr]) -> Expr:
    value = normal(aff_expr(constraint.get_aff(), nodes))
    return call(EQUAL, value, 0) if constraint.is_equality() else value >= 0


def aff_expr(aff: isl.Aff, nodes: Mapping[str, Expr]) -> Expr:
    """An isl affine function (with integer divisions) of parameters and set variables as an expression."""
    denominator = whole(aff.get_denominator_val())
    scaled = aff.scale_val(aff.get_denominator_val())
    result: Expr = as_expr(whole(scaled.get_constant_val()))
    for i in range(scaled.dim(isl.dim_type.param)):
        factor = whole(scaled.get_coefficient_val(isl.dim_type.param, i))
        if factor:
            result = result + factor * nodes[str(scaled.get_dim_name(isl.dim_type.param, i))]
    for i in range(scaled.dim(isl.dim_type.in_)):
        factor = whole(scaled.get_coefficient_val(isl.dim_type.in_, i))
        if factor:
            result = result + factor * nodes[f"in{i}"]
    for i in range(scaled.dim(isl.dim_type.div)):
        factor = whole(scaled.get_coefficient_val(isl.dim_type.div, i))
        if factor:
            # a fraction, whose floor it returns
            result = result + factor * aff_expr(scaled.get_div(i), nodes)
    return result if denominator == 1 else result // denominator


_Answer = TypeVar("_Answer")
_local = threading.local()
_CUT_OFF = (SPENT, "read_from_str")  # what isl says; reading is cut off where it is


def context() -> isl.Context:
    if not hasattr(_local, "context"):
        _local.context = isl.Context()
        _local.open = 0
    return _local.context


def left_open() -> int:
    """How many questions isl has left open so far, because they took too many operations."""
    return getattr(_local, "open", 0)


def asked(question: Callable[[], _Answer], otherwise: _Answer, share: int = 1) -> _Answer:
    """The answer to ``question``, or ``otherwise``, what is always safe, where isl takes more operations than one question may, or a ``share`` of them.

    Nearly every question takes few operations, and counts for that; the others count for all that they may take.
    """
    own, most, limit = context(), max(1, OPERATIONS // share), FEW_OPERATIONS
    while True:
        limit = min(limit, most)
        steps = QUESTION if limit <= FEW_OPERATIONS else limit // OPERATIONS_OF_A_STEP
        given = allowed(steps)
        if given < steps:
            ran_short(given)
            break
        charge(steps)
        answered, answer = within(own, limit, question)
        if answered:
            return answer
        if limit == most:
            break
        limit *= 2
    _local.open += 1
    return otherwise


def within(context: isl.Context, limit: int, question: Callable[[], _Answer]) -> tuple[bool, Any]:
    """Whether isl answers ``question`` with ``limit`` operations, and the answer."""
    context.reset_operations()
    context.set_max_operations(limit)
    try:
        return True, question()
    except isl.Error as error:
        if not any(word in str(error) for word in _CUT_OFF):
            raise
        return False, None
    finally:
        context.set_max_operations(0)
