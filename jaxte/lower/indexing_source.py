"""The text of gathers and scatter-adds."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.dtypes import is_inexact
from jaxte.lower.indexing import GatherSpec, Position, ScatterSpec
from jaxte.lower.specs import Write, as_atom, as_factor, tuple_text, write_extent
from jaxte.lower.writing import dtype_text

# Negative positions are outside, and not counted from the end.
_FROM_THE_FRONT = "wrap_negative_indices=False"


def gather_source(spec: GatherSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The Python expression of ``spec`` on the texts of ``spec.operands``."""
    fill = "jnp.nan" if is_inexact(spec.base.dtype) else "False" if spec.base.dtype == "bool" else "0"
    entries = _entries(spec.positions, spec.block, operands, write)
    return f'{as_atom(operands[0])}.at[{entries}].get(mode="fill", fill_value={fill}, {_FROM_THE_FRONT})'


def scatter_source(spec: ScatterSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The Python expression of ``spec`` on the texts of ``spec.operands``."""
    zeros = f"jnp.zeros({tuple_text(map(write, spec.shape))}, {dtype_text(spec.dtype)})"
    entries = _entries(spec.positions, spec.block, operands, write)
    flags = "".join(f", {flag}=True" for flag in spec.flags)
    result = f'{zeros}.at[{entries}].add({operands[0]}, mode="drop", {_FROM_THE_FRONT}{flags})'
    remaining = list(operands[1 + len(spec.indices) :])
    if spec.scale is not None:
        result = f"{as_factor(remaining.pop(0))} * {result}"
    return result if spec.guard is None else f"jnp.where({remaining.pop(0)}, {result}, 0)"


def _entries(positions: Sequence[Position], block: int, operands: Sequence[str], write: Write) -> str:
    """What stands between the brackets; whole dimensions at the end are left out."""
    entries = [_entry(position, block, operands, write) for position in positions]
    while len(entries) > 1 and entries[-1] == ":":
        entries.pop()
    return ", ".join(entries)


def _entry(position: Position, block: int, operands: Sequence[str], write: Write) -> str:
    if position.whole:
        return ":"
    if position.count is not None:
        written = f"jnp.arange({write(position.count)})"
    else:
        assert position.operand is not None
        written = operands[position.operand]
    first = min(position.dims, default=block)
    missing = [d for d in range(first, block) if d not in position.dims]
    if not missing:
        return written
    shown = [":" if d in position.dims else "None" for d in range(first, block)]
    return f"{as_atom(written)}[{', '.join(shown)}]"
