"""The list of losses: each with the topic that it is from, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

Call = tuple[Callable[..., Any], tuple[Any, ...]]
Maker = Callable[[np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Loss:
    """A loss of arrays, in the spelling that comes first.

    Attributes:
        topic: the module that it stands in.
        makes: what makes its arguments, in order.
    """

    f: Callable[..., Any]
    topic: str
    makes: tuple[Maker, ...]

    def __call__(self) -> Call:
        """The loss and its arguments, the same ones each time."""
        rng = np.random.default_rng(0)
        return self.f, tuple(jnp.asarray(make(rng)) for make in self.makes)


LOSSES: dict[str, Loss] = {}


def case(*makes: Maker) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a loss with its arguments, each made by a generator of random numbers."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        assert f.__name__ not in LOSSES, f.__name__
        LOSSES[f.__name__] = Loss(f, f.__module__.rpartition(".")[2], makes)
        return f

    return enter


def normal(*shape: int, scale: float = 1.0) -> Maker:
    return lambda rng: (scale * rng.normal(size=shape)).astype("float32")


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Maker:
    return lambda rng: rng.uniform(low, high, shape).astype("float32")


def integers(high: int, *shape: int) -> Maker:
    return lambda rng: rng.integers(0, high, shape).astype("int32")
