"""Slices moved before layers: values, gradients of both orders, and what is not computed."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.frontends.jaxpr.narrow.boxes import shape_of, taken, united
from tests.xla_counts import Fused


def normed(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attended(x: Any, w: Any, v: Any) -> Any:
    """One block of a decoder, and what it says of the last position."""
    b, t, _ = x.shape
    q, k, u = ((normed(x) @ w[:, n * 32 : n * 32 + 32]).reshape(b, t, 4, 8) for n in range(3))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
    a = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), u).reshape(b, t, 32)
    h = x + a @ v
    return (h + jax.nn.gelu(normed(h) @ v) @ v)[:, -1]


def graph(x: Any, w: Any, v: Any) -> Any:
    """A layer of a graph of which some nodes have labels."""
    h = jax.nn.relu(jnp.tanh(x.reshape(-1, 32) @ w) @ w.T)
    return jax.nn.log_softmax(h)[jnp.array([3, 40, 7, 3])]


def images(x: Any, w: Any, v: Any) -> Any:
    """Some images and features of a convolution, pooled and scaled."""
    y = jax.lax.conv(x[:, None], w[:, :9].reshape(-1, 1, 3, 3), (1, 1), "SAME")
    y = jax.nn.softplus(y) * jnp.arange(1.0, 33.0)[:, None, None]
    y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return jnp.sort(jnp.cumsum(y, 2), 3)[1, ::8]


def rows(x: Any, w: Any, v: Any) -> Any:
    """The first and the last of what a layer makes, transposed, joined and reduced."""
    h = jnp.concatenate([x @ v, jnp.exp(-(x**2))], -1).transpose(2, 1, 0)
    h = jnp.pad(h, ((0, 0), (0, 0), (1, 2))).max(2) + jnp.arange(h.shape[1])
    return h[:, 0] * h[:, -1]


def read_elsewhere(x: Any, w: Any, v: Any) -> Any:
    h = jnp.tanh(x @ v)
    return h[:, -1].sum() * h.sum()


# with how many of JAX's operations at most
FUNCTIONS: dict[str, tuple[Callable[..., Any], float]] = {
    "attended": (attended, 0.5),
    "graph": (graph, 0.3),
    "images": (images, 0.3),
    "rows": (rows, 0.3),
    "read elsewhere": (read_elsewhere, 2.0),
}


def arguments(rng: np.random.Generator) -> list[Any]:
    shapes = (4, 24, 32), (32, 96), (32, 32)
    return [jnp.asarray(rng.normal(size=s).astype("float32")) / 4 for s in shapes]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_read_is_what_is_computed(name: str, rng: np.random.Generator) -> None:
    f, share = FUNCTIONS[name]
    args = arguments(rng)
    loss = lambda *xs: jnp.sum(f(*xs) ** 2)  # noqa: E731
    own, jaxs = (
        Fused(jax.jit(jax.value_and_grad(g, (0, 1, 2))).lower(*args)) for g in (te.adjoint(loss), loss)
    )
    for a, b in zip(jax.tree.leaves(own(*args)), jax.tree.leaves(jaxs(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * float(abs(b).max()) + 1e-30)
    assert own.cost_analysis()["flops"] < share * jaxs.cost_analysis()["flops"]
    parts = te.explain(te.adjoint(loss), *args).parts
    assert bool(parts) == (name != "read elsewhere")


@pytest.mark.parametrize("name", ["attended", "graph"])
def test_second_order_and_batches(name: str, rng: np.random.Generator) -> None:
    """Functions with tangents of their own keep them."""
    f, _ = FUNCTIONS[name]
    args = arguments(rng)
    loss = lambda x: jnp.sum(f(x, *args[1:]) ** 2)  # noqa: E731
    twice = [jax.jit(lambda x, g=g: jax.jvp(jax.grad(g), (x,), (x,))[1]) for g in (te.adjoint(loss), loss)]
    a, b = (g(args[0]) for g in twice)
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * float(abs(b).max()))
    batch = jnp.stack([args[0], args[0] / 2])
    a, b = (jax.jit(jax.vmap(jax.grad(g)))(batch) for g in (te.adjoint(loss), loss))
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * float(abs(b).max()))


def test_own_tangents_are_kept() -> None:
    """The derivative that a function was given holds where a part of it is computed too."""

    @jax.custom_jvp
    def twice(x: Any) -> Any:
        return 2 * x

    twice.defjvp(lambda xs, ts: (twice(*xs), 5 * ts[0]))
    x, w = jnp.ones((256, 64)), jnp.eye(64)
    loss = lambda x: jnp.sum(twice(jnp.sin(x @ w))[-1])  # noqa: E731
    assert te.explain(te.adjoint(loss), x).parts
    np.testing.assert_allclose(te.grad(loss)(x), jax.grad(loss)(x), rtol=1e-6)


def test_where_it_stands(rng: np.random.Generator) -> None:
    """The lines of ``te.explain`` are those of the user's source."""
    args = arguments(rng)
    report = te.explain(te.adjoint(lambda *xs: jnp.sum(graph(*xs))), *args)
    assert all(
        line.where.startswith("test_narrow.py") for line in (*report.parts, *report.kept) if line.where
    )
    assert "3 of 96 positions are read, and computed" in str(report)


def test_boxes() -> None:
    x = np.arange(60).reshape(6, 10)
    some = (np.array([1, 4]), None)
    other = (np.array([0, 4]), np.array([2]))
    both = united([some, other], x.shape)
    assert shape_of(both, x.shape) == (3, 10)
    np.testing.assert_array_equal(taken(taken(x, (None, None), both), both, other), x[[0, 4]][:, [2]])
    assert shape_of(united([some, (np.arange(3), None)], x.shape), x.shape) == x.shape  # four of six
