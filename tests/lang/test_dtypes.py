"""Promotion and canonical names of dtypes, against JAX."""

import itertools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jaxte as te
from jaxte.lang import dtypes
from jaxte.lang.errors import DtypeError

STRONG = [(name, False) for name in dtypes.DTYPES]
WEAK = [("int32", True), ("float32", True), ("complex64", True)]
WEAK_VALUES = {"int32": 1, "float32": 1.0, "complex64": 1j}


def jax_kind(dtype: str, weak: bool) -> jax.Array:
    return jnp.asarray(WEAK_VALUES[dtype]) if weak else jnp.ones((), dtype)


def category(dtype: str) -> str:
    """Weak types are compared without their width, which is that of x64."""
    return "complex" if dtypes.is_complex(dtype) else "float" if dtypes.is_float(dtype) else "int"


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("a", STRONG + WEAK, ids=lambda k: k[0] + "*" * k[1])
def test_promotion_is_that_of_jax(a: dtypes.Kind) -> None:
    for b in STRONG + WEAK:
        expected = jax.eval_shape(jnp.add, jax_kind(*a), jax_kind(*b))
        dtype, weak = dtypes.promote([a, b])
        assert weak == expected.weak_type, (a, b)
        if weak:
            assert category(dtype) == category(str(expected.dtype)), (a, b)
        else:
            assert dtype == str(expected.dtype), (a, b)
        if not a[1] and not b[1]:
            assert dtype == str(jnp.promote_types(a[0], b[0])) or weak, (a, b)


def test_promotion_does_not_depend_on_the_order() -> None:
    for kinds in itertools.combinations(STRONG + WEAK, 3):
        assert len({dtypes.promote(order) for order in itertools.permutations(kinds)}) == 1, kinds


@pytest.mark.usefixtures("x64")
def test_functions_of_integers_are_floats_as_in_jax() -> None:
    for dtype in dtypes.DTYPES:
        assert dtypes.to_inexact((dtype, False)) == (str(jnp.exp(jnp.ones(2, dtype)).dtype), False)
    assert dtypes.to_inexact(("int32", True)) == ("float32", True)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("reduction", [te.mean, te.variance, te.std, te.norm, te.logsumexp])
def test_means_of_integers_are_floats_as_functions_of_them_are(reduction: Callable[..., te.Expr]) -> None:
    k = te.reduce_axis((0, 2), "k")
    for dtype in dtypes.DTYPES:
        if not dtypes.is_complex(dtype):
            x = te.placeholder((2,), dtype, name="x")
            found = te.compute((), lambda x=x: reduction(x[k], axis=k))
            assert found.dtype == dtypes.to_inexact((dtype, False))[0]


@pytest.mark.parametrize(
    "op", [operator.lshift, operator.rshift, operator.and_, operator.xor, operator.mod, operator.pow]
)
def test_truths_are_combined_as_in_jax(op: Callable[[Any, Any], Any]) -> None:
    a, b = np.array([True, False, True]), np.array([True, True, False])
    if op is operator.mod:
        b[:] = True
    A, B = te.placeholder((3,), "bool", name="A"), te.placeholder((3,), "bool", name="B")
    y = te.compute((3,), lambda i: op(A[i], B[i]), "y")
    expected = op(jnp.asarray(a), jnp.asarray(b))
    for found in (te.interpret(y, {A: a, B: b}), te.evaluate(y, {A: a, B: b})):
        assert found.dtype == expected.dtype == y.dtype
        np.testing.assert_array_equal(found, expected)


def test_sums_widen_as_in_jax() -> None:
    for dtype in dtypes.DTYPES:
        if dtype[-2:] in ("64", "28") and dtype != "complex64":
            assert dtypes.sum_dtype(dtype) == dtype  # these exist under x64 only
        else:
            assert dtypes.sum_dtype(dtype) == str(jnp.sum(jnp.ones(2, dtype)).dtype)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("float32", "float32"),
        (np.float16, "float16"),
        (jnp.bfloat16, "bfloat16"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype("int8"), "int8"),
        (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
        (bool, "bool"),
        (np.bool_, "bool"),
        (int, "int32"),
        (float, "float32"),
        (complex, "complex64"),
    ],
    ids=str,
)
def test_names(given: object, name: str) -> None:
    assert dtypes.dtype_name(given) == name


@pytest.mark.parametrize("given", ["float8", "i*", "object", None, 3, np.dtype("datetime64[s]")], ids=str)
def test_other_dtypes_are_refused(given: object) -> None:
    with pytest.raises(DtypeError, match=r"unknown dtype .*the dtypes of jaxte are bool, "):
        dtypes.dtype_name(given)


def test_scalars() -> None:
    assert [dtypes.scalar_kind(v) for v in (True, 1, 1.0, 1j)] == [("bool", False), *WEAK]
    with pytest.raises(DtypeError, match=r"index a tensor, or use te\.const"):
        dtypes.scalar_kind("one")


@pytest.mark.parametrize("dtype", dtypes.DTYPES)
def test_widths_are_those_of_jax(dtype: str) -> None:
    assert dtypes.width(dtype) == jnp.dtype(dtype).itemsize
