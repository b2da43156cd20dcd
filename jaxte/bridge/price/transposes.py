"""The price of a backward pass beside that of JAX's transpose of the same forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from jaxte.bridge.price.amounts import seconds, total
from jaxte.bridge.price.programs import amounts_of
from jaxte.bridge.price.pulled import with_gradient
from jaxte.lang.dtypes import is_float
from jaxte.lower.cost.platforms import platform_of
from jaxte.tensors.tensor import Tensor

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
