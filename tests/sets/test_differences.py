"""Differences within bounds: every answer beside the points one by one."""

from __future__ import annotations

import operator
import random
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.sets.differences import Differences, differences
from jaxte.sets.domain import IntegerSet
from jaxte.sets.tabulate import evaluate_index

Comparison = tuple[Expr, Expr, str]
COMPARE = ("le", "lt", "ge", "gt", "eq")


def _compared(draw: random.Random, axes: list[Axis]) -> Comparison:
    one, other = draw.sample(axes, 2)
    left = draw.choice([one, one - other, one + draw.randint(-2, 2)])
    right = draw.choice([other + draw.randint(-2, 2), as_expr(draw.randint(-1, 5))])
    return left, right, draw.choice(COMPARE)


def _condition(compared: Comparison) -> Expr:
    left, right, name = compared
    found: Expr = getattr(operator, name)(left, right)
    return found


def _points(axes: list[Axis], conditions: list[Comparison]) -> list[dict[Expr, int]]:
    whole = [dict(zip(axes, at, strict=True)) for at in product(*(range(int(a.hi)) for a in axes))]
    return [at for at in whole if all(_holds(c, at) for c in conditions)]


def _holds(compared: Comparison, at: dict[Expr, int]) -> bool:
    left, right, name = compared
    return bool(getattr(operator, name)(evaluate_index(left, at), evaluate_index(right, at)))


def _drawn(draw: random.Random) -> tuple[list[Axis], list[Comparison], Differences | None]:
    axes = [Axis(name, 0, draw.randint(1, 5)) for name in "ijk"]
    conditions = [_compared(draw, axes) for _ in range(draw.randint(0, 3))]
    if draw.random() < 0.4:  # one equation of all three
        i, j, k = axes
        conditions.append((k, i + draw.choice([-1, 1]) * j + draw.randint(-2, 2), "eq"))
    ranges = [c for a in axes for c in (0 <= a, a < a.hi)]
    return axes, conditions, differences(axes, [*ranges, *map(_condition, conditions)])


@pytest.mark.parametrize("seed", range(20))
def test_every_answer_is_that_of_the_points(seed: int) -> None:
    draw, known, answered = random.Random(seed), 0, 0
    for _ in range(60):
        axes, conditions, own = _drawn(draw)
        if own is None:
            continue
        known += 1
        points = _points(axes, conditions)
        assert own.is_empty == (not points)
        asked = _compared(draw, axes)
        implied = own.implies(_condition(asked))
        assert implied in (None, all(_holds(asked, at) for at in points))
        wanted = draw.choice([axes[0], axes[1] - axes[2], axes[2] - axes[0] + 3, -axes[1]])
        most = own.maximum(wanted)
        assert most is None or most == max(evaluate_index(wanted, at) for at in points)
        answered += implied is not None and (most is not None or not points)
    assert known >= 15
    assert answered >= known // 4


@pytest.mark.parametrize("seed", range(10))
def test_sets_are_equal_where_their_points_are(seed: int) -> None:
    draw, equal = random.Random(seed), 0
    for _ in range(80):
        axes, conditions, own = _drawn(draw)
        more = [*conditions, _compared(draw, axes)]
        ranges = [c for a in axes for c in (0 <= a, a < a.hi)]
        other = differences(axes, [*ranges, *map(_condition, more)])
        if own is not None and other is not None and (same := own.is_equal(other)) is not None:
            assert same == (_points(axes, conditions) == _points(axes, more))
            equal += same
    assert equal > 5


def test_isl_is_asked_for_what_differences_do_not_say() -> None:
    i, j = Axis("i", 0, 8), Axis("j", 0, 8)
    points = IntegerSet([i, j], [i + j <= 6, i >= 3])
    assert differences([i, j], [i + j <= 6]) is None
    assert points.implies(j <= 3)
    assert not points.implies(j <= 2)
    assert int(points.maximum(i + j)) == 6  # type: ignore[arg-type]
    assert int(IntegerSet([i, j], [i <= j]).maximum(i + j)) == 14  # type: ignore[arg-type]


def test_what_depends_on_data_or_on_other_axes_constrains_nothing() -> None:
    i, other = Axis("i", 0, 8), Axis("o", 0, 4)
    assert differences([i], [i <= other]) is None
    assert int(IntegerSet([i], [i <= other]).maximum(i)) == 7  # type: ignore[arg-type]


def test_isl_reads_nothing_of_a_stencil(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IntegerSet, "_read", lambda *_: pytest.fail("isl is asked"))
    i, k = Axis("i", 0, 30), Axis("k", 0, 3)
    points = IntegerSet([i, k], [k <= i, i < k + 28])
    assert not points.is_empty()
    assert points.implies(i - k <= 27)
    assert not points.implies(i <= 28)
    assert int(points.maximum(i)) == 29  # type: ignore[arg-type]
    assert points.is_equal(IntegerSet([i, k], [i - k >= 0, i - k <= 27]))


def test_an_axis_that_is_given_twice_is_one() -> None:
    """Two sums of one definition may be over one axis: gradients of residuals over their slopes ended in an IndexError."""
    at, i, c = Axis("at", 0, 5), Axis("i", 0, 5), Axis("c", 0, 3)
    points = IntegerSet((at, i, c, c), [operator.eq(at, i)])
    assert points.implies(c < 3) and points.implies(at < 5) and points.covers((at,))


def test_epipolar_residuals_have_gradients() -> None:
    """Sums over one axis in both a residual and its slopes, of a matrix that a cross product makes."""

    def residuals(t: te.Tensor, turn: te.Tensor, p: te.Tensor, q: te.Tensor) -> te.Tensor:
        c, d, f = (te.reduce_axis((0, 3), name) for name in "cdf")
        e = lambda i, j: t[(i + 1) % 3] * turn[(i + 2) % 3, j] - t[(i + 2) % 3] * turn[(i + 1) % 3, j]  # noqa: E731
        E = te.compute((3, 3), e, "E")
        a = te.compute(p.shape, lambda n, i: te.sum(E[i, c] * p[n, c], axis=c), "a")
        b = te.compute(q.shape, lambda n, j: te.sum(E[d, j] * q[n, d], axis=d), "b")
        slopes = lambda n: a[n, 0] ** 2 + a[n, 1] ** 2 + b[n, 0] ** 2 + b[n, 1] ** 2  # noqa: E731
        return te.compute((p.shape[0],), lambda n: te.sum(q[n, f] * a[n, f], axis=f) ** 2 / slopes(n), "r")

    def plain(t: jax.Array, turn: jax.Array, p: jax.Array, q: jax.Array) -> jax.Array:
        E = jnp.stack([jnp.cross(t, turn[:, j]) for j in range(3)], 1)
        a, b = p @ E.T, q @ E
        return jnp.sum(q * a, 1) ** 2 / jnp.sum(a[:, :2] ** 2 + b[:, :2] ** 2, 1)

    rng = np.random.default_rng(3)
    args = [jnp.asarray(rng.standard_normal(s), "float32") for s in ((3,), (3, 3), (6, 3), (6, 3))]
    own, theirs = (
        jax.grad(lambda *a, f=f: jnp.sum(f(*a)), (0, 1, 2, 3))(*args) for f in (te.function(residuals), plain)
    )
    for ours, expected in zip(own, theirs, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4)
