"""Numbers that a sum is multiplied by, on a platform where a sum is fused with nothing that reads it: within the sum."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

Define = Callable[[te.Tensor, te.Tensor], te.Tensor]


def energies(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """e[i] = -sum over j and c of sin(x[i, c] - y[j, c])**2"""
    j, c = te.reduce_axis((0, y.shape[0]), "j"), te.reduce_axis((0, x.shape[1]), "c")
    return te.compute((x.shape[0],), lambda i: te.sum(-(te.sin(x[i, c] - y[j, c]) ** 2), axis=(j, c)), "e")


def columns(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """m[c, j] = a third of the sum over i of max(x[i, c], y[j, c])"""
    i = te.reduce_axis((0, x.shape[0]), "i")
    shape = (x.shape[1], y.shape[0])
    return te.compute(shape, lambda c, j: te.sum(te.maximum(x[i, c], y[j, c]) / 3.0, axis=i), "m")


def kernels(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """k[j] = -half the sum over i and c of exp(x[i, c] - y[j, c])"""
    i, c = te.reduce_axis((0, x.shape[0]), "i"), te.reduce_axis((0, x.shape[1]), "c")
    return te.compute((y.shape[0],), lambda j: te.sum(-0.5 * te.exp(x[i, c] - y[j, c]), axis=(i, c)), "k")


def huge(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Elements that might leave their range before they are added."""
    c = te.reduce_axis((0, x.shape[1]), "c")
    return te.compute((x.shape[0],), lambda i: te.sum(1e30 * te.exp(x[i, c]), axis=c), "h")


def _sum(define: Define, platform: str, dtype: str = "float32") -> str:
    """What is assigned last."""
    args = [jax.ShapeDtypeStruct((6, 5), dtype)] * 2
    return str(te.function(define, platform=platform).source(*args)).split("    return")[0].splitlines()[-1]


@pytest.mark.parametrize("define", [energies, columns, kernels])
def test_numbers_are_within_the_sum(define: Define) -> None:
    assert _sum(define, "gpu").split(" = ")[1].startswith("jnp.sum(")
    assert not _sum(define, "gpu").endswith(" / 3.0")
    assert _sum(define, "cpu") != _sum(define, "gpu")
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(6, 5)) for _ in range(2)]
    with jax.enable_x64(True):
        tensors = [te.placeholder((6, 5), "float64", name) for name in "xy"]
        expected = te.interpret(define(*tensors), dict(zip(tensors, values, strict=True)))
        np.testing.assert_allclose(te.function(define, platform="gpu")(*values), expected, rtol=1e-12)


def test_what_stays_outside() -> None:
    assert "1e+30 * jnp.sum(jnp.exp(" in _sum(huge, "gpu")
    args = [jax.ShapeDtypeStruct((6, 5), "float32")] * 2
    last = str(te.function(kernels, platform="gpu").source(*args)).split(" dy = ")[1].splitlines()[0]
    assert (
        last.startswith("-(") and "* jnp.sum(jnp.exp(" in last
    )  # a kernel in any case, for what else is multiplied


def test_narrow_elements_are_added_first() -> None:
    assert _sum(energies, "gpu", "bfloat16") == _sum(energies, "cpu", "bfloat16")


def test_both_gradients_of_squares_are_a_sum_each() -> None:
    def squares(x: te.Tensor, y: te.Tensor) -> te.Tensor:
        c = te.reduce_axis((0, x.shape[1]), "c")
        shape = (x.shape[0], y.shape[0])
        return te.compute(shape, lambda i, j: te.sum((x[i, c] - y[j, c]) ** 2, axis=c), "d")

    rng = np.random.default_rng(1)
    x, y, weights = (jnp.asarray(rng.normal(size=s), "float32") for s in ((6, 5), (7, 5), (6, 7)))
    own = te.function(squares, platform="gpu")
    backward = str(own.source(x, y)).split("def backward")[1]
    assert backward.count("= jnp.sum(2 * ") == backward.count("= jnp.sum(-(2 * ") == 1
    plain = lambda x, y: jnp.sum(weights * jnp.sum((x[:, None] - y[None]) ** 2, axis=-1))  # noqa: E731
    found = jax.grad(lambda x, y: jnp.sum(weights * own(x, y)), (0, 1))(x, y)
    for one, other in zip(found, jax.grad(plain, (0, 1))(x, y), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


def test_symbolic_sizes() -> None:
    n = te.var("n")
    x, y = te.placeholder((n, 5), "float32", "x"), te.placeholder((n, 5), "float32", "y")
    fn = te.function([x, y], energies(x, y), platform="gpu")
    a, b = (np.random.default_rng(n).normal(size=(n, 5)).astype("float32") for n in (7, 7))
    expected = -np.sum(np.sin(a[:, None].astype("float64") - b) ** 2, axis=(1, 2))
    np.testing.assert_allclose(fn(a, b), expected, rtol=1e-5)
    assert "= jnp.sum(-" in str(fn.source())
    sizes = jax.export.symbolic_shape("n, 5")
    exported = jax.export.export(jax.jit(fn))(*[jax.ShapeDtypeStruct(sizes, "float32")] * 2)
    np.testing.assert_allclose(exported.call(a, b), expected, rtol=1e-5)
