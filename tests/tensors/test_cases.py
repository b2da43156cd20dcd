"""Choices in indices, such as strides of each head's own: against loops, and as the forms of their parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.tensors.tensor import Tensor
from tests.agreement import inputs_of, pulled
from tests.numeric import numeric_adjoint

INDEX_ARRAYS = ("stablehlo.gather", "stablehlo.scatter", "stablehlo.dynamic_slice", "stablehlo.while")


def inside(at: Any, extent: int) -> Any:
    return (at >= 0) & (at < extent)


def scores(window: int, strides: Sequence[int], before: int = 0) -> Any:
    """S[h,i,w] = sum_e q[h,i,e] k[h, i + strides[h] (w - before), e], zero outside."""

    def build(q: Tensor, k: Tensor) -> Tensor:
        h, n, d = q.shape
        e = te.reduce_axis((0, d), "e")

        def body(h: Any, i: Any, w: Any) -> Any:
            at = i + te.choose(h, strides) * (w - before)
            return te.select(inside(at, k.shape[1]), te.sum(q[h, i, e] * k[h, at, e], axis=e), 0.0)

        return te.compute((h, n, window), body, "S")

    return build


def rows_of(k: Any, n: int, window: int, stride: int, before: int) -> Any:
    """k at i + stride (w - before) for all i and w, zero outside, by index arrays."""
    at = np.arange(n)[:, None] + stride * (np.arange(window) - before)
    found = k[np.clip(at, 0, k.shape[0] - 1)]
    return jnp.where(((at >= 0) & (at < k.shape[0]))[..., None], found, 0)


@settings(max_examples=10)
@given(st.data())
def test_strides_of_each_head(data: st.DataObject) -> None:
    strides = data.draw(st.lists(st.integers(-2, 4), min_size=1, max_size=5), "strides")
    n, window, d, m = (data.draw(st.integers(1, high)) for high in (9, 6, 3, 12))
    before = data.draw(st.integers(0, 3), "before")
    rng = np.random.default_rng(0)
    heads = len(strides)
    q, k, ct = (
        rng.standard_normal(s).astype("float32") for s in ((heads, n, d), (heads, m, d), (heads, n, window))
    )

    def written(q: Any, k: Any) -> Any:
        rows = [rows_of(k[h], n, window, s, before) for h, s in enumerate(strides)]
        return jnp.stack([jnp.einsum("ie,iwe->iw", q[h], rows[h]) for h in range(heads)])

    run = te.function(scores(window, strides, before))
    reference = pulled(written, (q, k), ct)
    for found, expected in zip(pulled(run, (q, k), ct), reference, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    Q, K = te.placeholder(q.shape, name="Q"), te.placeholder(k.shape, name="K")
    loops = te.interpret(scores(window, strides, before)(Q, K), {Q: q, K: k})
    np.testing.assert_allclose(loops, reference[0], rtol=1e-4, atol=1e-4)


def test_each_stride_is_a_band_of_its_own() -> None:
    arrays = [np.zeros(s, "float32") for s in ((4, 256, 16), (4, 256, 16))]
    run = te.function(scores(33, (1, 1, 2, 3), 16))
    forward, backward = str(te.explain(run, *arrays)).split("  backward\n")
    assert len(re.findall(r"^    S_\d_0  block-skew$", forward, re.M)) == 3
    for name in ("dq", "dk"):
        (forms,) = re.findall(rf"^    {name}  +(.*)$", backward, re.M)
        assert set(forms.split(" + ")) == {"shifted products", "concatenate"}
    both = lambda q, k: jax.vjp(run, q, k)[1](np.zeros((4, 256, 33), "float32"))  # noqa: E731
    lowered = jax.jit(both).lower(*arrays).as_text()
    assert not [name for name in INDEX_ARRAYS if name in lowered]
    # heads of one stride share a product: one for each of three strides in S, and one sum of slices in each adjoint
    assert jax.jit(run).lower(*arrays).as_text().count("stablehlo.dot_general") == 3


def test_the_adjoint_of_parts_adds_nothing() -> None:
    X, w = te.placeholder((6, 40), name="X"), te.placeholder((5,), name="w")
    k = te.reduce_axis((0, 5), "k")
    Y = te.compute(
        (6, 16), lambda h, i: te.sum(w[k] * X[h, i + te.choose(h, (1, 1, 2, 2, 2, 4)) * k], axis=k), "Y"
    )
    H = te.placeholder((6, 16), name="H")
    (dX,) = te.differentiate(Y, [X], H)
    text = te.source(dX)
    assert "jnp.concatenate([" in text and "jnp.where" not in text


X = te.placeholder((4, 40), dtype="float64", name="X")
W = te.placeholder((5,), dtype="float64", name="w")
K, G = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 4), "g")
D = (1, 1, 2, 3)


def taps(x: Any, w: Any, at: Any, limit: int = 5) -> list[Any]:
    """The products that a body reduces, for the positions at(g, k) of row g."""
    return [w[k] * x[g, at(g, k)] for g in range(4) for k in range(limit) if at(g, k) >= 0]


# name: shape, body, and what one element is in NumPy
BODIES: dict[str, tuple[tuple[int, ...], Any, Any]] = {
    "summed": (
        (16,),
        lambda i: te.sum(W[K] * X[G, i + te.choose(G, D) * K], axis=[G, K]),
        lambda x, w, i: sum(taps(x, w, lambda g, k: i + D[g] * k)),
    ),
    "maximum": (
        (16,),
        lambda i: te.max(W[K] * X[G, i + te.choose(G, D) * K], axis=[G, K]),
        lambda x, w, i: max(taps(x, w, lambda g, k: i + D[g] * k)),
    ),
    "maximum of some": (
        (16,),
        lambda i: te.max(
            W[K] * X[G, i + te.choose(G, D) * (K - 2)], axis=[G, K], where=i + te.choose(G, D) * (K - 2) >= 0
        ),
        lambda x, w, i: max(taps(x, w, lambda g, k: i + D[g] * (k - 2))),
    ),
    "all reduced": (
        (),
        lambda: te.sum(X[G, te.choose(G, D) * K] * W[K], axis=[G, K]),
        lambda x, w: sum(taps(x, w, lambda g, k: D[g] * k)),
    ),
    "offsets": (
        (4, 16),
        lambda h, i: X[h, te.choose(h, D) * i // 4 + te.choose(h, (5, 1, 1, 0))] * 2,
        lambda x, w, h, i: x[h, D[h] * i // 4 + (5, 1, 1, 0)[h]] * 2,
    ),
    "mirrored half": (
        (40,),
        lambda i: X[0, te.select(i < 20, 2 * i, 79 - 2 * i)],
        lambda x, w, i: x[0, 2 * i if i < 20 else 79 - 2 * i],
    ),
    "two conditions": (
        (4, 16),
        lambda h, i: te.sum(X[h, te.select((h < 2) & (i < 8), i, i + 2) + K], axis=K),
        lambda x, w, h, i: sum(x[h, (i if h < 2 and i < 8 else i + 2) + k] for k in range(5)),
    ),
    "inside of a choice": (
        (4, 16),
        lambda h, i: te.select(
            h == 2, 0.0, te.tanh(te.sum(X[h, i + te.choose(h, D) * K], axis=K)) + te.max(X[h, te.select(i < 8, i, i + 2) + K], axis=K)
        ),
        lambda x, w, h, i: 0.0 if h == 2 else np.tanh(sum(x[h, i + D[h] * k] for k in range(5)))
        + max(x[h, (i if i < 8 else i + 2) + k] for k in range(5)),
    ),
    "clamped": (
        (4, 16),
        lambda h, i: X[h, te.minimum(te.choose(h, D) * i, 39)],
        lambda x, w, h, i: x[h, min(D[h] * i, 39)],
    ),
    "of a quotient": (
        (8, 8),
        lambda h, i: X[h // 2, te.choose(h // 2, D) * i],
        lambda x, w, h, i: x[h // 2, D[h // 2] * i],
    ),
    "with a range of its own": (
        (4, 8),
        lambda h, i: (lambda t: te.sum(X[h, i + te.choose(h, D) * t], axis=t))(te.reduce_axis((0, h + 1), "t")),
        lambda x, w, h, i: sum(x[h, i + D[h] * t] for t in range(h + 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_bodies_against_loops(name: str, rng: np.random.Generator) -> None:
    shape, body, element = BODIES[name]
    Y = te.compute(shape, body, "Y")
    x, w = rng.standard_normal(X.shape), rng.standard_normal(5)
    loops = np.reshape([element(x, w, *at) for at in np.ndindex(*shape)], shape)
    inputs = inputs_of([Y])
    feeds = {t: a for t, a in ((X, x), (W, w)) if among(t, inputs)}
    with jax.enable_x64(True):
        np.testing.assert_allclose(te.interpret(Y, feeds), loops, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(te.evaluate(Y, feeds), loops, rtol=1e-12, atol=1e-12)
        H = te.placeholder(shape, dtype="float64", name="H")
        h = rng.standard_normal(shape)
        for t, adjoint in zip(inputs, te.differentiate(Y, inputs, H), strict=True):
            found = te.evaluate(adjoint, {t: {**feeds, H: h}[t] for t in inputs_of([adjoint])})
            np.testing.assert_allclose(found, numeric_adjoint(Y, t, feeds, h), rtol=1e-6, atol=1e-6)


def test_symbolic_sizes_beside_choices(rng: np.random.Generator) -> None:
    n = te.var("n")
    rows, w = te.placeholder((3, n + 12), name="rows"), te.placeholder((5,), name="w")
    k = te.reduce_axis((0, 5), "k")
    Y = te.compute((3, n), lambda h, i: te.sum(w[k] * rows[h, i + te.choose(h, (1, 2, 3)) * k], axis=k), "Y")
    run = te.function([rows, w], Y)
    x, v = rng.standard_normal((3, 31)).astype("float32"), rng.standard_normal(5).astype("float32")

    def written(x: Any, v: Any) -> Any:
        at = np.arange(19)[:, None] + np.array([1, 2, 3])[:, None, None] * np.arange(5)
        return x[np.arange(3)[:, None, None], at] @ v

    ct = rng.standard_normal((3, 19)).astype("float32")
    np.testing.assert_allclose(run(x, v), written(x, v), rtol=1e-5, atol=1e-5)
    for found, expected in zip(jax.vjp(run, x, v)[1](ct), jax.vjp(written, x, v)[1](ct), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "out of range": (
        lambda h, i: X[h, i + te.choose(h, (1, 2, 3, 90)) * 8], te.RangeError, r"i \+ 720\].* but axis 1 of X has 40 elements",
    ),
    "of a power": (lambda h, i: X[h, te.select(h < i, i**h, 0)], te.IndexExpressionError, "axes of fixed extents.*choose between reads"),
    "too few": (lambda h, i: X[h, te.choose(h, (1, 2)) * i], te.DefinitionError, "h.* has 2 choices, but h goes up to 3; give"),
    "none": (lambda h, i: X[h, te.choose(h, ()) * i], te.DefinitionError, "no choices; give"),
    "many changes": (lambda h, i: X[te.choose(i, [n % 9 for n in range(80)]), h], te.IndexExpressionError, "choose between reads"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_choices_that_are_refused(name: str) -> None:
    body, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        te.compute((4, 80) if name == "many changes" else (4, 8), body, "z")


def test_choose_is_numpys(rng: np.random.Generator) -> None:
    I = te.placeholder((7,), "int32", name="I")  # noqa: E741
    A, B = te.placeholder((7,), name="A"), te.placeholder((7,), name="B")
    Y = te.compute((7,), lambda i: te.choose(I[i], (A[i], 2.0, B[i])), "Y")
    feeds = {I: rng.integers(-1, 4, 7).astype("int32"), A: np.float32(range(7)), B: np.float32(range(10, 17))}
    expected = np.choose(feeds[I], [feeds[A], np.full(7, 2, "float32"), feeds[B]], mode="clip")
    np.testing.assert_array_equal(te.interpret(Y, feeds), expected)
    np.testing.assert_array_equal(te.evaluate(Y, feeds), expected)


def test_guards_are_chosen_with_the_reads_that_they_keep_in_range() -> None:
    """A choice between data and a number in an index cuts the guards of the same reduction as well."""
    X, T = te.placeholder((2, 6), name="X"), te.placeholder((5,), "int32", name="T")
    m = te.reduce_axis((0, 5), "m")

    def body() -> te.Expr:
        row, column = te.maximum(0, 2 - m), te.select(4 + m < 5, T[4 + m], 0)
        inside = (row < 2) & (column >= 0) & (column < 6)
        return te.max(X[row, column], axis=m, where=inside)

    largest = te.compute((), body, "largest")
    x, table = np.arange(12, dtype="float32").reshape(2, 6), np.int32([0, 1, 2, 3, 4])
    expected = max(x[1, 0], *x[0, :1])
    assert te.interpret(largest, {X: x, T: table}) == te.evaluate(largest, {X: x, T: table}) == expected
    gradient = jax.grad(te.function([X, T], largest))(x, table)
    assert np.array_equal(gradient, np.eye(12, dtype="float32")[6].reshape(2, 6))
