"""Sparse Jacobians and Hessians of random JAX functions beside those of plain JAX: arrays with an entry for each pair, diagonals, and the diagonal alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from tests.frontends.random_functions import RandomFunction
from tests.frontends.random_steps import Array


class RandomArrays(RandomFunction):
    """The last array that a random function makes, in place of a sum over all of them."""

    def of(self, x: Array) -> Array:
        own, y = np.random.default_rng(self.seed), self.arguments()[1]
        values = [x, y]
        for _ in range(self.steps):
            made = self._made(own, values[own.integers(len(values))], values)
            if made is not None and made.size <= 60 and made.ndim <= 3 and jnp.isrealobj(made):
                values.append(made)
        return values[-1] if len(values) > 2 else x


def check_sparse(seed: int) -> dict[str, Any]:
    """Jacobians in each shape that is kept, and a Hessian.

    Raises:
        AssertionError: an element differs from JAX's, or one that is not kept is not zero.
    """
    f = RandomArrays(seed, steps=3, shapes=((4, 3), (4, 3)))
    x, of = f.arguments()[0], lambda x: f.of(x)
    dense = np.asarray(jax.jacobian(of)(x))
    if not np.isfinite(dense).all():
        return {"empty": True}
    jacobian = te.jacobian(of, sparse=True)
    _assert_is(jacobian(x).todense(), dense, f"Jacobian, seed {seed}")
    rows = int(np.prod(dense.shape[: dense.ndim - x.ndim]))
    square = dense.reshape(rows, x.size)
    if rows == x.size:
        _assert_is(np.ravel(te.diagonal(of)(x)), np.diagonal(square), f"diagonal, seed {seed}")
    if dense.ndim == 2:
        found = te.jacobian(of, sparse="diagonals")(x)
        made = np.zeros_like(square)
        for apart, elements in found.items():
            for row, element in enumerate(np.asarray(elements)):
                if 0 <= row + apart < x.size:
                    made[row, row + apart] = element
        _assert_is(made, square, f"diagonals, seed {seed}")
    energy = lambda x: jnp.sum(jnp.sin(of(x)))  # noqa: E731
    hessian = np.asarray(jax.hessian(energy)(x))
    if np.isfinite(hessian).all():
        _assert_is(te.hessian(energy, sparse=True)(x).todense(), hessian, f"Hessian, seed {seed}")
    return {"way": jacobian.way(x)}


def _assert_is(found: Any, expected: np.ndarray, what: str) -> None:
    digits = 1e-9 if expected.dtype == "float64" else 1e-4
    bound = digits * max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=digits, atol=bound, err_msg=what)
