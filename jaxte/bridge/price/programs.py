"""What whole programs do, whose seconds by the paces of a platform are their price; and a backward pass beside JAX's transpose of the same forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from jaxte.bridge.price.amounts import (
    Amounts,
    computed_once,
    moved_whole,
    of_loop,
    of_routine,
    seconds,
    times,
    total,
)
from jaxte.bridge.price.entered import operations
from jaxte.bridge.price.loops import loops
from jaxte.bridge.price.operations import APART, FUSED, Operation
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import filled_in
from jaxte.lower.cost.platforms import platform_of
from jaxte.tensors.tensor import Tensor

_TURNS = 10  # of a loop whose end is data


def amounts_of(closed: Any, platform: str = "cpu", by_rows: bool = False) -> Amounts:
    """What a jaxpr does, with the bodies of its loops as often as they run.

    Args:
        by_rows: whether what JAX's transpose of a loop adds to a row of an array, all of that in each step, counts as the row alone: a loop that is
            handed the rows of what it reads one by one hands them back so.
    """
    order = operations(closed, platform, by_rows)
    return total(
        [*map(of_loop, loops(order)), *(a for own in order for a in _others(own, platform, by_rows))]
    )


def once(closed: Any, platform: str = "cpu") -> Amounts:
    """What a jaxpr does with each function computed once, which is least: loops may compute what several of them read again. Of the rest, what every
    program for the same does that reads what this one reads: sums, large products and dense convolutions, sorts, transforms, scatters.
    """
    found: list[Amounts] = []
    for own in operations(closed, platform):
        if own.name == "scan":
            found.append(times(once(own.params["jaxpr"], platform), own.params["length"]))
        elif not own.is_known and own.outputs:
            found.append(computed_once(own))
    return total(found)


def _others(own: Operation, platform: str, by_rows: bool) -> Iterator[Amounts]:
    """What an operation does that is no part of a loop."""
    match own.name:
        case "scan":
            yield from _repeated(amounts_of(own.params["jaxpr"], platform, by_rows), own.params["length"])
            yield moved_whole(own)
        case "while":
            yield from _repeated(amounts_of(own.params["body_jaxpr"], platform, by_rows), _TURNS)
        case "cond":
            branches = [amounts_of(body, platform, by_rows) for body in own.params["branches"]]
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


def with_gradient(f: Callable[..., Any], moving: Sequence[int]) -> Callable[..., Any]:
    """The numbers with a derivative that ``f`` returns, and what flows back from ones at them to the arguments at ``moving``."""

    def both(*args: Any) -> Any:
        def of_moving(*own: Any) -> Any:
            return [r for r in jax.tree.leaves(f(*filled_in(args, moving, own))) if is_inexact(str(r.dtype))]

        values, pull = jax.vjp(of_moving, *(args[n] for n in moving))
        return values, pull([jax.numpy.ones_like(v) for v in values])

    return both


Emitted = Callable[..., Sequence[Any]]
Flow = tuple[tuple[int, ...], tuple[int, ...]]
"""The positions of the inputs that adjoints flow to, and of the results that they come from."""

AHEAD = 1.15  # how many times as long plain JAX has to take: estimates are not nearer


@dataclass(frozen=True)
class Beside:
    """Seconds by the platform's estimate: of what was derived or emitted, and of what plain JAX does in its place.

    Attributes:
        own: what is emitted.
        plain: what JAX does.
        margin: how many times as long JAX has to take for the emitted code to be ahead.
        what: what takes ``own``.
        how: what takes ``plain``.
    """

    own: float
    plain: float
    margin: float = 1.0
    what: str = "value and gradient"
    how: str = "with JAX's transpose of the same forward pass"

    @property
    def is_ahead(self) -> bool:
        return self.margin * self.own <= self.plain

    def __str__(self) -> str:
        takes = "take" if self.what == "value and gradient" else "takes"
        return (
            f"{self.what} {takes} {1e3 * self.own:.2g} ms by estimate, {self.how} {1e3 * self.plain:.2g} ms"
        )


def beside_transpose(
    forward: tuple[Emitted, Sequence[Tensor], Flow],
    backward: tuple[Emitted, Sequence[Tensor]],
    platform: str,
) -> Beside | None:
    """Both prices; None where sizes are symbols, and on platforms of which no paces are measured.

    Args:
        forward: the emitted function, what it takes, and which of its results are differentiated by which of its inputs.
        backward: the emitted function, and what it takes.
    """
    run, inputs, (moving, heads) = forward
    given, residuals = _structs(inputs), _structs(backward[1])
    if given is None or residuals is None:
        return None

    def own(*arrays: Any) -> list[Any]:
        found = run(*arrays)
        return [found[n] for n in heads]

    plain = with_gradient(own, moving)
    return _beside([(run, given), (backward[0], residuals)], (plain, given), platform)


def beside_whole(emitted: Emitted, whole: Emitted, inputs: Sequence[Tensor], platform: str) -> Beside | None:
    """The prices of a function and of the same definitions computed from whole arrays; None as above.

    Args:
        emitted, whole: both as emitted code.
        inputs: what they take.
    """
    given = _structs(inputs)
    found = None if given is None else _beside([(emitted, given)], (whole, given), platform)
    return (
        None
        if found is None
        else replace(found, margin=AHEAD, what="it", how="from whole arrays, as plain JAX does,")
    )


def _beside(
    own: Sequence[tuple[Emitted, Sequence[Any]]], plain: tuple[Emitted, Sequence[Any]], platform: str
) -> Beside | None:
    paces = platform_of(platform).paces
    if paces is None:
        return None
    first, second = (
        seconds(
            total(amounts_of(jax.make_jaxpr(f)(*given), platform, by_rows) for f, given in programs), paces
        )
        for programs, by_rows in ((own, False), ([plain], True))
    )
    return Beside(first, second)


def _structs(tensors: Sequence[Tensor]) -> list[jax.ShapeDtypeStruct] | None:
    """What tells JAX of ``tensors``; None where a size is a symbol."""
    if not all(isinstance(e, int) for t in tensors for e in t.shape):
        return None
    return [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in tensors]
