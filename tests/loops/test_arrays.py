"""Functions of NumPy on whole arrays, views, lists, masks, and functions within a function, under ``te.loops``."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.structure import topological_order
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")

WEIGHTS = np.array([0.25, 0.5, 0.25])


def made(x):
    A = np.eye(3) * x + np.ones((3, 3)) + np.diag(x)
    return A @ x, np.linspace(0.0, 1.0, 3) * x, x * np.arange(1, 4), np.array([x[0], 2.0, x[1] * x[2]])


def parts_of_matrices(A):
    return (
        np.trace(A) + np.linalg.norm(A),
        np.tril(A) @ np.triu(A, 1),
        np.diag(A),
        np.transpose(A)[0],
        A.std(),
    )


def put_together(a, b):
    return np.concatenate([a, 2.0 * b]), np.stack([a, b], axis=1), np.cross(a, b), np.cumprod(a), np.diff(b)


def rolled(x):
    for _t in range(2):
        x = x + 0.1 * (np.roll(x, 1) - x)
    return x, np.cumsum(x)


def transposed_view(A, x):
    B = A.T
    B[0, 1] = x[0]
    A[2, 0] += x[1]
    return A, B[0, 2] * x[2]


def reshaped_view(x):
    y = x.reshape(3, 4)
    y[1, 3] = 2.0 * y[0, 0]
    x[0, 0] = 7.0
    z = x.flatten()
    z[1] = 3.0
    return x, y[2], z


def gathered(x, idx, w):
    return np.roll(x[idx] * w, 1)


def masked(x, y):
    m = x > y
    x[m] += 1.0
    x[~m] *= 2.0
    y[np.abs(y) > 1.0] = 1.0
    return x, y


def listed(x):
    pairs, s = [0.5, 0.25, 0.125], 0.0
    for k in range(3):
        s += pairs[k] * WEIGHTS[k] * x[k]
    for w, k in [(0.5, 0), (0.25, 2)]:
        s += w * x[k]
    return s + sum(x[i] * x[i + 1] for i in range(3)), np.array([v * v for v in x])


def lorenz(y, p):
    def slope(y):
        return np.array([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])

    for _t in range(3):
        k1 = slope(y)
        y = y + 0.01 * slope(y + 0.005 * k1)
    return y


def huber(x):
    def one(r, d=1.0):
        if abs(r) <= d:
            return 0.5 * r * r
        return d * (abs(r) - 0.5 * d)

    twice = lambda a: a + a  # noqa: E731
    s = 0.0
    for i in range(len(x)):
        s += twice(one(x[i]))
    return s


def in_several_places(a, x):
    assert len(a) == 1, "one number"
    if a[0] > 10:
        return x[0], a[0]
    elif a[0] > 0.1:
        s = 0.0
        for i in range(len(x)):
            s = np.sin(s + x[i])
        return s, x[1]
    return x[1] * 2, x[0]


def butterflies(re, im):
    """A Fourier transform of radix two, in place."""
    n = len(re)
    m = 2
    while m <= n:
        h = m // 2
        for k in range(0, n, m):
            for j in range(h):
                wr, wi = np.cos(-2 * np.pi * j / m), np.sin(-2 * np.pi * j / m)
                tr = wr * re[k + j + h] - wi * im[k + j + h]
                ti = wr * im[k + j + h] + wi * re[k + j + h]
                re[k + j + h], im[k + j + h] = re[k + j] - tr, im[k + j] - ti
                re[k + j], im[k + j] = re[k + j] + tr, im[k + j] + ti
        m *= 2


def of_a_dtype(x):
    w = np.array([1, 2, 3], dtype=float)
    w[0] = 0.5 * x[0]
    z = x + 1j * x[::-1]
    return w * x, np.var(z) + np.linalg.norm(z), np.asarray(x) * 2


def extrema(A, x):
    best = np.zeros(len(A))
    for i in range(len(A)):
        best[i] = A[i, np.argmax(A[i])]
    k = np.argmin(A, axis=0)
    return best, A[k[1], 1] * x[x.argmax()], A.reshape(9)[np.argmax(A)]


def first_of_equal_ones(n):
    return np.argmax(n), np.argmin(n), np.argmax(np.sqrt(n - 1.0))


def letters(A, B, x):
    rows = np.zeros(3)
    for i in range(3):
        rows[i] = np.einsum("j,j->", A[i], x)
    turned = np.einsum("ij->ji", A)
    A[0, 1] = 2.0 * x[0]
    return (
        A,
        rows,
        np.einsum("ij,jk", A, B),
        np.einsum("ij,jk,k->i", A, B, x),
        np.einsum("ii", A),
        turned[1],
        np.einsum("i,j->ij", x, x),
    )


def numbers(*shapes):
    rng = np.random.default_rng(5)
    return [rng.normal(size=s) for s in shapes]


CASES = [
    (made, numbers((3,))),
    (of_a_dtype, numbers((3,))),
    (parts_of_matrices, numbers((3, 3))),
    (put_together, numbers((3,), (3,))),
    (rolled, numbers((5,))),
    (transposed_view, numbers((3, 3), (3,))),
    (reshaped_view, numbers((2, 6))),
    (gathered, [*numbers((6,)), np.array([2, 0, 5, 2], "int32"), *numbers((4,))]),
    (masked, numbers((5,), (5,))),
    (listed, numbers((4,))),
    (lorenz, numbers((3,), (3,))),
    (huber, [np.array([0.3, -2.0, 1.5, -0.2])]),
    (in_several_places, [np.array([0.7]), *numbers((3,))]),
    (in_several_places, [np.array([11.0]), *numbers((3,))]),
    (butterflies, numbers((4,), (4,))),
    (extrema, numbers((3, 3), (3,))),
    (letters, numbers((3, 3), (3, 3), (3,))),
]


@pytest.mark.parametrize(("fn", "args"), CASES)
def test_functions_of_whole_arrays_agree_with_numpy_and_with_differences(fn, args) -> None:
    assert_nodes_agree(fn, args)


def test_positions_of_extrema_are_the_first_ones() -> None:
    for own in (
        np.array([3.0, 1.0, 3.0, 1.0]),
        np.array([0.0, 2.0, 5.0]),
        np.array([[1.0, 4.0], [4.0, 0.5]]),
    ):
        with np.errstate(invalid="ignore"):
            expected = first_of_equal_ones(own)
        assert [int(k) for k in te.loops(first_of_equal_ones)(own)] == [int(k) for k in expected]


def test_what_both_branches_of_a_choice_write_is_no_recurrence() -> None:
    def loss(x):
        s = 0.0
        for i in range(len(x)):
            if abs(x[i]) <= 1.0:
                t = 0.5 * x[i] * x[i]
            else:
                t = abs(x[i]) - 0.5
            s += t
        return s

    found = topological_order([te.loops(loss).builder(te.placeholder((6,), name="x"))])
    assert not any(isinstance(t, Recurrent) for t in found)
    assert "select(abs(x[i]) <= 1.0, 0.5 * x[i] * x[i], abs(x[i]) - 0.5)" in "".join(map(str, found))


def writes_outside(x):
    WEIGHTS[0] = x[0]
    return x


def reads_by_mask(x):
    return x[x > 0]


def grows(x):
    out = []
    for i in range(3):
        out.append(x[i])
    return out


def holds_not(x):
    assert len(x) == 3, "three numbers are wanted"
    return x


def counts_data(x):
    n = 8.0 * x[0]
    while n > 1:
        n = n / 2
    return n


def fills_a_list(x):
    out = [0.0] * 4
    for i in range(4):
        out[i] = 2.0 * x[i]
    return out


def changes_a_list(x):
    """Its second value is an element of ``x``, which stays what it is."""
    own = [x[0], x[1]]
    own[1] = 5.0
    return x


def adds_to_a_list(x):
    own = [x[0], x[1]]
    own[1] += 5.0
    return x


def of_dots(x):
    return np.einsum("...i->...", x)


def of_other_ranks(x):
    return np.einsum("ij,j->i", x, x)


def along_rows(x):
    return np.std(x, axis=0)


@pytest.mark.parametrize(
    ("fn", "message", "marked"),
    [
        (along_rows, "np.std is not known with these arguments", "np.std(x, axis=0)"),
        (writes_outside, "WEIGHTS is no argument and no array of the function", "WEIGHTS[0]"),
        (reads_by_mask, "how many elements a mask chooses is data", "x > 0"),
        (grows, "a list stays as it is", "out.append"),
        (fills_a_list, "the values of a list stay as they are; make an array", "out[i]"),
        (changes_a_list, "the values of a list stay as they are; make an array", "own[1]"),
        (adds_to_a_list, "the values of a list stay as they are; make an array", "own[1]"),
        (of_dots, "np.einsum of letters", "np.einsum("),
        (of_other_ranks, "np.einsum: 'ij' of an array of 1 axes", "np.einsum("),
        (holds_not, "three numbers are wanted", "len(x) == 3"),
        (counts_data, "a while loop has no bound that is known", "while n > 1:"),
    ],
)
def test_what_is_refused_of_them(fn, message, marked) -> None:
    with pytest.raises(te.DefinitionError) as caught:
        te.loops(fn)(np.ones(4))
    first, line, caret = str(caught.value).split("\n")[:3]
    assert message in first
    assert line[caret.index("^") : caret.index("^") + caret.count("^")].startswith(marked)


def truncates(x):
    w = np.array([1, 2, 3, 4])
    for i in range(3):
        w[i] += x[i]
    w[3] = -x[3] * 1.5
    return w


def becomes_floats(x):
    w = np.array([1, 2, 3, 4])
    w[0] = x[0] * 0.7
    w = w * x
    w[1] = 0.25
    return w


def grows_in_a_loop(x):
    w = np.array([0, 0, 0, 0])
    for _ in range(3):
        w = w + x * 0.5
    return w


def counts(x):
    w = np.full(4, 2)
    w[1:] = x[1:] * 1.5
    return w + np.sum(x > 2.0)


@pytest.mark.parametrize("fn", [truncates, becomes_floats, grows_in_a_loop, counts])
def test_arrays_keep_the_dtype_that_numpy_gives_them(fn) -> None:
    x = np.array([1.5, 2.5, -3.5, 4.5])
    with jax.enable_x64(True):
        found, wanted = te.loops(fn)(x), fn(x.copy())
        assert found.dtype.kind == wanted.dtype.kind
        np.testing.assert_allclose(found, wanted)
