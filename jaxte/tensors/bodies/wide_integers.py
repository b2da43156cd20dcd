"""Integers of a body that do not fit into 32 bits: beside floats they are these numbers, beside integers of 64 bits they fit, comparisons with them are decided, and elsewhere they are refused."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.dtypes import INTEGER_FOLDS, INTEGER_LIMITS
from jaxte.lang.errors import DtypeError
from jaxte.lang.expr import FALSE, TRUE, Call, Const, Expr, Read, Reduce
from jaxte.lang.operators import COMPARISONS
from jaxte.lang.walk import nodes_outside, postorder
from jaxte.sets.index_forms import is_index

_WIDE = ("int64", "uint64")
_FLOATING = ("float", "bfloat", "complex")


def with_fitting_integers(name: str, body: Expr) -> Expr:
    """``body`` with integers that fit. Those in indices, and in positions that are cast to another dtype, are exact, whatever their size.

    Raises:
        DtypeError: an integer that its operation would cut to its lower 32 bits.
    """
    if not any(map(_is_wide, postorder(body))):
        return body
    outside = set(nodes_outside(body, (Read,)))
    exact = set(postorder(*filter(_casts_positions, outside)))
    memo: dict[Expr, Expr] = {}
    for node in postorder(body):
        if node not in outside or node in exact or isinstance(node, Read) or not node.children:
            memo[node] = node
            continue
        children = [memo[child] for child in node.children]
        if any(map(_is_wide, children)):
            decided = _decided(node, children)
            if decided is not None:
                memo[node] = decided
                continue
            children = _fitting(name, node, children)
        same = all(a is b for a, b in zip(children, node.children, strict=True))
        memo[node] = node if same else node.rebuild(children)
    if _is_wide(memo[body]):
        raise _refused(name, body)
    return memo[body]


def _is_wide(node: Expr) -> bool:
    return (
        isinstance(node, Const)
        and node.weak
        and type(node.value) is int
        and not -(2**31) <= node.value < 2**31
    )


def _casts_positions(node: Expr) -> bool:
    """Whether ``node`` has positions, which are exact, in a dtype that holds those beyond 32 bits, rounded or not."""
    holds = node.dtype in _WIDE or node.dtype.startswith(_FLOATING)
    return holds and isinstance(node, Call) and node.op.name == "cast" and is_index(node.args[0])


def _decided(node: Expr, children: Sequence[Expr]) -> Expr | None:
    """What a comparison of data with a wide integer is, of which every value of their dtype lies on one side."""
    if not isinstance(node, Call) or node.op not in COMPARISONS or not any(map(_holds_data, children)):
        return None
    limits = [INTEGER_LIMITS.get(c.dtype) for c in children if not _is_wide(c)]
    numbers = [c.value if isinstance(c, Const) and _is_wide(c) else 0 for c in children]
    if any(ends is None or any(ends[0] <= n <= ends[1] for n in numbers if n) for ends in limits):  # type: ignore[operator]
        return None
    return TRUE if INTEGER_FOLDS[node.op.name](*numbers) else FALSE


def _fitting(name: str, node: Expr, children: Sequence[Expr]) -> list[Expr]:
    """The operands of one operation, of which some are wide."""
    if isinstance(node, Call) and node.op in COMPARISONS and not any(_holds_data(c) for c in children):
        return list(children)  # decided by isl
    beside = [c.dtype for c in children if not _is_wide(c)] if len(children) > 1 else [node.dtype]
    if any(dtype in _WIDE for dtype in beside):
        return list(children)
    if isinstance(node, Reduce) or not any(dtype.startswith(_FLOATING) for dtype in beside):
        raise _refused(name, next(filter(_is_wide, children)))
    return [_as_float(name, c) if isinstance(c, Const) and _is_wide(c) else c for c in children]


def _as_float(name: str, number: Const) -> Const:
    assert isinstance(number.value, int)
    try:
        return Const(float(number.value))
    except OverflowError:
        raise _refused(name, number) from None


def _holds_data(node: Expr) -> bool:
    return any(isinstance(n, Read) for n in postorder(node))


def _refused(name: str, number: Expr) -> DtypeError:
    value = str(number.value) if isinstance(number, Const) else ""
    shown = value if len(value) < 40 else f"{value[:20]}…"
    return DtypeError(
        f"the body of {name} has the integer {shown}, which does not fit into 32 bits; write {shown}.0 for the number, or cast what it is "
        'combined with to "int64"'
    )
