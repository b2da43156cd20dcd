"""Gradients of products of several arrays sum what they have in common once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

NAME = "contractions in common"

Made = tuple[list[te.Tensor], te.Tensor]


def axes(**extents: int) -> list[Any]:
    return [te.reduce_axis((0, n), name) for name, n in extents.items()]


def canonical() -> Made:
    """A tensor by the outer products of its factors' columns."""
    a, b, c = (te.placeholder((n, 8), name=name) for name, n in (("a", 30), ("b", 40), ("c", 50)))
    (k,) = axes(k=8)
    return [a, b, c], te.compute(
        (30, 40, 50), lambda i, j, m: te.sum(a[i, k] * b[j, k] * c[m, k], axis=k), "e"
    )


def of_four() -> Made:
    a, b, c, d = (te.placeholder((20 + n, 6), name=name) for n, name in enumerate("abcd"))
    (k,) = axes(k=6)
    body = lambda i, j, m, n: te.sum(a[i, k] * b[j, k] * c[m, k] * d[n, k], axis=k)  # noqa: E731
    return [a, b, c, d], te.compute((20, 21, 22, 23), body, "e")


def bilinear() -> Made:
    shapes = (("x", (64, 30)), ("w", (30, 30, 60)), ("y", (64, 30)))
    x, w, y = (te.placeholder(s, name=n) for n, s in shapes)
    a, b = axes(a=30, b=30)
    body = lambda i, o: te.sum(x[i, a] * w[a, b, o] * y[i, b], axis=[a, b])  # noqa: E731
    return [x, w, y], te.compute((64, 60), body, "z")


REFERENCES: dict[Callable[[], Made], str] = {
    canonical: "ik,jk,mk->ijm",
    of_four: "ik,jk,mk,nk->ijmn",
    bilinear: "ia,abo,ib->io",
}


@pytest.mark.parametrize("made", REFERENCES, ids=lambda f: f.__name__)
def test_gradients_begin_with_one_sum(made: Callable[[], Made], rng: np.random.Generator) -> None:
    inputs, y = made()
    args = [jnp.asarray(rng.standard_normal(t.shape), "float32") for t in inputs]
    H = jnp.asarray(rng.standard_normal(y.shape), "float32")

    def gradients(f: Callable[..., Any]) -> Any:
        return jax.jit(lambda H, *args: jax.vjp(f, *args)[1](H)).lower(H, *args).compile()

    one, apart = (gradients(te.function(inputs, y, without=without)) for without in ((), (NAME,)))
    assert one.cost_analysis()["flops"] < 0.75 * apart.cost_analysis()["flops"]
    expected = jax.vjp(lambda *a: jnp.einsum(REFERENCES[made], *a), *args)[1](H)
    for found, own in zip(one(H, *args), expected, strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-4, atol=1e-5 * float(abs(own).max()))


def tucker() -> Made:
    a, b, c = (te.placeholder((60, 6), name=name) for name in "abc")
    core = te.placeholder((6, 6, 6), name="core")
    p, q, s = axes(p=6, q=6, s=6)
    body = lambda i, j, m: te.sum(a[i, p] * b[j, q] * c[m, s] * core[p, q, s], axis=[p, q, s])  # noqa: E731
    return [a, b, c, core], te.compute((60, 60, 60), body, "e")


def projections() -> Made:
    """Of an array of three dimensions, one by two vectors of each row."""
    x, u, v = (te.placeholder(s, name=n) for n, s in (("x", (90, 80, 70)), ("u", (70, 9)), ("v", (80, 9))))
    j, m = axes(j=80, m=70)
    return [x, u, v], te.compute(
        (90, 9), lambda i, r: te.sum(x[i, j, m] * u[m, r] * v[j, r], axis=[j, m]), "y"
    )


@pytest.mark.parametrize("made", [tucker, projections], ids=lambda f: f.__name__)
def test_large_arrays_are_multiplied_as_they_lie(made: Callable[[], Made]) -> None:
    """XLA on the CPU copies what a path of several products begins with; the product alone, with its axes behind those that are left or before, it does not."""
    inputs, y = made()
    args = [jax.ShapeDtypeStruct(t.shape, "float32") for t in (y, *inputs)]
    moved = []
    for without in ((), (NAME,)):
        f = te.function(inputs, y, without=without)
        both = jax.jit(lambda H, *args, f=f: jax.vjp(f, *args)[1](H)).lower(*args).compile()
        moved.append(both.cost_analysis()["bytes accessed"])
    assert moved[0] < 0.75 * moved[1]


def test_what_one_sum_reads_alone_is_left_to_its_path() -> None:
    """A single sum of three arrays; and those whose paths begin alike by themselves, which XLA computes once."""
    inputs, y = canonical()
    assert "_over_" not in str(te.function(inputs, y).source()).split("\ndef backward(")[0]
    x, u, v = (te.placeholder(s, name=n) for n, s in (("x", (200, 40)), ("u", (40, 40)), ("v", (150, 40))))
    a, b = axes(a=40, b=40)
    scores = te.compute((200, 150), lambda i, j: te.sum(x[i, a] * u[a, b] * v[j, b], axis=[a, b]), "y")
    assert "_over_" not in str(te.function([x, u, v], scores).source())


def test_the_same_tensor_at_both_places(rng: np.random.Generator) -> None:
    """``x[i, k] * x[j, k]``: the pair is the same whichever read comes first."""
    x, w = te.placeholder((60, 40), name="x"), te.placeholder((40,), name="w")
    (k,) = axes(k=40)
    y = te.compute((60, 60), lambda i, j: te.sum(x[i, k] * x[j, k] * w[k], axis=k), "y")
    f = te.function([x, w], y)
    a, b = (jnp.asarray(rng.standard_normal(t.shape)) for t in (x, w))
    H = jnp.asarray(rng.standard_normal((60, 60)))
    found, expected = (jax.vjp(g, a, b)[1](H) for g in (f, lambda x, w: jnp.einsum("ik,jk,k->ij", x, x, w)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(300, 200), (0, 200), (300, 0)])
def test_the_same_element_twice(shape: tuple[int, int], rng: np.random.Generator) -> None:
    """``x[i, k] * x[i, k] * w[k]``: neither of two equal reads may be forgotten where the other one is multiplied first."""
    x, w = te.placeholder(shape, name="x"), te.placeholder(shape[1:], name="w")
    (k,) = axes(k=shape[1])
    y = te.compute(shape[:1], lambda i: te.sum(x[i, k] * x[i, k] * w[k], axis=k), "y")
    a, b = (jnp.asarray(rng.standard_normal(t.shape), "float32") for t in (x, w))
    H = jnp.asarray(rng.standard_normal(shape[:1]), "float32")
    found, expected = (
        jax.value_and_grad(lambda a, b, g=g: jnp.sum(H * g(a, b)), (0, 1))(a, b)
        for g in (te.function([x, w], y), lambda x, w: (x * x) @ w)
    )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


def test_products_that_are_numbers(rng: np.random.Generator) -> None:
    """``sum over i, j of u[i] * v[i] * m[i, j]`` and sums of pairs that leave no axis."""
    u, v = te.placeholder((200,), name="u"), te.placeholder((200,), name="v")
    m = te.placeholder((200, 300), name="m")
    i, j = axes(i=200, j=300)
    y = te.compute((1,), lambda _: te.sum(u[i] * v[i] * m[i, j], axis=[i, j]), "y")
    args = [jnp.asarray(rng.standard_normal(t.shape), "float32") for t in (u, v, m)]
    f = te.function([u, v, m], y)
    found = jax.grad(lambda *a: f(*a)[0], (0, 1, 2))(*args)
    expected = jax.grad(lambda u, v, m: jnp.einsum("i,i,ij->", u, v, m), (0, 1, 2))(*args)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_products_that_einsum_takes_at_once(rng: np.random.Generator) -> None:
    """The path of einsum is one step of all arrays where two at a time take as many operations."""
    shapes = {"u": (30, 2), "x": (3, 30, 2), "z": (3, 30, 2), "v": (2,)}
    u, x, z, v = (te.placeholder(s, name=n) for n, s in shapes.items())
    a, c = axes(a=3, c=2)
    body = lambda b: te.sum(u[b, c] * x[a, b, c] * z[a, b, c] * v[c], axis=[a, c])  # noqa: E731
    y = te.compute((30,), body, "y")
    args = [jnp.asarray(rng.standard_normal(s), "float32") for s in shapes.values()]
    H = jnp.asarray(rng.standard_normal(30), "float32")
    reference = lambda u, x, z, v: jnp.einsum("bc,abc,abc,c->b", u, x, z, v)  # noqa: E731
    found, expected = (jax.vjp(f, *args)[1](H) for f in (te.function([u, x, z, v], y), reference))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
