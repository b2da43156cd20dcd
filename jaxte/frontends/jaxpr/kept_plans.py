"""The plans of a function, one for each program that it was traced to.

Whether two programs are the same, their texts say. A text takes a tenth of the time of tracing, so it is made where a program of as many
equations over the same arrays comes a second time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jaxte.bridge.calls.arrays import x64_enabled
from jaxte.frontends.jaxpr.equations.steps import known_array
from jaxte.frontends.jaxpr.plan.items import Plan
from jaxte.frontends.jaxpr.plan.moving import Wanted

_MOST = 64  # programs of one function, the oldest of which is forgotten: shapes in use are fewer


@dataclass(frozen=True)
class Fingerprint:
    """What the plan of a call depends on: its jaxpr, the constants in it that are known, and what may hide in rules.

    Attributes:
        rest: the other arguments as text, which rules of derivatives may depend on without being seen in the jaxpr.
    """

    jaxpr: Any
    constants: bytes
    rest: str
    x64: bool

    @cached_property
    def rough(self) -> Hashable:
        """Equal for equal programs."""
        own = self.jaxpr
        types = tuple(str(v.aval) for v in (*own.invars, *own.constvars, *own.outvars))
        return types, tuple(e.primitive for e in own.eqns), self.constants, self.rest, self.x64

    @cached_property
    def text(self) -> str:
        return str(self.jaxpr)


def fingerprint(closed: Any, rest: str) -> Fingerprint:
    """That of a call which was traced to ``closed``."""
    digest = hashlib.sha1(usedforsecurity=False)
    for const in closed.consts:
        known = known_array(const)
        digest.update(b"-" if known is None else known.tobytes())
    return Fingerprint(closed.jaxpr, digest.digest(), rest, x64_enabled())


class KeptPlans:
    """Plans by fingerprint and by the arguments that they are derived by; after many they are made anew."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, list[tuple[Fingerprint, Wanted, Plan]]] = {}

    def find(self, own: Fingerprint, wanted: Wanted = None) -> Plan | None:
        """The plan of a program by ``wanted``, or by all arguments."""
        found = dict(self._alike(own))
        return found.get(None) or found.get(wanted)

    def keep(self, own: Fingerprint, plan: Plan, wanted: Wanted = None) -> None:
        """From now on ``plan`` is that of the program."""
        if len(self._kept) >= _MOST:
            self._kept.clear()
        others = [
            entry
            for entry in self._kept.get(own.rough, ())
            if (entry[0].text, entry[1]) != (own.text, wanted)
        ]
        self._kept[own.rough] = [*others, (own, wanted, plan)]

    def _alike(self, own: Fingerprint) -> Iterator[tuple[Wanted, Plan]]:
        for other, wanted, plan in self._kept.get(own.rough, ()):
            if other.text == own.text:
                yield wanted, plan
