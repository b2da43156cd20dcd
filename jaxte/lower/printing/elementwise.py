"""The text of names, numbers, constant arrays, and of what is done to each element by itself."""

from __future__ import annotations

from jaxte.lang.dtypes import is_integer
from jaxte.lang.operators import TURNED
from jaxte.lang.scalars.rows import CALL
from jaxte.lang.scalars.table import TABLE
from jaxte.lower.arrays import elementwise
from jaxte.lower.arrays.kinds import Scalar
from jaxte.lower.printing.writer import Rules, Writer, Written, call, dtype_text, number_text
from jaxte.sets.index_forms import is_multiple

_KEPT = {
    "barrier": "lax.optimization_barrier",
    "apart": "_apart",
    "first": "_first",
    "constant": "lax.stop_gradient",
}


def _name(node: elementwise.Name, to: Writer) -> Written:
    return node.identifier, CALL


def _number(node: elementwise.Number, to: Writer) -> Written:
    return number_text(node.value)


def _size(node: elementwise.Size, to: Writer) -> Written:
    return to.size(node.extent)


def _typed(node: elementwise.Typed, to: Writer) -> Written:
    return f"{dtype_text(node.own_dtype)}({to.text(node.number)})", CALL


def _full(node: elementwise.Full, to: Writer) -> Written:
    shape, dtype = to.shape(node.extents), dtype_text(node.own_dtype)
    value = node.number.value if isinstance(node.number, elementwise.Number) else None
    if value in (0, 1):
        return f"jnp.{'ones' if value else 'zeros'}({shape}, {dtype})", CALL
    return f"jnp.full({shape}, {to.text(node.number)}, {dtype})", CALL


def _literal(node: elementwise.Literal, to: Writer) -> Written:
    return f"jnp.array({_rows(node.numbers)}, {dtype_text(node.own_dtype)})", CALL


def _rows(numbers: elementwise.Numbers) -> str:
    if isinstance(numbers, tuple):
        return f"[{', '.join(map(_rows, numbers))}]"
    return number_text(numbers)[0]


def _arange(node: elementwise.Arange, to: Writer) -> Written:
    dtype = node.own_dtype and dtype_text(node.own_dtype)
    (count,) = node.shape
    if node.step > 1 and is_multiple(node.stop, node.step) and is_integer(node.kind[0]):
        every = TABLE["multiply"].code.write(
            call("jnp.arange", to.text(count), dtype=dtype), (str(node.step), CALL)
        )
        return every if not node.start else TABLE["add"].code.write(every, number_text(node.start))
    bounds = [to.text(node.stop)]
    if node.start or node.step != 1:
        bounds.insert(0, str(node.start))
    if node.step != 1:
        bounds.append(str(node.step))
    return call("jnp.arange", *bounds, dtype=dtype)


def _apply(node: elementwise.Apply, to: Writer) -> Written:
    op, args = node.op, node.args
    # on the left of ==, a symbol of jax.export is equal to no traced array, and says nothing
    if op in TURNED and isinstance(args[0], elementwise.Size) and not isinstance(args[-1], Scalar):
        op, args = TURNED[op], args[::-1]
    return TABLE[op.name].code.write(*map(to.write, args))


def _cast(node: elementwise.Cast, to: Writer) -> Written:
    return f"{to.atom(node.array)}.astype({dtype_text(node.own_dtype)})", CALL


def _kept(node: elementwise.Kept, to: Writer) -> Written:
    return call(_KEPT[node.how], to.text(node.array))


RULES: Rules = {
    elementwise.Name: _name,
    elementwise.Number: _number,
    elementwise.Size: _size,
    elementwise.Typed: _typed,
    elementwise.Full: _full,
    elementwise.Literal: _literal,
    elementwise.Arange: _arange,
    elementwise.Apply: _apply,
    elementwise.Cast: _cast,
    elementwise.Kept: _kept,
}
