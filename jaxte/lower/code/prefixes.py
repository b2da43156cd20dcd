"""The functions of cumulative reductions in blocks, as lines of Python.

def y_prefix(x):
    n = x.shape[1]
    if n <= 1:
        return x
    x = jnp.pad(x, ((0, 0), (0, -n % 4)))
    parts = [x[:, k::4] for k in range(4)]
    for k in range(1, 4):
        parts[k] = parts[k - 1] + parts[k]
    before = y_prefix(parts[3])
    total = jnp.pad(before[:, :-1], ((0, 0), (1, 0)))
    totals = [total + part for part in parts]
    return jnp.stack(totals, axis=2).reshape(x.shape)[:, :n]

What comes before a block is added to the sums within it, so that each level rounds large numbers once. Of other reducers, one part after the other is
combined with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Reducer
from jaxte.lower.arrays.elementwise import Name, Number
from jaxte.lower.arrays.loops import Item
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import OPS, combined
from jaxte.lower.code.vocabulary import PrefixFunction
from jaxte.lower.printing.printer import Printer
from jaxte.lower.printing.products import combiner_source
from jaxte.lower.printing.writer import tuple_text

BLOCK = 4  # elements whose running sum is written out, before one runs over the blocks


def prefix_lines(function: PrefixFunction, printer: Printer) -> list[str]:
    """The body of ``function``, of ``x``, an array or one for each value of the reducer."""
    reducer, ndim, axis, reverse = function.reducer, function.ndim, function.axis, function.reverse
    lead = ":, " * axis
    own = "x" if reducer.arity == 1 else f"x[{function.position}]"
    first = "x" if reducer.arity == 1 else "x[0]"
    fills = [_fill(printer, identity) for identity in function.identities]
    if reverse:
        other, rest, widths, parts, totals = "after", "1:", "(0, 1)", "reversed(parts)", "totals[::-1]"
    else:
        other, rest, widths, parts, totals = "before", ":-1", "(1, 0)", "parts", "totals"
    shifted = f"jnp.pad({other}[{lead}{rest}], {_widths(ndim, axis, widths)}{fills[function.position]})"
    step_text, within, whole = printer.text(function.step), list[str](), _whole(printer, reducer)
    if reducer.is_sum:
        within, whole = _sums_within(reverse), f"parts[{0 if reverse else BLOCK - 1}]"
        combining, totals = [f"totals = [{step_text} for part in parts]"], "totals"
    else:
        combining = [
            "totals = []",
            f"for part in {parts}:",
            f"    total = {step_text}",
            "    totals.append(total)",
        ]
    return [
        f"n = {first}.shape[{axis}]",
        "if n <= 1:",
        f"    return {own}",
        *_parts(ndim, axis, fills),
        *within,
        f"{other} = {function.name}({whole})",
        f"total = {shifted}",
        *combining,
        f"return jnp.stack({totals}, axis={axis + 1}).reshape({first}.shape)[{lead}:n]",
    ]


def _parts(ndim: int, axis: int, fills: Sequence[str]) -> list[str]:
    """The positions of all blocks, first ones, second ones and so on, identities behind the last."""
    ends = _widths(ndim, axis, f"(0, -n % {BLOCK})")
    entry = f"[{':, ' * axis}k::{BLOCK}]"
    if len(fills) == 1:
        return [f"x = jnp.pad(x, {ends}{fills[0]})", f"parts = [x{entry} for k in range({BLOCK})]"]
    return [
        f"ends = {ends}",
        f"x = {tuple_text(f'jnp.pad(x[{n}], ends{fill})' for n, fill in enumerate(fills))}",
        f"parts = [{tuple_text(f'x[{n}]{entry}' for n in range(len(fills)))} for k in range({BLOCK})]",
    ]


def _whole(printer: Printer, reducer: Reducer) -> str:
    """What each block comes to."""
    if reducer.name not in OPS:
        listed = "parts" if reducer.arity > 1 else f"[{', '.join(f'parts[{k}]' for k in range(BLOCK))}]"
        return f"functools.reduce({combiner_source(reducer)}, {listed})"
    parts = [Item(Name("parts"), k, (), (reducer.results[0].dtype, False)) for k in range(BLOCK)]
    return printer.text(combined(reducer, parts))


def _sums_within(reverse: bool) -> list[str]:
    """The parts of each block up to each of its positions, or from there on."""
    if reverse:
        return [f"for k in range({BLOCK - 2}, -1, -1):", "    parts[k] = parts[k] + parts[k + 1]"]
    return [f"for k in range(1, {BLOCK}):", "    parts[k] = parts[k - 1] + parts[k]"]


def _widths(ndim: int, axis: int, own: str) -> str:
    return tuple_text([own if n == axis else "(0, 0)" for n in range(ndim)])


def _fill(printer: Printer, identity: Node) -> str:
    zero = isinstance(identity, Number) and not identity.value
    return "" if zero else f", constant_values={printer.text(identity)}"
