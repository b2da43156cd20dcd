"""Reductions over a few positions, written out term by term."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lower.code.lines import sources_of
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.forms.window.unrolled import WRITTEN_OUT
from jaxte.lower.program.plan import lower
from tests.agreement import compiled_run
from tests.lowered import arrays_for, inputs_of, load_program
from tests.xla_counts import Fused

REDUCERS = {"sum": te.sum, "prod": te.prod, "max": te.max, "min": te.min}


def squares(n: int = 100_000, terms: int = 3, dtype: str = "float32") -> te.Tensor:
    x, k = te.placeholder((n, terms), dtype, "x"), te.reduce_axis((0, terms), "k")
    return te.compute((n,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), "y")


def products(batch: int, i: int, j: int, terms: int) -> te.Tensor:
    a, b = te.placeholder((batch, i, terms), name="a"), te.placeholder((batch, terms, j), name="b")
    k = te.reduce_axis((0, terms), "k")
    return te.compute((batch, i, j), lambda n, p, q: te.sum(a[n, p, k] * b[n, k, q], axis=k), "y")


def program(*tensors: te.Tensor, **options: Any) -> Any:
    return lower("forward", inputs_of(*tensors), tensors, Policy(**options))


def form(tensor: te.Tensor, **options: Any) -> str:
    return program(tensor, **options).choices[-1].form


def test_a_sum_of_three_squares() -> None:
    (source,) = sources_of(program(squares()))
    assert source == "x[:, 0] * x[:, 0] + x[:, 1] * x[:, 1] + x[:, 2] * x[:, 2]"
    assert form(products(10_000, 4, 4, 4)) == WRITTEN_OUT


def test_short_texts_for_small_arrays_and_long_sums() -> None:
    assert form(squares(n=100)) == "sum"
    assert form(squares(terms=9)) == "sum"
    assert form(products(100, 64, 64, 64)) == "einsum"
    assert form(products(10, 4, 4, 4)) == "einsum"


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_products_stay_products_where_they_are_fast(platform: str) -> None:
    assert form(products(10_000, 8, 8, 8), platform=platform) == "einsum"


def test_nothing_is_left_to_reduce_or_to_contract() -> None:
    for tensor in (squares(), products(10_000, 4, 4, 4)):
        arrays = [np.ones(t.shape, np.float32) for t in inputs_of(tensor)]
        text = jax.jit(te.function(inputs_of(tensor), tensor)).lower(*arrays).as_text()
        assert "reduce" not in text and "dot_general" not in text


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_that_would_be_rounded_more_often_are_kept(dtype: str) -> None:
    assert form(squares(dtype=dtype)) == "sum"
    assert form(squares(dtype=dtype), forms={ANY: WRITTEN_OUT}) == "sum"


def test_what_is_costly_is_not_computed_for_each_element_of_the_result() -> None:
    a, b = te.placeholder((5000, 4, 4), name="a"), te.placeholder((5000, 4, 4), name="b")
    k = te.reduce_axis((0, 4), "k")
    inline = te.compute(a.shape, lambda n, i, j: te.sum(te.exp(a[n, i, k]) * b[n, k, j], axis=k), "y")
    assert form(inline) == "einsum"
    c = te.compute(a.shape, lambda n, i, j: te.exp(a[n, i, j]) / (1 + a[n, i, j] * a[n, i, j]), "c")
    named = te.compute(a.shape, lambda n, i, j: te.sum(c[n, i, k] * b[n, k, j], axis=k), "y")
    assert form(named) == WRITTEN_OUT
    arrays = [np.ones(t.shape, np.float32) for t in inputs_of(named)]
    text = Fused(jax.jit(te.function(inputs_of(named), named)).lower(*arrays)).as_text()
    assert text.count(" exponential(") == 1
    everywhere = te.compute((5000, 4), lambda n, i: te.sum(te.exp(a[n, i, k]), axis=k), "y")
    assert form(everywhere) == WRITTEN_OUT


def test_special_values_are_those_of_the_reduction() -> None:
    x = np.array([[np.nan, 1, 2], [np.inf, -np.inf, 0], [-np.inf] * 3, [-0.0, 0.0, 3]], np.float32)
    k = te.reduce_axis((0, 3), "k")
    for name, plain in (("sum", jnp.sum), ("max", jnp.max), ("min", jnp.min), ("prod", jnp.prod)):
        fn = te.function(
            lambda x, name=name: te.compute((4,), lambda i: REDUCERS[name](x[i, k], axis=k), "y"),
            forms={ANY: WRITTEN_OUT},
        )
        assert "[:, 0]" in fn.source(x)
        np.testing.assert_array_equal(fn(x), plain(x, axis=1))


@st.composite
def reductions(draw: st.DrawFn) -> te.Tensor:
    """A reduction over one or two short axes of a product of reads with any of the axes."""
    sizes = [draw(st.integers(1, 4)) for _ in range(3)]
    terms = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(1, 2)))]
    reducer = draw(st.sampled_from(sorted(REDUCERS)))
    dtype = draw(st.sampled_from(["float64", "float64", "int32", "float16"]))
    low = draw(st.integers(0, 2))
    own = [te.reduce_axis((low, low + n), f"k{i}") for i, n in enumerate(terms)]
    chosen = [draw(st.permutations(range(3 + len(own)))) for _ in range(2)]
    chosen = [order[: draw(st.integers(1, len(order)))] for order in chosen]
    extents = [*sizes, *(low + n for n in terms)]
    tensors = [
        te.placeholder(tuple(extents[n] for n in order), dtype, name)
        for order, name in zip(chosen, "ab", strict=True)
    ]

    def element(*at: Any) -> Any:
        axes = [*at, *own]
        first, second = (t[tuple(axes[n] for n in order)] for t, order in zip(tensors, chosen, strict=True))
        combined = first * second if draw(st.booleans()) else first - 2 * second
        return REDUCERS[reducer](combined, axis=own) + draw(st.integers(0, 1))

    return te.compute(tuple(sizes), element, "y")


@pytest.mark.usefixtures("x64")
@settings(max_examples=500 if settings.default.max_examples >= 1000 else 30)
@given(reductions())
def test_random_reductions(y: te.Tensor) -> None:
    tensors = [y]
    wanted = [t for t in inputs_of(y) if t.dtype == "float64"]
    if wanted:
        tensors += te.differentiate(y, wanted, head=te.placeholder(y.shape, "float64", "h"))
    lowered = program(*tensors, forms={ANY: WRITTEN_OUT})
    arrays = arrays_for(lowered)
    expected = te.interpret(tensors, dict(zip((t for _, t in lowered.params), arrays, strict=True)))
    found = compiled_run(load_program(lowered), arrays, optimised=False)
    for value, meaning in zip(found if len(tensors) > 1 else [found], expected, strict=True):
        assert (value.shape, value.dtype) == (meaning.shape, meaning.dtype)
        rounding = 2e-2 if meaning.dtype == np.float16 else 1e-9
        np.testing.assert_allclose(value.astype("float64"), meaning.astype("float64"), rounding, rounding)
