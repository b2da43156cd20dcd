"""Calls of a builder's function are checked against its parameters: with arrays where these are arrays, with Tensors where they are Tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, assert_type

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest

import jaxte as te

X, W = te.placeholder((5,), name="X"), te.placeholder((3,), name="W")
x, w = jnp.arange(5.0), jnp.array([1.0, 2.0, 4.0])


@te.function
def conv(x: jax.Array, w: jax.Array, stride: int = 1) -> te.Tensor:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[stride * i + k] * w[k], over=k))


@te.function
def conv_of_tensors(x: te.Tensor, w: te.Tensor, stride: int = 1) -> te.Tensor:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[stride * i + k] * w[k], over=k))


@te.function
def conv_of_either(x: te.Tensor | jax.Array, w: te.Tensor | jax.Array, stride: int = 1) -> te.Tensor:
    k = te.axis("k")
    return te.compute(lambda i: te.sum(x[stride * i + k] * w[k], over=k))


def test_calls_with_arrays() -> None:
    assert_type(conv(x, w), jax.Array)
    assert_type(conv(x, w, 2), jax.Array)
    assert_type(conv(x, w=w, stride=2), jax.Array)
    assert_type(conv(x=x, w=w), jax.Array)
    with pytest.raises(te.JaxteError):
        conv(x, w, strid=2)  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises(te.JaxteError):
        conv("a", w)  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises(te.JaxteError):
        conv(x)  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises(te.JaxteError):
        conv(x, w, 1, 2)  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises(te.JaxteError):
        conv(x, w, "2")  # type: ignore[call-overload]  # pyright: ignore


def test_calls_with_tensors() -> None:
    assert_type(conv(X, W, stride=2), te.Tensor)
    assert_type(conv(x=X, w=W), te.Tensor)
    assert_type(conv_of_tensors(X, W, stride=2), te.Tensor)
    assert_type(conv_of_tensors(x=X, w=W), te.Tensor)
    assert_type(conv_of_either(X, W, stride=2), te.Tensor)
    with pytest.raises((te.JaxteError, TypeError)):
        conv_of_tensors(X, W, strid=2)  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises((te.JaxteError, TypeError)):
        conv_of_tensors("a", W)  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises((te.JaxteError, TypeError)):
        conv_of_tensors(X)  # type: ignore[call-overload]  # pyright: ignore


def test_calls_with_arrays_of_builders_of_tensors() -> None:
    assert_type(conv_of_tensors(x, w), jax.Array)
    assert_type(conv_of_tensors(x, w=w, stride=2), jax.Array)
    assert_type(conv_of_tensors(x=x, w=w), jax.Array)
    assert_type(conv_of_tensors(np.ones(5), w), jax.Array)
    assert_type(conv_of_either(x, w, stride=2), jax.Array)
    with pytest.raises(te.JaxteError):
        conv_of_tensors("a", w)  # type: ignore[call-overload]  # pyright: ignore

    @te.function
    def shifted(x: te.Tensor, bias: te.Tensor | None = None, mode: str = "up") -> te.Tensor:
        sign = 1 if mode == "up" else -1
        return te.compute(lambda i: x[i] + (0.0 if bias is None else sign * bias[i]))

    @te.function
    def powered(n: int, x: te.Tensor) -> te.Tensor:
        return te.compute(lambda i: x[i] ** n)

    @te.function
    def total(*parts: te.Tensor) -> te.Tensor:
        return te.compute(lambda i: sum((p[i] for p in parts), te.cast(0.0, "float32")))

    assert_type(shifted(x, bias=x, mode="down"), jax.Array)
    assert_type(shifted(x, x, "down"), jax.Array)
    assert_type(powered(2, x), jax.Array)
    assert_type(powered(2, X), te.Tensor)
    assert_type(total(x, x, x), jax.Array)
    assert_type(total(X, X), te.Tensor)

    @te.function
    def activated(x: te.Tensor, f: Callable[..., te.Expr]) -> te.Tensor:
        return te.compute(lambda i: f(x[i]))

    assert_type(activated(x, te.tanh), jax.Array)
    assert_type(activated(x, lambda e: 2 * e), jax.Array)
    assert_type(activated(X, te.tanh), te.Tensor)
    assert activated(x, lambda e: 2 * e).tolist() == (2 * x).tolist()
    assert shifted(x, x, "down").tolist() == [0.0] * 5
    assert powered(2, x).tolist() == (x**2).tolist()
    assert total(x, x, x).tolist() == (3 * x).tolist()


class Weights(NamedTuple):
    scale: jax.Array


class TensorWeights(NamedTuple):
    scale: te.Tensor


def test_pytrees() -> None:
    @te.function
    def by_name(params: dict[str, te.Tensor], x: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
        y = te.compute(lambda i: params["scale"][i] * x[i])
        return y, te.compute(lambda i: y[i] + 1)

    @te.function
    def nested(layers: list[dict[str, te.Tensor]]) -> dict[str, te.Tensor]:
        return {"y": te.compute(lambda i: layers[0]["a"][i] * layers[1]["a"][i])}

    @te.function
    def by_class(weights: Weights, x: jax.Array) -> te.Tensor:
        return te.compute(lambda i: weights.scale[i] * x[i])

    @te.function
    def of_class(weights: TensorWeights, x: te.Tensor) -> te.Tensor:
        return te.compute(lambda i: weights.scale[i] * x[i])

    assert_type(by_name({"scale": x}, x), tuple[jax.Array, jax.Array])
    assert_type(by_name({"scale": X}, X), tuple[te.Tensor, te.Tensor])
    assert_type(nested([{"a": x}, {"a": x}]), dict[str, jax.Array])
    assert_type(by_class(Weights(x), x), jax.Array)
    assert by_class(Weights(x), x).tolist() == (x * x).tolist()
    assert_type(of_class(TensorWeights(X), X), te.Tensor)
    with pytest.raises(AttributeError):
        by_class("a", x)  # type: ignore[call-overload]  # pyright: ignore


def test_numpy_and_unknown_arguments() -> None:
    @te.loops
    def running(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        out = np.zeros(len(x))
        out[0] = x[0]
        for i in range(1, len(x)):
            out[i] = out[i - 1] + x[i]
        return out

    assert running(x).tolist() == [0.0, 1.0, 3.0, 6.0, 10.0]
    # of the parameter of this lambda a checker knows nothing
    assert jax.grad(lambda x: jnp.sum(te.function(conv.builder)(x, w)))(x).tolist() == [1, 3, 7, 6, 4]
    assert jax.grad(lambda x: jnp.sum(conv_of_tensors(x, w)))(x).tolist() == [1, 3, 7, 6, 4]
