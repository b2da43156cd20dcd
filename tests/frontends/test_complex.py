"""Complex numbers are raised as real ones are: values and derivatives are those of JAX, by real and by complex arguments, in both modes and both orders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge.price.programs import amounts_of

AT = np.array([0, 0, 3, 2, 4, 1])
FUNCTIONS = {
    "products": lambda z, w, x: z * w * x - z / w,
    "parts": lambda z, w, x: jnp.real(z) * jnp.imag(w) * x + 1j * jnp.abs(z * w),
    "conjugates": lambda z, w, x: jnp.conj(z) * w + x**2,
    "functions": lambda z, w, x: jnp.exp(1j * x + z) * jnp.sqrt(w) + jnp.tanh(0.3 * z),
    "choices": lambda z, w, x: jnp.where(x > 0, z * jnp.conj(w), z - x),
    "shifts": lambda z, w, x: (
        jnp.roll(z, 1, 0) * jnp.roll(jnp.conj(w), -1, 1) + jnp.pad(z[1:], ((1, 0), (0, 0)))
    ),
    "reads": lambda z, w, x: z[:, AT] * w[:, AT[::-1]],
    "sums": lambda z, w, x: z - jnp.mean(z * jnp.conj(w)) + jnp.sum(w, 1, keepdims=True) * x,
    "products of matrices": lambda z, w, x: jnp.einsum("ij,kj->ik", z, jnp.conj(w)) @ (z * x),
    "a transform": lambda z, w, x: jnp.fft.ifft2(jnp.fft.fft2(jnp.roll(z, 1, 0)) * w) * x,
}


@pytest.fixture
def arrays(rng: np.random.Generator) -> Iterator[list[Any]]:
    with jax.enable_x64(True):
        z, w = (jnp.asarray(rng.standard_normal((4, 6)) + 1j * rng.standard_normal((4, 6))) for _ in range(2))
        yield [z, w, jnp.asarray(rng.standard_normal((4, 6)))]


def _loss(f: Any) -> Any:
    def loss(*args: Any) -> Any:
        found = f(*args)
        return jnp.sum(jnp.real(found * (1 + 0.3j)) + jnp.imag(found) ** 2)

    return loss


def _close(own: Any, expected: Any) -> None:
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_complex_numbers(name: str, arrays: list[Any]) -> None:
    f = FUNCTIONS[name]
    raised, loss = te.adjoint(f, everything=True), _loss(f)
    assert te.explain(raised, *arrays).regions
    grad, own = jax.grad(loss, (0, 1, 2)), jax.grad(te.adjoint(loss, everything=True), (0, 1, 2))
    _close(own(*arrays), grad(*arrays))
    _close(
        jax.jvp(raised, arrays, arrays[::-1][1:] + arrays[2:]),
        jax.jvp(f, arrays, arrays[::-1][1:] + arrays[2:]),
    )


@pytest.mark.parametrize("name", ["products", "conjugates", "shifts"])
def test_second_order_of_complex_numbers(name: str, arrays: list[Any]) -> None:
    loss = _loss(FUNCTIONS[name])
    grad, own = jax.grad(loss, (0, 1, 2)), jax.grad(te.adjoint(loss, everything=True), (0, 1, 2))

    def again(grad: Any) -> Any:
        return jax.grad(lambda *a: sum(jnp.sum(jnp.abs(g + 0.1) ** 2) for g in grad(*a)), (0, 1, 2))

    _close(again(own)(*arrays), again(grad)(*arrays))


def test_steps_of_a_complex_field_gain_by_default() -> None:
    def field(u: Any, v: Any) -> Any:
        for _ in range(4):
            u = u - 0.05j * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - 2 * u + v * u)
        return jnp.sum(jnp.abs(u) ** 4)

    shapes = jax.ShapeDtypeStruct((64, 64), "complex64"), jax.ShapeDtypeStruct((64, 64), "float32")
    assert len(te.explain(te.grad(field), *shapes).regions) == 1


def test_complex_numbers_have_a_pace_of_their_own() -> None:
    def amounts(dtype: str) -> dict[str, float]:
        return amounts_of(jax.make_jaxpr(lambda z: jnp.exp(z * z) * z)(jnp.zeros(5000, dtype)))

    real, own = amounts("float32"), amounts("complex64")
    assert real["cheap"] == own["complex"] == 10000 and "cheap" not in own
    assert real["exponential"] == own["power"] == 5000
