"""Random arguments of public functions: whatever is wrong is said by an error of jaxte."""

from __future__ import annotations

import operator
import random
import sys
import traceback
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

X = te.placeholder((4, 5), name="X")
I = te.placeholder((4,), "int32", name="I")  # noqa: E741
S = te.placeholder((), name="S")
K, M = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 5), "m")
N = te.var("n")
Y = te.compute((4, 5), lambda i, j: X[i, j] * 2.0, "Y")

VALUES: list[Any] = [
    None, -1, 0, 1, 3, 4, 2.5, "x", "float32", "int32", "even", b"x", (), (1,), (4, 5), (4, -5), [2], [None], {}, set(),
    np.float32(2), np.int64(3), np.ones(4), np.ones((4, 5), np.float32), np.arange(4), jnp.ones((4, 5)),
    X, I, S, Y, K, M, N, X[K, M], X[K, 0] * 2, K + 1, K < 2, X[K, M] > 0, te.equal(K, 1), K % 2, I[K],
    lambda i: X[i, 0], lambda i, j: X[i, j], lambda *a: 1.0, lambda: 1.0, lambda i: None, te.exp, jnp.exp, te.Domain, int,
    {X: np.ones((4, 5), np.float32)}, {"a": X}, [X, I], (K, M), [K], True, False, float("nan"), float("inf"), 1j,
    slice(None), object(), 10**12, -(2**40), range(3), np.float32, jnp.bfloat16, te.facts.Finite(),
]  # fmt: skip
OPERATORS = [
    operator.add,
    operator.mul,
    operator.sub,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
OPERATORS += [operator.lt, operator.and_, operator.rshift]
SCALARS = [
    te.exp,
    te.maximum,
    te.power,
    te.where,
    te.cast,
    te.const,
    te.choose,
    te.clip,
    te.argmax,
    te.max,
    te.prod,
]


CALLERS = ("evaluated", "called")  # of what a user wrote: a type or a builtin has no frame of its own


class Fuzz:
    """One random call of the public functions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self) -> Any:
        return self.random.choice(VALUES)

    def values(self, *counts: int) -> list[Any]:
        return [self.value() for _ in range(self.random.choice(counts))]

    def or_value(self, *good: Any) -> Any:
        return self.random.choice([*good, self.value()])

    def body(self) -> Callable[..., Any]:
        v = self.value
        return self.random.choice(
            [
                lambda i: v(),
                lambda i, j: X[i, v()],
                lambda i: X[v(), v()],
                lambda i, j: te.sum(v(), axis=v(), where=v()),
                lambda i: te.select(v(), v(), v()),
                lambda i: self.random.choice(SCALARS)(*self.values(1, 2, 3)),
                lambda i: i * v() + v(),
                lambda i, j: X[i * v(), j // v()],
                lambda i: X[i, 0] if v() is None else v(),
            ]
        )

    def call(self) -> Any:
        v, some, good = self.value, self.values, self.or_value
        calls: list[Callable[[], Any]] = [
            lambda: te.placeholder(*some(1, 2, 3)),
            lambda: te.compute(good((4,), (4, 5)), self.body()),
            lambda: te.compute(*some(0, 1, 2)),
            lambda: te.reduce_axis(good((v(), v())), good("q")),
            lambda: te.sum(v(), axis=v(), where=v()),
            lambda: te.max(v(), axis=v(), where=v(), ties=v()),
            lambda: X[v(), v()],
            lambda: te.differentiate(good(Y), good([X]), head=v(), override=good(None), fdiff=good(None)),
            lambda: te.evaluate(good(Y), good({X: v()})),
            lambda: te.interpret(good(Y), good({X: v()})),
            lambda: te.cost(v(), good(None)),
            lambda: te.source(good(Y)),
            lambda: list(te.Domain(good([N]), v(), good({N: (0, 4)})).points()),
            lambda: te.solve_linear_equations(v(), good([N]), good({N: (0, 4)})),
            lambda: te.solve_linear_inequalities(v(), good([N]), v()),
            lambda: te.simplify_domain(v()),
            lambda: te.grad(te.function(lambda x: te.ops.sum(x)))(v()),
            lambda: te.const(*some(1, 2)),
            lambda: te.jacobian(good(Y), v()),
            lambda: te.diff_building_block(good(Y), v(), v()),
            lambda: te.comm_reducer(lambda x, y: x + y, v(), good("r"))(v(), axis=v()),
            lambda: te.extern(v(), v(), v()),
            lambda: te.assume(good(X, I), v()),
            lambda: self.random.choice(OPERATORS)(self.random.choice([X[K, M], X, K]), v()),
            lambda: self.random.choice(SCALARS)(*some(1, 2, 3)),
            lambda: getattr(te.ops, self.random.choice(te.ops.__all__))(*(good(X) for _ in some(1, 2, 3, 4))),
        ]
        return self.random.choice(calls)()


def is_users(error: BaseException) -> bool:
    """Whether it comes out of a function that was handed in, or is about a key that no dict takes."""
    frames = traceback.extract_tb(error.__traceback__)
    called = any(f.name in (*CALLERS, "_check") for f in frames) and "/jaxte/" not in frames[-1].filename
    return "unhashable" in str(error) or called or frames[-1].name in CALLERS


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore")
def test_whatever_is_wrong_is_said_by_jaxte(seed: int) -> None:
    fuzz = Fuzz(seed)
    raised = 0
    for _ in range(700):
        try:
            fuzz.call()
        except te.JaxteError as error:
            raised += 1
            assert len(str(error)) > 20, error
        except Exception as error:
            if not is_users(error):
                raise AssertionError("".join(traceback.format_exception(*sys.exc_info()))) from None
    assert raised > 300


@pytest.mark.parametrize("name", te.ops.__all__)
def test_operators_name_what_is_missing(name: str) -> None:
    for count in (0, 1, 12):
        try:
            getattr(te.ops, name)(*(X for _ in range(count)))
        except te.JaxteError as error:
            assert f"te.ops.{name}" in str(error) or count, error
