"""What a case draws its arrays from. Each function gives a recipe; ``draw`` makes the arrays, the same ones in every process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Rng = np.random.Generator


@dataclass(frozen=True)
class Input:
    """An array to be drawn."""

    make: Callable[[Rng], np.ndarray]


def normal(*shape: int, scale: float = 1.0) -> Input:
    """float32, standard normal times ``scale``."""
    return Input(lambda rng: (scale * rng.standard_normal(shape)).astype("float32"))


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Input:
    """float32 in [low, high)."""
    return Input(lambda rng: rng.uniform(low, high, shape).astype("float32"))


def integers(*shape: int, below: int) -> Input:
    """int32 in [0, below)."""
    return Input(lambda rng: rng.integers(0, below, shape).astype("int32"))


def one_hot(rows: int, classes: int) -> Input:
    """float32 rows with a single one."""
    return Input(lambda rng: np.eye(classes, dtype="float32")[rng.integers(0, classes, rows)])


def given(array: np.ndarray) -> Input:
    """An array that the case makes; integers as int32, others as float32."""
    dtype = "int32" if np.issubdtype(array.dtype, np.integer) else "float32"
    return Input(lambda rng: array.astype(dtype))


def draw(inputs: Sequence[Input], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [x.make(rng) for x in inputs]
