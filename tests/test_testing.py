"""te.testing.check_grads and te.compare: that they pass what is right and fail what is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.networks import conv, dense, dense_jax, mlp, mlp_params, normal, softmax


def wrong_adjoint(x):
    """The square of x, whose override forgets the factor 2."""
    return te.compute(x.shape, lambda i: x[i] * x[i], "square")


def forget(result, x):
    half = lambda out, inputs, head: [te.compute(x.shape, lambda i: head[i] * x[i])]  # noqa: E731
    return {result: ([x], half)}


@pytest.mark.parametrize("order", [1, 2])
def test_check_grads_passes_right_gradients(rng, order: int) -> None:
    te.testing.check_grads(softmax, [normal(rng, 3, 4)], order=order)
    te.testing.check_grads(mlp, [mlp_params(rng), normal(rng, 2, 5)], order=order)
    te.testing.check_grads(
        te.function(conv), [normal(rng, 1, 2, 5, 5), normal(rng, 2, 2, 3, 3), 2], order=order
    )


def test_check_grads_of_a_graph(rng) -> None:
    X = te.placeholder((3, 4), "float64", name="X")
    te.testing.check_grads(softmax(X), [normal(rng, 3, 4, dtype="float64")])
    single = te.placeholder((3, 4), name="X")
    te.testing.check_grads([softmax(single)], [normal(rng, 3, 4)])


def test_check_grads_finds_a_wrong_gradient(rng) -> None:
    x = normal(rng, 5)
    te.testing.check_grads(te.function(wrong_adjoint), [x])
    with pytest.raises(AssertionError, match="order 1, argument x"):
        te.testing.check_grads(te.function(wrong_adjoint, override=forget), [x])


@jax.custom_vjp
def twice(x):
    return 2 * x


twice.defvjp(lambda x: (2 * x, None), lambda _, g: (3 * g,))


@jax.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, g: (g * twice(x),))


def test_check_grads_checks_the_second_order_too(rng) -> None:
    """The first derivative is right, the second, of ``twice``, is not."""
    f = te.function(lambda x: te.extern(x.shape, square, [x]))
    te.testing.check_grads(f, [normal(rng, 3)])
    with pytest.raises(AssertionError, match="order 2, argument x"):
        te.testing.check_grads(f, [normal(rng, 3)], order=2)


def test_check_grads_takes_integers_as_they_are(rng) -> None:
    f = lambda x, rows: te.compute((2,), lambda i: x[rows[i]] ** 2)  # noqa: E731
    te.testing.check_grads(f, [normal(rng, 4), np.array([3, 0], "int32")])
    with pytest.raises(te.DefinitionError, match="floating point"):
        te.testing.check_grads(lambda i: i, [np.array([1], "int32")])


def test_compare_reports_each_argument(rng) -> None:
    x, w = normal(rng, 6, 5), normal(rng, 5, 4)
    report = te.compare(dense, dense_jax, x, w)
    assert report.agrees and report.max_error < 1e-5
    assert list(report.gradient_errors) == ["x", "w"]
    assert [d.what for d in report.differences] == ["value", "gradient", "gradient"]
    assert "relative" in str(report) and "differs" not in str(report)


def test_compare_raises_with_the_table(rng) -> None:
    x = normal(rng, 5)
    f = te.function(wrong_adjoint, override=forget)
    with pytest.raises(AssertionError, match=r"gradient  x .*differs"):
        te.compare(f, lambda x: x * x, x)
    report = te.compare(f, lambda x: x * x, x, raises=False)
    assert not report.agrees and report.gradient_errors["x"] == pytest.approx(0.5)
    assert report.differences[0].agrees
    assert te.compare(f, lambda x: x * x, x, rtol=0.6).agrees


def test_compare_finds_wrong_values_shapes_and_structures(rng) -> None:
    x = normal(rng, 5)
    double = lambda x: te.compute(x.shape, lambda i: 2 * x[i])  # noqa: E731
    with pytest.raises(AssertionError, match=r"value .*differs"):
        te.compare(double, lambda x: 2 * x + 1, x)
    with pytest.raises(AssertionError, match="shape"):
        te.compare(double, lambda x: 2 * x[:3], x)
    with pytest.raises(AssertionError, match="the results are"):
        te.compare(double, lambda x: (2 * x,), x)


def test_compare_takes_nan_and_inf_for_equal() -> None:
    x = np.array([-1, 0, 2], "float32")
    log = lambda x: te.compute(x.shape, lambda i: te.log(x[i]))  # noqa: E731
    assert te.compare(log, jnp.log, x).agrees
    with pytest.raises(AssertionError):
        te.compare(log, lambda x: jnp.log(jnp.abs(x)), x)
