"""The text of reductions over windows, in each of their forms.

Slices of one array are combined in one pass, or one dimension after the other (a window of ``a * b`` is then one of ``a`` and one of
``b``), or by doubling: windows of 1, 2, 4, 8, ... positions, each of them two of the one before, and the whole as two or more of
these side by side, one of which may cover what another one covers where that makes no difference (a maximum). What is
sliced is kept apart from what made it, which XLA would otherwise compute again for each slice. What lies around the array is
put there for one dimension at a time: rows of their natural length are several times as fast as padded ones.

Where the first of several passes runs over a few positions there need not be a padded copy on the CPU: each shifted array is padded,
or cut, by itself, ``sum(lax.pad(x, 0.0, ((1 - i, i - 1, 0), (0, 0, 0))) for i in range(3))``. XLA makes one loop of them, in which a whole
row is inside or outside. What they are shifts of has to exist, or it would be computed for each of them: no barrier
of ``lax`` keeps XLA on the CPU from that, but a call does that may not be inlined (``APART``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from itertools import product

from jaxte.lang.expr import ZERO, Const, Expr, Read
from jaxte.lang.identity import identical
from jaxte.lower.code.identifiers import APART
from jaxte.lower.code.spec import Write, as_atom, as_factor, reshaped, tuple_text, write_extent
from jaxte.lower.forms.window.recognise import WindowDim, WindowSpec
from jaxte.lower.printing.combiner import combined, combiner_source, constant_text
from jaxte.lower.printing.numbers import dtype_text
from jaxte.sets.affine import normal

SLICES = "shifted slices"
SEPARABLE = "separable slices"
DOUBLING = "doubling slices"
PADDED_APART = "separable slices without a copy"
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
_MOST_PADS = 7  # in one loop: XLA takes it apart by which of them are inside


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
        if form == PADDED_APART and dims[0] is spec.dims[0]:
            lines.append(f"{target} = {APART}({value})")
            lines.append(f"{target} = {_padded_apart(spec, target, dims[0], write)}")
            value = target
            continue
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
    apart = [f"{name} = {_behind_barrier(text)}" for name, _, text in before]
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
    if not any(map(_is_wider, dims)):
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


def _behind_barrier(text: str) -> str:
    return text if text.startswith(APART) else f"lax.optimization_barrier({text})"


def is_padded_apart(spec: WindowSpec) -> bool:
    """Whether the first pass may pad each shifted array by itself instead of what it reads, and saves a copy by that.

    The padding of the next pass ends the loop. Without it XLA would fuse the sum into what slices it next, but not what it is
    a sum of, and keep all of the padded arrays.
    """
    if len(spec.dims) < 2 or not _is_wider(spec.dims[1]) or not isinstance(spec.array.body, Read):
        return False
    d = spec.dims[0]
    return not identical(d.padding, (ZERO, ZERO)) and d.size <= _MOST_PADS and d.spacing == 1


def _is_wider(d: WindowDim) -> bool:
    """Whether an array has to be made wider for the windows of ``d``."""
    return not identical(d.padding, (ZERO, ZERO)) or d.spacing > 1


def _padded_apart(spec: WindowSpec, value: str, d: WindowDim, write: Write) -> str:
    """The shifted arrays of a pass over ``d`` combined, each padded where it lacks elements and cut where it has too many."""
    (name,) = _loop_names(value, [d], write)
    before, _ = d.padding
    after = normal(_reach(d) - before - spec.array.axes[d.axis].extent)
    ends = f"({_plus(f'-{name}', before, write)}, {_plus(name, after, write)}, 0)"
    widths = tuple_text(ends if n == d.axis else "(0, 0, 0)" for n in range(len(spec.array.axes)))
    element = f"lax.pad({value}, {dtype_text(spec.array.dtype)}({_identity(spec)}), {widths})"
    if d.stride > 1:
        element += f"[{_entries(len(spec.array.axes), {d.axis: f'::{d.stride}'})}]"
    return _over(spec, f"{element} for {name} in {_range(d)}")


def _plus(text: str, offset: Expr, write: Write) -> str:
    """The sum of ``text``, a name or its negative, and ``offset``."""
    number = int(offset) if isinstance(offset, Const) else None
    if text.startswith("-"):
        return text if number == 0 else f"{write(offset) if number is None else number} - {text[1:]}"
    if number is None:
        return f"{text} + {as_factor(write(offset))}"
    return text if number == 0 else f"{text} {'+' if number > 0 else '-'} {abs(number)}"


def _identity(spec: WindowSpec) -> str:
    identity = spec.reducer.identity[0]
    assert isinstance(identity, Const)
    return constant_text(identity)


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
    return _over(spec, f"{value}[{_entries(ndim, entries)}] {loops}")


def _over(spec: WindowSpec, elements: str) -> str:
    """What a comprehension gives, combined."""
    if spec.reducer.name == "sum":
        return f"sum({elements})"
    return f"functools.reduce({combiner_source(spec.reducer)}, [{elements}])"


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
