"""``verify_override``: right derivatives are proven or pass at points, wrong ones are shown with a point."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

X, W, H = (te.placeholder((4,), name=name) for name in "XWH")


def softmax() -> te.Tensor:
    k = te.reduce_axis((0, 4), "k")
    e = te.compute((4,), lambda i: te.exp(X[i]), "e")
    total = te.compute((), lambda: te.sum(e[k], axis=k), "total")
    return te.compute((4,), lambda i: e[i] / total[()], "Y")


def by_hand(y, inputs, head):
    k = te.reduce_axis((0, 4), "k")
    inner = te.compute((), lambda: te.sum(head[k] * y[k], axis=k), "inner")
    return [te.compute((4,), lambda i: y[i] * (head[i] - inner[()]), "dX")]


def test_polynomials_and_quotients_are_proven() -> None:
    y = softmax()
    assert te.verify_override(y, {y: ([X], by_hand)}).exact == ("dX of Y",)
    z = te.compute((4,), lambda i: X[i] ** 3 * W[3 - i] - X[i] / W[i], "Z")

    def rule(out, inputs, head):
        def into_w(i):
            return head[3 - i] * X[3 - i] ** 3 + head[i] * X[i] / (W[i] * W[i])

        dx = te.compute((4,), lambda i: head[i] * (3 * X[i] * X[i] * W[3 - i] - 1 / W[i]), "dX")
        return [dx, te.compute((4,), into_w, "dW")]

    found = te.verify_override(z, {z: ([X, W], rule)})
    assert found and found.exact == ("dX of Z", "dW of Z") and not found.at_points


def test_what_has_no_normal_form_is_compared_at_points() -> None:
    y = te.compute((4,), lambda i: te.tanh(X[i]), "Y")

    def rule(out, inputs, head):
        return [te.compute((4,), lambda i: head[i] / te.cosh(X[i]) ** 2, "dX")]

    found = te.verify_override(y, {y: ([X], rule)})
    assert found and found.at_points == ("dX of Y",)
    arrays = te.array_gradient(X, lambda x: (jnp.tanh(x), x), lambda x, ct: (ct / jnp.cosh(x) ** 2,))
    assert te.verify_override(y, {y: arrays}, tolerance=1e-4)
    own = te.custom_gradient(lambda x: te.tanh(x))
    own.defgrad(lambda x: (y := te.tanh(x), y), lambda y, head: (head * (1 - y * y),))
    assert te.verify_override(own(X))


def test_the_first_difference_is_shown_with_its_point() -> None:
    y = te.compute((4,), lambda i: te.sin(X[i]) * W[i], "Y")

    def wrong(out, inputs, head):
        return [
            te.compute((4,), lambda i: head[i] * te.cos(X[i]) * te.select(i == 2, 1.0, W[i]), "dX"),
            te.compute((4,), lambda i: head[i] * te.sin(X[i]), "dW"),
        ]

    found = te.verify_override(y, {y: ([X, W], wrong)})
    assert not found and found.difference is not None
    assert found.difference.index == (2,) and found.difference.adjoint is X
    point = {t.name: a for t, a in found.difference.point.items()}
    right = point["H_Y"][2] * np.cos(point["X"][2]) * point["W"][2]
    np.testing.assert_allclose(found.difference.derived, right)
    assert "dX[2] is" in str(found) and "X = [" in str(found)


def test_a_region_and_what_cannot_be_drawn() -> None:
    low = te.compute((4,), lambda i: X[i] * W[i], "low")
    high = te.compute((4,), lambda i: low[i] * low[i], "high")

    def rule(outs, inputs, heads):
        total = te.compute((4,), lambda i: heads[0][i] + 2 * heads[1][i] * low[i], "total")
        return [total * W, total * X]

    assert len(te.verify_override([low, high], {(low, high): ([X, W], rule)}).exact) == 2
    i = te.placeholder((4,), "int32", "I")
    taken = te.compute((4,), lambda n: te.exp(X[i[n]]), "taken")

    def scattered(out, inputs, head):
        k = te.reduce_axis((0, 4), "k")
        return [te.compute((4,), lambda a: te.sum(head[k], axis=k, where=i[k] == a) * te.exp(X[a]), "dX")]

    with pytest.raises(te.FeedError, match=r"I holds integers.*feeds="):
        te.verify_override(taken, {taken: ([X], lambda o, s, h: [2 * h])})
    assert te.verify_override(taken, {taken: ([X], scattered)}, feeds={i: [0, 2, 2, 1]})
    with pytest.raises(te.DifferentiationError, match=r"no override in this graph"):
        te.verify_override(taken)


def test_what_flows_on_from_one_dependency_to_another_is_no_part_of_an_adjoint() -> None:
    z = te.compute((4,), lambda i: X[i] * W[i], "Z")
    y = te.compute((4,), lambda i: z[i] * W[i], "Y")

    def once(y, inputs, head):
        return [te.compute((4,), lambda i, t=t: t[i] * head[i], "d") for t in (W, z)]

    right, twice = ({y: ([z, W], fn)} for fn in (once, lambda y, inputs, head: te.gradient(y, inputs, head)))
    point = {X: np.float32([1, 2, 3, 4]), W: np.float32([4, 3, 2, 1]), H: np.ones(4, "float32")}
    exact = te.evaluate(te.gradient(y, [W], H), point)[0]
    for override, same in ((right, True), (twice, False)):
        found = te.verify_override(y, override)
        given = te.evaluate(te.differentiate(y, [W], H, override=override)[0], point)
        assert bool(found) == np.allclose(given, exact) == same
    assert found.difference is not None and found.difference.adjoint is W


def test_an_input_that_is_left_out_is_a_difference() -> None:
    y = te.compute((4,), lambda i: X[i] * W[i], "Y")
    found = te.verify_override(y, {y: ([X], lambda y, inputs, head: [W * head])})
    assert found.exact == ("dX of Y",)
    assert found.difference is not None and found.difference.adjoint is W and found.difference.given == 0
    through = te.compute((4,), lambda i: X[i] * te.stop_gradient(W[i]), "T")
    assert te.verify_override(through, {through: ([X], lambda y, inputs, head: [W * head])})
