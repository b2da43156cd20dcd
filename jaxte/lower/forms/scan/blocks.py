"""The text of cumulative reductions in blocks: every block of four positions goes on from what those before it come to.

What the blocks come to is a quarter as many values, reduced in the same way, so a function calls itself:

    def y_prefix(x):
        n = x.shape[1]
        if n <= 1:
            return x
        x = jnp.pad(x, ((0, 0), (0, -n % 4)))
        parts = [x[:, k::4] for k in range(4)]
        before = y_prefix(parts[0] + parts[1] + parts[2] + parts[3])
        total = jnp.pad(before[:, :-1], ((0, 0), (1, 0)))
        totals = []
        for part in parts:
            total = total + part
            totals.append(total)
        return jnp.stack(totals, axis=2).reshape(x.shape)[:, :n]

All elements are read twice and written once, by loops that XLA fuses, with temporaries of a third of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lower.code.spec import tuple_text
from jaxte.lower.forms.scan.recognise import Scan, ScanSpec
from jaxte.lower.forms.scan.text import carried_values, step_text
from jaxte.lower.printing.combiner import combined, combiner_source, identity_text

BLOCK = 4


def has_blocks(spec: ScanSpec) -> bool:
    """Whether the steps hand on one value, the one that is asked for."""
    return all(len(carried_values(spec, scan)) == 1 for scan in spec.scans)


def block_lines(spec: ScanSpec, scan: Scan, name: str) -> tuple[str, ...]:
    """The body of the function ``name`` of ``x``, an array or one for each value of the reducer."""
    ndim, axis, arity = len(spec.arrays[0].axes), scan.axis, spec.reducer.arity
    lead = ":, " * axis
    own = "x" if arity == 1 else f"x[{spec.position}]"
    first = "x" if arity == 1 else "x[0]"
    if scan.reverse:
        other, rest, widths, parts, totals = "after", "1:", "(0, 1)", "reversed(parts)", "totals[::-1]"
    else:
        other, rest, widths, parts, totals = "before", ":-1", "(1, 0)", "parts", "totals"
    shifted = _padded(f"{other}[{lead}{rest}]", _widths(ndim, axis, widths), spec, spec.position)
    return (
        f"n = {first}.shape[{axis}]",
        "if n <= 1:",
        f"    return {own}",
        *_parts(spec, ndim, axis),
        f"{other} = {name}({_whole(spec)})",
        f"total = {shifted}",
        "totals = []",
        f"for part in {parts}:",
        f"    {step_text(spec, scan, 'part')}",
        "    totals.append(total)",
        f"return jnp.stack({totals}, axis={axis + 1}).reshape({first}.shape)[{lead}:n]",
    )


def _parts(spec: ScanSpec, ndim: int, axis: int) -> list[str]:
    """The positions of all blocks, first ones, second ones and so on, identities behind the last."""
    ends = _widths(ndim, axis, f"(0, -n % {BLOCK})")
    entry = f"[{':, ' * axis}k::{BLOCK}]"
    if spec.reducer.arity == 1:
        return [f"x = {_padded('x', ends, spec, 0)}", f"parts = [x{entry} for k in range({BLOCK})]"]
    values = range(spec.reducer.arity)
    return [
        f"ends = {ends}",
        f"x = {tuple_text([_padded(f'x[{n}]', 'ends', spec, n) for n in values])}",
        f"parts = [{tuple_text([f'x[{n}]{entry}' for n in values])} for k in range({BLOCK})]",
    ]


def _whole(spec: ScanSpec) -> str:
    """What each block comes to."""
    if spec.reducer.arity == 1:
        return combined(spec.reducer, [f"parts[{k}]" for k in range(BLOCK)])
    return f"functools.reduce({combiner_source(spec.reducer)}, parts)"


def _widths(ndim: int, axis: int, own: str) -> str:
    return tuple_text([own if n == axis else "(0, 0)" for n in range(ndim)])


def _padded(value: str, widths: str, spec: ScanSpec, position: int) -> str:
    identity = identity_text(spec.reducer, position)
    fill = "" if identity in ("0", "0.0", "False") else f", constant_values={identity}"
    return f"jnp.pad({value}, {widths}{fill})"


def in_blocks(values: Sequence[str], name: str) -> str:
    """The call of the function of :func:`block_lines`."""
    return f"{name}({values[0] if len(values) == 1 else tuple_text(values)})"
