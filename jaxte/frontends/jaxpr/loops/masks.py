"""Which rows of an array matter in each step of a loop: those that no mask by position multiplies by zero or leaves unchosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from jaxte.bridge.jaxprs import bound, literal_array, walked
from jaxte.frontends.jaxpr.equations.known import folded
from jaxte.frontends.jaxpr.loops.counters import Counters

Table = np.ndarray[Any, Any]
_MOST = 1 << 23  # numbers of all steps


class Tables:
    """Arrays of a body that its counter decides, for all steps at once.

    Args:
        makers: the equation of each variable.
        counters: the numbers that are known.
        known: arrays that are known and the same in each step.
    """

    def __init__(self, makers: Mapping[Any, Any], counters: Counters, known: Mapping[Any, Any]) -> None:
        self._makers, self._counters, self._known = makers, counters, known
        self._made: dict[Any, Table | None] = {}

    def of(self, atom: Any) -> Table | None:
        """The array in each step, as one with an axis of steps (of one, where all are the same) in front; None where it is not known."""
        if isinstance(atom, Literal):
            return np.broadcast_to(np.asarray(atom.val), (1, *getattr(atom.aval, "shape", ())))
        if atom not in self._made:
            self._made[atom] = self._table(atom)
        return self._made[atom]

    def _table(self, atom: Any) -> Table | None:
        position = self._counters.of(atom)
        if position is not None and not position.outer:
            return position.numbers.reshape(-1, *atom.aval.shape)
        if self._known.get(atom) is not None:
            return np.asarray(self._known[atom])[None]
        eqn = self._makers.get(atom)
        if eqn is None or eqn.effects or len(eqn.outvars) != 1 or "jaxpr" in eqn.params:
            return None
        if (
            prod(atom.aval.shape) * self._counters.steps > _MOST
            or np.dtype(atom.aval.dtype).kind not in "biuf"
        ):
            return None
        operands = [self.of(a) for a in eqn.invars]
        if any(o is None for o in operands):
            return None
        return _for_all(eqn, [o for o in operands if o is not None])


def _for_all(eqn: Any, operands: Sequence[Table]) -> Table | None:
    """An equation on operands of all steps."""
    steps = max((len(o) for o in operands), default=1)
    axes = [None if len(o) == 1 else 0 for o in operands]
    given = [o[0] if a is None else o for o, a in zip(operands, axes, strict=True)]
    given = [g.astype(a.aval.dtype) for g, a in zip(given, eqn.invars, strict=True)]

    def one(*xs: Any) -> Any:
        return bound(eqn, xs)[0]

    batched = one if steps == 1 else jax.vmap(one, axes)
    shapes = [jax.ShapeDtypeStruct(g.shape, g.dtype) for g in given]
    closed = jax.make_jaxpr(batched)(*shapes)

    def results(inner: Any, values: Sequence[Any]) -> list[Any]:
        return [None] * len(inner.outvars) if any(v is None for v in values) else folded(inner, values, _MOST)

    (found,) = walked(closed.jaxpr, [*map(np.asarray, closed.consts), *given], results, literal_array)
    return None if found is None else np.asarray(found)[None if steps == 1 else ...]


class Masks:
    """What matters of the arrays of a body.

    Args:
        eqns: its equations.
        returned: what it returns, all of which matters.
        tables: what is known in each step.
    """

    def __init__(self, eqns: Sequence[Any], returned: Sequence[Any], tables: Tables) -> None:
        self.tables = tables
        self.returned = [v for v in returned if not isinstance(v, Literal)]
        self._makers = {v: eqn for eqn in eqns for v in eqn.outvars}
        self._readers: dict[Any, list[Any]] = {}
        for eqn in eqns:
            for a in dict.fromkeys(a for a in eqn.invars if not isinstance(a, Literal)):
                self._readers.setdefault(a, []).append(eqn)

    def readers(self, var: Any) -> list[Any]:
        return self._readers.get(var, [])

    def needed(self, var: Any, axis: int, left: Sequence[Any] = ()) -> Table:
        """Which positions of ``axis`` matter, by step and position, to readers that are not ``left``."""
        extent = var.aval.shape[axis]
        if var in self.returned:
            return np.ones((1, extent), bool)
        found = np.zeros((1, extent), bool)
        for eqn in self.readers(var):
            if not any(eqn is e for e in left):
                found = found | self.read(eqn, var, axis)
        return found

    def read(self, eqn: Any, var: Any, axis: int) -> Table:
        """The same for one reader."""
        whole = np.ones((1, var.aval.shape[axis]), bool)
        row = _READS.get(eqn.primitive.name)
        if row is None or sum(a is var for a in eqn.invars) != 1:
            return whole
        found = row(self, eqn, next(n for n, a in enumerate(eqn.invars) if a is var), axis)
        return whole if found is None else found

    def nonzero(self, atom: Any, axis: int) -> Table | None:
        """Where an array is not zero by its masks, by step and position; None where that is not known to be less than all."""
        known = self.tables.of(atom)
        if known is not None:
            others = tuple(d for d in range(1, known.ndim) if d != axis + 1)
            return np.asarray((known != 0).any(axis=others))
        eqn = None if isinstance(atom, Literal) else self._makers.get(atom)
        row = None if eqn is None else _ZEROS.get(eqn.primitive.name)
        return None if row is None else row(self, eqn, axis)


def _and(*tables: Table | None) -> Table | None:
    found: Table | None = None
    for t in tables:
        if t is not None:
            found = t if found is None else found & t
    return found


def _read_on(masks: Masks, eqn: Any, axis: int | None) -> Table | None:
    return None if axis is None else masks.needed(eqn.outvars[0], axis)


def _read_alike(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    return _read_on(masks, eqn, axis)


def _read_product(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    return _and(masks.nonzero(eqn.invars[1 - place], axis), _read_on(masks, eqn, axis))


def _read_choice(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    which = masks.tables.of(eqn.invars[0])
    taken = None
    if place and which is not None and which.ndim == len(eqn.outvars[0].aval.shape) + 1:
        others = tuple(d for d in range(1, which.ndim) if d != axis + 1)
        taken = (which.astype(int) == place - 1).any(axis=others)
    return _and(taken, _read_on(masks, eqn, axis))


def _read_dot(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    summed, batched = eqn.params["dimension_numbers"]
    other = eqn.invars[1 - place]
    for own, others in (summed, batched) if place == 0 else (summed[::-1], batched[::-1]):
        if axis in own:
            return masks.nonzero(other, others[list(own).index(axis)])
    ranks = [len(a.aval.shape) for a in eqn.invars]
    free = [d for d in range(ranks[place]) if d not in (*summed[place], *batched[place])]
    before = len(batched[0])
    if place == 1:
        before += ranks[0] - len(summed[0]) - len(batched[0])
    return _read_on(masks, eqn, before + free.index(axis))


def _read_sum(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    axes = eqn.params["axes"]
    return None if axis in axes else _read_on(masks, eqn, axis - sum(a < axis for a in axes))


def _read_repeat(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    into = eqn.params["broadcast_dimensions"][axis]
    same = eqn.outvars[0].aval.shape[into] == eqn.invars[0].aval.shape[axis]
    return _read_on(masks, eqn, into if same else None)


def _read_squeezed(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    gone = eqn.params["dimensions"]
    return None if axis in gone else _read_on(masks, eqn, axis - sum(d < axis for d in gone))


def _read_turned(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    return _read_on(masks, eqn, eqn.params["permutation"].index(axis))


def _read_slice(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    array, out = eqn.invars[0], eqn.outvars[0]
    return _read_on(masks, eqn, axis if array.aval.shape[axis] == out.aval.shape[axis] else None)


_ALIKE = (
    "add", "sub", "neg", "convert_element_type", "tanh", "exp", "log", "sqrt", "abs", "square", "integer_pow", "max", "min", "copy",
    "sin", "cos", "logistic", "rsqrt", "stop_gradient",
)  # fmt: skip

_READS: dict[str, Callable[[Masks, Any, int, int], Table | None]] = {
    **dict.fromkeys(_ALIKE, _read_alike),
    "mul": _read_product,
    "select_n": _read_choice,
    "dot_general": _read_dot,
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min"), _read_sum),
    "broadcast_in_dim": _read_repeat,
    "squeeze": _read_squeezed,
    "transpose": _read_turned,
    "dynamic_slice": _read_slice,
    "slice": _read_slice,
}


def _zeros_product(masks: Masks, eqn: Any, axis: int) -> Table | None:
    return _and(*(masks.nonzero(a, axis) for a in eqn.invars))


def _zeros_alike(masks: Masks, eqn: Any, axis: int) -> Table | None:
    return masks.nonzero(eqn.invars[0], axis)


def _zeros_choice(masks: Masks, eqn: Any, axis: int) -> Table | None:
    """Where the choice is of a zero, by a mask that is known."""
    which, *cases = eqn.invars
    chosen = masks.tables.of(which)
    if chosen is None or chosen.ndim != len(eqn.outvars[0].aval.shape) + 1:
        return None
    others = tuple(d for d in range(1, chosen.ndim) if d != axis + 1)
    found = np.zeros((1, eqn.outvars[0].aval.shape[axis]), bool)
    for n, case in enumerate(cases):
        taken = (chosen.astype(int) == n).any(axis=others)
        own = masks.nonzero(case, axis)
        found = found | (taken if own is None else taken & own)
    return found


def _zeros_repeat(masks: Masks, eqn: Any, axis: int) -> Table | None:
    into = list(eqn.params["broadcast_dimensions"])
    operand = eqn.invars[0]
    if axis not in into or operand.aval.shape[into.index(axis)] != eqn.outvars[0].aval.shape[axis]:
        return None
    return masks.nonzero(operand, into.index(axis))


def _zeros_dot(masks: Masks, eqn: Any, axis: int) -> Table | None:
    summed, batched = eqn.params["dimension_numbers"]
    if batched[0]:
        return None
    free = [
        [d for d in range(len(a.aval.shape)) if d not in s] for a, s in zip(eqn.invars, summed, strict=True)
    ]
    place, own = (0, axis) if axis < len(free[0]) else (1, axis - len(free[0]))
    return masks.nonzero(eqn.invars[place], free[place][own])


_ZEROS: dict[str, Callable[[Masks, Any, int], Table | None]] = {
    "mul": _zeros_product,
    **dict.fromkeys(("neg", "convert_element_type", "copy", "stop_gradient"), _zeros_alike),
    "select_n": _zeros_choice,
    "broadcast_in_dim": _zeros_repeat,
    "dot_general": _zeros_dot,
}
