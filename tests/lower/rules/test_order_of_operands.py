"""Which operand of a product comes first: XLA copies the other one where what is summed stands in the wrong place of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Call, Reduce, call
from jaxte.tensors.tensor import Compute
from tests.xla_counts import Fused

N, M = te.var("N"), te.var("M")
X = te.placeholder((5, 6, 7, 9), name="X")
X_BYTES = 4 * 5 * 6 * 7 * 9


def over(*extents: Any) -> list[Any]:
    return [te.reduce_axis((0, e), name) for e, name in zip(extents, "pqr", strict=False)]


def leading() -> te.Tensor:
    r, (p, q) = te.placeholder((5, 6), name="r"), over(5, 6)
    return te.compute((7, 9), lambda a, b: te.sum(X[p, q, a, b] * r[p, q], axis=[p, q]), "Y")


def trailing() -> te.Tensor:
    r, (p, q) = te.placeholder((7, 9), name="r"), over(7, 9)
    return te.compute((5, 6), lambda a, b: te.sum(X[a, b, p, q] * r[p, q], axis=[p, q]), "Y")


def between() -> te.Tensor:
    r, (p, q) = te.placeholder((6, 7), name="r"), over(6, 7)
    return te.compute((5, 9), lambda a, b: te.sum(r[p, q] * X[a, p, q, b], axis=[p, q]), "Y")


def three() -> te.Tensor:
    r, (p, q, s) = te.placeholder((5, 6, 7), name="r"), over(5, 6, 7)
    return te.compute((9,), lambda b: te.sum(X[p, q, s, b] * r[p, q, s], axis=[p, q, s]), "Y")


def sizes() -> te.Tensor:
    x, r, (p, q) = te.placeholder((N, M, 9), name="x"), te.placeholder((N, M), name="r"), over(N, M)
    return te.compute((9,), lambda a: te.sum(x[p, q, a] * r[p, q], axis=[p, q]), "Y")


def apart() -> te.Tensor:
    r, (p, q) = te.placeholder((5, 7), name="r"), over(5, 7)
    return te.compute((6, 9), lambda a, b: te.sum(X[p, a, q, b] * r[p, q], axis=[p, q]), "Y")


def in_another_order() -> te.Tensor:
    r, (p, q) = te.placeholder((6, 5), name="r"), over(5, 6)
    return te.compute((7, 9), lambda a, b: te.sum(X[p, q, a, b] * r[q, p], axis=[p, q]), "Y")


def matrix() -> te.Tensor:
    h, (p, q) = te.placeholder((5, 6, 4), name="h"), over(5, 6)
    return te.compute((7, 9, 4), lambda a, b, c: te.sum(X[p, q, a, b] * h[p, q, c], axis=[p, q]), "Y")


def batch() -> te.Tensor:
    r, (p, q) = te.placeholder((5, 6, 7), name="r"), over(6, 7)
    return te.compute((5, 9), lambda a, b: te.sum(X[a, p, q, b] * r[a, p, q], axis=[p, q]), "Y")


def ahead() -> te.Tensor:
    """The sums are in front, of a vector for each example."""
    r, p = te.placeholder((5, 6), name="r"), te.reduce_axis((0, 6), "p")
    return te.compute((5, 7, 9), lambda a, b, c: te.sum(X[a, p, b, c] * r[a, p], axis=p), "Y")


def behind() -> te.Tensor:
    """A matrix for each element of a dimension behind, summed over its first dimension."""
    x, r, p = (
        te.placeholder((5, 6, 9), name="x"),
        te.placeholder((5, 9), name="r"),
        te.reduce_axis((0, 5), "p"),
    )
    return te.compute((6, 9), lambda a, b: te.sum(r[p, b] * x[p, a, b], axis=p), "Y")


def behind_last() -> te.Tensor:
    x, r, p = (
        te.placeholder((5, 6, 9), name="x"),
        te.placeholder((6, 9), name="r"),
        te.reduce_axis((0, 6), "p"),
    )
    return te.compute((5, 9), lambda a, b: te.sum(x[a, p, b] * r[p, b], axis=p), "Y")


def _of_groups(mine: tuple[int, ...], order: str, head: tuple[str, ...]) -> Callable[[], te.Tensor]:
    """A matrix for each group, with what is summed in front, beside an array with its axes in ``order``; groups stand behind what is kept of that."""

    def build() -> te.Tensor:
        sizes = {"g": 12, "h": 3, "p": 8, "a": 16, "b": 10}
        groups = [c for c in head if c in "gh"]
        w, x = te.placeholder(mine, name="w"), te.placeholder([sizes[c] for c in order], name="x")
        p = te.reduce_axis((0, 8), "p")

        def element(*at: Any) -> Any:
            own = dict(zip(head, at, strict=True)) | {"p": p}
            return te.sum(
                x[tuple(own[c] for c in order)] * w[(*(own[c] for c in groups), p, own["a"])], axis=p
            )

        return te.compute([sizes[c] for c in head], element, "Y")

    return build


blocks = _of_groups((12, 8, 16), "bgp", ("b", "g", "a"))
blocks_of_two = _of_groups((12, 3, 8, 16), "bghp", ("b", "g", "h", "a"))
blocks_between = _of_groups((12, 8, 16), "gbp", ("b", "g", "a"))

# letters of the operands, in the order in which they are written
WRITTEN = {
    leading: "pq,pqab->ab",
    trailing: "abpq,pq->ab",
    sizes: "pq,pqa->a",
    three: "pqr,pqrb->b",
    in_another_order: "qp,pqab->ab",
    batch: "apq,apqb->ab",
    ahead: "ap,apbc->abc",
    behind: "pab,pb->ab",
    behind_last: "pb,apb->ab",
}
GROUPS = (blocks, blocks_of_two, blocks_between)
OTHERS = (between, apart, matrix, *GROUPS)


@pytest.mark.parametrize("build", [*WRITTEN, *OTHERS])
def test_values(build: Callable[[], te.Tensor]) -> None:
    y = build()
    rng = np.random.default_rng(0)
    known = {N: 4, M: 5}
    feeds = {t: rng.standard_normal([known.get(e, e) for e in t.shape]).astype("float32") for t in y.inputs}
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("build", WRITTEN)
def test_what_is_summed_stands_where_a_product_of_matrices_has_it(build: Callable[[], te.Tensor]) -> None:
    assert f'jnp.einsum("{WRITTEN[build]}", ' in te.source(build())


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("build", [leading, trailing, three, batch, ahead])
def test_nothing_is_copied(build: Callable[[], te.Tensor], swapped: bool) -> None:
    """However the factors are written, and with the gradient of the vector, whose sums are over the other dimensions."""
    y = build()
    r = next(t for t in y.inputs if t is not X)
    body = y.body
    assert isinstance(body, Reduce) and isinstance(body.exprs[0], Call)
    if swapped:
        product = call(body.exprs[0].op, *body.exprs[0].args[::-1])
        y = Compute("Y", y.axes, Reduce(body.reducer, (product,), body.axes, body.where, body.position))
    (dr,) = te.differentiate(y, [r], head=te.placeholder(y.shape, name="h"))
    structs = {t: jax.ShapeDtypeStruct(t.shape, jnp.float32) for t in (X, r, *dr.inputs)}
    for result in (y, dr):
        run = te.function(list(result.inputs), result)
        compiled = Fused(jax.jit(run).lower(*(structs[t] for t in result.inputs)))
        assert compiled.memory_analysis().temp_size_in_bytes < X_BYTES / 3


@pytest.mark.parametrize("build", GROUPS)
def test_many_small_matrices_are_multiplied_by_the_routine_for_them(build: Callable[[], te.Tensor]) -> None:
    """XLA gives it products whose first operand has what is summed behind; the product is in no order of the result, and turned around before it is copied into that."""
    y = build()
    structs = [jax.ShapeDtypeStruct(t.shape, jnp.float32) for t in y.inputs]
    hlo = jax.jit(te.function(list(y.inputs), y)).lower(*structs).compile().as_text()
    assert "kind=kCustom" in hlo and " dot(" not in hlo[hlo.index("ENTRY") :]


def test_one_copy_serves_sums_over_both_sides() -> None:
    """Of matrices for each of 32 features, which stand behind: XLA moves the features in front, once for both products."""

    def both(f: te.Tensor, x: te.Tensor, z: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
        i, j = te.reduce_axis((0, 48), "i"), te.reduce_axis((0, 40), "j")
        rows = te.compute((48, 32), lambda i, c: te.sum(x[j, c] * f[i, j, c], axis=j), "rows")
        return rows, te.compute((40, 32), lambda j, c: te.sum(z[i, c] * f[i, j, c], axis=i), "columns")

    structs = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((48, 40, 32), (40, 32), (48, 32))]
    compiled = Fused(jax.jit(te.function(both)).lower(*structs))
    assert compiled.memory_analysis().temp_size_in_bytes < 1.5 * 4 * 48 * 40 * 32
