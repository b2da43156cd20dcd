"""A jaxpr as a flat list of operations on arrays: calls are entered, equal operations are one, and what nothing reads is left out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr

from jaxte.bridge.jaxprs import CALLS, walked
from jaxte.bridge.price.operations import APART, JOINS, SAME, UPDATE, Array, Operation, joined_along

_JAXTE = "jaxte"  # the primitive that holds a program of ours
_PLAIN = (int, float, str, tuple, type(None), np.dtype)
_NUMBERS = frozenset([int])
# powers that XLA multiplies out; JAX's slope of each has its exponent less 1
_PRODUCTS = frozenset([1.0, 2.0, 3.0])
_HOLD_BODIES = frozenset(["scan", "while", "cond"])


def operations(closed: Any, platform: str, by_rows: bool = False) -> list[Operation]:
    """The operations of a jaxpr that are needed for its results, each after those that it reads.

    What is added to a row of an array by way of zeros everywhere else is written into the array where it counts ``by_rows``.
    """
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    given = [_array(v.aval) for v in jaxpr.invars]
    results = _Entered(platform, by_rows).run(closed, given)
    for result in results:
        result.is_returned()
    found = _after_inputs(results)
    for rank, own in enumerate(found):
        own.stands_at(rank)
    return found


def _array(
    aval: Any, maker: Operation | None = None, is_number: bool = False, number: float | None = None
) -> Array:
    shape = getattr(aval, "shape", ())
    if not _NUMBERS.issuperset(map(type, shape)):
        shape = tuple(e if isinstance(e, int) else 1 for e in shape)
    dtype = getattr(aval, "dtype", None)
    return Array(
        shape,
        getattr(dtype, "itemsize", 4),
        maker,
        is_number=is_number,
        number=number,
        is_complex=getattr(dtype, "kind", "") == "c",
    )


class _Entered:
    """Runs a jaxpr, and those that it calls, on descriptions of arrays."""

    def __init__(self, platform: str, by_rows: bool) -> None:
        self._platform = platform
        self._by_rows = by_rows
        self._equal: dict[object, list[Array]] = {}
        self._numbers: dict[object, Array] = {}

    def run(self, body: Any, given: Sequence[Array]) -> list[Array]:
        jaxpr, values = (body.jaxpr, body.consts) if isinstance(body, ClosedJaxpr) else (body, ())
        constants = [_array(v.aval) for v in jaxpr.constvars]
        for n, (v, value) in enumerate(zip(jaxpr.constvars, values, strict=False)):
            if getattr(v.aval, "shape", None) == () and not isinstance(value, Tracer):
                constants[n] = self._constant(value, v.aval)
        return walked(jaxpr, [*constants, *given], self._made, lambda own: self._constant(own.val, own.aval))

    def _constant(self, value: Any, aval: Any) -> Array:
        """A number that is known when XLA compiles, whether it is written in the jaxpr or comes from outside."""
        key = (str(value), str(aval))
        if key not in self._numbers:
            real = np.ndim(value) == 0 and getattr(aval.dtype, "kind", "") in tuple("iuf")
            self._numbers[key] = _array(aval, is_number=True, number=float(value) if real else None)
        return self._numbers[key]

    def _made(self, eqn: Any, inputs: list[Array]) -> list[Array]:
        name = eqn.primitive.name
        if name in SAME:
            return inputs
        if name == _JAXTE:
            return self.run(_emitted(eqn, self._platform).jaxpr, inputs)
        if name in CALLS:
            body = eqn.params[CALLS[name]]
            if not body.jaxpr.eqns if isinstance(body, ClosedJaxpr) else not body.eqns:
                return self._apart(eqn, inputs)
            return self.run(body, inputs)
        if name in ("split", "unstack"):
            return [
                a
                for own, v in zip(_cuts(eqn, inputs[0]), eqn.outvars, strict=True)
                for a in self._computed("slice", inputs, own, [v])
            ]
        return self._computed(name, inputs, eqn.params, eqn.outvars)

    def _computed(
        self, name: str, inputs: list[Array], params: dict[str, Any], made: Sequence[Any]
    ) -> list[Array]:
        """What an operation makes, or an equal one has made."""
        if name == "slice":
            name, inputs, params = _of_operand(inputs, params)
        if name == "pow" and inputs[1].number in _PRODUCTS:
            name, inputs, params = "integer_pow", inputs[:1], {"y": inputs[1].number}
        if name == "add_any" and self._by_rows:
            name, inputs = _row_written(inputs, made)
        key = None if name in _HOLD_BODIES else (name, tuple(map(id, inputs)), _told(params))
        found = self._equal.get(key) if key is not None else None
        if found is None:
            found = _operation(name, inputs, params, made)
            self._equal[key or object()] = found
        return found

    def _apart(self, eqn: Any, inputs: list[Array]) -> list[Array]:
        """A call that does nothing: what is given, or that as an array of its own where the call is not to be entered."""
        metadata = getattr(eqn.ctx, "xla_metadata", None) or {}
        if metadata.get("inlineable") == "false":
            return _operation(APART, inputs, {}, eqn.outvars)
        body = eqn.params[CALLS[eqn.primitive.name]]
        return self.run(body, inputs)


def _row_written(inputs: list[Array], made: Sequence[Any]) -> tuple[str, list[Array]]:
    """A sum with a row among zeros, as the row that is written into the other array, in place."""
    for array, other in (inputs, inputs[::-1]):
        row = other.maker
        if row is not None and row.name == UPDATE and _are_zeros(row.inputs[0]):
            return UPDATE, [*_operation(APART, [array], {}, made), *row.inputs[1:]]
    return "add_any", inputs


def _are_zeros(array: Array) -> bool:
    maker = array.maker
    return maker is not None and maker.name == "broadcast_in_dim" and maker.inputs[0].number == 0


def _cuts(eqn: Any, array: Array) -> list[dict[str, Any]]:
    """The slices that ``split`` and ``unstack`` cut an array into."""
    axis, extent = eqn.params["axis"], array.shape[eqn.params["axis"]]
    sizes = [int(own) for own in eqn.params.get("sizes", (1,) * extent)]
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    found = []
    for size, end in zip(sizes, ends, strict=True):
        starts, limits = [0] * len(array.shape), [*array.shape]
        starts[axis], limits[axis] = end - size, end
        found.append({"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": None})
    return found


def _of_operand(inputs: list[Array], params: dict[str, Any]) -> tuple[str, list[Array], dict[str, Any]]:
    """A slice as XLA reads it: of the operand that it is within where it is one of a joined array, and the operand itself where it is all of it."""
    joined = inputs[0].maker
    if joined is None or joined.name not in JOINS or params.get("strides") is not None:
        return "slice", inputs, params
    axis = joined_along(joined)
    begin, end, at = params["start_indices"][axis], params["limit_indices"][axis], 0
    for own in joined.inputs:
        width = 1 if joined.name == "stack" else own.shape[axis]
        if at <= begin and end <= at + width:
            break
        at += width
    else:
        return "slice", inputs, params
    starts, limits = ([*params[key]] for key in ("start_indices", "limit_indices"))
    starts[axis], limits[axis] = begin - at, end - at
    shape = [*own.shape[:axis], 1, *own.shape[axis:]] if joined.name == "stack" else [*own.shape]
    if limits == shape and not any(starts):
        return "reshape", [own], {}
    if joined.name == "stack":
        del starts[axis], limits[axis]
    return "slice", [own], {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": None}


def _told(params: dict[str, Any]) -> Hashable:
    """What tells the parameters of an equation: numbers, names and axes as they are, which takes no text, all else by its text."""
    return tuple(
        [(name, own if isinstance(own, _PLAIN) else str(own)) for name, own in sorted(params.items())]
    )


def _operation(name: str, inputs: list[Array], params: dict[str, Any], made: Sequence[Any]) -> list[Array]:
    own = Operation(name, inputs, params)
    return own.makes([_array(v.aval, own, number=_made_number(name, inputs)) for v in made])


def _made_number(name: str, inputs: Sequence[Array]) -> float | None:
    """The number that the exponent of a slope is made of."""
    known = [array.number for array in inputs if array.number is not None]
    if len(known) < len(inputs):
        return None
    if name == "sub":
        return known[0] - known[1]
    return known[0] if name == "convert_element_type" and known[0].is_integer() else None


def _emitted(eqn: Any, platform: str) -> Any:
    return eqn.params["program"].on(platform).traced([a.aval for a in eqn.invars])


def _after_inputs(results: Sequence[Array]) -> list[Operation]:
    """The makers of ``results`` and of what they read, in order."""
    done: set[Operation] = set()
    order: list[Operation] = []
    stack = [(a.maker, 0) for a in reversed(results) if a.maker is not None]
    while stack:
        own, at = stack.pop()
        if own in done:
            continue
        if at == len(own.inputs):
            done.add(own)
            order.append(own)
            continue
        stack.append((own, at + 1))
        maker = own.inputs[at].maker
        if maker is not None and maker not in done:
            stack.append((maker, 0))
    return order
