"""The text of cumulative reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from jaxte.lang.expr import ZERO, Expr, Reducer, Symbol
from jaxte.lang.identity import identical
from jaxte.lower.code.spec import Write, as_factor, reshaped, subscripted, tuple_text, write_extent
from jaxte.lower.forms.scan.recognise import Scan, ScanSpec
from jaxte.lower.printing.combiner import (
    combined_values,
    combiner_source,
    identity_text,
    needed_values,
    symbol_names,
)
from jaxte.lower.printing.numbers import dtype_text
from jaxte.sets.affine import normal

Run = Callable[[ScanSpec, Scan, Sequence[str]], str]
CUMULATIVE = {"sum": "cumsum", "prod": "cumprod", "max": "cummax", "min": "cummin"}
_UNROLLED = 4  # steps of a loop that are written one after the other
_OPERATORS = {"sum": "+", "prod": "*", "any": "|", "all": "&"}


def scan_source(
    spec: ScanSpec, operands: Sequence[str], write: Write = write_extent, run: Run | None = None
) -> str:
    """The Python expression of ``spec`` on the texts of ``spec.operands``.

    ``run`` writes one pass over an axis; the cumulative function of the reducer where there is one, else
    ``lax.associative_scan``, if it is not given.
    """
    run = run or cumulative
    arity, ndim = spec.reducer.arity, len(spec.arrays[0].axes)
    values = list(operands[:arity])
    result = ""
    for scan in spec.scans:
        padded = [
            _padded(value, scan, ndim, identity_text(spec.reducer, n), write)
            for n, value in enumerate(values)
        ]
        result = _taken(run(spec, scan, padded), scan, ndim, write)
        values = [result]
    return _finished(spec, result, operands[arity:], write)


def _padded(value: str, scan: Scan, ndim: int, identity: str, write: Write) -> str:
    if identical(scan.pad, (ZERO, ZERO)):
        return value
    widths = ["(0, 0)"] * ndim
    widths[scan.axis] = tuple_text(map(write, scan.pad))
    fill = "" if identity in ("0", "0.0", "False") else f", constant_values={identity}"
    return f"jnp.pad({value}, {tuple_text(widths)}{fill})"


def has_cumulative(reducer: Reducer) -> bool:
    """Whether JAX has a cumulative function for ``reducer``; those of maxima and minima refuse booleans."""
    if reducer.name in ("max", "min") and reducer.results[0].dtype == "bool":
        return False
    return reducer.name in CUMULATIVE


def cumulative(spec: ScanSpec, scan: Scan, values: Sequence[str]) -> str:
    """The cumulative function of the reducer, where it has one."""
    if not has_cumulative(spec.reducer):
        return associative(spec, scan, values)
    name = CUMULATIVE[spec.reducer.name]
    backwards = ", reverse=True" if scan.reverse else ""
    module = "jnp" if name in ("cumsum", "cumprod") and not scan.reverse else "lax"
    return f"{module}.{name}({values[0]}, axis={scan.axis}{backwards})"


def associative(spec: ScanSpec, scan: Scan, values: Sequence[str]) -> str:
    """``lax.associative_scan``."""
    backwards = ", reverse=True" if scan.reverse else ""
    elements = values[0] if len(values) == 1 else tuple_text(values)
    # Backwards, lax.associative_scan passes later elements first; compositions of maps do not commute.
    reducer = spec.reducer
    if scan.reverse:
        reducer = replace(reducer, lhs=reducer.rhs, rhs=reducer.lhs)
    result = f"lax.associative_scan({combiner_source(reducer)}, {elements}, axis={scan.axis}{backwards})"
    return result if len(values) == 1 else f"{result}[{spec.position}]"


def step_lines(spec: ScanSpec, scan: Scan) -> tuple[str, ...]:
    """The body of a function ``(total, x)``, one step of ``lax.scan``."""
    returned = "total, total" if len(carried_values(spec, scan)) == 1 else "total, total[0]"
    return (step_text(spec, scan, "x"), f"return {returned}")


def step_text(spec: ScanSpec, scan: Scan, element: str) -> str:
    """``total`` and one more element, or tuples of them: the new ``total``."""
    reducer = spec.reducer
    own, other = (element, "total") if scan.reverse else ("total", element)
    operator = _OPERATORS.get(reducer.name)
    if operator is not None:
        return f"total = {own} {operator} {other}"
    if reducer.name in CUMULATIVE:
        return f"total = {combiner_source(reducer)}({own}, {other})"
    names = symbol_names(reducer, own, other)
    values = carried_values(spec, scan)
    totals = [f"total[{n}]" for n in range(len(values))] if len(values) > 1 else ["total"]
    names |= {_carrying(spec, scan)[v]: name for v, name in zip(values, totals, strict=True)}
    texts = combined_values(reducer, values, names)
    return f"total = {texts[0] if len(texts) == 1 else tuple_text(texts)}"


def _carrying(spec: ScanSpec, scan: Scan) -> Sequence[Symbol]:
    """The side of the combiner that holds what the steps before have made."""
    return spec.reducer.rhs if scan.reverse else spec.reducer.lhs


def carried_values(spec: ScanSpec, scan: Scan) -> list[int]:
    """The values that a step hands on, the one that is asked for first."""
    return needed_values(spec.reducer, spec.position, _carrying(spec, scan))


def sequential(
    spec: ScanSpec, scan: Scan, values: Sequence[str], step: str, write: Write = write_extent
) -> str:
    """``lax.scan`` with the function ``step`` along the axis, which is the first one meanwhile."""
    shape = [write(e) for n, e in enumerate(spec.arrays[0].shape) if n != scan.axis]
    starts = [
        _filled(shape, identity_text(spec.reducer, n), spec.arrays[n].dtype)
        for n in carried_values(spec, scan)
    ]
    moved = [value if scan.axis == 0 else f"jnp.moveaxis({value}, {scan.axis}, 0)" for value in values]
    start = starts[0] if len(starts) == 1 else tuple_text(starts)
    elements = moved[0] if len(moved) == 1 else tuple_text(moved)
    backwards = ", reverse=True" if scan.reverse else ""
    result = f"lax.scan({step}, {start}, {elements}{backwards}, unroll={_UNROLLED})[1]"
    return result if scan.axis == 0 else f"jnp.moveaxis({result}, 0, {scan.axis})"


def _filled(shape: Sequence[str], number: str, dtype: str) -> str:
    if not shape:
        return f"{dtype_text(dtype)}({number})"
    if number in ("0", "0.0"):
        return f"jnp.zeros({tuple_text(shape)}, {dtype_text(dtype)})"
    return f"jnp.full({tuple_text(shape)}, {number}, {dtype_text(dtype)})"


def _taken(value: str, scan: Scan, ndim: int, write: Write) -> str:
    """The part of the cumulative values that is the result."""
    if scan.start is None and not scan.flip:
        return value
    start = "" if scan.start is None or scan.start is ZERO else write(scan.start)
    stop = "" if scan.start is None else write(_end(scan))
    entry = f"{start}:{stop}"
    if scan.flip and scan.start is None:
        entry = "::-1"
    result = subscripted(value, scan.axis, entry)
    return subscripted(result, scan.axis, "::-1") if scan.flip and scan.start is not None else result


def _end(scan: Scan) -> Expr:
    assert scan.start is not None
    return normal(scan.start + scan.length)


def _finished(spec: ScanSpec, result: str, others: Sequence[str], write: Write) -> str:
    remaining = list(others)
    result = reshaped(result, spec.shape, write)
    if spec.broadcast is not None:
        result = f"jnp.broadcast_to({result}, {tuple_text(map(write, spec.broadcast))})"
    if spec.scale is not None:
        result = f"{as_factor(remaining.pop(0))} * {result}"
    if spec.guard is not None:
        result = f"jnp.where({remaining.pop(0)}, {result}, {identity_text(spec.reducer, spec.position)})"
    return result
