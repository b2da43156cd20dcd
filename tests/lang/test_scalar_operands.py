"""Numbers of NumPy and JAX beside elements and Tensors: they meet as they do in JAX, on either side."""

import operator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.tensors.structure import topological_order

SCALARS = [np.float32(2), np.int32(2), np.int8(2), np.bool_(True), jnp.float32(2), jnp.int8(2), 2, True]
ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITWISE = [operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool"])
@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS + BITWISE, ids=lambda op: op.__name__)
def test_scalars_of_numpy_and_jax_meet_as_in_jax_on_either_side(op: Any, dtype: str) -> None:
    values = np.array([1, 2, 1, 3] if dtype != "bool" else [0, 1, 1, 0], dtype)
    T = te.placeholder((4,), dtype, "T")
    for scalar in SCALARS:
        if dtype == "bool" and op not in BITWISE + COMPARISONS:
            continue
        if op is operator.pow and dtype == "int8":
            continue  # JAX takes a number as an exponent of its own, which no dtype is promoted with
        if op in BITWISE and "float" in str(jnp.result_type(scalar, values)):
            continue
        for swapped in (False, True):
            sides = (lambda t: (scalar, t)) if swapped else (lambda t: (t, scalar))  # noqa: B023
            expected = op(*sides(jnp.asarray(values)))
            element = te.compute((4,), lambda i: op(*sides(T[i])), "y")  # noqa: B023
            whole = op(*sides(T))
            for tensor in (element, whole):
                assert tensor.dtype == expected.dtype.name, (scalar, type(scalar), swapped)
                feeds = dict.fromkeys(tensor.inputs, values)  # none where logic with True is folded
                np.testing.assert_array_equal(te.interpret(tensor, feeds), expected)


def test_comparisons_with_other_objects_are_of_identity() -> None:
    T = te.placeholder((4,), name="T")
    for other in (None, "T", (1, 2), object()):
        assert (T == other) is False and (T[0] == other) is False and (T != other) is True
    assert np.shape(T) == (4,) and np.ndim(T) == 1


@pytest.mark.usefixtures("x64")
def test_integers_beside_numbers_of_python_have_the_dtype_that_is_declared_with_64_bits_too() -> None:
    P, I = te.placeholder((5,), "bool", "P"), te.placeholder((5,), "int8", "I")  # noqa: E741
    feeds = {P: np.array([1, 0, 1, 0, 1], bool), I: np.int8([1, 2, 3, 4, 5])}
    k = te.reduce_axis((0, 5), "k")
    bodies = [
        lambda i: te.maximum(i * 2 - 3, 2.0),
        lambda i: P[i] + 2.0 - te.cast(i, "int32"),
        lambda i: i + 0.5,
        lambda i: I[i] * 2.0,
        lambda i: te.select(P[i], i, 2.0),
        lambda i: i**0.5,
        lambda i: i * 1j,
        lambda i: te.sum(I[k] * 0.5, axis=k, where=k <= i),
    ]
    for body in bodies:
        Y = te.compute((5,), body, "Y")
        used = {t: a for t, a in feeds.items() if among(t, topological_order([Y]))}
        found, expected = te.evaluate(Y, used), te.interpret(Y, used)
        assert found.dtype == expected.dtype == Y.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_comparisons_of_numbers_are_decided() -> None:
    """XLA's compiler dies of some programs in which a reduction is behind one; numbers that a dtype may round together stay."""
    zero = te.cast(te.const(0.0), "float64")
    assert (zero > 0.1137) is te.const(False) and (te.const(2.5) >= zero) is te.const(True)
    assert repr(te.const(0.1, "float32") < 0.1001) == "0.1 < 0.1001"
    k, x = te.reduce_axis((0, 2), "k"), te.placeholder((1,), name="x")
    y = te.compute((), lambda: te.max(te.select(k < 1, x[k], 0.0), k, where=zero > 0.1137))
    assert te.interpret(y, {x: np.ones(1, "float32")}) == -np.inf
