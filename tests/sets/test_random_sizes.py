"""What is said of random indices and sets whose sizes are symbols is so at all sizes that were tried: Python computes what is meant."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from itertools import product

import jaxte as te
from jaxte.algebra.simplify import simplify_index
from jaxte.lang.expr import Axis, Call, Expr, Var, as_expr
from jaxte.lang.text import text
from jaxte.sets.affine import from_linear, normal
from jaxte.sets.conditions import tidy
from jaxte.sets.digits import straightened
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import linear_or_none, written_size
from jaxte.sets.intervals import (
    at_most,
    decide,
    highest,
    index_stays_in,
    least_size,
    lowest,
    nonnegative,
    same,
)
from jaxte.sets.resolved import decided, simplify
from tests.choices import Seeded
from tests.sets.test_random_forms import value

N, M = Var("n"), Var("m", 2)
AXES = (
    te.reduce_axis((0, N), "i"),
    te.reduce_axis((1, M + 1), "j"),
    te.reduce_axis((0, N // 2 + 1), "k"),
    te.reduce_axis((0, 4), "l"),
    te.reduce_axis((0, 2 * N), "o"),
)
Point = Mapping[Expr, int]


def _points() -> list[Point]:
    found: list[Point] = []
    for n, m in product(range(1, 6), range(2, 5)):
        own = list(product(range(n), range(1, m + 1), range(n // 2 + 1), range(4), range(2 * n)))
        random.Random(10 * n + m).shuffle(own)
        found += [{**dict(zip(AXES, p, strict=True)), N: n, M: m} for p in own[:20]]
    return found


POINTS = _points()
LEAVES = ((*AXES, N, M), (N, M), (AXES[0], AXES[2], N), (AXES[4], AXES[0], N), (AXES[1], M, AXES[3]))


def _index(own: Seeded, depth: int, leaves: tuple[Expr, ...]) -> Expr:
    if depth == 0:
        return as_expr(own.among((*leaves, *leaves, own.number(-3, 4))))
    a, b = _index(own, depth - 1, leaves), _index(own, depth - 1, leaves)
    made = (
        a + b,
        a - b,
        a - b,
        a * own.among((-2, -1, 2, 3)),
        a // own.among((2, 3, 4)),
        a % own.among((2, 3, 4)),
    )
    return own.among((*made, te.minimum(a, b), te.maximum(a, b), a + own.number(-5, 5)))  # type: ignore[return-value]


def _values(expr: Expr) -> list[int]:
    return [value(expr, at) for at in POINTS]


def _form(expr: Expr) -> Expr | None:
    return None if linear_or_none(expr) is None else expr


def test_spellings_and_ends() -> None:
    told: Counter[str] = Counter()
    for seed in range(220):
        own = Seeded(f"sizes {seed}")
        leaves = own.among(LEAVES)
        expr = _form(_index(own, 1 + seed % 4, leaves))
        if expr is None:
            continue
        values, what = _values(expr), text(expr)
        for spelled in (normal, simplify_index, lambda e: simplify(e, {})):
            assert _values(spelled(expr)) == values, what
        form = linear_or_none(expr)
        assert form is not None
        for end, is_beyond in ((lowest(form), int.__le__), (highest(form), int.__ge__)):
            if end is not None:
                told["ends"] += 1
                assert all(map(is_beyond, _values(from_linear(end)), values)), what
        size = _form(_index(own, 2, (N, M)))
        if size is not None and index_stays_in(expr, size):
            told["inside"] += 1
            assert all(0 <= v < s for v, s in zip(values, _values(size), strict=True)), (
                f"{what} in {text(size)}"
            )
        if not any(isinstance(axis, Axis) for axis in expr.free):
            told["sizes"] += 1
            assert not nonnegative(form) or min(values) >= 0, what
            assert (least := least_size(expr)) is None or least <= min(values), what
            assert _values(written_size(expr)) == values, what
    assert min(told.values()) > 5 and len(told) == 3


def test_comparisons_and_sets() -> None:
    told: Counter[str] = Counter()
    for seed in range(90):
        own = Seeded(f"compared {seed}")
        leaves = own.among(LEAVES)
        a, b = _form(_index(own, 1 + seed % 3, leaves)), _form(_index(own, 1, leaves))
        if a is None or b is None:
            continue
        first, second = _values(a), _values(b)
        if at_most(a, b):
            told["at most"] += 1
            assert all(map(int.__le__, first, second)), f"{text(a)} and {text(b)}"
        assert not same(a, b) or first == second, f"{text(a)} and {text(b)}"
        asked = own.among((a < b, a <= b, a == b, a != b))
        if not isinstance(asked, Call):
            continue
        truths = [bool(value(asked, at)) for at in POINTS]
        found = decide(asked.op, *asked.args)
        told["decided"] += found is not None
        assert found is None or set(truths) == {found}, text(asked)
        for spelled in (tidy, decided, straightened):
            assert [bool(value(spelled(asked), at)) for at in POINTS] == truths, text(asked)
        given = [
            own.among((x < y, x <= y, x == y)) for x, y in ((_index(own, 1, leaves), _index(own, 0, leaves)),)
        ]
        points = IntegerSet(AXES, given)
        held = [n for n, at in enumerate(POINTS) if all(value(c, at) for c in given)]
        if points.is_empty():
            told["empty"] += 1
            assert not held, text(given[0])
            continue
        if points.implies(asked):
            told["implied"] += 1
            assert all(truths[n] for n in held), f"{text(given[0])} and {text(asked)}"
        most = points.maximum(a)
        if most is not None:
            told["maximum"] += 1
            assert all(first[n] <= value(most, POINTS[n]) for n in held), f"{text(given[0])}: {text(a)}"
    assert min(told.values()) > 5 and len(told) == 5
