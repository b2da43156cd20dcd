"""Products of which a part is read, and products with known matrices of few numbers: values, gradients, and what is not computed."""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.frontends.jaxpr.gains.parts import band_of
from tests.xla_counts import Fused

A, B, SQUARE = (40, 33), (33, 50), (40, 40)
PARTS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "trace": (lambda a, b: jnp.trace(a @ b.T) ** 2, (A, A)),
    "trace above": (lambda a, b: jnp.trace(a @ b, offset=7) ** 2, (A, B)),
    "trace below": (lambda a, b: jnp.trace(a @ b, offset=-3) ** 2, (A, B)),
    "diagonal": (lambda a, b: jnp.diagonal(a @ b), (A, B)),
    "diagonal of a square": (lambda a, b: jnp.diagonal(a @ b.T), (A, A)),
    "einsum of a diagonal": (lambda a, b: jnp.einsum("ii->i", a @ b.T), (A, A)),
    "last row": (lambda a, b: jnp.tanh((a @ b)[-1]), (A, B)),
    "last of a sequence": (lambda a, b: jnp.tanh((a @ b)[:, -1]), ((4, 16, 33), B)),
    "every eighth": (lambda a, b: (a @ b)[::8], (A, B)),
    "trace of one that is read elsewhere": (lambda a, b: jnp.trace(a @ b.T) + a @ b.T, (A, A)),
}


def both(f: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> tuple[Any, Any, Any]:
    """The compiled gradients, raised and of JAX, and the arguments."""
    rng = np.random.default_rng(0)
    args = [jnp.asarray(rng.normal(size=s).astype("float32")) for s in shapes]
    loss = lambda *args: jnp.sum(f(*args) ** 2)  # noqa: E731
    own, jaxs = (
        Fused(jax.jit(jax.value_and_grad(g, tuple(range(len(args))))).lower(*args))
        for g in (te.adjoint(loss), loss)
    )
    return own, jaxs, args


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_products(name: str) -> None:
    f, shapes = PARTS[name]
    own, jaxs, args = both(f, shapes)
    for a, b in zip(jax.tree.leaves(own(*args)), jax.tree.leaves(jaxs(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4 * float(abs(b).max()))
    if "elsewhere" not in name:  # the sum of a product of two matrices takes 2 n m k
        assert own.cost_analysis()["flops"] < 2 * prod(shapes[0]) * shapes[1][-1]


def resized(x: Any, *shape: int, method: str = "bilinear") -> Any:
    return jax.image.resize(x, shape, method)


D = np.eye(64, k=1, dtype="float32") - np.eye(64, dtype="float32")
KNOWN: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "images twice as large": (lambda x: resized(x, 2, 96, 80, 3), (2, 48, 40, 3)),
    "images half as large": (lambda x: resized(x, 2, 3, 64, 70), (2, 3, 128, 140)),
    "images half as large again": (lambda x: resized(x, 40, 2, method="cubic"), (160, 2)),
    "differences from the left": (lambda x: D @ x, (64, 20)),
    "differences from the right": (lambda x: x @ D.T, (20, 64)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_matrices_of_few_numbers(name: str) -> None:
    f, shape = KNOWN[name]
    own, jaxs, args = both(f, (shape,))
    for a, b in zip(jax.tree.leaves(own(*args)), jax.tree.leaves(jaxs(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * float(abs(b).max()))
    if name != "images half as large again":  # eight taps are no few
        assert own.cost_analysis()["flops"] < jaxs.cost_analysis()["flops"] / 4


@pytest.mark.parametrize(
    "slope, shift, taps", [((1, 1), -2, 3), ((1, 2), -1, 2), ((2, 1), 0, 4), ((3, 2), 1, 3)]
)
def test_a_band_is_found(slope: tuple[int, int], shift: int, taps: int, rng: np.random.Generator) -> None:
    p, q = slope
    columns = 96
    rows = columns * q // p
    matrix = np.zeros((rows, columns))
    for j in range(rows):
        for t in range(taps):
            place = (p * j + shift) // q + t
            if 0 <= place < columns:
                matrix[j, place] = rng.uniform(1, 2)
    found = band_of(matrix)
    assert found is not None and found.taps.shape == (rows, taps)
    again = np.zeros_like(matrix)
    for j, start in enumerate(found.starts):
        for t, weight in enumerate(found.taps[j]):
            if weight:
                again[j, start + t] = weight
    np.testing.assert_array_equal(again, matrix)


@pytest.mark.parametrize(
    "matrix", [np.ones((64, 64)), np.eye(64)[np.arange(64) * 7 % 64], np.zeros((64, 64))]
)
def test_no_band(matrix: np.ndarray) -> None:
    assert band_of(matrix) is None


def test_known_bands_have_all_digits_of_float64(rng: np.random.Generator) -> None:
    def loss(x: Any) -> Any:
        return jnp.sum(jnp.sin(resized(x, 4, 32, 32)))

    with jax.enable_x64(True):
        x = jnp.asarray(rng.normal(size=(4, 64, 64)))
        assert "band" in te.source(te.grad(loss), x)
        np.testing.assert_allclose(te.grad(loss)(x), jax.grad(loss)(x), rtol=1e-13, atol=1e-14)
