"""Factors and results at positions that wrap: laid out once, so that what is left are products of matrices; values beside JAX's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from tests.agreement import check_both_passes
from tests.xla_counts import Fused


def turning_taps(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 4), "k")
    return te.compute(
        x.shape, lambda b, i: te.sum(w[i % 4, (k + i) % 4] * x[b, 4 * (i // 4) + k], axis=k), "y"
    )


def plain_turning_taps(x: jax.Array, w: jax.Array) -> jax.Array:
    turned = jnp.stack([jnp.roll(w[p], -p) for p in range(4)])
    return jnp.einsum("pk,bnk->bnp", turned, x.reshape(x.shape[0], -1, 4)).reshape(x.shape)


def rotations(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A layer over the rotations by quarters, whose weights know the difference of two of them."""
    s, c = te.reduce_axis((0, 4), "s"), te.reduce_axis((0, x.shape[2]), "c")
    return te.compute(
        (x.shape[0], 4, w.shape[2]),
        lambda n, r, o: te.sum(x[n, s, c] * w[(r - s) % 4, c, o], axis=(s, c)),
        "y",
    )


def plain_rotations(x: jax.Array, w: jax.Array) -> jax.Array:
    r = np.arange(4)
    return jnp.einsum("nsc,rsco->nro", x, w[(r[:, None] - r) % 4])


def hours(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Loads that depend on the hours of the day before, each hour by weights that are told by the difference on the clock."""
    k = te.reduce_axis((0, 8), "k")
    return te.compute((x.shape[0], 8), lambda d, h: te.sum(w[(h - 2 * k) % 8] * x[d, k], axis=k), "y")


def plain_hours(x: jax.Array, w: jax.Array) -> jax.Array:
    h = np.arange(8)
    return x @ w[(h[:, None] - 2 * h) % 8].T


CASES: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...]]] = {
    "turning taps": (turning_taps, plain_turning_taps, ((16, 256), (4, 4))),
    "rotations": (rotations, plain_rotations, ((96, 4, 8), (4, 8, 8))),
    "hours": (hours, plain_hours, ((512, 8), (8,))),
}


@pytest.mark.parametrize("name", CASES)
def test_products_of_matrices_beside_jax(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes = CASES[name]
    arrays = [rng.normal(size=s).astype("float32") for s in shapes]
    expected, pull = jax.vjp(plain, *arrays)
    head = rng.normal(size=expected.shape).astype("float32")
    both = Fused(jax.jit(with_gradients(te.function(build), (0, 1))).lower([head], *arrays))
    found = jax.tree.leaves(both([head], *arrays))
    for own, other in zip(found, [expected, *pull(head)], strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-4)
    text = both.as_text()
    assert "gather(" not in text and "scatter(" not in text
    # no copy of x for each tap: what is made beside the results is no larger than x
    assert both.memory_analysis().temp_size_in_bytes <= 1.5 * arrays[0].nbytes


def test_a_long_circle_is_not_laid_out() -> None:
    x, w = te.placeholder((64, 512), name="x"), te.placeholder((512,), name="w")
    k = te.reduce_axis((0, 512), "k")
    y = te.compute((64, 512), lambda b, i: te.sum(w[(i - k) % 512] * x[b, k], axis=k), "y")
    assert "y_w" not in te.function([x, w], y).source()


def test_a_factor_of_the_element_beside_it_is_not_laid_out() -> None:
    """Weights of the days of a week, of windows of a week: what each window multiplies is an element of one sequence."""
    x, w = te.placeholder((50, 12, 32), name="x"), te.placeholder((7,), name="w")
    c = te.reduce_axis((0, 7), "c")
    y = te.compute((50, 12, 26), lambda b, d, t: te.sum(x[b, d, t + c] * w[(t + c) % 7], axis=c), "y")
    assert "y_w" not in te.function([x, w], y).source()


# --- kernels that are read at positions that are reflected or held


def symmetric(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A filter of which one half is the mirror image of the other."""
    k, c = te.reduce_axis((0, 2 * w.shape[0] - 1), "k"), te.reduce_axis((0, w.shape[1]), "c")
    at = lambda b, t, o: x[b, t + k, c] * w[te.abs(k - (w.shape[0] - 1)), c, o]  # noqa: E731
    shape = (x.shape[0], x.shape[1] - 2 * w.shape[0] + 2, w.shape[2])
    return te.compute(shape, lambda *i: te.sum(at(*i), axis=[k, c]), "y")


def flat_topped(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A filter whose last weight is held."""
    k, c = te.reduce_axis((0, 2 * w.shape[0]), "k"), te.reduce_axis((0, w.shape[1]), "c")
    at = lambda b, t, o: x[b, t + k, c] * w[te.minimum(k, w.shape[0] - 1), c, o]  # noqa: E731
    shape = (x.shape[0], x.shape[1] - 2 * w.shape[0] + 1, w.shape[2])
    return te.compute(shape, lambda *i: te.sum(at(*i), axis=[k, c]), "y")


def turned_over(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A filter with two halves, whose features are in reverse."""
    k, c = te.reduce_axis((0, 2 * w.shape[0] - 1), "k"), te.reduce_axis((0, w.shape[1]), "c")
    at = lambda b, t, o: x[b, t + k, c] * w[te.abs(k - (w.shape[0] - 1)), w.shape[1] - 1 - c, o]  # noqa: E731
    shape = (x.shape[0], x.shape[1] - 2 * w.shape[0] + 2, w.shape[2])
    return te.compute(shape, lambda *i: te.sum(at(*i), axis=[k, c]), "y")


@pytest.mark.parametrize("build", [symmetric, flat_topped, turned_over])
def test_a_kernel_of_reflected_or_held_weights_is_laid_out_once(build) -> None:  # type: ignore[no-untyped-def]
    x, w = te.placeholder((2, 40, 4), name="x"), te.placeholder((3, 4, 5), name="w")
    source = te.source(te.function([x, w], build(x, w)))
    assert source.count("conv_general_dilated") == 3 and "gather" not in source and ".at[" not in source
    check_both_passes(build(x, w), np.random.default_rng(0))


def test_of_a_table_of_kernels_of_which_one_is_read_no_copy_is_made() -> None:
    x, w, k = (
        te.placeholder((2, 400), name="x"),
        te.placeholder((60, 3), name="w"),
        te.reduce_axis((0, 5), "k"),
    )
    y = te.compute((2, 396), lambda b, t: te.sum(x[b, t + k] * w[7, te.abs(k - 2)], axis=k), "y")
    assert "w_extended" not in te.source(te.function([x, w], y))
    check_both_passes(y, np.random.default_rng(0))
