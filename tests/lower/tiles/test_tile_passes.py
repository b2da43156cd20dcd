"""Tiles whose slices overlap, sums that are carried through them, and tiles of both axes: values, gradients, memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.errors import LoweringError
from jaxte.tensors.tensor import Tensor
from tests.random_parts import LARGEST
from tests.xla_counts import Fused

LOOP = re.compile(r"lax\.(?:map|scan)\((\w+), .*jnp\.arange\((?:0, )?(\d+)(?:, (\d+))?")


def window_attention(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    heads, n, d = q.shape
    window = keys.shape[1] - n + 1
    e, k = te.reduce_axis((0, d), "e"), te.reduce_axis((0, window), "k")
    s = te.compute((heads, n, window), lambda h, i, k: te.sum(q[h, i, e] * keys[h, i + k, e], axis=e), "s")
    p = te.ops.softmax(s)
    return te.compute(q.shape, lambda h, i, d: te.sum(p[h, i, k] * values[h, i + k, d], axis=k), "o")


def dense_attention(q: Any, keys: Any, values: Any) -> Any:
    at = jnp.arange(q.shape[1])[:, None] + jnp.arange(keys.shape[1] - q.shape[1] + 1)
    p = jax.nn.softmax(jnp.einsum("hid,hikd->hik", q, keys[:, at]))
    return jnp.einsum("hik,hikd->hid", p, values[:, at])


def attention_arrays(n: int, dtype: str = "float32") -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.standard_normal((2, rows, 3)).astype(dtype) for rows in (n, n + 4, n + 4)]


def gradients(fn: Callable[..., Any], own: list[Any]) -> Any:
    weigh = lambda *a: jnp.sum(jnp.sin(fn(*a) / 50))  # noqa: E731
    return jax.jit(jax.value_and_grad(weigh, tuple(range(len(own)))))(*own)


def temporaries(fn: Callable[..., Any], shapes: list[Any]) -> int:
    memory: Any = Fused(jax.jit(fn).lower(*shapes)).memory_analysis()
    return int(memory.temp_size_in_bytes)


def agree(found: Any, wanted: Any, tolerance: float) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [12, 13, 23])
def test_blocks_with_a_halo(n: int) -> None:
    """Sizes that divide and some that do not: no position counts twice."""
    own = attention_arrays(n)
    fn = te.function(window_attention, max_memory=200)
    loops = LOOP.findall(fn.source(*own))
    assert loops and all(int(extent) == n and int(size or 1) < n for _, extent, size in loops)
    agree(gradients(fn, own), gradients(dense_attention, own), 2e-5)


def test_what_a_row_is_divided_by_leaves_its_sum() -> None:
    """The results are divided, which are rows of 3, and not the 5 weights of each; backward the weights are read as such, divided once."""
    forward, backward = (
        te.function(window_attention, max_memory=400).source(*attention_arrays(24)).split("def backward")
    )
    assert re.search(r"^ *o_i = .* / total_i1$", forward, re.M), forward
    assert "scaled_i1 / total" not in forward and backward.count("/ total_i1") == 1


def test_blocks_with_a_halo_in_float64() -> None:
    with jax.enable_x64(True):
        own = attention_arrays(13, "float64")
        agree(
            gradients(te.function(window_attention, max_memory=400), own),
            gradients(dense_attention, own),
            1e-12,
        )


def test_a_long_window_keeps_the_budget() -> None:
    """2 heads of 4,096 x 128 scores take 4 MiB; no temporary comes near."""
    shapes = [jax.ShapeDtypeStruct((2, rows, 8), jnp.float32) for rows in (4096, 4223, 4223)]
    fn = te.function(window_attention, max_memory=2**17)
    both = jax.value_and_grad(lambda *a: jnp.sum(fn(*a)), (0, 1, 2))
    assert temporaries(both, shapes) < 3 * 2**20
    assert "tiles of 128 i" in str(fn.explain(*shapes))


def distances(x: Tensor, y: Tensor) -> Tensor:
    d = te.reduce_axis((0, x.shape[1]), "d")
    shape = (x.shape[0], y.shape[0])
    return te.compute(shape, lambda i, j: te.sum((x[i, d] - y[j, d]) ** 2, axis=d), "D")


def over(reduce: Callable[..., Any]) -> Callable[..., Tensor]:
    def build(x: Tensor, y: Tensor) -> Tensor:
        table, j = distances(x, y), te.reduce_axis((0, y.shape[0]), "j")
        return te.compute((x.shape[0],), lambda i: reduce(table[i, j], axis=j), "Y")

    return build


def logsumexp(x: Tensor, y: Tensor) -> Tensor:
    table, j = distances(x, y), te.reduce_axis((0, y.shape[0]), "j")
    top = te.compute((x.shape[0],), lambda i: te.max(-table[i, j], axis=j), "M")
    body = lambda i: te.log(te.sum(te.exp(-table[i, j] - top[i]), axis=j)) + top[i]  # noqa: E731
    return te.compute((x.shape[0],), body, "L")


def dense(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: reduce(((x[:, None] - y[None]) ** 2).sum(-1), axis=1)


REDUCTIONS = {
    "sum": (over(te.sum), dense(jnp.sum)),
    "max": (over(te.max), dense(jnp.max)),
    "min": (over(te.min), dense(jnp.min)),
    "logsumexp": (logsumexp, dense(lambda t, axis: jax.nn.logsumexp(-t, axis=axis))),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("sizes", [(40, 60), (37, 53)])
def test_tiles_of_both_axes(name: str, sizes: tuple[int, int]) -> None:
    """A row of 53 or 60 numbers is above a budget of 30."""
    build, plain = REDUCTIONS[name]
    rng = np.random.default_rng(1)
    own = [rng.standard_normal((n, 3)).astype("float32") for n in sizes]
    fn = te.function(build, max_memory=120)
    assert {int(extent) for _, extent, _ in LOOP.findall(fn.source(*own))} >= {*sizes}
    agree(gradients(fn, own), gradients(plain, own), 5e-5)


@pytest.mark.parametrize(("reduce", "plain"), [(te.argmin, np.argmin), (te.argmax, np.argmax)])
def test_positions_in_tiles_of_both_axes(reduce: Callable[..., Any], plain: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.integers(0, 3, (n, 2)).astype("float32") for n in (37, 53))  # with ties
    fn = te.function(over(reduce), max_memory=120)
    assert {extent for _, extent, _ in LOOP.findall(fn.source(x, y))} == {"37", "53"}
    np.testing.assert_array_equal(fn(x, y), plain(((x[:, None] - y[None]) ** 2).sum(-1), axis=1))


def test_a_budget_that_a_row_does_not_meet_is_kept() -> None:
    """4,096 x 4,096 distances with 16 KiB for each row, in 4 KiB."""
    shapes = [jax.ShapeDtypeStruct((4096, 3), jnp.float32)] * 2
    both = lambda *a: jax.vjp(te.function(over(te.sum), max_memory=4096), *a)  # noqa: E731
    assert temporaries(both, shapes) < 2**18


def test_a_budget_that_nothing_meets() -> None:
    fn = te.function(over(te.sum), max_memory=2)
    with pytest.raises(
        LoweringError, match=r"one row of D takes .* cannot be computed in parts: .*give max_memory="
    ):
        fn.source(*[jax.ShapeDtypeStruct((40, 3), jnp.float32)] * 2)


def test_a_block_is_no_short_last_axis() -> None:
    """Blocks of the last axis stand in front of the axis that is whole, so that vectors are long."""

    def kernel_sum(x: Tensor, y: Tensor) -> Tensor:
        d, j = te.reduce_axis((0, x.shape[1]), "d"), te.reduce_axis((0, y.shape[0]), "j")
        far = te.compute(
            (x.shape[0], y.shape[0]), lambda i, j: te.sum(te.square(x[i, d] - y[j, d]), axis=d), "far"
        )
        return te.compute((x.shape[0],), lambda i: te.sum(te.exp(-far[i, j]), axis=j), "s")

    x = jax.ShapeDtypeStruct((30000, 2), jnp.float32)
    source = te.function(kernel_sum, max_memory=4 * 10**5).source(x, x)
    dy = source.split("def dy_tile")[1].split("return")[0]
    assert "x_transposed[0, None, :] - y_j[:, 0, None]" in dy and "y_j[None, :" not in dy
    own = [np.random.default_rng(n).standard_normal((90, 2)).astype("float32") for n in range(2)]
    found = gradients(te.function(kernel_sum, max_memory=3000), own)
    plain = lambda x, y: jnp.sum(jnp.exp(-jnp.sum((x[:, None] - y) ** 2, 2)), 1)  # noqa: E731
    agree(found, gradients(plain, own), 1e-4)


def test_rows_that_fit_one_by_one_are_cut_as_well() -> None:
    """One row in a tile has no vectors; blocks of both axes within the same budget do."""

    def kernel_sum(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
        j = te.reduce_axis((0, y.shape[0]), "j")
        return te.compute(x.shape, lambda i: te.sum(te.exp(-te.square(x[i] - y[j])) * b[j], axis=j), "s")

    fn = te.function(kernel_sum, max_memory=16384)
    x = jax.ShapeDtypeStruct((4096,), jnp.float32)
    steps = [int(size) for _, _, size in LOOP.findall(fn.source(x, x, x).split("def backward")[0])]
    assert len(steps) == 2 and min(steps) > 8
    own = [np.random.default_rng(n).standard_normal(4096).astype("float32") for n in range(3)]
    wanted = np.exp(-((own[0][:, None] - own[1]) ** 2)) @ own[2]
    np.testing.assert_allclose(fn(*own), wanted, rtol=1e-3, atol=1e-3)
    assert temporaries(fn, [x, x, x]) < 10**5


@pytest.mark.parametrize("forms", [{}, {"*": "kernel"}])
@pytest.mark.parametrize("reader", ["function", "loop"])
def test_what_a_loop_or_a_function_of_arrays_reads_beside_a_pass_exists(
    reader: str, forms: dict[str, str]
) -> None:
    """A pass makes its rows for itself; a function of arrays and a recurrence are handed all of them."""

    def both(x: Tensor, y: Tensor) -> Tensor:
        (n,), (m,) = x.shape, y.shape
        k = te.reduce_axis((0, m), "k")
        z = te.compute((n, m), lambda i, j: te.exp(-te.abs(x[i] - y[j])), "z")
        s = te.compute((n,), lambda i: te.sum(te.sin(z[i, k]), axis=k), "s")
        if reader == "function":
            last = te.extern((n,), lambda z: jnp.sum(z, 1), [z], "last")
            return te.compute((n,), lambda i: s[i] + last[i], "both")
        h = te.recurrence((m, n), lambda h, t, i: h[t - 1, i] + z[i, t], init=0.0)
        return te.compute((n,), lambda i: s[i] + h[m - 1, i], "both")

    n = 12 if forms else 3000
    x, y = np.linspace(0, 1, n, dtype="float32"), np.linspace(0, 2, n - 2, dtype="float32")
    z = np.exp(-abs(x[:, None] - y))
    np.testing.assert_allclose(te.function(both, forms=forms)(x, y), (np.sin(z) + z).sum(1), rtol=1e-4)


def test_both_results_of_a_combiner_have_the_axes_that_one_is_asked_for_over(x64: None) -> None:
    """Its elements depend on none of them: what a pass carries is as wide as what it results in."""
    k = te.reduce_axis((0, 7), "k")

    def build(x: Any) -> Any:
        h = te.compute(x.shape, lambda t, c: te.sin(x[t, c]), "h")
        best = te.compute((4,), lambda c: LARGEST((k, h[k, 2]), axis=k), "best")[1]
        return te.compute((4,), lambda c: te.sum(h[k, c], axis=k) * best[c], "y")

    x = np.random.default_rng(0).normal(size=(7, 4))
    tiled, whole = te.function(build, max_memory=64), te.function(build)
    np.testing.assert_allclose(tiled(x), np.sin(x).sum(0) * np.sin(x[:, 2]).max(), rtol=1e-12)
    found, expected = (jax.grad(lambda x, f=f: f(x).sum())(x) for f in (tiled, whole))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("budget", (40, 150))
def test_what_a_tile_shares_is_computed_behind_the_loop_that_makes_what_it_reads(
    budget: int, x64: None
) -> None:
    k = te.reduce_axis((0, 5), "k")

    def build(x: Any) -> Any:
        def element(a: Any, b: Any, c: Any) -> Any:
            return te.minimum(te.min(x[a, k, c], axis=k, where=(k >= b - 1) & (k <= b + 1)), 3.5)

        return te.compute((5, 5, 2), element, "y")

    x = np.random.default_rng(0).normal(size=(5, 5, 2))
    tiled, whole = te.function(build, max_memory=budget), te.function(build)
    found, expected = (jax.grad(lambda x, f=f: (f(x) ** 2).sum())(x) for f in (tiled, whole))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
