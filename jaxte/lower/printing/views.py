"""The text of views: slices, zeros around arrays, other shapes, copies."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Const, Expr
from jaxte.lang.scalars.rows import CALL
from jaxte.lower.arrays import views
from jaxte.lower.arrays.elementwise import Number, Typed
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import (
    ALL,
    Entry,
    Index,
    New,
    Only,
    Pad,
    Range,
    Repeat,
    Reshape,
    Roll,
    Tile,
    Transpose,
)
from jaxte.lower.printing.writer import Rules, Writer, Written, call, tuple_text
from jaxte.sets.affine import linear
from jaxte.sets.intervals import constant, known, may_be_negative, nonnegative

_BACKWARDS = Range(step=-1)
ROLLED, SHIFTED = "_rolled", "_shifted"  # functions of emitted modules


def _view(node: views.View, to: Writer) -> Written:
    own, step = node.array, node.step
    match step:
        case Index(entries):
            return _index(to, own, entries)
        case Pad(widths, mode):
            shown = "" if mode == "zeros" else f'"{mode}"'
            return call("jnp.pad", to.text(own), _widths(to, widths), mode=shown)
        case Reshape(shape):
            return f"{to.atom(own)}.reshape({', '.join(map(to.text, shape)) or '()'})", CALL
        case Transpose(order):
            moved = "T" if order == (1, 0) else f"transpose({', '.join(map(str, order))})"
            return f"{to.atom(own)}.{moved}", CALL
        case Roll(starts, by_choice=True):
            shown = to.text(own)
            for n, start in enumerate(starts):
                shown = f"{ROLLED}({shown}, {-start}, axis={n})" if start else shown
            return shown, CALL
        case Roll(starts):
            turns = [(str(-start), str(n)) for n, start in enumerate(starts) if start]
            shifts, axes = ([pair[k] for pair in turns] for k in (0, 1))
            if len(turns) == 1:
                return call("jnp.roll", to.text(own), shifts[0], axis=axes[0])
            return call("jnp.roll", to.text(own), tuple_text(shifts), axis=tuple_text(axes))
        case Repeat(axis, times):
            return call("jnp.repeat", to.text(own), to.text(times), axis=str(axis))
        case Tile(axis, times, ndim):
            counts = [to.text(times) if n == axis else "1" for n in range(ndim)]
            return call("jnp.tile", to.text(own), counts[0] if ndim == 1 else tuple_text(counts))
    raise AssertionError(step)


def _index(to: Writer, array: Node, entries: Sequence[Entry]) -> Written:
    """Slices and positions; what may be turned around though it is empty is flipped: JAX slices no symbolic extent backwards that may be 0."""
    within = iter(array.shape)
    extents = [None if isinstance(entry, New) else next(within) for entry in entries]
    turned = [
        isinstance(entry, Range) and entry == _BACKWARDS and extent is not None and _may_be_empty(extent)
        for entry, extent in zip(entries, extents, strict=True)
    ]
    if not any(turned):
        return f"{to.atom(array)}[{_entries(to, entries)}]", CALL
    rest = [ALL if flipped else entry for flipped, entry in zip(turned, entries, strict=True)]
    left = [flipped for flipped, entry in zip(turned, rest, strict=True) if isinstance(entry, (Range, New))]
    axes = tuple(n for n, flipped in enumerate(left) if flipped)
    inner = f"{to.atom(array)}[{_entries(to, rest)}]" if any(e is not ALL for e in rest) else to.text(array)
    return call("jnp.flip", inner, axis=str(axes[0] if len(axes) == 1 else axes))


def _may_be_empty(extent: Expr) -> bool:
    return not isinstance(extent, Const) and not nonnegative(linear(extent) - constant(1))


def _entries(to: Writer, entries: Sequence[Entry]) -> str:
    """What stands between brackets; whole dimensions at the end are left out where no new one is among them."""
    shown = list(entries)
    if not any(isinstance(e, New) for e in shown):
        while len(shown) > 1 and shown[-1] is ALL:
            shown.pop()
    return ", ".join(_entry(to, entry) for entry in shown)


def _entry(to: Writer, entry: Entry) -> str:
    match entry:
        case New():
            return "None"
        case Only():
            return "0"
        case Range(start, stop, step):
            first, last = ("" if end is None else _end(to, end) for end in (start, stop))
            return f"{first}:{last}{'' if step == 1 else f':{step}'}"
    assert isinstance(entry, Expr)
    return to.text(entry)


def _end(to: Writer, end: Expr) -> str:
    """An end of a slice; sizes that leave nothing would count it from the end of the array."""
    return f"max({to.text(end)}, 0)" if may_be_negative(end) else to.text(end)


def _widths(to: Writer, widths: Sequence[tuple[Expr, Expr]]) -> str:
    pairs = [f"({to.text(a)}, {to.text(b)})" for a, b in widths]
    return pairs[0] if len(pairs) == 1 else tuple_text(pairs)


def _broadcast(node: views.Broadcast, to: Writer) -> Written:
    return call("jnp.broadcast_to", to.text(node.array), to.shape(node.extents))


def _spread(node: views.Spread, to: Writer) -> Written:
    if (places := _places(node)) is not None:
        return call(SHIFTED, to.text(node.array), *map(str, places))
    widths = [f"({to.text(a)}, {to.text(b)}, {n})" for a, b, n in node.widths]
    return call("lax.pad", to.text(node.array), to.text(node.fill), tuple_text(widths))


def _places(node: views.Spread) -> list[int] | None:
    """How far each dimension is moved, where zeros come in at one end for what is cut off at the other."""
    numbers = [(known(a), known(b), n) for a, b, n in node.widths]
    match node.fill:
        case Typed(Number(0)) if all(b is not None and a == -b and not n for a, b, n in numbers):
            return [a or 0 for a, _, _ in numbers]
    return None


def _padded(node: views.Padded, to: Writer) -> Written:
    widths = _widths(to, node.widths)
    return call("jnp.pad", to.text(node.array), widths, constant_values=to.text(node.fill))


def _flip(node: views.Flip, to: Writer) -> Written:
    return call("jnp.flip", to.text(node.array), axis=str(node.axes))


RULES: Rules = {
    views.View: _view,
    views.Broadcast: _broadcast,
    views.Spread: _spread,
    views.Padded: _padded,
    views.Flip: _flip,
}
