"""Derivatives that users give: functions of arrays, regions, custom_gradient, one-liners; within larger definitions, in both modes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

V = np.float32([0.3, -1.2, 2.0, 0.7])


def around(middle: Any) -> Any:
    """A definition with ``middle`` inside: something before it and something after it are derived."""

    def loss(x):
        before = te.compute(x.shape, lambda i: x[i] * x[i], "before")
        after = middle(before)
        k = te.reduce_axis((0, x.shape[0]), "k")
        return te.compute((), lambda: te.sum(te.sin(after[k]) * x[k], axis=k), "loss")

    return loss


def plain(middle: Any) -> Any:
    return lambda x: jnp.sum(jnp.sin(middle(x * x)) * x)


def root(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i: te.sqrt(x[i]), "root")


@jax.custom_vjp
def jax_root(x):
    return jnp.sqrt(x)


def _forward(x):
    return jnp.sqrt(x), {"x": x}


def _backward(kept, ct):
    return (3 * ct * kept["x"],)  # not the derivative, so that it is seen


jax_root.defvjp(_forward, _backward)


def test_a_pair_of_array_functions_overrides_a_tensor_inside() -> None:
    made = {}

    def middle(x):
        made["x"], made["y"] = x, root(x)
        return made["y"]

    fn = te.function(
        around(middle),
        override=lambda result, x: {made["y"]: te.array_gradient(made["x"], _forward, _backward)},
    )
    expected = jax.grad(plain(jax_root))(V)
    np.testing.assert_allclose(jax.grad(fn)(V), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(fn))(V), expected, rtol=1e-5)
    many = np.stack([V, V + 1])
    np.testing.assert_allclose(
        jax.vmap(jax.grad(fn))(many), jax.vmap(jax.grad(plain(jax_root)))(many), rtol=1e-5
    )
    assert "residuals_root" in str(fn.explain(V))  # kept by the forward pass
    with pytest.raises(te.DifferentiationError, match=r"defjvp"):
        jax.jvp(fn, (V,), (V,))


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp"])
def test_functions_with_rules_in_jax_override_a_tensor(kind: str) -> None:
    if kind == "custom_jvp":
        own = jax.custom_jvp(jnp.sqrt)
        own.defjvp(lambda primals, moves: (jnp.sqrt(primals[0]), 3 * moves[0] * primals[0]))
    else:
        own = jax_root
    made = {}

    def middle(x):
        made["x"], made["y"] = x, root(x)
        return made["y"]

    fn = te.function(around(middle), override=lambda r, x: {made["y"]: te.array_gradient(made["x"], own)})
    np.testing.assert_allclose(jax.grad(fn)(V), jax.grad(plain(own))(V), rtol=1e-5)
    if kind == "custom_jvp":
        np.testing.assert_allclose(jax.jvp(fn, (V,), (V,))[1], jax.jvp(plain(own), (V,), (V,))[1], rtol=1e-5)
    else:
        with pytest.raises(te.DifferentiationError, match=r"root has no forward mode.*jvp="):
            jax.jvp(fn, (V,), (V,))


def test_a_custom_gradient_of_tensors() -> None:
    own = te.custom_gradient(root)
    with pytest.raises(te.DifferentiationError, match=r"root has no derivative yet.*defgrad"):
        own(V)
    own.defgrad(lambda x: (root(x), x), lambda x, head: (3 * head * x,))
    fn = te.function(around(own))
    np.testing.assert_allclose(jax.grad(fn)(V), jax.grad(plain(jax_root))(V), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda x: own(x).sum())(V**2), 3 * V**2, rtol=1e-5)
    # linear in the head, so forward mode follows by transposition
    both = te.custom_gradient(root)
    both.defjvp(lambda primals, moves: (root(*primals), 3 * moves[0] * primals[0]))
    for first in (fn, te.function(around(both))):
        moved = jax.jvp(first, (V,), (np.ones(4, "f"),))[1]
        np.testing.assert_allclose(moved, np.sum(jax.grad(plain(jax_root))(V)), rtol=1e-5)
    np.testing.assert_allclose(
        jax.grad(te.function(around(both)))(V), jax.grad(plain(jax_root))(V), rtol=1e-5
    )
    np.testing.assert_allclose(jax.jacobian(own)(V**2), np.diag(3 * V**2), rtol=1e-5)
    x = te.placeholder((4,), name="X")
    assert te.jacobian(own(x), x).shape == (4, 4)


def test_a_custom_gradient_of_arrays() -> None:
    own = te.custom_gradient(root)
    own.defgrad(_forward, _backward, arrays=True)
    fn = te.function(around(own))
    np.testing.assert_allclose(jax.grad(fn)(V), jax.grad(plain(jax_root))(V), rtol=1e-5)
    with pytest.raises(te.DifferentiationError, match=r"defjvp"):
        jax.jvp(fn, (V,), (V,))
    own.defjvp(lambda primals, moves: (jnp.sqrt(primals[0]), 3 * moves[0] * primals[0]), arrays=True)
    fn = te.function(around(own))
    np.testing.assert_allclose(
        jax.jvp(fn, (V,), (np.ones(4, "f"),))[1], np.sum(jax.grad(plain(jax_root))(V)), rtol=1e-5
    )
    forward_only = te.custom_gradient(root)
    forward_only.defjvp(lambda p, m: (jnp.sqrt(p[0]), 3 * m[0] * p[0]), arrays=True)
    np.testing.assert_allclose(
        jax.grad(te.function(around(forward_only)))(V), jax.grad(plain(jax_root))(V), rtol=1e-5
    )


def _region(x: te.Tensor, w: te.Tensor) -> tuple[te.Tensor, ...]:
    low = te.compute(x.shape, lambda i: x[i] * w[i], "low")
    inner = te.compute(x.shape, lambda i: te.exp(low[i]), "inner")
    high = te.compute(x.shape, lambda i: inner[i] + low[i], "high")
    return low, inner, high


def test_a_region_is_replaced_as_one_and_may_use_any_forward_value() -> None:
    x, w = te.placeholder((4,), name="X"), te.placeholder((4,), name="W")
    low, inner, high = _region(x, w)
    out = te.compute((4,), lambda i: low[i] * high[i], "out")
    head = te.placeholder((4,), name="H")

    def by_hand(outs, inputs, heads):
        (own_x, own_w), (h_low, h_high) = inputs, heads
        total = te.compute((4,), lambda i: h_low[i] + h_high[i] * (inner[i] + 1), "total")
        return [total * own_w, total * own_x]

    region = {(low, high): ([x, w], by_hand)}
    rng = np.random.default_rng(0)
    feeds = {t: rng.standard_normal(4).astype("f") for t in (x, w, head)}
    names = {t.name for t in te.differentiate(out, [x, w], head, override=region).adjoints.values()}
    assert "dinner" not in names
    for wanted in (out, low, high):  # the other one of the region may receive nothing
        found = te.evaluate(list(te.differentiate(wanted, [x, w], head, override=region)), feeds)
        own = te.evaluate(list(te.differentiate(wanted, [x, w], head)), feeds)
        for a, b in zip(found, own, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    t = te.placeholder((4,), name="T")
    feeds = {x: feeds[x], w: feeds[w], t: V}
    a, b = te.evaluate([te.jvp(out, x, t, override=region), te.jvp(out, x, t)], feeds)
    np.testing.assert_allclose(a, b, rtol=1e-5)


def test_regions_of_arrays_and_of_functions() -> None:
    def backward(kept, cts):
        x, w = kept
        total = cts[0] + cts[1] * (jnp.exp(x * w) + 1)
        return total * w, total * x

    own = te.custom_gradient(lambda x, w: _region(x, w)[::2])
    own.defgrad(lambda x, w: (None, (x, w)), backward, arrays=True)

    def loss(region):
        def builder(x, w):
            low, high = region(x, w)
            k = te.reduce_axis((0, 4), "k")
            return te.compute((), lambda: te.sum(low[k] * high[k], axis=k), "loss")

        return te.function(builder)

    derived = loss(lambda x, w: _region(x, w)[::2])
    arrays = (V, V[::-1].copy())
    for a, b in zip(jax.grad(loss(own), (0, 1))(*arrays), jax.grad(derived, (0, 1))(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)
    many = jax.vmap(jax.grad(loss(own), (0, 1)), in_axes=(0, None))(np.stack([V, 2 * V]), arrays[1])
    ones = jax.vmap(jax.grad(derived, (0, 1)), in_axes=(0, None))(np.stack([V, 2 * V]), arrays[1])
    for a, b in zip(many, ones, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_one_liners() -> None:
    def grad_of(make, x=V):
        return jax.grad(te.function(lambda x: te.ops.sum(make(x) * x * x)))(x)

    np.testing.assert_allclose(grad_of(lambda x: te.stop_gradient(x)), 2 * V * V, rtol=1e-6)
    np.testing.assert_allclose(
        grad_of(lambda x: te.straight_through(te.round(x), x)), V**2 + np.round(V) * 2 * V, rtol=1e-6
    )
    np.testing.assert_allclose(grad_of(lambda x: te.scale_gradient(x, 0.5)), 2.5 * V**2, rtol=1e-6)
    np.testing.assert_allclose(grad_of(lambda x: te.reverse_gradient(x)), V**2, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        grad_of(lambda x: te.clip_gradient(x, -0.5, 0.5)), 2 * V**2 + np.clip(V**2, -0.5, 0.5), rtol=1e-6
    )
    through = te.function(lambda x: te.straight_through(te.round(x), x))
    np.testing.assert_allclose(jax.jvp(through, (V,), (V,))[1], V)
    with pytest.raises(te.DifferentiationError, match=r"clipped_x.*not linear.*defjvp"):
        x, t = te.placeholder((4,), name="x"), te.placeholder((4,), name="t")
        te.jvp(te.clip_gradient(x, -1.0, 1.0), x, t)


def test_errors_say_what_is_wrong() -> None:
    x, w = te.placeholder((4,), name="X"), te.placeholder((4,), name="W")
    low, _, high = _region(x, w)
    out = te.compute((4,), lambda i: low[i] * high[i], "out")
    head = te.placeholder((4,), name="H")

    def differentiate(override):
        return te.differentiate(out, [x], head, override=override)

    with pytest.raises(te.DifferentiationError, match=r"override of low, high covers X.*depends on W"):
        differentiate({(low, high): ([x], lambda o, i, h: [h[0]])})
    with pytest.raises(te.DifferentiationError, match=r"override of high covers X, but high also.*W"):
        differentiate({high: te.array_gradient(x, jnp.exp)})
    with pytest.raises(te.DifferentiationError, match=r"override has Z, which out does not depend on"):
        differentiate({te.compute((4,), lambda i: x[i], "Z"): te.array_gradient(x, jnp.exp)})
    with pytest.raises(te.DifferentiationError, match=r"low twice"):
        differentiate({low: ([x, w], lambda o, i, h: [h]), (low, high): ([x, w], lambda o, i, h: h)})
    with pytest.raises(te.DifferentiationError, match=r"backward function of te.array_gradient is"):
        te.array_gradient(x, jnp.exp, 3)
    for returned, words in [
        (lambda kept, ct: (ct, ct, ct), r"returns 3 cotangents for 2 inputs \(X, W\)"),
        (lambda kept, ct: (ct[:2], ct), r"returns for X shape \(2,\)"),
        (lambda kept, ct: (ct.astype("float16"), ct), r"returns for X dtype float16"),
    ]:
        rule = te.array_gradient([x, w], lambda x, w: (x, ()), returned)
        with pytest.raises(te.JaxteError, match=words):
            te.evaluate(list(differentiate({high: rule})), {x: V, w: V, head: V})
    with pytest.raises(te.DifferentiationError, match=r"has to return a pair"):
        differentiate({high: te.array_gradient([x, w], lambda x, w: x, lambda kept, ct: (ct, ct))})
    own = te.custom_gradient(lambda x: low * x)
    own.defgrad(lambda x: (low * x, ()), lambda kept, head: (head,))
    with pytest.raises(te.DifferentiationError, match=r"also depends on W"):
        own(x)
    with pytest.raises(te.ArgumentError, match=r"te.scale_gradient"):
        te.scale_gradient(x, "2")
    with pytest.raises(te.ShapeError, match=r"one shape"):
        te.straight_through(x, te.placeholder((3,), name="Y"))


def test_a_forward_function_of_something_else() -> None:
    def made(value):
        return te.function(
            lambda x: te.compute(x.shape, lambda i: x[i] ** 2, "squares"),
            override=lambda y, x: {
                y: te.array_gradient(x, lambda x: (value(x), x), lambda x, ct: (2 * x * ct,))
            },
        )

    x = jnp.arange(3.0)
    for value in (lambda x: x**2, lambda x: None):
        fn = made(value)
        assert jax.vjp(fn, x)[1](jnp.ones(3))[0].tolist() == [0, 2, 4]
    with pytest.raises(
        te.ShapeError, match=r"forward function of the override of squares returns a value of shape \(2,\)"
    ):
        jax.grad(lambda x: made(lambda x: x[:2])(x).sum())(x)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_an_override_may_return_one_value_everywhere(value: float) -> None:
    """``te.ops.full``, as one writes it beside TVM's tutorial; it is a Tensor as ``te.ops.zeros`` is."""
    x, head = te.placeholder((4,), name="X"), te.placeholder((4,), name="H")
    inner = te.compute((4,), lambda i: x[i] ** 2, "inner")
    out = te.compute((4,), lambda i: 2 * inner[i], "out")
    constant = {inner: ([x], lambda out, inputs, head: [te.ops.full(x.shape, value)])}
    (dx,) = te.differentiate(out, [x], head, override=constant)
    np.testing.assert_array_equal(te.evaluate(dx, {}), np.full(4, value))
    fn = te.function([x], out, override=constant)
    np.testing.assert_array_equal(jax.grad(lambda x: fn(x).sum())(jnp.ones(4)), np.full(4, value))
    scaled = {inner: ([x], lambda out, inputs, head: te.ops.full(x.shape, head[0] * value))}
    (dx,) = te.differentiate(out, [x], head, override=scaled)
    np.testing.assert_array_equal(te.interpret(dx, {head: np.ones(4, "float32")}), np.full(4, 2 * value))


@pytest.mark.parametrize("returned", [0.0, None, np.zeros(4, "float32")])
def test_what_is_no_tensor_is_refused_with_what_makes_one(returned: Any) -> None:
    x, head = te.placeholder((4,), name="X"), te.placeholder((4,), name="H")
    out = te.compute((4,), lambda i: x[i] ** 2, "out")
    with pytest.raises(te.DifferentiationError, match=r"override of out returned for X .*te\.ops\.full"):
        te.differentiate(out, [x], head, override={out: ([x], lambda out, inputs, head: [returned])})
