"""Where random definitions take their choices from: hypothesis, which shrinks, or the numbers that a seed gives."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices(Protocol):
    """Two kinds of choices; the simplest are the first option and the least number."""

    def number(self, low: int, high: int) -> int: ...

    def among(self, options: Sequence[T]) -> T: ...


class Drawn:
    """Choices of hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def among(self, options: Sequence[T]) -> T:
        return self._draw(st.sampled_from(options))


class Seeded:
    """The same choices for the same seed in every process, at a tenth of what hypothesis takes for them."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def among(self, options: Sequence[T]) -> T:
        return self._random.choice(options)


def extents(
    choices: Choices, most_axes: int, points: int, least: int = 1, longest: int = 6
) -> tuple[int, ...]:
    """A random shape of up to ``points`` elements."""
    shape: list[int] = []
    for _ in range(choices.number(0, most_axes)):
        shape.append(choices.number(least, max(least, min(longest, points // max(1, math.prod(shape))))))
    return tuple(shape)
