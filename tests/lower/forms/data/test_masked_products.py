"""Sums over what data choose for each row: a product with the matrix of zeros and ones, exact where values are not finite."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor
from tests.xla_counts import Fused

ROWS, POINTS, COLUMNS = 20, 60, 18
Builder = Callable[[Tensor, Tensor], Compute]


def segments(x: Tensor, t: Tensor) -> Compute:
    i = te.reduce_axis((0, POINTS), "i")
    inside = lambda s: te.logical_and(i >= t[s], i < t[s + 1])  # noqa: E731
    return te.compute((ROWS, COLUMNS), lambda s, c: te.sum(te.select(inside(s), x[i, c], 0.0), i), "y")


def later(x: Tensor, t: Tensor) -> Compute:
    """What comes after each: the sums of a partial likelihood."""
    i = te.reduce_axis((0, POINTS), "i")
    return te.compute((ROWS, COLUMNS), lambda s, c: te.sum(te.exp(x[i, c]), i, where=t[i] >= t[s]), "y")


def close_neighbours(x: Tensor, t: Tensor) -> Compute:
    i = te.reduce_axis((0, POINTS), "i")
    near = lambda s: te.logical_and(te.abs(t[i] - t[s]) < 9, i != s)  # noqa: E731
    return te.compute((ROWS, COLUMNS), lambda s, c: te.sum(x[i, c], i, where=near(s)), "y")


FUNCTIONS: dict[str, Builder] = {f.__name__: f for f in (segments, later, close_neighbours)}


def arguments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal((POINTS, COLUMNS)).astype("float32")
    return x, np.sort(rng.integers(0, POINTS, POINTS)).astype("int32")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("spoilt", ["finite", "inf", "-inf", "nan", "both"])
def test_values(name: str, spoilt: str, rng: np.random.Generator) -> None:
    x, t = arguments(rng)
    if spoilt != "finite":
        x[7, 2] = float(spoilt) if spoilt != "both" else float("inf")
        x[8, 2] = -float("inf") if spoilt == "both" else 1.0
    places = [te.placeholder(x.shape, name="x"), te.placeholder(t.shape, "int32", name="t")]
    expected = te.interpret(FUNCTIONS[name](*places), dict(zip(places, (x, t), strict=True)))
    found = te.function(FUNCTIONS[name])(x, t)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_array_of_all_points(name: str) -> None:
    fn = te.function(FUNCTIONS[name])
    x, t = jax.ShapeDtypeStruct((POINTS, COLUMNS), "float32"), jax.ShapeDtypeStruct((POINTS,), "int32")
    assert "product with a mask" in str(te.explain(fn, x, t))
    memory = Fused(jax.jit(fn).lower(x, t)).memory_analysis()
    assert memory.temp_size_in_bytes < 4 * ROWS * POINTS * COLUMNS


def test_gradients(rng: np.random.Generator) -> None:
    x, t = arguments(rng)
    h = rng.standard_normal((ROWS, COLUMNS)).astype("float32")
    (found,) = jax.vjp(lambda x: te.function(segments)(x, t), x)[1](h)
    inside = (np.arange(POINTS) >= t[:ROWS, None]) & (np.arange(POINTS) < t[1 : ROWS + 1, None])
    np.testing.assert_allclose(found, inside.T.astype("float32") @ h, rtol=1e-5, atol=1e-5)


def test_few_columns_stay_one_loop() -> None:
    i = te.reduce_axis((0, POINTS), "i")
    build = lambda x, t: te.compute((ROWS, 3), lambda s, c: te.sum(x[i, c], i, where=t[i] >= t[s]), "y")  # noqa: E731
    x, t = jax.ShapeDtypeStruct((POINTS, 3), "float32"), jax.ShapeDtypeStruct((POINTS,), "int32")
    assert "product with a mask" not in str(te.explain(te.function(build), x, t))


def test_platforms_that_reduce_in_one_loop_have_none() -> None:
    x, t = jax.ShapeDtypeStruct((POINTS, COLUMNS), "float32"), jax.ShapeDtypeStruct((POINTS,), "int32")
    for platform in ("gpu", "tpu"):
        assert "product with a mask" not in str(te.explain(te.function(segments, platform=platform), x, t))


# --- rows of a table that data choose

SEQUENCES, SITES, LETTERS, WIDTH = 1700, 20, 5, 16


def couplings(e: Tensor, t: Tensor) -> Compute:
    """What other sites say of each letter at a site."""
    j = te.reduce_axis((0, SITES), "j")
    shape = 100, SITES, WIDTH
    return te.compute(shape, lambda n, i, a: te.sum(e[i % 3, a, j, t[n, j]], axis=j, where=j != i), "y")


def additive(e: Tensor, t: Tensor) -> Compute:
    """Effects of the categories of features, each with a table of its own."""
    j = te.reduce_axis((0, SITES), "j")
    return te.compute((SEQUENCES, WIDTH), lambda n, c: 2.0 * te.sum(e[1, c, j, t[n, j]], axis=j), "y")


def masked_bag(e: Tensor, t: Tensor) -> Compute:
    """Bags of categories, where negative ones are padding and each of them counts by a weight of its own."""
    j = te.reduce_axis((0, SITES), "j")
    return te.compute(
        (SEQUENCES, WIDTH),
        lambda n, c: te.sum(e[2, c, j, t[n, j]] * te.exp(-(e[0, c, j, 0] ** 2)), axis=j, where=t[n, j] >= 0),
        "y",
    )


def shared_rows(e: Tensor, t: Tensor) -> Compute:
    """The same row for several sites, which a site counts twice if it is in it."""
    j = te.reduce_axis((0, SITES), "j")
    shape = SITES, SEQUENCES, WIDTH
    return te.compute(
        shape, lambda i, n, c: te.sum(e[0, c, i, t[n, j] % LETTERS], axis=j, where=j <= 16), "y"
    )


TABLES: dict[str, Builder] = {f.__name__: f for f in (couplings, additive, masked_bag, shared_rows)}


def table_arguments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    e = rng.standard_normal((3, WIDTH, SITES, LETTERS)).astype("float32")
    return e, rng.integers(0, LETTERS, (SEQUENCES, SITES)).astype("int32")


@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_gathered_from_a_table(name: str, rng: np.random.Generator) -> None:
    fn, given = te.function(TABLES[name]), table_arguments(rng)
    forms = fn.explain(*given).forms.values()
    assert any(form.startswith("product of a table") for form in forms) == (name != "shared_rows")
    assert name == "shared_rows" or "stablehlo.gather" not in jax.jit(fn).lower(*given).as_text()
    assert "product of a table" not in str(te.explain(te.function(TABLES[name], platform="gpu"), *given))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("spoilt", ["finite", "inf", "-inf", "nan", "both", "beyond"])
def test_values_of_tables(name: str, spoilt: str, rng: np.random.Generator) -> None:
    e, t = table_arguments(rng)
    if spoilt == "beyond":
        t[3, 4], t[5, 0], t[6, 6] = -1, LETTERS, 2**30
    elif spoilt != "finite":
        e[:, 2, 3, 1] = float(spoilt) if spoilt != "both" else float("inf")
        e[:, 2, 4, 2] = -float("inf") if spoilt == "both" else 1.0
    places = [te.placeholder(e.shape, name="e"), te.placeholder(t.shape, "int32", name="t")]
    expected = te.interpret(TABLES[name](*places), dict(zip(places, (e, t), strict=True)))
    found = te.function(TABLES[name])(e, t)
    assert (spoilt == "finite") == bool(np.isfinite(found).all()) or name in ("shared_rows", "masked_bag")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_one_of_a_batch_that_is_infinite_leaves_the_others(rng: np.random.Generator) -> None:
    e, t = table_arguments(rng)
    both = np.stack([e, e])
    both[1, 1, 2, 3, 1] = np.inf
    found = jax.vmap(te.function(additive), (0, None))(both, t)
    for own, given in zip(found, both, strict=True):
        np.testing.assert_allclose(own, te.function(additive)(given, t), rtol=1e-4, atol=1e-4)
    assert np.isfinite(found[0]).all() and np.isinf(found[1]).any()


def test_infinities_are_counted_only_where_there_are_any(rng: np.random.Generator) -> None:
    source = te.function(additive).source(*table_arguments(rng))
    before, _, inside = source.partition("def forward(")[2].partition("_counted():")
    assert before.count("einsum") == 1 and inside.partition("lax.cond")[0].count("einsum") == 3
