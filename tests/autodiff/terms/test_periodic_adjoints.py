"""Adjoints of periodic reads: as many points as the definition has, and no sum over a quotient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.structure import topological_order

N = 24


def window(size: int, name: str = "k") -> Any:
    return te.reduce_axis((0, size), name)


def circulant(c: Any, x: Any) -> te.Tensor:
    j = window(N, "j")
    return te.compute((3, N), lambda b, i: te.sum(c[(i - j) % N] * x[b, j], axis=j), "y")


def stencil(x: Any, w: Any) -> te.Tensor:
    k = window(4)
    return te.compute((N,), lambda i: te.sum(x[(i + k - 1) % N] * w[k], axis=k), "y")


def wavelet(x: Any, w: Any) -> te.Tensor:
    k = window(4)
    return te.compute((N // 2,), lambda i: te.sum(x[(2 * i + k) % N] * w[k], axis=k), "y")


def dilated(x: Any, w: Any) -> te.Tensor:
    k = window(4)
    return te.compute((N,), lambda i: te.sum(x[(i - 2 * k) % N] * w[k], axis=k), "y")


def both_axes(x: Any, w: Any) -> te.Tensor:
    k, m = window(4), window(3, "m")
    return te.compute(
        (N, N), lambda i, j: te.sum(x[(i + k - 2) % N, (j - m) % N] * w[k] * w[m], axis=[k, m]), "y"
    )


CASES: dict[str, tuple[Callable[..., te.Tensor], tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "circulant": (
        circulant,
        ((N,), (3, N)),
        lambda c, x: x @ c[(jnp.arange(N)[:, None] - jnp.arange(N)) % N].T,
    ),
    "stencil": (stencil, ((N,), (4,)), lambda x, w: sum(w[k] * jnp.roll(x, 1 - k) for k in range(4))),
    "wavelet": (wavelet, ((N,), (4,)), lambda x, w: sum(w[k] * jnp.roll(x, -k)[::2] for k in range(4))),
    "dilated": (dilated, ((N,), (4,)), lambda x, w: sum(w[k] * jnp.roll(x, 2 * k) for k in range(4))),
    "both axes": (
        both_axes,
        ((N, N), (4,)),
        lambda x, w: sum(w[k] * w[m] * jnp.roll(x, (2 - k, m), (0, 1)) for k in range(4) for m in range(3)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_points_and_values(name: str, rng: np.random.Generator) -> None:
    build, shapes, reference = CASES[name]
    inputs = [te.placeholder(shape, name="xw"[n]) for n, shape in enumerate(shapes)]
    y = build(*inputs)
    head = te.placeholder(y.shape, name="H")
    adjoints = te.differentiate(y, inputs, head)
    for adjoint in adjoints:
        assert te.cost([adjoint]).iterations <= 2.5 * te.cost([y]).iterations, te.formula(
            adjoint
        )  # w is read twice
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    cotangent = rng.standard_normal(y.shape).astype("float32")
    feeds = {**dict(zip(inputs, arrays, strict=True)), head: cotangent}
    value, pull = jax.vjp(reference, *map(jnp.asarray, arrays))
    np.testing.assert_allclose(te.evaluate(y, {t: feeds[t] for t in inputs}), value, rtol=2e-4, atol=2e-4)
    for adjoint, expected in zip(adjoints, pull(jnp.asarray(cotangent)), strict=True):
        needed = {t: a for t, a in feeds.items() if any(t is i for i in topological_order([adjoint]))}
        np.testing.assert_allclose(te.interpret(adjoint, needed), expected, rtol=2e-4, atol=2e-4)
        np.testing.assert_allclose(te.evaluate(adjoint, needed), expected, rtol=2e-4, atol=2e-4)


def test_a_thousand_times_as_many_elements_take_as_many_points_for_each() -> None:
    """Not n**3 for the n**2 of the definition, whatever n is."""
    c, x = te.placeholder((2048,), name="c"), te.placeholder((4, 2048), name="x")
    j = te.reduce_axis((0, 2048), "j")
    y = te.compute((4, 2048), lambda b, i: te.sum(c[(i - j) % 2048] * x[b, j], axis=j), "y")
    dc, dx = te.differentiate(y, [c, x], te.placeholder(y.shape, name="H"))
    assert te.formula(dc).startswith("dc[i] = sum over b, i' of H[b, i'] * x[b, (i' - i) % 2048]")
    assert te.cost([dc]).iterations == te.cost([dx]).iterations == te.cost([y]).iterations


def test_indices_keep_their_spelling() -> None:
    c = te.placeholder((64,), name="c")
    j = te.reduce_axis((0, 64), "j")
    y = te.compute((64,), lambda i: te.sum(c[(i - j) % 64], axis=j), "y")
    assert "c[(i - j) % 64]" in te.formula(y)
    (back,) = te.differentiate(
        te.compute((64,), lambda i: c[(i + 3) % 64]), [c], te.placeholder((64,), name="H")
    )
    assert te.formula(back) == "dc[i] = H[(i - 3) % 64]  (i < 64)"
