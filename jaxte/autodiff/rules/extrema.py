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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from jaxte.autodiff.rules.prefixes import first_along_others, own_axes
from jaxte.autodiff.terms.beside import Held, beside, may_be_held, may_exist, may_read_windows_again
from jaxte.autodiff.terms.guards import guard, through_guards
from jaxte.autodiff.terms.places import (
    BITS,
    ENDS,
    bits_set,
    found,
    fresh,
    has_same_bits,
    is_rounded,
    points_of,
)
from jaxte.lang import dtypes
from jaxte.lang.dtypes import INT32_BITS
from jaxte.lang.expr import Axis, Const, Expr, Read, Reduce, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW_POSITIONS
from jaxte.lang.operators import (
    AND,
    BIT_AND,
    DIVIDE,
    EQUAL,
    GREATER,
    LEFT_SHIFT,
    LESS,
    MAXIMUM,
    MINIMUM,
    NOT,
    NOT_EQUAL,
    OR,
    RIGHT_SHIFT,
    SELECT,
)
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.affine import normal
from jaxte.sets.domain import IntegerSet
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.solving.elimination import mentions
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.reductions import position_of
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Placeholder, Tensor

_NUMBERS = ("winner", "places", *ENDS.kinds)  # kinds of tensors that hold numbers of points


def extremum_adjoint(tensor: Compute, node: Reduce, seed: Expr) -> Expr:
    """The adjoint of the element of ``tensor``, a maximum or minimum, at each point of ``node``, which is its reduction.

    A NaN among elements whose ties share the derivative makes all of them receive NaN, as in JAX.
    """
    idle = [a for a in node.axes if not (mentions(node.exprs[0], [a]) or mentions(node.where, [a]))]
    if idle and node.reducer.ties != "all":
        return _at_first(tensor, node, idle, seed)
    extremum = _Extremum(tensor, node, node.exprs[0])
    read = _of_read(extremum)
    if read is not None:
        return _of_elements(read, seed)
    points = extremum.points
    if isinstance(points, Const) and int(points) <= INT32_BITS:
        return _of_places(extremum, seed)
    if may_be_held([*extremum.axes, *node.axes], node.dtype):
        return _of_elements(_again(extremum, _one_tensor(extremum, Held)), seed)
    return _of_ends(replace(extremum, element=_one_tensor(extremum)), seed)


def _at_first(tensor: Compute, node: Reduce, idle: Sequence[Axis], seed: Expr) -> Expr:
    """The adjoint where elements do not differ along the axes ``idle``: the first of them stand for all, with their sum."""
    rest = [a for a in node.axes if not among(a, idle)]
    if rest:
        node = Reduce(node.reducer, node.exprs, rest, node.where, node.position)
        seed = extremum_adjoint(tensor, node, seed)
    return guard(conjunction([call(EQUAL, a, a.lo) for a in idle]), seed)


@dataclass(frozen=True)
class _Extremum:
    """The maximum or minimum ``tensor``, its reduction ``node``, the element that is compared, and with what, if not with the ``tensor``."""

    tensor: Compute
    node: Reduce
    element: Expr
    found: Expr | None = None

    @property
    def axes(self) -> list[Axis]:
        """Those of the tensor's axes that its elements differ along."""
        return own_axes(self.tensor)

    @property
    def value(self) -> Expr:
        return first_along_others(self.tensor) if self.found is None else self.found

    def is_behind(self, value: Expr) -> Expr:
        """Whether the element is less than a maximum ``value``, or greater than a minimum."""
        return call(LESS if self.node.reducer.name == "max" else GREATER, self.element, value)

    @property
    def ties(self) -> str:
        return self.node.reducer.ties

    @property
    def may_be_empty(self) -> bool:
        """Whether conditions may leave no point to the reduction: the ties that are divided by are one there, not zero."""
        conditions = conjuncts(self.node.where)
        if not all(is_decidable(c) for c in conditions):
            return True
        outer = [a for a in self.axes if mentions(self.node.where, [a])]
        return not IntegerSet((*outer, *self.node.axes), conditions).covers(outer)

    @property
    def position(self) -> Expr:
        return position_of(self.node.axes)

    @property
    def numbering(self) -> str:
        """How :attr:`position` counts, which another spelling of the reduction may do otherwise."""
        return ", ".join(f"{a.name} from {text(a.lo)} to {text(a.hi)}" for a in self.node.axes)

    @property
    def points(self) -> Expr:
        """How many points the reduction has."""
        return points_of(self.node.axes)

    def read(self, kind: str, body: Callable[[], Expr]) -> Expr:
        """An element of the tensor ``kind``, with the ``body`` in terms of the extremum's own axes.

        What the adjoints of all that the extremum reads have in common is one tensor, made for the first of them.
        """

        def made() -> Compute:
            axes, table = fresh(self.axes)
            return Compute(f"{kind}_{self.tensor.name}", axes, substitute(body(), table))

        numbering = self.numbering if kind in _NUMBERS else ""
        return Read(beside(self.tensor, kind, made, numbering), self.axes)


def _of_elements(extremum: _Extremum, seed: Expr) -> Expr:
    """Elements that are read are compared with the extremum wherever that is asked."""
    hit = call(EQUAL, extremum.element, extremum.value)
    if extremum.ties == "all":
        return guard(hit, seed)
    if extremum.ties in ("first", "last"):
        winner = extremum.read("winner", lambda: _winner(extremum, hit))
        return guard(call(EQUAL, extremum.position, winner), seed)
    ties = extremum.read("ties", lambda: _number_of(extremum, hit))
    # Not `element == value`: a NaN among the elements makes all of them receive NaN.
    level = extremum.value
    if extremum.found is not None:
        level = call(SELECT, call(EQUAL, ties, ties), level, _nan(level.dtype))
    return call(SELECT, extremum.is_behind(level), Const(0.0), _shared(seed, ties))


def _shared(seed: Expr, ties: Expr) -> Expr:
    """``seed / ties`` where a condition does not exclude ``seed``: what is excluded stays zero, also where there is a NaN, of which ``ties`` are NaN."""
    shared = through_guards(seed, lambda taken: call(DIVIDE, taken, ties))
    return Const(0.0) if shared is None else shared


def _winner(extremum: _Extremum, hit: Expr) -> Expr:
    """The position of the element that receives the adjoint: the first or last that equals the extremum."""
    node = extremum.node
    dtype = _position_dtype(extremum.points)
    reducer = builtin_reducer("min" if extremum.ties == "first" else "max", dtype)
    candidate = call(SELECT, hit, cast(extremum.position, dtype), reducer.identity[0])
    return Reduce(reducer, (candidate,), node.axes, node.where)


def _number_of(extremum: _Extremum, hit: Expr) -> Expr:
    """How many elements are hit; NaN where the extremum is NaN, or one of the elements that it was found of again.

    A maximum that XLA computes on the CPU loses a NaN in some loops; a sum does not.
    """
    node, value, dtype = extremum.node, extremum.value, extremum.tensor.dtype
    counted = cast(hit, dtype)
    if extremum.found is not None:
        own = extremum.element
        counted = call(SELECT, hit, Const(1.0), call(SELECT, call(EQUAL, own, own), Const(0.0), own))
    elif dtypes.is_float(dtype):
        counted = call(SELECT, call(EQUAL, value, value), counted, value)
    total = Reduce(builtin_reducer("sum", dtype), (counted,), node.axes, node.where)
    return call(MAXIMUM, total, Const(1.0)) if extremum.may_be_empty else total


def _of_read(extremum: _Extremum) -> _Extremum | None:
    """The same where all elements are read from memory, or have the same bits in every loop; None where some may not.

    What is read and computed is computed once, before all elements: that tensor is held, and the extremum found again. Inputs are held for elements
    that are computed: the caller may compute them in the loops that read them.
    """
    node, of_inputs = extremum.node, is_rounded(extremum.element)
    read = [r for r in reads_of(extremum.element) if _may_differ(r.tensor, of_inputs)]
    axes = [*extremum.axes, *node.axes]
    if not has_same_bits(extremum.element) or not all(_is_read_again(r, axes) for r in read):
        return None
    if not read:
        return extremum
    tensors = dict.fromkeys(r.tensor for r in read)
    if any(isinstance(t, State) for t in topological_order(list(tensors))) or not all(
        map(may_exist, tensors)
    ):
        return None
    if of_inputs and not may_read_windows_again() and any(map(_is_window, read)):
        return None
    whole = {t: beside(t, "whole", partial(_whole, t)) for t in tensors}
    table: dict[Expr, Expr] = {r: Read(whole[r.tensor], r.indices) for r in read}
    return _again(extremum, substitute(extremum.element, table))


def _may_differ(tensor: Tensor, of_inputs: bool) -> bool:
    """Whether a loop may compute ``tensor`` again, and round it in another way; ``of_inputs``: whether inputs count among these."""
    return any(
        is_rounded(t.body) if isinstance(t, Compute) else of_inputs and isinstance(t, (Placeholder, Extern))
        for t in topological_order([tensor])
    )


def _whole(tensor: Tensor) -> Compute:
    axes = tuple(Axis(f"i{n}", 0, extent) for n, extent in enumerate(tensor.shape))
    if isinstance(tensor, Compute):
        axes, _ = fresh(tensor.axes)
    return Held(f"whole_{tensor.name}", axes, Read(tensor, axes))


def _again(extremum: _Extremum, element: Expr) -> _Extremum:
    """The same of ``element``, which is held, and of the extremum of that: the one of the definition may have been rounded otherwise."""
    node = extremum.node
    best = extremum.read("best", lambda: Reduce(node.reducer, (element,), node.axes, node.where))
    return replace(extremum, element=element, found=best)


# --- up to 31 computed elements


def _of_places(extremum: _Extremum, seed: Expr) -> Expr:
    places = extremum.read("places", lambda: _places(extremum))
    bit = call(LEFT_SHIFT, 1, cast(extremum.position, "int32"))
    match extremum.ties:
        case "first":  # the least of the bits
            return guard(call(EQUAL, call(BIT_AND, places, -places), bit), seed)
        case "last":
            return guard(call(EQUAL, call(RIGHT_SHIFT, places, cast(extremum.position, "int32")), 1), seed)
        case "even":
            ties = extremum.read("ties", lambda: _number_of_bits(extremum, places))
            seed = _shared(seed, ties)
    return guard(call(GREATER, call(BIT_AND, places, bit), 0), seed)


def _places(extremum: _Extremum) -> Expr:
    node = extremum.node
    bit = call(LEFT_SHIFT, 1, cast(extremum.position, "int32"))
    return found(node, BITS, "places", (extremum.element, bit))


def _number_of_bits(extremum: _Extremum, places: Expr) -> Expr:
    node, dtype = extremum.node, extremum.tensor.dtype
    total: Expr = cast(bits_set(places), dtype)
    if isinstance(extremum.points, Const) and int(extremum.points) <= FEW_POSITIONS:
        own = cast(call(BIT_AND, call(RIGHT_SHIFT, places, cast(extremum.position, "int32")), 1), dtype)
        total = Reduce(builtin_reducer("sum", dtype), (own,), node.axes, node.where)
    if extremum.may_be_empty:
        total = call(MAXIMUM, total, Const(1.0))
    return call(SELECT, call(LESS, places, 0), _nan(dtype), total)


# --- more computed elements than memory is for, or of a symbolic number


def _of_ends(extremum: _Extremum, seed: Expr) -> Expr:
    position = cast(extremum.position, "int32")
    first, last, count = (extremum.read(kind, partial(_end, extremum, kind)) for kind in ENDS.kinds)
    if extremum.ties in ("first", "last"):
        return guard(call(EQUAL, position, first if extremum.ties == "first" else last), seed)
    ties = extremum.read("ties", lambda: _shared_by(extremum, count))
    hit = call(OR, call(EQUAL, position, first), call(EQUAL, position, last))
    hit = call(OR, hit, call(NOT, extremum.is_behind(_level(extremum, ties))))
    if extremum.ties == "all":
        return guard(hit, seed)
    dtype = extremum.tensor.dtype
    shares, spoilt = cast(ties, dtype), call(LESS, ties, 1)
    if extremum.may_be_empty:
        shares = call(MAXIMUM, shares, Const(1.0))
        spoilt = call(AND, spoilt, call(NOT_EQUAL, extremum.value, extremum.node.reducer.identity[0]))
    return guard(hit, _shared(seed, call(SELECT, spoilt, _nan(dtype), shares)))


def _shared_by(extremum: _Extremum, count: Expr) -> Expr:
    """How many elements share the derivative: all that are equal, or the two ends where those between are not found again."""
    node = extremum.node
    equal = cast(call(NOT, extremum.is_behind(extremum.value)), "int32")
    again = Reduce(builtin_reducer("sum", "int32"), (equal,), node.axes, node.where)
    return call(SELECT, call(EQUAL, again, count), count, call(MINIMUM, count, 2))


def _level(extremum: _Extremum, ties: Expr) -> Expr:
    """What the other elements are compared with: the extremum, but what none of them reaches where two ends are all."""
    dtype = extremum.tensor.dtype
    best = Const(float("inf" if extremum.node.reducer.name == "max" else "-inf"), dtype)
    level = call(SELECT, call(LESS, ties, 1), _nan(dtype), best)
    return call(SELECT, call(LESS, 2, ties), extremum.value, level)


def _nan(dtype: str) -> Const:
    return Const(float("nan"), dtype)


def _one_tensor(extremum: _Extremum, kind: type[Compute] = Compute) -> Expr:
    """The element as one of a tensor: what all passes over the elements compute, in tiles where it is large."""
    tensor, node, outside = extremum.tensor, extremum.node, extremum.axes
    if isinstance(extremum.element, Read) and kind is Compute:
        return extremum.element

    def made() -> Compute:
        own = [Axis(a.name, 0, a.extent) for a in node.axes]
        outer, table = fresh(outside)
        table |= {old: normal(new + old.lo) for old, new in zip(node.axes, own, strict=True)}
        element = substitute(extremum.element, table)
        body = call(SELECT, substitute(node.where, table), element, node.reducer.identity[0])
        return kind(f"elements_{tensor.name}", (*outer, *own), body)

    at = (*outside, *(normal(a - a.lo) for a in node.axes))
    return Read(beside(tensor, "held" if kind is Held else "elements", made), at)


def _end(extremum: _Extremum, kind: str) -> Expr:
    position = cast(extremum.position, "int32")
    exprs = (extremum.element, position, position, Const(1, "int32"))
    return found(extremum.node, ENDS, kind, exprs)


# --- which elements


def _is_read_again(read: Read, axes: Sequence[Axis]) -> bool:
    """Whether several elements over ``axes`` read the same element: in overlapping windows, or because some of the axes are not asked."""
    own = [free_axes(index) for index in read.indices]
    return _is_window(read) or not all(any(among(axis, a) for a in own) for axis in axes)


def _is_window(read: Read) -> bool:
    return any(len(free_axes(index)) > 1 for index in read.indices)


def _position_dtype(points: Expr) -> str:
    """The shortest integers that number ``points`` positions from 0 and have one more for none of them."""
    for bits in (8, 16):
        if isinstance(points, Const) and int(points) < 2 ** (bits - 1):
            return f"int{bits}"
    return "int32"
