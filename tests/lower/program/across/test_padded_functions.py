"""Many functions that are surrounded with zeros beside others in one loop are computed before it, in vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor

CALLED = "jnp.pad(_apart("


REACH = 17


def near(x: Tensor, w: Tensor, of: Callable[[te.Expr], te.Expr], reach: int = REACH) -> Compute:
    """What the neighbours behind each position add up to, each with a weight."""
    j = te.reduce_axis((0, x.shape[0]), "j")
    behind = lambda i: (j > i) & (j <= i + reach)  # noqa: E731
    return te.compute(x.shape, lambda i: te.sum(of(x[i] - x[j]) * w[j], axis=j, where=behind(i)), "y")


def couplings(x: Tensor, w: Tensor) -> Compute:
    return near(x, w, te.tanh)


def ranks(x: Tensor, w: Tensor) -> Compute:
    """How many are less, softly."""
    return near(x, w, te.sigmoid)


def kernels(x: Tensor, w: Tensor) -> Compute:
    return near(x, w, lambda z: te.exp(-(z**2)))


FUNCTIONS: dict[str, tuple[Callable[..., Compute], Callable[..., Any]]] = {
    "couplings": (couplings, jnp.tanh),
    "ranks": (ranks, jax.nn.sigmoid),
    "kernels": (kernels, lambda z: jnp.exp(-(z**2))),
}


def plain(x: Any, w: Any, of: Callable[..., Any]) -> Any:
    return sum(jnp.pad(of(x[:-d] - x[d:]) * w[d:], (0, d)) for d in range(1, REACH + 1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_call_what_they_pad(name: str, rng: np.random.Generator) -> None:
    builder, of = FUNCTIONS[name]
    x, w = rng.standard_normal((2, 9000)).astype("float32")
    fn = te.function(builder)
    assert CALLED in fn.source(x, w).partition("def backward")[2]
    assert CALLED not in te.function(builder, platform="gpu").source(x, w)
    own, theirs = (
        jax.grad(lambda x, w, f=f: jnp.sum(jnp.sin(f(x, w))), argnums=(0, 1))(x, w)
        for f in (fn, lambda x, w: plain(x, w, of))
    )
    for a, b in zip(own, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


def calls(builder: Callable[..., Compute], count: int) -> bool:
    given = [jax.ShapeDtypeStruct((count,), "float32")] * 2
    return CALLED in te.function(builder, platform="cpu").source(*given)


def test_few_functions_and_few_elements_stay_in_the_loop() -> None:
    assert calls(couplings, 9000)
    assert not calls(couplings, 900)
    assert not calls(lambda x, w: near(x, w, lambda z: z**3), 9000)
    assert not calls(lambda x, w: near(x, w, te.tanh, 11), 9000)
