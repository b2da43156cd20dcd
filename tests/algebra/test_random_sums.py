"""What the algebra makes of random sums, products and choices has their values: each function is asked by itself, at a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import numpy as np
import pytest

import jaxte as te
from jaxte.algebra.product import multiplied, product_of
from jaxte.algebra.simplify import added, collect, negate, plus, times, without_decided
from jaxte.algebra.sums import (
    alike,
    with_one_number,
)
from jaxte.algebra.value_ranges import value_range
from jaxte.lang.expr import Const, Expr
from jaxte.lang.operators import ADD, SUBTRACT
from jaxte.lang.text import text
from jaxte.lang.walk import substitute
from tests.choices import Seeded

N = 12
U, V, W = (te.placeholder((N,), "float64", name) for name in "uvw")
I = te.compute((N,), lambda i: U[i], "point").axes[0]  # noqa: E741
LEAVES = (U[I], V[I], W[I])
CONDITIONS = (U[I] > 0.0, V[I] > W[I], I < 5, ~(U[I] > 0.0), te.logical_and(V[I] > 0.0, I >= 3))  # fmt: skip
SEEDS = range(1200)


def _values() -> dict[te.Tensor, np.ndarray]:
    """Numbers of both signs, none of which is near zero or equal to another."""
    own = np.random.default_rng(5)
    return {t: own.choice([-1.0, 1.0], N) * own.uniform(0.5, 2.0, N) for t in (U, V, W)}


FEEDS = _values()


def _at_all(expr: Expr) -> np.ndarray:
    y = te.compute((N,), lambda i: te.cast(substitute(expr, {I: i}), "float64"))
    return np.asarray(te.interpret(y, {t: FEEDS[t] for t in FEEDS if any(t is own for own in y.inputs)}))


def _leaf(own: Seeded) -> Expr:
    return own.among((*LEAVES, *LEAVES, Const(0.0), Const(1.0), Const(-1.0), Const(0.5), Const(2.0)))


def _expression(own: Seeded, depth: int) -> Expr:
    if depth == 0:
        return _leaf(own)
    a, b = (_expression(own, depth - own.number(1, min(2, depth))) for _ in range(2))
    match own.number(0, 11):
        case 0 | 1:
            return a + b
        case 2:
            return a - b
        case 3 | 4:
            return a * b
        case 5:
            return a / own.among(LEAVES)
        case 6:
            return -a
        case 7 | 8:
            return te.select(own.among(CONDITIONS), a, own.among((b, Const(0.0))))
        case 9:
            return te.select(own.among(CONDITIONS), Const(0.0), b)
        case 10:
            return own.among((te.exp, te.tanh, te.square, abs, te.cos))(own.among(LEAVES))
        case _:
            return own.among(LEAVES) ** own.among((2, 3))


def _same(expr: Expr, expected: np.ndarray, what: str) -> None:
    np.testing.assert_allclose(_at_all(expr), expected, rtol=1e-9, atol=1e-9, err_msg=what)


def _alone(simplified: Callable[[Expr], Expr]) -> Callable[[Sequence[Expr]], tuple[Expr, Expr]]:
    return lambda terms: (simplified(terms[0]), terms[0])


def _alike(terms: Sequence[Expr]) -> tuple[Expr, Expr]:
    found = alike(terms[0], 3.0 * terms[0] * terms[1] / LEAVES[0], -1.0)
    whole = terms[0] - 3.0 * terms[0] * terms[1] / LEAVES[0]
    return (whole if found is None else found), whole


WAYS: dict[str, Callable[[Sequence[Expr]], tuple[Expr, Expr]]] = {
    "collect": lambda terms: (collect(terms), reduce(add, terms)),
    "collect opposite ones": lambda terms: (
        collect([*terms, *(-t for t in reversed(terms[1:]))]),
        terms[0],
    ),
    "added": lambda terms: (added(terms[0], terms[1]), terms[0] + terms[1]),
    "subtracted": lambda terms: (added(terms[0], terms[1], SUBTRACT), terms[0] - terms[1]),
    "added to several": lambda terms: (reduce(lambda a, b: added(a, b, ADD), terms), reduce(add, terms)),
    "plus": lambda terms: (plus(terms[0], terms[1]), terms[0] + terms[1]),
    "times": lambda terms: (times(terms[0], terms[1]), terms[0] * terms[1]),
    "negate": lambda terms: (negate(terms[0]), -terms[0]),
    "choices decided": lambda terms: (
        without_decided(te.select(CONDITIONS[0], terms[0], terms[1])),
        te.select(CONDITIONS[0], terms[0], terms[1]),
    ),
    "alike": _alike,
    "product": _alone(lambda e: multiplied(product_of(e).factors, product_of(e).guards)),
    "one number": lambda terms: (
        with_one_number(terms[0] * 0.5 * (3.0 * LEAVES[0])),
        terms[0] * 0.5 * (3.0 * LEAVES[0]),
    ),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("way", WAYS)
def test_values(way: str) -> None:
    changed = 0
    for seed in SEEDS:
        own = Seeded(f"{way} {seed}")
        terms = [_expression(own, own.number(1, 3)) for _ in range(own.number(2, 5))]
        found, meant = WAYS[way](terms)
        changed += found is not meant
        if found is not meant:
            _same(found, _at_all(meant), f"seed {seed}: {text(found)} for {text(meant)}")
    assert changed >= 10


@pytest.mark.usefixtures("x64")
def test_values_lie_in_their_range() -> None:
    for seed in SEEDS:
        own = Seeded(f"range {seed}")
        held = te.clip(_expression(own, own.number(1, 3)), -own.number(0, 2), own.number(0, 2))
        expr = own.among(
            (held * held, -held, abs(held), held - 2.0, te.select(CONDITIONS[seed % 5], held, 3.0))
        )
        low, high = value_range(expr)
        values = _at_all(expr)
        assert low - 1e-9 <= values.min() and values.max() <= high + 1e-9, f"seed {seed}: {text(expr)}"
        assert low > -8.0
