"""Adjoints of maxima and minima: the adjoint ``g`` of ``y = max over k of x[k]`` goes to the ``x[k]`` that are equal to ``y``.

Which these are is asked of the elements, ``x[k] == y``, where they are read: the same bits in each loop. Windows read a tensor in memory; one that
is computed is *held*: computed once, behind a barrier, so that whoever asks finds the same bits, and the maximum is found of it again.
Elements that are *computed* may be computed again in another loop, by XLA or by a form of jaxte's, and be rounded in another
way: a product and a sum are joined into one instruction in some loops and not in others (``places.py`` says where they may be). Such an
element then misses its own maximum by its last bit, and its derivative is lost. So the places of the maxima are found by one reduction that
compares the elements as it computes them, and everything else asks the integers that it returns:

- ``places``, of up to 31 elements: one bit for each that is equal to the maximum; all bits where there is a NaN;
- the extremum again, of more elements that are held. Where the adjoint may hold them: ``beside.py``;
- ``first``, ``last`` and ``count``, of those above it: of two equal elements that is all there is to know. Of three and more, the others
  are compared with the maximum if all of them are found again so, or else left out. Where there is a NaN the count is 0, and all elements are hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from jaxte.autodiff.rules.extremum import Extremum, as_read, found_again, of_one_tensor
from jaxte.autodiff.terms.beside import Held, may_be_held
from jaxte.autodiff.terms.guards import guard, through_guards
from jaxte.autodiff.terms.places import BITS, ENDS, bits_set, found
from jaxte.lang import dtypes
from jaxte.lang import operators as ops
from jaxte.lang.dtypes import INT32_BITS
from jaxte.lang.expr import Axis, Const, Expr, Reduce, call, cast, conjunction
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW_POSITIONS
from jaxte.sets.solving.elimination import mentions
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.tensor import Compute


def extremum_adjoint(tensor: Compute, node: Reduce, seed: Expr) -> Expr:
    """The adjoint of the element of ``tensor``, a maximum or minimum, at each point of ``node``, which is its reduction.

    A NaN among elements whose ties share the derivative makes all of them receive NaN, as in JAX.
    """
    idle = [a for a in node.axes if not (mentions(node.exprs[0], [a]) or mentions(node.where, [a]))]
    if idle and node.reducer.ties != "all":
        return _at_first(tensor, node, idle, seed)
    extremum = Extremum(tensor, node, node.exprs[0])
    read = as_read(extremum)
    if read is not None:
        return _of_elements(read, seed)
    points = extremum.points
    if isinstance(points, Const) and int(points) <= INT32_BITS:
        return _of_places(extremum, seed)
    if may_be_held([*extremum.axes, *node.axes], node.dtype):
        return _of_elements(found_again(extremum, of_one_tensor(extremum, Held)), seed)
    return _of_ends(replace(extremum, element=of_one_tensor(extremum)), seed)


def _at_first(tensor: Compute, node: Reduce, idle: Sequence[Axis], seed: Expr) -> Expr:
    """The adjoint where elements do not differ along the axes ``idle``: the first of them stand for all, with their sum."""
    rest = [a for a in node.axes if not among(a, idle)]
    if rest:
        node = node.changed(axes=rest)
        seed = extremum_adjoint(tensor, node, seed)
    return guard(conjunction([call(ops.EQUAL, a, a.lo) for a in idle]), seed)


def _of_elements(extremum: Extremum, seed: Expr) -> Expr:
    """Elements that are read are compared with the extremum wherever that is asked."""
    hit = call(ops.EQUAL, extremum.element, extremum.value)
    if extremum.ties == "all":
        return guard(hit, seed)
    if extremum.ties in ("first", "last"):
        winner = extremum.read("winner", lambda: _winner(extremum, hit))
        return guard(call(ops.EQUAL, extremum.position, winner), seed)
    ties = extremum.read("ties", lambda: _number_of(extremum, hit))
    # Not `element == value`: a NaN among the elements makes all of them receive NaN.
    level = extremum.value
    if extremum.found is not None:
        level = call(ops.SELECT, call(ops.EQUAL, ties, ties), level, _nan(level.dtype))
    return call(ops.SELECT, extremum.is_behind(level), Const(0.0), _shared(seed, ties))


def _shared(seed: Expr, ties: Expr) -> Expr:
    """``seed / ties`` where a condition does not exclude ``seed``: what is excluded stays zero, also where there is a NaN, of which ``ties`` are NaN."""
    shared = through_guards(seed, lambda taken: call(ops.DIVIDE, taken, ties))
    return Const(0.0) if shared is None else shared


def _winner(extremum: Extremum, hit: Expr) -> Expr:
    """The position of the element that receives the adjoint: the first or last that equals the extremum."""
    node = extremum.node
    dtype = _position_dtype(extremum.points)
    reducer = builtin_reducer("min" if extremum.ties == "first" else "max", dtype)
    candidate = call(ops.SELECT, hit, cast(extremum.position, dtype), reducer.identity[0])
    return Reduce(reducer, (candidate,), node.axes, node.where)


def _number_of(extremum: Extremum, hit: Expr) -> Expr:
    """How many elements are hit; NaN where the extremum is NaN, or one of the elements that it was found of again.

    A maximum that XLA computes on the CPU loses a NaN in some loops; a sum does not.
    """
    node, value, dtype = extremum.node, extremum.value, extremum.tensor.dtype
    counted = cast(hit, dtype)
    if extremum.found is not None:
        own = extremum.element
        counted = call(
            ops.SELECT, hit, Const(1.0), call(ops.SELECT, call(ops.EQUAL, own, own), Const(0.0), own)
        )
    elif dtypes.is_float(dtype):
        counted = call(ops.SELECT, call(ops.EQUAL, value, value), counted, value)
    total = Reduce(builtin_reducer("sum", dtype), (counted,), node.axes, node.where)
    return call(ops.MAXIMUM, total, Const(1.0)) if extremum.may_be_empty else total


# --- up to 31 computed elements


def _of_places(extremum: Extremum, seed: Expr) -> Expr:
    places = extremum.read("places", lambda: _places(extremum))
    bit = call(ops.LEFT_SHIFT, 1, cast(extremum.position, "int32"))
    match extremum.ties:
        case "first":  # the least of the bits
            return guard(call(ops.EQUAL, call(ops.BIT_AND, places, -places), bit), seed)
        case "last":
            return guard(
                call(ops.EQUAL, call(ops.RIGHT_SHIFT, places, cast(extremum.position, "int32")), 1), seed
            )
        case "even":
            ties = extremum.read("ties", lambda: _number_of_bits(extremum, places))
            seed = _shared(seed, ties)
    return guard(call(ops.GREATER, call(ops.BIT_AND, places, bit), 0), seed)


def _places(extremum: Extremum) -> Expr:
    node = extremum.node
    bit = call(ops.LEFT_SHIFT, 1, cast(extremum.position, "int32"))
    return found(node, BITS, "places", (extremum.element, bit))


def _number_of_bits(extremum: Extremum, places: Expr) -> Expr:
    node, dtype = extremum.node, extremum.tensor.dtype
    total: Expr = cast(bits_set(places), dtype)
    if isinstance(extremum.points, Const) and int(extremum.points) <= FEW_POSITIONS:
        own = cast(
            call(ops.BIT_AND, call(ops.RIGHT_SHIFT, places, cast(extremum.position, "int32")), 1), dtype
        )
        total = Reduce(builtin_reducer("sum", dtype), (own,), node.axes, node.where)
    if extremum.may_be_empty:
        total = call(ops.MAXIMUM, total, Const(1.0))
    return call(ops.SELECT, call(ops.LESS, places, 0), _nan(dtype), total)


# --- more computed elements than memory is for, or of a symbolic number


def _of_ends(extremum: Extremum, seed: Expr) -> Expr:
    position = cast(extremum.position, "int32")
    first, last, count = (extremum.read(kind, partial(_end, extremum, kind)) for kind in ENDS.kinds)
    if extremum.ties in ("first", "last"):
        return guard(call(ops.EQUAL, position, first if extremum.ties == "first" else last), seed)
    ties = extremum.read("ties", lambda: _shared_by(extremum, count))
    hit = call(ops.OR, call(ops.EQUAL, position, first), call(ops.EQUAL, position, last))
    hit = call(ops.OR, hit, call(ops.NOT, extremum.is_behind(_level(extremum, ties))))
    if extremum.ties == "all":
        return guard(hit, seed)
    dtype = extremum.tensor.dtype
    shares, spoilt = cast(ties, dtype), call(ops.LESS, ties, 1)
    if extremum.may_be_empty:
        shares = call(ops.MAXIMUM, shares, Const(1.0))
        spoilt = call(ops.AND, spoilt, call(ops.NOT_EQUAL, extremum.value, extremum.node.reducer.identity[0]))
    return guard(hit, _shared(seed, call(ops.SELECT, spoilt, _nan(dtype), shares)))


def _shared_by(extremum: Extremum, count: Expr) -> Expr:
    """How many elements share the derivative: all that are equal, or the two ends where those between are not found again."""
    node = extremum.node
    equal = cast(call(ops.NOT, extremum.is_behind(extremum.value)), "int32")
    again = Reduce(builtin_reducer("sum", "int32"), (equal,), node.axes, node.where)
    return call(ops.SELECT, call(ops.EQUAL, again, count), count, call(ops.MINIMUM, count, 2))


def _level(extremum: Extremum, ties: Expr) -> Expr:
    """What the other elements are compared with: the extremum, but what none of them reaches where two ends are all."""
    dtype = extremum.tensor.dtype
    best = Const(float("inf" if extremum.node.reducer.name == "max" else "-inf"), dtype)
    level = call(ops.SELECT, call(ops.LESS, ties, 1), _nan(dtype), best)
    return call(ops.SELECT, call(ops.LESS, 2, ties), extremum.value, level)


def _nan(dtype: str) -> Const:
    return Const(float("nan"), dtype)


def _end(extremum: Extremum, kind: str) -> Expr:
    position = cast(extremum.position, "int32")
    exprs = (extremum.element, position, position, Const(1, "int32"))
    return found(extremum.node, ENDS, kind, exprs)


# --- which elements


def _position_dtype(points: Expr) -> str:
    """The shortest integers that number ``points`` positions from 0 and have one more for none of them."""
    for bits in (8, 16):
        if isinstance(points, Const) and int(points) < 2 ** (bits - 1):
            return f"int{bits}"
    return "int32"
