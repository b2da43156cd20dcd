"""Sums over many shifts whose terms count in a part of the output: where pads are fused, each term is computed where it counts, and padded."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.lower.mechanism_functions import summed

Define = Callable[[te.Tensor], te.Tensor]


def bilateral(x: te.Tensor) -> te.Tensor:
    """A window of 5 x 5 around each pixel, weighted by how alike they are."""
    n, m = x.shape
    p, q = summed(p=5, q=5)
    near = lambda i, j: x[i + p, j + q]  # noqa: E731
    weight = lambda i, j: te.exp(-((near(i, j) - x[i + 2, j + 2]) ** 2))  # noqa: E731
    return te.compute((n - 4, m - 4), lambda i, j: te.sum(weight(i, j) * near(i, j), axis=[p, q]), "y")


def ranks(x: te.Tensor) -> te.Tensor:
    """How many neighbours are brighter, about."""
    n, m = x.shape
    p, q = summed(p=4, q=4)
    more = lambda i, j: te.sigmoid(4 * (x[i + p, j + q] - x[i + 1, j + 1]))  # noqa: E731
    return te.compute((n - 3, m - 3), lambda i, j: te.sum(more(i, j), axis=[p, q]), "r")


def guided(x: te.Tensor) -> te.Tensor:
    """Sequences smoothed where they are alike."""
    n, m = x.shape
    (k,) = summed(k=15)
    weight = lambda b, i: te.exp(-((x[b, i + k] - x[b, i + 7]) ** 2))  # noqa: E731
    return te.compute((n, m - 14), lambda b, i: te.sum(weight(b, i) * x[b, i + k], axis=k), "g")


def _backward(define: Define, platform: str, shape: tuple[int, ...]) -> str:
    text = str(te.function(define, platform=platform).source(jax.ShapeDtypeStruct(shape, "float32")))
    return re.sub(r'""".*?"""', "", text.split("def backward")[1], flags=re.DOTALL)


@pytest.mark.parametrize(("define", "terms"), [(bilateral, 25), (ranks, 16), (guided, 15)])
def test_terms_are_padded(define: Define, terms: int) -> None:
    shape = (20, 21) if define is not guided else (6, 600)
    on_cpu, on_gpu = (_backward(define, p, shape) for p in ("cpu", "gpu"))
    assert on_cpu.count("jnp.where(") >= 4
    assert "jnp.where(" not in on_gpu and "jnp.arange" not in on_gpu
    assert terms <= on_gpu.count("jnp.pad(") + on_gpu.count("_shifted(") <= terms + 1  # one on all sides
    differences = [len(set(re.findall(r"x\w*\[[^]]*\] - x\w*\[[^]]*\]", text))) for text in (on_cpu, on_gpu)]
    assert differences[1] <= terms < differences[0]  # both ends share them


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize("define", [bilateral, ranks, guided])
def test_both_passes(define: Define, platform: str) -> None:
    x = np.random.default_rng(0).normal(size=(9, 17))
    with jax.enable_x64(True):
        given = te.placeholder(x.shape, "float64", "x")
        function, on_cpu = (te.function(define, platform=p) for p in (platform, "cpu"))
        found = function(x)
        np.testing.assert_allclose(found, te.interpret([define(given)], {given: x})[0], rtol=1e-12)
        weights = np.cos(np.arange(found.size)).reshape(found.shape)
        gradients = [jax.grad(lambda x, f=f: jnp.sum(weights * f(x)))(x) for f in (function, on_cpu)]
        np.testing.assert_allclose(*gradients, rtol=1e-11, atol=1e-12)


def test_sizes_may_be_symbols() -> None:
    gradient = jax.grad(lambda x: jnp.sum(jnp.sin(te.function(bilateral, platform="gpu")(x))))
    n, m = jax.export.symbolic_shape("n, m", constraints=["n >= 8", "m >= 8"])
    exported = jax.export.export(jax.jit(gradient))(jax.ShapeDtypeStruct((n, m), "float32"))
    x = np.random.default_rng(2).normal(size=(11, 9)).astype("float32")
    expected = jax.grad(lambda x: jnp.sum(jnp.sin(te.function(bilateral, platform="cpu")(x))))(x)
    np.testing.assert_allclose(exported.call(x), expected, rtol=1e-4, atol=1e-5)
