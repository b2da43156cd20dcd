"""Choices by remainders: stacked and reshaped; and gradients of maxima over windows side by side, which are such choices."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

A, B, C = (te.placeholder((3, 4), name=name) for name in "ABC")

CASES: dict[str, tuple[tuple[int, ...], Callable[..., Any], str]] = {
    "two": (
        (3, 8),
        lambda i, j: te.select(j % 2 == 0, A[i, j // 2], B[i, j // 2]),
        "Y = jnp.stack([A, B], axis=2).reshape(3, 8)\n",
    ),
    "a part of the last pair": (
        (3, 7),
        lambda i, j: te.select(j % 2 == 1, A[i, j // 2], B[i, j // 2]),
        "Y = jnp.stack([B, A], axis=2).reshape(3, 8)[:, :7]\n",
    ),
    "three": (
        (3, 12),
        lambda i, j: te.select(j % 3 == 2, A[i, j // 3], te.select(j % 3 == 0, B[i, j // 3], C[i, j // 3])),
        "Y = jnp.stack([B, C, A], axis=2).reshape(3, 12)\n",
    ),
    "two axes, one reshape": (
        (6, 8),
        lambda i, j: te.select(
            i % 2 == 0, te.select(j % 2 == 0, A[i // 2, j // 2], B[i // 2, j // 2]), C[i // 2, j // 2]
        ),
        ".reshape(6, 8)\n",
    ),
    "numbers between are padding": (
        (3, 8),
        lambda i, j: te.select(j % 2 == 0, A[i, j // 2], 0),
        "Y = lax.pad(A, jnp.float32(0), ((0, 0, 0), (0, 1, 1)))\n",
    ),
    "whole arrays are masked": (
        (3, 4),
        lambda i, j: te.select(j % 2 == 0, A[i, j], B[i, j]),
        "jnp.where(",
    ),
    "a remainder that is missing": (
        (3, 12),
        lambda i, j: te.select(j % 3 == 2, A[i, j // 3], B[i, j // 3]),
        "jnp.where(",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_choices_by_remainders(name: str) -> None:
    shape, body, written = CASES[name]
    y = te.compute(shape, body, "Y")
    text = te.source(y)
    assert written in text
    assert ("stack" in text) == ("interleaved" in [c.form for c in te.explain(y).choices["forward"]])
    rng = np.random.default_rng(0)
    feeds = {t: rng.standard_normal(t.shape).astype("float32") for t in y.inputs}
    np.testing.assert_array_equal(te.evaluate(y, feeds), te.interpret(y, feeds))


def pool(
    sizes: tuple[int, ...], ties: str = "first", reduction: Any = te.max, last: bool = False
) -> Callable[[Any], Any]:
    """Extrema over windows of ``sizes`` side by side, over the last axes of an array or those before the ``last`` one."""

    def build(x: Any) -> Any:
        own = [te.reduce_axis((0, n), name=f"k{d}") for d, n in enumerate(sizes)]
        first = len(x.shape) - len(sizes) - last
        extents = [e // sizes[d - first] if 0 <= d - first < len(sizes) else e for d, e in enumerate(x.shape)]

        def body(*i: Any) -> Any:
            at = list(i)
            for d, k in enumerate(own):
                at[first + d] = sizes[d] * i[first + d] + k
            return reduction(x[tuple(at)], axis=own, ties=ties)

        return te.compute(extents, body, "y")

    return build


def adjoint(build: Callable[[Any], Any], shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    x = te.placeholder(shape, name="x")
    y = build(x)
    h = te.placeholder(y.shape, name="h")
    return te.differentiate(y, [x], h)[0], x, h


def expected(given: Any, h: Any, sizes: tuple[int, ...], last: bool, ties: str, sign: int) -> Any:
    """The adjoint by loops over windows."""
    found = np.zeros_like(given)
    first = given.ndim - len(sizes) - last
    for at in np.ndindex(*h.shape):
        places = []
        for k in itertools.product(*map(range, sizes)):
            place = list(at)
            for d, (n, own) in enumerate(zip(sizes, k, strict=True)):
                place[first + d] = n * at[first + d] + own
            places.append(tuple(place))
        values = [sign * given[p] for p in places]
        hits = [p for p, v in zip(places, values, strict=True) if v == max(values)]
        if hits and not any(np.isnan(values)):
            found[hits[0 if ties == "first" else -1]] += h[at]
    return found


POOLS = [
    ((3, 6, 8), (2, 2)),
    ((3, 7, 9), (2, 2)),
    ((2, 6, 9), (3, 3)),
    ((5, 8), (2, 4)),
    ((4, 5, 6), (2, 2, 2)),
]


@pytest.mark.parametrize("ties", ["first", "last"])
@pytest.mark.parametrize("reduction", [te.max, te.min])
@pytest.mark.parametrize(("shape", "sizes"), POOLS)
def test_gradients_of_windows_by_comparisons(
    shape: tuple[int, ...], sizes: tuple[int, ...], reduction: Any, ties: str
) -> None:
    dx, x, h = adjoint(pool(sizes, ties, reduction), shape)
    text = te.source(dx)
    body = text[text.index("with jax.named_scope") :]
    assert "winner" not in body and "jnp.repeat" not in body and "_padded" not in body
    assert body.count(".reshape(") == 1
    rng = np.random.default_rng(0)
    given = rng.integers(0, 3, shape).astype("float32")  # many ties
    given[(0,) * len(shape)] = np.nan
    head = rng.standard_normal(h.shape).astype("float32")
    found = np.asarray(te.evaluate(dx, {x: given, h: head}))
    sign = 1 if reduction is te.max else -1
    np.testing.assert_array_equal(found, expected(given, head, sizes, False, ties, sign))


@pytest.mark.parametrize(
    ("shape", "sizes", "last"),
    [((3, 8), (2,), False), ((4, 6, 5), (2, 2), True), ((3, 10, 10), (5, 5), False)],
)
def test_other_windows_keep_their_winners(shape: tuple[int, ...], sizes: tuple[int, ...], last: bool) -> None:
    """One dimension, channels that come last, and many positions; the first two take the form by name."""
    dx, x, h = adjoint(pool(sizes, last=last), shape)
    assert "winner_y = " in te.source(dx)
    rng = np.random.default_rng(0)
    feeds = {
        x: rng.integers(0, 3, shape).astype("float32"),
        h: rng.standard_normal(h.shape).astype("float32"),
    }
    wanted = expected(feeds[x], feeds[h], sizes, last, "first", 1)
    np.testing.assert_array_equal(te.evaluate(dx, feeds), wanted)
    named = te.function([x, h], [dx], forms={"*": "interleaved"})
    text, _, saving = named.source(feeds[x], feeds[h]).partition("def forward_with")
    text = saving.split("def backward")[0] if "return forward_with" in text else text
    assert ("winner_y = " in text) == (sizes == (5, 5))
    np.testing.assert_array_equal(named(feeds[x], feeds[h])[0], wanted)


def test_no_temporaries_and_each_comparison_in_its_own_place() -> None:
    """XLA makes two loops, one for the maximum and one for the gradient, and keeps nothing between them."""
    f = te.function(lambda x: te.ops.max_pool2d(x, 2))
    x = jax.ShapeDtypeStruct((4, 8, 56, 56), jnp.float32)
    h = jax.ShapeDtypeStruct((4, 8, 28, 28), jnp.float32)

    def both(x: Any, h: Any) -> Any:
        y, pull = jax.vjp(f, x)
        return y, pull(h)

    compiled = Fused(jax.jit(both).lower(x, h))
    memory = compiled.memory_analysis()
    assert memory is not None and memory.temp_size_in_bytes < 4096
    text = str(compiled.as_text())
    assert text.split("ENTRY")[1].count(" fusion(") == 2
    assert "s8[" not in text and "s32[4" not in text


@pytest.mark.parametrize("base", [2, 3])
def test_the_adjoint_of_strided_reads_is_side_by_side(base: int, rng: np.random.Generator) -> None:
    """All residues of two axes, each with a term of its own: nothing is spread out, padded or added."""
    n, m = 4, 5
    weights = rng.standard_normal((base, base)).astype("float32")

    def mosaic(x: te.Tensor) -> te.Tensor:
        def element(i: Any, j: Any) -> Any:
            return sum(
                float(weights[p, q]) * te.tanh(x[base * i + p, base * j + q])
                for p in range(base)
                for q in range(base)
            )

        return te.compute((n, m), element, "y")

    fn = te.function(mosaic)
    x, h = (rng.standard_normal(s).astype("float32") for s in ((base * n, base * m), (n, m)))
    backward = fn.source(x).split("def backward")[1]
    assert "pad(" not in backward and "dynamic_update" not in backward and "jnp.stack" in backward
    expected = np.kron(h, weights) * (1 - np.tanh(x) ** 2)
    np.testing.assert_allclose(jax.vjp(fn, x)[1](h)[0], expected, rtol=1e-5, atol=1e-6)


def test_residues_with_gaps_are_not_side_by_side() -> None:
    """x[3 * i + 2] is read by nothing: its zero stays a zero."""
    fn = te.function(lambda x: te.compute((4,), lambda i: x[3 * i] * 2 + x[3 * i + 1], "y"))
    x = np.arange(12, dtype="float32")
    np.testing.assert_array_equal(jax.vjp(fn, x)[1](np.ones(4, "float32"))[0], [2, 1, 0] * 4)
