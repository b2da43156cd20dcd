"""Indices of bits, of products and powers, and choices by several axes, beside NumPy's own indexing; adjoints of permutations are gathers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis
from jaxte.lower.program.plan import lower
from jaxte.sets.affine import from_linear, linear
from tests.lower.evaluation.program import evaluate_program
from tests.lowered import inputs_of

N = 16


def reflected(t):
    return abs(t) if t < N else 2 * N - 2 - t


# what is written, and what it is in Python's integers
CASES = {
    "reflection": (lambda i, k: te.select(i + k < N, te.abs(i + k), 2 * N - 2 - (i + k)), lambda i, k: reflected(i + k)),
    "reflection in three": (
        lambda i, k: te.select(i + k < 0, -(i + k), te.select(i + k < N, i + k, 2 * N - 2 - (i + k))),
        lambda i, k: reflected(i + k),
    ),
    "turn": (
        lambda i, k: te.select(i + k < 0, i + k + N, te.select(i + k >= N, i + k - N, i + k)),
        lambda i, k: (i + k) % N,
    ),
    "held": (lambda i, k: te.select(i + k < 0, 0, te.select(i + k >= N, N - 1, i + k)), lambda i, k: min(max(i + k, 0), N - 1)),
    "neither": (
        lambda i, k: te.select((i + k) % 2 == 0, te.abs(i + k) % N, N - 1 - te.abs(i + k) % N),
        lambda i, k: abs(i + k) % N if (i + k) % 2 == 0 else N - 1 - abs(i + k) % N,
    ),
    "inside or itself": (
        lambda i, k: te.select((i + k >= 0) & (i + k < N), i + k, i),
        lambda i, k: i + k if 0 <= i + k < N else i,
    ),
    "gray": (lambda i, k: i ^ (i >> 1), lambda i, k: i ^ (i >> 1)),
    "xor": (lambda i, k: i ^ (k + 3), lambda i, k: i ^ (k + 3)),
    "butterfly": (lambda i, k: i ^ (1 << ((k + 3) // 2)), lambda i, k: i ^ (1 << ((k + 3) // 2))),
    "power": (lambda i, k: i ^ (2 ** ((k + 3) // 2)), lambda i, k: i ^ (2 ** ((k + 3) // 2))),
    "shift": (lambda i, k: i >> (k + 3), lambda i, k: i >> (k + 3)),
    "subset": (lambda i, k: i & (12 - k), lambda i, k: i & (12 - k)),
    "union": (lambda i, k: i | (i >> 1), lambda i, k: i | (i >> 1)),
    "bits reversed": (
        lambda i, k: sum(((i >> b) & 1) << (3 - b) for b in range(4)),
        lambda i, k: sum(((i >> b) & 1) << (3 - b) for b in range(4)),
    ),
    "product": (lambda i, k: i * (k + 3) % N, lambda i, k: i * (k + 3) % N),
    "triangle": (lambda i, k: (i * (i + 1) // 2 + k + 3) % N, lambda i, k: (i * (i + 1) // 2 + k + 3) % N),
    "square": (lambda i, k: (te.square(i) + k**2) // 16, lambda i, k: (i**2 + k**2) // 16),
    "quotient": (lambda i, k: i // (k + 4), lambda i, k: i // (k + 4)),
    "remainder": (lambda i, k: (3 * i - 5) % (k + 4), lambda i, k: (3 * i - 5) % (k + 4)),
    "permuting polynomial": (lambda i, k: i * (2 * i + 1) % N, lambda i, k: i * (2 * i + 1) % N),
}  # fmt: skip
PERMUTATIONS = (
    "permuting polynomial",
    "turn",
    "gray",
    "xor",
    "butterfly",
    "power",
    "bits reversed",
    "reflection",
    "held",
)


def definition(index):
    x, k = te.placeholder((N,), name="x"), te.reduce_axis((-3, 4), "k")
    return x, te.compute((N,), lambda i: te.sum(te.sin(x[index(i, k)] * (k + 4)), axis=k), "y")


@pytest.mark.parametrize("name", CASES)
def test_values_and_adjoints(name):
    index, meaning = CASES[name]
    x, y = definition(index)
    at = np.array([[meaning(i, k) for k in range(-3, 4)] for i in range(N)])

    def plain(x):
        return jnp.sum(jnp.sin(x[at] * jnp.arange(1, 8)), 1)

    given, head = np.linspace(0.1, 2.0, N, dtype="float32"), te.placeholder((N,), name="H")
    h = np.linspace(-1.0, 1.0, N, dtype="float32")
    (dx,) = te.differentiate(y, [x], head)
    expected, back = jax.vjp(plain, given)
    for run in (te.evaluate, te.interpret):
        np.testing.assert_allclose(run(y, {x: given}), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(run(dx, {x: given, head: h}), back(h)[0], rtol=1e-4, atol=1e-4)
    if name in PERMUTATIONS:
        assert ".add(" not in te.source(dx)


# indices that leave the tensor, of 7 elements, where no guard holds
GUARDED = {
    "greater": lambda i, k: te.select(k >= i, k, i),
    "neither": lambda i, k: te.select(i >= k, k, 2 * i),
    "within each other": lambda i, k: te.select(i < k, te.select(k > 4, k, i + 3), i + 2),
    "power": lambda i, k: i + 2 ** (k // 2),
    "shift": lambda i, k: i - 1 + (1 << (k // 2)),
    "xor": lambda i, k: i ^ k,
    "union": lambda i, k: (i | k) - 1,
    "subset": lambda i, k: i & (k + 3),
    "gray": lambda i, k: i ^ (i >> 1),
    "triangle": lambda i, k: k * (k + 1) // 2 - i,
    "product": lambda i, k: i * k - 2,
    "quotient": lambda i, k: (i**2 - 9) // (k + 1),
}


@pytest.mark.parametrize("name", GUARDED)
def test_guards_of_what_is_chosen(name):
    """The condition has the choices that the index has; a choice that it compares is understood, too."""
    index, n = GUARDED[name], 7
    x, k = te.placeholder((n,), "float64", "x"), te.reduce_axis((0, 6), "k")

    def body(i):
        at = index(i, k)
        return te.sum(te.select((at >= 0) & (at < n), x[at] ** 2, 0.0) * (k + 1), axis=k)

    with pytest.raises(te.RangeError, match="reads x"):
        te.compute((9,), lambda i: te.sum(x[index(i, k)], axis=k), "y")
    y, head = te.compute((9,), body, "y"), te.placeholder((9,), "float64", "H")
    table = te.compute((9, 6), lambda i, j: te.cast(index(i, j), "int32"), "table")
    at = np.asarray(te.interpret(table, {}))
    given, h = np.linspace(0.1, 2.0, n), np.linspace(-1.0, 1.0, 9)
    inside, expected = (at >= 0) & (at < n), np.zeros(n)
    value = np.sum(np.where(inside, given[at.clip(0, n - 1)] ** 2, 0) * np.arange(1, 7), 1)
    weights = np.where(inside, 2 * given[at.clip(0, n - 1)] * np.arange(1, 7) * h[:, None], 0)
    np.add.at(expected, at.clip(0, n - 1), weights)
    (dx,) = te.differentiate(y, [x], head)
    np.testing.assert_allclose(te.interpret(y, {x: given}), value)
    np.testing.assert_allclose(te.interpret(dx, {x: given, head: h}), expected, atol=1e-12)
    params = inputs_of(y, dx)
    found = evaluate_program(lower("both", params, [y, dx]), [{x: given, head: h}[t] for t in params])
    np.testing.assert_allclose(found[0], value)
    np.testing.assert_allclose(found[1], expected, atol=1e-12)


def test_random_expressions_of_bits():
    """Bit operations nested at random, of two positions and numbers, taken around the tensor."""
    rng = np.random.default_rng(7)

    def draw(depth):
        if depth == 0:
            return [("i",), ("k",), ("n", int(rng.integers(0, N)))][rng.integers(3)]
        return (["^", "&", "|", ">>", "<<"][rng.integers(5)], draw(depth - 1), draw(depth - 1))

    def value(tree, i, k):
        if tree[0] in "ikn":
            return {"i": i, "k": k, "n": tree[-1]}[tree[0]]
        a = value(tree[1], i, k)
        if tree[0] in ("<<", ">>"):  # by few
            by = sum(map(ord, str(tree[2]))) % 3
            return a << by if tree[0] == "<<" else a >> by
        b = value(tree[2], i, k)
        return a ^ b if tree[0] == "^" else a & b if tree[0] == "&" else a | b

    x, values = te.placeholder((N,), name="x"), np.arange(N, dtype="float32") + 1
    trees = [draw(2) for _ in range(12)]
    tensors = [
        te.compute((N, 4), lambda i, k, t=t: x[value(t, i, k) % N], f"y{n}") for n, t in enumerate(trees)
    ]
    for tree, found in zip(trees, te.evaluate(tensors, {x: values}), strict=True):
        expected = [[values[value(tree, i, k) % N] for k in range(4)] for i in range(N)]
        np.testing.assert_array_equal(found, expected)


def test_choices_in_any_number():
    """More changes along an axis than definitions are taken apart into: a table has the positions."""
    rows = np.random.default_rng(3).permutation(80)
    x, values = te.placeholder((80,), name="x"), np.arange(80, dtype="float32")
    y = te.compute((80,), lambda i: x[te.choose(i, rows.tolist())], "y")
    np.testing.assert_array_equal(te.evaluate(y, {x: values}), values[rows])
    head = te.placeholder((80,), name="H")
    (dx,) = te.differentiate(y, [x], head)
    np.testing.assert_array_equal(te.evaluate(dx, {head: values}), values[np.argsort(rows)])
    assert ".add(" not in te.source(dx)


def test_bits_that_leave_the_tensor_are_refused():
    x = te.placeholder((N,), name="x")
    with pytest.raises(te.RangeError, match=r"x\[i \^ i \+ 1\] reads x\[31\] at i=15"):
        te.compute((N,), lambda i: x[i ^ (i + 1)], "y")
    with pytest.raises(te.RangeError, match="reads x"):
        te.compute((N, 2), lambda i, k: x[te.select(i + k < N, i + k + 1, 0)], "y")


@pytest.mark.parametrize("n", [0, 3])
def test_bits_of_no_positions(n):
    """An axis without elements has no table, and needs none."""
    x, k = te.placeholder((4,), name="x"), te.reduce_axis((0, n), "k")
    values = np.arange(4, dtype="float32")
    y = te.compute((n,), lambda i: x[te.minimum((i & 1) | (i >> 1), 3)], "y")
    s = te.compute((2,), lambda j: te.sum(x[(k | j) & 3] + x[k & (k >> 1)], axis=k), "s")
    found, total = te.evaluate([y, s], {x: values})
    np.testing.assert_array_equal(found, [values[(i & 1) | (i >> 1)] for i in range(n)])
    wanted = [sum(values[(i | j) & 3] + values[i & (i >> 1)] for i in range(n)) for j in range(2)]
    np.testing.assert_array_equal(total, wanted)


def test_tables_that_are_too_large_or_leave_32_bits_are_refused():
    x, n = te.placeholder((30,), name="x"), te.var("n")
    v = te.placeholder((n,), name="v")
    for shape, body, why in (
        ((3000, 3000), lambda i, j: x[i * j % 30], "axis 0 of x: .* 9,000,000 positions, more than a table"),
        ((3000,), lambda i: x[i**3 % 30], "axis 0 of x: .* made of numbers beyond int32"),
        ((n,), lambda i: v[i * i % 30], "is not affine"),
    ):
        with pytest.raises(te.IndexExpressionError, match=why):
            te.compute(shape, body, "y")


def test_a_packed_triangle_is_read_and_added_to_where_it_stands():
    """A matrix times a vector, of which the lower triangle is kept row by row."""
    n = 7
    rows, columns = np.tril_indices(n)

    @te.function
    def product(p, x):
        k = te.reduce_axis((0, n), "k")
        at = lambda i: te.maximum(i, k) * (te.maximum(i, k) + 1) // 2 + te.minimum(i, k)  # noqa: E731
        return te.compute((n,), lambda i: te.sum(p[at(i)] * x[k], axis=k), "y")

    def plain(p, x):
        lower = jnp.zeros((n, n)).at[rows, columns].set(p)
        return (lower + jnp.tril(lower, -1).T) @ x

    rng = np.random.default_rng(3)
    p, x, h = (rng.normal(size=size).astype("float32") for size in (n * (n + 1) // 2, n, n))
    np.testing.assert_allclose(product(p, x), plain(p, x), rtol=1e-5, atol=1e-5)
    for found, expected in zip(jax.vjp(product, p, x)[1](h), jax.vjp(plain, p, x)[1](h), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("left", "dtype"), [((2, 0), "int32"), ((-1, 0), "int32"), ((1, 3), "int32"), ((1, 0), "int8")]
)
def test_short_integers_are_widened_where_a_position_is_computed_with_them(left, dtype):
    """What is left of a sum of 32 bits, as ``2 * (I[i] + i)`` is, has 32 bits; an element alone stays as it is."""
    i, short = Axis("i", 0, 4), te.placeholder((4,), "int8", name="I")
    factor, more = left
    assert from_linear(linear(factor * (short[i] + i) + more).without(i)).dtype == dtype
