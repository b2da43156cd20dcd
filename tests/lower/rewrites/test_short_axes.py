"""Axes of a few positions that are read in several orders, and products with the slices of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.single_operations import run_by_xla


def draw(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(len(shapes))
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def forward(fn: Callable[..., Any], own: list[Any]) -> str:
    """The body of the forward function, without its docstring."""
    source = te.function(fn).source(*own)
    return source[source.index("def forward(") : source.index("def backward(")].split('"""')[2]


def agree(definition: Callable[..., Any], plain: Callable[..., Any], own: list[Any]) -> None:
    """Values and gradients, the latter of sines so that the heads differ."""
    floats = [n for n, a in enumerate(own) if a.dtype == np.float32]
    graded = [
        jax.jit(jax.value_and_grad(lambda *a, fn=fn: jnp.sum(jnp.sin(fn(*a))), floats))(*own)
        for fn in (te.function(definition), plain)
    ]
    for a, b in zip(jax.tree.leaves(graded[0]), jax.tree.leaves(graded[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def turns(x: Tensor) -> Tensor:
    p = te.reduce_axis((0, 3), "p")
    body = lambda i, c: te.sum(te.tanh(x[i, p, c]) * x[i, (p + 1) % 3, c], axis=p)  # noqa: E731
    return te.compute((x.shape[0], x.shape[2]), body, "T")


def even_turns(x: Tensor) -> Tensor:
    """With a condition on the position, and a long axis that is summed too."""
    p, c = te.reduce_axis((0, 4), "p"), te.reduce_axis((0, x.shape[2]), "c")
    body = lambda i: te.sum(te.exp(x[i, p, c] - x[i, (p + 3) % 4, c]), axis=[p, c], where=p % 2 < 1)  # noqa: E731
    return te.compute((x.shape[0],), body, "E")


def neighbours(x: Tensor) -> Tensor:
    """A result over the short axis that reads two other orders of it."""
    body = lambda i, p, c: x[i, (p + 1) % 3, c] * te.sin(x[i, (p + 2) % 3, c])  # noqa: E731
    return te.compute(x.shape, body, "N")


def differences(x: Tensor, y: Tensor) -> Tensor:
    p = te.reduce_axis((0, 3), "p")
    return te.compute(y.shape, lambda i, c: te.sum(te.square(x[i, p, c] - y[i, c]), axis=p), "D")


def guarded(x: Tensor) -> Tensor:
    """Behind a condition, at positions that lie outside where it does not hold."""
    e = te.reduce_axis((0, 3), "e")
    body = lambda i, c: te.sum(te.select(e >= 1, x[i, e - 1, c], 0.5) * x[i, (e + 1) % 3, c], axis=e)  # noqa: E731
    return te.compute((x.shape[0], x.shape[2]), body, "G")


def guarded_rows(x: Tensor) -> Tensor:
    """The same in a result over the short axis."""
    other = lambda i, p, c: x[i, (p + 1) % 3, c] + te.sin(x[i, (p + 2) % 3, c])  # noqa: E731
    body = lambda i, p, c: te.select(p >= 1, x[i, p - 1, c], 0.5) * other(i, p, c)  # noqa: E731
    return te.compute(x.shape, body, "R")


def before(x: Any) -> Any:
    return jnp.concatenate([jnp.full_like(x[:, :1], 0.5), x[:, :-1]], 1)


def sine_of_rolled(x: Any) -> Any:
    return jnp.roll(x, -1, 1) * jnp.sin(jnp.roll(x, -2, 1))


X3, X4, Y = ((5, 3, 7), (5, 4, 6), (5, 7))
POSITIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, ...]]]] = {
    "turns": (turns, lambda x: jnp.sum(jnp.tanh(x) * jnp.roll(x, -1, 1), 1), [X3]),
    "even turns": (even_turns, lambda x: jnp.sum(jnp.exp(x - jnp.roll(x, 1, 1))[:, ::2], (1, 2)), [X4]),
    "neighbours": (neighbours, sine_of_rolled, [X3]),
    "guarded": (guarded, lambda x: jnp.sum(before(x) * jnp.roll(x, -1, 1), 1), [X3]),
    "guarded rows": (
        guarded_rows,
        lambda x: before(x) * (jnp.roll(x, -1, 1) + jnp.sin(jnp.roll(x, -2, 1))),
        [X3],
    ),
    "differences": (differences, lambda x, y: jnp.sum((x - y[:, None]) ** 2, 1), [X3, Y]),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_of_a_short_axis_are_slices(name: str) -> None:
    definition, plain, shapes = POSITIONS[name]
    own = draw(*shapes)
    text = forward(definition, own)
    assert "jnp.pad" not in text and "jnp.roll" not in text and "[:, None" not in text
    assert "[:, 2" in text
    agree(definition, plain, own)


def test_a_single_other_order_stays_one_array() -> None:
    """A copy is as good as three slices and their stack."""
    text = forward(lambda x: te.compute(x.shape, lambda i, p, c: x[i, (p + 1) % 3, c] - x[i, p, c]), draw(X3))
    assert "jnp.stack" not in text


def test_sums_over_longer_axes_stay_sums() -> None:
    def definition(x: Tensor) -> Tensor:
        p = te.reduce_axis((0, 6), "p")
        return te.compute(
            (x.shape[0],), lambda i: te.sum(te.tanh(x[i, p, 0]) * x[i, (p + 1) % 6, 0], axis=p), "T"
        )

    assert "jnp.sum(" in forward(definition, draw((5, 6, 2)))


def test_few_gathers_are_added_one_by_one() -> None:
    def definition(x: Tensor, at: Tensor) -> Tensor:
        p = te.reduce_axis((0, at.shape[1]), "p")
        return te.compute((at.shape[0], x.shape[1]), lambda i, c: te.sum(x[at[i, p], c], axis=p), "G")

    for count in (3, 5):
        own = [*draw((9, 4)), np.random.default_rng(0).integers(0, 9, (6, count)).astype(np.int32)]
        text = forward(definition, own)
        assert (text.count(".get("), "jnp.sum(" in text) == ((3, False) if count == 3 else (1, True))
        agree(definition, lambda x, at: jnp.sum(x[at], 1), own)


# --- products with slices


def mixed(weights: Callable[[Tensor, Any, Any, int], Any]) -> Callable[..., Tensor]:
    """Three products of a matrix with what ``weights`` gives for (w, k, o, number), added."""

    def definition(x: Tensor, s: Tensor, w: Tensor) -> Tensor:
        k = te.reduce_axis((0, x.shape[1]), "k")

        def body(i: Any, o: Any) -> Any:
            parts = (x[i, k], te.tanh(s[i, k]), x[i, k] * s[i, k])
            return te.sum(sum(part * weights(w, k, o, n) for n, part in enumerate(parts)), axis=k)

        return te.compute((x.shape[0], w.shape[-1]), body, "Y")

    return definition


def plain_mixed(order: tuple[int, ...]) -> Callable[..., Any]:
    def plain(x: Any, s: Any, w: Any) -> Any:
        return sum(part @ w[n] for part, n in zip((x, jnp.tanh(s), x * s), order, strict=True))

    return plain


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_products_with_all_slices_are_one(order: tuple[int, ...]) -> None:
    own = draw((6, 4), (6, 4), (3, 4, 20))
    definition = mixed(lambda w, k, o, n: w[order[n], k, o])
    text = forward(definition, own)
    assert text.count("jnp.einsum(") == 1 and "jnp.stack(" in text and "w[" not in text
    agree(definition, plain_mixed(order), own)


@pytest.mark.parametrize(
    ("weights", "shape", "order"),
    [
        (lambda w, k, o, n: w[n, k, o], (3, 4, 5), (0, 1, 2)),  # what is stacked is larger than the result
        (lambda w, k, o, n: w[n, k, o], (4, 4, 20), (0, 1, 2)),  # a slice is left out
        (lambda w, k, o, n: w[n % 2, k, o], (2, 4, 20), (0, 1, 0)),  # a slice twice
    ],
)
def test_other_products_stay_apart(weights: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    own = draw((6, 8 if shape[2] == 5 else 4), (6, 8 if shape[2] == 5 else 4), shape)
    if shape[2] == 5:
        own[2] = draw((3, 8, 5))[0]
    assert forward(mixed(weights), own).count("jnp.einsum(") == 3
    agree(mixed(weights), plain_mixed(order), own)


@pytest.mark.parametrize("raised", [False, True])
def test_what_is_compared_after_several_roundings_is_compared_in_one_loop(raised: bool) -> None:
    """Cosines of rows with themselves are 1 but for rounding. What flows back to a product and to its norms cancels, if both are held or neither."""

    def cosines(x: Tensor) -> Tensor:
        n, d = x.shape
        c = te.reduce_axis((0, d), "c")
        norm = te.compute((n,), lambda i: te.sqrt(te.sum(x[i, c] ** 2, axis=c)), "norm")
        dots = te.compute((n, n), lambda i, j: te.sum(x[i, c] * x[j, c], axis=c), "dots")
        return te.compute((n, n), lambda i, j: te.clip(dots[i, j] / norm[i] / norm[j], -1, 1), "cosines")

    def plain(x: Any) -> Any:
        norm = jnp.sqrt(jnp.sum(x**2, 1))
        return x @ x.T / norm[:, None] / norm

    weights = jnp.arange(9, dtype="float32").reshape(3, 3) % 5
    clipped = lambda x: jnp.sum(weights * jnp.sin(jnp.clip(plain(x), -1, 1)))  # noqa: E731
    fn = te.function(cosines)
    own = te.adjoint(clipped, everything=True) if raised else lambda x: jnp.sum(weights * jnp.sin(fn(x)))
    for seed in range(4):
        x = jnp.asarray(np.random.default_rng(seed).normal(size=(3, 7)), "float32")
        wanted = jax.grad(lambda x: jnp.sum(weights * jnp.sin(plain(x))))(
            x
        )  # which is that of a clip at 1, too
        with run_by_xla():
            found = jax.jit(jax.grad(own))(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
