"""Terms at all residues of an axis beside terms that are everywhere: the elements side by side, each computed of slices, and nothing spread out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.lowered import check


def rotated(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """Pairs of elements, each turned by an angle."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        own, last = a[i, j // 2], x.shape[1] - 1
        even = x[i, j] * te.cos(own) - x[i, te.minimum(j + 1, last)] * te.sin(own)
        return te.select(j % 2 == 0, even, x[i, j] * te.cos(own) + x[i, te.maximum(j - 1, 0)] * te.sin(own))

    return te.compute(x.shape, element, "y")


def lifted(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """What is everywhere, with a correction of its own at each residue by three."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        own = a[i, j // 3] * x[i, j]
        first = te.select(j % 3 == 0, a[i, j // 3], 0.0)
        second = te.select(j % 3 == 1, x[i, te.maximum(j - 1, 0)], 0.0)
        return own + first + second + te.select(j % 3 == 2, x[i, te.maximum(j - 2, 0)], 0.0)

    return te.compute(x.shape, element, "y")


def swapped(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """Neighbours exchanged and added, by weights of the pair."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        after = te.select(j % 2 == 0, x[i, te.minimum(j + 1, x.shape[1] - 1)], 0.0)
        before = te.select(j % 2 == 1, x[i, te.maximum(j - 1, 0)], 0.0)
        return te.exp(a[i, j // 2]) * x[i, j] + after + before

    return te.compute(x.shape, element, "y")


def turned(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """Pairs scaled and turned: what one of them has is subtracted."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        after = te.select(j % 2 == 0, x[i, te.minimum(j + 1, x.shape[1] - 1)], 0.0)
        before = te.select(j % 2 == 1, x[i, te.maximum(j - 1, 0)], 0.0)
        return a[i, j // 2] * x[i, j] + after - before

    return te.compute(x.shape, element, "y")


def charged(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """What is everywhere is less what the first of three takes, and the sum of the others with a sign."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        first = te.select(j % 3 == 0, te.tanh(a[i, j // 3]), 0.0)
        second = te.select(j % 3 == 1, x[i, te.maximum(j - 1, 0)], 0.0)
        return -(first + second) + a[i, j // 3] * x[i, j]

    return te.compute(x.shape, element, "y")


def differenced(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """Even elements by a weight, and what each odd one is more than the one before."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        return te.select(j % 2 == 0, te.tanh(x[i, j]) * a[i, j // 2], x[i, j] - x[i, te.maximum(j - 1, 0)])

    return te.compute(x.shape, element, "y")


def predicted(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """Odd elements less what the even one before predicts, by a condition that is negated."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        rest = te.exp(x[i, j]) - a[i, j // 2] * x[i, te.maximum(j - 1, 0)]
        return te.select(~(j % 2 == 1), te.sin(x[i, j]), rest)

    return te.compute(x.shape, element, "y")


def gated(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """The even element of a pair is a gate of the odd one, and is handed on."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        gate = te.sigmoid(x[i, te.maximum(j - 1, 0)] + a[i, j // 2])
        return te.select(j % 2 != 0, x[i, j] * gate, x[i, j])

    return te.compute(x.shape, element, "y")


@pytest.mark.parametrize(
    ("definition", "base"),
    [
        (rotated, 2),
        (lifted, 3),
        (swapped, 2),
        (turned, 2),
        (charged, 3),
        (differenced, 2),
        (predicted, 2),
        (gated, 2),
    ],
)
def test_terms_that_are_everywhere_are_one_of_each_residue(
    definition: Callable[..., te.Tensor], base: int
) -> None:
    x, a = te.placeholder((4, 12), name="x"), te.placeholder((4, 12 // base), name="a")
    y = definition(x, a)
    head = te.placeholder(y.shape, name="H")
    (dx,) = te.differentiate(y, [x], head)
    for tensor in (y, dx):
        text = "\n".join(check(tensor))
        assert "repeat" not in text
    text = "\n".join(check(dx))
    assert "lax.pad" not in text and "jnp.pad" not in text and "concatenate" in text


def test_ends_that_no_residue_fills() -> None:
    """An odd number of elements, and a neighbour that the last one does not have."""
    x, a = te.placeholder((3, 7), name="x"), te.placeholder((3, 4), name="a")

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        after = te.select((j % 2 == 0) & (j < 6), x[i, te.minimum(j + 1, 6)], 0.0)
        return a[i, j // 2] * x[i, j] + after + te.select(j % 2 == 1, x[i, te.maximum(j - 1, 0)], 0.0)

    check(te.compute((3, 7), element, "y"))


def test_gradients_of_rotated_pairs() -> None:
    rng = np.random.default_rng(0)
    x, a, h = (rng.normal(size=shape) for shape in ((4, 12), (4, 6), (4, 12)))

    def plain(x: Any, a: Any) -> Any:
        even, odd, c, s = x[:, ::2], x[:, 1::2], jnp.cos(a), jnp.sin(a)
        return jnp.stack([even * c - odd * s, odd * c + even * s], -1).reshape(x.shape)

    with jax.enable_x64(True):
        found, wanted = (jax.vjp(f, x, a)[1](jnp.asarray(h)) for f in (te.function(rotated), plain))
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)
