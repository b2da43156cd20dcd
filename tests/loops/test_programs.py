"""Statements one by one under ``te.loops``: choices by data, data as indices, calls, several names, products of blocks, what was emitted."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.structure import topological_order
from tests.loops.agreement import assert_agrees, assert_nodes_agree, run_python

pytestmark = pytest.mark.usefixtures("x64")


def both_branches(x):
    y = np.empty(len(x))
    for i in range(len(x)):
        if i > 0 and x[i] > 0:
            t = x[i - 1] * 2
        else:
            t = 1 - x[i]
        y[i] = t * t
    return y


def data_before_positions(x):
    n = x.shape[0]
    y = np.zeros(n)
    for i in range(n):
        if x[i] > 0 and i > 0 and i < x.shape[0] - 1:
            y[i] = x[i - 1] * x[i + 1]
        else:
            y[i] = 2 * x[i]
    return y


def replaced_in_one_branch(x):
    s = 0.5
    for k in range(3):
        s -= x[k]
        if k == 1:
            s = max(s, 0.7)
        else:
            s = 2 * s
    return s


def fibonacci(x):
    a, b = x[0], x[1]
    for _t in range(4):
        a, b = b, np.sin(a) + b
    return a, b


def scattered(x, k):
    y = np.zeros(3)
    for i in range(len(x)):
        y[k[i]] += x[i] ** 2
    for i in range(len(x)):
        y[k[i]] -= x[i]
    return y


@te.loops
def norm(row):
    s = 0.0
    for i in range(len(row)):
        s += row[i] * row[i]
    return np.sqrt(s)


def normalised(A):
    B = np.zeros(A.shape)
    for i in range(A.shape[0]):
        n = norm(A[i, :].copy())
        B[i, :] = A[i, :] / n
    return B


normalised.__globals__["norm"] = norm


def products(A, x):
    y = A @ x
    y[1:] = y[:-1] + 1.0
    return y, np.sum(A, axis=0), A.T @ A


def rnn(x, W):
    h = np.zeros(W.shape[0])
    for t in range(x.shape[0]):
        h = np.tanh(x[t, :] + W @ h)
    return h


def renamed(x):
    a = x * 2
    b = a
    a = a[::-1] + b
    z = np.zeros(len(x))
    w = z
    z = np.zeros(len(x))
    z[0] = a[0]
    return a, b, w


def _numbers(*shapes):
    rng = np.random.default_rng(3)
    return [rng.normal(size=s) for s in shapes]


CASES = {
    "both branches": (both_branches, _numbers((5,))),
    "data before positions": (data_before_positions, _numbers((7,))),
    "replaced in one branch": (replaced_in_one_branch, _numbers((3,))),
    "several names": (fibonacci, _numbers((2,))),
    "data as indices": (scattered, [*_numbers((4,)), np.array([0, 2, 2, 1], "int32")]),
    "products of blocks": (products, _numbers((3, 3), (3,))),
    "two names of one array": (renamed, _numbers((4,))),
    "rnn": (rnn, _numbers((4, 3), (3, 3))),
}


@pytest.mark.parametrize("name", CASES)
def test_statements_agree_with_numpy_and_with_differences(name: str) -> None:
    fn, args = CASES[name]
    assert_agrees(fn, args)


def test_a_function_that_another_calls_is_read_with_it() -> None:
    (A,) = _numbers((2, 3))
    expected = A / np.sqrt((A * A).sum(1, keepdims=True))
    np.testing.assert_allclose(te.loops(normalised)(A), expected, 1e-12)


def test_what_only_accumulates_is_a_product_and_no_loop() -> None:
    @te.loops
    def matmul(A, B):
        C = np.zeros((A.shape[0], B.shape[1]))
        for i in range(A.shape[0]):
            for j in range(B.shape[1]):
                for k in range(A.shape[1]):
                    C[i, j] += A[i, k] * B[k, j]
        return C

    A, B = _numbers((2, 3), (3, 4))
    text = te.source(matmul, A, B)
    assert "einsum" in text and "scan" not in text
    np.testing.assert_allclose(jax.vmap(matmul)(A[None], B[None])[0], A @ B, 1e-12)
    assert matmul.python(A, B).shape == (2, 4)


def test_what_is_made_on_the_way_is_not_stacked() -> None:
    """Of two arrays that each step writes anew, what the loop ends with is all that exists behind it."""

    @te.loops
    def relaxed(A, B):
        for _t in range(9):
            for i in range(1, len(A) - 1):
                B[i] = A[i - 1] + A[i + 1]
            for i in range(1, len(A) - 1):
                A[i] = B[i - 1] - B[i + 1]

    A, B = _numbers((6,), (6,))
    forward = te.source(relaxed, A, B).split("def backward")[0]
    assert forward.count("lax.scan") == 1 and "), _ = lax.scan" in forward
    for found, wanted in zip(relaxed(A, B), run_python(relaxed.python, (A, B)), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-12)


def test_what_reads_all_earlier_iterations_keeps_one_copy_of_them() -> None:
    @te.loops
    def substitution(L, b):
        x = np.zeros(len(b))
        for i in range(len(b)):
            s = b[i]
            for j in range(i):
                s -= L[i, j] * x[j]
            x[i] = s / L[i, i]
        return x

    L, b = (te.placeholder(s, name=n) for s, n in (((30, 30), "L"), ((30,), "b")))
    states = {
        t.name: t.shape for t in topological_order([substitution.builder(L, b)]) if isinstance(t, Recurrent)
    }
    assert states == {"x": (30,)}


def test_the_mirrored_half_of_a_matrix_is_no_recurrence() -> None:
    def mirrored(x):
        n = x.shape[1]
        out = np.zeros((n, n))
        for i in range(n - 1):
            out[i, i] = 1.0
            for j in range(i + 1, n):
                for k in range(x.shape[0]):
                    out[i, j] += x[k, i] * x[k, j]
                out[j, i] = out[i, j]
        out[n - 1, n - 1] = 1.0
        return out

    x = te.placeholder((30, 12), "float64", name="x")
    built = te.loops(mirrored).builder(x)
    assert "recurrence" not in str(te.explain([built]))
    assert te.cost(te.gradient(built, [x], head=te.placeholder((12, 12), "float64"))).memory < 12 * 12 * 12
    assert_nodes_agree(mirrored, [np.random.default_rng(0).normal(size=(5, 4))])


def powers_of_two(x):
    """Sums over a tree of pairs: bounds and positions are powers of a counter."""
    y = x.copy()
    for s in range(3):
        for p in range(2 ** (2 - s)):
            y[2**s * (2 * p + 1) - 1 + 2**s] += 0.5 * y[(p << (s + 1)) + 2**s - 1]
    return y


def complex_numbers(x):
    y = np.zeros(len(x), dtype=complex)
    for i in range(len(x)):
        turn = np.exp(-0.1j * i / 3)
        y[i] = x[i] * turn + complex(i)
    return y


@pytest.mark.parametrize("fn", [powers_of_two, complex_numbers])
def test_powers_of_counters_and_complex_numbers_in_full_precision(fn) -> None:
    assert_nodes_agree(fn, [np.random.default_rng(0).normal(size=8)], tolerance=1e-14)


def test_a_long_loop_whose_counter_is_an_exponent_is_refused() -> None:
    def doubling(x):
        for s in range(70):
            x[2**s] = 1.0

    with pytest.raises(te.DefinitionError, match="loops over at most 64 known numbers"):
        te.loops(doubling)(np.ones(4))


def scaled_and_added_up(C, A, B):
    """A variable that is multiplied once and added to often."""
    for i in range(len(A)):
        for j in range(i + 1):
            C[i, j] *= 1.5
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += A[i, k] * B[j, k]


def test_of_two_operations_the_one_that_is_repeated_is_a_sum() -> None:
    shapes = (5, 5), (5, 4), (5, 4)
    given = [te.placeholder(s, "float64", name=n) for s, n in zip(shapes, "CAB", strict=True)]
    assert "recurrence" not in str(te.explain([te.loops(scaled_and_added_up).builder(*given)]))
    assert_nodes_agree(scaled_and_added_up, _numbers(*shapes))


def columns(x):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        last = 0.0
        for j in range(x.shape[1]):
            last = np.sin(last) + x[i, j]
            y[i, j] = last
    return y


def test_a_loop_over_columns_reads_rows_of_what_is_turned_before_it() -> None:
    x = np.random.default_rng(0).normal(size=(40, 30))
    source = te.source(te.loops(columns), x)
    backward = source.split("def backward")[1]
    assert "H_rows = H.T" in backward.split("def dlast_step")[0] and "axis=1" not in backward
    assert_nodes_agree(columns, [x[:3, :4]])


def normalised_steps(x, d, mu):
    """A filter of three numbers that adapts: each step reads a window of the signal."""
    w = np.zeros(3)
    e = np.zeros(len(x))
    for t in range(2, len(x)):
        u = x[t - 2 : t + 1]
        e[t] = d[t] - w @ u
        w = w + mu[0] * e[t] * u / (0.1 + u @ u)
    return e, w


def test_a_window_that_moves_with_the_loop_is_one_slice() -> None:
    args = [*_numbers((9,), (9,)), np.array([0.7])]
    forward = te.source(te.loops(normalised_steps), *args).split("def forward_with")[0]
    assert "lax.dynamic_slice_in_dim(x, t, 3)" in forward and ".at[" not in forward
    assert_nodes_agree(normalised_steps, args)


def diffused(u):
    n = len(u)
    for _t in range(3):
        new = np.zeros(n)
        for i in range(n):
            around = u[(i + 1) % n] + u[(i - 1) % n] + u[(i + 2) % n] + u[(i - 2) % n]
            new[i] = u[i] + 0.1 * (around - 4 * u[i]) * u[i]
        u = new
    return u


def doubled(u):
    for _t in range(3):
        u = np.sin(2.0 * u)
    return u


def test_steps_that_read_neighbours_of_what_the_last_one_made_are_not_written_out() -> None:
    """XLA would compute each element again for each of its readers, and those of these."""
    (u,) = _numbers((8,))
    assert "unroll" not in te.source(te.loops(diffused), u) and "unroll=3" in te.source(te.loops(doubled), u)
    assert_nodes_agree(diffused, [u])


def sylvester(A, d):
    """A triangular equation ``A X + X A = A``, element by element: each reads those below it and those to the left."""
    n = len(d)
    X = np.zeros((n, n))
    for j in range(n):
        for i in range(n - 1, -1, -1):
            s = A[i, j]
            for k in range(i + 1, n):
                s -= A[i, k] * X[k, j]
            for k in range(j):
                s -= X[i, k] * A[k, j]
            X[i, j] = s / (5.0 + d[i] + d[j])
    return X


def test_what_reads_all_below_and_all_to_the_left_goes_along_diagonals() -> None:
    """And keeps no copy of the matrix for each of its elements."""
    A, d = _numbers((5, 5), (5,))
    states = [
        t.shape
        for t in topological_order(
            [te.loops(sylvester).builder(te.placeholder((5, 5)), te.placeholder((5,)))]
        )
        if isinstance(t, Recurrent)
    ]
    assert states == [(9, 5)]
    assert_nodes_agree(sylvester, [A, np.abs(d)])


def moving(x, v):
    """Sums over all steps so far, of forces that depend on them."""
    for _t in range(20):
        force = np.zeros(len(x))
        for i in range(len(x)):
            for j in range(len(x)):
                force[i] += np.sin(x[j] - x[i])
        v += 0.1 * force
        x += 0.1 * v


def test_what_is_added_to_in_each_step_is_handed_on_and_not_added_up_again() -> None:
    shapes = (6,), (6,)
    source = te.source(te.loops(moving), *(np.ones(s) for s in shapes))
    assert (
        "so_far" not in source and source.count("lax.scan(") == 3
    )  # forward, the same with residuals, backward
    assert_nodes_agree(moving, [np.random.default_rng(0).normal(size=s) for s in shapes])


def test_a_local_number_has_no_axis_of_the_loops_that_read_it() -> None:
    def normed(x):
        for i in range(x.shape[0]):
            total = 0.0
            for j in range(x.shape[1]):
                total += x[i, j] * x[i, j]
            for j in range(x.shape[1]):
                x[i, j] /= np.sqrt(total)

    built = te.loops(normed).builder(te.placeholder((5, 7), "float64", name="x"))
    shapes = {t.name: t.shape for t in topological_order([built])}
    assert shapes["total"] == (5,)


def added_behind_the_read(x, A):
    """What the next iteration reads was added to by a statement that follows the read in the text."""
    for k in range(1, 3):
        x[k] = A[k, k]
        if k == 2:
            A[k, 0] = x[3 - k]
        else:
            x[k] += A[0, k]
    return x, A


def first_of_all(x, A):
    """A statement in a loop that hands on its variables reads the first iteration, and nothing of its own."""
    for k in range(1, 3):
        A[0, k - 1] = max(A[0, k - 1], 0.7 * x[k])
        for i in range(1, 4, 2):
            A[0, k] = A[i - 1, 3 - k]
            A[2, k + 1] = A[0, 0]
    return x, A


@pytest.mark.parametrize("fn", [added_behind_the_read, first_of_all])
def test_what_a_later_iteration_reads_of_earlier_ones(fn) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        assert_nodes_agree(fn, [rng.normal(size=4), rng.normal(size=(4, 4))])


def floyd(D):
    """Paths in place: some of the sums over the steps behind are written out, and read out of range where they do not count."""
    for k in range(5):
        for i in range(5):
            for j in range(5):
                D[i, j] = min(D[i, j], D[i, k] + D[k, j])
    return D


def permuted(x, k):
    """Reads and writes of one array at positions that are data."""
    for i in range(len(x)):
        x[k[i]] = x[k[k[i]]] * 0.5 + x[i]
        x[k[i]] *= 1.0 + x[0]
    return x


def two_buffers(u):
    v = np.zeros(len(u))
    for t in range(3):
        for i in range(1, len(u) - 1):
            v[i] = u[i - 1] + 0.5 * u[i + 1] * u[i]
        u, v = v, u
        if t:
            held = u
            u = v
            v = held
    return u, v


def handed_over(x):
    u = np.zeros(len(x))
    for t in range(3):
        d = x + u
        d[t] = 2.0
        u = d
        u[0] *= 3.0
    return u


def rows(A):
    s = 0.0
    for row in A:
        row[0] = row[1] * row[2]
        s = s * 0.5 + row[0] if s else 1.0
    for i, a in enumerate(A[0]):
        s += a * i
    for k in (2, 0):
        s = s * A[k, k]
    for a, b in zip(A[0], A[1]):  # noqa: B905
        s += a * b
    return s, A


def halves(x):
    for s in range(3):
        h = 1 << s
        for i in range(0, 8, 2 * h):
            for j in range(h):
                a = x[i + j]
                x[i + j] = a + x[i + j + h]
                x[i + j + h] = a - x[i + j + h]
    x[-1] = x[-2]
    for i in range(1, 4):
        x[-1 - i] += x[-i]
    return x


def at_two_numbers(x):
    """Two writes of an iteration, one of them at a number, and a read at another: isl alone finds the first of them."""
    s = 0.5
    for k in range(2):
        for i in range(2):
            if i == 1:
                x[k] = x[k] * s
            s = 0.3 * s + x[k + 2]
            if i == 0:
                s = np.sin(x[k])
    return x, s


def american_option(S, K, sigma):
    """Each step backwards has one value less than the one before, and reads that beyond its own."""
    n = 5
    up = np.exp(sigma[0] / np.sqrt(n))
    p = (1.0 - 1 / up) / (up - 1 / up)
    V = np.zeros(n + 1)
    for i in range(n + 1):
        V[i] = max(K[0] - S[0] * up ** (2 * i - n), 0.0)
    for t in range(n - 1, -1, -1):
        for i in range(t + 1):
            hold = 0.99 * (p * V[i + 1] + (1 - p) * V[i])
            V[i] = max(hold, K[0] - S[0] * up ** (2 * i - t))
    return V[0]


def de_casteljau(points, t):
    out = np.zeros((len(t), points.shape[1]))
    for q in range(len(t)):
        b = points.copy()
        for r in range(1, len(points)):
            for i in range(len(points) - r):
                b[i, :] = (1 - t[q]) * b[i, :] + t[q] * b[i + 1, :]
        out[q, :] = b[0, :]
    return out


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (american_option, [np.array([1.0]), np.array([1.1]), np.array([0.3])]),
        (de_casteljau, _numbers((4, 2), (3,))),
        (at_two_numbers, _numbers((4,))),
        (floyd, [np.abs(np.random.default_rng(0).normal(size=(5, 5)))]),
        (permuted, [*_numbers((6,)), np.array([1, 0, 3, 3, 2, 5])]),
        (two_buffers, _numbers((6,))),
        (handed_over, _numbers((5,))),
        (rows, _numbers((4, 3))),
        (halves, _numbers((8,))),
    ],
)
def test_idioms_agree_with_numpy_and_with_differences(fn, args) -> None:
    assert_nodes_agree(fn, args)


def test_names_of_one_array_that_both_are_used_are_refused() -> None:
    def both(x):
        u = np.zeros(len(x))
        for _t in range(3):
            d = x * 1.0
            u = d
            d[0] = 7.0
        return u

    with pytest.raises(te.DefinitionError, match="u stands for another object"):
        te.loops(both)(np.ones(4))
