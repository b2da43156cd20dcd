"""Integer solvers against enumeration of the points."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Axis, Expr, Var, as_expr
from jaxte.sets.linear import Linear
from jaxte.sets.solving import pinning
from jaxte.sets.solving.pinning import pins
from jaxte.sets.solving.solve import simplify_domain, solve_linear_equations, solve_linear_inequalities
from jaxte.sets.tabulate import evaluate_index
from jaxte.sets.transformation import Domain, DomainTransformation

coefficients = st.integers(-4, 4)


@st.composite
def systems(draw: st.DrawFn) -> Domain:
    """Boxes of up to three variables with up to three affine or quasi-affine conditions."""
    axes = [
        Axis(name, draw(st.integers(-2, 1)), draw(st.integers(1, 5)))
        for name in "xyz"[: draw(st.integers(1, 3))]
    ]

    def form() -> Expr:
        total: Expr = as_expr(draw(st.integers(-5, 5)))
        for axis in axes:
            total = total + draw(coefficients) * axis
        kind = draw(st.sampled_from(["", "", "//", "%"]))
        divisor = draw(st.integers(2, 4))
        return total // divisor if kind == "//" else total % divisor if kind == "%" else total

    conditions = []
    for _ in range(draw(st.integers(0, 3))):
        relation = draw(st.sampled_from(["==", "==", "<=", "<", ">="]))
        left, right = form(), as_expr(draw(st.integers(-4, 8)))
        conditions.append(
            {"==": left == right, "<=": left <= right, "<": left < right, ">=": left >= right}[relation]
        )
    return Domain(axes, conditions)


def brute_force(domain: Domain) -> list[tuple[int, ...]]:
    ranges = [range(int(v.lo), int(v.hi)) for v in domain.variables]
    found = []
    for point in itertools.product(*ranges):
        at = dict(zip(domain.variables, point, strict=True))
        if all(holds(c, at) for c in domain.conditions):
            found.append(point)
    return found


def holds(condition: Expr, at: dict[Expr, int]) -> bool:
    if not hasattr(condition, "args"):
        return bool(condition)
    left, right = (evaluate_index(a, at) for a in condition.args)
    return {
        "equal": left == right,
        "less": left < right,
        "less_equal": left <= right,
        "greater": left > right,
        "greater_equal": left >= right,
    }[condition.op.name]


def assert_bijection(transformation: DomainTransformation) -> None:
    old, new = transformation.old, transformation.new
    expected = brute_force(old)
    mapped = []
    for point in new.points() if not transformation.is_empty else []:
        at = dict(zip(new.variables, point, strict=True))
        back = tuple(evaluate_index(transformation.old_to_new[v], at) for v in old.variables)
        mapped.append(back)
        there = dict(zip(old.variables, back, strict=True))
        again = tuple(evaluate_index(transformation.new_to_old[v], there) for v in new.variables)
        assert again == point
    assert sorted(mapped) == expected


@given(systems())
def test_points_are_those_of_the_conditions(domain: Domain) -> None:
    assert list(domain.points()) == brute_force(domain)


@given(systems())
def test_simplified_domain_has_the_same_points(domain: Domain) -> None:
    assert_bijection(simplify_domain(domain))


@given(systems())
def test_solved_equations_have_the_same_points(domain: Domain) -> None:
    assert_bijection(solve_linear_equations(domain.conditions, domain.variables))


@given(systems())
def test_bounds_hold_at_every_point(domain: Domain) -> None:
    bounds = solve_linear_inequalities(domain.conditions, domain.variables)
    for point in brute_force(domain):
        at = dict(zip(domain.variables, point, strict=True))
        for variable, value in at.items():
            assert all(evaluate_index(low, at) <= value for low in bounds[variable].lower)
            assert all(value <= evaluate_index(high, at) for high in bounds[variable].upper)


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("taps", [1, 2, 3, 5, 7])
def test_strided_window_needs_no_more_than_its_share_of_taps(stride: int, taps: int) -> None:
    y, k, a = Axis("y", 0, 20), Axis("k", 0, taps), Axis("a", 0, 19 * stride + taps)
    found = simplify_domain(Domain([y, k], [stride * y + k == a]))
    points = 1
    for axis in found.new.variables:
        points *= int(axis.hi) - int(axis.lo)
    assert points == -(-taps // stride)


def test_fewer_candidates_are_kept() -> None:
    """For a = 2y + 3k with few y, one candidate remains when it is solved for the right variable."""
    y, k, a = Axis("y", 0, 3), Axis("k", 0, 100), Axis("a", 0, 300)
    found = simplify_domain(Domain([y, k], [2 * y + 3 * k == a]))
    assert found.new.variables == ()


def test_what_is_pinned_is_looked_for_once_in_each_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """``i == 6 * a + 2 * b + c`` by ranges alone: ``a`` and ``b`` are pinned in either order, beginning with each."""
    i, c = Axis("i", 0, 36), Axis("c", 0, 2)
    a, b = Axis("a", 0, 9), Axis("b", 0, 9)
    asked = list[tuple[object, ...]]()

    def counted(variables: tuple[Expr, ...], forms: list[Linear]) -> Iterator[tuple[Expr, Linear]]:
        asked.append((*variables, *(form.key for form in forms)))
        return pins(variables, forms)

    monkeypatch.setattr(pinning, "pins", counted)
    found = simplify_domain(Domain([i, a, b, c], [i == 6 * a + 2 * b + c, b < 3, i // 3 == a + b]))
    assert found is not None and len(asked) > 1
    assert len(set(asked)) == len(asked)


def test_band_is_deskewed() -> None:
    i, j = Axis("i", 0, 100), Axis("j", 0, 100)
    found = simplify_domain(Domain([i], [i <= j + 2, j <= i + 2]))
    (axis,) = found.new.variables
    assert (int(axis.lo), int(axis.hi)) == (0, 5)


def test_symbolic_sizes() -> None:
    n = Var("n")
    t, k, a = Axis("t", 0, n), Axis("k", 0, 3), Axis("a", 0, n + 2)
    found = simplify_domain(Domain([t, k], [t + k == a]))
    (axis,) = found.new.variables
    assert int(axis.hi) == 3


def test_contradiction_is_empty() -> None:
    x, y = Var("x"), Var("y")
    assert simplify_domain(Domain([x, y], [x + y == 20], {x: (0, 5), y: (0, 5)})).is_empty
    assert solve_linear_equations([2 * x == 3], [x], {x: (0, 5)}).is_empty


def test_deskewed_inequalities() -> None:
    x, y = Var("x"), Var("y")
    found = solve_linear_inequalities([x <= y, y <= x + 2], [x, y], {x: (0, 9), y: (0, 9)}, deskew=True)
    assert sorted(found.new.points()) and len(list(found.new.points())) == len(list(found.old.points()))


def test_errors_name_the_remedy() -> None:
    x = Var("x")
    with pytest.raises(DefinitionError, match="unbounded"):
        Domain([x], [x >= 0]).points()
    with pytest.raises(
        DefinitionError, match="depends on n, which it does not list; list each as a variable"
    ):
        Domain([x], [x >= 0, x < Var("n")]).points()
    with pytest.raises(DefinitionError, match="depends on n, which"):
        Domain([Axis("i", 0, Var("n"))]).points()
    with pytest.raises(DefinitionError, match="half-open"):
        Domain([x], [], {x: 5})
    with pytest.raises(DefinitionError, match="predicate"):
        Domain([x], [x + 1], {x: (0, 5)})


def test_a_domain_whose_ends_are_choices_among_sizes_stays_as_it_is():
    n = te.var("n", at_least=4)
    v = te.reduce_axis((0, n), "v")
    conditions = [(v + 1) % 2 == 0, (v + 1) // 2 < 4]
    found = simplify_domain(Domain([v], conditions))
    assert not found.solved
    assert repr(found.new) == repr(found.old)
