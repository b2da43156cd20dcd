"""What a program does, all of it, whose seconds by the paces of a platform are its price."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxte.bridge.price.amounts import Amounts, of_loop, of_routine, times, total
from jaxte.bridge.price.kinds import APART, FUSED
from jaxte.bridge.price.loops import loops
from jaxte.bridge.price.operations import Operation, operations

_TURNS = 10  # of a loop whose end is data


def amounts_of(closed: Any, platform: str = "cpu") -> Amounts:
    """What a jaxpr does, with the bodies of its loops as often as they run."""
    order = operations(closed, platform)
    return total([*map(of_loop, loops(order)), *(a for own in order for a in _others(own, platform))])


def _others(own: Operation, platform: str) -> Iterator[Amounts]:
    """What an operation does that is no part of a loop."""
    match own.name:
        case "scan":
            yield from _repeated(amounts_of(own.params["jaxpr"], platform), own.params["length"])
            yield {"moved": float(sum(a.bytes for a in (*own.inputs, *own.outputs)))}
        case "while":
            yield from _repeated(amounts_of(own.params["body_jaxpr"], platform), _TURNS)
        case "cond":
            branches = [amounts_of(body, platform) for body in own.params["branches"]]
            names = dict.fromkeys(name for branch in branches for name in branch)
            yield {name: max(branch.get(name, 0.0) for branch in branches) for name in names}
        case _ if own.name not in FUSED and own.name != APART:
            yield of_routine(own)


def _repeated(body: Amounts, turns: float) -> Iterator[Amounts]:
    """A body in a loop, where it is started without a thread."""
    inside = times(body, turns)
    started = inside.pop("start", 0.0)
    yield inside
    yield {"turn": turns, "step": started}
