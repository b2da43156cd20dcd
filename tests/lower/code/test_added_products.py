"""Products over dimensions that lie apart are one for each position of the first, added; what lies together stays one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

ADDED = "jnp.sum(jnp.einsum("


def axes(x: te.Tensor, *at: int) -> list[te.Axis]:
    return [te.reduce_axis((0, x.shape[n]), f"r{n}") for n in at]


def channels_first(h: te.Tensor, x: te.Tensor) -> te.Tensor:
    """The gradient of a layer of channels that stand before the positions."""
    n, t = axes(h, 0, 2)
    return te.compute(
        (h.shape[1], x.shape[1]), lambda o, c: te.sum(h[n, o, t] * x[n, c, t], axis=[n, t]), "y"
    )


def of_images(h: te.Tensor, x: te.Tensor) -> te.Tensor:
    n, i, j = axes(h, 0, 2, 3)
    return te.compute(
        (x.shape[1], h.shape[1]), lambda c, o: te.sum(h[n, o, i, j] * x[n, c, i, j], axis=[n, i, j]), "y"
    )


def covariance(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Of features over all positions of a batch, one of which is shifted."""
    n, t = axes(x, 0, 2)
    return te.compute(
        (x.shape[1], y.shape[1]), lambda a, b: te.sum(x[n, a, t] * (y[n, b, t] - 1.0), axis=[n, t]), "y"
    )


CASES: dict[str, tuple[Callable[..., te.Tensor], Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "channels first": (channels_first, lambda h, x: jnp.einsum("not,nct->oc", h, x), (8, 5, 40), (8, 7, 40)),
    "images": (of_images, lambda h, x: jnp.einsum("noij,ncij->co", h, x), (6, 5, 7, 9), (6, 3, 7, 9)),
    "covariance": (covariance, lambda x, y: jnp.einsum("nat,nbt->ab", x, y - 1), (9, 4, 64), (9, 4, 64)),
}


def temporaries(fn: Callable[..., Any], *given: Any) -> int:
    """Bytes that XLA holds beside arguments and results: the copies in another order."""
    return int(jax.jit(fn).lower(*given).compile().memory_analysis().temp_size_in_bytes)


@pytest.mark.parametrize("name", CASES)
def test_what_lies_apart_is_added(name: str, rng: np.random.Generator) -> None:
    builder, plain, *shapes = CASES[name]
    given = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    fn = te.function(builder)
    assert ADDED in fn.source(*given)
    assert ADDED not in te.function(builder, platform="gpu").source(*given)
    np.testing.assert_allclose(fn(*given), plain(*given), rtol=1e-4, atol=1e-4)
    assert temporaries(fn, *given) < temporaries(plain, *given)
    own, theirs = (
        jax.grad(lambda *a, f=f: jnp.sum(jnp.sin(f(*a))), argnums=(0, 1))(*given) for f in (fn, plain)
    )
    for a, b in zip(own, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_products_with_one_hot_rows_are_added(rng: np.random.Generator) -> None:
    """The gradient of scores of letters along sequences of which the motifs stand before the positions."""

    def scores(p: te.Tensor, at: te.Tensor) -> te.Tensor:
        q = te.reduce_axis((0, p.shape[1]), "q")
        shape = at.shape[0], p.shape[0], at.shape[1] - p.shape[1] + 1
        return te.compute(shape, lambda n, m, i: te.sum(p[m, q, at[n, i + q]], axis=q), "y")

    p, at = rng.standard_normal((16, 3, 4)).astype("float32"), rng.integers(0, 4, (16, 200)).astype("int32")
    fn = te.function(scores)
    source = fn.source(p, at)
    assert ADDED in source and "H.transpose" not in source and "stablehlo.scatter" not in source
    plain = lambda p: sum(p[:, q][:, at[:, q : q + 198]] for q in range(3)).transpose(1, 0, 2)  # noqa: E731
    own, theirs = (jax.grad(lambda p, f=f: jnp.sum(jnp.sin(f(p))))(p) for f in (lambda p: fn(p, at), plain))
    np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-4)


def source_of(a: tuple[int, ...], b: tuple[int, ...], dtype: str = "float32") -> str:
    given = [jax.ShapeDtypeStruct(shape, dtype) for shape in (a, b)]
    return te.function(channels_first, platform="cpu").source(*given).partition("def backward")[0]


def test_what_would_be_larger_or_is_narrower_stays_one_product() -> None:
    assert ADDED in source_of((8, 5, 40), (8, 7, 40))
    assert ADDED not in source_of((8, 50, 40), (8, 70, 40))  # the products are more than what is copied
    assert ADDED not in source_of((8, 5, 4), (8, 7, 4))  # of few positions each
    assert ADDED not in source_of((8, 5, 40), (8, 7, 40), "bfloat16")  # parts would be rounded one by one


def test_what_lies_together_stays_one_product() -> None:
    def rows(h: te.Tensor, x: te.Tensor) -> te.Tensor:
        n, t = axes(h, 0, 1)
        return te.compute(
            (h.shape[2], x.shape[2]), lambda o, c: te.sum(h[n, t, o] * x[n, t, c], axis=[n, t]), "y"
        )

    given = jax.ShapeDtypeStruct((8, 40, 5), "float32"), jax.ShapeDtypeStruct((8, 40, 7), "float32")
    assert ADDED not in te.function(rows, platform="cpu").source(*given)
