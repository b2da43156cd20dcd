"""Simulations of second order in time, with zeros around them: for ``tests/lower/mechanism_rows.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jaxte as te
from jaxte import Tensor

STEPS = 8
Element = Callable[..., Any]


def _at(u: Tensor) -> Element:
    """The elements of ``u``, zero beyond its edges."""

    def element(*at: Any) -> Any:
        inside = [(i >= 0) & (i < n) for i, n in zip(at, u.shape, strict=True)]
        for one in inside[1:]:
            inside[0] = inside[0] & one
        return te.select(inside[0], u[at], 0.0)

    return element


def _steps(u: Tensor, v: Tensor, of: Callable[[Tensor, Tensor], Element]) -> Tensor:
    fields = [u, v]
    for _ in range(STEPS):
        fields.append(te.compute(u.shape, of(*fields[-2:]), "u"))
    return fields[-1]


def membrane(u: Tensor, v: Tensor) -> Tensor:
    """Waves on a plane, of two speeds."""

    def step(a: Tensor, b: Tensor) -> Element:
        z = _at(b)
        return lambda i, j: (
            2 * b[i, j]
            - a[i, j]
            + te.select(i + j < 30, 0.1, 0.2)
            * (z(i - 1, j) + z(i + 1, j) + z(i, j - 1) + z(i, j + 1) - 4 * b[i, j])
        )

    return _steps(u, v, step)


def string(u: Tensor, v: Tensor) -> Tensor:
    """A stiff string, by five points, which loses a part of its speed in each step."""

    def step(a: Tensor, b: Tensor) -> Element:
        z = _at(b)
        return lambda i: (
            1.99 * b[i]
            - 0.99 * a[i]
            + 0.1 * (16 * (z(i - 1) + z(i + 1)) - z(i - 2) - z(i + 2) - 30 * b[i]) / 12
        )

    return _steps(u, v, step)


def sound(u: Tensor, v: Tensor) -> Tensor:
    """Pressure in a room, in which the upper layers are warmer."""

    def step(a: Tensor, b: Tensor) -> Element:
        z = _at(b)
        return lambda k, i, j: (
            2 * b[k, i, j]
            - a[k, i, j]
            + (0.1 + te.cast(k, u.dtype) / 100)
            * (
                z(k - 1, i, j)
                + z(k + 1, i, j)
                + z(k, i - 1, j)
                + z(k, i + 1, j)
                + z(k, i, j - 1)
                + z(k, i, j + 1)
                - 6 * b[k, i, j]
            )
        )

    return _steps(u, v, step)
