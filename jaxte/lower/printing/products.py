"""The text of products and reductions, and of what a reducer does to two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxte.lang.expr import ONE, Call, Const, Expr, Reducer, Scalar, Symbol
from jaxte.lang.operators import SELECT
from jaxte.lang.scalars.rows import CALL
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import all_of, postorder
from jaxte.lower.arrays import products
from jaxte.lower.arrays.elementwise import Typed, number
from jaxte.lower.printing.writer import Rules, Writer, Written, call, dtype_text, number_text, tuple_text

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
        symbols = set(all_of(Symbol, reducer.results[value]))
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
                of_elements
                and op is SELECT
                and all(isinstance(b, Const) or (b.dtype == node.dtype and not b.weak) for b in branches)
            ):
                taken = [_typed(b, memo[b][0], node.dtype) for b in branches]
                memo[node] = f"lax.select({memo[test][0]}, {', '.join(taken)})", CALL
            case Call(op, args):
                operands = [memo[a] for a in args]
                memo[node] = TABLE[op.name].code.write(*operands, dtype=dtype_text(node.dtype))
    return memo[expr][0]


def _typed(branch: Expr, text: str, dtype: str) -> str:
    return f"{dtype_text(dtype)}({number_text(branch.value)[0]})" if isinstance(branch, Const) else text


def _number(value: Scalar, dtype: str) -> Written:
    own = number(value, dtype)
    if isinstance(own, Typed):
        return f"{dtype_text(dtype)}({number_text(value)[0]})", CALL
    return number_text(value)


_WINDOWS = {
    "sum": "lax.add",
    "prod": "lax.mul",
    "max": "lax.max",
    "min": "lax.min",
    "any": "lax.bitwise_or",
    "all": "lax.bitwise_and",
}


def _einsum(node: products.Einsum, to: Writer) -> Written:
    exact = '"highest"' if node.exact else ""
    return call("jnp.einsum", f'"{node.spec}"', *map(to.text, node.factors), precision=exact)


def _fourier(node: products.Fourier, to: Writer) -> Written:
    array, points, axes = to.text(node.array), node.points, node.axes
    if len(points) > 1:
        return call(f"jnp.fft.{node.function}n", array, str(points), str(axes))
    axis = "" if axes[0] == len(node.array.shape) - 1 else str(axes[0])
    return call(f"jnp.fft.{node.function}", array, str(points[0]), axis=axis)


def _convolution(node: products.Convolution, to: Writer) -> Written:
    named = {"window_strides": str(node.strides), "padding": tuple_text(map(to.shape, node.padding))}
    for name, own in (("lhs_dilation", node.lhs_dilation), ("rhs_dilation", node.rhs_dilation)):
        named[name] = str(own) if any(n != 1 for n in own) else ""
    named["dimension_numbers"] = tuple_text(f'"{d}"' for d in node.dimensions)
    groups = "batch_group_count" if node.by_batch else "feature_group_count"
    named[groups] = "" if node.groups is ONE else to.text(node.groups)
    return call("lax.conv_general_dilated", to.text(node.lhs), to.text(node.rhs), **named)


def _tensordot(node: products.Tensordot, to: Writer) -> Written:
    return call("jnp.tensordot", to.text(node.lhs), to.text(node.rhs), "1")


def _reduced(node: products.Reduced, to: Writer) -> Written:
    axes = node.axes or ()
    return call(
        f"jnp.{node.function}",
        to.text(node.array),
        axis="" if node.axes is None else str(axes[0] if len(axes) == 1 else axes),
        dtype=node.own_dtype and dtype_text(node.own_dtype),
        initial="" if node.start is None else to.text(node.start),
        keepdims="True" if node.keep else "",
    )


def _position(node: products.Position, to: Writer) -> Written:
    function = f"lax.{node.function}"
    return call(function, to.text(node.array), axis=str(node.axis), index_dtype="jnp.int32")


def _combined(node: products.Combined, to: Writer) -> Written:
    operands, starts = ([to.text(n) for n in own] for own in (node.arrays, node.starts))
    listed = [own[0] if len(own) == 1 else tuple_text(own) for own in (operands, starts)]
    return call(
        "lax.reduce",
        *listed,
        combiner_source(node.reducer, of_elements=True),
        tuple_text(map(str, node.axes)),
    )


def _reduce_window(node: products.ReduceWindow, to: Writer) -> Written:
    named = {"window_dimensions": str(node.sizes), "window_strides": str(node.strides)}
    named["padding"] = tuple_text(map(to.shape, node.padding))
    for name, own in (("base_dilation", node.spacing), ("window_dilation", node.dilation)):
        named[name] = str(own) if any(n != 1 for n in own) else ""
    given = to.text(node.array), to.text(node.start), _WINDOWS[node.function]
    return call("lax.reduce_window", *given, **named)


def _cumulative(node: products.Cumulative, to: Writer) -> Written:
    module = "jnp" if node.function in ("sum", "prod") and not node.reverse else "lax"
    reverse = "True" if node.reverse else ""
    function = f"{module}.cum{node.function}"
    return call(function, to.text(node.array), axis=str(node.axis), reverse=reverse)


def _prefixes(node: products.Prefixes, to: Writer) -> Written:
    reverse = "True" if node.reverse else ""
    # Backwards, lax.associative_scan passes later elements first; compositions of maps do not commute.
    own = node.reducer
    own = replace(own, lhs=own.rhs, rhs=own.lhs) if node.reverse else own
    arrays = to.one_or_all(node.arrays)
    return call("lax.associative_scan", combiner_source(own), arrays, axis=str(node.axis), reverse=reverse)


RULES: Rules = {
    products.Einsum: _einsum,
    products.Fourier: _fourier,
    products.Convolution: _convolution,
    products.Tensordot: _tensordot,
    products.Reduced: _reduced,
    products.Position: _position,
    products.Combined: _combined,
    products.ReduceWindow: _reduce_window,
    products.Cumulative: _cumulative,
    products.Prefixes: _prefixes,
}
