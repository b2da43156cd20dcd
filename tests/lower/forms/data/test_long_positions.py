"""Positions of 64 bits: out of range is NaN and has no gradient, also where the lower 32 bits are an element's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

GIVEN = {
    "int64": [2**32, 2**32 + 1, -(2**32), 2**63 - 1, 2, -1, 2**31, 0, 2**40 + 3, -(2**63), 3, 2**32 - 1],
    "uint64": [
        2**32,
        2**32 + 1,
        2**64 - 1,
        2**63 - 1,
        2,
        2**63,
        2**31,
        0,
        2**40 + 3,
        2**63 + 1,
        3,
        2**32 - 1,
    ],
    "uint32": [2**31, 2**32 - 1, 2**32 - 2, 2**31 + 1, 2, 5, 2**31, 0, 4, 1, 3, 2**32 - 5],
}
N, ROWS = 12, 5


def outcome(index, values):
    """What is read at ``index`` and what is added up there, by Python's own integers."""
    read, added = np.full(N, np.nan), np.zeros(ROWS)
    for n, at in enumerate(int(i) for i in index):
        if 0 <= at < ROWS:
            read[n] = values[at]
            added[at] += n + 1
    return read, added


@pytest.mark.parametrize("dtype", GIVEN)
def test_reads_and_their_adjoints(dtype):
    with jax.enable_x64(True):
        index, values = np.array(GIVEN[dtype], dtype), np.linspace(1.0, 2.0, ROWS)
        at = te.placeholder((N,), dtype, "at")
        x = te.placeholder((ROWS,), "float64", "x")
        pair = te.placeholder((ROWS, ROWS), "float64", "pair")
        head = te.placeholder((N,), "float64", "H")
        y = te.compute((N,), lambda i: x[at[i]], "y")
        both = te.compute((N,), lambda i: pair[at[i], at[N - 1 - i]], "both")
        guarded = te.compute((N,), lambda i: te.select(at[i] < ROWS, x[at[i]], 0.0), "guarded")
        adjoints = [te.differentiate(t, [s], head)[0] for t, s in ((y, x), (both, pair), (guarded, x))]
        feeds = {at: index, x: values, pair: np.outer(values, values), head: np.arange(1.0, N + 1)}
        found = te.evaluate([y, both, guarded, *adjoints], feeds)
        meaning = te.interpret([y, both, guarded, *adjoints], feeds)
        for one, other in zip(found, meaning, strict=True):
            np.testing.assert_allclose(one, other)
        read, added = outcome(index, values)
        np.testing.assert_allclose(found[0], read)
        np.testing.assert_allclose(found[3], added)
        second = te.differentiate(adjoints[0], [head], te.placeholder((ROWS,), "float64", "G"))[0]
        feeds = {t: index if t is at else values for t in second.inputs}
        np.testing.assert_allclose(te.evaluate(second, feeds), te.interpret(second, feeds))


@pytest.mark.parametrize("form", ["scatter", "one-hot product"])
@pytest.mark.parametrize("dtype", GIVEN)
def test_every_form_of_a_sum_at_positions(dtype, form):
    with jax.enable_x64(True):
        index = np.array(GIVEN[dtype], dtype)
        at, v = te.placeholder((N,), dtype, "at"), te.placeholder((N,), "float64", "v")
        k = te.reduce_axis((0, N), "k")
        added = te.compute((ROWS,), lambda a: te.sum(v[k], axis=k, where=at[k] == a), "added")
        fn = te.function([at, v], added, forms={"*": form})
        given = jnp.arange(1.0, N + 1)
        _, expected = outcome(index, np.ones(ROWS))
        assert form in str(te.explain(fn))
        np.testing.assert_allclose(fn(index, given), expected)
        head = te.placeholder((ROWS,), "float64", "H")
        (dv,) = te.differentiate(added, [v], head)
        meaning = te.interpret(dv, {at: index, head: np.ones(ROWS)})
        np.testing.assert_allclose(jax.grad(lambda v: fn(index, v).sum())(given), meaning)


def test_short_positions_are_written_as_they_are():
    for dtype, narrowed in (("int32", False), ("uint8", False), ("int64", True), ("uint64", True)):
        at, x = te.placeholder((N,), dtype, "at"), te.placeholder((ROWS,), name="x")
        text = te.source(te.compute((N,), lambda i, at=at, x=x: x[at[i]], "y"))
        assert (".at[at]" not in text) is narrowed
