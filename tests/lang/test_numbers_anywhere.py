"""Numbers of Python, NumPy and JAX wherever a number may stand: the same values from the interpreter and from the code."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order


class Choice(enum.IntEnum):
    TWO = 2


INTEGERS: dict[str, Any] = {
    "int": 2, "IntEnum": Choice.TWO, "np.int64": np.int64(2), "np.int32": np.int32(2), "np.int8": np.int8(2),
    "np.uint8": np.uint8(2), "np.uint64": np.uint64(2), "np.array": np.array(2), "jnp.int32": jnp.int32(2),
    "jnp.asarray": jnp.asarray(2),
}  # fmt: skip
FLOATS: dict[str, Any] = {
    "float": 2.0, "np.float64": np.sqrt(4.0), "np.float32": np.float32(2), "np.float16": np.float16(2),
    "bfloat16": ml_dtypes.bfloat16(2), "0-d array": np.array(2.0), "jnp.float32": jnp.float32(2), "jnp weak": jnp.asarray(2.0),
}  # fmt: skip
X = te.placeholder((8,), name="x")
K = te.reduce_axis((0, 4), "k")

VALUES: dict[str, Callable[[Any], te.Tensor]] = {
    "times": lambda v: te.compute((8,), lambda i: X[i] * v),
    "times from the left": lambda v: te.compute((8,), lambda i: v * X[i]),
    "maximum": lambda v: te.compute((8,), lambda i: te.maximum(X[i], v)),
    "power": lambda v: te.compute((8,), lambda i: X[i] ** v),
    "select": lambda v: te.compute((8,), lambda i: te.select(X[i] > v, v, X[i])),
    "const": lambda v: te.compute((8,), lambda i: te.const(v) * X[i]),
    "cast": lambda v: te.compute((8,), lambda i: te.cast(v, "float32") * X[i]),
    "the body": lambda v: te.compute((2,), lambda i: v),
    "whole tensors": lambda v: X * v,
    "choose": lambda v: te.compute((2,), lambda i: te.choose(i, (v, 3.0))),
    "divmod": lambda v: te.compute((8,), lambda i: sum(divmod(X[i], v))),
}
POSITIONS: dict[str, Callable[[Any], te.Tensor]] = {
    "offset": lambda v: te.compute((3,), lambda i: X[i + v]),
    "index": lambda v: te.compute((3,), lambda i: X[v]),
    "stride": lambda v: te.compute((3,), lambda i: X[v * i]),
    "quotient": lambda v: te.compute((8,), lambda i: X[i // v]),
    "remainder": lambda v: te.compute((8,), lambda i: X[i % v]),
    "shift": lambda v: te.compute((2,), lambda i: X[i << v]),
    "bound of an index": lambda v: te.compute((8,), lambda i: X[te.minimum(i, v)]),
    "condition": lambda v: te.compute((8,), lambda i: te.select(i < v, X[i], 0.0)),
    "where=": lambda v: te.compute((), lambda: te.sum(X[K], axis=K, where=K < v)),
    "choices": lambda v: te.compute((2,), lambda i: X[te.choose(i, (v, 1))]),
}
SIZES: dict[str, Callable[[Any], te.Tensor]] = {
    "shape": lambda v: te.compute((v,), lambda i: X[i]),
    "range": lambda v: (lambda r: te.compute((2,), lambda i: te.sum(X[i + r], axis=r)))(
        te.reduce_axis((0, v), "r")
    ),
}


def agree(tensor: te.Tensor) -> None:
    feeds = {
        t: np.arange(1, 9, dtype="float32") for t in topological_order([tensor]) if isinstance(t, Placeholder)
    }
    expected, found = te.interpret(tensor, feeds), te.evaluate(tensor, feeds)
    assert "np." not in te.source(tensor).replace("jnp.", ""), te.source(tensor)
    if expected.dtype not in (np.uint64, np.int64):  # which JAX narrows while 64-bit types are off
        assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found, "float64"), np.asarray(expected, "float64"), rtol=1e-2)


@pytest.mark.parametrize("where", VALUES)
@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_values(where: str, kind: str) -> None:
    agree(VALUES[where]({**INTEGERS, **FLOATS}[kind]))


@pytest.mark.parametrize("where", [*POSITIONS, *SIZES])
@pytest.mark.parametrize("kind", INTEGERS)
def test_positions_and_sizes(where: str, kind: str) -> None:
    value = INTEGERS[kind]
    if where in SIZES and isinstance(value, jax.Array):
        with pytest.raises(te.ShapeError, match="static"):
            SIZES[where](value)
    else:
        agree({**POSITIONS, **SIZES}[where](value))


@pytest.mark.parametrize("where", ["offset", "index", "stride", "quotient"])
@pytest.mark.parametrize("kind", FLOATS)
def test_positions_are_integers(where: str, kind: str) -> None:
    with pytest.raises(te.IndexExpressionError, match=r"an index is an integer"):
        POSITIONS[where](FLOATS[kind])


def test_the_64_bit_types_of_numpy_count_as_numbers_of_python() -> None:
    half = te.placeholder((8,), "float16", name="h")
    assert te.compute((8,), lambda i: np.sqrt(2.0) * half[i]).dtype == "float16"
    assert te.compute((8,), lambda i: half[i] * np.float32(2)).dtype == "float32"
    assert "1.4142135623730951" in te.source(te.compute((8,), lambda i: np.sqrt(2.0) * X[i]))
    scaled = te.function(lambda x, s: te.compute(x.shape, lambda i: x[i] * s[()]))
    np.testing.assert_allclose(scaled(jnp.ones(3), np.sqrt(2.0)), np.full(3, np.sqrt(2)), rtol=1e-6)


def test_types_that_no_array_of_jax_has() -> None:
    with pytest.raises(te.DtypeError, match=r"float128|longdouble"):
        te.compute((8,), lambda i: X[i] * np.longdouble(2))


@pytest.mark.parametrize("max_memory", [None, 4000])
def test_index_arrays_of_numpy_in_closures(max_memory: int | None, rng: np.random.Generator) -> None:
    """A loss that closes over NumPy's arrays, in the loops that tiles are too."""
    index = rng.integers(0, 20, 60).astype("int32")
    second = rng.integers(0, 60, (60,))

    def build(x: te.Tensor, i: te.Tensor, j: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, 60), "k")
        return te.compute((20,), lambda a: te.sum(te.exp(x[i[j[k]]] * x[a]), axis=k, where=i[k] != a))

    f = te.function(build, max_memory=max_memory)

    def reference(x: jax.Array) -> jax.Array:
        terms = jnp.exp(x[index[second]][None, :] * x[:, None])
        return jnp.where(index[None, :] != np.arange(20)[:, None], terms, 0).sum(1)

    x = jnp.asarray(rng.standard_normal(20), "float32")
    plain = jax.grad(lambda x: jnp.sum(reference(x) ** 2))(x)
    for fn in (f, f.custom_vjp_for(x, index, second)):
        arrays = (index, second.astype("int32"))
        loss = jax.grad(lambda x, fn=fn, arrays=arrays: jnp.sum(fn(x, *arrays) ** 2))
        np.testing.assert_allclose(loss(x), plain, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(jax.jit(loss)(x), plain, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("place", [lambda i: (3 * i) % 5, lambda i: te.minimum(2 * i, 4), lambda i: i])
def test_index_arrays_of_numpy_that_are_read_at_arrays(place: Any) -> None:
    """NumPy's array refuses the positions, which are traced."""
    index = np.int32([2, 0, 4, 4, 1])
    f = te.function(lambda x, t: te.compute((3, 2), lambda i, j: te.tanh(x[t[place(i)], j])))
    x = jnp.arange(10.0).reshape(5, 2) / 10
    rows = index[
        [int(te.interpret(te.compute((3,), lambda i: te.cast(place(i), "int32")), {})[n]) for n in range(3)]
    ]
    expected = jax.grad(lambda x: jnp.tanh(x[rows]).sum())(x)
    for fn in (f, f.custom_vjp_for(x, index)):
        for transform in (jax.jit, lambda g: g, lambda g: lambda x: jax.vmap(g)(x[None])[0]):
            found = transform(jax.grad(lambda x, fn=fn: fn(x, index).sum()))(x)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
