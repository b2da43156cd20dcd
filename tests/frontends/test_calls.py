"""What surrounds a call of a raised function: copies of it, arguments of NumPy, arrays without elements, loops whose result is compared."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def sums(x: Any) -> Any:
    return jnp.sum(jnp.cumsum(x) ** 2)


class Scaled:
    """A callable that holds a number."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return self.factor * sums(x)


@te.adjoint
def raised(x: Any) -> Any:
    return sums(x)


@te.grad
def slope(x: Any) -> Any:
    return sums(x)


@te.custom_gradient
def kept(x: Any) -> Any:
    return te.compute(x.shape, lambda i: 2 * x[i])


kept.defgrad(lambda x: (2 * x, ()), lambda residuals, head: (3 * head,))


@te.grad
@te.function
def slope_of_a_builder(x: Any) -> Any:
    return te.compute((), lambda: x[0] ** 2)


@te.jacobian
def moved(x: Any) -> Any:
    return jnp.roll(x, 1) * x


def test_decorated_functions_are_pickled_by_name() -> None:
    """Their names lead to what was made of them, under which the functions themselves are not found."""
    x = jnp.linspace(1, 2, 16)
    for own in (raised, slope, kept, slope_of_a_builder, moved):
        assert pickle.loads(pickle.dumps(own)) is own
    for made in (te.grad(raised), te.value_and_grad(raised), te.adjoint(raised, everything=True)):
        expected = jax.tree.leaves(made(x))
        again = pickle.loads(pickle.dumps(made))
        for a, b in zip(jax.tree.leaves(again(x)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
@pytest.mark.parametrize("make", [te.grad, te.adjoint, te.value_and_grad, te.hessian])
def test_functions_that_were_called_are_copied(again: Any, make: Any) -> None:
    x = jnp.linspace(0, 1, 16)
    own = make(Scaled(2.0))
    expected = jax.jit(own)(x)
    copied = again(own)
    for a, b in zip(jax.tree.leaves(copied(x)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert te.explain(copied, x).name == te.explain(own, x).name


def test_arrays_of_numpy_are_explained_as_what_is_differentiated() -> None:
    x = np.linspace(0, 1, 4096, dtype=np.float32)
    assert (
        te.explain(te.grad(sums), x).raised_equations
        == te.explain(te.grad(sums), jnp.asarray(x)).raised_equations
        > 0
    )
    assert te.explain(te.adjoint(sums), x).regions
    assert te.source(te.grad(sums), x) == te.source(te.grad(sums), jnp.asarray(x))

    def rows(x: Any, index: Any) -> Any:
        return jnp.sum(x[index] ** 2)

    index = (np.arange(5000)[:, None] + np.arange(8)) % 4096
    assert te.explain(te.grad(rows), x, index).regions, "positions stay known"


@pytest.mark.parametrize("old", [(0, 3), (2, 0, 3), (0,), (4, 0), (0, 4, 6)])
@pytest.mark.parametrize("new", [(0,), (3, 0), (0, 24), (0, 1, 3)])
def test_arrays_without_elements_are_reshaped(old: Any, new: Any) -> None:
    loss = te.adjoint(lambda x: jnp.sum(x.reshape(new) ** 2), everything=True)
    assert jax.grad(loss)(jnp.zeros(old)).shape == old


@pytest.mark.parametrize("bounds", [(1.0, -1.0), (-1.0, 1.0), (0.5, 0.5)])
def test_crossed_bounds_of_a_clamp(bounds: tuple[float, float]) -> None:
    """XLA takes the upper one."""

    def loss(x: Any) -> Any:
        return jnp.sum(jax.lax.clamp(bounds[0], x, bounds[1]) * jnp.roll(x, 1))

    x = jnp.asarray([-2.0, -1.0, -0.7, 0.0, 0.5, 0.7, 1.0, 2.0, jnp.nan])
    for found, expected in zip(
        jax.value_and_grad(te.adjoint(loss, everything=True))(x[:-1]),
        jax.value_and_grad(loss)(x[:-1]),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    clamped = te.adjoint(lambda x: jax.lax.clamp(bounds[0], x, bounds[1]), everything=True)
    np.testing.assert_array_equal(jax.jit(clamped)(x), jax.lax.clamp(bounds[0], x, bounds[1]))


@pytest.mark.parametrize(
    "use", [lambda n: n > 12, jax.lax.stop_gradient, jnp.floor, lambda n: jnp.sign(n - 3)]
)
def test_loops_without_a_reverse_derivative_may_be_read_without_one(use: Any) -> None:
    def loss(x: Any) -> Any:
        n = jax.lax.while_loop(lambda c: c < 10.0, lambda c: 2 * c + 1 + jnp.sum(x**2), jnp.float32(1))
        return jnp.sum(jnp.where(use(n), x, x**2) * jnp.roll(x, 1) * use(n))

    x = jnp.linspace(-1, 1, 8)
    found = jax.grad(te.adjoint(loss, everything=True))(x)
    np.testing.assert_allclose(found, jax.grad(loss)(x), rtol=1e-5)
