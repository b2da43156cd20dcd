"""Random loops that read and write arrays at their counter, by a seed: rows before and after, partial rows, masks, sums, loops in loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

N, M = 7, 5
Array = jax.Array


@dataclass(frozen=True)
class RandomLoop:
    """A function of two N x M arrays; the same in every process."""

    seed: int
    __name__ = "random_loop"

    def __call__(self, x: Array, y: Array) -> Array:
        own = np.random.default_rng(self.seed)
        loops = [_loop(own) for _ in range(own.integers(1, 3))]
        carry: Any = (x * 0.5, y * 0.5, jnp.sum(x) * 0.1, jnp.sum(y, 0) * 0.1)
        for loop in loops:
            carry = loop(carry, x, y)
        return sum((jnp.sum(jnp.sin(c) * (n + 1)) for n, c in enumerate(carry)), start=jnp.zeros(()))

    def arguments(self) -> tuple[Array, Array]:
        rng = np.random.default_rng([self.seed, 1])
        return jnp.asarray(rng.normal(size=(N, M))), jnp.asarray(rng.normal(size=(N, M)))


Statement = Callable[[Any, Any, Any, Any], Any]


def _loop(own: np.random.Generator) -> Callable[[Any, Any, Any], Any]:
    """A loop of one to three statements."""
    statements = [_STATEMENTS[own.integers(len(_STATEMENTS))](own) for _ in range(own.integers(1, 4))]
    first, last = int(own.integers(0, 3)), N - int(own.integers(0, 3))
    down, kind = bool(own.integers(2)), own.integers(4)

    def run(carry: Any, x: Any, y: Any) -> Any:
        def body(i: Any, carry: Any) -> Any:
            for statement in statements:
                carry = statement(first + last - 1 - i if down else i, carry, x, y)
            return carry

        if kind:
            return lax.fori_loop(first, last, body, carry)

        def step(carry: Any, given: Any) -> Any:
            i, row = given
            return body(i, carry), jnp.sum(row * carry[2])

        carry, out = lax.scan(step, carry, (jnp.arange(first, last), x[first:last]), reverse=bool(down))
        return (carry[0], carry[1], carry[2] + jnp.sum(jnp.cos(out)), carry[3])

    return run


def _reads(own: np.random.Generator) -> Callable[[Any, Any, Any, Any], Any]:
    """A row that is read: of what is written or not, at the counter or beside it, or of all rows under a mask."""
    kind, by, which = own.integers(6), int(own.integers(-2, 3)), int(own.integers(4))
    side = int(own.integers(3))

    def read(i: Any, carry: Any, x: Any, y: Any) -> Any:
        array = (carry[0], carry[1], x, y)[which]
        if kind <= 2:
            return array[jnp.clip(i + by, 0, N - 1)]
        if kind == 3:
            return array[i - 1 if by < 0 else i]
        if kind == 4:
            mask = (jnp.arange(N) > i, jnp.arange(N) < i, jnp.arange(N) >= i + by)[side]
            return jnp.where(mask, x[:, 0], 0.0) @ array * 0.3
        rows = lax.dynamic_slice(array, (jnp.clip(i - 1, 0, N - 3), 0), (3, M))
        return jnp.sum(rows, 0) * 0.3

    return read


def _set_row(own: np.random.Generator) -> Statement:
    reads = [_reads(own) for _ in range(own.integers(1, 3))]
    target, by, part = int(own.integers(2)), int(own.integers(-1, 2)), int(own.integers(3))

    def statement(i: Any, carry: Any, x: Any, y: Any) -> Any:
        value = jnp.tanh(sum(r(i, carry, x, y) for r in reads) + 0.1 * carry[2])
        arrays = list(carry)
        place = jnp.clip(i + by, 0, N - 1) if by else i
        if part == 0:
            arrays[target] = arrays[target].at[place].set(value)
        elif part == 1:
            arrays[target] = arrays[target].at[place, 1:-1].set(value[: M - 2])
        else:
            arrays[target] = arrays[target].at[place].add(value)
        return tuple(arrays)

    return statement


def _add(own: np.random.Generator) -> Statement:
    read = _reads(own)
    kind = own.integers(3)

    def statement(i: Any, carry: Any, x: Any, y: Any) -> Any:
        row = read(i, carry, x, y)
        if kind == 0:
            return (carry[0], carry[1], carry[2] + jnp.sum(row), carry[3])
        if kind == 1:
            return (carry[0], carry[1], carry[2], carry[3] - jnp.cos(row))
        mask = jnp.where(jnp.arange(N) < i, x[:, 1], 0.0)
        return (carry[0] + mask[:, None] * row[None] * 0.2, *carry[1:])

    return statement


def _inner(own: np.random.Generator) -> Statement:
    """Elements of a row, one after the other."""
    left, up, target = int(own.integers(0, 2)), int(own.integers(-1, 2)), int(own.integers(2))

    def statement(i: Any, carry: Any, x: Any, y: Any) -> Any:
        def body(j: Any, array: Any) -> Any:
            beside = array[jnp.clip(i + up, 0, N - 1), j] + array[i, jnp.clip(j - left, 0, M - 1)]
            return array.at[i, j].set(jnp.sin(beside) * x[i, j] + y[j, 0])

        arrays = list(carry)
        arrays[target] = lax.fori_loop(0, M, body, arrays[target])
        return tuple(arrays)

    return statement


def _column(own: np.random.Generator) -> Statement:
    """A diagonal, or a column, of the other array."""
    diagonal, by = bool(own.integers(2)), int(own.integers(0, 2))

    def statement(i: Any, carry: Any, x: Any, y: Any) -> Any:
        j = jnp.minimum(i, M - 1)
        if diagonal:
            return (carry[0], carry[1].at[i, j].set(carry[1][i - by, j] * 0.5 + carry[0][i, 0]), *carry[2:])
        return (carry[0], carry[1].at[:, j].set(carry[1][:, j - by] * 0.5 + x[:, 0]), *carry[2:])

    return statement


_STATEMENTS = (_set_row, _set_row, _set_row, _add, _inner, _column)
