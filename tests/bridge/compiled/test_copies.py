"""Copies, pickles and methods: functions are copied and pickled as functions of Python are, tensors are what they are."""

import copy
import functools
import pickle

import jax
import numpy as np
import pytest

import jaxte as te

X = np.arange(4, dtype="float32")


def scaled(x, s=2.0):
    return te.compute(x.shape, lambda i: s * x[i] * x[i], "y")


named = te.function(scaled, name="another name")


@te.function
def decorated(x):
    return te.compute(x.shape, lambda i: 3 * x[i], "y")


class Layer:
    def __init__(self, s: float) -> None:
        self.s = s

    @te.function(static_argnames=("self",))
    def apply(self, x):
        return scaled(x, self.s)

    @te.function
    def unregistered(self, x):
        return scaled(x, self.s)

    @staticmethod
    @te.function
    def static(x):
        return scaled(x)


def test_pickled_before_and_after_a_call() -> None:
    for fn in (
        te.function(scaled),
        named,
        te.function(functools.partial(scaled, s=3.0), name="p"),
        Layer.static,
    ):
        for _ in range(2):
            other = pickle.loads(pickle.dumps(fn))
            np.testing.assert_array_equal(other(X), fn(X))
            assert other.__name__ == fn.__name__
            jax.grad(lambda x, fn=fn: fn(x).sum())(X)


def test_a_decorated_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(Layer.apply)) is Layer.apply


def test_options_are_pickled() -> None:
    fn = te.function(scaled, platform="gpu", max_memory=10**6, static_argnames="s")
    other = pickle.loads(pickle.dumps(fn))
    assert other.options == fn.options
    assert other.static_argnames == ("s",)


def test_functions_and_tensors_are_copied_as_they_are() -> None:
    x = te.placeholder((4,), name="X")
    y = scaled(x)
    fn, graph = te.function(scaled), te.function([x], y)
    fn(X)
    for made in (copy.copy, copy.deepcopy):
        np.testing.assert_array_equal(made({"f": fn})["f"](X), fn(X))
        np.testing.assert_array_equal(made({"f": graph})["f"](X), fn(X))
        again = made([x, y])
        np.testing.assert_array_equal(te.evaluate(again[1], {again[0]: X}), fn(X))


def test_a_pickled_graph_is_another_graph_of_the_same_definitions() -> None:
    x, k = te.placeholder((4,), name="X"), te.axis("k")
    inverse = te.placeholder((4,), "int32", name="P")
    order = te.placeholder((4,), "int32", name="Q", facts=te.facts.permutation(inverse=inverse))
    y = te.compute(
        (4,), lambda i: te.max(x[k], over=k, where=k <= i) + te.select(i < 2, 1.0, x[order[i]]), "y"
    )
    given = [te.function([x, order], y), (x, y, order, inverse), k, te.constant(np.arange(99.0)), te.var("n")]
    fn, (x2, y2, order2, inverse2), k2, constant, n = pickle.loads(pickle.dumps(given))
    q = np.int32([3, 1, 0, 2])
    np.testing.assert_array_equal(fn(X, q), te.interpret(y, {x: X, order: q}))
    np.testing.assert_array_equal(te.interpret(y2, {x2: X, order2: q}), fn(X, q))
    assert order2.facts[0].inverse is inverse2 and inverse2 is not inverse
    assert te.definitions(y2) == te.definitions(y) and n is te.var("n") and constant.shape == (99,)
    assert te.compute(lambda i: te.sum(x2[i + k2] * x2[k2], over=k2), "z").shape == (1,)


def test_a_long_chain_of_tensors_is_pickled() -> None:
    x = y = te.placeholder((4,), name="X")
    for _ in range(300):
        y = te.compute((4,), lambda i, y=y: y[i] * 0.5, "y")
    assert te.definitions(pickle.loads(pickle.dumps((x, y)))[1]) == te.definitions(y)


def test_methods() -> None:
    layer = Layer(3.0)
    np.testing.assert_array_equal(layer.apply(X), 3 * X * X)
    np.testing.assert_array_equal(Layer.apply(layer, X), 3 * X * X)
    np.testing.assert_array_equal(jax.grad(lambda x: layer.apply(x).sum())(X), 6 * X)
    np.testing.assert_array_equal(layer.static(X), 2 * X * X)
    assert "y = 3.0 * x * x" in te.source(layer.apply, X)
    with pytest.raises(te.FeedError, match=r"Layer.* name the parameter in static_argnames"):
        layer.unregistered(X)
