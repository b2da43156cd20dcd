"""Python text of sizes, numbers, indices and view steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Const, Expr, Scalar, Var
from jaxte.lang.identity import among, identical
from jaxte.lang.scalar_table import TABLE
from jaxte.lang.scalars import CALL, PRODUCT, SIGN
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.lower.code.vocabulary import (
    ALL,
    Code,
    Index,
    Only,
    Pad,
    Range,
    Repeat,
    Reshape,
    Step,
    Tile,
    Transpose,
    Value,
)

_ONLY = "0 of 1"  # the entry of the one element of a dimension, before it is written


class Sizes:
    """Writes extents, with symbolic sizes under the identifiers that the function gives them."""

    def __init__(self, names: Mapping[Var, str]) -> None:
        self._names = names

    def code(self, size: Expr) -> Code:
        memo: dict[Expr, tuple[str, int]] = {}
        for node in postorder(size):
            match node:
                case Const(value):
                    memo[node] = str(value), CALL if int(value) >= 0 else SIGN  # type: ignore[arg-type]
                case Var():
                    memo[node] = self._name(node), CALL
                case Call(op, args) if op.name in ("maximum", "minimum"):
                    memo[node] = f"{op.name[:3]}({', '.join(memo[a][0] for a in args)})", CALL
                case Call(op, args):
                    memo[node] = TABLE[op.name].code.write(*(memo[a] for a in args))
                case _:
                    raise LoweringError(
                        f"`{text(size)}` is no size: it must be made of integers and te.var sizes"
                    )
        return Code(*memo[size])

    def text(self, size: Expr) -> str:
        return self.code(size).text

    def shape(self, extents: Sequence[Expr]) -> str:
        return tuple_text([self.text(e) for e in extents])

    def _name(self, size: Var) -> str:
        if size not in self._names:
            raise LoweringError(
                f"the size {size.name} is the extent of no input, so that no array tells it; "
                f"give an input an axis of extent {size.name}"
            )
        return self._names[size]


def tuple_text(entries: Sequence[str]) -> str:
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"


_GREATEST = {"uint32": 2**31 - 1, "uint64": 2**63 - 1}  # that JAX takes as numbers of Python


def number(value: Scalar, dtype: str = "") -> Code:
    """A Python number, or one of ``dtype`` where JAX takes no such number of Python."""
    if type(value) is int and value > _GREATEST.get(dtype, value):
        return typed_number(value, dtype)
    if isinstance(value, bool):
        return Code(str(value))
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return Code("jnp.nan")
        return Code("jnp.inf") if value > 0 else Code("-jnp.inf", SIGN)
    if isinstance(value, complex):
        parts = [number(value.real).text, number(value.imag).text]
        return Code(f"complex({', '.join(parts)})")
    return Code(repr(value), SIGN if value < 0 or math.copysign(1, value) < 0 else CALL)


def typed_number(value: Scalar, dtype: str) -> Code:
    """A number of a JAX dtype."""
    return Code(f"{dtype_text(dtype)}({number(value).text})")


def dtype_text(dtype: str) -> str:
    return "jnp.bool_" if dtype == "bool" else f"jnp.{dtype}"


def name(identifier: str) -> Code:
    return Code(identifier, CALL, identifier)


def indexed(base: str, entries: Sequence[str]) -> Code:
    """``base[entries]``; whole slices at the end are left out."""
    shown = ["0" if e == _ONLY else e for e in entries]
    while shown and shown[-1] == ":":
        shown.pop()
    written = f"{base}[{', '.join(shown)}]" if shown else base
    units = tuple(n for n, e in enumerate(entries) if e == _ONLY)
    if not units or not all(e == _ONLY or ":" in e for e in entries):
        return Code(written, CALL, base, tuple(entries))
    whole = indexed(base, [":" if e == _ONLY else e for e in entries])
    return Code(written, CALL, base, tuple(entries), kept=(whole.text, units))


def apply_steps(code: Code, steps: Sequence[Step], sizes: Sizes) -> Code:
    """The code of ``steps`` applied to the array ``code``."""
    for position, step in enumerate(steps):
        if (
            isinstance(step, Reshape)
            and position + 1 < len(steps)
            and isinstance(steps[position + 1], Reshape)
        ):
            continue
        code = _apply(code, step, sizes)
    return code


def parenthesised(code: Code) -> str:
    return code.text if code.strength == CALL else f"({code.text})"


def _apply(code: Code, step: Step, sizes: Sizes) -> Code:
    match step:
        case Index(entries):
            if all(identical(e, ALL) for e in entries):
                return code
            return indexed(parenthesised(code), [_entry(e, sizes) for e in entries])
        case Pad(widths, mode):
            return _pad(code, widths, mode, sizes)
        case Reshape(shape):
            base = code.unshaped or parenthesised(code)
            written = ", ".join(sizes.text(e) for e in shape) or "()"
            return Code(f"{base}.reshape({written})", unshaped=base)
        case Transpose(order):
            if order == (1, 0):
                return Code(f"{parenthesised(code)}.T")
            return Code(f"jnp.transpose({code.text}, {order})")
        case Repeat(axis, times):
            if times is ONE:
                return code
            return Code(f"jnp.repeat({code.text}, {sizes.text(times)}, axis={axis})")
        case Tile(axis, times, ndim):
            counts = [sizes.text(times) if n == axis else "1" for n in range(ndim)]
            return Code(f"jnp.tile({code.text}, {counts[0] if ndim == 1 else tuple_text(counts)})")
    raise AssertionError(step)


def _entry(entry: Range | Expr | Only, sizes: Sizes) -> str:
    if isinstance(entry, Only):
        return _ONLY
    if not isinstance(entry, Range):
        return sizes.text(entry)
    start = "" if entry.start is None else sizes.text(entry.start)
    stop = "" if entry.stop is None else sizes.text(entry.stop)
    step = "" if entry.step == 1 else f":{entry.step}"
    return f"{start}:{stop}{step}"


def _pad(code: Code, widths: Sequence[tuple[Expr, Expr]], mode: str, sizes: Sizes) -> Code:
    if all(w is ZERO for pair in widths for w in pair):
        return code
    pairs = [f"({sizes.text(a)}, {sizes.text(b)})" for a, b in widths]
    shown = pairs[0] if len(pairs) == 1 else tuple_text(pairs)
    extra = "" if mode == "zeros" else f', mode="{mode}"'
    return Code(f"jnp.pad({code.text}, {shown}{extra})")


def broadcast(value: Value, dims: Sequence[Axis]) -> Code:
    """The code of ``value`` with new axes of length 1 where it lacks one of ``dims``."""
    if not value.dims or identical(tuple(value.dims), tuple(dims)):
        return value.code
    own = [n for n, d in enumerate(dims) if among(d, value.dims)]
    text, reduced = value.code.kept
    if text and reduced == tuple(n for n in range(len(dims)) if n not in own):
        return Code(text, value.code.strength)
    entries = list(value.code.entries) or [":"] * len(value.dims)
    base = value.code.base or parenthesised(value.code)
    kept = [e for e in entries if ":" in e or e == "None"]
    if len(kept) != len(value.dims) or any(e == "None" for e in entries):
        base, entries = parenthesised(value.code), [":"] * len(value.dims)
    return _with_new_axes(base, entries, own, len(dims))


def _with_new_axes(base: str, entries: Sequence[str], own: Sequence[int], ndim: int) -> Code:
    """Inserts None before the entries of the dimensions at the positions ``own`` of the result."""
    written: list[str] = []
    position = 0
    taken = iter(own)
    upcoming = next(taken, ndim)
    for entry in entries:
        if ":" in entry:
            while position < upcoming:
                written.append("None")
                position += 1
            position += 1
            upcoming = next(taken, ndim)
        written.append(entry)
    written += ["None"] * (ndim - position)
    written = _keeping(written)
    if all(entry == ":" for entry in written):
        return Code(base)
    return Code(f"{base}[{', '.join(written)}]", CALL, "", ())


def _keeping(entries: Sequence[str]) -> list[str]:
    """``entries`` without taking a dimension of extent 1 out beside a place where one is put in."""
    written: list[str] = []
    for isolated, run in groupby(entries, lambda e: e in (_ONLY, "None")):
        own = list(run)
        if isolated:
            pairs = min(own.count(_ONLY), own.count("None"))
            rest = ["0"] * (own.count(_ONLY) - pairs) + ["None"] * (own.count("None") - pairs)
            own = [":"] * pairs + rest
        written += own
    return written


def product_text(parts: Sequence[Code]) -> Code:
    """``a * b * c``."""
    if len(parts) == 1:
        return parts[0]
    written = [p.text if p.strength >= PRODUCT + (n > 0) else f"({p.text})" for n, p in enumerate(parts)]
    return Code(" * ".join(written), PRODUCT)
