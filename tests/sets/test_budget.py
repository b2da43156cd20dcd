"""Derivation within a budget: whatever isl or the solver leave open, what is emitted is right, and hard questions are left open."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang import budget
from jaxte.lang.budget import SOLVING, Budget, Exhausted
from jaxte.sets import domain, isl_text
from jaxte.sets.solving import pinning, smallest_box
from jaxte.sets.solving.solve import _solved
from jaxte.tensors.bodies.contexts import guards_of


def convolution(x, w):
    k = te.reduce_axis((0, 5), "k")
    return te.compute((17,), lambda i: te.sum(x[2 * i + k] * w[k], axis=k), "y")


def band(x, w):
    k = te.reduce_axis((0, 23), "k")
    where = lambda i: (k <= i) & (i < k + 4)  # noqa: E731
    return te.compute((23,), lambda i: te.sum(x[k] * te.sin(w[i]), axis=k, where=where(i)), "y")


def nested(x, w):
    return te.compute((41,), lambda i: x[((i // 3 % 37 + i // 5) // 2 + i // 7) % 23] * w[i % 23], "y")


def pool(x, w):
    k = te.reduce_axis((0, 3), "k")
    return te.compute((11,), lambda i: te.max(x[2 * i + k] * w[k], axis=k), "y")


def wrapped(x, w):
    return te.compute((23,), lambda i: x[(i + 1) % 23] * w[te.maximum(i - 2, 0)] + x[i * 5 % 23], "y")


def flat(x, w):
    f = te.reduce_axis((0, 12), "f")
    return te.compute((3, 4), lambda i, j: te.sum(x[i + f // 4 * 2 + f % 4] * w[f + j], axis=f), "y")


DEFINITIONS = {
    convolution: (37, 5),
    band: (23, 23),
    nested: (23, 23),
    pool: (23, 3),
    wrapped: (23, 23),
    flat: (16, 15),
}


@pytest.fixture
def nothing_answered(monkeypatch):
    """isl may take one operation and the solver visit one node: every answer is that of a spent budget."""
    monkeypatch.setattr(isl_text, "OPERATIONS", 1)
    monkeypatch.setattr(smallest_box, "SOLVING", 1)
    _solved.cache_clear()
    yield
    _solved.cache_clear()


@pytest.mark.parametrize("build", DEFINITIONS, ids=lambda f: f.__name__)
def test_what_is_left_open_is_right(build, nothing_answered, rng) -> None:
    n, m = DEFINITIONS[build]
    X, W = te.placeholder((n,), "float64", "X"), te.placeholder((m,), "float64", "W")
    with jax.enable_x64(True):
        x, w = rng.normal(size=n) + 3, rng.normal(size=m) + 3
        fn = te.function(build)
        np.testing.assert_allclose(fn(x, w), te.interpret(build(X, W), {X: x, W: w}), rtol=1e-12)
        loss = lambda x, w: jnp.sum(jnp.sin(fn(x, w)))  # noqa: E731
        for own, at in zip(jax.grad(loss, (0, 1))(x, w), (0, 1), strict=True):
            step = rng.normal(size=own.shape)
            ends = [(x + e * step, w) if at == 0 else (x, w + e * step) for e in (1e-6, -1e-6)]
            np.testing.assert_allclose(
                np.vdot(own, step), (loss(*ends[0]) - loss(*ends[1])) / 2e-6, rtol=1e-6
            )


def test_reads_are_checked_where_isl_answers_nothing(nothing_answered) -> None:
    X = te.placeholder((10,), name="X")
    te.compute((200,), lambda i: X[(i // 3 % 7 + i // 5 % 3) % 10], "inside")
    with pytest.raises(te.RangeError, match=r"reads X\[10\] at i=20"):
        te.compute((200,), lambda i: X[i // 3 % 7 + i // 5 % 5], "outside")


def test_nested_quotients_end(rng) -> None:
    """The positions become a tensor where solving for them takes too much: a scatter-add with as many points as the definition."""
    index = lambda i: (((i // 3) % 37 + (i // 5) % 17) // 2 % 23 + (i // 11) % 13) % 64  # noqa: E731
    spent = []
    box = smallest_box.smallest_box

    class Counted(Budget):
        def spend(self, amount: int) -> None:
            spent.append(amount)
            super().spend(amount)

    smallest_box.Budget, kept = Counted, smallest_box.Budget
    try:
        fn = te.function(lambda x: te.compute((200,), lambda i: x[index(i)], "y"))
        source = te.source(fn, jax.ShapeDtypeStruct((64,), "float32"))
    finally:
        smallest_box.Budget = kept
    assert box is smallest_box.smallest_box
    assert ".at[at_x_0].add(H" in source and len(source) < 2_000
    told = str(te.explain(fn, jax.ShapeDtypeStruct((64,), "float32")))
    assert "at_x_0[i] == i would take more work to be solved for than derivation has a budget of" in told
    assert sum(spent) < 2 * SOLVING + max(spent)
    x, h = rng.normal(size=64).astype("float32"), rng.normal(size=200).astype("float32")
    i = np.arange(200)
    want = np.zeros(64, "float32")
    np.add.at(want, index(i), h)
    value, back = jax.vjp(fn, x)
    np.testing.assert_array_equal(value, x[index(i)])
    np.testing.assert_allclose(back(h)[0], want, rtol=1e-5, atol=1e-5)


def test_few_of_many_choices_are_looked_at(monkeypatch) -> None:
    """The reads of nine rolled copies, stacked: twelve choices of what is solved for, each with some of what is pinned, of which half are equal."""
    looked_at, surround = [], smallest_box.surround
    monkeypatch.setattr(smallest_box, "surround", lambda *args: looked_at.append(args[1]) or surround(*args))
    a, b, c = te.reduce_axis((0, 9), "a"), te.reduce_axis((0, 256), "b"), te.reduce_axis((0, 256), "c")
    x, y = te.var("x"), te.var("y")
    row, column = (b - 1 + (2 - a // 3)) % 256, (c - 1 + (2 - a) % 3) % 256
    domain = te.Domain([a, b, c], [te.equal(row, x), te.equal(column, y)])
    box = smallest_box.smallest_box(domain)
    few = len(looked_at)
    monkeypatch.setattr(smallest_box, "CHOICES", 1_000)
    every = smallest_box.smallest_box(domain)
    assert box is not None and every is not None and repr(box) == repr(every)
    assert 2 * few < len(looked_at) - few and few <= budget.CHOICES


def test_a_budget_is_spent_once() -> None:
    budget = Budget(3)
    budget.spend(3)
    with pytest.raises(Exhausted):
        budget.spend(1)


def _digits_of(i):
    """0 to 62, and 63 at few positions of many."""
    return (((i // 3) % 37 + (i // 5) % 17) // 2 % 23 + (i // 11) % 13 + (i // 7) % 30) % 64


def test_one_read_out_of_range_among_millions_is_found():
    values = _digits_of(np.arange(100_000))
    (first, *_) = np.flatnonzero(values == 63)
    x = te.placeholder((63,), name="x")
    te.compute((int(first),), lambda i: x[_digits_of(i)])
    with pytest.raises(te.RangeError, match=rf"reads x\[63\] at i={first}"):
        te.compute((2**21,), lambda i: x[_digits_of(i)])


def test_what_is_left_open_is_refused_and_says_how_to_go_on(nothing_answered):
    x = te.placeholder((63,), name="x")
    with pytest.raises(te.IndexExpressionError, match=r"more work to decide.*te.minimum"):
        te.compute((2**25,), lambda i: x[_digits_of(i)])
    te.compute((2**25,), lambda i: x[te.minimum(_digits_of(i), 62)])


def _hard(count):
    """A sum of reads each of which takes more to solve than the others leave."""

    def build(x):
        at = lambda i, s: (((i // 3) % 37 + (i // (5 + s)) % 17) // 2 % 23 + i // 11 % 13) % 64  # noqa: E731
        return te.compute(
            (40,), lambda i: sum((x[at(i, s)] * x[i + s] for s in range(count)), start=x[0]), "y"
        )

    return build


@pytest.fixture
def little(monkeypatch):
    """Budgets that a definition of two reads spends."""
    monkeypatch.setattr(budget, "DERIVATION", 2_000)
    monkeypatch.setattr(budget, "EACH", 100)
    monkeypatch.setattr(smallest_box, "SOLVING", 3_000)
    _solved.cache_clear()
    yield
    _solved.cache_clear()


def test_a_derivation_has_a_budget(little, monkeypatch, rng):
    """All questions together take no more than it, and what is left open comes out right."""
    made = []

    class Counted(Budget):
        def __init__(self, limit):
            super().__init__(limit)
            made.append(self)

    monkeypatch.setattr(budget, "Budget", Counted)
    with jax.enable_x64(True):
        fn, x = te.function(_hard(2)), rng.normal(size=64)
        own = jax.grad(lambda x: jnp.sum(jnp.sin(fn(x))))(x)
        X = te.placeholder((64,), "float64", "X")
        y = te.interpret(_hard(2)(X), {X: x})
        step = rng.normal(size=64) * 1e-6
        ends = [np.sin(te.interpret(_hard(2)(X), {X: x + e * step})).sum() for e in (1, -1)]
        np.testing.assert_allclose(fn(x), y, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(own) @ step, (ends[0] - ends[1]) / 2, rtol=1e-5)
    assert any(b.short for b in made)
    assert all(b.limit - b.left <= b.limit + SOLVING for b in made)


def test_what_is_remembered_counts_for_what_it_took(monkeypatch) -> None:
    """So a derivation has the same left whatever was asked before, and what it could not pay for is looked for again."""
    monkeypatch.setattr(budget, "DERIVATION", 100)
    asked = []

    @budget.remembered(8)
    def answer(steps: int) -> bool:
        asked.append(steps)
        given = budget.allowed(steps)
        if given < steps:
            budget.ran_short(given)
            return False
        budget.charge(steps)
        return True

    for _ in range(2):
        with budget.bounded(0) as own:
            assert [answer(60), answer(30), answer(20)] == [True, True, False]
            assert own.left == 0 and own.short
        with budget.bounded(0) as own:
            assert [answer(20), answer(30), answer(60)] == [True, True, False]
    assert asked == [60, 30, 20, 20, 60, 20, 60]


def test_conditions_of_many_paths() -> None:
    """Where choices stand within each other, twice each, there are 2**80 paths to what they choose between."""
    x = te.placeholder((8,), name="x")
    i, k = te.reduce_axis((0, 8), "i"), te.reduce_axis((0, 3), "k")
    total = te.sum(x[k], axis=k)
    body = te.select(i > 2, total, 1.0)
    for n in range(80):
        body = te.select(i % (n + 2) == 0, body * 2.0, te.sin(body))
    assert [repr(c) for c in guards_of(body, {total})[total]] == ["i > 2"]


def test_solutions_that_pin_the_same_variables_are_written_out_once(monkeypatch) -> None:
    """A remainder of a sum of remainders, whose quotients may be pinned in any order."""
    written, tidied = [], pinning._tidied
    monkeypatch.setattr(pinning, "_tidied", lambda parts: written.append(tuple(parts)) or tidied(parts))
    i, y = te.reduce_axis((0, 60), "i"), te.var("y")
    domain = te.Domain([i], [te.equal(((i // 3 % 7 + i // 5 % 6) // 2 + i % 4) % 8, y)])
    assert smallest_box.smallest_box(domain) is not None
    assert len(set(written)) == len(written) > 10


def test_a_question_that_was_left_open_is_not_asked_again() -> None:
    asked = []

    def ask(steps: int) -> int:
        asked.append(steps)
        with_less = budget.allowed_to_solve(budget.SOLVING)
        if steps <= with_less:
            budget.charge(steps)
            return steps
        budget.charge(with_less)
        budget.left_unsolved()
        if with_less < budget.SOLVING:
            budget.ran_short(0)
        return 0

    one = budget.remembered(8, one=True)(ask)
    hard, half = 2 * budget.SOLVING, budget.SOLVING * 3 // 4
    with budget.bounded(0) as own:
        assert [one(hard), one(hard)] == [0, 0] and asked == [hard]  # also with half as many steps
        assert [one(half), one(half)] == [0, 0] and asked == [hard, half]
        assert own.open == 4 and own.short
    with budget.bounded(0):
        assert [one(half), one(half)] == [half, half]  # with more than it was asked with before
        assert [one(hard), one(half)] == [0, 0] and asked == [hard, half, half, half]


def test_an_answer_that_is_cut_off_while_its_numbers_are_written_is_left_open() -> None:
    """isl says nothing where its operations are used up while it writes a number: it has no text then."""
    i, j = te.reduce_axis((0, 40), "i"), te.reduce_axis((0, 40), "j")
    points = domain.IntegerSet([i, j], [2 * i + 3 * j >= 20, i <= 3 * j, j <= 5 * i])
    answers = [
        isl_text.within(isl_text.context(), limit, lambda: points._shadow([i])) for limit in range(1, 2000, 5)
    ]
    assert not answers[0][0] and answers[-1][0]
    assert [answered for answered, _ in answers] == sorted(answered for answered, _ in answers)


def test_nothing_is_largest_at_no_point() -> None:
    """As where isl has left open that a set of symbolic sizes is empty."""
    n = te.var("n")
    i = te.reduce_axis((0, n), "i")
    assert domain.IntegerSet([i], [i > n]).maximum(i + n) is None
