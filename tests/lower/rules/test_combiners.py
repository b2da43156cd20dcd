"""Reductions by pairs: choices between elements are operations, so that a reduction whose results nobody uses can be removed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def first_largest(dtype: str) -> te.Function:
    """The largest element of each row, and its position, by a reducer of pairs, in which NaN wins."""

    def combine(a: tuple[te.Expr, ...], b: tuple[te.Expr, ...]) -> tuple[te.Expr, ...]:
        above = te.logical_or(a[0] >= b[0], te.isnan(a[0]))
        position = te.select(above, a[1], te.select(b[0] > -3.0, b[1], -7))
        return te.select(above, a[0], te.select(b[0] > 100.0, 100.0, b[0])), position

    largest = te.comm_reducer(combine, lambda d, p: (te.const(-1e4, d), te.const(0, p)), "largest")
    k = te.reduce_axis((0, 5), "k")
    x = te.placeholder((4, 5), dtype, "x")
    pair = te.compute((4,), lambda i: largest((x[i, k], te.cast(k, "int32")), axis=k), "y")
    return te.function([x], list(pair))


def total(x: te.Tensor, combine: Any, identity: Any) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[0]), "k")
    return te.compute((), lambda: te.comm_reducer(combine, identity, "total")(x[k], axis=k), "y")


@pytest.mark.parametrize(
    "identity", [0, 0.0, te.const(0.0, "float64"), lambda d: 0.0, lambda d: te.const(0, "int32")]
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_an_identity_is_a_number_of_any_dtype(identity: Any, dtype: str) -> None:
    x = te.placeholder((3,), dtype, "x")
    found = te.evaluate(total(x, lambda a, b: a + b, identity), {x: np.arange(3, dtype=dtype)})
    assert (found.dtype, found.item()) == (np.dtype(dtype), 3)


def test_a_reduction_is_of_its_arguments_alone() -> None:
    x, n = te.placeholder((3,), name="x"), te.placeholder((3,), "int32", "n")
    for combine, identity, said in (
        (lambda a, b: a + b + x[0], 0, r"the combiner of total has `x\[0\]`; it is made of its arguments"),
        (lambda a, b: a + b, lambda d: x[0], r"the identity of total has `x\[0\]`"),
    ):
        with pytest.raises(te.DefinitionError, match=said):
            total(x, combine, identity)
    with pytest.raises(te.DtypeError, match=r"0\.5 is no number of int32; cast what is reduced"):
        total(n, lambda a, b: a + b, 0.5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_reduction_of_pairs_that_is_not_used_is_removed(dtype: str, rng: np.random.Generator) -> None:
    fn = first_largest(dtype)
    x = jnp.asarray(rng.standard_normal((4, 5)), dtype)
    text = fn.source(x)
    reduction = next(line for line in text.splitlines() if "lax.reduce(" in line)
    assert "lax.select(" in reduction
    # asserted before anything is compiled: XLA would end the process
    assert "jnp.where" not in reduction.split("lambda")[1]
    unused = jax.jit(lambda x: (x + 1, fn(x)[1] * 0))(x)
    np.testing.assert_array_equal(unused[1], np.zeros(4, "int32"))
    value, position = fn(x)
    np.testing.assert_array_equal(value, np.max(x, axis=1))
    np.testing.assert_array_equal(position, np.argmax(x, axis=1))
