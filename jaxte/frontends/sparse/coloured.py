"""The values of a Jacobian whose pattern is known: columns that share no row are pushed forward together, or rows pulled back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.frontends.sparse.pattern import Pattern


@dataclass(frozen=True, eq=False)
class Coloured:
    """How the elements of a Jacobian are taken from products with a few vectors.

    Attributes:
        rows, columns: of each element, sorted.
        colours: of each column, or of each row where these are pulled back.
        pushes: whether columns are coloured.
    """

    rows: np.ndarray
    columns: np.ndarray
    colours: np.ndarray
    pushes: bool

    @property
    def count(self) -> int:
        """How many vectors are pushed forward or pulled back."""
        return int(self.colours.max(initial=-1)) + 1

    def values(self, f: Callable[[Any], Any], x: Any) -> Any:
        """The elements of the Jacobian of ``f`` at ``x``."""
        own, other = (self.columns, self.rows) if self.pushes else (self.rows, self.columns)
        seeds = (np.arange(self.count)[:, None] == self.colours[None]).astype(np.float32)
        if self.pushes:
            y, push = jax.linearize(f, x)
            given = jnp.asarray(seeds, x.dtype).reshape(self.count, *x.shape)
            found = jax.vmap(push)(given).reshape(self.count, -1)
        else:
            y, pull = jax.vjp(f, x)
            given = jnp.asarray(seeds, y.dtype).reshape(self.count, *y.shape)
            found = jax.vmap(lambda h: pull(h)[0])(given).reshape(self.count, -1)
        return found.reshape(-1)[self.colours[own] * (found.shape[1]) + other]


def coloured(pattern: Pattern) -> Coloured:
    """The colours of a Jacobian with this pattern: of its columns, or of its rows where that takes fewer vectors."""
    rows, columns = pattern.pairs
    fullest = max(int(np.bincount(rows).max(initial=0)), 1)  # as many vectors at least
    forward = Coloured(rows, columns, _colours(rows, columns, pattern.columns), True)
    if forward.count <= fullest or int(np.bincount(columns).max(initial=0)) >= forward.count:
        return forward
    back = Coloured(rows, columns, _colours(columns, rows, prod(pattern.shape)), False)
    return back if back.count < forward.count else forward


def _colours(shared: np.ndarray, own: np.ndarray, size: int) -> np.ndarray:
    """A colour for each of ``own``, such that no two with one of ``shared`` in common have the same; greedy, in their order."""
    colours = np.zeros(size, np.int64)
    by_own = np.argsort(own, kind="stable")
    begin = np.searchsorted(own[by_own], np.arange(size + 1))
    used: list[int] = [0] * (int(shared.max(initial=-1)) + 1)  # a bit for each colour
    listed = shared[by_own].tolist()
    for n in range(size):
        mine = listed[begin[n] : begin[n + 1]]
        taken = 0
        for place in mine:
            taken |= used[place]
        colour = (~taken & (taken + 1)).bit_length() - 1
        for place in mine:
            used[place] |= 1 << colour
        colours[n] = colour if mine else 0
    return colours
