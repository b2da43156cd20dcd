"""Random JAX functions: chains of what raised primitives are written with, by a seed, and their gradients beside jax.grad's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from tests.frontends.random_steps import STEPS, Array

MOST_ELEMENTS = 400
_OPTIMIZED = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}


@dataclass(frozen=True)
class RandomFunction:
    """A function of two 6 x 5 arrays; the same in every process.

    Attributes:
        seed: says which.
        steps: how many arrays are tried to be made, one after the other.
        shapes: of the two arrays; where one has no elements, steps that plain JAX refuses are left out.
    """

    seed: int
    steps: int = 6
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((6, 5), (6, 5))

    __name__ = "random_function"

    def __call__(self, x: Array, y: Array) -> Array:
        own = np.random.default_rng(self.seed)
        values = [x, y]
        for _ in range(self.steps):
            source = values[own.integers(len(values))]
            made = self._made(own, source, values)
            if made is not None and made.size <= MOST_ELEMENTS and made.ndim <= 4:
                values.append(made)
        return sum(jnp.sum(jnp.tanh(v) * (n + 1)) for n, v in enumerate(values[2:] or values))

    def _made(self, own: np.random.Generator, source: Array, values: list[Array]) -> Array | None:
        """What one step makes; None for nothing, and where arrays without elements are what it cannot be made of."""
        step = STEPS[own.integers(len(STEPS))]
        if all(math.prod(shape) for shape in self.shapes):
            made = step(own, source, values)
            return made if made.size else None
        try:
            return step(own, source, values)
        except (ValueError, TypeError, ZeroDivisionError, IndexError):
            return None

    def arguments(self) -> tuple[Array, Array]:
        """Two arrays, in the precision of the mode that JAX is in."""
        rng = np.random.default_rng([self.seed, 1])
        return jnp.asarray(rng.normal(size=self.shapes[0])), jnp.asarray(rng.normal(size=self.shapes[1]))

    def __str__(self) -> str:
        return str(jax.make_jaxpr(self)(*self.arguments()))


def without_elements(seed: int) -> RandomFunction:
    """A function of arrays one or both of which have no elements."""
    shapes = (((0, 5), (6, 5)), ((6, 0), (6, 0)), ((0, 5), (0, 5)), ((6, 5), (0, 3)), ((0, 0), (2, 3)))
    return RandomFunction(seed, 5, shapes[seed % len(shapes)])


def check_raised(f: RandomFunction, order: int = 1, everything: bool = True) -> dict[str, Any]:
    """Compares values and gradients of ``f`` raised, as far as there are rules or as far as it pays; at order 2 those of a function of the gradient.

    Raises:
        AssertionError: they differ from those of JAX.
    """
    args = f.arguments()

    def plain(x: Array, y: Array) -> Array:
        return f(
            x, y
        )  # JAX asks a callable object for its text, which is a jaxpr here, at each of its own calls

    function = te.adjoint(plain, everything=everything)
    try:
        expected = _gradients(plain, order, args)
    except (ValueError, TypeError, ZeroDivisionError):
        if all(map(math.prod, f.shapes)):
            raise
        return {"empty": True}  # JAX refuses to pad, or to divide by extents, where there are no elements
    found = _gradients(function, order, args)
    if np.any(np.isfinite(found) & ~np.isfinite(expected)):
        # a maximum that XLA computes once more, with another last bit, is equal to none of its elements: 0 / 0 in JAX's derivative
        expected = _gradients(plain, order, args, whole=False)
    digits = 1e-9 if expected.dtype == "float64" else 1e-4
    bound = digits * max(1.0, float(np.nanmax(np.abs(expected), initial=0)))
    notes = {}
    if not np.allclose(found, expected, rtol=digits, atol=bound, equal_nan=True):
        # XLA without optimizations, by which many programs are checked, has faults that users do not meet
        found, notes = _gradients(function, order, args, options=_OPTIMIZED), {"notes": ["optimized"]}
    np.testing.assert_allclose(found, expected, rtol=digits, atol=bound, err_msg=f"seed {f.seed}")
    report = te.explain(function, *args)
    return {"raised": report.raised_equations, "kept": report.kept_equations, **notes}


def _gradients(
    f: Any, order: int, args: Any, whole: bool = True, options: dict[str, Any] | None = None
) -> np.ndarray:
    """The value and both gradients, flat; computed as one program, or operation by operation."""

    def pulled(x: Array, y: Array) -> Array:
        return sum(jnp.sum(jnp.sin(g)) for g in jax.grad(f, (0, 1))(x, y))

    both = jax.value_and_grad(f if order == 1 else pulled, (0, 1))
    leaves = jax.tree.leaves((jax.jit(both, compiler_options=options) if whole else both)(*args))
    return np.concatenate([np.ravel(leaf) for leaf in leaves])


def check_forward(f: RandomFunction, everything: bool) -> dict[str, Any]:
    """Compares the derivative along one direction, and forward over reverse, of ``f`` raised with those of plain JAX.

    Raises:
        AssertionError: they differ.
    """
    args = f.arguments()
    moves = tuple(jnp.cos(3 * a) for a in args)

    def plain(x: Array, y: Array) -> Array:
        return f(x, y)

    def along(g: Any) -> np.ndarray:
        own = jax.jvp(g, args, moves)
        over = jax.jvp(jax.grad(g, (0, 1)), args, moves)[1]
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves((own, over))])

    found, expected = (along(jax.jit(g)) for g in (te.adjoint(plain, everything=everything), plain))
    known = np.isfinite(expected)
    digits = 1e-9 if expected.dtype == "float64" else 1e-4
    largest = max(1.0, float(np.max(np.abs(expected[known]), initial=0)))
    np.testing.assert_allclose(found[known], expected[known], digits, digits * largest, err_msg=f"{f.seed}")
    return {"known": int(known.sum())}
