"""Second derivatives in both orders where conditions on data leave out elements that are infinite or NaN, beside JAX code that chooses twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.as_nodes import evaluated_as_nodes

ATOMS = 4
APART = 1 - np.eye(ATOMS)


@te.function
def energy(p: Any, m: Any) -> Any:
    """Of pairs by their distances, which are zero on the diagonal."""
    c = te.reduce_axis((0, 3), "c")
    i, j = te.reduce_axis((0, ATOMS), "i"), te.reduce_axis((0, ATOMS), "j")
    apart = te.constant(APART, "apart")
    d = te.compute((ATOMS, ATOMS), lambda i, j: te.sqrt(te.sum((p[i, c] - p[j, c]) ** 2, axis=c)), "d")
    element = te.select(apart[i, j] > 0, m[j] * te.exp(-d[i, j]) / d[i, j], 0.0)
    return te.compute((), lambda: te.sum(element, axis=(i, j)), "y")


def energy_of_jax(p: Any, m: Any) -> Any:
    squares = jnp.sum((p[:, None] - p[None]) ** 2, -1)
    d = jnp.sqrt(jnp.where(APART > 0, squares, 1))
    return jnp.sum(jnp.where(APART > 0, m * jnp.exp(-d) / d, 0))


ROWS = 4
KEPT = np.array([0.0, 1.0, 1.0, 0.0])


def _gathered(x: Any, at: Any) -> Any:
    return te.compute((ROWS,), lambda i: te.exp(x[at[i]]), "t")


def _of_arrays(x: Any, at: Any) -> Any:
    shape = jax.ShapeDtypeStruct((ROWS,), "float64")
    return te.extern(shape, lambda x, at: jnp.log(jnp.where(at < 0, 0, x[at])), [x, at])


def _carried(x: Any, at: Any) -> Any:
    h = te.recurrence((3, ROWS), lambda h, n, i: 0.5 * h[n - 1, i] + x[at[i]], init=0.0)
    return te.compute((ROWS,), lambda i: h[2, i], "t")


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("spoilt", [_gathered, _of_arrays, _carried])
def test_what_may_be_infinite_multiplies_nothing_at_excluded_elements(spoilt: Callable[..., Any]) -> None:
    """A factor that is read at positions out of range, or computed by any function of arrays or from earlier elements, has no value where a choice leaves it out."""
    x, w, along = (np.random.default_rng(n).uniform(0.5, 1.5, ROWS) for n in range(3))

    @te.function
    def chosen(w: Any, x: Any, at: Any, kept: Any) -> Any:
        t = spoilt(x, at)
        product = te.compute((ROWS,), lambda i: te.sin(w[i]) * t[i], "product")
        return te.compute((ROWS,), lambda i: te.select(kept[i] > 0, product[i], 0.0), "y")

    def found(at: Any) -> list[Any]:
        gradient = jax.grad(lambda w: jnp.sum(jnp.sin(chosen(w, x, at, KEPT))))
        turned = jax.grad(lambda w: jnp.vdot(gradient(w), along))
        return [gradient(w), jax.jvp(gradient, (w,), (along,))[1], turned(w)]

    with evaluated_as_nodes():
        outside, inside = (found(np.array(at, "int32")) for at in ([-1, 1, 2, -1], [0, 1, 2, 3]))
        for own, known in zip(outside, inside, strict=True):
            np.testing.assert_allclose(own, known, 1e-9, 1e-9)


def _of_one_parity(t: Any, k: Any) -> Any:
    return te.sum(te.select(k % 2 == 0, te.sin(t[k]) * t[k], 0.0), axis=k)


def _within_a_sum(t: Any, k: Any) -> Any:
    return te.sum(te.sin(t[k]) * t[k], axis=k, where=k % 2 == 0)


def _by_strides(t: Any, k: Any) -> Any:
    half = te.reduce_axis((0, ROWS // 2), "half")
    return te.sum(te.sin(t[2 * half]) * t[2 * half], axis=half)


def _one_by_one(t: Any, k: Any) -> Any:
    return te.sin(t[0]) * t[2]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("reader", [_of_one_parity, _within_a_sum, _by_strides, _one_by_one])
def test_what_no_index_reads_passes_nothing_on_in_any_order(reader: Callable[..., Any]) -> None:
    """A residual is NaN at elements that no point reads: conditions on indices and strides leave them out as conditions on data do."""

    @te.function
    def f(scale: Any, x: Any, at: Any, by: Any) -> Any:
        t = te.compute((ROWS,), lambda j: scale[at[0]] ** 2 * (1 / by[0] * te.sqrt(x[j])), "t")
        y = te.compute((1,), lambda i: reader(t, te.reduce_axis((0, ROWS), "k")), "y")
        return te.compute((1,), lambda i: te.sin(y[i]) * y[i], "z")

    def orders(x: Any) -> list[Any]:
        def first(*own: Any) -> Any:
            return jax.grad(lambda a, b: jnp.sum(jnp.sin(f(a, x, jnp.array([1]), b))), (0, 1))(*own)

        def second(*own: Any) -> Any:
            return jax.grad(lambda *own: sum(jnp.sum(jnp.cos(g)) for g in first(*own)), (0, 1))(*own)

        def third(*own: Any) -> Any:
            return jax.grad(lambda *own: sum(jnp.sum(jnp.cos(g)) for g in second(*own)), (0, 1))(*own)

        at = jnp.array([0.3, 0.9, 0.4]), jnp.array([0.8])
        return [first(*at), second(*at), third(*at)]

    x = np.array([0.5, 1.0, 1.1, 2.0])
    with evaluated_as_nodes():
        found, meant = orders(x * [1, -1, 1, -1]), orders(x)
    for own, known in zip(jax.tree.leaves(found), jax.tree.leaves(meant), strict=True):
        np.testing.assert_allclose(own, known, 1e-9)


@pytest.mark.usefixtures("x64")
def test_second_derivatives_are_those_of_two_choices() -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((ATOMS, 3)), rng.uniform(0.5, 1.5, ATOMS))
    along = tuple(rng.standard_normal(a.shape) for a in x)

    def found(f: Callable[..., Any]) -> list[Any]:
        gradient = jax.grad(f, (0, 1))
        turned = jax.grad(lambda *own: sum(map(jnp.vdot, gradient(*own), along)), (0, 1))
        return jax.tree.leaves((jax.jvp(gradient, x, along), turned(*x)))

    with evaluated_as_nodes():
        for own, known in zip(found(energy), found(energy_of_jax), strict=True):
            np.testing.assert_allclose(own, known, 1e-9, 1e-9)
