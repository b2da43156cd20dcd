"""Products of three arrays and more, two at a time, with what the adjoints have in common computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.planning.orders import factor_pairs
from jaxte.tensors.tensor import Compute, Tensor
from tests.agreement import interpreted

Builder = Callable[..., Compute]
RULE = "factors in pairs"


def algebra(x: Tensor, y: Tensor, t: Tensor) -> Compute:
    b, c = (te.reduce_axis((0, e), n) for n, e in zip("bc", t.shape[1:], strict=True))
    return te.compute(
        (x.shape[0], t.shape[0]), lambda n, a: te.sum(t[a, b, c] * x[n, b] * y[n, c], axis=(b, c)), "y"
    )


def bilinear(x: Tensor, w: Tensor, z: Tensor) -> Compute:
    i, j = (te.reduce_axis((0, e), n) for n, e in zip("ij", w.shape, strict=True))
    return te.compute((x.shape[0],), lambda b: te.sum(x[b, i] * w[i, j] * z[b, j], axis=(i, j)), "y")


def chain(a: Tensor, b: Tensor, c: Tensor) -> Compute:
    """With functions of elements in place of elements, and a vector that one of the factors has the axes of."""
    j, k = te.reduce_axis((0, a.shape[1]), "j"), te.reduce_axis((0, c.shape[0]), "k")
    return te.compute(
        (a.shape[0], c.shape[1]),
        lambda i, m: te.sum(te.tanh(a[i, j]) * b[j, k] * c[k, m] * (b[j, 0] + 1.0), axis=(j, k)),
        "y",
    )


def ranks(a: Tensor, b: Tensor, c: Tensor) -> Compute:
    """An array of three axes by its factors."""
    r = te.reduce_axis((0, a.shape[1]), "r")
    return te.compute(
        (a.shape[0], b.shape[0], c.shape[0]), lambda i, j, k: te.sum(a[i, r] * b[j, r] * c[k, r], axis=r), "y"
    )


CASES: dict[str, tuple[Builder, Callable[..., jax.Array], Sequence[tuple[int, ...]], float]] = {
    "algebra": (
        algebra,
        lambda x, y, t: jnp.einsum("abc,nb,nc->na", t, x, y),
        ((64, 8), (64, 8), (8, 8, 8)),
        1.2,
    ),
    "bilinear": (
        bilinear,
        lambda x, w, z: jnp.einsum("bi,ij,bj->b", x, w, z),
        ((64, 32), (32, 24), (64, 24)),
        1.0,  # XLA finds the product of two of them in two sums, and has it once
    ),
    "chain": (
        chain,
        lambda a, b, c: (jnp.tanh(a) * (b[:, 0] + 1)) @ b @ c,
        ((48, 16), (16, 24), (24, 40)),
        1.1,
    ),
    "ranks": (
        ranks,
        lambda a, b, c: jnp.einsum("ir,jr,kr->ijk", a, b, c),
        ((24, 16), (16, 16), (20, 16)),
        1.15,
    ),
}


def counted(build: Builder, shapes: Sequence[tuple[int, ...]], without: tuple[str, ...]) -> float:
    """The operations of the definition and of all adjoints."""
    arrays = [np.ones(s, "float32") for s in shapes]
    function = te.function(build, without=without)
    head = np.ones(jax.eval_shape(function, *arrays).shape, "float32")

    def both(head: jax.Array, *arrays: jax.Array) -> tuple[jax.Array, ...]:
        y, pull = jax.vjp(function, *arrays)
        return (y, *pull(head))

    cost = jax.jit(both).lower(head, *arrays).compile().cost_analysis()
    return float(cost["flops"])


@pytest.mark.parametrize("name", CASES)
def test_values_gradients_and_what_they_have_in_common(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes, gain = CASES[name]
    arrays = [rng.normal(size=s).astype("float32") for s in shapes]
    value, pull = jax.vjp(te.function(build), *arrays)
    expected, plain_pull = jax.vjp(plain, *arrays)
    head = rng.normal(size=expected.shape).astype("float32")
    for a, b in zip((value, *pull(head)), (expected, *plain_pull(head)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4 * float(np.abs(b).max()))
    assert counted(build, shapes, (RULE,)) >= gain * counted(build, shapes, ())


@pytest.mark.parametrize("name", CASES)
def test_values_and_adjoints_are_those_of_the_interpreter(
    name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones, which are taken in pairs where nothing is said of sizes."""
    build = CASES[name][0]
    small = ((3, 4), (3, 2), (5, 4, 2)) if name == "algebra" else ((4, 4),) * 3
    inputs = [te.placeholder(s, name=n) for n, s in zip("abc", small, strict=True)]
    plain = build(*inputs)
    head = te.placeholder(plain.shape, name="head")
    feeds = {t: rng.normal(size=t.shape).astype("float32") for t in (*inputs, head)}
    expected = [interpreted(t, feeds) for t in (plain, *te.differentiate(plain, inputs, head))]
    for name_, value in (("_LEAST", 0), ("_SHORTEST", 0), ("_WORTH", 0.0), ("_MOST_TIMES", 2**20)):
        monkeypatch.setattr(factor_pairs, name_, value)
    (y,) = planned([build(*inputs)])
    assert isinstance(y, Compute) and RULE in y.planned_by
    for t, b in zip((y, *te.differentiate(y, inputs, head)), expected, strict=True):
        np.testing.assert_allclose(interpreted(t, feeds), b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, w, z: te.compute((64,), lambda b: te.sum(x[b, (k := te.reduce_axis((0, 32), "k"))] * z[b, k] * w[0, k], axis=k), "y"),
        lambda x, w, z: te.compute((60,), lambda b: te.sum(x[b + (k := te.reduce_axis((0, 4), "k")), (j := te.reduce_axis((0, 32), "j"))] * w[j, k] * z[b, k], axis=(k, j)), "y"),
        lambda x, w, z: te.compute((64,), lambda b: te.sum(x[b, (i := te.reduce_axis((0, 32), "i"))] * w[i, (j := te.reduce_axis((0, 24), "j"))] * z[b, j], axis=(i, j), where=j <= i), "y"),
    ],
    ids=["vectors", "window", "condition"],
)  # fmt: skip
def test_other_products_stay_one_sum(build: Builder) -> None:
    inputs = [te.placeholder(s, name=n) for n, s in zip("xwz", ((64, 32), (32, 32), (64, 32)), strict=True)]
    (y,) = planned([build(*inputs)])
    assert RULE not in y.planned_by  # type: ignore[attr-defined]


def test_a_short_product_that_several_adjoints_read_exists() -> None:
    """What flows back to the pair is a sum of eight, which is written out: each adjoint would compute it again."""
    inputs = [
        te.placeholder(s, name=n) for n, s in zip("xyt", ((4096, 8), (4096, 8), (8, 8, 8)), strict=True)
    ]
    (y,) = planned([algebra(*inputs)])
    text = te.source([y, *te.differentiate(y, inputs, te.placeholder(y.shape, name="head"))])  # type: ignore[arg-type]
    assert text.count("_apart(dy_pair") == 1
