"""Products of small matrices, many times: values, gradients, and that no product of matrices is left for XLA to call."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused


def chain(q: Any) -> Any:
    """A chain of joints, by 4 x 4 transforms."""
    c, s, o, z = jnp.cos(q), jnp.sin(q), jnp.ones_like(q), jnp.zeros_like(q)
    rows = [[c, -s, z, o], [s, c, z, z], [z, z, o, z], [z, z, z, o]]
    t = jnp.stack([jnp.stack(row, -1) for row in rows], -2)
    return t[:, 0] @ t[:, 1] @ t[:, 2]


def stiffness(u: Any) -> Any:
    """Element matrices in other coordinates."""
    return jnp.einsum("eij,ejk,elk->eil", u, jnp.tanh(u), u)


def colours(x: Any) -> Any:
    return jax.nn.sigmoid(jnp.einsum("bhwc,cd->bhwd", x, jnp.cos(x[0, 0, 0, :, None] - x[0, 0, 1])))


def camera(x: Any) -> Any:
    p = x[3:] @ jnp.tanh(x[:3]).T + x[0]
    return p[:, :2] / (5 + p[:, 2:] ** 2)


# with how many products in the compiled gradient at most, of how many in that of JAX
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], int]] = {
    "transforms": (chain, (1024, 3), 0),
    "element matrices": (stiffness, (600, 4, 4), 0),
    "colours": (colours, (2, 32, 32, 3), 1),  # the gradient of the matrix, a long product
    "points in a camera": (camera, (2051, 3), 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_products_are_written_out(name: str, rng: np.random.Generator) -> None:
    f, shape, left = FUNCTIONS[name]
    x = jnp.asarray(rng.normal(size=shape).astype("float32"))
    loss = lambda x: jnp.sum(f(x) ** 2)  # noqa: E731
    own, jaxs = (Fused(jax.jit(jax.value_and_grad(g)).lower(x)) for g in (te.adjoint(loss), loss))
    for a, b in zip(own(x), jaxs(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * float(abs(b).max()))
    counts = [c.as_text().count(" dot(") for c in (own, jaxs)]
    assert counts[0] <= left < counts[1]


def plaquettes(x: Any) -> Any:
    """Two by two matrices on the links of a lattice, around its faces."""
    turned = lambda a: jnp.conj(jnp.swapaxes(a, -1, -2))  # noqa: E731
    u, v = jnp.exp(1j * x), jnp.exp(-1j * x * x)
    return u @ jnp.roll(v, -1, 0) @ turned(jnp.roll(u, -1, 1)) @ turned(v)


def layers(x: Any) -> Any:
    """Light through thin layers, of which each is a matrix at each wavelength."""
    n = 1.5 + 0.1 * jnp.tanh(x)
    c, s = jnp.cos(n) + 0j, 1j * jnp.sin(n)
    each = jnp.stack([jnp.stack([c, s / n], -1), jnp.stack([n * s, c], -1)], -2)
    return 1 / (each[0] @ each[1] @ each[2])[..., 0, 0]


def propagated(x: Any) -> Any:
    """Amplitudes of two states, by a matrix of each."""
    states = jnp.exp(1j * x[..., 0])
    return jnp.einsum("nij,nj->ni", jnp.cos(x) + 1j * jnp.sin(x), states)


OF_COMPLEX: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "plaquettes": (plaquettes, (16, 32, 2, 2)),
    "thin layers": (layers, (3, 600)),
    "amplitudes": (propagated, (1024, 2, 2)),
}


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_those_of_complex_numbers_are_written_out(name: str, rng: np.random.Generator) -> None:
    f, shape = OF_COMPLEX[name]
    x = jnp.asarray(rng.normal(size=shape).astype("float32"))
    loss = lambda x: jnp.sum(jnp.real(f(x)) ** 2 + jnp.imag(f(x)))  # noqa: E731
    own, jaxs = (Fused(jax.jit(jax.value_and_grad(g)).lower(x)) for g in (te.adjoint(loss), loss))
    for a, b in zip(own(x), jaxs(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5 * float(abs(b).max()))
    counts = [c.as_text().count(" dot(") for c in (own, jaxs)]
    assert counts[0] == 0 < counts[1]


KEPT: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "four numbers a row": (lambda x: x @ jnp.sin(x[:4]), (4096, 4)),
    "long rows": (lambda x: x @ jnp.sin(x[:32]), (4096, 32)),
    "few rows": (lambda x: x @ jnp.sin(x[:3]), (64, 3)),
    "matrices of two rows": (lambda x: x @ jnp.sin(x), (1024, 2, 2)),
    "few matrices": (lambda x: x @ jnp.sin(x), (64, 4, 4)),
    "rows by one complex matrix": (lambda x: jnp.abs(x @ (1j * jnp.sin(x[:3]))), (4096, 3)),
    "few complex matrices": (lambda x: jnp.abs(x @ (1j * jnp.sin(x))), (64, 2, 2)),
    "long complex rows": (lambda x: jnp.abs(x @ (1j * jnp.sin(x))), (64, 16, 16)),
    "columns": (lambda x: jnp.sin(x[:, :3]) @ x, (3, 4096)),
}


@pytest.mark.parametrize("name", KEPT)
def test_others_are_kept(name: str) -> None:
    f, shape = KEPT[name]
    assert not te.explain(te.adjoint(f), jnp.ones(shape)).regions
