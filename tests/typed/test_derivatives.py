"""Gradients of decorated builders keep the parameters of the builder and the types of its arguments, whatever these are annotated with."""

from __future__ import annotations

import copy
import pickle
from typing import assert_type

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float

import jaxte as te
from jaxte.bridge.compiled.explain import Explanation

x, w = jnp.arange(3.0), jnp.array([1.0, 2.0, 4.0])
Params = dict[str, jax.Array]
Pair = tuple[jax.Array, jax.Array]


@te.function
def of_arrays(x: jax.Array, w: jax.Array, scale: float = 1.0) -> te.Tensor:
    i = te.axis("i")
    return te.compute((), lambda: scale * te.sum(x[i] ** 2 * w[i], over=i))


@te.function
def of_shaped_arrays(x: Float[Array, "n"], w: Float[Array, "n"]) -> jax.Array:
    return of_arrays(x, w)


@te.function
def of_tensors(x: te.Tensor, w: te.Tensor, scale: float = 1.0) -> te.Tensor:
    return of_arrays(x, w, scale)


@te.function
def of_either(x: te.Tensor | jax.Array, w: te.Tensor | jax.Array) -> te.Tensor:
    i = te.axis("i")
    return te.compute((), lambda: te.sum(x[i] ** 2 * w[i], over=i))


@te.function
def of_params(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return of_arrays(x, p["w"])


@te.function
def of_tensor_params(p: dict[str, te.Tensor], x: te.Tensor) -> te.Tensor:
    return of_arrays(x, p["w"])


@te.function
def with_result(x: jax.Array, w: jax.Array) -> tuple[jax.Array, te.Tensor]:
    return of_arrays(x, w), te.compute(lambda i: x[i] * w[i])


def test_gradients_of_arrays() -> None:
    assert_type(te.grad(of_arrays)(x, w), jax.Array)
    assert_type(te.grad(of_arrays)(x, w=w, scale=2.0), jax.Array)
    assert_type(te.grad(of_arrays, 1)(x, w), jax.Array)
    assert_type(te.grad(of_arrays, (0, 1))(x, w), Pair)
    assert_type(te.grad(of_shaped_arrays)(x, w), jax.Array)
    assert_type(te.grad(of_params)({"w": w}, x), Params)
    assert_type(te.grad(of_params, 1)({"w": w}, x), jax.Array)
    assert_type(te.grad(with_result, has_aux=True)(x, w), Pair)
    assert_type(te.value_and_grad(of_arrays)(x, w), Pair)
    assert_type(te.value_and_grad(of_params)({"w": w}, x), tuple[jax.Array, Params])
    assert_type(te.value_and_grad(of_arrays, (0, 1))(x, w), tuple[jax.Array, Pair])
    assert te.grad(of_arrays)(x, w=w, scale=2.0).tolist() == [0.0, 8.0, 32.0]
    assert te.grad(with_result, has_aux=True)(x, w)[1].tolist() == [0.0, 2.0, 8.0]
    with pytest.raises(te.JaxteError):
        te.grad(of_arrays)(x)  # type: ignore[call-arg]  # pyright: ignore
    with pytest.raises(te.JaxteError):
        te.grad(of_arrays)(x, w, scal=2.0)  # type: ignore[call-arg]  # pyright: ignore
    with pytest.raises(te.JaxteError):
        te.value_and_grad(of_params)({"w": w})  # type: ignore[call-overload]  # pyright: ignore


def test_gradients_of_tensors_are_called_with_arrays() -> None:
    assert_type(te.grad(of_tensors)(x, w), jax.Array)
    assert_type(te.grad(of_tensors)(x, w, scale=2.0), jax.Array)
    assert_type(te.grad(of_tensors, argnums=1)(x, w), jax.Array)
    assert_type(te.grad(of_tensors, (0, 1))(x, w), Pair)
    assert_type(te.grad(of_either)(x, w), jax.Array)
    assert_type(te.grad(of_tensor_params)({"w": w}, x), Params)
    assert_type(te.grad(of_tensor_params, 1)({"w": w}, x), jax.Array)
    assert_type(te.grad(of_tensor_params, (0, 1))({"w": w}, x), tuple[Params, jax.Array])
    assert_type(te.value_and_grad(of_tensors)(x, w), Pair)
    assert_type(te.value_and_grad(of_tensors, (0, 1))(x, w), tuple[jax.Array, Pair])
    assert_type(te.value_and_grad(of_tensor_params)({"w": w}, x), tuple[jax.Array, Params])
    assert te.grad(of_tensor_params)({"w": w}, x)["w"].tolist() == [0.0, 1.0, 4.0]


def test_vjp_and_its_kin() -> None:
    p = {"w": w}
    assert_type(te.vjp(of_arrays, x, w)[1](jnp.ones(())), tuple[jax.Array, ...])
    assert_type(te.vjp(of_params, p, x)[1](jnp.ones(())), tuple[Params, jax.Array])
    assert_type(te.jvp(of_arrays, (x, w), (x, w)), Pair)
    assert_type(te.linearize(of_arrays, x, w)[0], jax.Array)
    assert_type(te.adjoint(of_arrays)(x, w, scale=2.0), jax.Array)
    assert_type(te.adjoint(of_tensors)(x, w), jax.Array)
    assert_type(te.adjoint(of_tensor_params)(p, x), jax.Array)
    assert_type(te.grad(te.adjoint(of_params))(p, x), Params)
    with pytest.raises(te.JaxteError):
        te.adjoint(of_arrays)(x)  # type: ignore[call-arg]  # pyright: ignore


def test_gradients_are_pickled_copied_and_explained() -> None:
    for gradient in (
        te.grad(of_arrays, (0, 1)),
        te.grad(with_result, has_aux=True),
        te.grad(te.adjoint(of_arrays)),
    ):
        want = jax.tree.leaves(gradient(x, w))
        for again in (pickle.loads(pickle.dumps(gradient)), copy.deepcopy(gradient), copy.copy(gradient)):
            assert [a.tolist() for a in jax.tree.leaves(again(x, w))] == [a.tolist() for a in want]
    assert "def backward" in te.source(te.grad(of_arrays), x, w)
    explained = te.explain(te.grad(of_arrays), x, w)
    assert_type(explained, Explanation)
    again = pickle.loads(pickle.dumps(explained))
    assert str(again) == str(explained) and "XLA, backward" in str(again)
    raised = te.explain(te.grad(lambda u: jnp.sum(jnp.roll(u, 1) * u)), x)
    assert str(pickle.loads(pickle.dumps(raised))) == str(raised)
