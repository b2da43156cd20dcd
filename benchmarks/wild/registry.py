"""The list of losses: each with the library or the thread that it is from, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A loss of arrays, and the arrays: it is differentiated by all arguments whose leaves are floats."""


@dataclass(frozen=True)
class Loss:
    """A loss as somebody writes it.

    Attributes:
        name: as in the table.
        source: the library, or the thread as ``owner/repository#number``.
        what: in a few words.
        make: the loss and its arguments.
    """

    name: str
    source: str
    what: str
    make: Callable[[], Call]

    @property
    def is_thread(self) -> bool:
        return "#" in self.source


LOSSES: dict[str, Loss] = {}


def loss(source: str, what: str) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Enters a function that makes a loss and its arguments, by its name."""

    def enter(make: Callable[[], Call]) -> Callable[[], Call]:
        assert make.__name__ not in LOSSES, make.__name__
        LOSSES[make.__name__] = Loss(make.__name__, source, what, make)
        return make

    return enter


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> jax.Array:
    """Normal numbers in float32."""
    return jnp.asarray(scale * np.random.default_rng(seed).standard_normal(shape), "float32")


def uniform(*shape: int, seed: int = 0, low: float = 0.0, high: float = 1.0) -> jax.Array:
    """Uniform numbers in float32."""
    return jnp.asarray(np.random.default_rng(seed).uniform(low, high, shape), "float32")


def integers(high: int, *shape: int, seed: int = 0) -> jax.Array:
    """Integers below ``high``."""
    return jnp.asarray(np.random.default_rng(seed).integers(0, high, shape), "int32")
