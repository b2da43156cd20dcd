"""Piecewise affine positions, neighbours, digits, limits and the points of sets, each asked at random by itself: Python computes what is meant."""

from __future__ import annotations

from itertools import product

import numpy as np

import jaxte as te
from jaxte.lang.expr import Axis, Call, Const, Expr
from jaxte.lang.text import text
from jaxte.sets.affine import from_linear
from jaxte.sets.conditions import limit_of
from jaxte.sets.digits import at_digits, number_of
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import single_quotient
from jaxte.sets.linear import split_multiples
from jaxte.sets.piecewise_affine import neighbour, piecewise_affine
from jaxte.sets.tabulate import first_of, tabulated
from tests.choices import Seeded
from tests.sets.test_random_forms import AXES, POINTS, RANGES, comparison, index, value

SEEDS = range(150)


def _held(own: Seeded) -> tuple[Expr, int]:
    """An index that is wrapped or held, and the size of what it reads."""
    e, size = index(own, own.number(1, 3)), own.number(2, 9)
    wrapped = e % own.number(2, 9)
    return own.among(
        (wrapped, te.minimum(te.maximum(e, 0), size - 1), (wrapped - 1) % own.number(2, 6))
    ), size  # type: ignore[return-value]


def test_pieces_are_what_an_index_is() -> None:
    told = 0
    for seed in range(300):
        own = Seeded(f"pieces {seed}")
        expr, size = _held(own)
        if linear_or_none(expr) is None or (found := piecewise_affine(expr, size, own.number(1, 2))) is None:
            continue
        told += 1
        for at in POINTS:
            place, meant = value(found.position, at), value(expr, at)
            assert 0 <= place < found.extent
            (piece,) = (p for p in found.pieces if p.start <= place < p.stop)
            own_value = -1 if piece.first is None else piece.first + piece.step * (place - piece.start)
            assert own_value == (meant if 0 <= meant < size else -1), f"{text(expr)} of {size}: {found}"
    assert told > 50


def test_neighbours_stand_at_their_distance() -> None:
    told = 0
    for seed in range(400):
        own = Seeded(f"neighbours {seed}")
        size = own.number(2, 9)
        expr = own.among(AXES) + own.number(-9, 9)
        expr = own.among((expr, expr % size, expr * 2 // 2 % size))
        found = neighbour(expr, size)
        if found is not None:
            told += found.period is not None
            for at in POINTS:
                place = at[found.axis] + found.distance
                assert value(expr, at) == (place % found.period if found.period else place), text(expr)
    assert told > 50


def test_digits_make_the_number() -> None:
    told = 0
    for seed in range(200):
        own = Seeded(f"digits {seed}")
        axis = Axis("f", 0, own.among((24, 12, 36, 60, 48)))

        def digit(own: Seeded = own, axis: Expr = axis) -> Expr:
            for _ in range(own.number(0, 2)):
                axis = own.among(
                    (axis // own.among((2, 3, 4, 6, 12)), axis % own.among((2, 3, 4, 6, 12, 24)))
                )
            return axis

        root = digit() + own.among((1, 2, 3, 12)) * digit()
        found = number_of(axis, [root], 2)
        if not found.is_taken_apart:
            continue
        told += 1
        written = at_digits(root, {axis: found.whole})
        assert isinstance(axis.hi, Const)
        for number in range(int(axis.hi.value)):  # type: ignore[arg-type]
            own_digits = dict(
                zip(found.digits, (value(i, {axis: number}) for i in found.indices), strict=True)
            )
            assert value(found.whole, own_digits) == number
            assert value(written, own_digits) == value(root, {axis: number}), (
                f"{text(written)} for {text(root)}"
            )
    assert told > 30


def test_quotients_and_limits() -> None:
    single = limits = 0
    for seed in SEEDS:
        own = Seeded(f"quotients {seed}")
        expr, divisor = index(own, 1 + seed % 3), own.number(2, 7)
        form = linear_or_none(expr)
        if form is None:
            continue
        values = [value(expr, at) for at in POINTS]
        whole, rest = split_multiples(form, divisor)
        both = from_linear(whole) * divisor + from_linear(rest)
        assert [value(both, at) for at in POINTS] == values
        quotient = single_quotient(form, divisor)
        if quotient is not None:
            single += 1
            assert all(
                value(from_linear(quotient), at) == v // divisor for at, v in zip(POINTS, values, strict=True)
            )
        table = tabulated(expr, {a: np.array([at[a] for at in POINTS]) for a in AXES})
        assert table is not None and np.broadcast_to(table, len(POINTS)).tolist() == values
        asked = comparison(own, 2)
        for axis in AXES[:3] if isinstance(asked, Call) else ():
            limit = limit_of(asked, axis)
            if limit is not None:
                limits += 1
                for at in POINTS:
                    end = value(from_linear(limit.end), at)
                    holds = at[axis] >= end if limit.is_lower else at[axis] <= end
                    assert holds == bool(value(asked, at)), text(asked)
    assert min(single, limits) > 20


def test_points_of_sets() -> None:
    told = 0
    for seed in range(60):
        own = Seeded(f"points {seed}")
        given = [c for c in (comparison(own, 2) for _ in range(own.number(1, 3))) if isinstance(c, Call)]
        if any(linear_or_none(c.args[0] - c.args[1]) is None for c in given):
            continue
        told += 1
        held = [tuple(at.values()) for at in POINTS if all(value(c, at) for c in given)]
        found, what = IntegerSet(AXES, given), [text(c) for c in given]
        assert list(found.points()) == held, what
        sample = found.sample()
        assert (None if sample is None else tuple(sample[a] for a in AXES)) == (held[0] if held else None), (
            what
        )
        first = first_of(AXES, given)
        assert (first is None) == (not held), what
        for count in (1, 2, 3):
            shadow = {point[:count] for point in held}
            everywhere = set(product(*RANGES[:count]))
            assert found.covers(AXES[:count]) == (shadow == everywhere), what
            written = found.shadow(AXES[:count])
            if written is not None:
                points = {p for p in everywhere if value(written, dict(zip(AXES, p, strict=False)))}
                assert points == shadow, f"{text(written)} of {what}"
        place = own.number(0, 2)
        last = found.last_along(AXES[place]) if held else None
        if last is not None:
            most = max(point[place] for point in held)
            assert tuple(last[a] for a in AXES) == min(p for p in held if p[place] == most), what
    assert told > 20
