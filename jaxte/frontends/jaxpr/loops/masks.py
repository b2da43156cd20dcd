"""Which rows of an array matter in each step of a loop: those that no mask by position multiplies by zero or leaves unchosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from jaxte.bridge.jaxprs import bound
from jaxte.frontends.jaxpr.equations.dimensions import NAMES, dimensions
from jaxte.frontends.jaxpr.equations.known import computed
from jaxte.frontends.jaxpr.loops.counters import Counters
from jaxte.lang.limits import LARGE_TABLE

Table = np.ndarray[Any, Any]


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
            prod(atom.aval.shape) * self._counters.steps > LARGE_TABLE
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

    (found,) = computed(closed, given, LARGE_TABLE)
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
            return _any_along(known != 0, axis)
        eqn = None if isinstance(atom, Literal) else self._makers.get(atom)
        row = None if eqn is None else _ZEROS.get(eqn.primitive.name)
        return None if row is None else row(self, eqn, axis)


def _any_along(table: Table, axis: int) -> Table:
    """By step and position of ``axis``, whether anything holds there."""
    return np.asarray(table.any(axis=tuple(d for d in range(1, table.ndim) if d != axis + 1)))


def _and(*tables: Table | None) -> Table | None:
    found: Table | None = None
    for t in tables:
        if t is not None:
            found = t if found is None else found & t
    return found


def _read(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    """Where what an equation makes matters; None along an axis that this does not have."""
    found = dimensions(eqn)
    into = None if found is None else found[place][axis]
    return None if into is None else masks.needed(eqn.outvars[0], into)


def _read_product(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    return _and(masks.nonzero(eqn.invars[1 - place], axis), _read(masks, eqn, place, axis))


def _read_choice(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    which = masks.tables.of(eqn.invars[0])
    taken = None
    if place and which is not None and which.ndim == len(eqn.outvars[0].aval.shape) + 1:
        taken = _any_along(which.astype(int) == place - 1, axis)
    return _and(taken, _read(masks, eqn, place, axis))


def _read_dot(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    for pair in eqn.params["dimension_numbers"]:  # summed over, and of the batch
        if axis in pair[place]:
            return masks.nonzero(eqn.invars[1 - place], pair[1 - place][list(pair[place]).index(axis)])
    return _read(masks, eqn, place, axis)


def _read_slice(masks: Masks, eqn: Any, place: int, axis: int) -> Table | None:
    out = eqn.outvars[0]
    return masks.needed(out, axis) if eqn.invars[0].aval.shape[axis] == out.aval.shape[axis] else None


_READS: dict[str, Callable[[Masks, Any, int, int], Table | None]] = {
    **dict.fromkeys(NAMES, _read),
    "mul": _read_product,
    "select_n": _read_choice,
    "dot_general": _read_dot,
    "dynamic_slice": _read_slice,
    "slice": _read_slice,
}


def _zeros_product(masks: Masks, eqn: Any, axis: int) -> Table | None:
    """Of what is zero where one operand is."""
    places = dimensions(eqn) or ()
    own = [masks.nonzero(a, p.index(axis)) for a, p in zip(eqn.invars, places, strict=False) if axis in p]
    return _and(*own)


def _zeros_choice(masks: Masks, eqn: Any, axis: int) -> Table | None:
    """Where the choice is of a zero, by a mask that is known."""
    which, *cases = eqn.invars
    chosen = masks.tables.of(which)
    if chosen is None or chosen.ndim != len(eqn.outvars[0].aval.shape) + 1:
        return None
    found = np.zeros((1, eqn.outvars[0].aval.shape[axis]), bool)
    for n, case in enumerate(cases):
        taken = _any_along(chosen.astype(int) == n, axis)
        own = masks.nonzero(case, axis)
        found = found | (taken if own is None else taken & own)
    return found


_PRODUCTS = ("mul", "dot_general", "neg", "convert_element_type", "copy", "stop_gradient", "broadcast_in_dim")
_ZEROS: dict[str, Callable[[Masks, Any, int], Table | None]] = {
    **dict.fromkeys(_PRODUCTS, _zeros_product),
    "select_n": _zeros_choice,
}
