"""The text of gathers and scatter-adds."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import Const
from jaxte.lower.code.spec import Write, as_atom, as_factor, tuple_text, write_extent
from jaxte.lower.forms.data.recognise import GatherSpec, Position, ScatterSpec
from jaxte.lower.printing.combiner import constant_text
from jaxte.lower.printing.numbers import dtype_text

# Negative positions are outside, and not counted from the end.
_FROM_THE_FRONT = "wrap_negative_indices=False"


def gather_source(spec: GatherSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The Python expression of ``spec`` on the texts of ``spec.operands``."""
    fill = "jnp.nan" if is_inexact(spec.base.dtype) else "False" if spec.base.dtype == "bool" else "0"
    entries = _entries(spec.positions, spec.block, operands, write)
    return f'{as_atom(operands[0])}.at[{entries}].get(mode="fill", fill_value={fill}, {_FROM_THE_FRONT})'


def scatter_source(spec: ScatterSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The Python expression of ``spec`` on the texts of ``spec.operands``."""
    return _finished(spec, accumulated(spec, operands, spec.flags, write), operands)


def sorted_scatter_source(spec: ScatterSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The same with the rows of the values in the order of their positions."""
    values, index, *others = operands
    order = f"jnp.argsort({index})"
    moved = f"jnp.take({values}, {order}, axis={spec.target})"
    flags = dict.fromkeys([*spec.flags, "indices_are_sorted"])
    result = accumulated(spec, [moved, f"jnp.sort({index})", *others], tuple(flags), write)
    return _finished(spec, result, operands)


def one_hot_source(spec: ScatterSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The product of the values with the matrix that has a one where a position is a row of the output."""
    letters = "abcdefghijklmnopqrstuvwxyz"[: len(spec.shape)]
    row = letters[spec.target]
    held = letters.replace(row, "z")
    hot = f"jax.nn.one_hot({operands[1]}, {write(spec.shape[spec.target])}, dtype={dtype_text(spec.dtype)})"
    product = f'jnp.einsum("z{row},{held}->{letters}", {hot}, {operands[0]}, precision="highest")'
    return _finished(spec, product, operands)


def accumulated(
    spec: ScatterSpec, operands: Sequence[str], flags: Sequence[str], write: Write, onto: str = ""
) -> str:
    """The values at their positions in the array called ``onto``, by default one of identities.

    Where no position occurs twice identities need not be read: values take their places.
    """
    shape, dtype = tuple_text(map(write, spec.shape)), dtype_text(spec.dtype)
    identities = (
        f"jnp.zeros({shape}, {dtype})"
        if spec.method == "add"
        else f"jnp.full({shape}, {_identity(spec)}, {dtype})"
    )
    start = onto or identities
    entries = _entries(spec.positions, spec.block, operands, write)
    known = "".join(f", {flag}=True" for flag in flags)
    method = "set" if "unique_indices" in flags and not onto else spec.method
    return f'{start}.at[{entries}].{method}({operands[0]}, mode="drop", {_FROM_THE_FRONT}{known})'


def _finished(spec: ScatterSpec, result: str, operands: Sequence[str]) -> str:
    remaining = list(operands[1 + len(spec.indices) :])
    result = in_order(spec, result)
    if spec.scale is not None:
        result = f"{as_factor(remaining.pop(0))} * {result}"
    return result if spec.guard is None else f"jnp.where({remaining.pop(0)}, {result}, {_identity(spec)})"


def in_order(spec: ScatterSpec, result: str) -> str:
    """``result``, whose dimensions are in the order in which values are accumulated, in the order of the output's."""
    return result if spec.order is None else f"jnp.transpose({result}, {tuple_text(map(str, spec.order))})"


def _identity(spec: ScatterSpec) -> str:
    assert isinstance(spec.identity, Const)
    return constant_text(spec.identity)


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
