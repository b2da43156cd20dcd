"""The text of cumulative reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxte.affine import normal
from jaxte.expr import ZERO, Expr
from jaxte.lower.combiner import combiner_source, identity_text
from jaxte.lower.scan import Scan, ScanSpec
from jaxte.lower.specs import Write, as_factor, reshaped, subscripted, tuple_text, write_extent

_CUMULATIVE = {"sum": "cumsum", "prod": "cumprod", "max": "cummax", "min": "cummin"}


def scan_source(spec: ScanSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The Python expression of ``spec`` on the texts of ``spec.operands``."""
    arity, ndim = spec.reducer.arity, len(spec.arrays[0].axes)
    values = list(operands[:arity])
    result = ""
    for scan in spec.scans:
        padded = [
            _padded(value, scan, ndim, identity_text(spec.reducer, n), write)
            for n, value in enumerate(values)
        ]
        result = _taken(_scanned(spec, scan, padded), scan, ndim, write)
        values = [result]
    return _finished(spec, result, operands[arity:], write)


def _padded(value: str, scan: Scan, ndim: int, identity: str, write: Write) -> str:
    if scan.pad == (ZERO, ZERO):
        return value
    widths = ["(0, 0)"] * ndim
    widths[scan.axis] = tuple_text(map(write, scan.pad))
    fill = "" if identity in ("0", "0.0", "False") else f", constant_values={identity}"
    return f"jnp.pad({value}, {tuple_text(widths)}{fill})"


def _scanned(spec: ScanSpec, scan: Scan, values: Sequence[str]) -> str:
    name = _CUMULATIVE.get(spec.reducer.name)
    backwards = ", reverse=True" if scan.reverse else ""
    if name is not None:
        module = "jnp" if name in ("cumsum", "cumprod") and not scan.reverse else "lax"
        return f"{module}.{name}({values[0]}, axis={scan.axis}{backwards})"
    elements = values[0] if len(values) == 1 else tuple_text(values)
    # Backwards, lax.associative_scan passes later elements first; compositions of maps do not commute.
    reducer = spec.reducer
    if scan.reverse:
        reducer = replace(reducer, lhs=reducer.rhs, rhs=reducer.lhs)
    result = f"lax.associative_scan({combiner_source(reducer)}, {elements}, axis={scan.axis}{backwards})"
    return result if len(values) == 1 else f"{result}[{spec.position}]"


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
