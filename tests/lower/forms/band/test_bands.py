"""Banded products by blocks of rows and by slices, against loops over the definitions."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor
from tests.agreement import pulled
from tests.xla_counts import Fused

BLOCKS, SLICES = "block-skew", "shifted products"
INDEX_ARRAYS = ("stablehlo.gather", "stablehlo.scatter", "stablehlo.dynamic_slice", "stablehlo.while")


def inside(at: Any, extent: int) -> Any:
    return (at >= 0) & (at < extent)


def scores(
    window: int, step: int = 1, before: int = 0, stride: int = 1
) -> Callable[[Tensor, Tensor], Tensor]:
    def build(q: Tensor, k: Tensor) -> Tensor:
        h, n, d = q.shape
        e = te.reduce_axis((0, d), "e")

        def body(h: Any, i: Any, w: Any) -> Any:
            at = stride * i + step * w - before
            return te.select(inside(at, k.shape[1]), te.sum(q[h, i, e] * k[h, at, e], axis=e), 0.0)

        return te.compute((h, n, window), body, "S")

    return build


def weighted(step: int = 1, before: int = 0, stride: int = 1) -> Callable[[Tensor, Tensor], Tensor]:
    def build(p: Tensor, v: Tensor) -> Tensor:
        h, n, window = p.shape
        w = te.reduce_axis((0, window), "w")

        def body(h: Any, i: Any, d: Any) -> Any:
            at = stride * i + step * w - before
            return te.sum(p[h, i, w] * v[h, at, d], axis=w, where=inside(at, v.shape[1]))

        return te.compute((h, n, v.shape[2]), body, "O")

    return build


def agree(
    build: Callable[..., Tensor],
    shapes: list[tuple[int, ...]],
    expect: int = 3,
    form: str = BLOCKS,
    platform: str = "cpu",
) -> str:
    """Value and adjoints by ``form`` beside the interpreter; at least ``expect`` of them are in it."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
    fn = te.function(build, forms={"*": form}, platform=platform)
    inputs = [te.placeholder(s, name=n) for s, n in zip(shapes, "ABC", strict=False)]
    output = build(*inputs)
    head = te.placeholder(output.shape, name="H")
    given_head = rng.standard_normal(output.shape).astype("float32")
    adjoints = list(te.differentiate(output, inputs, head))
    feeds = {**dict(zip(inputs, arrays, strict=True)), head: given_head}
    expected = te.interpret([output, *adjoints], feeds)
    for found, wanted in zip(pulled(fn, arrays, given_head), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    explained = fn.explain(*arrays)
    forms = [c.form for choices in explained.choices.values() for c in choices]
    assert sum(form in f for f in forms) >= expect, str(explained)
    text = fn.source(*arrays)
    assert "jnp.take" not in text and ".at[" not in text
    return text


def test_scores_and_their_adjoints() -> None:
    agree(scores(5, before=2), [(2, 40, 3), (2, 40, 3)])


def test_weighted_sums_and_their_adjoints() -> None:
    agree(weighted(before=2), [(2, 40, 5), (2, 40, 3)])


@pytest.mark.parametrize("step", [2, 3, -1, -2])
def test_steps_in_the_window(step: int) -> None:
    before = 4 if step > 0 else -4
    agree(scores(5, step, before), [(2, 37, 3), (2, 37, 3)])
    agree(weighted(step, before), [(2, 37, 5), (2, 37, 3)])


def test_without_conditions() -> None:
    agree(scores(5), [(2, 20, 3), (2, 24, 3)])
    agree(weighted(), [(2, 20, 5), (2, 24, 3)])


def test_a_few_rows_are_one_block() -> None:
    """It meets all columns: none is copied, and nothing is added where blocks overlap."""
    text = agree(weighted(before=2), [(2, 10, 30), (2, 35, 3)])
    assert "jnp.concatenate" not in text and "sum(jnp.pad" not in text and '"hnij' not in text
    text = agree(scores(30, -2, -9), [(2, 10, 3), (2, 50, 3)])
    assert "jnp.concatenate" not in text and "sum(jnp.pad" not in text


def test_adjoints_share_what_is_skewed() -> None:
    text = agree(scores(30), [(2, 10, 3), (2, 39, 3)])
    assert text.count("jnp.pad(H") == 1


def test_a_single_diagonal_and_a_single_row() -> None:
    agree(scores(1), [(2, 20, 3), (2, 20, 3)], expect=0)
    agree(scores(4), [(2, 1, 3), (2, 4, 3)], expect=0)


def test_axes_in_any_order_and_place() -> None:
    """Diagonals first, rows last; a head in the middle; keys shared by the heads; two summed axes."""

    def build(q: Tensor, k: Tensor) -> Tensor:
        a, b = te.reduce_axis((0, 2), "a"), te.reduce_axis((0, 3), "b")
        body = lambda w, head, row: te.sum(q[a, row, head, b] * k[b, row + w, a], axis=[a, b])  # noqa: E731
        return te.compute((6, 2, 21), body, "S")

    agree(build, [(2, 21, 2, 3), (3, 26, 2)])


def test_two_kinds_of_columns() -> None:
    """Weights without heads for values with features of two axes."""

    def build(p: Tensor, v: Tensor) -> Tensor:
        w = te.reduce_axis((0, 7), "w")
        return te.compute((3, 18, 4), lambda c, i, d: te.sum(p[w, i] * v[d, i + w, c], axis=w), "O")

    agree(build, [(7, 18), (4, 24, 3)])


def test_a_scale_and_functions_of_the_operands() -> None:
    def build(p: Tensor, v: Tensor, b: Tensor) -> Tensor:
        w = te.reduce_axis((0, 5), "w")
        body = lambda i, d: b[i] * te.sum(te.exp(p[i, w]) * te.tanh(v[i + w, d]), axis=w)  # noqa: E731
        return te.compute((18, 4), body, "O")

    agree(build, [(18, 5), (22, 4), (18,)], expect=2)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(2, 20),
    st.sampled_from([1, 2, 3, -1, -2]),
    st.integers(-3, 9),
    st.sampled_from([1, 1, 2, 3]),
    st.sampled_from([(BLOCKS, "cpu"), (SLICES, "cpu"), (SLICES, "tpu")]),
    st.integers(0, 99),
)
def test_random_bands(
    n: int, window: int, step: int, before: int, stride: int, chosen: tuple[str, str], seed: int
) -> None:
    """Any part of the band may lie outside of the columns."""
    form, platform = chosen
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 40))
    for build, shapes in (
        (scores(window, step, before, stride), [(1, n, 2), (1, columns, 2)]),
        (weighted(step, before, stride), [(1, n, window), (1, columns, 2)]),
    ):
        arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
        inputs = [te.placeholder(s, name=m) for s, m in zip(shapes, "AB", strict=True)]
        output = build(*inputs)
        head = te.placeholder(output.shape, name="H")
        ones = np.ones(output.shape, "float32")
        tensors = [output, *te.differentiate(output, inputs, head)]
        feeds = {**dict(zip(inputs, arrays, strict=True)), head: ones}
        needed = set(
            topological_order(tensors)
        )  # a band without columns has zeros as adjoints, which read no head
        expected = te.interpret(tensors, {t: a for t, a in feeds.items() if t in needed})
        own = pulled(te.function(build, forms={"*": form}, platform=platform), arrays, ones)
        for found, wanted in zip(own, expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


LARGE = [jax.ShapeDtypeStruct((8, 1024, 64), jnp.float32)] * 2


def gathered(q: Any, k: Any) -> Any:
    at = jnp.arange(1024)[:, None] + jnp.arange(65) - 32
    found = jnp.einsum("hid,hikd->hik", q, k[:, jnp.clip(at, 0, 1023)])
    return jnp.where((at >= 0) & (at < 1024), found, 0.0)


def both(fn: Callable[..., Any]) -> Any:
    return jax.jit(jax.value_and_grad(lambda *a: jnp.sum(fn(*a) ** 2), (0, 1))).lower(*LARGE)


def test_sliding_window_scores_at_full_size() -> None:
    fn = te.function(scores(65, before=32))
    explained = fn.explain(*LARGE)
    taken = {c.tensor: c.form for choices in explained.choices.values() for c in choices}
    assert (taken["S_0"], taken["dq"], taken["dk"]) == (BLOCKS, SLICES, SLICES)
    lowered = both(fn)
    assert not any(name in lowered.as_text() for name in INDEX_ARRAYS)
    own = Fused(lowered).memory_analysis().temp_size_in_bytes
    assert own < 2.5e7
    assert 10 * own < Fused(both(gathered)).memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize(("stride", "step", "window"), [(2, 1, 96), (3, 2, 128)])
def test_the_columns_of_long_strided_windows_at_full_size(stride: int, step: int, window: int) -> None:
    columns = stride * 511 + step * (window - 1) + 1
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((8, 512, window), (8, columns, 64))]
    choices = te.function(weighted(step, 0, stride)).explain(*shapes).choices
    assert [c.form for c in choices["backward"]] == [BLOCKS] * 2


@pytest.mark.parametrize(("step", "before"), [(1, 0), (1, 4), (2, -1), (3, 14), (-1, -4), (-2, 3)])
def test_slices(step: int, before: int) -> None:
    """Both kinds of sums, with zeros on either side or columns that no window meets."""
    text = agree(weighted(step, before), [(2, 37, 6), (2, 41, 3)], expect=2, form=SLICES)
    assert " for w in range(6))" in text


def test_slices_of_windows_that_move_by_a_stride() -> None:
    agree(weighted(2, 4, 3), [(2, 11, 6), (2, 37, 3)], expect=1, form=SLICES)


@pytest.mark.parametrize(
    ("step", "before", "stride"), [(1, 0, 1), (1, 4, 1), (2, -1, 1), (3, 14, 2), (-1, -4, 1), (-2, 3, 1)]
)
def test_scores_as_slices(step: int, before: int, stride: int) -> None:
    """A sum for each diagonal, where a platform sums products as it makes them and copies rows that overlap."""
    text = agree(
        scores(6, step, before, stride), [(2, 37, 3), (2, 41, 3)], expect=1, form=SLICES, platform="tpu"
    )
    assert "for p in range(6)]" in text


def test_scores_as_slices_of_several_bands_and_summed_axes() -> None:
    text = agree(
        volume((3, 5), (1, 1), (1, 2), (1, 1)), [(2, 11, 20), (2, 10, 19)], 1, SLICES, platform="tpu"
    )
    assert "for p in range(3) for q in range(5)]" in text

    def build(q: Tensor, k: Tensor) -> Tensor:
        a, b = te.reduce_axis((0, 2), "a"), te.reduce_axis((0, 3), "b")
        body = lambda w, head, row: te.sum(q[a, row, head, b] * k[b, row + w, a], axis=[a, b])  # noqa: E731
        return te.compute((6, 2, 21), body, "S")

    agree(build, [(2, 21, 2, 3), (3, 26, 2)], 1, SLICES, platform="tpu")


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_slices_in_any_order(order: tuple[int, ...]) -> None:
    """Heads, rows and features of the result in any order; weights with diagonals first, values that all heads share."""

    def build(p: Tensor, v: Tensor) -> Tensor:
        k = te.reduce_axis((0, 7), "k")

        def body(*at: Any) -> Any:
            h, i, d = (at[order.index(n)] for n in range(3))
            return te.sum(p[k, i, h] * v[d, i + k], axis=k)

        return te.compute(tuple((2, 18, 4)[n] for n in order), body, "O")

    agree(build, [(7, 18, 2), (4, 24)], expect=1, form=SLICES)


@pytest.mark.parametrize("name", ["p", "O_1", "jnp", "for", "größe 2"])
def test_slices_along_an_axis_of_any_name(name: str) -> None:
    """The loop has the name of the axis, unless an operand or the language has it."""

    def build(p: Tensor, v: Tensor) -> Tensor:
        k = te.reduce_axis((0, 6), name)
        body = lambda i, d: te.sum(p[i, k] * v[i + k - 2, d], axis=k, where=inside(i + k - 2, 19))  # noqa: E731
        return te.compute((18, 4), body, "O")

    agree(build, [(18, 6), (19, 4)], expect=2, form=SLICES)


@pytest.mark.parametrize("dtype", ["int32", "float64", "complex64"])
def test_slices_of_other_numbers(dtype: str) -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        p, v = (rng.integers(-9, 9, s).astype(dtype) for s in ((2, 20, 6), (2, 23, 3)))
        fn = te.function(weighted(before=1), forms={"*": SLICES})
        assert [c.form for c in fn.explain(p, v).choices["forward"]] == [SLICES]
        P, V = (te.placeholder(a.shape, dtype, name=n) for n, a in (("P", p), ("V", v)))
        np.testing.assert_array_equal(fn(p, v), te.interpret(weighted(before=1)(P, V), {P: p, V: v}))


def test_slices_are_one_loop_at_full_size() -> None:
    """XLA holds nothing but the operands of the transposed product with zeros around them, and the text is one line."""
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((8, 1024, 65), (8, 1088, 64))]
    fn = te.function(weighted())
    assert [c.form for c in fn.explain(*shapes).choices["forward"]] == [SLICES]
    assert "O = sum(p[:, :, w, None] * v[:, w:w + 1024] for w in range(65))" in fn.source(*shapes)
    assert Fused(jax.jit(fn).lower(*shapes)).memory_analysis().temp_size_in_bytes == 0


def neighbours(x: Tensor, w: Tensor) -> Tensor:
    """A weight of its own for each neighbour of each position."""
    channels, size, _, rows, columns = w.shape
    p, q = (te.reduce_axis((0, size), name) for name in "pq")
    return te.compute(
        (channels, rows, columns),
        lambda c, i, j: te.sum(x[c, i + p, j + q] * w[c, p, q, i, j], axis=[p, q]),
        "y",
    )


def test_few_diagonals_are_padded_as_products() -> None:
    """The adjoint of the image reads weights and what flows back at the same rows: no copy of either among zeros."""
    x, w, h = (jax.ShapeDtypeStruct(s, jnp.float32) for s in ((4, 34, 34), (4, 3, 3, 32, 32), (4, 32, 32)))
    back = jax.jit(lambda x, w, h: jax.vjp(te.function(neighbours), x, w)[1](h)[0])
    assert Fused(back.lower(x, w, h)).memory_analysis().temp_size_in_bytes == 0
    text = te.source(te.function(neighbours), x, w)
    assert "dx = sum(jnp.pad(w[:, p, q] * H, ((0, 0), (p, 2 - p), (q, 2 - q))) for p in" in text
    assert "jnp.pad(w, " in te.source(te.function(neighbours, platform="gpu"), x, w)


@pytest.mark.parametrize(("step", "before"), [(1, 2), (2, 3), (-1, -4), (-2, -1), (1, -2)])
def test_rows_that_meet_no_column_are_cut(step: int, before: int) -> None:
    text = agree(weighted(step, before), [(2, 9, 5), (2, 12, 3)], 1, SLICES)
    assert "lax.pad(" in text.split("def backward")[1]


@pytest.mark.parametrize(("window", "features"), [(129, 16), (65, 256), (512, 64)])
def test_blocks_where_a_row_meets_more_than_is_near(window: int, features: int) -> None:
    shapes = [jax.ShapeDtypeStruct((2, 1024, n), jnp.float32) for n in (window, features)]
    shapes[1] = jax.ShapeDtypeStruct((2, 1023 + window, features), jnp.float32)
    assert [c.form for c in te.function(weighted()).explain(*shapes).choices["forward"]] == [BLOCKS]


def test_short_numbers_are_not_added_one_after_the_other() -> None:
    shapes = [jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in ((8, 1024, 65), (8, 1088, 64))]
    assert [c.form for c in te.function(weighted()).explain(*shapes).choices["forward"]] == [BLOCKS]


def test_slices_leave_out_what_is_infinite() -> None:
    """A function is infinite where its product with a column is left out: no slices, which multiply it by zero."""

    def build(p: Tensor, v: Tensor) -> Tensor:
        w = te.reduce_axis((0, 6), "w")
        keep = lambda i: (i + w >= 2) & (i + w < 22)  # noqa: E731
        body = lambda i, d: te.sum(v[i + w - 2, d] / p[i, w], axis=w, where=keep(i))  # noqa: E731
        return te.compute((20, 8), body, "O")

    p, v = np.ones((20, 6), "float32"), np.ones((20, 8), "float32")
    p[0, 0] = 0.0
    assert np.isfinite(te.function(build)(p, v)).all()


def test_short_windows_stay_slices() -> None:
    shapes = [jax.ShapeDtypeStruct((1024, 3), jnp.float32), jax.ShapeDtypeStruct((1026, 64), jnp.float32)]

    def build(p: Tensor, v: Tensor) -> Tensor:
        w = te.reduce_axis((0, 3), "w")
        return te.compute((1024, 64), lambda i, d: te.sum(p[i, w] * v[i + w, d], axis=w), "O")

    assert not re.search("einsum.*nij", te.function(build).source(*shapes).partition("def backward")[0])


def test_conditions_that_are_no_columns_are_refused() -> None:
    """A condition on rows only is not a range of columns; the product is still right."""

    def build(p: Tensor, v: Tensor) -> Tensor:
        w = te.reduce_axis((0, 4), "w")
        return te.compute((9, 2), lambda i, d: te.sum(p[i, w] * v[i + w, d], axis=w, where=i != 3), "O")

    fn = te.function(build, forms={"*": BLOCKS})
    p, v = np.ones((9, 4), "float32"), np.ones((12, 2), "float32")
    assert "block-skew" not in fn.explain(p, v).choices["forward"][0].form
    np.testing.assert_allclose(fn(p, v), np.where(np.arange(9) == 3, 0.0, 4.0)[:, None] * np.ones((1, 2)))


@pytest.mark.parametrize(
    ("stride", "step", "window", "before"),
    [(2, 1, 5, 4), (2, 2, 4, 0), (2, 3, 9, 4), (3, -2, 5, 4), (3, 1, 2, 0), (2, -1, 40, 0)],
)
def test_windows_that_move_by_a_stride(stride: int, step: int, window: int, before: int) -> None:
    """The gradient of the columns too; where windows are shorter than the stride, each column is in one of them at most."""
    expect = 3 if window > stride else 2
    agree(scores(window, step, before, stride), [(2, 37, 3), (2, 97, 3)], expect)
    agree(weighted(step, before, stride), [(2, 37, window), (2, 97, 3)], expect)


@pytest.mark.parametrize("build", [scores, weighted])
def test_a_step_beside_a_stride_multiplies_no_zeros(build: Callable[..., Any]) -> None:
    """The products of blocks are as many as without a step: every column of a block is met by some row."""
    flops = []
    for step in (1, 3):
        columns = 2 * 511 + step * 64 + 1
        features = 64 if build is scores else 65
        shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((8, 512, features), (8, columns, 64))]
        fn = te.function(build(65, step, 0, 2) if build is scores else build(step, 0, 2), forms={"*": BLOCKS})
        cost: Any = Fused(jax.jit(fn).lower(*shapes)).cost_analysis()
        flops.append(cost["flops"])
    assert flops[1] < 1.3 * flops[0]


Ints = tuple[int, ...]


def volume(windows: Ints, steps: Ints, before: Ints, strides: Ints) -> Callable[[Tensor, Tensor], Tensor]:
    """What each pixel of one image has in common with the pixels of a window of another one."""

    def build(a: Tensor, b: Tensor) -> Tensor:
        c = te.reduce_axis((0, a.shape[0]), "c")
        dims = len(windows)

        def body(*at: Any) -> Any:
            here, shift = at[:dims], at[dims:]
            there = [
                g * i + s * p - o for g, i, s, p, o in zip(strides, here, steps, shift, before, strict=True)
            ]
            keep = functools.reduce(operator.and_, map(inside, there, b.shape[1:]))
            return te.select(keep, te.sum(a[(c, *here)] * b[(c, *there)], axis=c), 0.0)

        return te.compute((*a.shape[1:], *windows), body, "Y")

    return build


@pytest.mark.parametrize(
    ("windows", "steps", "before"),
    [
        ((3, 5), (1, 1), (1, 2)),
        ((5, 3), (2, 1), (4, 0)),
        ((2, 4), (-1, 3), (0, 3)),
        ((2, 2, 3), (1, 1, -2), (0, 1, -3)),
    ],
)
def test_a_volume_of_several_bands(windows: Ints, steps: Ints, before: Ints) -> None:
    """One of the bands is skewed, in the others there is a product for each diagonal; and both adjoints."""
    own, other = ((2, *(n - m for n in (11, 20, 6)[: len(windows)])) for m in (0, 1))
    text = agree(volume(windows, steps, before, (1,) * len(windows)), [own, other])
    assert " for p in range(" in text


def test_a_volume_whose_windows_move_by_strides() -> None:
    agree(volume((3, 3), (1, 2), (1, 0), (2, 1)), [(2, 6, 9), (2, 13, 12)], expect=2)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_random_volumes(data: st.DataObject) -> None:
    few = st.tuples(st.integers(2, 4), st.integers(2, 4))
    windows, sizes = data.draw(few), data.draw(st.tuples(st.integers(3, 8), st.integers(3, 20)))
    steps = data.draw(st.tuples(*[st.sampled_from([1, 2, -1])] * 2))
    before = data.draw(st.tuples(*[st.integers(-2, 3)] * 2))
    strides = data.draw(st.tuples(*[st.sampled_from([1, 1, 2])] * 2))
    build = volume(windows, steps, before, strides)
    others = tuple(g * n for g, n in zip(strides, sizes, strict=True))
    agree(build, [(2, *sizes), (2, *others)], expect=0, form=data.draw(st.sampled_from([BLOCKS, SLICES])))


def test_shifts_that_come_first_are_not_moved() -> None:
    """``w[p, q, i, j]`` is sliced as it is: a sum for each shift of rows of memory."""
    w, x = te.placeholder((9, 9, 16, 16), name="w"), te.placeholder((8, 24, 24), name="x")
    p, q = te.reduce_axis((0, 9), "p"), te.reduce_axis((0, 9), "q")
    of_shifts = lambda c, i, j: te.sum(w[p, q, i, j] * x[c, i + p, j + q], axis=(p, q))  # noqa: E731
    text = te.source(te.compute((8, 16, 16), of_shifts, "Y"))
    assert "w[p, q, None] * x[:, p:p + 16, q:q + 16] for p in range(9) for q in range(9)" in text


def test_a_volume_is_made_by_products() -> None:
    """Its products are those of blocks, summed as they are made."""
    image = jax.ShapeDtypeStruct((32, 48, 48), jnp.float32)
    fn = te.function(volume((9, 9), (1, 1), (4, 4), (1, 1)))
    taken = {c.tensor: c.form for choices in fn.explain(image, image).choices.values() for c in choices}
    assert taken["Y_0"] == "block-skew"
    lowered = jax.jit(fn).lower(image, image)
    assert lowered.as_text().count("stablehlo.dot_general") == 9
    products = 81 * 32 * 48 * 48 * 4
    assert 4 * Fused(lowered).memory_analysis().temp_size_in_bytes < products


def test_operands_of_rows_columns_and_diagonals_are_no_bands() -> None:
    """Emission of a second derivative ended with an error of letters: two of the three are positions in a band, and tell the third."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x, w, v = (jnp.asarray(rng.normal(size=n)) for n in (12, 8, 12))
        p, q = np.arange(3)[:, None], np.arange(5)

        @te.function
        def own(x: te.Tensor, w: te.Tensor) -> te.Tensor:
            return te.compute(
                (3, 5),
                lambda i, j: (
                    x[te.minimum(te.maximum(3 * i, j), 11)]
                    * w[te.minimum((i + 4 - 2 * (i // 4 % 2 * 4)) // 2 % 4 * 2, 7)]
                ),
                "y",
            )

        def plain(x: jax.Array, w: jax.Array) -> jax.Array:
            return x[np.maximum(3 * p, q)] * w[np.minimum((p + 4) // 2 % 4 * 2, 7)]

        def twice(f: Callable[..., jax.Array]) -> jax.Array:
            value = lambda x, w: jnp.sum(jnp.sin(f(x, w)))  # noqa: E731
            slope = jax.grad(value, (0, 1))
            return jax.grad(lambda x, w: slope(x, w)[0] @ v + jnp.sum(slope(x, w)[1]), (0, 1))(x, w)

        for found, expected in zip(twice(own), twice(plain), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
