"""What a case of the grid of operators is: makers of random arguments, the call, and the same in plain JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte import ops

Make = Callable[[np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Case:
    """An operator on arrays (or Tensors) of these makers, beside its reference.

    Attributes:
        smooth: whether second derivatives are worth comparing.
        light: whether quick runs leave out what compiles the emitted code (JAXTE_HYPOTHESIS=full leaves out nothing).
    """

    name: str
    run: Callable[..., Any]
    reference: Callable[..., Any]
    makers: tuple[Make, ...]
    smooth: bool = True
    light: bool = False

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [make(rng) for make in self.makers]


CASES: dict[str, Case] = {}


def normal(*shape: int) -> Make:
    return lambda rng: rng.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> Make:
    return lambda rng: rng.uniform(0.5, 2.0, size=shape).astype(np.float32)


def uniform(lo: float, hi: float, *shape: int) -> Make:
    return lambda rng: rng.uniform(lo, hi, size=shape).astype(np.float32)


def integers(lo: int, hi: int, *shape: int) -> Make:
    return lambda rng: rng.integers(lo, hi, size=shape).astype(np.int32)


def booleans(*shape: int) -> Make:
    return lambda rng: rng.random(size=shape) < 0.6


def distinct(*shape: int) -> Make:
    """Numbers that are well apart from each other and from 0, in random order."""
    count = int(np.prod(shape))
    return lambda rng: (rng.permutation(count).reshape(shape) * 0.1 - count * 0.05 + 0.03).astype(np.float32)


def case(
    name: str,
    run: Callable[..., Any],
    reference: Callable[..., Any],
    *makers: Make,
    smooth: bool = True,
    light: bool = False,
) -> None:
    """Registers a case; the part of its name before a dot is the operator."""
    assert name not in CASES and hasattr(ops, name.partition(".")[0]), name
    CASES[name] = Case(name, run, reference, makers, smooth, light)
