"""Functions of positions alone are computed when a function is traced: which these are, what a call computes, values and gradients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.structure import Known, topological_order
from tests.xla_counts import Fused

B, N = 3, 64


def known_in(tensor: te.Tensor) -> list[Known]:
    return [t for t in topological_order(planned([tensor])) if isinstance(t, Known)]


def cosines(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, N), "k")
    return te.compute(
        (B, N), lambda b, f: te.sum(x[b, k] * te.cos((2 * k + 1) * f * (np.pi / (2 * N))), axis=k), "y"
    )


def cosines_of(tensor: Any) -> Any:
    n = np.arange(N)
    return tensor @ jnp.asarray(np.cos((2 * n[:, None] + 1) * n * (np.pi / (2 * N))), "float32")


def test_a_transform_computes_no_cosines(rng: np.random.Generator) -> None:
    x, h = (rng.standard_normal((B, N)).astype("float32") for _ in range(2))
    fn = te.function(cosines)
    text = fn.source(x)
    assert text.count("jax.ensure_compile_time_eval()") == 2  # in each pass

    def both(x: Any, h: Any) -> Any:
        y, pull = jax.vjp(fn, x)
        return y, *pull(h)

    compiled = Fused(jax.jit(both).lower(x, h))
    assert not re.search(r"(cosine|power|exponential)\(", compiled.as_text())
    own, gradient = compiled(x, h)
    expected, pull = jax.vjp(cosines_of, x)
    np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gradient, pull(h)[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        own, te.interpret(t := cosines(p := te.placeholder((B, N), name="x")), {p: x}), atol=1e-4
    )
    assert len(known_in(t)) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda fn, x: fn(x),
        lambda fn, x: jax.vmap(fn)(jnp.stack([x, 2 * x]))[1] / 2,
        lambda fn, x: jax.lax.scan(lambda c, x: (c, fn(x)), 0, jnp.stack([x, x]))[1][0],
        lambda fn, x: jax.jvp(fn, (x,), (x,))[1],
        lambda fn, x: jax.checkpoint(fn)(x),
    ],
    ids=["call", "vmap", "scan", "jvp", "checkpoint"],
)
@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
def test_in_jax(use: Callable[..., Any], jit: bool, rng: np.random.Generator) -> None:
    x = jnp.asarray(rng.standard_normal((B, N)), "float32")
    fn = te.function(cosines)
    run = lambda x: use(fn, x)  # noqa: E731
    np.testing.assert_allclose((jax.jit(run) if jit else run)(x), cosines_of(x), rtol=1e-4, atol=1e-4)


def test_exported(rng: np.random.Generator) -> None:
    x = rng.standard_normal((B, N)).astype("float32")
    exported = jax.export.export(jax.jit(te.function(cosines)))(x)
    np.testing.assert_allclose(exported.call(x), cosines_of(x), rtol=1e-4, atol=1e-4)


def test_matrices_of_the_user_are_known_too() -> None:
    x = te.placeholder((B, N), name="x")
    k = te.reduce_axis((0, N), "k")
    matrix = te.compute((N, N), lambda k, f: 0.5 - te.sin(0.3 * k * f), "matrix")
    tensor = te.compute((B, N), lambda b, f: te.sum(x[b, k] * matrix[k, f], axis=k), "y")
    (made,) = known_in(tensor)
    assert made.shape == (N, N)


@pytest.mark.parametrize(
    "element",
    [
        lambda i, j: te.exp(-te.abs(te.cast(i - j, "float32"))),  # constant along lines
        lambda i, j: te.cos(0.1 * i) * te.cos(0.1 * j),  # two vectors
        lambda i, j: te.log(te.cast(i * j, "float32")),  # infinite where the product is 0
        lambda i, j: te.cast(i * j, "float32") * 0.5,  # nothing but arithmetic
    ],
    ids=["lines", "vectors", "infinite", "arithmetic"],
)
def test_left_alone(element: Callable[..., Any]) -> None:
    x = te.placeholder((N, N), name="x")
    assert not known_in(te.compute((N, N), lambda i, j: x[i, j] * element(i, j), "y"))


@pytest.mark.parametrize("size", [te.var("n"), 8, 2048], ids=["symbolic", "small", "large"])
def test_sizes_that_are_left_alone(size: Any) -> None:
    x = te.placeholder((size, size), name="x")
    assert not known_in(te.compute((size, size), lambda i, j: x[i, j] * te.cos(0.1 * i * j), "y"))


def test_other_dtypes_keep_theirs() -> None:
    """A function of positions takes the dtype of what it meets, which a tensor of float32 does not."""
    x = te.placeholder((N, N), "bfloat16", name="x")
    tensor = te.compute((N, N), lambda i, j: x[i, j] * te.cos(0.1 * i * j), "y")
    assert tensor.dtype == "bfloat16" and not known_in(tensor)
