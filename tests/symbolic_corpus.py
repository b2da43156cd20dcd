"""The functions of benchmarks/corpus and benchmarks/cases with symbols for the sizes that their files give as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from harness.case import Case
from harness.inputs import draw

Extent = tuple[int, dict[str, int]]  # a number, and the factor of each size


def shapes(case: Case, sizes: dict[str, int]) -> list[tuple[int, ...]] | None:
    """The shapes of the arguments; None where the file draws none for these sizes."""
    try:
        return [tuple(a.shape) for a in draw(case.inputs(**sizes))]
    except (ValueError, IndexError, TypeError, ZeroDivisionError):
        return None


def extents(case: Case) -> tuple[list[list[Extent]], list[str]]:
    """Each extent of the arguments as a linear form of the sizes in which it is one, and these sizes."""
    base = dict(case.sizes["tiny"])
    own = shapes(case, base)
    assert own is not None
    found: list[list[Extent]] = [[(extent, {}) for extent in shape] for shape in own]
    sizes = []
    for name, value in base.items():
        near, far = (shapes(case, {**base, name: value + more}) for more in (2, 6))
        steps = _steps(own, near, far)
        if steps is None:
            continue
        sizes.append(name)
        for n, row in enumerate(steps):
            for axis, step in enumerate(row):
                if step:
                    number, factors = found[n][axis]
                    found[n][axis] = number - step * value, {**factors, name: step}
    return found, sizes


def _steps(
    own: Sequence[Any], near: Sequence[Any] | None, far: Sequence[Any] | None
) -> list[list[int]] | None:
    """What each extent grows by with one size; None where that is not the same everywhere, or nothing grows."""
    if near is None or far is None or any(len(a) != len(b) for a, b in zip(own, near, strict=True)):
        return None
    steps = [[(b - a) // 2 for a, b in zip(x, y, strict=True)] for x, y in zip(own, near, strict=True)]
    expected = [[a + 6 * s for a, s in zip(x, row, strict=True)] for x, row in zip(own, steps, strict=True)]
    return steps if any(map(any, steps)) and expected == [list(s) for s in far] else None


def symbolic(case: Case, least: int) -> list[jax.ShapeDtypeStruct] | None:
    """The arguments of a case with symbols of ``jax.export`` for its sizes, each at least ``least``; None where no size is one."""
    found, sizes = extents(case)
    if not sizes:
        return None
    dims = jax.export.symbolic_shape(",".join(sizes), constraints=[f"{size} >= {least}" for size in sizes])
    of = dict(zip(sizes, dims, strict=True))
    rows = [
        tuple(
            number + sum(k * of[s] for s, k in factors.items()) if factors else number
            for number, factors in row
        )
        for row in found
    ]
    arrays = draw(case.inputs_at("tiny"))
    return [jax.ShapeDtypeStruct(shape, a.dtype) for shape, a in zip(rows, arrays, strict=True)]
