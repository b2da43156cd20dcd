"""Tables of dear functions that are known when a function is traced: computed once, and held as they are before they are repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

X = jax.ShapeDtypeStruct((64, 128), "float32")
DEAR = (" cosine", " sine", " exponential", " power", " tanh")


def angles(x: Any) -> tuple[Any, Any]:
    at = jnp.arange(x.shape[0])[:, None] / 100.0 ** (jnp.arange(x.shape[1]) / x.shape[1])
    return jnp.cos(at), jnp.sin(at)


def rotated(x: Any) -> Any:
    cosines, sines = angles(x)
    return jnp.mean((x * cosines + x[:, ::-1] * sines) ** 4)


def in_a_scan(x: Any) -> Any:
    def turn(x: Any, _: Any) -> tuple[Any, None]:
        cosines, sines = angles(x)
        return x * cosines + x[:, ::-1] * sines, None

    return jnp.mean(lax.scan(turn, x, length=3)[0] ** 2)


def repeated(x: Any) -> Any:
    """A table of 8,192 numbers, of which a product with 32 others is larger."""
    table = jnp.exp(jnp.sin(jnp.arange(8192.0)))
    return jnp.sum((x.reshape(-1) * (jnp.arange(32.0)[:, None] * table)) ** 2)


def window(x: Any) -> Any:
    """Of what a window is made nothing else is read."""
    hann = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(x.size) / x.size)
    return jnp.sum((x.reshape(-1) * hann / hann.sum()) ** 2)


TABLES: dict[str, Callable[[Any], Any]] = {
    "rotations by position": rotated,
    "in the body of a loop": in_a_scan,
    "a table that is repeated": repeated,
    "a window": window,
    "within a call": lambda x: jax.jit(lambda x: rotated(x @ x.T @ x))(x) + jnp.sum(x),
    "a matrix of a transform": lambda x: jnp.sum((x @ jnp.cos(jnp.outer(jnp.arange(128), jnp.arange(128.0)))) ** 2),
}  # fmt: skip
SAME: dict[str, Callable[[Any], Any]] = {
    "a few numbers": lambda x: jnp.mean((x * jnp.cos(jnp.arange(128.0))) ** 2),
    "functions of what is given": lambda x: jnp.mean(jnp.cos(x) ** 2),
    "cheap functions of positions": lambda x: jnp.mean((x * (jnp.arange(64.0)[:, None] - jnp.arange(128))) ** 2),
}  # fmt: skip


def lowered(grad: Callable[..., Any], f: Callable[[Any], Any]) -> Any:
    return jax.jit(grad(lambda x: f(x))).lower(X)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_computed_once(name: str, rng: np.random.Generator) -> None:
    f = TABLES[name]
    own, jaxs = (lowered(grad, f).compile() for grad in (te.value_and_grad, jax.value_and_grad))
    assert not any(word in own.as_text() for word in DEAR) and any(word in jaxs.as_text() for word in DEAR)
    x = jnp.asarray(rng.normal(size=X.shape), "float32")
    for a, b in zip(own(x), jaxs(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * float(abs(b).max()))


@pytest.mark.parametrize("name", SAME)
def test_what_takes_no_time_stays(name: str) -> None:
    f = SAME[name]
    texts = (lowered(grad, f).as_text().partition("\n")[2] for grad in (te.grad, jax.grad))
    assert len(set(texts)) == 1


def test_a_table_is_held_as_it_is_before_it_is_repeated() -> None:
    assert len(lowered(te.grad, repeated).as_text()) < 4 * 2 * 8192 + 20000  # digits of a table


def test_platforms_without_paces_compute_them_again() -> None:
    def asked(f: Any) -> Any:
        return te.adjoint(f, platform="gpu")

    assert "cosine" in lowered(lambda f: jax.grad(asked(f)), rotated).as_text()
