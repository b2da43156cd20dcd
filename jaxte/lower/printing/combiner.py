"""The text of what a reducer does to two arrays."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Call, Const, Expr, Reducer, Scalar, Symbol
from jaxte.lang.operators import SELECT
from jaxte.lang.scalars.rows import CALL
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.elementwise import Typed, number
from jaxte.lower.printing.writer import Written, dtype_text, number_text

_FUNCTIONS = {
    "sum": "jnp.add",
    "prod": "jnp.multiply",
    "max": "jnp.maximum",
    "min": "jnp.minimum",
    "any": "jnp.logical_or",
    "all": "jnp.logical_and",
}
_SIGNS = {"sum": " + ", "prod": " * ", "any": " | ", "all": " & "}


def combiner_source(reducer: Reducer, of_elements: bool = False) -> str:
    """A function of two arrays, or of two tuples of them.

    Args:
        of_elements: whether they are elements of the same dtypes, as for ``lax.reduce``. XLA ends the process where it removes a reduction whose results
            are not used and whose choices are ``jnp.where``, which is a function that is called; ``lax.select`` is an operation.
    """
    if reducer.name in _FUNCTIONS:
        return _FUNCTIONS[reducer.name]
    names = symbol_names(reducer, "x", "y")
    results = [_written(result, names, of_elements) for result in reducer.results]
    return f"lambda x, y: {results[0]}" if reducer.arity == 1 else f"lambda x, y: ({', '.join(results)})"


def needed_values(reducer: Reducer, position: int, carried: Sequence[Symbol]) -> list[int]:
    """The values of ``carried``, one side's symbols, that value ``position`` of the combiner depends on, itself first.

    Combined step by step with that side carried on, the others are never read.
    """
    found = [position]
    for value in found:
        symbols = {node for node in postorder(reducer.results[value]) if isinstance(node, Symbol)}
        found += [n for n, symbol in enumerate(carried) if symbol in symbols and n not in found]
    return found


def combined(reducer: Reducer, parts: Sequence[str]) -> str:
    """``parts``, texts that bind like calls, combined by a reducer of one value."""
    if reducer.name in _SIGNS:
        return _SIGNS[reducer.name].join(parts)
    if reducer.name in _FUNCTIONS:
        result = parts[0]
        for part in parts[1:]:
            result = f"{_FUNCTIONS[reducer.name]}({result}, {part})"
        return result
    return f"functools.reduce({combiner_source(reducer)}, [{', '.join(parts)}])"


def symbol_names(reducer: Reducer, lhs: str, rhs: str) -> dict[Symbol, str]:
    """What the symbols of a reducer are called where its operands are ``lhs`` and ``rhs``."""
    if reducer.arity == 1:
        return {reducer.lhs[0]: lhs, reducer.rhs[0]: rhs}
    names = {symbol: f"{lhs}[{n}]" for n, symbol in enumerate(reducer.lhs)}
    return names | {symbol: f"{rhs}[{n}]" for n, symbol in enumerate(reducer.rhs)}


def _written(expr: Expr, names: dict[Symbol, str], of_elements: bool) -> str:
    memo: dict[Expr, Written] = {}
    for node in postorder(expr):
        match node:
            case Symbol():
                memo[node] = names[node], CALL
            case Const(value):
                memo[node] = _number(value, node.dtype)
            case Call(op, (test, *branches)) if (
                of_elements and op is SELECT and _are_alike(branches, node.dtype)
            ):
                taken = [_typed(b, memo[b][0], node.dtype) for b in branches]
                memo[node] = f"lax.select({memo[test][0]}, {', '.join(taken)})", CALL
            case Call(op, args):
                operands = [memo[a] for a in args]
                memo[node] = TABLE[op.name].code.write(*operands, dtype=dtype_text(node.dtype))
    return memo[expr][0]


def _are_alike(branches: Sequence[Expr], dtype: str) -> bool:
    return all(isinstance(b, Const) or (b.dtype == dtype and not b.weak) for b in branches)


def _typed(branch: Expr, text: str, dtype: str) -> str:
    return f"{dtype_text(dtype)}({number_text(branch.value)[0]})" if isinstance(branch, Const) else text


def _number(value: Scalar, dtype: str) -> Written:
    own = number(value, dtype)
    if isinstance(own, Typed):
        return f"{dtype_text(dtype)}({number_text(value)[0]})", CALL
    return number_text(value)
