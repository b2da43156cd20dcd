"""Which elements of an input each element of an array depends on: pairs of positions, kept as sorted numbers.

The entries of a Jacobian: of a function that is one definition from index notation, of others column by column.

A JAX function as one definition has its pattern and its elements from index notation. Where only the pattern is known, columns that share no row
are pushed forward together, or rows pulled back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.bridge.compiled.sparse import SparseJacobian, sparse_jacobian
from jaxte.bridge.primitive.lazy import BUILDING
from jaxte.derivatives.reverse import differentiate
from jaxte.frontends.jaxpr.equations.steps import Refused, Slot, needed, slot_of
from jaxte.frontends.jaxpr.plan.build import Builder
from jaxte.frontends.jaxpr.plan.plan import WITH_RULE, closed_of, steps_of
from jaxte.lang.errors import JaxteError


@dataclass(frozen=True, eq=False)
class Pattern:
    """Of an array of ``shape``, by an input of ``columns`` elements.

    Attributes:
        keys: ``element * columns + column`` of each pair, sorted and different.
    """

    shape: tuple[int, ...]
    columns: int
    keys: np.ndarray

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Elements and columns, by elements."""
        element, column = np.divmod(self.keys, max(self.columns, 1))
        return element, column

    @property
    def is_empty(self) -> bool:
        return not self.keys.size

    def moved(self, shape: Sequence[int], to: np.ndarray, source: np.ndarray) -> Pattern:
        """That of an array whose element ``to[n]`` depends on element ``source[n]`` of this one; each may come several times."""
        element, column = self.pairs
        begin, end = np.searchsorted(element, source), np.searchsorted(element, source, side="right")
        count = end - begin
        place = np.repeat(begin - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(
            count.sum()
        )
        keys = np.repeat(to.astype(np.int64), count) * self.columns + column[place]
        return Pattern(tuple(shape), self.columns, np.unique(keys))

    def read_at(self, positions: np.ndarray) -> Pattern:
        """That of an array that holds the elements at ``positions`` of this one; what is negative is from elsewhere."""
        flat = positions.reshape(-1)
        to = np.flatnonzero(flat >= 0)
        return self.moved(positions.shape, to, flat[to])

    def everywhere(self, shape: Sequence[int]) -> Pattern:
        """That of an array each of whose elements depends on all of this one."""
        columns = np.unique(self.pairs[1])
        keys = (np.arange(prod(shape), dtype=np.int64)[:, None] * self.columns + columns).reshape(-1)
        return Pattern(tuple(shape), self.columns, keys)


def identity(shape: Sequence[int]) -> Pattern:
    """That of the input itself."""
    size = prod(shape)
    return Pattern(tuple(shape), size, np.arange(size, dtype=np.int64) * (size + 1))


def nothing(shape: Sequence[int], columns: int) -> Pattern:
    """That of an array that does not depend on the input."""
    return Pattern(tuple(shape), columns, np.zeros(0, np.int64))


def union(patterns: Sequence[Pattern]) -> Pattern:
    """That of an array each of whose elements depends on those of all of ``patterns``, of one shape."""
    first = patterns[0]
    if len(patterns) == 1:
        return first
    return Pattern(first.shape, first.columns, np.unique(np.concatenate([p.keys for p in patterns])))


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
            found, width = jax.vmap(push)(given), y.size
        else:
            y, pull = jax.vjp(f, x)
            given = jnp.asarray(seeds, y.dtype).reshape(self.count, *y.shape)
            found, width = jax.vmap(lambda h: pull(h)[0])(given), x.size
        return found.reshape(-1)[self.colours[own] * width + other]


def is_pulled(closed: Any) -> bool:
    """Whether a function in ``closed`` has a reverse pass of its own, so that nothing can be pushed forward."""
    return any(
        eqn.primitive.name == WITH_RULE or any(map(is_pulled, closed_of(eqn))) for eqn in closed.jaxpr.eqns
    )


def coloured(pattern: Pattern, pulled: bool = False) -> Coloured:
    """The colours of a Jacobian with this pattern: of its columns, or of its rows where that takes fewer vectors, or they can only be ``pulled`` back."""
    rows, columns = pattern.pairs
    if pulled:
        return Coloured(rows, columns, _colours(columns, rows, prod(pattern.shape)), False)
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


Arrays = Sequence[Any]


def defined(
    closed: Any, number: int, second: bool
) -> tuple[SparseJacobian, Callable[[Arrays], Arrays]] | None:
    """The derivative of the only result of ``closed`` by its argument ``number``, and the arrays that its values take of the arguments.

    None where an equation has no index notation, or its derivative no pattern that positions tell.
    """
    slots, found = steps_of(closed)
    jaxpr = closed.jaxpr
    result = slot_of(jaxpr.outvars[0], slots)
    builder = Builder()
    try:
        with BUILDING:
            x = builder.value(slots[jaxpr.invars[number]]).tensor()
            (output,) = builder.run(needed([s for _, own in found for s in own], [result]), [result])
            if second:
                (output,) = differentiate(output, [x])
            matrix = sparse_jacobian(output, x)
    except (Refused, JaxteError):
        return None
    places: dict[Slot, int] = {slots[v]: n for n, v in enumerate((*jaxpr.invars, *jaxpr.constvars))}
    of_tensor = {tensor: slot for slot, tensor in builder.placeholders.items()}
    wanted = [of_tensor[t] for t in matrix.inputs]
    if any(slot not in places and slot.known is None for slot in wanted):
        return None

    def fed(arrays: Arrays) -> Arrays:
        given = (*arrays, *closed.consts)
        return [given[places[s]] if s in places else jnp.asarray(s.known) for s in wanted]

    return matrix, fed


def mixed_along(axis: int, moving: Sequence[Pattern], shape: tuple[int, ...]) -> Pattern:
    """Of what mixes all that stands along one axis."""
    lines = np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, 0).reshape(shape[axis], -1)
    to, source = np.indices((shape[axis], shape[axis])).reshape(2, -1)
    return union([p.moved(shape, lines[to].reshape(-1), lines[source].reshape(-1)) for p in moving])


def mixed_by_batch(moving: Sequence[Pattern], shape: tuple[int, ...], last: int) -> Pattern:
    """Of what is made of the ``last`` dimensions, for itself at each place of those before, which all operands have."""
    count = prod(moving[0].shape[:-last])
    parts = []
    for pattern in moving:
        own, made = pattern.size // count, prod(shape) // count
        batch, to, source = np.indices((count, made, own)).reshape(3, -1)
        parts.append(pattern.moved(shape, batch * made + to, batch * own + source))
    return union(parts)
