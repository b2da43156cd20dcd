"""Choices that leave out what is steep, and choices inside them that do or do not: which side is the constant, and on which elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

X = np.array([[-1.5, 0.3, 2.0], [0.4, -0.7, -0.2], [1.7, -0.3, 0.6]])
P = X > 0
ROWS = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 2.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
where = jnp.where


def squares(x: Any) -> Any:
    return jnp.sum(x * x, -1, keepdims=True)


def norm(x: Any) -> Any:
    return jnp.linalg.norm(x, axis=-1, keepdims=True)


def distance(x: Any) -> Any:
    return jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, -1))


# a root or logarithm of numbers of which some are negative, so that a slope that is not needed is NaN
NESTED = {
    "constant where it is needed": lambda x: where(x > 0, jnp.sqrt(where(x > 0, 1.0, x)), 0.0),
    "constant where it is not needed": lambda x: where(x > 0, jnp.sqrt(where(x > 0, x, 1.0)), 0.0),
    "the other way around": lambda x: where(x <= 0, 0.0, jnp.sqrt(where(x <= 0, x, 1.0))),
    "negated": lambda x: where(~(x > 0), 0.0, jnp.log(where(~(x > 0), x, 2.0))),
    "negated once": lambda x: where(~(x > 0), 0.0, jnp.log(where(x > 0, x, 2.0))),
    "lax.select": lambda x: jax.lax.select(x > 0, jnp.sqrt(jax.lax.select(x > 0, x * 0 + 1, x)), x * 0),
    "functions between": lambda x: where(x > 0, jnp.sqrt(2 * where(x > 0, 1.0, x) ** 3), 0.0),
    "where of where": lambda x: where(
        x > 0, where(x < 1, jnp.log((1 - where(x > 0, x, 0.5)) ** 3) * jnp.sqrt(1 - where(x > 0, x, 0.5)), 0.0), 0.0
    ),
    "one of two conditions": lambda x: where(x > 0, where(x < 1, jnp.sqrt(1 - where(x > 0, x, 0.0)), 0.0), 0.0),
    "both conditions": lambda x: where(
        x > 0, where(x < 1, jnp.sqrt(x - where(x < 1, where(x > 0, 0.0, 9.0), 5.0)), 0.0), 0.0
    ),
    "two uses": lambda x: where(x > 0, jnp.sqrt(where(x > 0, x, 1.0)), 0.0) + where(
        x > 0.35, 0.0, where(x > 0, jnp.sqrt(where(x > 0, x, 1.0)), 0.0)
    ),
    "two uses of one root": lambda x: (lambda r: where(x > 0, r, 0.0) + where(x > 1, 0.0, where(x > 0.2, r**2, 0.0)))(
        jnp.sqrt(where(x > 0, x, x))
    ),
    "turned": lambda x: where(P, jnp.sqrt(where(P, x, 1.0)).T, 0.0),
    "mask": lambda x: jnp.sqrt(where(x > 0, 1.0, x) ** 3) * (x > 0) if x.ndim > 2 else where(
        x > 0, jnp.sqrt(x * (x > 0) + (x <= 0)), 0.0
    ),
    "mask of numbers": lambda x: where((x > 0).astype(x.dtype) > 0, jnp.sqrt(where(x > 0, 3.0, x)), 0.0),
    "two that vary": lambda x: where(x > 0, jnp.sqrt(where(x > 0, x, x * 2)), 0.0),
    "before an extremum": lambda x: where(
        x > 0, jnp.maximum(jnp.log(0.5 * (1.5 + x + where(x > 0, jnp.log(x), 0.0))), -0.9), 0.0
    ),
    "select_n": lambda x: jax.lax.select_n((x > 0).astype("int32"), x * 0, jnp.sqrt(where(x > 0, 1.0, x))),
}  # fmt: skip


def numerically(f: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    found = np.zeros(x.size)
    for n in range(x.size):
        moved = np.zeros(x.size)
        moved[n] = step
        moved = moved.reshape(x.shape)
        found[n] = (f(x + moved) - f(x - moved)) / (2 * step)
    return found.reshape(x.shape)


@pytest.mark.parametrize("name", NESTED)
def test_inner_choices(name: str) -> None:
    def f(x: Any) -> Any:
        return jnp.sum(jnp.sin(where(P.T & P, NESTED[name](x), 0.0) if name == "turned" else NESTED[name](x)))

    with jax.enable_x64(True):
        np.testing.assert_allclose(te.grad(f)(X), numerically(jax.jit(f), X), rtol=1e-6, atol=1e-8)


# a function whose gradient by the chain rule is 0 times infinity, and the same one without a root
ROOTS = {
    "squared": (lambda x: norm(x) ** 2, squares),
    "a product with itself": (lambda x: (lambda r: r * r)(norm(x)), squares),
    "a kernel of distances": (
        lambda x: jnp.exp(-((distance(x) / x[1, 1]) ** 2)) * jnp.arange(4.0),
        lambda x: jnp.exp(-jnp.sum((x[:, None] - x[None]) ** 2, -1) / x[1, 1] ** 2) * jnp.arange(4.0),
    ),
    "a fourth power": (lambda x: distance(x) ** 4, lambda x: jnp.sum((x[:, None] - x[None]) ** 2, -1) ** 2),
    "scaled rows": (lambda x: (2 * norm(x) * jnp.arange(1, 4.0)) ** 2.0, lambda x: 4 * squares(x) * jnp.arange(1, 4) ** 2),
    "scaled by what varies": (lambda x: (x[:, :1] * norm(x)) ** 2, lambda x: x[:, :1] ** 2 * squares(x)),
    "chosen": (
        lambda x: where(norm(x) > 0.5, norm(x), 0.0) ** 2,
        lambda x: where(squares(x) > 0.25, squares(x), 0.0),
    ),
    "compared": (
        lambda x: (lambda r: where(r > 0, x / r, 0.0))(norm(x)),
        lambda x: where(squares(x) > 0, x / jnp.sqrt(where(squares(x) > 0, squares(x), 1.0)), 0.0),
    ),
    "a lower bound": (
        lambda x: x / jnp.maximum(norm(x), 0.1),
        lambda x: where(squares(x) > 0, x / jnp.sqrt(where(squares(x) > 0, squares(x), 1.0)), x * 10),
    ),
    "clipped": (
        lambda x: x / jnp.clip(norm(x), 0.1, 2.5),
        lambda x: where(
            squares(x) > 6, x / 2.5, where(squares(x) > 0, x / jnp.sqrt(where(squares(x) > 0, squares(x), 1.0)), x * 10)
        ),
    ),
    "a logarithm with a floor": (
        lambda x: x * x * jnp.maximum(jnp.log(x * x), -100.0),
        lambda x: x * x * where(x != 0, jnp.log(where(x != 0, x * x, 1.0)), -100.0),
    ),
    "a quotient with a ceiling": (
        lambda x: jnp.minimum(1 / x**2, 50.0) * jnp.sin(x),
        lambda x: where(x != 0, 1 / where(x != 0, x, 1.0) ** 2, 50.0) * jnp.sin(x),
    ),
}  # fmt: skip


TWICE = ("squared", "a kernel of distances", "a lower bound")


@pytest.mark.parametrize("name", ROOTS)
def test_roots_that_meet_zero(name: str) -> None:
    naive, right = ROOTS[name]

    def derivatives(f: Any, *grads: Any) -> Any:
        def loss(x: Any) -> Any:
            return jnp.sum(jnp.cos(f(x)))

        def run(x: Any) -> list[Any]:
            found = [grad(loss) for grad in grads]
            orders = (jax.jacrev, jax.jacfwd) if name in TWICE else ()
            return [
                loss(x),
                *(own(x) for own in found),
                *(order(own)(x) for own in found for order in orders),
            ]

        return jax.jit(run)(ROWS)

    with jax.enable_x64(True):
        assert np.isnan(derivatives(naive, jax.grad)[1]).any() or name == "chosen"
        ours = derivatives(naive, te.grad, lambda f: jax.grad(te.adjoint(f, everything=True)))
        for own, expected in zip(ours, derivatives(right, jax.grad, jax.grad), strict=True):
            np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-10)


def test_roots_that_are_not_raised_to_a_power_of_two_stay() -> None:
    for f in (lambda x: jnp.sum(norm(x)), lambda x: jnp.sum(norm(x) * x), lambda x: jnp.sum(norm(x) ** -1)):
        assert not te.explain(te.grad(f), jnp.asarray(ROWS)).guarded


def test_what_an_extremum_compares_asks_nothing_of_what_it_is_made_of() -> None:
    """A layer before a rectifier is no branch."""

    def layer(x: Any) -> Any:
        return jnp.sum(jnp.maximum((x - jnp.mean(x)) / jnp.std(x), 0.0))

    assert not te.explain(te.grad(layer), jnp.asarray(ROWS)).guarded


def test_logits_of_minus_infinity() -> None:
    logits = np.array([[-np.inf] * 3, [1.0, -np.inf, 3.0], [0.5, 1.0, 0.0]])
    there = np.isfinite(logits)

    def entropy(x: Any) -> Any:
        p = jax.nn.softmax(x, -1)
        total = -jnp.sum(where(p > 0, p * jnp.log(p), 0.0), -1)
        return jnp.sum(where(jnp.any(jnp.isfinite(x), -1), total, 0.0))

    def right(x: Any) -> Any:
        some = there.any(-1, keepdims=True)
        finite = where(there, x, -1e30)
        p = jax.nn.softmax(where(some, finite, 0.0), -1)
        return -jnp.sum(where(some & there, p * jnp.log(where(some & there, p, 1.0)), 0.0))

    with jax.enable_x64(True):
        expected = jax.grad(right)(jnp.where(there, logits, 0.0))
        np.testing.assert_allclose(te.grad(entropy)(jnp.asarray(logits)), expected, rtol=1e-10, atol=1e-12)
        assert np.isnan(jax.grad(entropy)(jnp.asarray(logits))).any()


def test_explain_says_how_a_root_is_differentiated() -> None:
    report = te.explain(te.grad(lambda x: jnp.sum(norm(x) ** 2)), jnp.asarray(ROWS))
    assert [line.reason for line in report.guarded] == [
        "differentiated as a power of what the root is taken of"
    ]


def test_what_both_branches_make_by_equal_steps_needs_no_guard() -> None:
    """It is needed wherever one of them is taken: guarded by each of them, a logarithm would be two, with two slopes."""

    def one_of_both(x: Any, y: Any) -> Any:
        return where(y < 1, jnp.log(x) * y, jnp.log(x) + y)

    def chosen(x: Any, y: Any) -> Any:
        return jnp.sum(where(P, one_of_both(x, y) ** 2, 0.0))

    assert not te.explain(te.grad(lambda x, y: jnp.sum(one_of_both(x, y))), X, X).guarded
    grad = te.grad(chosen)
    assert sum("log" in str(line) for line in te.explain(grad, X, X).guarded) == 1
    assert str(jax.make_jaxpr(grad)(X, X)).count(" log ") == 1
    with jax.enable_x64(True):
        expected = jax.grad(lambda x, y: chosen(where(P, x, 1.0), y))(jnp.asarray(X), jnp.asarray(X))
        np.testing.assert_allclose(grad(jnp.asarray(X), jnp.asarray(X)), expected, rtol=1e-12)


def test_callbacks_are_called_beside_guards() -> None:
    seen: list[float] = []

    def printed(x: Any) -> Any:
        jax.debug.callback(lambda total: seen.append(float(total)), jnp.sum(x))
        return jnp.sum(where(x > 0, jnp.log(x), 0.0))

    found = te.grad(printed)(jnp.asarray([0.0, 2.0]))
    jax.effects_barrier()
    assert seen == [2.0] and np.array_equal(found, [0.0, 0.5])


def test_masks_times_what_is_repeated_beside_them() -> None:
    """Of a row that is repeated by the product itself an element is needed where any of its places is."""
    m = jnp.asarray(np.random.default_rng(0).uniform(size=(4, 6)) > 0.5).at[:, 0].set(False)
    x = jnp.linspace(0.0, 1.0, 6)
    for f in (
        lambda x: jnp.sum(m * jnp.sqrt(x)[None]),
        lambda x: jnp.sum(where(m, m * jnp.sqrt(x)[None], 0.0)),
    ):
        found, expected = te.grad(f)(x), jax.grad(f)(x)
        assert np.isnan(expected[0]) and found[0] == 0
        np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-6)
