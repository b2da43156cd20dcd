"""The list of functions: each with the group that it belongs to and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Example:
    """A function to differentiate.

    Attributes:
        name: as in the table.
        group: "PDE", "filter", "image", "network", "sequence", "physics", "learning" or "library".
        function: returns arrays; the sum of their squares is differentiated with respect to all float arguments.
        make: the arguments, from a random generator.
    """

    name: str
    group: str
    function: Callable[..., Any]
    make: Callable[[np.random.Generator], tuple[Any, ...]]

    def arguments(self) -> tuple[Any, ...]:
        return jax.tree.map(jnp.asarray, self.make(np.random.default_rng(0)))

    def loss(self, *args: Any) -> Any:
        """One number of the results of the function."""
        return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(self.function(*args)))


EXAMPLES: dict[str, Example] = {}


def example(group: str, *shapes: Any, scale: float = 1.0, positive: bool = False) -> Callable[..., Any]:
    """Enters a function with normal arguments of ``shapes`` (in pytrees), or of what a function makes of a generator."""

    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        def array(shape: Any) -> Any:
            if callable(shape):
                return shape(rng)
            drawn = rng.normal(size=shape)
            return (scale * (np.abs(drawn) + 0.1 if positive else drawn)).astype("float32")

        is_leaf = lambda s: callable(s) or (isinstance(s, tuple) and all(isinstance(e, int) for e in s))  # noqa: E731
        return tuple(jax.tree.map(array, s, is_leaf=is_leaf) for s in shapes)

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        EXAMPLES[name] = Example(name, group, function, make)
        return function

    return enter
