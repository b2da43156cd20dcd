"""Options of a te.function that is called with Tensors: derivatives go with its tensors, the rest is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

X = jnp.asarray([0.0, 0.9, 1.8], "float32")


def rounded(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i: te.round(x[i]), "R")


def pass_on(out: Any, inputs: Any, head: Any) -> list[Any]:
    return [head]


def doubled(out: Any, source: Any, head: Any) -> te.Tensor:
    """Not the derivative: what an fdiff may be all the same."""
    return te.compute(source.shape, lambda i: 2 * head[i])


straight = te.function(rounded, override=lambda r, x: {r: ([x], pass_on)})
blocked = te.function(rounded, override=lambda r, x: {r: ([], lambda out, inputs, head: [])})
by_fdiff = te.function(lambda x: te.compute(x.shape, lambda i: te.sin(x[i]), "S"), fdiff=doubled)


class Layer:
    @partial(te.function, override=lambda r, self, x: {r: ([x], pass_on)}, static_argnames="self")
    def __call__(self, x: te.Tensor) -> te.Tensor:
        return rounded(x)


WAYS: dict[str, Any] = {
    "composed in JAX": lambda f: jax.grad(lambda x: jnp.sum(f(x) ** 2)),
    "in a te.function": lambda f: jax.grad(te.function(lambda x: te.ops.sum(f(x) ** 2))),
    "in te.grad": lambda f: te.grad(te.function(lambda x: te.ops.sum(f(x) ** 2))),
    "in te.grad of a JAX function": lambda f: te.grad(lambda x: jnp.sum(f(x) ** 2)),
    "in te.value_and_grad": lambda f: (
        lambda x: te.value_and_grad(te.function(lambda x: te.ops.sum(f(x) ** 2)))(x)[1]
    ),
    "two functions deep": lambda f: jax.grad(
        te.function(lambda x: te.function(lambda y: te.ops.sum(f(y) ** 2))(x))
    ),
    "applied partially": lambda f: te.grad(te.function(lambda x: te.ops.sum(partial(f)(x) ** 2))),
    "in pytrees": lambda f: (
        lambda x: te.grad(te.function(lambda d: te.ops.sum(f(d["a"][0]) ** 2)))({"a": [x]})["a"][0]
    ),
    "batched": lambda f: (
        lambda x: jax.vmap(te.grad(te.function(lambda x: te.ops.sum(f(x) ** 2))))(x[None])[0]
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_override_goes_with_its_tensor(way: str) -> None:
    np.testing.assert_array_equal(WAYS[way](straight)(X), [0, 2, 4])
    np.testing.assert_array_equal(WAYS[way](Layer())(X), [0, 2, 4])


@pytest.mark.parametrize("way", WAYS)
def test_a_blocked_gradient_stays_blocked(way: str) -> None:
    np.testing.assert_array_equal(WAYS[way](blocked)(X), [0, 0, 0])


@pytest.mark.parametrize("way", WAYS)
def test_fdiff_goes_with_the_tensors_between_arguments_and_results(way: str) -> None:
    np.testing.assert_allclose(WAYS[way](by_fdiff)(X), 4 * np.sin(X), rtol=1e-6)


def test_fdiff_of_an_inner_function_ends_at_its_arguments() -> None:
    def outer(x: te.Tensor) -> te.Tensor:
        return te.ops.sum(by_fdiff(te.compute(x.shape, lambda i: te.exp(x[i]))))

    np.testing.assert_allclose(te.grad(te.function(outer))(X), 2 * np.exp(X), rtol=1e-6)


def test_what_is_given_outside_counts_before_what_a_tensor_came_with() -> None:
    x = te.placeholder((3,), name="x")
    r = straight(x)
    triple = {r: ([x], lambda out, inputs, head: [te.compute((3,), lambda i: 3 * head[i])])}
    head = te.placeholder((3,), name="H")
    (own,) = te.differentiate(r, [x], head)
    (other,) = te.differentiate(r, [x], head, override=triple)
    feeds = {head: np.ones(3, "float32")}
    np.testing.assert_array_equal(te.evaluate(own, feeds), [1, 1, 1])
    np.testing.assert_array_equal(te.evaluate(other, feeds), [3, 3, 3])


@pytest.mark.parametrize(
    "option", [{"max_memory": 1e6}, {"forms": {"R": "general"}}, {"platform": "gpu"}, {"debug": True}]
)
def test_options_about_code_are_refused_in_a_larger_function(option: dict[str, Any]) -> None:
    own = te.function(rounded, **option)
    assert own(X).shape == (3,)  # by itself it is as ever
    (name,) = option
    with pytest.raises(
        te.DefinitionError, match=rf"rounded is called with Tensors.*{name}= of rounded.*around it"
    ):
        te.grad(te.function(lambda x: te.ops.sum(own(x))))(X)


def test_an_override_of_a_tensor_that_is_not_there_is_named() -> None:
    x = te.placeholder((3,), name="x")
    y, z = (te.compute((3,), lambda i, c=c: c * x[i], n) for c, n in ((2.0, "Y"), (3.0, "Z")))
    head = te.placeholder((3,), name="H")
    with pytest.raises(te.DifferentiationError, match="override has Z, which Y does not depend on"):
        te.differentiate(y, [x], head, override={z: ([x], pass_on)})
    with pytest.raises(te.DifferentiationError, match="override has Z"):
        te.function([x], y, override={z: ([x], pass_on)})
    builder = te.function(rounded, override=lambda r, x: {rounded(x): ([x], pass_on)})
    with pytest.raises(te.DifferentiationError, match="override has R, which R does not depend on"):
        builder(X)


@pytest.mark.parametrize("among_tensors", [False, True])
@pytest.mark.parametrize("way", ["itself", "by way of a definition"])
def test_a_gradient_that_would_go_to_another_function_is_refused(way: str, among_tensors: bool) -> None:
    """It would be lost in silence: the placeholder is no input of this function."""
    other, x = te.placeholder((4,), name="other"), te.placeholder((4,), name="x")
    twice = te.compute((4,), lambda i: 2 * other[i], "twice")
    y = te.compute((4,), lambda i: te.round(x[i]), "y")
    source = other if way == "itself" else twice
    with pytest.raises(te.DifferentiationError) as error:
        fn = te.function([x], y, override={y: ([source], lambda out, inputs, head: [head])})
        if among_tensors:
            fn(te.placeholder((4,), name="z"))
        else:
            fn(jnp.ones(4))
    made = "" if way == "itself" else ", which is computed from other,"
    assert (
        f"the override of y passes a gradient to {source.name}{made} but the inputs of the function are x"
        in str(error.value)
    )


def test_a_gradient_to_what_no_input_has_is_none() -> None:
    """A constant, or a part of a definition, may be a dependency."""
    x = te.placeholder((4,), name="x")
    own, half = te.constant(np.ones(4, "float32"), name="own"), te.compute((4,), lambda i: 0.5 * x[i], "half")
    y = te.compute((4,), lambda i: te.round(half[i]), "y")
    fn = te.function([x], y, override={y: ([own, half], lambda out, inputs, head: [head, head])})
    np.testing.assert_allclose(jax.grad(lambda a: jnp.sum(fn(a)))(jnp.ones(4)), 0.5)
