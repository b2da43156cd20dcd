"""Groups of equations that are the same: the layers of a network, each of which is raised, derived and lowered as the first one was.

Two groups are the same where their primitives, parameters, shapes and known arrays are, where they are connected in the same way, and where their
results are read by equations of the same kind, linear ones or others, which decides what becomes a tensor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxte.bridge.compiled.compile import Compiled
from jaxte.frontends.jaxpr.equations.steps import Slot, Step


@dataclass(frozen=True)
class Signature:
    """What groups are compared by.

    Attributes:
        key: equal for equal groups; None where a parameter cannot be compared.
        slots: their arrays in the order of their appearance.
    """

    key: Hashable | None
    slots: tuple[Slot, ...]


@dataclass
class Alike:
    """The code that was made for groups, and which of their arrays it reads, by number."""

    _made: dict[Hashable, tuple[Compiled, tuple[int, ...]]] = field(default_factory=dict)

    def code(self, own: Signature) -> tuple[Compiled, list[Slot]] | None:
        """The code of an equal group, and what it reads of this one."""
        found = None if own.key is None else self._made.get(own.key)
        return None if found is None else (found[0], [own.slots[n] for n in found[1]])

    def keep(self, own: Signature, code: Compiled, read: Sequence[Slot]) -> None:
        """From now on ``code`` serves groups like this one, all of whose arrays are among its own."""
        places = {slot: n for n, slot in enumerate(own.slots)}
        if own.key is not None and all(slot in places for slot in read):
            self._made[own.key] = code, tuple(places[slot] for slot in read)


def signature_of(steps: Sequence[Step], results: Sequence[Slot]) -> Signature:
    """What ``steps`` with these ``results`` are compared by."""
    slots: dict[Slot, int] = {}
    place = {step: n for n, step in enumerate(steps)}
    key: list[Any] = []
    for step in steps:
        for slot in (*step.inputs, *step.outputs):
            slots.setdefault(slot, len(slots))
        key.append((step.name, step.label, _params(step), *(slots[s] for s in (*step.inputs, *step.outputs))))
    key += [tuple(slots.get(s, -1) for s in results)]
    key += [(_array(s), *_read(s, place)) for s in slots]
    try:
        hash(whole := tuple(key))
    except TypeError:
        return Signature(None, tuple(slots))
    return Signature(whole, tuple(slots))


def _params(step: Step) -> Hashable:
    return tuple(sorted(step.eqn.params.items(), key=lambda item: item[0]))


def _array(slot: Slot) -> Hashable:
    """The type of an array, and its content where that is known."""
    weak = bool(getattr(slot.aval, "weak_type", False))
    if slot.known is None:
        return slot.shape, slot.dtype, weak, None
    content = hashlib.sha256(np.ascontiguousarray(slot.known).tobytes()).digest()
    return slot.shape, slot.dtype, weak, content


def _read(slot: Slot, place: dict[Step, int]) -> tuple[Hashable, ...]:
    """The readers of what the group makes, by number, and what those outside decide about views; nothing of what it is given."""
    if slot.origin not in place:
        return ()
    several = len(slot.readers) > 1 and not all(r.reads_linearly for r in slot.readers)
    return tuple(place[r] for r in slot.readers if r in place), several
