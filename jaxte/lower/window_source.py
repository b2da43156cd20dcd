"""The text of reductions over windows, in each of their forms.

Slices of one array are combined in one pass, or one dimension after the other (a window of ``a * b`` is then one of ``a`` and one of
``b``), or by doubling: windows of 1, 2, 4, 8, ... positions, each of them two of the one before, and the whole as two or more of
these side by side, one of which may cover what another one covers where that makes no difference (a maximum). What is
sliced is kept apart from what made it, which XLA would otherwise compute again for each slice. What lies around the array is
put there for one dimension at a time: rows of their natural length are several times as fast as padded ones.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from itertools import product

from jaxte.affine import normal
from jaxte.expr import ZERO, Const, Expr, Read
from jaxte.lower.combiner import combined, combiner_source
from jaxte.lower.specs import Write, as_atom, as_factor, reshaped, tuple_text, write_extent
from jaxte.lower.window import WindowDim, WindowSpec
from jaxte.lower.writing import dtype_text, number

SLICES = "shifted slices"
SEPARABLE = "separable slices"
DOUBLING = "doubling slices"
REDUCE_WINDOW = "reduce_window"
WINDOW_FUNCTIONS = {
    "sum": "lax.add",
    "prod": "lax.mul",
    "max": "lax.max",
    "min": "lax.min",
    "any": "lax.bitwise_or",
    "all": "lax.bitwise_and",
}
_IDEMPOTENT = ("max", "min", "any", "all")  # combining a value with itself changes nothing
_WRITTEN_OUT = 4  # more slices are written as a loop


def window_source(
    spec: WindowSpec,
    operands: Sequence[str],
    names: Callable[[], str],
    form: str,
    write: Write = write_extent,
) -> list[str]:
    """Statements whose last one assigns the result of ``spec`` on the texts of ``spec.operands``.

    ``names`` gives a name that is not taken, each time that it is called.
    """
    target = names()
    if form == REDUCE_WINDOW:
        return [f"{target} = {finished(spec, _reduce_window(spec, operands[0], write), operands, write)}"]
    value, lines = operands[0], []
    for dims in [spec.dims] if form == SLICES else [(d,) for d in spec.dims]:
        padded = _padded(spec, value, dims, write)
        computed = value == operands[0] and not isinstance(spec.array.body, Read)
        if padded is not None or computed or not value.isidentifier():
            lines.append(f"{target} = {padded or value}")
            value = target
        if form == DOUBLING:
            steps, text = _doubled(spec, value, names, dims[0], write)
            lines += steps
        else:
            text = _slices(spec, value, dims, write)
        lines.append(f"{target} = {text}")
        value = target
    *before, last = [line.partition(" = ") for line in lines]
    apart = [f"{name} = lax.optimization_barrier({text})" for name, _, text in before]
    return [*apart, f"{target} = {finished(spec, last[2], operands, write)}"]


def _doubled(
    spec: WindowSpec, value: str, names: Callable[[], str], d: WindowDim, write: Write
) -> tuple[list[str], str]:
    """Statements that make windows of 2, 4, 8, ... positions, and the text of the whole window made of them."""
    powers = [1 << n for n in range(d.size.bit_length())]
    extent = normal(d.stride * (d.length - 1) + d.dilation * (d.size - 1) + 1)
    made = {1: value}
    lines: list[str] = []
    for half, size in itertools.pairwise(powers):
        made[size] = names()
        reach = normal(extent - d.dilation * (size - 1))
        parts = [_cut(spec, made[half], d.axis, start, reach, write) for start in (0, half * d.dilation)]
        lines.append(f"{made[size]} = {combined(spec.reducer, parts)}")
    pieces = [(powers[-1], 0)]
    if d.size > powers[-1] and spec.reducer.name in _IDEMPOTENT:
        pieces.append((powers[-1], d.size - powers[-1]))
    else:
        start = powers[-1]
        for size in reversed(powers[:-1]):
            if d.size & size:
                pieces.append((size, start))
                start += size
    ndim = len(spec.array.axes)
    texts = [f"{made[p]}[{_entries(ndim, {d.axis: _shifted(d, at, write)})}]" for p, at in pieces]
    return lines, combined(spec.reducer, texts)


def _cut(spec: WindowSpec, value: str, axis: int, start: int, reach: Expr, write: Write) -> str:
    stop = write(normal(reach + start))
    entry = f"{start}:{stop}" if start else f":{stop}"
    return f"{value}[{_entries(len(spec.array.axes), {axis: entry})}]"


def _padded(spec: WindowSpec, value: str, dims: Sequence[WindowDim], write: Write) -> str | None:
    """The array among identities in the dimensions ``dims``; None where the windows do not leave it."""
    if all(d.padding == (ZERO, ZERO) and d.spacing == 1 for d in dims):
        return None
    widths: list[tuple[Expr, Expr]] = [(ZERO, ZERO)] * len(spec.array.axes)
    gaps = [0] * len(widths)
    for d in dims:
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
    return number(identity.value, identity.dtype).text


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
        _start(spec),
        WINDOW_FUNCTIONS[spec.reducer.name],
        f"window_dimensions={tuple_text(str(d.size if d else 1) for d in dims)}",
        f"window_strides={tuple_text(str(d.stride if d else 1) for d in dims)}",
        f"padding={tuple_text(tuple_text(map(write, d.padding)) if d else '(0, 0)' for d in dims)}",
    ]
    if any(d.spacing > 1 for d in spec.dims):
        arguments.append(f"base_dilation={tuple_text(str(d.spacing if d else 1) for d in dims)}")
    if any(d.dilation > 1 for d in spec.dims):
        arguments.append(f"window_dilation={tuple_text(str(d.dilation if d else 1) for d in dims)}")
    return f"lax.reduce_window({', '.join(arguments)})"


def _start(spec: WindowSpec) -> str:
    """The identity, as a plain number where it has the right dtype: JAX then knows the derivative, under jit as well."""
    if spec.array.dtype in ("float32", "float64"):
        return _identity(spec)
    return f"{dtype_text(spec.array.dtype)}({_identity(spec)})"


def finished(spec: WindowSpec, result: str, operands: Sequence[str], write: Write) -> str:
    """The text ``result`` of the reduction itself, brought to the output axes."""
    if spec.shape is not None:
        result = reshaped(as_atom(result), spec.shape, write)
    if spec.broadcast is not None:
        result = f"jnp.broadcast_to({result}, {tuple_text(map(write, spec.broadcast))})"
    return result if spec.scale is None else f"{as_factor(operands[1])} * {as_atom(result)}"
