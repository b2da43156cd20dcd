"""Functions of stencils with edges: computed in the pieces of these, with no array between and no second pass over memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused


def laplacian(u: te.Tensor) -> te.Tensor:
    n, m = u.shape
    across = lambda i, j: u[(i + 1) % n, j] + u[(i - 1) % n, j] + u[i, (j + 1) % m]  # noqa: E731
    return te.compute((n, m), lambda i, j: across(i, j) - 3.0 * u[i, j], "lap")


def diffused(u: te.Tensor) -> te.Tensor:
    """A function of what the neighbours on a ring are."""
    lap = laplacian(u)
    return te.compute(u.shape, lambda i, j: te.tanh(u[i, j] + 0.1 * lap[i, j]), "v")


def gated(u: te.Tensor) -> te.Tensor:
    """Neighbours along one axis, none beyond its ends."""
    n, m = u.shape
    before = lambda i, j: te.select(j > 0, u[i, te.maximum(j - 1, 0)], 0.0)  # noqa: E731
    g = te.compute((n, m), lambda i, j: before(i, j) * u[i, j] - u[i, te.minimum(j + 1, m - 1)], "g")
    return te.compute((n, m), lambda i, j: te.sigmoid(g[i, j]) * g[i, j], "v")


def coupled(u: te.Tensor) -> te.Tensor:
    """What flows back to a function of each element passes its slope."""
    n, m = u.shape
    t = te.compute((n, m), lambda i, j: te.tanh(u[i, j]), "t")
    return te.compute((n, m), lambda i, j: t[i, j] * (t[(i + 1) % n, j] + t[i, (j + 1) % m]), "e")


def halved(u: te.Tensor) -> te.Tensor:
    """Three functions, one of another."""
    g, n = laplacian(u), u.shape[0]
    h = te.compute(u.shape, lambda i, j: g[i, j] / (1.0 + g[i, j] ** 2), "h")
    return te.compute(u.shape, lambda i, j: h[i, j] * u[(i + 1) % n, j] + g[i, j], "y")


FUNCTIONS = {diffused: "forward", gated: "forward", coupled: "backward"}
"""Each with the part of the program that has such pieces."""


def pulled_back(fn: Callable[..., Any], u: Any, h: Any) -> Any:
    return jax.vjp(fn, u)[1](h)[0]


def part_of(source: str, name: str) -> str:
    """The function of that name, or the one that it calls."""
    functions = {part.split("(")[0]: part for part in source.split("\ndef ")}
    return functions.get(f"{name}_with_residuals", functions[name])


PUT_TOGETHER = "_apart(lax.dynamic_update_slice("


@pytest.mark.parametrize("definition", FUNCTIONS)
def test_no_array_is_put_together_between(definition: Callable[..., te.Tensor]) -> None:
    rng = np.random.default_rng(0)
    u, h = (rng.normal(size=(200, 300)).astype(np.float32) for _ in range(2))
    held, texts, gradients = [], [], []
    for without in ((), ("pieces within",)):
        fn = te.function(definition, without=without)
        texts.append(part_of(fn.source(u), FUNCTIONS[definition]))
        gradients.append(jax.jit(partial(pulled_back, fn))(u, h))
        held.append(Fused(jax.jit(fn).lower(u)).memory_analysis().temp_size_in_bytes)
    assert PUT_TOGETHER not in texts[0] and PUT_TOGETHER in texts[1]
    assert held[0] + (u.nbytes // 2 if FUNCTIONS[definition] == "forward" else 0) <= held[1]
    np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("definition", [*FUNCTIONS, halved])
def test_values_and_gradients(definition: Callable[..., te.Tensor]) -> None:
    u = te.placeholder((5, 6), "float64", "u")
    te.testing.check_grads(te.function([u], definition(u)), (np.random.default_rng(1).normal(size=(5, 6)),))
    value = np.random.default_rng(2).normal(size=(5, 6))
    y = definition(u)
    with jax.enable_x64(True):
        np.testing.assert_allclose(
            te.function([u], y)(jnp.asarray(value)), te.interpret(y, {u: value}), rtol=1e-12
        )


def test_what_is_returned_or_read_elsewhere_too_stays_an_array() -> None:
    u, n = jax.ShapeDtypeStruct((200, 300), jnp.float32), 200

    def pieces(*read: Callable[..., te.Expr], returned: bool = False) -> set[str]:
        """The tensors that are written in pieces."""

        def definition(u: te.Tensor) -> Any:
            lap = laplacian(u)
            found = [
                te.compute(u.shape, lambda i, j, r=r: te.tanh(r(lap, i, j)), f"v{n}")
                for n, r in enumerate(read)
            ]
            return (*found, lap) if returned else tuple(found)

        text = part_of(te.function(definition).source(u), "forward")
        return {name for name in ("lap", "v0", "v1") if f"{name}_interior" in text}

    own, turned = (lambda lap, i, j: lap[i, j]), (lambda lap, i, j: lap[n - 1 - i, j])
    assert pieces(own) == {"v0"}
    assert pieces(own, returned=True) == pieces(turned) == pieces(own, turned) == {"lap"}
