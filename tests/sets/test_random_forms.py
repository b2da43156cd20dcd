"""What the functions of positions say of random indices and conditions is so at all points: each is asked by itself, and Python computes what is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from itertools import product
from operator import eq, floordiv, ge, gt, le, lt, mod, mul, ne, sub

import pytest

import jaxte as te
from jaxte.algebra.simplify import simplify_index
from jaxte.lang.expr import Axis, Call, Const, Expr, Var, as_expr, call
from jaxte.lang.operators import NOT
from jaxte.lang.text import text
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.conditions import halves, positive, prune, same_condition, tidy
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import linear_or_none, nonnegative_forms
from jaxte.sets.intervals import (
    at_most,
    axis_bounds,
    decide,
    highest,
    index_stays_in,
    interval,
    lowest,
    reach,
    same,
)
from jaxte.sets.resolved import condition_of, decided, resolved, simplify, values_of
from tests.choices import Seeded

AXES = (
    te.reduce_axis((0, 5), "i"),
    te.reduce_axis((-2, 4), "j"),
    te.reduce_axis((1, 7), "k"),
    te.reduce_axis((3, 4), "one"),
)
RANGES = [range(0, 5), range(-2, 4), range(1, 7), range(3, 4)]
SEEDS = range(150)

Point = Mapping[Expr, int]
_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": int.__add__,
    "subtract": sub,
    "multiply": mul,
    "negative": int.__neg__,
    "floor_divide": floordiv,
    "mod": mod,
    "minimum": min,
    "maximum": max,
    "abs": abs,
    "equal": eq,
    "not_equal": ne,
    "less": lt,
    "less_equal": le,
    "greater": gt,
    "greater_equal": ge,
    "logical_and": lambda a, b: bool(a and b),
    "logical_or": lambda a, b: bool(a or b),
    "logical_not": lambda a: not a,
    "select": lambda c, a, b: a if c else b,
}


def value(expr: Expr, at: Point) -> int:
    """What Python makes of ``expr``."""
    if isinstance(expr, (Axis, Var)):
        return at[expr]
    if isinstance(expr, Const):
        return expr.value  # type: ignore[return-value]
    assert isinstance(expr, Call)
    return _OPERATIONS[expr.op.name](*[value(a, at) for a in expr.args])


def points() -> Iterator[Point]:
    for numbers in product(*RANGES):
        yield dict(zip(AXES, numbers, strict=True))


POINTS = list(points())


def index(own: Seeded, depth: int) -> Expr:
    if depth == 0:
        return as_expr(own.among((*AXES[:3], *AXES, own.number(-3, 4))))
    a = index(own, depth - 1)
    match own.number(0, 8):
        case 0 | 1:
            return a + index(own, depth - 1)
        case 2:
            return a - index(own, depth - 1)
        case 3:
            return a * own.among((-2, -1, 2, 3, 4))
        case 4:
            return a // own.among((2, 3, 4, 7))
        case 5:
            return a % own.among((2, 3, 4, 7))
        case 6:
            return te.minimum(a, index(own, depth - 1))
        case 7:
            return te.maximum(a, index(own, depth - 1))
        case _:
            return a + own.number(-5, 5)


def comparison(own: Seeded, depth: int) -> Expr:
    a, b = index(own, own.number(0, depth)), index(own, own.number(0, 1))
    return own.among((a < b, a <= b, a > b, a >= b, a == b, a != b))  # type: ignore[no-any-return]


def condition(own: Seeded, depth: int) -> Expr:
    if depth < 2:
        return comparison(own, 2)
    a, b = condition(own, depth - 1), condition(own, depth - 2)
    return own.among((a & b, a | b, ~a, a, b))


def _agrees(found: Expr, meant: Expr, what: str) -> None:
    for at in POINTS:
        assert value(found, at) == value(meant, at), (
            f"{what}: {text(found)} for {text(meant)} at {[*at.values()]}"
        )


SPELLINGS: dict[str, Callable[[Expr], Expr]] = {
    "linear": lambda e: from_linear(linear(e)),
    "normal": normal,
    "simplified": simplify_index,
    "resolved": lambda e: from_linear(resolved(linear(e), axis_bounds(AXES))),
    "divisions decided": lambda e: simplify(e, {}),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_indices_keep_their_values(spelling: str) -> None:
    for seed in SEEDS:
        meant = index(Seeded(f"{spelling} {seed}"), 1 + seed % 4)
        if linear_or_none(meant) is not None:
            _agrees(SPELLINGS[spelling](meant), meant, f"seed {seed}")


CONDITIONS: dict[str, Callable[[Expr], Expr]] = {
    "tidy": tidy,
    "positive": lambda c: positive(call(NOT, c)),
    "decided": decided,
    "halves": lambda c: reduce(lambda a, b: a & b, halves(c)),
    "pruned": lambda c: reduce(
        lambda a, b: a & b, prune([c, AXES[0] >= 1, AXES[1] < 3], AXES), te.const(True)
    ),
}


@pytest.mark.parametrize("spelling", CONDITIONS)
def test_conditions_hold_where_they_did(spelling: str) -> None:
    for seed in SEEDS:
        own = Seeded(f"{spelling} {seed}")
        given = comparison(own, 3) if seed % 2 else condition(own, 3)
        meant = {"positive": call(NOT, given), "pruned": given & (AXES[0] >= 1) & (AXES[1] < 3)}
        _agrees(CONDITIONS[spelling](given), meant.get(spelling, given), f"seed {seed}")


def test_ends_lie_around_the_values() -> None:
    for seed in SEEDS:
        expr = index(Seeded(f"ends {seed}"), 1 + seed % 4)
        form = linear_or_none(expr)
        if form is None:
            continue
        values = [value(expr, at) for at in POINTS]
        ends = {
            "interval": interval(form, axis_bounds(AXES)),
            "reach": reach(form),
            "lowest": None if (low := lowest(form)) is None else (low.constant, max(values)),
            "highest": None if (high := highest(form)) is None else (min(values), high.constant),
        }
        for what, found in ends.items():
            if found is not None:
                assert found[0] <= min(values) and max(values) <= found[1], f"{what} of {text(expr)}: {found}"
        if index_stays_in(expr, as_expr(6)):
            assert 0 <= min(values) and max(values) < 6, text(expr)


def test_what_is_decided_holds_at_all_points() -> None:
    told = 0
    for seed in SEEDS:
        own = Seeded(f"decided {seed}")
        asked = comparison(own, 3)
        if not isinstance(asked, Call):
            continue
        left, right = asked.args
        if linear_or_none(left) is None or linear_or_none(right) is None:
            continue
        truth = {bool(value(asked, at)) for at in POINTS}
        found = decide(asked.op, left, right)
        assert found is None or truth == {found}, text(asked)
        told += found is not None
        assert not at_most(left, right) or all(value(left, at) <= value(right, at) for at in POINTS), text(
            asked
        )
        assert not same(left, right) or all(value(left, at) == value(right, at) for at in POINTS), text(asked)
    assert told > 10


def test_forms_are_at_least_zero_where_a_comparison_holds() -> None:
    for seed in SEEDS:
        asked = comparison(Seeded(f"forms {seed}"), 3)
        forms = nonnegative_forms(asked)
        for at in POINTS if forms else ():
            holds = all(value(from_linear(form), at) >= 0 for form in forms)
            assert holds == bool(value(asked, at)), text(asked)


def test_values_along_an_axis_are_those_at_which_a_condition_holds() -> None:
    told = 0
    for seed in range(400):
        own = Seeded(f"values {seed}")
        axis = own.among(AXES[:3])
        asked = own.among((1, 2, -1, 3)) * axis + own.number(-4, 4)
        asked = own.among((asked < 2, asked >= 1, asked == 2, asked <= 0, asked != 3, ~(asked > 1)))
        found = values_of(asked)
        if found is None:
            continue
        told += 1
        held = {at[axis] for at in POINTS if value(asked, at)}
        assert held == {n for n in range(found.low, found.high + 1) if n in {at[axis] for at in POINTS}}, (
            text(asked)
        )
        if held and (again := condition_of(found)) is not None:
            _agrees(again, asked, f"seed {seed}")
    assert told > 50


def test_conditions_that_are_the_same_hold_together() -> None:
    conditions = [comparison(Seeded(f"same {seed}"), 1) for seed in range(60)]
    truths = [tuple(bool(value(c, at)) for at in POINTS) for c in conditions]
    for (a, first), (b, second) in product(zip(conditions, truths, strict=True), repeat=2):
        if same_condition(a, b):
            assert first == second, f"{text(a)} and {text(b)}"


def test_sets_have_the_points_at_which_all_conditions_hold() -> None:
    for seed in range(60):
        own = Seeded(f"sets {seed}")
        given = [condition(own, own.number(1, 3)) for _ in range(own.number(1, 3))]
        held = [at for at in POINTS if all(value(c, at) for c in given)]
        found = IntegerSet(AXES, given)
        assert found.is_empty() == (not held), [text(c) for c in given]
        other = comparison(own, 2)
        if found.implies(other):
            assert all(value(other, at) for at in held), f"{[text(c) for c in given]} and {text(other)}"
        elif isinstance(other, Call) and linear_or_none(other.args[0] - other.args[1]) is not None:
            assert not all(value(other, at) for at in held), (
                f"{[text(c) for c in given]} do imply {text(other)}"
            )
        largest = index(own, 2)
        if held and linear_or_none(largest) is not None and (most := found.maximum(largest)) is not None:
            assert most == max(value(largest, at) for at in held), [text(c) for c in given]


def test_nothing_is_implied_about_an_axis_that_is_no_variable() -> None:
    i, j = AXES[:2]
    assert not IntegerSet([i]).implies(j <= 1)
    assert IntegerSet([i, j]).implies(j <= 3)
    assert not at_most(j, i)
