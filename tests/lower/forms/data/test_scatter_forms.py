"""The forms of a sum at positions that are data: each adds up the same, and the platform decides."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.tensors.structure import topological_order

SCATTERS = ("scatter", "one-hot product")


@pytest.mark.parametrize("form", SCATTERS)
@pytest.mark.parametrize("axis", [0, 1])
def test_every_form_of_a_scatter_adds_the_same(form: str, axis: int, rng: np.random.Generator) -> None:
    shape = (7, 4) if axis == 0 else (4, 7)

    def take(x: te.Tensor, i: te.Tensor) -> te.Tensor:
        rows = (9, 4) if axis == 0 else (4, 9)
        read = (lambda a, b: x[i[a], b]) if axis == 0 else (lambda a, b: x[a, i[b]])
        return te.compute(rows, read, "y")

    x = rng.standard_normal(shape).astype("float32")
    h = rng.standard_normal((9, 4) if axis == 0 else (4, 9)).astype("float32")
    at = rng.integers(0, 7, 9).astype("int32")
    fn = te.function(take, forms={"*": form})
    found = jax.vjp(lambda x: fn(x, at), x)[1](h)[0]
    expected = np.zeros_like(x)
    np.add.at(expected, at if axis == 0 else (slice(None), at), h)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert form in fn.explain(x, at).forms["dx"]


def motif(p: te.Tensor, at: te.Tensor) -> te.Tensor:
    """A window of letters: the position in the window is one of the result, too."""
    q = te.reduce_axis((0, p.shape[1]), "q")
    shape = (at.shape[0], p.shape[0], at.shape[1] - p.shape[1] + 1)
    return te.compute(shape, lambda n, m, i: te.sum(p[m, q, at[n, i + q]], axis=q), "y")


def labels(p: te.Tensor, at: te.Tensor) -> te.Tensor:
    """A row for each position of a matrix of positions."""
    return te.compute((*at.shape, p.shape[1]), lambda a, b, c: p[at[a, b], c], "y")


def by_channel(p: te.Tensor, at: te.Tensor) -> te.Tensor:
    """Other positions for each channel."""
    return te.compute(at.shape, lambda c, i: p[c, at[c, i]] * 2.0, "y")


SMALL_TABLES = {
    "motif": (motif, (3, 5, 4), (6, 40)),
    "labels": (labels, (4, 8), (20, 30)),
    "by channel": (by_channel, (3, 4), (3, 50)),
}


@pytest.mark.parametrize("form", SCATTERS)
@pytest.mark.parametrize("name", SMALL_TABLES)
def test_positions_of_several_dimensions(name: str, form: str, rng: np.random.Generator) -> None:
    """Some of them in front of the table or behind it."""
    build, table, places = SMALL_TABLES[name]
    p, i = te.placeholder(table, name="p"), te.placeholder(places, "int32", "i")
    y = build(p, i)
    h = te.placeholder(y.shape, name="h")
    (dp,) = te.differentiate(y, [p], h)
    feeds = {
        h: rng.standard_normal(h.shape).astype("float32"),
        i: rng.integers(-1, table[-1] + 1, places).astype("int32"),
    }
    run = te.function([*feeds], dp, forms={"*": form})
    assert form in run.explain(*feeds.values()).forms[dp.name]
    found = run(*feeds.values())
    np.testing.assert_allclose(found, te.interpret(dp, feeds), rtol=1e-4, atol=1e-4)


def test_a_small_table_is_a_product_that_repeats_nothing() -> None:
    """What flows back does not depend on the position in the window, and is not repeated for each of them."""
    fn = te.function(motif)
    shapes = [jax.ShapeDtypeStruct((32, 12, 4), "float32"), jax.ShapeDtypeStruct((16, 512), "int32")]
    report = fn.explain(*shapes)
    assert report.forms["dp"] == "one-hot product" and not report.scatters
    back = jax.jit(lambda p, s, h: jax.vjp(lambda p: fn(p, s), p)[1](h))
    compiled = back.lower(*shapes, jax.eval_shape(fn, *shapes)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * 2**20  # repeated it takes 13 MB
    wide = [jax.ShapeDtypeStruct((32, 12, 400), "float32"), shapes[1]]
    assert fn.explain(*wide).forms["dp"] == "scatter"


def test_the_cheapest_scatter_depends_on_the_platform() -> None:
    def lookup(x: te.Tensor, i: te.Tensor) -> te.Tensor:
        return te.compute((4096, 64), lambda a, b: x[i[a], b], "y")

    shapes = jax.ShapeDtypeStruct((64, 64), "float32"), jax.ShapeDtypeStruct((4096,), "int32")
    assert "scatter" in te.function(lookup, platform="cpu").explain(*shapes).forms["dx"]
    assert "one-hot product" in te.function(lookup, platform="tpu").explain(*shapes).forms["dx"]


@pytest.mark.parametrize("name", ["max", "min", "prod"])
@pytest.mark.parametrize("guarded", [False, True])
def test_other_reductions_at_positions_that_are_data(
    name: str, guarded: bool, rng: np.random.Generator
) -> None:
    x, i = te.placeholder((40, 3), name="X"), te.placeholder((40,), "int32", "I")
    e = te.reduce_axis((0, 40), "e")
    reduce = {"max": te.max, "min": te.min, "prod": te.prod}[name]

    def body(a: te.Axis, c: te.Axis) -> te.Expr:
        where = i[e] == a
        return reduce(x[e, c] * 1.5, axis=e, where=where & (e >= c) & (a < 7) if guarded else where)

    y = te.compute((8, 3), body, "Y")
    report = te.explain(y)
    assert [c.form for c in report.scatters] == ["scatter"]
    feeds = {x: rng.standard_normal((40, 3)).astype("float32"), i: rng.integers(-2, 10, 40).astype("int32")}
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-6)

    h = te.placeholder((8, 3), name="H")
    (dx,) = te.differentiate(y, [x], h)
    feeds |= {h: rng.standard_normal((8, 3)).astype("float32")}
    found = te.evaluate(dx, {t: v for t, v in feeds.items() if among(t, needed(dx))})
    expected = te.interpret(dx, {t: v for t, v in feeds.items() if among(t, needed(dx))})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def needed(tensor: te.Tensor) -> list[te.Tensor]:
    return [t for t in topological_order([tensor]) if isinstance(t, te.Placeholder)]


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_what_occurs_once_takes_its_place(name: str, rng: np.random.Generator) -> None:
    """Nothing is added up where positions are unique; what none of them is keeps the identity."""
    x = te.placeholder((40, 3), name="X")
    i = te.placeholder((40,), "int32", "I", facts=te.facts.unique())
    e = te.reduce_axis((0, 40), "e")
    reduce = {"sum": te.sum, "max": te.max, "min": te.min, "prod": te.prod}[name]
    y = te.compute((50, 3), lambda a, c: reduce(x[e, c] * 1.5, axis=e, where=(i[e] == a) & (e >= c)), "Y")
    source = te.source(y)
    assert ".set(" in source and "unique_indices=True" in source
    assert not any(f".{method}(" in source for method in ("add", "max", "min", "multiply"))
    feeds = {x: rng.standard_normal((40, 3)).astype("float32"), i: rng.permutation(60)[:40].astype("int32")}
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-6)


COMPUTED = {
    "rounded down": lambda a, i: te.clip(te.cast(te.floor(a[i]), "int32"), 0, 38),
    "rounded down, one further": lambda a, i: te.clip(te.cast(te.floor(a[i]), "int32"), 0, 38) + 1,
    "a sign": lambda a, i: i + te.cast(te.sign(a[i]), "int32") + 1,
    "a remainder": lambda a, i: te.cast(te.abs(a[i]) * 9, "int32") % 40,
    "a choice": lambda a, i: te.select(a[i] > 3, te.cast(a[i], "int32") + 2, i),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_positions_that_are_computed_where_they_are_used(name: str, rng: np.random.Generator) -> None:
    """As if they were a tensor of their own: a scatter, not a comparison of every point with every position."""
    x = rng.standard_normal(40).astype("float32")
    a = rng.uniform(-2, 30, 33).astype("float32")
    position = COMPUTED[name]
    fn = te.function(lambda x, a: te.compute((33,), lambda i: te.sin(x[position(a, i)]), "y"))
    places = te.function(lambda a: te.compute((33,), lambda i: position(a, i), "p"))(a)
    h = rng.standard_normal(33).astype("float32")
    expected = np.zeros_like(x)
    np.add.at(expected, np.asarray(places), h * np.cos(x[np.asarray(places)]))
    np.testing.assert_allclose(jax.vjp(lambda x: fn(x, a), x)[1](h)[0], expected, rtol=1e-5, atol=1e-6)
    assert "scatter" in fn.explain(x, a).forms["dx"]


def between(x: te.Tensor, at: te.Tensor, f: te.Tensor) -> te.Tensor:
    """Elements between two neighbours each, at positions that are data."""
    k = te.reduce_axis((0, 2), "k")
    return te.compute(
        at.shape,
        lambda b, p: te.sum(te.select(k == 0, 1 - f[b, p], f[b, p]) * x[b, at[b, p] + k], axis=k),
        "y",
    )


@pytest.mark.parametrize(("platform", "axis"), [("cpu", 2), ("tpu", 0)])
def test_rows_that_are_padded_are_long_ones(platform: str, axis: int) -> None:
    rng = np.random.default_rng(0)
    x, f = (rng.standard_normal(s).astype("float32") for s in ((8, 50), (8, 200)))
    at, h = rng.integers(0, 49, (8, 200)).astype("int32"), rng.standard_normal((8, 200)).astype("float32")
    fn = te.function(between, platform=platform)

    def plain(x: jax.Array, f: jax.Array) -> jax.Array:
        rows = jnp.arange(8)[:, None]
        return (1 - f) * x[rows, at] + f * x[rows, at + 1]

    pull = jax.vjp(lambda x, f: fn(x, at, f), x, f)[1]
    for ours, theirs in zip(pull(h), jax.vjp(plain, x, f)[1](h), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    text = str(te.source(fn, x, at, f)).partition("def backward")[2]
    assert f"jnp.stack([1 - f, f], axis={axis})" in text and ".add(" in text


INFINITE = {
    "quotient": lambda z: te.compute(z.shape, lambda i: 1.0 / z[i], "w"),
    "logarithm": lambda z: te.compute(z.shape, lambda i: te.log(z[i]), "w"),
    "power": lambda z: te.compute(z.shape, lambda i: z[i] ** -0.5, "w"),
    "read beyond": lambda z: te.compute(z.shape, lambda i: z[te.cast(z[i] * 100.0, "int32") - 1], "w"),
}


@pytest.mark.parametrize("name", INFINITE)
def test_what_is_infinite_in_one_row_stays_in_it(name: str, rng: np.random.Generator) -> None:
    """A product with zeros and ones would make NaN of all rows."""
    p, z, e = te.placeholder((4, 6), name="p"), te.placeholder((50,), name="z"), te.placeholder((50,), "int32", "e")  # fmt: skip
    w = INFINITE[name](z)
    y = te.compute((50, 6), lambda i, j: p[e[i], j] * w[i], "y")
    h = te.placeholder(y.shape, name="h")
    (dp,) = te.differentiate(y, [p], h)
    values = np.full(50, 0.02, "float32")
    values[3] = 0
    feeds = {
        h: rng.standard_normal(h.shape).astype("float32"),
        z: values,
        e: np.arange(50, dtype="int32") % 4,
    }
    found = te.function([*feeds], dp, forms={"*": "one-hot product"})(*feeds.values())
    expected = te.interpret(dp, feeds)
    assert np.isfinite(expected).all(axis=1).tolist() == [True, True, True, False]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


NUMBERS = {
    "number": lambda y, i, c, a, j: 0.7 * y[a, i[j]],
    "number under a condition": lambda y, i, c, a, j: te.select(c[j] > 0, 0.7 * y[a, i[j]], 0.0),
    "number and its negative": lambda y, i, c, a, j: te.select(c[j] > 0, -0.7 * y[a, i[j]], 0.1 * y[a, i[j]]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_left_alone_have_the_dtype_of_the_sum(name: str, rng: np.random.Generator) -> None:
    """What flows back leaves the sum, and a number is all that is added at each position: 0.7 of 64 bits, not of 32."""
    y, i, c = te.placeholder((4, 3), "float64", "y"), te.placeholder((7,), "int32", "i"), te.placeholder((7,), "float64", "c")  # fmt: skip
    j = te.reduce_axis((0, 7), "j")
    total = te.compute((4,), lambda a: te.sum(NUMBERS[name](y, i, c, a, j), axis=j), "t")
    h = te.placeholder((4,), "float64", "h")
    (dy,) = te.differentiate(total, [y], h)
    feeds = {h: rng.standard_normal(4), i: np.arange(7, dtype="int32") % 3}
    if name != "number":
        feeds[c] = rng.standard_normal(7)
    with jax.enable_x64(True):
        found = te.evaluate(dy, feeds)
    np.testing.assert_allclose(found, te.interpret(dy, feeds), rtol=1e-14)
