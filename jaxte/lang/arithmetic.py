"""Expressions and their arithmetic: immutable, interned nodes, typed as they meet and folded where they are known.

A node is made once for each meaning: two equal expressions are the same object, so identity is structural
equality and nodes serve as dictionary keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from jaxte.lang import dtypes
from jaxte.lang.dtypes import INTEGER_FOLDS, compared, fits, in_every_dtype
from jaxte.lang.errors import DefinitionError, DtypeError, IndexExpressionError
from jaxte.lang.graphs import free_in
from jaxte.lang.interning import intern, references
from jaxte.lang.nodes import FALSE, ONE, TRUE, ZERO, Const, Expr, as_expr, integer, operate_with
from jaxte.lang.operators import (
    AND,
    COMPARISONS,
    FLOOR_DIVIDE,
    MOD,
    NOT,
    OR,
    POWER,
    SELECT,
    Op,
    Operand,
    result_kind,
)

_kind, _reduces = attrgetter("dtype", "weak"), attrgetter("reduces")


class Call(Expr):
    """A scalar operation on expressions."""

    __slots__ = ("args", "free", "op", "reduces")
    __match_args__ = ("op", "args")
    op: Op
    args: tuple[Expr, ...]

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return call(self.op, *children)

    def __reduce__(self) -> Any:
        return call, (self.op, *self.args)


Call.children = Call.args  # type: ignore[misc]


def apply(op: Op, *args: Any) -> Any:
    """``op`` on scalars, or elementwise on whole Tensors when one of the operands is one."""
    for arg in args:
        if not isinstance(arg, Expr) and isinstance(arg, Operand):
            return arg._apply(op, args)
    return call(op, *args)


operate_with(apply)


def call(op: Op, *args: Any) -> Expr:
    """The node of ``op`` on ``args``, folded where the operands are integers known now."""
    exprs: tuple[Expr, ...] = args
    for n, a in enumerate(args):
        if not isinstance(a, Expr):
            own = integer(a) if type(a) is int else as_expr(a)
            exprs = (*exprs[:n], own, *exprs[n + 1 :])
    there = references.get((Call, op.name, op.result, *map(id, exprs)))
    if there is not None and (known := there()) is not None:
        return known
    if len(exprs) != op.arity:
        raise DefinitionError(f"{op.name} takes {op.arity} operands, {len(exprs)} were given")
    if (
        type(exprs[0]) is Const
        and type(exprs[-1]) is Const
        and (number := _of_numbers(op, exprs)) is not None
    ):
        return number
    kinds = tuple(map(_kind, exprs))
    if _may_widen(op, kinds):
        exprs = _meeting(op, exprs)
        kinds = tuple(map(_kind, exprs))
    dtype, weak = result_kind(op, kinds)
    if _may_fold(op, kinds) and (folded := _fold(op, exprs, dtype)) is not None:
        return folded
    if op is POWER and dtypes.is_integer(dtype):
        _check_exponent(exprs[1])
    return intern(
        Call,
        (op.name, op.result, *map(id, exprs)),
        {
            "op": op,
            "args": exprs,
            "free": free_in(exprs),
            "reduces": any(map(_reduces, exprs)),
            "dtype": dtype,
            "weak": weak,
        },
    )


_FOLDED = frozenset((AND, OR, NOT, SELECT, *COMPARISONS))


def _check_exponent(exponent: Expr) -> None:
    """Refuses a known exponent of an integer that is negative, as JAX does where the code runs."""
    value = exponent.value if isinstance(exponent, Const) else 0
    if isinstance(value, int) and value < 0:
        raise DtypeError(f"an integer has no power {value}; cast it to a floating dtype with te.cast first")


@lru_cache(maxsize=1024)
def _may_widen(op: Op, kinds: tuple[dtypes.Kind, ...]) -> bool:
    """Whether operands of these kinds may meet as others; most do not, and are not looked at."""
    if op.result == "bool":
        return ("int32", False) in kinds
    return not dtypes.SHORT_INTEGERS.keys().isdisjoint(dtype for dtype, _ in kinds)


@lru_cache(maxsize=1024)
def _may_fold(op: Op, kinds: tuple[dtypes.Kind, ...]) -> bool:
    """Whether an operation on operands of these kinds may be known now: logic, choices, comparisons, casts, and arithmetic of indices."""
    return op in _FOLDED or op.name == "cast" or all(kind == ("int32", True) for kind in kinds)


def _meeting(op: Op, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Operands as they meet: positions, and numbers beyond a short integer, widen it to int32 as an int32 array does; not to be compared."""
    if op.result == "bool":
        for a in args:
            if isinstance(a, Call) and a.op.name == "cast":
                return tuple(map(narrowed, args))
        return args
    if op.result not in ("promote", "integer"):
        return args
    for a in args:
        if a.dtype in dtypes.SHORT_INTEGERS:
            break
    else:
        return args
    operands = args[1:] if op is SELECT else args
    weak = [a.weak for a in operands]
    if all(weak) or not any(weak):
        return args
    shortest = dtypes.promote(a.kind for a in operands)[0]
    if shortest not in dtypes.SHORT_INTEGERS or not any(_exceeds(a, shortest) for a in operands):
        return args
    return tuple(cast(a, "int32") if a.dtype in dtypes.SHORT_INTEGERS else a for a in args)


def _exceeds(expr: Expr, dtype: str) -> bool:
    """Whether ``expr`` is a position, or a number that ``dtype`` does not hold."""
    if not expr.weak:
        return False
    low, high = dtypes.SHORT_INTEGERS[dtype]
    return not (isinstance(expr, Const) and isinstance(expr.value, int) and low <= expr.value <= high)


def narrowed(expr: Expr) -> Expr:
    """``expr`` without a cast of a short integer to int32, where only its value counts."""
    if isinstance(expr, Call) and expr.op.result == "int32" and expr.op.name == "cast":
        (operand,) = expr.args
        return operand if operand.dtype in dtypes.SHORT_INTEGERS else expr
    return expr


def _of_numbers(op: Op, args: tuple[Expr, ...]) -> Expr | None:
    """``op`` on numbers of indices; None for other operands."""
    values = []
    for a in args:
        if type(a) is not Const or not a.weak or not isinstance(a.value, int):
            return None
        values.append(a.value)
    compute = INTEGER_FOLDS.get(op.name)
    found = None if compute is None else compute(*values)
    return found if found is None else integer(found) if type(found) is int else as_expr(found)


def _fold(op: Op, args: tuple[Expr, ...], dtype: str) -> Expr | None:
    """Exact folding of index arithmetic and of logic; floats are left as the user wrote them."""
    if op in (AND, OR, NOT):
        return _fold_logic(op, args)
    if op.name == "cast" and dtypes.is_integer(dtype) and _holds(dtype, args[0]):
        return Const(args[0].value, dtype)  # type: ignore[attr-defined]
    if op is SELECT and isinstance(args[0], Const):
        chosen = args[1] if args[0].value else args[2]
        return chosen if chosen.dtype == dtype else cast(chosen, dtype)
    if op is SELECT and args[1] is args[2] and isinstance(args[1], Const) and args[1].dtype == dtype:
        return args[1]
    if op in COMPARISONS and (decided := _far_apart(op, *args)) is not None:
        return TRUE if decided else FALSE
    for a in args:
        if not a.weak or a.dtype != "int32":
            return None
    if op in (FLOOR_DIVIDE, MOD):
        return _fold_division(op, *args)
    match op.name, args:
        case ("add", (a, b)):
            return b if a is ZERO else a if b is ZERO else None
        case ("subtract", (a, b)):
            return a if b is ZERO else ZERO if a is b else None
        case ("multiply", (a, b)):
            return b if a is ONE else a if b is ONE else ZERO if a is ZERO or b is ZERO else None
        case ("equal" | "less_equal" | "greater_equal", (a, b)):
            return TRUE if a is b else None
        case ("not_equal" | "less" | "greater", (a, b)):
            return FALSE if a is b else None
    return None


def _far_apart(op: Op, a: Expr, b: Expr) -> bool | None:
    """A comparison of two numbers that no rounding to a dtype brings together; None for other operands."""
    left, right = _real_number(a), _real_number(b)
    return None if left is None or right is None else compared(op.name, left, right)


def _real_number(expr: Expr) -> float | None:
    """The value of a number that every dtype has up to rounding."""
    if isinstance(expr, Call) and expr.op.name == "cast" and dtypes.is_float(expr.dtype):
        (expr,) = expr.args
    return in_every_dtype(expr.value) if isinstance(expr, Const) else None


def _holds(dtype: str, number: Expr) -> bool:
    """Whether ``number`` is an integer known now that ``dtype`` has."""
    return isinstance(number, Const) and dtypes.is_integer(number.dtype) and fits(dtype, number.value)


def _fold_division(op: Op, a: Expr, b: Expr) -> Expr | None:
    if isinstance(b, Const) and b.weak and isinstance(b.value, int):
        divisor = b.value
        if divisor == 0:
            raise IndexExpressionError(
                f"an index is divided by 0, by {'//' if op is FLOOR_DIVIDE else '%'}; divide by a positive constant"
            )
        if isinstance(a, Const) and a.weak and isinstance(a.value, int):
            return integer(a.value // divisor if op is FLOOR_DIVIDE else a.value % divisor)
        if divisor == 1:
            return a if op is FLOOR_DIVIDE else ZERO
    return None


def _fold_logic(op: Op, args: tuple[Expr, ...]) -> Expr | None:
    if op is NOT:
        (a,) = args
        if isinstance(a, Const):
            return FALSE if a.value else TRUE
        return a.args[0] if isinstance(a, Call) and a.op is NOT else None
    a, b = args
    neutral, absorbing = (TRUE, FALSE) if op is AND else (FALSE, TRUE)
    if a is absorbing or b is absorbing:
        return absorbing
    return b if a is neutral else a if b is neutral or a is b else None


def cast(value: Any, dtype: str) -> Any:
    """``value`` as ``dtype``; nothing where it has that dtype already."""
    if isinstance(value, Expr) and value.dtype == dtype and not value.weak:
        return value
    if (
        isinstance(value, Const)
        and isinstance(value.value, complex)
        and not dtypes.is_complex(dtype)
        and dtype != "bool"
    ):
        value = Const(value.value.real)  # as of data; no array of real numbers is made of a complex one
    return apply(_casting(dtype), value)


@lru_cache(maxsize=64)  # what is known of an operation is kept by its identity
def _casting(dtype: str) -> Op:
    return Op("cast", dtype, 1)
