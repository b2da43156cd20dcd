"""The forms of a read at one position that is data: a gather, and a product with a one-hot matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te

GATHER, ONE_HOT = "gather", "one-hot product"
X = te.placeholder((7, 4), name="X")
T = te.placeholder((3, 7, 2), name="T")
I = te.placeholder((9,), "int32", "I")  # noqa: E741
J = te.placeholder((3, 5), "int32", "J")
SAFE = te.placeholder((9,), "int32", "S", facts=te.facts.within(7))

# shape, definition, and whether what is read out of range is seen
CASES: dict[str, tuple[tuple[int, ...], Callable[..., Any], bool]] = {
    "rows": ((9, 4), lambda i, j: X[I[i], j], True),
    "rows, in another order": ((4, 9), lambda j, i: X[I[i], j] * 2, True),
    "columns": ((7, 9), lambda i, j: X[i, I[j]], True),
    "a matrix of positions": ((3, 5, 4), lambda a, b, j: X[J[a, b], j], True),
    "the middle of three axes": ((3, 9, 2), lambda a, i, j: T[a, I[i], j], True),
    "shifted positions": ((9, 4), lambda i, j: X[I[i] + 1, j], True),
    "a fixed position": ((4,), lambda j: X[I[0], j], True),
    "behind a guard": ((9, 4), lambda i, j: te.select((I[i] >= 0) & (I[i] < 7), X[I[i], j], 3.0), False),
    "known to be in range": ((9, 4), lambda i, j: X[SAFE[i], j], False),
    "twice": ((9, 4), lambda i, j: X[I[i], j] * te.sin(X[I[i], 3 - j]), True),
}


def feeds_of(y: te.Tensor, rng: np.random.Generator) -> dict[te.Tensor, np.ndarray]:
    given = {t: rng.standard_normal(t.shape).astype("float32") for t in (X, T)}
    given |= {t: rng.integers(-2, 9, t.shape).astype("int32") for t in (I, J)}
    given[SAFE] = rng.integers(0, 7, 9).astype("int32")
    return {t: a for t, a in given.items() if any(t is u for u in y.inputs)}


@pytest.mark.parametrize("form", [GATHER, ONE_HOT])
@pytest.mark.parametrize("name", CASES)
def test_each_form_reads_the_same(name: str, form: str, rng: np.random.Generator) -> None:
    shape, body, outside = CASES[name]
    y = te.compute(shape, body, "Y")
    feeds = feeds_of(y, rng)
    fn = te.function(list(feeds), [y], forms={"*": form})
    expected = te.interpret(y, feeds)
    (found,) = fn(*feeds.values())
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    text = fn.source(*feeds.values())
    assert ("jax.nn.one_hot(" in text) == (form == ONE_HOT)
    assert ("jnp.nan" in text or "_inside / " in text) == outside
    compiled = jax.jit(fn).lower(*feeds.values()).as_text()
    assert form == GATHER or name == "twice" or "stablehlo.gather" not in compiled


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_products_read_exactly(dtype: str, rng: np.random.Generator) -> None:
    """One factor 1 and zeros: no bit of what is read is lost, in the highest precision of a product."""

    def rows(x: te.Tensor, i: te.Tensor) -> te.Tensor:
        return te.compute((9, 4), lambda a, b: x[i[a], b], "y")

    x = jax.numpy.asarray(rng.standard_normal((7, 4)), dtype)
    at = rng.integers(0, 7, 9).astype("int32")
    fn = te.function(rows, forms={"y": ONE_HOT})
    assert fn(x, at).dtype == x.dtype and 'precision="highest"' in fn.source(x, at)
    np.testing.assert_array_equal(np.asarray(fn(x, at), "float32"), np.asarray(x, "float32")[at])


def lookup(x: te.Tensor, i: te.Tensor) -> te.Tensor:
    return te.compute((4096, 64), lambda a, b: x[i[a], b], "y")


def finite_lookup(x: te.Tensor, i: te.Tensor) -> te.Tensor:
    return lookup(te.assume(x, te.facts.finite()), i)


SHAPES = jax.ShapeDtypeStruct((64, 64), "float32"), jax.ShapeDtypeStruct((4096,), "int32")


@pytest.mark.parametrize(
    ("builder", "platform", "form"),
    [
        (lookup, "cpu", GATHER),
        (lookup, "tpu", GATHER),
        (finite_lookup, "cpu", GATHER),
        (finite_lookup, "tpu", ONE_HOT),
    ],
)
def test_products_are_taken_where_they_are_faster_and_the_same(
    builder: Any, platform: str, form: str
) -> None:
    report = te.function(builder, platform=platform).explain(*SHAPES)
    assert report.forms["y"] == form
    told = [reason for refused, reason in report.refused.get("y", ()) if refused == ONE_HOT]
    assert bool(told) == (builder is lookup)
    assert all("0 * inf" in reason for reason in told)


def test_a_product_that_is_asked_for_says_what_it_does_to_infinities() -> None:
    report = te.function(lookup, forms={"y": ONE_HOT}).explain(*SHAPES)
    assert report.forms["y"] == ONE_HOT and "0 * inf" in str(report)


def test_a_large_matrix_of_ones_is_no_form() -> None:
    wide = jax.ShapeDtypeStruct((2**15, 64), "float32"), jax.ShapeDtypeStruct((4096,), "int32")
    assert te.function(finite_lookup, platform="tpu").explain(*wide).forms["y"] == GATHER


def test_finite_is_a_fact_of_floats_that_is_checked() -> None:
    te.check_facts({te.placeholder((3,), name="A", facts=te.facts.finite()): np.ones(3, "float32")})
    x = te.placeholder((3,), name="A", facts=te.facts.finite())
    with pytest.raises(te.FeedError, match=r"A is stated to be finite, but A\[1\] = inf is not"):
        te.check_facts({x: np.float32([0, np.inf, np.nan])})
    with pytest.raises(te.DefinitionError, match="integers are finite"):
        te.placeholder((3,), "int32", "B", facts=te.facts.finite())
