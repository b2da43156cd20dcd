"""Single elements that are accumulated at positions in one of several dimensions: counted over all, in the order in which they lie in memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.forms.data.recognise import recognise_scatter
from jaxte.lower.forms.data.scatter_spec import ScatterSpec
from jaxte.meaning.interpret import interpret

N, C, K = 7, 3, 5
n = te.reduce_axis((0, N), "n")


def table_gradient(order: str, at: te.Tensor, values: te.Tensor, ranks: str) -> te.Tensor:
    """What is added to a table of C x K in each ``order`` of its dimensions, from arrays whose dimensions are ``ranks``."""
    extents = {"c": C, "k": K}

    def body(*axes):
        own = dict(zip(order, axes, strict=True))
        here = [n if rank == "n" else own["c"] for rank in ranks]
        return te.sum(values[tuple(here)], n, where=at[tuple(here)] == own["k"])

    return te.compute(tuple(extents[o] for o in order), body, "out")


@pytest.mark.parametrize("order", ["ck", "kc"])
@pytest.mark.parametrize("ranks", ["nc", "cn"])
def test_elements_are_added_as_they_are_stored(rng, order: str, ranks: str):
    shape = tuple({"n": N, "c": C}[rank] for rank in ranks)
    at, values = te.placeholder(shape, "int32", "at"), te.placeholder(shape, name="v")
    out = table_gradient(order, at, values, ranks)
    text = te.source(out)
    assert f"jnp.zeros(({C * K},), jnp.float32).at[" in text
    assert ".T" not in text.split(".at[")[1].split("]")[0]  # neither positions nor values are transposed
    feeds = {
        at: rng.integers(-4, 9, shape).astype("int32"),
        values: rng.standard_normal(shape).astype("float32"),
    }
    np.testing.assert_allclose(te.evaluate(out, feeds), interpret(out, feeds), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("far", [-(2**31), 2**31 - 1, -1, K, 2**30])
def test_positions_out_of_range_fall_into_no_other_row(far: int):
    at, values = te.placeholder((N, C), "int32", "at"), te.placeholder((N, C), name="v")
    out = table_gradient("ck", at, values, "nc")
    feeds = {at: np.full((N, C), far, "int32"), values: np.ones((N, C), "float32")}
    np.testing.assert_array_equal(te.evaluate(out, feeds), np.zeros((C, K)))


def test_positions_that_are_known_inside_are_not_compared():
    at, values = te.placeholder((N, C), "int32", "at"), te.placeholder((N, C), name="v")
    assert "uint32" in te.source(table_gradient("ck", at, values, "nc"))
    held = te.compute((N, C), lambda i, j: te.minimum(te.maximum(at[i, j], 0), K - 1), "held")
    assert "uint32" not in te.source(table_gradient("ck", held, values, "nc"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_positions_of_few_bits_are_as_they_were(dtype: str):
    """Their product with a stride would overflow."""
    at, values = te.placeholder((N, C), dtype, "at"), te.placeholder((N, C), name="v")
    out = table_gradient("ck", at, values, "nc")
    spec = recognise_scatter(out.axes, out.body)
    assert isinstance(spec, ScatterSpec) and not spec.flat


def test_tables_beyond_32_bits_are_as_they_were():
    at, values = te.placeholder((N, C), "int32", "at"), te.placeholder((N, C), name="v")
    for extent, flat in ((2**29, True), (2**30, False)):
        out = te.compute((C, extent), lambda c, k: te.sum(values[n, c], n, where=at[n, c] == k), "out")
        spec = recognise_scatter(out.axes, out.body)
        assert isinstance(spec, ScatterSpec) and spec.flat == flat


def test_interpolation_in_a_table_of_each_channel(rng):
    """Two neighbours are added to one array of zeros, their positions held inside by their definition."""

    @te.function
    def looked_up(t, x):
        at = te.compute((N, C), lambda i, c: te.clip(te.cast(te.floor(x[i, c]), "int32"), 0, K - 2), "at")
        return te.compute(
            (N, C),
            lambda i, c: (
                t[c, at[i, c]] * (1 - (x[i, c] - at[i, c])) + t[c, at[i, c] + 1] * (x[i, c] - at[i, c])
            ),
            "y",
        )

    def plain(t, x):
        at = jnp.clip(jnp.floor(x).astype("int32"), 0, K - 2)
        c, u = jnp.arange(C), x - at
        return t[c, at] * (1 - u) + t[c, at + 1] * u

    t = jnp.asarray(rng.standard_normal((C, K)), "float32")
    x = jnp.asarray(rng.uniform(-1, K + 1, (N, C)), "float32")
    for got, wanted in zip(
        jax.grad(lambda *a: jnp.sum(looked_up(*a) ** 2), (0, 1))(t, x),
        jax.grad(lambda *a: jnp.sum(plain(*a) ** 2), (0, 1))(t, x),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    text = te.source(looked_up, t, x)
    assert text.count(".add(") == 2 and text.count("jnp.zeros(") == 1


@pytest.mark.parametrize("method", ["max", "min", "prod"])
def test_other_reductions(rng, method: str):
    at, values = te.placeholder((N, C), "int32", "at"), te.placeholder((N, C), name="v")
    out = te.compute((C, K), lambda c, k: getattr(te, method)(values[n, c], n, where=at[n, c] == k), "out")
    feeds = {
        at: rng.integers(-4, 9, (N, C)).astype("int32"),
        values: rng.standard_normal((N, C)).astype("float32"),
    }
    np.testing.assert_allclose(te.evaluate(out, feeds), interpret(out, feeds), rtol=1e-5)
