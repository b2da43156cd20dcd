"""Eliminations, whose steps change what lies behind a corner, and what is asked of each block of equations alone; sweeps in colours."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
from jax import export

import jaxte as te
from npbench.kernels import lu
from tests.loops.agreement import assert_nodes_agree
from tests.loops.random_eliminations import arguments, random_eliminations

pytestmark = pytest.mark.usefixtures("x64")


def gauss(A, b):
    n = len(b)
    for k in range(n - 1):
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            for j in range(k, n):
                A[i, j] -= f * A[k, j]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= A[i, j] * x[j]
        x[i] = s / A[i, i]
    return A, b, x


def factors(A):
    """A factorisation that looks to the right."""
    n = A.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]


def reflections(A):
    m, n = A.shape
    for k in range(n):
        s = 0.0
        for i in range(k, m):
            s += A[i, k] * A[i, k]
        v = np.zeros(m)
        v[k] = A[k, k] + np.sqrt(s)
        for i in range(k + 1, m):
            v[i] = A[i, k]
        vv = 0.0
        for i in range(k, m):
            vv += v[i] * v[i]
        for j in range(k, n):
            dot = 0.0
            for i in range(k, m):
                dot += v[i] * A[i, j]
            for i in range(k, m):
                A[i, j] -= 2.0 * dot / vv * v[i]


def red_and_black(u, f):
    n = u.shape[0]
    for _t in range(3):
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1, n - 1):
                    if (i + j) % 2 == colour:
                        u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])


def _definite(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, n)) + 4.0 * np.eye(n)


CASES = {
    "gauss": (gauss, [_definite(5), np.arange(1.0, 6.0)]),
    "factors": (factors, [_definite(5)]),
    "reflections": (reflections, [_definite(5)[:, :4]]),
    "red_and_black": (red_and_black, [_definite(6), _definite(6)[::-1]]),
}


@pytest.mark.parametrize("name", CASES)
def test_eliminations_agree_with_numpy_and_with_differences(name: str) -> None:
    assert_nodes_agree(*CASES[name])


@pytest.mark.parametrize("fn", [gauss, factors])
def test_an_elimination_keeps_lines_and_no_matrix_of_each_step(fn) -> None:
    args = [np.float32(_definite(9)), np.ones(9, "float32")][: 1 + (fn is gauss)]
    kept = te.explain(te.loops(fn), *args).saved
    assert kept and all(len(own.tensor.shape) < 3 for own in kept)


def test_a_factorisation_by_rows_that_adds_up_more_than_it_would_write_is_steps_of_a_matrix() -> None:
    """Its sums have fewer elements, but more terms: along diagonals, 119 steps kept 3.7 MB."""
    source = te.source(te.loops(lu), np.eye(60, dtype="float32"))
    steps = re.findall(r"lax\.scan\(.* jnp\.arange\((\d+), dtype=jnp\.int32\)(?:, reverse=True)?\)\n", source)
    assert steps == ["59", "59"]


def test_a_solve_behind_an_elimination_stays_a_sum() -> None:
    """Each block of equations is asked by itself whether its sums are better additions: those of the elimination are, those of the solve are not."""
    source = te.source(te.loops(gauss), np.eye(9, dtype="float32"), np.ones(9, "float32"))
    assert "x_so_far" in source and "turn[" not in source


def test_a_number_that_inner_loops_read_has_none_of_their_axes() -> None:
    """Though they run from the counter on: it has a value where one of them does."""
    source = te.source(te.loops(reflections), np.float32(_definite(9)[:, :7]))
    forward = source.split("def backward")[0]
    assert "vv[k] = " in forward and "dot[k, j] = " in forward


def test_colours_are_statements() -> None:
    """As one statement, an element would exist for each colour of each time step in the state of a step."""
    source = te.source(te.loops(red_and_black), np.ones((8, 8), "float32"), np.ones((8, 8), "float32"))
    assert "u_last" in source and ".at[" not in source


@pytest.mark.parametrize("seed", [3, 8, 16, 25, 294408])
def test_nodes_of_random_eliminations_agree_with_numpy_and_with_differences(seed: int) -> None:
    assert_nodes_agree(random_eliminations(seed), arguments(seed))


def test_an_elimination_of_any_size() -> None:
    """With a symbol for it, exported once."""
    own, size = te.loops(factors), export.symbolic_shape("m", constraints=["m >= 3"])[0]

    def gradient(A):
        return jax.grad(lambda A: (own(A) ** 2).sum())(A)

    made = export.export(jax.jit(gradient))(jax.ShapeDtypeStruct((size, size), "float64"))
    A = _definite(4)
    np.testing.assert_allclose(made.call(A), gradient(A), rtol=1e-12)


def test_a_loop_over_rows_of_a_symbolic_number_asks_for_nothing_beside_it() -> None:
    """The size stands alone as the extent, and in no condition."""

    def norms(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            total = 0.0
            for j in range(4):
                total += x[i, j] ** 2
            out[i] = np.sqrt(total)
        return out

    own, size = te.loops(norms), export.symbolic_shape("m")[0]
    step = jax.jit(jax.grad(lambda x: (own(x) ** 3).sum()))
    called = export.export(step)(jax.ShapeDtypeStruct((size, 4), "float64")).call
    for rows in (3, 5):
        x = np.random.default_rng(rows).normal(size=(rows, 4))
        expected = 3 * np.linalg.norm(x, axis=1)[:, None] * x
        np.testing.assert_allclose(called(x), expected, 1e-12)


def shortest(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def widest(w):
    n = w.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                w[i, j] = max(w[i, j], min(w[i, k], w[k, j]))
    return w


def upwards(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n - 1, -1, -1):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def beside(d, a):
    """The column is that before the row."""
    n = d.shape[0]
    for k in range(1, n):
        for i in range(n):
            for j in range(n):
                d[i, j] = d[i, j] + a * np.tanh(d[i, k - 1] * d[k, j])
    return d


def pivoted(d):
    """The element where the row and the column meet is read in itself; its reads are at ``i`` where that is ``k``."""
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] += np.sin(d[k, j] / d[k, k])
    return d


def jordan(d):
    """An elimination of all rows, in place, by what is there by then."""
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] -= 0.1 * d[i, k] * d[k, j] / d[k, k]
    return d


STEPS = [(shortest, ()), (widest, ()), (upwards, ()), (beside, (0.3,)), (pivoted, ()), (jordan, ())]


@pytest.mark.parametrize("fn, more", STEPS)
def test_a_step_in_place_that_reads_its_own_row_and_column_is_one_step(x64, rng, fn, more) -> None:
    """Each iteration was one before, and kept the matrix: 216,000 steps of 60 x 60, which were refused."""
    assert_nodes_agree(fn, [rng.uniform(1, 9, size=(5, 5)), *more])
    text = te.source(te.loops(fn), np.ones((60, 60)), *more)
    steps = 60 - (fn is beside)
    counted = re.findall(r"lax\.scan\(.* jnp\.arange\((\d+), dtype=jnp\.int32\)(?:, reverse=True)?\)\n", text)
    assert text.count("lax.scan(") == len(counted) and set(counted) == {str(steps)}
    assert "scatter" not in text and ".add(" not in text


@pytest.mark.parametrize("fn", [shortest, upwards])
def test_a_step_in_place_of_a_symbolic_size(x64, rng, fn) -> None:
    own = te.loops(fn)
    shape = export.symbolic_shape("n, n")
    gradient = jax.jit(jax.grad(lambda d: (own(d) ** 2).sum()))
    exported = export.export(gradient)(jax.ShapeDtypeStruct(shape, "float64"))
    for size in (4, 6):
        d = rng.uniform(1, 9, size=(size, size))
        np.testing.assert_allclose(exported.call(d), gradient(d), rtol=1e-12)
