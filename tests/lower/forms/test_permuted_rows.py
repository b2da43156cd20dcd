"""Rows in the order of a permutation: gathered, or written to their places where the inverse is known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge.calls import measured
from jaxte.bridge.tuning import tuning
from jaxte.lower.forms.data.permuted_rows import BY_INVERSE
from jaxte.tensors.tensor import Tensor


def shuffled(x: Tensor, p: Tensor, q: Tensor) -> Tensor:
    te.assume(p, te.facts.permutation(inverse=q))
    return te.compute(x.shape, lambda i, *j: x[(p[i], *j)], "y")


def feeds(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> list[np.ndarray]:
    order = rng.permutation(shape[0]).astype("int32")
    return [rng.integers(-9, 9, shape).astype(dtype), order, np.argsort(order).astype("int32")]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((2048, 64), "float32"), ((4096, 33), "float32"), ((4000, 4, 16), "float32"), ((9000, 32), "float16")],
)
def test_rows_are_written_to_their_places(
    shape: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> None:
    x, p, q = feeds(shape, dtype, rng)
    h = rng.standard_normal(shape).astype(dtype)
    fn = te.function(shuffled, forms={"*": BY_INVERSE})
    found, pull = jax.vjp(lambda x: fn(x, p, q), x)
    np.testing.assert_array_equal(found, x[p])
    expected = np.zeros_like(x)
    expected[p] = h
    np.testing.assert_array_equal(pull(h)[0], expected)
    text = fn.source(x, p, q)
    for line in ("def backward(p, q, H):", "y = x.at[q].set(x, mode=", "dx = H.at[p].set(H, mode="):
        assert line in text
    assert [c.form for c in fn.explain(x, p, q).scatters] == [BY_INVERSE] * 2


@pytest.mark.parametrize("dtype", ["int32", "bool", "int8"])
def test_integers_are_written_too(dtype: str, rng: np.random.Generator) -> None:
    x, p, q = feeds((20_000, 32), dtype, rng)
    fn = te.function(shuffled, forms={"*": BY_INVERSE})
    np.testing.assert_array_equal(fn(x, p, q), x[p])
    assert "x.at[q].set(x, " in fn.source(x, p, q)


def test_no_temporaries_and_no_gather(rng: np.random.Generator) -> None:
    """Zeros to write over would be one array for both passes, which XLA copies."""
    x, p, q = feeds((4096, 64), "float32", rng)
    fn = te.function(shuffled, forms={"*": BY_INVERSE})

    def both(x: jax.Array, h: jax.Array) -> tuple[jax.Array, jax.Array]:
        found, pull = jax.vjp(lambda x: fn(x, p, q), x)
        return found, pull(h)[0]

    compiled = jax.jit(both).lower(x, x).compile()
    held = compiled.memory_analysis()
    assert held is not None and held.temp_size_in_bytes < 1000
    text = compiled.as_text() or ""
    assert text.count(" scatter(") == 2 and " gather(" not in text


GATHERED = {
    "short rows": ((50_000, 8), "float32", "cpu"),
    "long rows": ((2048, 96), "float32", "cpu"),
    "single elements": ((300_000,), "float32", "cpu"),
    "few rows": ((1000, 64), "float32", "cpu"),
    "a dtype that XLA widens": ((20_000, 64), "bfloat16", "cpu"),
    "another platform": ((20_000, 64), "float32", "gpu"),
    "what is faster on one machine only": ((20_000, 64), "float32", "cpu"),
}


@pytest.mark.parametrize("name", GATHERED)
def test_where_a_gather_is_as_fast(name: str) -> None:
    shape, dtype, platform = GATHERED[name]
    order = jax.ShapeDtypeStruct((shape[0],), "int32")
    fn = te.function(shuffled, platform=platform)
    text = fn.source(jax.ShapeDtypeStruct(shape, dtype), order, order)
    assert "y = x.at[p].get(" in text and "dx = H.at[q].get(" in text and ".set(" not in text
    assert "def backward(q, H):" in text  # the permutation is not kept for nothing


BODIES = {
    "in a loop that computes": lambda x, p: lambda i, j: x[p[i], j] * 2,
    "in another order": lambda x, p: lambda i, j: x[p[i], 63 - j],
    "the other way round": lambda x, p: lambda i, j: x[p[4095 - i], j],
    "of the columns": lambda x, p: lambda i, j: x[i, p[j] - p[j] + j],
}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_more_than_rows_is_gathered(name: str, rng: np.random.Generator) -> None:
    x, p, q = feeds((4096, 64), "float32", rng)

    def read(x: Tensor, p: Tensor, q: Tensor) -> Tensor:
        te.assume(p, te.facts.permutation(inverse=q))
        return te.compute(x.shape, BODIES[name](x, p), "y")

    at, columns = p, np.arange(64)
    expected = {
        "in a loop that computes": x[at] * 2,
        "in another order": x[at][:, ::-1],
        "the other way round": x[at[::-1]],
        "of the columns": x[:, columns],
    }[name]
    if name == "of the columns":
        p = q = np.arange(64, dtype="int32")
    fn = te.function(read)
    np.testing.assert_array_equal(fn(x, p, q), expected)
    assert ".set(" not in fn.source(x, p, q).split("def backward")[0]


def test_positions_of_fewer_rows_than_there_are(rng: np.random.Generator) -> None:
    """A permutation of the first rows of a table says nothing of the others, which get nothing back."""
    x, p, q = feeds((4096, 64), "float32", rng)
    longer = np.concatenate([x, x])

    def first(x: Tensor, p: Tensor, q: Tensor) -> Tensor:
        te.assume(p, te.facts.permutation(inverse=q))
        return te.compute((4096, 64), lambda i, j: x[p[i], j], "y")

    fn = te.function(first)
    found, pull = jax.vjp(lambda x: fn(x, p, q), longer)
    np.testing.assert_array_equal(found, x[p])
    expected = np.zeros_like(longer)
    expected[p] = x
    np.testing.assert_array_equal(pull(jnp.asarray(x))[0], expected)


def test_rows_that_others_read_are_gathered_in_their_loop(rng: np.random.Generator) -> None:
    x, p, q = feeds((4096, 64), "float32", rng)

    def doubled(x: Tensor, p: Tensor, q: Tensor) -> Tensor:
        y = shuffled(x, p, q)
        return te.compute(y.shape, lambda i, j: y[i, j] * 2 + 1, "z")

    fn = te.function(doubled)
    np.testing.assert_array_equal(fn(x, p, q), x[p] * 2 + 1)
    assert "y = x.at[p].get(" in fn.source(x, p, q)


@pytest.mark.parametrize("winner", ["gather", BY_INVERSE])
def test_either_form_is_taken_as_it_is_measured_or_named(
    winner: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    x, p, q = feeds((4096, 64), "float32", rng)
    named = te.function(shuffled, forms={"*": winner})
    assert (".at[q].set(" in named.source(x, p, q)) == (winner == BY_INVERSE)
    monkeypatch.setattr(measured, "_measured", {})
    timed: dict[str, list[str]] = {}

    def clock(calls: dict[str, object], seconds: float) -> dict[str, float]:
        timed.update({form: [str(call.func.lower(*call.args).as_text())] for form, call in calls.items()})  # type: ignore[attr-defined]
        return {form: 1e-3 if form == winner else 2e-3 for form in calls}

    monkeypatch.setattr(tuning, "_interleaved", clock)
    fn = te.function(shuffled)
    report = te.autotune(fn, x, p, q)
    assert set(report.winners.values()) == {winner}
    assert "stablehlo.scatter" in timed[BY_INVERSE][0] and "stablehlo.gather" in timed["gather"][0]
    assert (".at[q].set(" in fn.source(x, p, q)) == (winner == BY_INVERSE)
    assert ("def backward(p, q, H)" in named.source(x, p, q)) == (winner == BY_INVERSE)
