"""Whether a function under ``te.loops`` agrees with the same function on NumPy arrays, and its gradients with differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jaxte as te
from tests.agreement import pulled

_STEP = 1e-6


def run_python(fn: Callable[..., Any], args: Sequence[Any], changed: Sequence[int] | None = None) -> Any:
    """What ``fn`` returns on copies of NumPy arrays; without a ``return``, the arrays that it writes, or those at ``changed``."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    found = fn(*own)
    if found is None:
        if changed is None:
            changed = written(fn, args)
        found = tuple(own[n] for n in changed)
        found = found[0] if len(found) == 1 else found
    return found


def written(fn: Callable[..., Any], args: Sequence[Any]) -> list[int]:
    """Which of ``args`` the function writes."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    fn(*own)
    return [
        n
        for n, (a, b) in enumerate(zip(own, args, strict=True))
        if isinstance(a, np.ndarray) and not np.array_equal(a, b)
    ]


def leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(v, "float64") for v in (value if isinstance(value, tuple) else (value,))]


def assert_agrees(fn: Callable[..., Any], args: Sequence[Any], tolerance: float = 1e-9) -> None:
    """Values beside NumPy, and gradients along one direction beside central differences."""
    own = te.loops(fn)
    changed = written(fn, args)
    expected = run_python(fn, args, changed)
    rng = np.random.default_rng(7)
    heads = [rng.normal(size=np.shape(e)) for e in leaves(expected)]
    moving = [n for n, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]

    def of_moving(*given: Any) -> Any:
        filled = list(args)
        for n, value in zip(moving, given, strict=True):
            filled[n] = value
        return own(*filled)

    given = [args[n] for n in moving]
    head = tuple(heads) if isinstance(expected, tuple) else heads[0]
    found = pulled(of_moving, given, head)
    values = found[0] if isinstance(expected, tuple) else found[:1]
    for a, b in zip(values, leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, tolerance, tolerance)
    directions = [rng.normal(size=a.shape) for a in given]
    slope = sum(float((g * d).sum()) for g, d in zip(found[1:], directions, strict=True))

    def loss(step: float) -> float:
        filled = list(args)
        for n, value, d in zip(moving, given, directions, strict=True):
            filled[n] = value + step * d
        got = leaves(run_python(fn, filled, changed))
        return sum(float((h * v).sum()) for h, v in zip(heads, got, strict=True))

    difference = (loss(_STEP) - loss(-_STEP)) / (2 * _STEP)
    np.testing.assert_allclose(slope, difference, 1e-5, 1e-5)
