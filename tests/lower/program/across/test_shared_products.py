"""Sums that have a product of arrays in common, and a vector each, share it: products of a matrix and a vector."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.code.lines import sources_of
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from jaxte.tensors.tensor import Compute, Tensor
from tests.lowered import check, sources
from tests.xla_counts import Fused

H = te.placeholder((5, 6), name="H")
X = te.placeholder((5, 6), name="X")
G = te.placeholder((6,), name="G")
S = te.placeholder((5,), name="S")


def scaled(a: Tensor, v: Tensor, dim: int, name: str) -> Compute:
    return te.compute(a.shape, lambda i, j: a[i, j] * v[(i, j)[dim]], name)


def along(axis: int, a: Tensor, b: Tensor, name: str) -> Compute:
    """The sum of a product over one axis."""
    k = te.reduce_axis((0, a.shape[axis]), "k")

    def body(i: Any) -> Any:
        at = (k, i) if axis == 0 else (i, k)
        return te.sum(a[at] * b[at], k)

    return te.compute((a.shape[1 - axis],), body, name)


HG, XS = scaled(H, G, 1, "HG"), scaled(X, S, 0, "XS")
ROWS, COLUMNS = along(1, HG, X, "R"), along(0, H, XS, "C")


def test_one_product_and_two_vectors() -> None:
    assert check(ROWS, COLUMNS) == [
        'jnp.einsum("ik,k->i", H * X, G)',
        'jnp.einsum("ki,ki->i", H, X * S[:, None])',
    ]


def test_what_is_asked_for_exists() -> None:
    code = check(ROWS, COLUMNS, HG)
    assert "H * G[None, :]" in code and 'jnp.einsum("ik,k->i", H * X, G)' in code


def test_factors_outside_of_the_sum() -> None:
    k = te.reduce_axis((0, 6), "k")
    R = te.compute((5, 1), lambda i, j: te.sum(HG[i, k] * X[i, k], k) * S[i] / 3.0, "R")
    Z = te.compute(X.shape, lambda i, j: -X[i, j] * (1.5 + te.abs(S[i])), "Z")
    code = check(R, along(0, H, Z, "C"))
    assert ["H * X" in c for c in code if "jnp.einsum(" in c] == [True, False]


OTHERS = {
    "a single sum": (ROWS,),
    "without a vector": (along(1, H, X, "A"), COLUMNS),
    "other arrays": (ROWS, along(0, X, XS, "C")),
    "divisors": (ROWS, along(0, H, te.compute((5, 6), lambda i, j: X[i, j] / te.exp(S[i]), "Z"), "C")),
    "turned": (ROWS, along(0, scaled(X, S, 0, "XS"), te.compute((5, 6), lambda i, j: H[4 - i, j], "F"), "C")),
    "a function of every element": (
        along(1, te.compute((5, 6), lambda i, j: te.exp(H[i, j]) * G[j], "E"), X, "R"),
        COLUMNS,
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_others_are_left(case: str) -> None:
    assert not any("H * X" in c and "einsum" in c for c in check(*OTHERS[case]))


def test_other_platforms_sum_three_factors_in_one_kernel() -> None:
    program = lower("f", [H, X, G, S], [ROWS, COLUMNS], Policy(platform="gpu"))
    assert not any("einsum" in source for source in sources_of(program))


def test_integers_have_no_fast_product() -> None:
    h, x = te.placeholder((5, 6), "int32", "H"), te.placeholder((5, 6), "int32", "X")
    g, s = te.placeholder((6,), "int32", "G"), te.placeholder((5,), "int32", "S")
    rows, columns = along(1, scaled(h, g, 1, "HG"), x, "R"), along(0, h, scaled(x, s, 0, "XS"), "C")
    check(rows, columns)
    assert not any("einsum" in c for c in sources(rows, columns))


def plain(x: Any, g: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * g


@pytest.mark.parametrize("shape, products", [((8, 24), 1), ((6, 5, 24), 0)])
def test_gradient_of_a_normalisation(shape: tuple[int, ...], products: int) -> None:
    fn = te.function(te.ops.rms_norm)
    rng = np.random.default_rng(0)
    x, h = rng.standard_normal((2, *shape)).astype("float32")
    g = rng.standard_normal(shape[-1]).astype("float32")
    found, expected = jax.vjp(fn, x, g)[1](h), jax.vjp(plain, x, g)[1](h)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    backward = fn.source(x, g).split("def backward")[1]
    assert backward.count("H * x, ") == products
    assert backward.count("jnp.einsum(") == 2 * products  # along the rows, and of the columns


def test_few_rows_are_not_written_out() -> None:
    shapes = jax.ShapeDtypeStruct((3, 24), jnp.float32), jax.ShapeDtypeStruct((24,), jnp.float32)
    assert "dgamma = jnp.sum(H * rms_norm, axis=0)" in te.function(te.ops.rms_norm).source(*shapes)


def test_less_memory_is_met() -> None:
    x, g = jax.ShapeDtypeStruct((512, 1024), jnp.float32), jax.ShapeDtypeStruct((1024,), jnp.float32)

    def met(f: Any) -> float:
        both = jax.jit(lambda h, x, g: (f(x, g), *jax.vjp(f, x, g)[1](h)))
        analysis = Fused(both.lower(x, x, g)).cost_analysis()
        assert analysis is not None
        return float(analysis["bytes accessed"])

    assert met(te.function(te.ops.rms_norm)) < 0.9 * met(plain)
