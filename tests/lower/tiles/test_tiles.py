"""Reductions with a large intermediate: in tiles, with memory that is linear in the inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.errors import LoweringError
from jaxte.tensors.tensor import Tensor
from tests.random_definitions import Definition, definitions, draw_numbers
from tests.xla_counts import Fused

FORCED = {"*": "tiles"}
LOOP = re.compile(r"lax\.(?:map|scan)\((\w+), .*jnp\.arange\((?:0, )?\d+(?:, (\d+))?")


def squared_distance(x: Tensor, y: Tensor, i: Any, j: Any) -> Any:
    c = te.reduce_axis((0, x.shape[1]), "c")
    return te.sum((x[i, c] - y[j, c]) ** 2, axis=c)


def gaussian_sum(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    j = te.reduce_axis((0, y.shape[0]), "j")
    return te.compute(
        (x.shape[0],), lambda i: te.sum(te.exp(-squared_distance(x, y, i, j)) * b[j], axis=j), "K"
    )


def laplacian_sum(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    """Without a reduction inside the sum."""
    j = te.reduce_axis((0, y.shape[0]), "j")
    return te.compute((x.shape[0],), lambda i: te.sum(te.exp(-abs(x[i, 0] - y[j, 1])) * b[j], axis=j), "K")


def energy(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    """A single number: the axis of the tiles is a reduced one."""
    i, j = te.reduce_axis((0, x.shape[0]), "i"), te.reduce_axis((0, y.shape[0]), "j")
    return te.compute((), lambda: te.sum(te.exp(-squared_distance(x, y, i, j)) * b[j], axis=[i, j]), "E")


def nearest(reduce: Callable[..., Any]) -> Callable[..., Tensor]:
    def build(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
        j = te.reduce_axis((0, y.shape[0]), "j")
        return te.compute((x.shape[0],), lambda i: reduce(squared_distance(x, y, i, j) * b[j], axis=j), "N")

    return build


def log_sum_exp(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    d = te.compute((x.shape[0], y.shape[0]), lambda i, j: b[j] - squared_distance(x, y, i, j), "D")
    j = te.reduce_axis((0, y.shape[0]), "j")
    top = te.compute((x.shape[0],), lambda i: te.max(d[i, j], axis=j), "M")
    return te.compute((x.shape[0],), lambda i: te.log(te.sum(te.exp(d[i, j] - top[i]), axis=j)) + top[i], "L")


def attention(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    """Normalised weights: rows of rows of rows."""
    n, m = x.shape[0], y.shape[0]
    k = te.reduce_axis((0, m), "k")
    s = te.compute((n, m), lambda i, j: b[j] - squared_distance(x, y, i, j), "S")
    top = te.compute((n,), lambda i: te.max(s[i, k], axis=k), "M")
    e = te.compute((n, m), lambda i, j: te.exp(s[i, j] - top[i]), "P")
    z = te.compute((n,), lambda i: te.sum(e[i, k], axis=k), "Z")
    return te.compute((n, x.shape[1]), lambda i, d: te.sum(e[i, k] * y[k, d], axis=k) / z[i], "O")


def causal(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    """A condition on both axes: the position of the row is data there."""
    j = te.reduce_axis((0, y.shape[0]), "j")
    body = lambda i: te.sum(  # noqa: E731
        te.exp(-squared_distance(x, y, i, j)) * b[j] * (i + 1.0), axis=j, where=i != j
    )
    return te.compute((x.shape[0],), body, "K")


def transposed(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    """The axis of the tiles is the second one of the result."""
    j = te.reduce_axis((0, y.shape[0]), "j")
    body = lambda d, i: te.sum(te.exp(-squared_distance(x, y, i, j)) * b[j] * y[j, d], axis=j)  # noqa: E731
    return te.compute((y.shape[1], x.shape[0]), body, "K")


def soft_minimum(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    """A reduction of the user's own."""
    smooth = te.comm_reducer(
        lambda a, c: -te.log(te.exp(-a) + te.exp(-c)), lambda t: te.const(1e30, t), "softmin"
    )
    j = te.reduce_axis((0, y.shape[0]), "j")
    return te.compute((x.shape[0],), lambda i: smooth(squared_distance(x, y, i, j) + b[j], axis=j), "N")


KERNELS: dict[str, Callable[..., Tensor]] = {
    "gaussian": gaussian_sum,
    "laplacian": laplacian_sum,
    "energy": energy,
    "max": nearest(te.max),
    "min": nearest(te.min),
    "log-sum-exp": log_sum_exp,
    "attention": attention,
    "causal": causal,
    "transposed": transposed,
    "own reducer": soft_minimum,
}


def arrays(n: int, m: int, d: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype("float32") for s in ((n, d), (m, d), (m,))]


def shapes(n: int, m: int, d: int) -> list[Any]:
    return [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((n, d), (m, d), (m,))]


def interpreted(build: Callable[..., Tensor], given_arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The value and the adjoints of its sum, by loops over the definitions as they stand."""
    inputs = [te.placeholder(a.shape, "float32", name) for a, name in zip(given_arrays, "xyb", strict=True)]
    output = build(*inputs)
    head = te.placeholder(output.shape, "float32", "H")
    feeds = dict(zip(inputs, given_arrays, strict=True)) | {head: np.ones(output.shape, "float32")}
    adjoints = list(te.differentiate(output, inputs, head))
    return [np.asarray(a) for a in te.interpret([output, *adjoints], feeds)]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("sizes", [(7, 5, 2), (2, 4, 3)])
def test_values_and_adjoints_in_tiles(name: str, sizes: tuple[int, int, int]) -> None:
    own = arrays(*sizes)
    fn = te.function(KERNELS[name], forms=FORCED)
    text = fn.source(*own)
    assert len(LOOP.findall(text)) >= 2
    expected = interpreted(KERNELS[name], own)
    gradients = jax.jit(jax.grad(lambda *a: jnp.sum(fn(*a)), (0, 1, 2)))(*own)
    for found, wanted in zip((jax.jit(fn)(*own), *gradients), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(definitions(dtype="float64", stages=(2, 3)))
def test_random_definitions_in_tiles(definition: Definition) -> None:
    feeds = definition.feeds()
    inputs = definition.inputs
    fn = te.function(inputs, definition.output, forms=FORCED)
    with jax.enable_x64(True):
        found = np.asarray(fn(*(feeds[t] for t in inputs)))
    expected = np.asarray(te.interpret(definition.output, feeds))
    scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale)


LARGE = shapes(4096, 4096, 3)


def compiled(fn: Callable[..., Any], own: list[Any]) -> Any:
    return Fused(jax.jit(fn).lower(*own))


def with_gradients(fn: Callable[..., Any]) -> Callable[..., Any]:
    return jax.value_and_grad(lambda *a: jnp.sum(fn(*a)), (0, 1, 2))


def broadcast_form(x: Any, y: Any, b: Any) -> Any:
    return jnp.exp(-jnp.sum((x[:, None] - y[None]) ** 2, -1)) @ b


def matmul_form(x: Any, y: Any, b: Any) -> Any:
    distance = jnp.sum(x**2, 1)[:, None] + jnp.sum(y**2, 1) - 2 * x @ y.T
    return jnp.exp(-distance) @ b


@pytest.mark.parametrize("name", [n for n in KERNELS if n != "own reducer"])
def test_memory_is_linear_in_the_inputs(name: str) -> None:
    """No residual and no temporary comes near one matrix of 4096 x 4096 numbers, 64 MiB."""
    fn = te.function(KERNELS[name])
    explained = fn.explain(*LARGE)
    assert all(s.bytes is not None and s.bytes < 2**20 for s in explained.saved)
    assert compiled(with_gradients(fn), LARGE).memory_analysis().temp_size_in_bytes < 2**24


def test_a_quarter_of_the_memory_of_either_spelling() -> None:
    own = compiled(with_gradients(te.function(gaussian_sum)), LARGE).memory_analysis().temp_size_in_bytes
    for other in (broadcast_form, matmul_form):
        assert 4 * own < compiled(with_gradients(other), LARGE).memory_analysis().temp_size_in_bytes


def test_a_hundred_thousand_points_stay_small() -> None:
    many = shapes(100_000, 100_000, 3)
    code = compiled(with_gradients(te.function(gaussian_sum)), many)
    assert code.memory_analysis().temp_size_in_bytes < 2**25


def test_the_text_of_the_gaussian_sum() -> None:
    text = te.function(gaussian_sum).source(*LARGE)
    assert "K_0 = " not in text
    assert "K_0_i_1 = (x_i[:, 0, None] - y_transposed[0, None, :]) ** 2" in text
    assert re.search(r"K = lax\.map\(K_tile, jnp\.arange\(0, 4096, \d+\)\)\n +K = K\.reshape\(4096\)", text)
    assert len(LOOP.findall(text)) == 2  # forward; dx, dy and db together
    assert re.search(r"\(dy_sum, db\), dx = lax\.scan\(", text)
    assert "no scatter" in str(te.function(gaussian_sum).explain(*LARGE))


def test_coordinates_are_laid_out_once_before_the_tiles() -> None:
    """Rows of memory, not every third number: they are read in each tile."""
    text = te.function(gaussian_sum).source(*LARGE)
    assert text.count("y_transposed = y.T") == len(LOOP.findall(text))
    assert "y[" not in "".join(re.findall(r"def \w+_tile.*?return [^\n]*", text, re.DOTALL))


def test_one_exponential_a_tile_and_products_with_vectors() -> None:
    text = te.function(gaussian_sum).source(*LARGE).partition("def backward")[2].partition("def _fwd")[0]
    assert text.count("jnp.exp(") == 1
    assert "dK_0_i" not in text
    assert len(re.findall(r'jnp\.einsum\("[ij],ij->[ij]"', text)) == 7  # dx and dy in three components, db
    assert '"ij,ij->' not in text
    dy = text.partition('jax.named_scope("dy")')[2]
    assert "dy = -((-b * 2)[:, None] * dy_sum)" in dy  # b[j] is not in what is carried


def test_a_product_that_others_read_too_stays_as_it_is() -> None:
    """``W`` is a factor of one sum and stands alone in another reduction."""

    def build(x: Tensor, y: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        n, m = x.shape[0], y.shape[0]
        w = te.compute((n, m), lambda i, j: b[j] * te.exp(x[i, 0] * y[j, 0]), "W")
        j = te.reduce_axis((0, m), "j")
        total = te.compute((n,), lambda i: te.sum(w[i, j] * y[j, 1], axis=j), "S")
        return total, te.compute((n,), lambda i: te.max(w[i, j], axis=j), "M")

    own = arrays(41, 60, 2)
    text = te.function(build, forms=FORCED).source(*own).partition("def backward")[0]
    assert "W_i = " in text
    weights = own[2] * np.exp(own[0][:, :1] * own[1][:, 0])
    total, most = te.function(build, forms=FORCED)(*own)
    np.testing.assert_allclose(total, weights @ own[1][:, 1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(most, weights.max(1), rtol=1e-5)


def test_a_product_that_is_read_by_what_is_in_tiles_itself() -> None:
    """``V`` is as large as the product that its sum reads, and exists by blocks only as well."""

    def build(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
        n, m = x.shape[0], y.shape[0]
        w = te.compute((n, m), lambda i, j: b[j] * te.exp(x[i, 0] * y[j, 0]), "W")
        k, j = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "j")
        v = te.compute((n, m), lambda i, j: te.sum(w[i, k] * abs(y[k, 1] - y[j, 1]), axis=k), "V")
        return te.compute((n,), lambda i: te.max(v[i, j], axis=j), "M")

    own = arrays(41, 30, 2)
    fn = te.function(build, forms=FORCED)
    assert "exp_W_of_i" in fn.source(*own) and "    V = " not in fn.source(*own)
    weights = own[2] * np.exp(own[0][:, :1] * own[1][:, 0])
    wanted = (weights @ abs(own[1][:, 1][:, None] - own[1][:, 1])).max(1)
    np.testing.assert_allclose(fn(*own), wanted, rtol=1e-4, atol=1e-4)


def test_sizes_that_do_not_divide() -> None:
    own = arrays(307, 200, 3)
    fn = te.function(gaussian_sum, max_memory=8_000)
    assert all(int(n) > 1 and 307 % int(n) for _, n in LOOP.findall(fn.source(*own)))
    np.testing.assert_allclose(fn(*own), broadcast_form(*own), rtol=2e-4, atol=1e-4)
    found = jax.grad(lambda *a: jnp.sum(fn(*a)), (0, 1, 2))(*own)
    wanted = jax.grad(lambda *a: jnp.sum(broadcast_form(*a)), (0, 1, 2))(*own)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("budget", [4_000, 20_000, 100_000])
def test_the_budget_sets_the_tiles(budget: int) -> None:
    """What a tile computes of one tensor is within the budget, and more than half of it."""
    text = (
        te.function(gaussian_sum, max_memory=budget).source(*shapes(300, 250, 3)).partition("def backward")[0]
    )
    rows = int(LOOP.findall(text)[0][1])
    assert budget / 2 < 4 * 250 * rows <= budget


def test_small_intermediates_are_not_tiled() -> None:
    own = shapes(300, 250, 3)
    assert "lax.map" not in te.function(gaussian_sum).source(*own)
    assert "lax.map" in te.function(gaussian_sum, forms={"K": "tiles"}).source(*own)
    assert "lax.map" not in te.function(gaussian_sum, forms={"*": "general"}).source(*LARGE)


def test_a_row_above_the_budget_that_has_no_parts_is_an_error() -> None:
    def build(x: Tensor, y: Tensor) -> Tensor:
        d = te.compute((300, 250), lambda i, j: te.exp(x[i] * y[j]), "D")
        j = te.reduce_axis((0, 249), "j")
        return te.compute((300,), lambda i: te.sum(d[i, j] * d[i, j + 1], axis=j), "Y")

    own = [jax.ShapeDtypeStruct((n,), jnp.float32) for n in (300, 250)]
    with pytest.raises(LoweringError, match=r"Y: one row of D takes 1,000 bytes.*max_memory=1000 or more"):
        te.function(build, max_memory=500).source(*own)
    te.function(build, max_memory=1000).source(*own)


def test_a_tensor_above_the_budget_without_tiles_is_an_error() -> None:
    def build(x: Tensor) -> Tensor:
        d = te.compute((200, 200), lambda i, j: x[i] * x[j], "D")
        k = te.reduce_axis((0, 100), "k")
        return te.compute((100,), lambda i: te.prod(d[i + k, k + 1], axis=k), "Y")

    with pytest.raises(LoweringError, match=r"D takes 160,000 bytes, more than max_memory=10,000"):
        te.function(build, max_memory=10_000).source(jax.ShapeDtypeStruct((200,), jnp.float32))


def test_positions_that_are_data_stay_gathers() -> None:
    def build(x: Tensor, near: Tensor) -> Tensor:
        k = te.reduce_axis((0, near.shape[1]), "k")
        d = te.compute(near.shape, lambda i, n: abs(x[near[i, n]] - x[i]), "D")
        return te.compute((near.shape[0],), lambda i: te.sum(te.sqrt(d[i, k] + 1.0), axis=k), "Y")

    rng = np.random.default_rng(0)
    x, near = rng.standard_normal(9).astype("float32"), rng.integers(0, 9, (9, 4)).astype("int32")
    fn = te.function(build, forms=FORCED)
    assert "lax.map" in fn.source(x, near)
    np.testing.assert_allclose(fn(x, near), np.sqrt(np.abs(x[near] - x[:, None]) + 1).sum(1), rtol=1e-5)
    a = te.placeholder((9,), name="x"), te.placeholder((9, 4), "int32", "near")
    np.testing.assert_allclose(
        fn(x, near), te.interpret(build(*a), dict(zip(a, (x, near), strict=True))), rtol=1e-5
    )


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(list(KERNELS)),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(2, 3),
    st.integers(0, 99),
)
def test_budgets_on_random_sizes(name: str, n: int, m: int, d: int, seed: int) -> None:
    """The smallest budget that a row needs, on any sizes."""
    own = arrays(n, m, d, seed)
    fn = te.function(KERNELS[name], max_memory=4 * max(n, m) * d)
    expected = interpreted(KERNELS[name], own)[0]
    np.testing.assert_allclose(fn(*own), expected, rtol=2e-4, atol=2e-4)


def test_numbers_are_drawn() -> None:
    """The tests above see numbers, not zeros."""
    assert np.abs(draw_numbers(np.random.default_rng(0), te.placeholder((3,), name="x"))).min() > 0


@pytest.mark.parametrize(("reduce", "expected"), [(te.argmin, np.argmin), (te.argmax, np.argmax)])
def test_the_nearest_point_in_tiles(
    reduce: Callable[..., Any], expected: Callable[..., Any], rng: np.random.Generator
) -> None:
    def position(x: Tensor, y: Tensor) -> Tensor:
        j = te.reduce_axis((0, y.shape[0]), "j")
        return te.compute((x.shape[0],), lambda i: reduce(squared_distance(x, y, i, j), axis=j), "N")

    x, y = (rng.standard_normal((n, 3)).astype("float32") for n in (200, 300))
    fn = te.function(position, max_memory=40_000)
    assert "tiles" in fn.explain(x, y).forms["N"]
    distances = ((x[:, None] - y[None]) ** 2).sum(-1)
    np.testing.assert_array_equal(fn(x, y), expected(distances, axis=1))
