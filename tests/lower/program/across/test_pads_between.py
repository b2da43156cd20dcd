"""Arrays whose elements alternate, where arrays side by side are arrays of their own: pads that are added."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

Define = Callable[[te.Tensor], te.Tensor]


def doubled(x: te.Tensor) -> te.Tensor:
    """Samples, and the means between them."""
    n = x.shape[0] - 1
    between = lambda i: (x[i // 2] + x[i // 2 + 1]) / 2  # noqa: E731
    return te.compute((2 * n,), lambda i: te.select(i % 2 == 0, x[i // 2], between(i)), "y")


def unzipped(x: te.Tensor) -> te.Tensor:
    """Sums and differences of neighbours in turn along rows, as a step of a transform has them."""
    n, m = x.shape
    even = lambda i, j: te.exp(x[i, j // 2] + x[i, j // 2 + m // 2])  # noqa: E731
    odd = lambda i, j: x[i, j // 2] - x[i, j // 2 + m // 2]  # noqa: E731
    return te.compute((n, m), lambda i, j: te.select(j % 2 == 0, even(i, j), odd(i, j)), "u")


def three(x: te.Tensor) -> te.Tensor:
    """Coordinates of particles one after the other, each by a function of its own, on two axes."""
    n, m = x.shape
    choice = lambda i, j: te.select(i % 3 == 0, te.sin(x[i // 3, j]), te.select(i % 3 == 1, x[i // 3, j] ** 2, x[i // 3, j]))  # noqa: E731  # fmt: skip
    return te.compute((3 * n, m), choice, "c")


def _shape(define: Define) -> tuple[int, ...]:
    return (5, 8) if define in (unzipped, three) else (9,)


def _text(define: Define, platform: str, dtype: str = "float32") -> str:
    return str(te.function(define, platform=platform).source(jax.ShapeDtypeStruct(_shape(define), dtype)))


@pytest.mark.parametrize("define", [doubled, unzipped, three])
def test_what_alternates_is_added(define: Define) -> None:
    for platform in ("gpu", "tpu"):
        text = _text(define, platform).split("def backward")[0]
        assert "jnp.stack" not in text and text.count("lax.pad(") == (3 if define is three else 2)
    assert "jnp.stack" in _text(define, "cpu")
    x = np.random.default_rng(0).normal(size=_shape(define))
    with jax.enable_x64(True):
        given = te.placeholder(x.shape, "float64", "x")
        on_gpu, on_cpu = (te.function(define, platform=p) for p in ("gpu", "cpu"))
        np.testing.assert_allclose(on_gpu(x), te.interpret(define(given), {given: x}), rtol=1e-13)
        gradients = [jax.grad(lambda x, f=f: jnp.sum(jnp.cos(f(x))))(x) for f in (on_gpu, on_cpu)]
        np.testing.assert_allclose(*gradients, rtol=1e-12)


def test_infinities_stay_where_they_are() -> None:
    found = np.asarray(te.function(doubled, platform="gpu")(np.array([1, np.inf, 2, 3] + [0] * 5, "float32")))
    assert list(np.isinf(found)) == [False, True, True, True, *[False] * 12] and not np.isnan(found).any()


def test_integers_are_stacked() -> None:
    def repeated(x: te.Tensor) -> te.Tensor:
        n = x.shape[0] - 1
        return te.compute((2 * n,), lambda i: te.select(i % 2 == 0, x[i // 2], x[i // 2 + 1]), "y")

    assert "lax.pad(" in _text(repeated, "gpu")
    assert "jnp.stack" in _text(repeated, "gpu", "int32")
