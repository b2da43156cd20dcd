"""Builders with the annotations that users write, each of which mypy and pyright pass: Tensors, arrays of JAX and NumPy, jaxtyping, and none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

import jaxte as te

X = te.placeholder((5,), name="X")
W = te.placeholder((3,), name="W")
x, w = jnp.arange(5.0), jnp.array([1.0, 2.0, 4.0])
CONVOLVED = [10.0, 17.0, 24.0]


@te.function
def of_tensors(x: te.Tensor, w: te.Placeholder) -> te.Tensor:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[i + k] * w[k], over=k))


@te.function
def of_arrays(x: jax.Array, w: jax.Array) -> te.Tensor:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[i + k] * w[k], axis=k))


@te.function
def of_shaped_arrays(x: Float[Array, "n"], w: Float[Array, "k"]) -> te.Tensor:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[i + k] * w[k], over=k))


@te.function
def of_shaped_tensors(x: Float[te.Tensor, "n"], w: Float[te.Tensor, "k"]) -> Float[te.Tensor, "m"]:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[i + k] * w[k], over=k))


@te.function
def of_either(x: Float[te.Tensor | jax.Array, "n"], w: te.Tensor | jax.Array) -> te.Tensor:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[i + k] * w[k], over=k))


@te.function
def of_numpy(x: npt.NDArray[np.float32], w: npt.NDArray[np.float32]) -> te.Tensor:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[i + k] * w[k], over=k))


@te.function
def of_array_likes(x: ArrayLike, w: ArrayLike) -> jax.Array:
    return te.einsum("(i+k), k -> i", x, w)


of_text = te.define("y[i] = sum[k](x[i + k] * w[k])")


def test_arrays_give_arrays_and_tensors_tensors() -> None:
    assert_type(of_tensors(x, w), jax.Array)
    assert_type(of_arrays(x, w), jax.Array)
    assert_type(of_shaped_arrays(x, w), jax.Array)
    assert_type(of_shaped_tensors(x, w), jax.Array)
    assert_type(of_either(x, w), jax.Array)
    assert_type(of_numpy(x, w), jax.Array)
    assert_type(of_array_likes(np.float32(x), w), jax.Array)
    assert_type(of_tensors(X, W), te.Tensor)
    assert_type(of_arrays(X, W), te.Tensor)
    assert_type(of_shaped_arrays(X, W), te.Tensor)
    assert_type(of_shaped_tensors(X, W), te.Tensor)
    assert_type(of_numpy(x=X, w=W), te.Tensor)
    assert_type(of_either(X, W), te.Tensor)
    assert_type(of_text(x, w), jax.Array)
    for fn in (of_tensors, of_arrays, of_shaped_arrays, of_shaped_tensors, of_either, of_numpy, of_text):
        assert fn(x, w).tolist() == CONVOLVED
        assert fn(X, W).shape == (3,)
    assert of_array_likes(x, w).tolist() == CONVOLVED


def test_bodies_of_elements_of_arrays() -> None:
    @te.function
    def many(x: jax.Array, labels: Int[Array, "n"]) -> dict[str, te.Tensor]:
        assert_type(x[0], jax.Array)
        k, j = te.reduce_axis((0, 5), "k"), te.axis("j")
        assert_type(k * x[k], te.Expr)
        assert_type(x[k] * k, te.Expr)
        assert_type(x[k] > k, te.Expr)
        assert_type(te.exp(-x[0]), jax.Array)
        assert_type(te.maximum(x[0], 0.0), jax.Array)
        assert_type(te.maximum(0.0, x[0]), jax.Array)
        assert_type(te.maximum(x[0], te.exp(k)), te.Expr)
        assert_type(te.select(x[0] > 0, x[0], 0.0), jax.Array)
        assert_type(te.select(k > 0, x[k], 0.0), te.Expr)
        assert_type(te.select(True, 0.0, 1.0), te.Expr)
        assert_type(te.clip(x[k], 0.0, 1.0), jax.Array)
        assert_type(te.clip(x[k], k, 2 * k), te.Expr)
        assert_type(te.logical_and(x[0] > 0, x[1] > 0), jax.Array)
        assert_type(te.logical_not(k > 0), te.Expr)
        assert_type(te.cast(x[0], "float32"), jax.Array)
        assert_type(te.leaky_relu(x[0]), jax.Array)
        assert_type(te.max(x[k], over=k), te.Expr)
        assert_type(te.argmax(x[k], over=k), te.Expr)
        assert_type(te.softmax(x[k], over=k), te.Expr)
        assert_type(te.norm(x[k], over=k), te.Expr)
        assert_type(te.stack([x[n] for n in range(5)], axis=k), te.Expr)
        assert_type(te.choose(k, [x[0], 2.0, 3.0, 4.0, 5.0]), te.Expr)
        twice = te.exp(x)
        assert_type(twice, jax.Array)
        return {
            "softmax": te.compute(x.shape, lambda i: te.softmax(x[i], over=i)),
            "shifted": te.compute(x.shape, lambda i: te.select(i > 0, x[i - 1], 0.0)),
            "picked": te.compute(lambda i: x[labels[i]]),
            "total": te.compute((), lambda: te.sum(te.exp(-(x[j] ** 2)), over=j)),
            "whole": te.compute((5,), lambda i: twice[i]),
        }

    found = many(x, jnp.array([1, 1, 0, 2, 4]))
    assert_type(found, dict[str, jax.Array])
    assert found["shifted"].tolist() == [0, 0, 1, 2, 3]
    assert found["picked"].tolist() == [1, 1, 0, 2, 4]
    assert jnp.allclose(found["whole"], jnp.exp(x)) and jnp.allclose(found["softmax"], jax.nn.softmax(x))
    assert jnp.allclose(found["total"], jnp.sum(jnp.exp(-(x**2))))


def test_a_body_of_indices_alone_is_no_any() -> None:
    """A lambda's indices have no annotations; what is made of it has a type all the same."""
    assert_type(te.compute((5,), lambda i: i * X[i]), te.Compute)
    assert_type(te.compute((5,), lambda i: te.exp(i) * X[i]), te.Compute)
    assert_type(te.compute((5,), lambda i: te.select(i > 2, X[i], 0.0)), te.Compute)
    assert_type(te.compute(lambda i: i + X[i], "y"), te.Compute)
    assert_type(te.compute((5,), lambda i: i), te.Compute)
    assert_type(te.compute((5, 5), lambda *i: 2 * X[i[0]]), te.Compute)
    assert_type(te.compute((5,), lambda i: (i * X[i], i)), tuple[te.Compute, ...])
    assert_type(te.compute(lambda i: [i * X[i], i]), tuple[te.Compute, ...])
    assert_type(te.compute((5, 5), lambda *i: (i[0], i[1])), tuple[te.Compute, ...])
    assert_type(te.recurrence((5,), lambda h, t: 0.5 * h[t - 1] + t, init=0.0), te.Tensor)
    assert_type(
        te.recurrence((5,), lambda p, q, t: (t + q[t - 1], p[t] * t), init=[0.0, 0.0]), tuple[te.Tensor, ...]
    )
    assert_type(te.recurrence((5, 2), lambda h, t, i: i * h[t - 1, i], init=1.0), te.Tensor)

    def one(i: te.Axis) -> te.Expr:
        return i * X[i]

    def two(i: te.Expr) -> tuple[te.Expr, float]:
        return i * X[i], 2.0

    def both(p: te.Tensor, q: te.Tensor, t: te.Expr) -> tuple[te.Expr, te.Expr]:
        return p[t - 1] + 1, q[t - 1] + 2

    def given(body: Callable[..., te.Expr]) -> te.Compute:
        return te.compute((5,), body)

    assert_type(te.compute((5,), one), te.Compute)
    assert_type(te.compute((5,), two), tuple[te.Compute, ...])
    assert_type(te.recurrence((5,), both, init=0.0), tuple[te.Tensor, ...])
    assert given(one).shape == (5,)


class Smooth(eqx.Module):
    w: Float[Array, "k"]

    @te.function
    def __call__(self, x: Float[Array, "n"]) -> te.Tensor:
        k = te.axis("k")
        return te.compute(lambda i: te.sum(x[i + k] * self.w[k], over=k))


@te.function
def twice_smooth(first: Smooth, second: Smooth, x: jax.Array) -> jax.Array:
    return second(first(x))


def test_modules_and_pytrees() -> None:
    smooth = Smooth(w)
    assert_type(smooth(x), jax.Array)
    assert smooth(x).tolist() == CONVOLVED
    assert_type(twice_smooth(smooth, smooth, jnp.ones(8)), jax.Array)
    assert twice_smooth(smooth, smooth, jnp.ones(8)).tolist() == [49.0] * 4

    @te.function
    def scaled(params: dict[str, jax.Array], x: jax.Array) -> tuple[te.Tensor, te.Tensor]:
        j = te.axis("j")
        y = te.compute(lambda i: params["a"][i] * x[i] + params["b"][()])
        return y, te.compute((), lambda: te.sum(y[j], over=j))

    params: dict[str, jax.Array] = {"a": x, "b": jnp.ones(())}
    assert_type(scaled(params, x), tuple[jax.Array, jax.Array])


def test_functions_of_elements() -> None:
    def score(q: te.ScalarLike, k: te.ScalarLike) -> te.Expr:
        return te.maximum(te.exp(q), k)

    def of_array(a: jax.Array) -> jax.Array:
        return te.tanh(a) * a

    @te.function
    def scores(x: jax.Array) -> te.Tensor:
        k = te.reduce_axis((0, 5), "k")
        return te.compute(x.shape, lambda i: te.sum(score(x[i], x[k]) * of_array(x[k]), over=k))

    squared = te.define("y[i] = f(x[i])", f=of_array)
    assert_type(squared(x), jax.Array)
    assert_type(scores(x), jax.Array)
    assert jnp.allclose(squared(x), jnp.tanh(x) * x)


@te.function
def attention(q: Float[Array, "n d"], k: Float[Array, "m d"], v: Float[Array, "m e"]) -> te.Tensor:
    c, j = te.indices("c j")
    s = te.compute(lambda i, j: te.sum(q[i, c] * k[j, c], over=c) / q.shape[1] ** 0.5, "s")
    p = te.compute(s.shape, lambda i, j: te.softmax(s[i, j], over=j), "p")
    return te.compute(lambda i, e: te.sum(p[i, j] * v[j, e], over=j))


@te.function
def rows(table: jax.Array, ids: Int[Array, "n"], scale: float = 1.0) -> te.Tensor:
    te.assume(ids, te.facts.within(5))
    return te.compute((*ids.shape, 2), lambda i, j: scale * table[ids[i], j])


@te.function
def shuffled(x: jax.Array, p: Int[Array, "n"], q: Int[Array, "n"]) -> te.Tensor:
    te.assume(p, te.facts.permutation(inverse=q))
    return te.compute(x.shape, lambda i: x[p[i]])


@te.function
def recurrent(w: jax.Array, xs: jax.Array) -> te.Tensor:
    k = te.axis("k")

    def step(h: te.Tensor, t: te.Axis, i: te.Axis) -> te.Expr:
        return te.tanh(xs[t, i] + te.sum(w[i, k] * h[t - 1, k], over=k))

    return te.recurrence(xs.shape, step, init=0.0)


@te.custom_gradient
def rounded(x: jax.Array) -> te.Tensor:
    return te.compute(x.shape, lambda i: te.round(x[i]))


rounded.defgrad(lambda x: (te.round(x), ()), lambda kept, head: (head,))


@te.function
def passed(x: jax.Array) -> te.Tensor:
    return te.straight_through(te.round(x), te.scale_gradient(x, 2.0))


@te.function
def inverse(a: jax.Array) -> te.Tensor:
    return te.extern((2, 2), jnp.linalg.inv, [a])


def test_programs_of_arrays() -> None:
    y = jnp.arange(10.0).reshape(5, 2) / 8
    assert_type(attention(y, y, y), jax.Array)
    assert_type(rows(y, jnp.array([4, 0]), scale=2.0), jax.Array)
    assert_type(recurrent(jnp.eye(2), y), jax.Array)
    assert_type(shuffled(x, jnp.arange(5), jnp.arange(5)), jax.Array)
    assert_type(rounded(x), jax.Array)
    assert_type(rounded(X), te.Tensor)
    assert_type(inverse(jnp.eye(2)), jax.Array)
    assert jnp.allclose(attention(y, y, y), jax.nn.softmax(y @ y.T / 2**0.5) @ y, atol=1e-6)
    assert rows(y, jnp.array([4, 0]), scale=2.0).tolist() == (2 * y[jnp.array([4, 0])]).tolist()
    assert jax.grad(lambda x: jnp.sum(passed(x)))(x).tolist() == [2.0] * 5


def test_mistakes_in_bodies_are_found() -> None:
    @te.function
    def wrong(x: jax.Array) -> te.Tensor:
        return te.compute((3,), lambda i: str(x[i]))  # type: ignore[arg-type, return-value]  # pyright: ignore

    @te.function
    def wrong_sum(x: jax.Array) -> te.Tensor:
        return te.compute((3,), lambda i: te.sum("x", over=te.axis("k")))  # type: ignore[arg-type]  # pyright: ignore

    with pytest.raises(te.JaxteError):
        wrong(x)
    with pytest.raises(te.JaxteError):
        wrong_sum(x)


def untyped(x: Any) -> Any:
    return te.compute(lambda i: 2 * x[i])


def test_without_annotations() -> None:
    assert_type(te.function(lambda x: te.compute(lambda i: 2 * x[i]))(x), jax.Array)
    assert te.function(untyped)(x).tolist() == [0, 2, 4, 6, 8]
