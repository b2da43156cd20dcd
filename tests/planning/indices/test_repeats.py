"""Sums over tensors that repeat elements: each element once, with how often it counts."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.meaning.interpret import interpret
from jaxte.planning.graph import planned


def _sum(made: Any, f: Callable[[Any], Any]) -> Any:
    axes = [te.reduce_axis((0, n)) for n in made.shape]
    return te.compute((), lambda: te.sum(f(made[tuple(axes)]), axis=axes), "s")


def upsampled(x: Any) -> Any:
    return _sum(te.compute((24, 30), lambda i, j: x[i // 2, j // 3], "up"), lambda e: e * te.sin(e))


def tiled(x: Any) -> Any:
    return _sum(te.compute((36, 20), lambda i, j: x[i % 12, j // 2], "tiles"), te.tanh)


def in_rows(x: Any) -> Any:
    up = te.compute((12, 40), lambda i, j: x[i, j // 4], "up")
    k = te.reduce_axis((0, 40), "k")
    return te.compute((12,), lambda i: te.sum(te.exp(up[i, k]) * x[i, 0], axis=k), "s")


def beside_another(x: Any) -> Any:
    """The other array is read along the same axes: nothing is counted."""
    up = te.compute((24, 10), lambda i, j: x[i // 2, j], "up")
    k, c = te.reduce_axis((0, 24), "k"), te.reduce_axis((0, 10), "c")
    return te.compute((), lambda: te.sum((up[k, c] - x[k % 12, c]) ** 2, axis=[k, c]), "s")


def plain(f: Any) -> Callable[[Any], Any]:
    up = lambda x, n, m: jnp.repeat(jnp.repeat(x, n, 0), m, 1)  # noqa: E731
    forms: dict[Any, Callable[[Any], Any]] = {
        upsampled: lambda x: jnp.sum(up(x, 2, 3) * jnp.sin(up(x, 2, 3))),
        tiled: lambda x: jnp.sum(jnp.tanh(jnp.tile(up(x, 1, 2), (3, 1)))),
        in_rows: lambda x: jnp.sum(jnp.exp(up(x, 1, 4)) * x[:, :1], 1),
        beside_another: lambda x: jnp.sum((up(x, 2, 1) - jnp.tile(x, (2, 1))) ** 2),
    }
    return forms[f]


@pytest.mark.parametrize(
    "f, is_counted", [(upsampled, True), (tiled, True), (in_rows, True), (beside_another, False)]
)
def test_repeated_elements_are_counted(f: Any, is_counted: bool, rng: np.random.Generator) -> None:
    x = jnp.asarray(rng.normal(size=(12, 10)).astype("float32"))
    np.testing.assert_allclose(te.function(f)(x), plain(f)(x), rtol=1e-4, atol=1e-4)
    own = jax.grad(lambda x: jnp.sum(te.function(f)(x)))(x)
    np.testing.assert_allclose(own, jax.grad(lambda x: jnp.sum(plain(f)(x)))(x), rtol=1e-4, atol=1e-4)
    text = te.source(te.function(f), x)
    assert (not any(word in text for word in ("repeat", "tile(", "//", "%"))) == is_counted


@pytest.mark.parametrize("kind", ["taken apart", "in two orders"])
def test_what_is_no_repetition_is_left(kind: str, rng: np.random.Generator) -> None:
    """Both digits of an axis; one array that repeats each element beside one that begins again."""
    x, y = te.placeholder((4, 2), name="x"), te.placeholder((4,), name="y")
    if kind == "taken apart":
        first = second = te.compute((8,), lambda i: x[i // 2, i % 2], "first")
    else:
        first, second = (
            te.compute((8,), lambda i: y[i // 2], "first"),
            te.compute((8,), lambda i: y[i % 4], "second"),
        )
    k = te.reduce_axis((0, 8), "k")
    total = te.compute((), lambda: te.sum(first[k] * second[k], axis=k), "total")
    a, b = rng.standard_normal((4, 2)).astype("float32"), rng.standard_normal(4).astype("float32")
    expected = np.sum(a * a) if kind == "taken apart" else np.sum(np.repeat(b, 2) * np.tile(b, 2))
    feeds = {x: a} if kind == "taken apart" else {y: b}
    (own,) = planned([total])
    np.testing.assert_allclose(interpret(own, feeds), expected, rtol=1e-4)
