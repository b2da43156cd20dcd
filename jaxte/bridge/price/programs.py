"""What whole programs do, whose seconds by the paces of a platform are their price; and a backward pass beside JAX's transpose of the same forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from jaxte.bridge.price.amounts import Amounts, of_loop, of_routine, seconds, times, total
from jaxte.bridge.price.kinds import APART, FUSED
from jaxte.bridge.price.loops import loops
from jaxte.bridge.price.operations import Operation, operations
from jaxte.lang.dtypes import is_float
from jaxte.lang.identity import filled_in
from jaxte.lower.cost.platforms import platform_of
from jaxte.tensors.tensor import Tensor

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


def with_gradient(f: Callable[..., Any], moving: Sequence[int]) -> Callable[..., Any]:
    """The floats that ``f`` returns, and what flows back from ones at them to the arguments at ``moving``."""

    def both(*args: Any) -> Any:
        def of_moving(*own: Any) -> Any:
            return [r for r in jax.tree.leaves(f(*filled_in(args, moving, own))) if is_float(str(r.dtype))]

        values, pull = jax.vjp(of_moving, *(args[n] for n in moving))
        return values, pull([jax.numpy.ones_like(v) for v in values])

    return both


Emitted = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Beside:
    """Seconds of the value and the gradient by the platform's estimate: of what was derived, and of what ``jax.vjp`` makes of the forward pass."""

    derived: float
    transposed: float

    @property
    def is_ahead(self) -> bool:
        return self.derived <= self.transposed

    def __str__(self) -> str:
        return (
            f"value and gradient take {1e3 * self.derived:.2g} ms by estimate, with JAX's transpose of the same forward pass "
            f"{1e3 * self.transposed:.2g} ms"
        )


def beside_transpose(
    forward: tuple[Emitted, Sequence[Tensor], Sequence[int]],
    backward: tuple[Emitted, Sequence[Tensor]],
    platform: str,
) -> Beside | None:
    """Both prices; None where sizes are symbols, and on platforms of which no paces are measured.

    Args:
        forward: the emitted function, what it takes, and the positions of its results that are differentiated.
        backward: the emitted function, and what it takes.
    """
    paces = platform_of(platform).paces
    run, inputs, heads = forward
    if paces is None or not all(isinstance(e, int) for t in (*inputs, *backward[1]) for e in t.shape):
        return None
    given, residuals = (
        [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in own] for own in (inputs, backward[1])
    )
    moving = [n for n, t in enumerate(inputs) if is_float(t.dtype)]
    plain = with_gradient(lambda *arrays: [run(*arrays)[n] for n in heads], moving)
    derived = (jax.make_jaxpr(run)(*given), jax.make_jaxpr(backward[0])(*residuals))
    return Beside(
        seconds(total(amounts_of(own, platform) for own in derived), paces),
        seconds(amounts_of(jax.make_jaxpr(plain)(*given), platform), paces),
    )
