"""The text of reductions over windows: shifted slices while they are few, else ``lax.reduce_window``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from itertools import product
from math import prod

from jaxte.affine import normal
from jaxte.expr import ZERO, Const, Expr
from jaxte.lower.combiner import combined, combiner_source
from jaxte.lower.specs import Write, as_atom, as_factor, reshaped, tuple_text, write_extent
from jaxte.lower.window import MOST_TAPS, WindowDim, WindowSpec
from jaxte.lower.writing import dtype_text, number

_WINDOW_FUNCTIONS = {
    "sum": "lax.add",
    "prod": "lax.mul",
    "max": "lax.max",
    "min": "lax.min",
    "any": "lax.bitwise_or",
    "all": "lax.bitwise_and",
}
_TOGETHER = 9  # windows of more positions are reduced one dimension after the other
_WRITTEN_OUT = 4  # more slices are written as a loop


def window_source(
    spec: WindowSpec, operands: Sequence[str], target: str, write: Write = write_extent
) -> list[str]:
    """Statements that assign the result of ``spec`` on the texts of ``spec.operands`` to ``target``."""
    if max(d.size for d in spec.dims) > MOST_TAPS and spec.reducer.name in _WINDOW_FUNCTIONS:
        return [f"{target} = {_finished(spec, _reduce_window(spec, operands[0], write), operands, write)}"]
    value, lines = operands[0], []
    padded = _padded(spec, value, write)
    if padded is not None:
        lines.append(f"{target} = {padded}")
        value = target
    elif not value.isidentifier():
        lines.append(f"{target} = {value}")
        value = target
    passes = [spec.dims] if prod(d.size for d in spec.dims) <= _TOGETHER else [(d,) for d in spec.dims]
    for number_of_pass, dims in enumerate(passes):
        value_text = _slices(spec, value, dims, write)
        if number_of_pass + 1 == len(passes):
            value_text = _finished(spec, value_text, operands, write)
        lines.append(f"{target} = {value_text}")
        value = target
    return lines


def _padded(spec: WindowSpec, value: str, write: Write) -> str | None:
    """The array among identities; None where the windows do not leave it."""
    if all(d.padding == (ZERO, ZERO) and d.spacing == 1 for d in spec.dims):
        return None
    widths: list[tuple[Expr, Expr]] = [(ZERO, ZERO)] * len(spec.array.axes)
    gaps = [0] * len(widths)
    for d in spec.dims:
        widths[d.axis], gaps[d.axis] = d.padding, d.spacing - 1
    fill = _identity(spec)
    if any(gaps):
        entries = [tuple_text([*map(write, w), str(g)]) for w, g in zip(widths, gaps, strict=True)]
        return f"lax.pad({value}, {dtype_text(spec.array.dtype)}({fill}), {tuple_text(entries)})"
    shown = "" if fill in ("0", "0.0", "False") else f", constant_values={fill}"
    return f"jnp.pad({value}, {tuple_text(tuple_text(map(write, w)) for w in widths)}{shown})"


def _identity(spec: WindowSpec) -> str:
    identity = spec.reducer.identity[0]
    assert isinstance(identity, Const)
    return number(identity.value).text


def _slices(spec: WindowSpec, value: str, dims: Sequence[WindowDim], write: Write) -> str:
    """The shifted slices of ``value``, combined."""
    taps = list(product(*(range(d.size) for d in dims)))
    ndim = len(spec.array.axes)
    if len(taps) <= _WRITTEN_OUT:
        parts = [
            f"{value}[{_entries(ndim, {d.axis: _shifted(d, n, write) for d, n in zip(dims, tap, strict=True)})}]"
            for tap in taps
        ]
        return combined(spec.reducer, parts)
    names = _loop_names(value, dims, write)
    entries = {d.axis: _moving(d, name, write) for d, name in zip(dims, names, strict=True)}
    loops = " ".join(f"for {name} in {_range(d)}" for d, name in zip(dims, names, strict=True))
    element = f"{value}[{_entries(ndim, entries)}] {loops}"
    if spec.reducer.name == "sum":
        return f"sum({element})"
    return f"functools.reduce({combiner_source(spec.reducer)}, [{element}])"


def _loop_names(value: str, dims: Sequence[WindowDim], write: Write) -> list[str]:
    """Names for the loops over ``dims`` that the slices do not mention already."""
    taken = {value, *(word for d in dims for word in re.findall(r"\w+", write(_reach(d))))}
    fresh = (f"{letter}{number or ''}" for number in itertools.count() for letter in "ijklmn")
    return list(itertools.islice((name for name in fresh if name not in taken), len(dims)))


def _range(d: WindowDim) -> str:
    return f"range({d.size})" if d.dilation == 1 else f"range(0, {d.size * d.dilation}, {d.dilation})"


def _entries(ndim: int, moving: dict[int, str]) -> str:
    return ", ".join(moving.get(n, ":") for n in range(max(moving) + 1))


def _reach(d: WindowDim) -> Expr:
    """The positions from the first window's to the last window's same element."""
    return normal(d.stride * (d.length - 1) + 1)


def _shifted(d: WindowDim, tap: int, write: Write) -> str:
    start = tap * d.dilation
    stop = write(normal(start + _reach(d)))
    return f"{start or ''}:{stop}" + (f":{d.stride}" if d.stride > 1 else "")


def _moving(d: WindowDim, name: str, write: Write) -> str:
    return f"{name}:{name} + {as_factor(write(_reach(d)))}" + (f":{d.stride}" if d.stride > 1 else "")


def _reduce_window(spec: WindowSpec, value: str, write: Write) -> str:
    by_axis = {d.axis: d for d in spec.dims}
    dims = [by_axis.get(n) for n in range(len(spec.array.axes))]
    arguments = [
        value,
        f"{dtype_text(spec.array.dtype)}({_identity(spec)})",
        _WINDOW_FUNCTIONS[spec.reducer.name],
        f"window_dimensions={tuple_text(str(d.size if d else 1) for d in dims)}",
        f"window_strides={tuple_text(str(d.stride if d else 1) for d in dims)}",
        f"padding={tuple_text(tuple_text(map(write, d.padding)) if d else '(0, 0)' for d in dims)}",
    ]
    if any(d.spacing > 1 for d in spec.dims):
        arguments.append(f"base_dilation={tuple_text(str(d.spacing if d else 1) for d in dims)}")
    if any(d.dilation > 1 for d in spec.dims):
        arguments.append(f"window_dilation={tuple_text(str(d.dilation if d else 1) for d in dims)}")
    return f"lax.reduce_window({', '.join(arguments)})"


def _finished(spec: WindowSpec, result: str, operands: Sequence[str], write: Write) -> str:
    if spec.shape is not None:
        result = reshaped(result, spec.shape, write)
    if spec.broadcast is not None:
        result = f"jnp.broadcast_to({result}, {tuple_text(map(write, spec.broadcast))})"
    return result if spec.scale is None else f"{as_factor(operands[1])} * {as_atom(result)}"
