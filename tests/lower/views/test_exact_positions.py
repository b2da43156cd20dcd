"""Positions as values are exact, whatever the dtype: each is rounded once, when it is made."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jaxte as te

BODIES = {
    "shifted": lambda i: i + 1,
    "spread": lambda i: 3 * i + 7,
    "backwards": lambda i: 2999 - i,
    "divided": lambda i: i // 3 + 1,
    "around": lambda i: abs(i - 1500),
    "far": lambda i: i + 2**24 + 1,
}
DTYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float32": np.float32,
    "complex64": np.complex64,
}


def as_number(array):
    return np.asarray(array).astype("complex128")


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_are_rounded_once(dtype):
    tensors = [te.compute((3000,), lambda i, f=f: te.cast(f(i), dtype), name) for name, f in BODIES.items()]
    with np.errstate(over="ignore"):
        expected = [f(np.arange(3000)).astype(DTYPES[dtype]) for f in BODIES.values()]
    for found, wanted, meaning in zip(
        te.evaluate(tensors, {}), expected, te.interpret(tensors, {}), strict=True
    ):
        np.testing.assert_array_equal(as_number(found), as_number(wanted))
        np.testing.assert_array_equal(as_number(meaning), as_number(wanted))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_pieces_sums_and_sizes_known_later_have_exact_positions(dtype):
    n, k = te.var("n"), te.reduce_axis((0, 4), "k")
    x = te.placeholder((n,), dtype, "x")
    tensors = [
        te.compute((n,), lambda i: te.cast(i + 1, dtype) + 0 * x[i], "later"),
        te.compute((n,), lambda i: te.select((i > 2) & (i < n - 3), te.cast(i, dtype) * x[i], 0.0), "within"),
        te.compute((n,), lambda i: te.max(te.cast(i + k + 1, dtype), axis=k), "largest"),
        te.compute((n,), lambda i: x[i] * (i + 1), "weighted"),
    ]
    feeds = {x: jnp.ones(3001, dtype)}
    for found, meaning in zip(te.evaluate(tensors, feeds), te.interpret(tensors, feeds), strict=True):
        np.testing.assert_array_equal(as_number(found), as_number(meaning))
    at = np.arange(3001)
    np.testing.assert_array_equal(
        as_number(te.evaluate(tensors[0], feeds)), as_number((at + 1).astype(DTYPES[dtype]))
    )


def test_what_every_step_holds_is_made_in_the_dtype_at_once():
    """2**24 is the last integer before float32 has gaps, 2**8 that of bfloat16."""
    few = te.compute((200,), lambda i: te.cast(i + 1, "bfloat16"), "y")
    many = te.compute((300,), lambda i: te.cast(i + 1, "bfloat16"), "y")
    single = te.compute((300,), lambda i: te.cast(i + 1, "float32"), "y")
    assert "jnp.arange(1, 201, dtype=jnp.bfloat16)" in te.source(few)
    assert "jnp.arange(1, 301).astype(jnp.bfloat16)" in te.source(many)
    assert "jnp.arange(1, 301, dtype=jnp.float32)" in te.source(single)


def test_positions_beyond_32_bits_do_not_wrap():
    y = te.compute((3,), lambda i: te.cast(i * 10**9 + 3 * 10**9, "float32"), "y")
    np.testing.assert_array_equal(te.evaluate(y, {}), np.float32([3e9, 4e9, 5e9]))
