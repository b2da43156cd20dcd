"""te.grad, te.value_and_grad and te.vjp beside those of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.networks import cross_entropy, cross_entropy_jax, dense, mlp, mlp_jax, mlp_params, normal


def close(found, expected, rtol=1e-5) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6), found, expected)


@te.function
def loss(params, x, labels):
    return cross_entropy(mlp(params, x), labels)


def loss_jax(params, x, labels):
    return cross_entropy_jax(mlp_jax(params, x), labels)


@pytest.fixture
def data(rng):
    return mlp_params(rng), normal(rng, 6, 5), rng.integers(0, 3, 6).astype("int32")


@pytest.mark.parametrize("argnums", [0, 1, (0,), (0, 1), (1, 0), -2])
def test_grad_and_value_and_grad_as_jax(data, argnums) -> None:
    close(te.grad(loss, argnums)(*data), jax.grad(loss_jax, argnums)(*data), 1e-4)
    close(te.value_and_grad(loss, argnums)(*data), jax.value_and_grad(loss_jax, argnums)(*data), 1e-4)


def test_they_take_functions_of_builders_and_of_graphs(data) -> None:
    x = data[1]
    X = te.placeholder(x.shape, name="X")
    i, j = te.reduce_axis((0, 6), "i"), te.reduce_axis((0, 5), "j")
    square = lambda x: te.compute((), lambda: te.sum(x[i, j] * x[i, j], axis=[i, j]))  # noqa: E731
    for f in (te.function(square), te.function([X], square(X))):
        close(te.grad(f)(x), 2 * x)


def test_auxiliary_results(data) -> None:
    def with_aux(params, x, labels):
        logits = mlp(params, x)
        return cross_entropy(logits, labels), {"logits": logits, "x": x}

    def with_aux_jax(params, x, labels):
        logits = mlp_jax(params, x)
        return cross_entropy_jax(logits, labels), {"logits": logits, "x": x}

    close(
        te.grad(te.function(with_aux), has_aux=True)(*data), jax.grad(with_aux_jax, has_aux=True)(*data), 1e-4
    )
    close(
        te.value_and_grad(te.function(with_aux), has_aux=True)(*data),
        jax.value_and_grad(with_aux_jax, has_aux=True)(*data),
        1e-4,
    )
    with pytest.raises(te.DefinitionError, match="has_aux=True"):
        te.grad(loss, has_aux=True)(*data)


def test_auxiliary_results_have_no_backward_pass(data) -> None:
    """Cotangents of zeros for them would cost as much as real ones."""

    def f(x):
        y = te.compute(x.shape, lambda i: te.exp(x[i]), "y")
        k = te.reduce_axis((0, 4), "k")
        return te.compute((), lambda: te.sum(x[k], axis=k), "total"), y

    x = np.arange(4, dtype="float32")
    te.grad(te.function(f), has_aux=True)(x)
    text = te.function(f).with_aux.source(x)
    backward = text[text.index("def backward") : text.index("def _fwd")]
    assert "exp" not in backward


def test_vjp_as_jax(data) -> None:
    params, x, _ = data
    value, pull = te.vjp(te.function(mlp), params, x)
    expected, pull_jax = jax.vjp(mlp_jax, params, x)
    close(value, expected)
    close(pull(jnp.ones_like(value)), pull_jax(jnp.ones_like(expected)), 1e-4)
    value, pull, aux = te.vjp(
        te.function(lambda x: (te.compute(x.shape, lambda i: 2 * x[i]), x)), jnp.ones(3), has_aux=True
    )
    close((value, pull(jnp.ones(3))[0], aux), (2 * np.ones(3), 2 * np.ones(3), np.ones(3)))


def test_under_jit_and_vmap(data) -> None:
    params, x, labels = data
    expected = jax.grad(loss_jax)(params, x, labels)
    close(jax.jit(te.grad(loss))(params, x, labels), expected, 1e-4)
    batch = np.stack([x, -x])
    found = jax.vmap(te.grad(loss, 1), (None, 0, None))(params, batch, labels)
    close(found, jax.vmap(jax.grad(loss_jax, 1), (None, 0, None))(params, batch, labels), 1e-4)


def test_static_arguments_pass_through() -> None:
    @te.function
    def f(x, power, act=None):
        k = te.reduce_axis((0, x.shape[0]), "k")
        return te.compute((), lambda: te.sum(x[k] ** power, axis=k))

    x = np.arange(1, 4, dtype="float32")
    close(te.grad(f)(x, 3, act="none"), 3 * x**2)


def test_the_gradient_is_the_derived_one() -> None:
    """An override shows in the result, so JAX did not differentiate the forward pass."""
    X = te.placeholder((3,), name="X")
    k = te.reduce_axis((0, 3), "k")
    T = te.compute((), lambda: te.sum(X[k], axis=k), "T")
    seven = lambda out, inputs, head: [te.compute((3,), lambda i: 7 * head[()])]  # noqa: E731
    f = te.function([X], T, override={T: ([X], seven)})
    close(te.grad(f)(np.ones(3, "float32")), np.full(3, 7))


def test_errors_are_of_the_types_of_jax(data) -> None:
    params, x, labels = data
    with pytest.raises(TypeError, match="scalar-output"):
        te.grad(te.function(dense))(x, normal(np.random.default_rng(0), 5, 2))
    with pytest.raises(
        TypeError, match="to argument 2, which holds an array of dtype int32: integers have none"
    ):
        te.grad(loss, 2)(params, x, labels)
    with pytest.raises((TypeError, ValueError), match="to argument 5: it is called with 3 arguments"):
        te.grad(loss, 5)(params, x, labels)
    with pytest.raises(te.DefinitionError, match="builder of Tensors"):
        te.grad(3)


def test_second_derivatives_of_a_maximum_share_as_the_first_at_ties() -> None:
    x = np.array([1, 2, 2, 0, 2, -1, 3, 3], "float32")
    X, k = te.placeholder((8,), name="X"), te.reduce_axis((0, 4), "k")
    Y = te.compute((5,), lambda i: te.max(X[i + k], axis=k), "Y")
    S = te.compute((5,), lambda i: te.sin(Y[i]), "S")
    H, G = te.placeholder((5,), name="H"), te.placeholder((8,), name="G")
    (dX,) = te.differentiate(S, [X], head=H)
    (second,) = te.differentiate(dX, [X], head=G)
    windows = np.stack([x[i : i + 4] for i in range(5)])
    shares = np.zeros((5, 8))
    for i, window in enumerate(windows):
        shares[i, i : i + 4] = (window == window.max()) / np.sum(window == window.max())
    expected = shares.T @ np.diag(-np.sin(windows.max(axis=1))) @ shares
    for n, direction in enumerate(np.eye(8, dtype="float32")):
        found = te.evaluate(second, {X: x, H: np.ones(5, "float32"), G: direction})
        np.testing.assert_allclose(found, expected[n], atol=1e-6)
