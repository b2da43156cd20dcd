"""What flows alike into two tensors: the adjoint of a bias is a sum of the adjoint of what it is added to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Read, Reduce
from tests.networks import normal
from tests.xla_counts import Fused


def layer(activation):
    def build(x, w, b):
        k = te.reduce_axis((0, x.shape[1]), "k")
        y = te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")
        return te.compute(y.shape, lambda i, j: activation(y[i, j] + b[j]), "z")

    return build


def shapes():
    return te.placeholder((5, 3), name="x"), te.placeholder((3, 4), name="w"), te.placeholder((4,), name="b")


def test_the_adjoint_of_a_bias_reads_that_of_the_layer() -> None:
    x, w, b = shapes()
    z = layer(te.tanh)(x, w, b)
    found = te.differentiate(z, [w, b], head=te.placeholder(z.shape, name="H"))
    dy = found.adjoints[z.inputs[0]]
    body = found[1].body
    assert isinstance(body, Reduce) and isinstance(body.exprs[0], Read) and body.exprs[0].tensor is dy
    alone = te.differentiate(z, [b], head=te.placeholder(z.shape, name="H"))[0]
    assert te.cost([found[1], found[0]]).multiplications < te.cost([found[0], alone]).multiplications


def test_with_a_prefix_it_is_the_jacobian() -> None:
    x, w, b = shapes()
    z = layer(te.sigmoid)(x, w, b)
    rng = np.random.default_rng(0)
    feeds = {t: normal(rng, *t.shape) for t in (x, w, b)}
    found = te.evaluate(list(te.differentiate(z, [w, b])), feeds)
    expected = jax.jacrev(lambda w, b: jax.nn.sigmoid(feeds[x] @ w + b), (0, 1))(feeds[w], feeds[b])
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, e, 1e-4, 1e-6)


@pytest.mark.parametrize("kind", ["two readers", "returned", "scaled", "repeated", "subtracted"])
def test_where_they_receive_something_else_it_is_derived(kind: str) -> None:
    """Another reader, a head of its own, another slope, several places: each is in one adjoint and not in the other."""

    def build(x, b):
        y = te.compute((6, 4), lambda i, j: te.sin(x[i, j]), "y")
        at = {"repeated": lambda i, j: y[i // 2, j], "scaled": lambda i, j: 2 * y[i, j]}.get(
            kind, lambda i, j: y[i, j]
        )
        sign = -1.0 if kind == "subtracted" else 1.0
        z = te.compute((6, 4), lambda i, j: te.tanh(at(i, j) + sign * b[j]), "z")
        if kind == "two readers":
            return te.compute((6, 4), lambda i, j: z[i, j] * y[i, j], "out")
        return (z, y) if kind == "returned" else z

    def plain(x, b):
        y = jnp.sin(x)
        inner = {"repeated": jnp.repeat(y[:3], 2, axis=0), "scaled": 2 * y}.get(kind, y)
        z = jnp.tanh(inner + (-b if kind == "subtracted" else b))
        return z * y if kind == "two readers" else (z, y) if kind == "returned" else z

    rng = np.random.default_rng(1)
    x, b = normal(rng, 6, 4), normal(rng, 4)
    out, pull = jax.vjp(te.function(build), x, b)
    expected = jax.vjp(plain, x, b)[1](out)
    for a, e in zip(pull(out), expected, strict=True):
        np.testing.assert_allclose(a, e, 1e-4, 1e-5)


def test_a_second_derivative_takes_the_slope_once() -> None:
    """Tangents of both are added before they meet the slope, so that a Hessian takes no more operations than JAX's (of 0.10; a twentieth
    more than that of 0.12, and 1.2 times as many where the slope is taken for each)."""
    fn = te.function(layer(te.tanh))
    x = normal(np.random.default_rng(2), 32, 7)

    def flops(f) -> float:
        loss = lambda p: jnp.sum(f(x, p[:56].reshape(7, 8), p[56:]) ** 2)  # noqa: E731
        return Fused(jax.jit(jax.hessian(loss)).lower(jnp.ones(64))).cost_analysis()["flops"]

    assert flops(fn) <= 1.06 * flops(lambda x, w, b: jnp.tanh(x @ w + b))


def _steps(x, y, far=1, sign=-1):
    """Steps of what is left between ``x`` and ``y``, whose slope stands at two places of each."""
    rest = lambda i, d: x[i + d] + sign * y[i + (far if d else 0)]  # noqa: E731
    return te.compute((5,), lambda i: te.tanh(rest(i, 1) - rest(i, 0)), "z")


def _window(x, y, far=1, sign=-1):
    k = te.reduce_axis((0, 2), "k")
    return te.compute((5,), lambda i: te.sum(te.tanh(x[i + k] + sign * y[i + far * k]), axis=k), "z")


@pytest.mark.parametrize("build", [_steps, _window])
@pytest.mark.parametrize(("far", "sign", "reads"), [(1, -1, "-dy"), (1, 1, "dy"), (2, -1, ""), (2, 1, "")])
def test_what_is_subtracted_at_the_same_places_receives_the_opposite(build, far, sign, reads) -> None:
    x, y = te.placeholder((7,), name="x"), te.placeholder((7,), name="y")
    z = build(x, y, far, sign)
    found = te.differentiate(z, [x, y], head=te.placeholder((5,), name="H"))
    first, second = (str(t.body) for t in found)
    assert "dx[" not in second and (first.startswith(f"{reads}[") if reads else "dy[" not in first)
    rng = np.random.default_rng(3)
    feeds = {x: normal(rng, 7), y: normal(rng, 7)}
    values = te.evaluate(list(te.differentiate(z, [x, y])), feeds)

    def plain(x, y):
        at = np.arange(5)
        left = lambda d: x[at + d] + sign * y[at + far * d]  # noqa: E731
        return jnp.tanh(left(1) - left(0)) if build is _steps else jnp.tanh(left(0)) + jnp.tanh(left(1))

    expected = jax.jacrev(plain, (0, 1))(feeds[x], feeds[y])
    for a, e in zip(values, expected, strict=True):
        np.testing.assert_allclose(a, e, 1e-4, 1e-5)


def test_what_is_subtracted_at_one_place_and_added_at_another_receives_neither() -> None:
    x, y = te.placeholder((6,), name="x"), te.placeholder((6,), name="y")
    z = te.compute((5,), lambda i: te.tanh(x[i] - y[i] + x[i + 1] + y[i + 1]), "z")
    rng = np.random.default_rng(4)
    feeds = {x: normal(rng, 6), y: normal(rng, 6)}
    values = te.evaluate(list(te.differentiate(z, [x, y])), feeds)
    plain = lambda x, y: jnp.tanh(x[:-1] - y[:-1] + x[1:] + y[1:])  # noqa: E731
    for a, e in zip(values, jax.jacrev(plain, (0, 1))(feeds[x], feeds[y]), strict=True):
        np.testing.assert_allclose(a, e, 1e-4, 1e-5)
