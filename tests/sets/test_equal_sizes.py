"""Spellings of one size: they are told to be equal, and are written alike. What the sizes are is counted in numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jaxte as te
from jaxte.sets.index_forms import written_size
from jaxte.sets.intervals import same

Size = Callable[[Any, Any], Any]
NUMBERS = [(m, n) for m in range(1, 26) for n in (1, 2, 3, 4, 5, 6, 7, 12)]


def greatest(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) else te.maximum(a, b)


WRITTEN_ALIKE: list[tuple[Size, Size]] = [
    (lambda m, n: (m + m % 2) // 2 + m - (m + 1) // 2, lambda m, n: m),
    (lambda m, n: (m + m % 2) // 2, lambda m, n: (m + 1) // 2),
    (lambda m, n: (m - 1) // 2 + 1, lambda m, n: (m + m % 2) // 2),
    (lambda m, n: m - (m + 1) // 2, lambda m, n: m // 2),
    (lambda m, n: -m // 2, lambda m, n: -((m + 1) // 2)),
    (lambda m, n: m % 3, lambda m, n: m - 3 * (m // 3)),
    (lambda m, n: (m + 5) // 3, lambda m, n: (m + 2) // 3 + 1),
    (lambda m, n: (m + m % 3) // 3, lambda m, n: 2 * m // 3 - m // 3),
    (lambda m, n: m // 2 % 3, lambda m, n: m // 2 - 3 * (m // 6)),
    (lambda m, n: (m + n) // 3, lambda m, n: (n + m) // 3),
    (lambda m, n: (m + m % 4) // 6, lambda m, n: (m + m // 4) // 3 - m // 4),
    (lambda m, n: (m + n + 1) // 2 + (m + n) // 2, lambda m, n: m + n),
    (lambda m, n: (m * n + m * n % 2) // 2, lambda m, n: m * n - m * n // 2),  # isl knows no products
]
EQUAL: list[tuple[Size, Size]] = [
    (lambda m, n: m // 3 + (m + 1) // 3 + (m + 2) // 3, lambda m, n: m),
    (lambda m, n: m - (m + 2) // 3 - (m + 1) // 3, lambda m, n: m // 3),
    (lambda m, n: m // 4 + (m + 2) // 4, lambda m, n: m // 2),
    (lambda m, n: (m + -m % 4) // 4, lambda m, n: (m + 3) // 4),
    (lambda m, n: greatest(m // 2, m - m // 2), lambda m, n: (m + 1) // 2),
    (lambda m, n: greatest(m, m + 1), lambda m, n: m + 1),
]
DIFFERENT: list[tuple[Size, Size]] = [
    (lambda m, n: m // 2, lambda m, n: (m + 1) // 2),
    (lambda m, n: m // 2 * 2, lambda m, n: m),
    (lambda m, n: (m + m % 3) // 3, lambda m, n: (m + 2) // 3),
    (lambda m, n: (m + 3) // 4, lambda m, n: m // 4 + 1),
    (lambda m, n: (2 * m + 1) // 3 + m // 3, lambda m, n: m),
    (lambda m, n: m // 2 + n // 2, lambda m, n: (m + n) // 2),
    (lambda m, n: (m + m % 4) // 6, lambda m, n: (m + m // 2) // 3 - m // 4),
    (lambda m, n: m * n // 2, lambda m, n: m * n - m * n // 2),
]


def numbers(size: Size) -> list[int]:
    return [size(m, n) for m, n in NUMBERS]


def symbols(pair: tuple[Size, Size]) -> list[Any]:
    m, n = te.var("m"), te.var("n")
    return [size(m, n) for size in pair]


@pytest.mark.parametrize("pair", [*WRITTEN_ALIKE, *EQUAL])
def test_equal_sizes_are_the_same(pair: tuple[Size, Size]) -> None:
    assert numbers(pair[0]) == numbers(pair[1])
    a, b = symbols(pair)
    assert same(a, b)
    assert same(a + 1, 1 + b)


@pytest.mark.parametrize("pair", WRITTEN_ALIKE)
def test_equal_sizes_are_written_alike(pair: tuple[Size, Size]) -> None:
    a, b = map(written_size, symbols(pair))
    assert a is b


@pytest.mark.parametrize("pair", DIFFERENT)
def test_different_sizes_are_told_apart(pair: tuple[Size, Size]) -> None:
    assert numbers(pair[0]) != numbers(pair[1])
    a, b = symbols(pair)
    assert not same(a, b)
    assert not same(b, a)
    assert written_size(a) is not written_size(b)
