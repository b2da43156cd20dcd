"""One-hot products of values that may be infinite or NaN: the product where it is finite, else the scatter."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor

COUNT, ROWS, COLUMNS = 1500, 3, 48


def quotients(x: Tensor, t: Tensor, h: Tensor) -> Compute:
    """Values in the units of their kind."""
    return te.compute((COUNT, COLUMNS), lambda i, c: h[i, c] / x[t[i], c], "y")


def logarithms(x: Tensor, t: Tensor, h: Tensor) -> Compute:
    return te.compute((COUNT, COLUMNS), lambda i, c: h[i, c] * te.log(x[t[i], c] + 1.0), "y")


def activations(x: Tensor, t: Tensor, h: Tensor) -> Compute:
    """Functions of a row that may be absent."""
    return te.compute((COUNT, COLUMNS), lambda i, c: te.tanh(x[t[i], c] + h[i, c]), "y")


def along_rows(x: Tensor, t: Tensor, h: Tensor) -> Compute:
    """What flows back is the same for all columns."""
    c = te.reduce_axis((0, COLUMNS), "c")
    return te.compute((COUNT,), lambda i: h[i, 0] / te.sum(x[t[i], c], axis=c), "y")


FUNCTIONS: dict[str, Callable[..., Compute]] = {
    f.__name__: f for f in (quotients, logarithms, activations, along_rows)
}


def arguments(rng: np.random.Generator) -> list[np.ndarray]:
    x = rng.uniform(0.5, 2, (ROWS, COLUMNS)).astype("float32")
    t = rng.integers(0, ROWS, COUNT).astype("int32")
    return [x, t, rng.standard_normal((COUNT, COLUMNS)).astype("float32")]


def adjoint(name: str, given: list[np.ndarray], h: np.ndarray) -> tuple[te.Tensor, dict]:
    places = [te.placeholder(a.shape, str(a.dtype), name) for a, name in zip(given, "xth", strict=True)]
    y = FUNCTIONS[name](*places)
    head = te.placeholder(y.shape, name="head")
    (dx,) = te.differentiate(y, [places[0]], head=head)
    return dx, {**dict(zip(places, given, strict=True)), head: h}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("spoilt", ["finite", "zero", "inf", "nan", "absent", "head"])
def test_values(name: str, spoilt: str, rng: np.random.Generator) -> None:
    given = arguments(rng)
    h = rng.standard_normal(COUNT if name == "along_rows" else (COUNT, COLUMNS)).astype("float32")
    match spoilt:
        case "zero":
            given[0][1] = -1 if name == "logarithms" else 0
        case "inf" | "nan":
            given[0][2, 3] = float(spoilt)
        case "absent":
            given[1][7], given[1][9] = -1, ROWS
        case "head":
            h.reshape(-1)[5] = np.nan
    dx, feeds = adjoint(name, given, h)
    (expected,) = te.interpret([dx], feeds)
    (found,) = te.evaluate([dx], feeds)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["quotients", "logarithms", "activations"])
def test_the_scatter_is_taken_only_where_the_product_is_not_finite(
    name: str, rng: np.random.Generator
) -> None:
    given = arguments(rng)
    dx, _ = adjoint(name, given, given[2])
    source = str(te.source([dx]))
    assert source.count("jax.nn.one_hot(") == 1 == source.count("lax.cond(") == source.count(".at[t].add(")
    assert "lambda: jnp.zeros" in source
    assert "lax.cond" in te.function(FUNCTIONS[name]).source(*given)
    assert "lax.cond" not in te.function(FUNCTIONS[name], platform="gpu").source(*given)  # which would wait


def test_one_of_a_batch_that_is_spoilt_leaves_the_others(rng: np.random.Generator) -> None:
    x, t, h = arguments(rng)
    fn = te.function(quotients)
    both = np.stack([x, x])
    both[1, 1] = 0
    found = jax.vmap(jax.grad(lambda x: jnp.sum(fn(x, t, h))))(both)
    np.testing.assert_allclose(found[0], jax.grad(lambda x: jnp.sum(h / x[t]))(x), rtol=1e-3, atol=1e-3)
    assert not np.isfinite(found[1, 1]).any() and np.isfinite(found[1, [0, 2]]).all()
