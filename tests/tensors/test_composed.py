"""Means, norms, softmax and stacks in a body: values by the interpreter's loops and by plain JAX, gradients by jax.grad of plain JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 4)).astype("float32") * 50
B = RNG.normal(size=(3, 4)).astype("float32")
V = RNG.normal(size=(4,)).astype("float32")
LOWER = np.tril(np.ones((3, 4), bool))
k = te.axis("k")

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "mean": (lambda a: te.compute(lambda i: te.mean(a[i, k], over=k)), lambda a: a.mean(1), (B,)),
    "mean where": (
        lambda a: te.compute(lambda i: te.mean(a[i, k], over=k, where=k <= i)),
        lambda a: jnp.sum(jnp.where(LOWER, a, 0), 1) / LOWER.sum(1),
        (B,),
    ),
    "variance": (lambda a: te.compute(lambda i: te.variance(a[i, k], over=k)), lambda a: jnp.var(a, axis=1), (A,)),
    "standard deviation where": (
        lambda a: te.compute(lambda i: te.std(a[i, k], over=k, where=k <= i + 1)),
        lambda a: jnp.stack([jnp.std(a[i, : i + 2]) for i in range(3)]),
        (B,),
    ),
    "layer norm": (
        lambda a: te.compute(
            lambda i, j: (a[i, j] - te.mean(a[i, k], over=k)) / te.sqrt(te.variance(a[i, k], over=k) + 1e-5)
        ),
        lambda a: jax.nn.standardize(a, axis=1, epsilon=1e-5),
        (B,),
    ),
    "logsumexp": (
        lambda a: te.compute(lambda i: te.logsumexp(a[i, k], over=k)),
        lambda a: jax.nn.logsumexp(a, axis=1),
        (A,),
    ),
    "softmax of the result": (
        lambda a: te.compute(lambda i, j: te.softmax(a[i, j], over=j)),
        lambda a: jax.nn.softmax(a, 1),
        (A,),
    ),
    "softmax in a sum": (
        lambda a, v: te.compute(lambda i: te.sum(te.softmax(a[i, k], over=k, where=k <= i) * v[k], over=k)),
        lambda a, v: jax.nn.softmax(jnp.where(LOWER, a, -jnp.inf), 1) @ v,
        (B, V),
    ),
    "norm": (lambda a: te.compute(lambda i: te.norm(a[i, k], over=k)), lambda a: jnp.linalg.norm(a, axis=1), (B,)),
    "norm of order 3": (
        lambda a: te.compute(lambda i: te.norm(a[i, k], over=k, ord=3)),
        lambda a: jnp.linalg.norm(a, 3, axis=1),
        (B,),
    ),
    "stack": (
        lambda a: te.compute((3, 2), lambda i, c: te.stack([te.sin(a[i, 0]), a[i, 1] * 2], axis=c)),
        lambda a: jnp.stack([jnp.sin(a[:, 0]), a[:, 1] * 2], 1),
        (B,),
    ),
    "concatenate": (
        lambda a, v: te.compute((7,), lambda i: te.concatenate([(3, lambda j: a[j, j]), (4, lambda j: v[j] ** 2)], i)),
        lambda a, v: jnp.concatenate([jnp.diagonal(a), v**2]),
        (B, V),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_beside_plain_jax(name: str) -> None:
    build, plain, args = CASES[name]
    inputs = [te.placeholder(a.shape, name=n) for n, a in zip("av", args, strict=False)]
    meant = te.interpret(build(*inputs), dict(zip(inputs, args, strict=True)))
    value, own = jax.vjp(te.function(build), *args)
    want, pulled = jax.vjp(plain, *args)
    np.testing.assert_allclose(meant, want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(value, want, rtol=2e-5, atol=1e-6)
    head = jnp.asarray(RNG.normal(size=value.shape), "float32")
    for found, expected in zip(own(head), pulled(head), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


def test_what_is_left_out_and_what_overflows() -> None:
    x = te.placeholder((2, 3), name="x")
    feeds = {x: np.float32([[np.inf, 1, 2], [-np.inf] * 3])}
    lse = te.interpret(te.compute(lambda i: te.logsumexp(x[i, k], over=k)), feeds)
    np.testing.assert_array_equal(lse, [np.inf, -np.inf])
    none = te.compute((2, 3), lambda i, j: te.softmax(x[i, j], over=j, where=j < i))
    np.testing.assert_array_equal(te.interpret(none, feeds)[0], [0, 0, 0])
    largest = te.compute((2,), lambda i: te.norm(x[i, k], over=k, ord=float("inf"), where=k < i))
    np.testing.assert_array_equal(te.interpret(largest, feeds), [0, np.inf])


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Y[i, k] = softmax[k](A[i, k])", lambda a: jax.nn.softmax(a, 1)),
        ("Y[i] = norm[k](A[i, k]) + mean[k](A[i, k])", lambda a: jnp.linalg.norm(a, axis=1) + a.mean(1)),
        ("Y[i] = var[k](A[i, k]) + std[k](A[i, k])", lambda a: a.var(1) + a.std(1)),
    ],
)
def test_in_formulas(text: str, plain: Callable[..., Any]) -> None:
    np.testing.assert_allclose(te.define(text)(B), plain(B), rtol=1e-5)


def test_spreads_in_patterns_and_of_complex_numbers() -> None:
    np.testing.assert_allclose(te.einsum("i k -> i", B, reduce="var"), B.var(1), rtol=1e-5)
    np.testing.assert_allclose(te.einsum("i k -> k", B, reduce="std"), B.std(0), rtol=1e-5)
    z = (B + 1j * V).astype("complex64")
    found = te.function(lambda z: te.compute(lambda i: te.variance(z[i, k], over=k)))(z)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, jnp.var(z, axis=1), rtol=1e-5)
    flat = jnp.ones(3)
    for reduce, slope in (("var", 0.0), ("std", np.nan)):  # as those of jnp.var and jnp.std
        found = jax.grad(lambda x, r=reduce: te.einsum("i ->", x, reduce=r))(flat)
        np.testing.assert_allclose(found, [slope] * 3, atol=1e-7)


def test_softmax_in_a_pattern() -> None:
    found = te.einsum("softmax[k](i k), k -> i", B, V)
    np.testing.assert_allclose(found, jax.nn.softmax(B, 1) @ V, rtol=1e-5)


X = te.placeholder((3, 4), name="X")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: te.compute((3, 4), lambda i, j: te.softmax(X[i, j], over=3)), "give an axis of the tensor"),
        (lambda: te.compute((3, 4), lambda i, j: te.softmax(X[i, 0], over=j)), "does not depend on j"),
        (lambda: te.softmax(X, over=k), r"use te\.ops\.softmax\(X, axis=0\)"),
        (lambda: te.norm(X[0, k], over=k, ord="fro"), "ord is str .fro.; give 1, 2, inf"),
        (lambda: te.define("S[i] = softmax[k](A[i, k])")(B), "softmax keeps its axes, and k is none"),
        (lambda: te.stack([X[0, k], X]), "read an element of each"),
        (lambda: te.stack([X[0, k], X[1, k]], axis=1), "axis is the index that says which"),
        (lambda: te.concatenate([X[0, k]], axis=k), r"a pair \(extent, lambda j"),
        (lambda: te.stack([]), "at least one part"),
        (
            lambda: te.compute(
                (8,), lambda i: te.concatenate([(3, lambda j: X[j, 0]), (4, lambda j: 1.0)], axis=i)
            ),
            "joins parts of 7 elements, and i has 8 values; make these extents equal",
        ),
        (lambda: te.all(k > 1, k < 3), r"no axis.*of several conditions it is te\.logical_and\(a, b, c\)"),
        (
            lambda: te.any(k > 1, k < 3, k < 2, k < 1),
            r"too many positional arguments; of several conditions .*logical_or",
        ),
    ],
)
def test_messages(build: Callable[[], Any], said: str) -> None:
    with pytest.raises(te.JaxteError, match=said):
        build()


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda x: x.astype("int32"), r"`X\[k, 0\]` is a scalar of a definition; write te\.cast"),
        (lambda x: x.sum(), r"write te\.sum\(x, over=k\)"),
        (lambda x: x.T, "read the tensor at the indices in another order"),
        (lambda x: x.foo, "no attribute 'foo'$"),
    ],
)
def test_a_scalar_is_no_array(use: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        use(X[te.reduce_axis((0, 3), "k"), 0])


def test_names_of_tvm_lead_to_those_of_te() -> None:
    for name, own in {"build": "function", "indexdiv": "floor_divide", "floormod": "mod"}.items():
        with pytest.raises(AttributeError, match=f"did you mean te.{own}"):
            getattr(te, name)
