"""Gathers and scatter-adds: positions that are data, negative and too large ones among them."""

from __future__ import annotations

import numpy as np
import pytest

from jaxte.lang.expr import Reduce
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.data.recognise import recognise_scatter
from jaxte.lower.forms.data.scatters import scatter_source
from jaxte.meaning.interpret import interpret
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.inputs import Placeholder, placeholder
from jaxte.tensors.reductions import reduce_axis
from jaxte.tensors.tensor import Compute, Tensor
from tests.emitted import check, feeds, nodes, text_of
from tests.lowered import check as lowered

DROP = 'mode="drop", wrap_negative_indices=False'
FILL = 'mode="fill", fill_value=jnp.nan, wrap_negative_indices=False'

H = placeholder((6, 4), name="H")
X = placeholder((5, 4, 9), name="X")
J = placeholder((6,), "int32", "J")
K = placeholder((6,), "int32", "K")
B = placeholder((3, 6), "int32", "B")
i = reduce_axis((0, 6), "i")
k = reduce_axis((0, 4), "k")


def positions(rng: np.random.Generator, *tensors: Placeholder) -> dict[Tensor, np.ndarray]:
    """Positions in and outside of every extent in use."""
    return {t: rng.integers(-3, 11, t.shape).astype("int32") for t in tensors}


def scattered(tensor: Compute, arrays: dict[Tensor, np.ndarray]) -> str:
    assert isinstance(tensor.body, Reduce)
    spec = recognise_scatter(tensor.axes, tensor.body)
    assert not isinstance(spec, Refusal), spec.reason
    assert spec.reason.startswith("scatter: ") and spec.reason.endswith("are data")
    source = text_of(scatter_source(spec, nodes(spec)))
    check(tensor, source, spec, arrays)
    return source


def test_rows(rng):
    Y = compute((5, 4), lambda a, j: r.sum(H[i, j], i, where=J[i] == a))
    source = scattered(Y, feeds(rng, H) | positions(rng, J))
    assert source == f"jnp.zeros((5, 4), jnp.float32).at[B].add(A, {DROP})"
    spec = recognise_scatter(Y.axes, Y.body)
    assert not isinstance(spec, Refusal) and spec.reason == "scatter: the positions J[i] == a are data"


def test_negative_positions_are_dropped():
    """JAX would count them from the end."""
    Y = compute((5,), lambda a: r.sum(H[i, 0], i, where=J[i] == a))
    arrays = {H: np.ones((6, 4), np.float32), J: np.int32([-1, -5, 5, 2, 2, 7])}
    scattered(Y, arrays)
    np.testing.assert_array_equal(interpret(Y, arrays), [0, 0, 2, 0, 0])


def test_either_side_and_affine_combinations(rng):
    arrays = feeds(rng, H) | positions(rng, J)
    Y = compute((4, 5), lambda j, a: r.sum(H[i, j], i, where=a == J[i] + 1))
    assert scattered(Y, arrays) == (f"jnp.zeros((5, 4), jnp.float32).at[B].add(A, {DROP}).T")
    skewed = compute((5,), lambda a: r.sum(H[i, k], [i, k], where=a - k == J[i]))
    assert "at[B].add(A" in scattered(skewed, arrays)
    scattered(compute((9,), lambda a: r.sum(H[i, 0], i, where=a == 2 * J[i] - 1)), arrays)


def test_a_multiple_of_the_axis(rng):
    Y = compute((5,), lambda a: r.sum(H[i, 0], i, where=2 * a == J[i]))
    scattered(Y, feeds(rng, H) | positions(rng, J))


@pytest.mark.parametrize(
    ("order", "written"),
    [("abj", ".at[B, C].add(A"), ("ajb", ".at[B, C].add(A"), ("jab", ".at[B, C].add(A")],
)
def test_two_axes_at_once(rng, order: str, written: str):
    extents = {"a": 5, "b": 6, "j": 4}

    def body(*axes):
        at = dict(zip(order, axes, strict=True))
        return r.sum(H[i, at["j"]], i, where=(J[i] == at["a"]) & (K[i] == at["b"]))

    Y = compute(tuple(extents[o] for o in order), body)
    assert written in scattered(Y, feeds(rng, H) | positions(rng, J, K))


def test_positions_along_different_axes(rng):
    other = reduce_axis((0, 6), "other")
    Y = compute(
        (4, 5, 5),
        lambda j, a, b: r.sum(H[i, j] * H[other, j], [i, other], where=(J[i] == a) & (K[other] == b)),
    )
    assert ".at[B[:, None], C].add(A" in scattered(Y, feeds(rng, H) | positions(rng, J, K))


@pytest.mark.parametrize("order", ["naj", "jna", "anj", "ajn"])
def test_batched_positions(rng, order: str):
    HB = placeholder((3, 6, 4), name="HB")
    extents = {"n": 3, "a": 5, "j": 4}

    def body(*axes):
        at = dict(zip(order, axes, strict=True))
        return r.sum(HB[at["n"], i, at["j"]], i, where=B[at["n"], i] == at["a"])

    Y = compute(tuple(extents[o] for o in order), body)
    assert "jnp.arange(3)[:, None]" in scattered(Y, feeds(rng, HB) | positions(rng, B))


def test_other_conditions_and_axes_are_part_of_the_values(rng):
    Y = compute((5,), lambda a: r.sum(H[i, k], [i, k], where=(a == J[i]) & (k > 1) & (H[i, k] > 0)))
    spec = recognise_scatter(Y.axes, Y.body)
    assert not isinstance(spec, Refusal) and isinstance(spec.values.body, Reduce)
    scattered(Y, feeds(rng, H) | positions(rng, J))


def test_a_histogram(rng):
    Y = compute((5,), lambda a: r.sum(1.0, i, where=a == J[i]))
    assert scattered(Y, positions(rng, J)) == f"jnp.zeros((5,), jnp.float32).at[B].add(A, {DROP})"


def test_what_depends_on_the_scattered_axis(rng):
    W, V = placeholder((5,), name="W"), placeholder((5, 6), name="V")
    outside = compute((5, 4), lambda a, j: r.sum(W[a] * H[i, j], i, where=(J[i] == a) & (a < 3)))
    assert scattered(outside, feeds(rng, W, H) | positions(rng, J)).startswith("jnp.where(D, C * jnp.zeros")
    read_there = compute((5, 4), lambda a, j: r.sum(V[a, i] * H[i, j], i, where=J[i] == a))
    scattered(read_there, feeds(rng, V, H) | positions(rng, J))


def test_what_is_no_scatter():
    less = compute((5, 4), lambda a, j: r.sum(H[i, j], i, where=J[i] < a))
    where = compute((5, 4), lambda a, j: r.argmax(H[i, j], i, where=J[i] == a))
    affine = compute((6, 4), lambda a, j: r.sum(H[i, j], i, where=i == a))
    for tensor in (less, where, affine):
        assert isinstance(recognise_scatter(tensor.axes, tensor.body), Refusal)


GATHERS = {
    "rows": (lambda i, j, n: X[J[i], j, n], (6, 4, 9)),
    "rows of a view": (lambda i, j, n: X[J[i], j, 2 * n + 1], (6, 4, 4)),
    "middle": (lambda j, i, m: X[j, J[i], m], (5, 6, 9)),
    "with an offset": (lambda j, i, n: X[2, j, K[i] + n], (4, 6, 4)),
    "two at once": (lambda j, i: X[J[i], j, K[i]], (4, 6)),
    "crossed": (lambda i, j: X[J[i], 1, K[j]], (6, 6)),
    "diagonal": (lambda j, i: X[J[i], j, i + j], (4, 6)),
    "an axis twice": (lambda j, i: X[J[i], j, j], (4, 6)),
    "batched": (lambda i, j: X[i, j, B[i, j]], (3, 4)),
    "through another": (lambda i, j: X[J[K[i]], j, 0], (6, 4)),
    "one row": (lambda j, n: X[J[2], j, n], (4, 9)),
}  # fmt: skip


@pytest.mark.parametrize("name", GATHERS)
def test_gathers(name: str):
    body, shape = GATHERS[name]
    assert any(".at[" in source for source in lowered(compute(shape, body, "Y")))


@pytest.mark.parametrize(("dtype", "fill"), [("int32", "0"), ("bool", "False"), ("complex64", "jnp.nan")])
def test_out_of_range_by_dtype(dtype: str, fill: str):
    D = placeholder((5, 4), dtype, "D")
    sources = lowered(compute((6, 4), lambda i, j: D[J[i], j], "Y"))
    assert any(f"fill_value={fill}" in source for source in sources)


def test_positions_in_several_dimensions_are_compared_where_they_are_read():
    """XLA's own way to fill in NaN makes an array of all positions; in one dimension it costs nothing."""
    Y = compute((6, 4), lambda i, j: X[J[i], K[i] + 1, 2 * j])
    sources = lowered(Y)
    assert not any("fill" in source for source in sources)
    assert any("J.astype(jnp.uint32) < 5" in source for source in sources)
    assert any(FILL in source for source in lowered(compute((6, 4), lambda i, j: H[J[i], j])))
