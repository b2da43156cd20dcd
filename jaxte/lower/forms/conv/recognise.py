"""Convolutions, recognised from the integer sets of their indices.

``out[...] = sum of lhs(...) * rhs(...)`` is one ``lax.conv_general_dilated`` if its axes fall into

- spatial dimensions: an output axis ``t`` and a reduced axis ``z``, with one index ``x(t, z)`` of lhs and one index
  ``k(t, z)`` of rhs, that reach exactly the points of boxes on which ``alpha * x == gamma * t + beta * k + c``
  (see ``relation``): ``alpha`` is the dilation of lhs, ``gamma`` the stride, ``beta`` the dilation of rhs, and
  ``-c`` the padding in front. The signs are made positive by reading lhs, rhs or the output backwards;
- axes with a role of their own (see ``operands``): batch, feature, group and contracted ones.

It makes no difference which of these a person would call an image or a kernel: the adjoint for the image is a sum
over the taps that hit, with ``alpha`` the stride of the forward convolution, and the adjoint for the kernel is a
convolution of images whose batch is contracted, with ``beta`` that stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxte.algebra.product import Factor, product_of, taken_outside
from jaxte.lang.expr import ZERO, Axis, Expr, Reduce, conjuncts
from jaxte.lang.text import text
from jaxte.lang.walk import depends_on, free_axes, substitute
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.conv.spec import Match, Spatial
from jaxte.lower.match.affine_relation import is_implied, relate
from jaxte.lower.match.empty_sums import is_plain, spoils
from jaxte.lower.match.index_terms import Form, is_injective, tied_axes
from jaxte.lower.match.two_operands import Operand, split_axis, two_operands
from jaxte.lower.match.window_relation import is_digit, is_quasi_affine, relate_quasi_affine, relate_single
from jaxte.sets.affine import linear
from jaxte.sets.intervals import constant, nonnegative


@dataclass(frozen=True, slots=True)
class Problem:
    """A sum of products: ``outputs`` has for each output axis the axes that it was split into."""

    outputs: tuple[tuple[Axis, ...], ...]
    reduced: tuple[Axis, ...]
    factors: tuple[Factor, ...]
    guards: tuple[Expr, ...]

    @property
    def free(self) -> tuple[Axis, ...]:
        return tuple(axis for parts in self.outputs for axis in parts)

    @property
    def exprs(self) -> list[Expr]:
        return [*(f.expr for f in self.factors), *self.guards]


@dataclass(frozen=True, slots=True)
class Matched:
    """A reduction that is a convolution: what is matched, the factors outside of the sum, and all of the conditions."""

    match: Match
    outer: tuple[Factor, ...]
    guards: tuple[Expr, ...]


def match_convolution(axes: Sequence[Axis], node: Reduce, guards: Sequence[Expr] = ()) -> Matched | Refusal:
    """The convolution that ``node``, a reduction at each point of ``axes``, is.

    Args:
        axes: the output axes.
        node: the reduction.
        guards: conditions outside of which the element is 0. The specification accounts for them, since a
            convolution is 0 where no point is reached.
    """
    if not node.is_sum:
        return Refusal(f"{node.reducer.label} is no sum")
    if any(axis.extent is ZERO for axis in (*axes, *node.axes)):
        return Refusal("an axis without points")
    product = product_of(node.exprs[0], (*conjuncts(node.where), *guards))
    outer, inner = taken_outside(product.factors, node.axes)
    problem = Problem(tuple((a,) for a in axes), node.axes, tuple(inner), product.guards)
    while True:
        found = _match(problem)
        if not isinstance(found, Axis):
            break
        problem = _split(problem, found)
    if isinstance(found, Refusal):
        return found
    return Matched(found, tuple(outer), product.guards)


def _match(problem: Problem) -> Match | Axis | Refusal:
    """The operands and the role of every axis; an output axis that has to be split first; or a refusal."""
    operands = two_operands(problem.factors)
    if isinstance(operands, Refusal):
        return operands
    lhs, rhs = operands
    for one, other in ((lhs, rhs), (rhs, lhs)):
        tests = [f for f in one.factors if f.guard and not is_plain(other.factors)]
        if any(spoils(other.factors, test.expr) for test in tests):
            return Refusal(f"what {text(tests[0].expr)} excludes may be infinite in the other operand")
    if not any(len(form.axes) > 1 or is_quasi_affine(form) for form in (*lhs.forms, *rhs.forms)):
        return Refusal("no index that mixes an output axis with a reduced one")
    guards = [g for g in problem.guards if not is_implied(g)]
    spatial: list[Spatial] = []
    own: tuple[list[Expr], list[Expr]] = ([], [g for g in guards if not free_axes(g)])
    free = frozenset(problem.free)
    for axes in tied_axes(_joined(problem, (*lhs.forms, *rhs.forms), guards)):
        inside = [g for g in guards if depends_on(g, axes)]
        found = _spatial(problem, axes, lhs, rhs, inside)
        if isinstance(found, Spatial):
            spatial.append(found)
            continue
        if len(axes) > 1:
            split = next((a for a in axes if a in free and split_axis(a, problem.exprs)), None)
            if split is not None:
                return split
            here = frozenset(axes)
            mixed = [f for f in (*lhs.forms, *rhs.forms) if len(f.axes) > 1 and f.axes[0] in here]
            if not all(is_injective(form) for form in mixed):
                return found
        for guard in inside:
            sides = [n for n, o in enumerate((lhs, rhs)) if all(a in o.axes for a in free_axes(guard))]
            if not sides:
                return Refusal(f"the condition {text(guard)} is on the axes of no single operand")
            if any(n not in sides and spoils(o.factors, guard) for n, o in enumerate((lhs, rhs))):
                return Refusal(
                    f"what the condition {text(guard)} excludes may be infinite in the other operand"
                )
            for n in sides if spoils((*lhs.factors, *rhs.factors), guard) else sides[-1:]:
                own[n].append(guard)
    if all(s.z is None and is_digit(s.x) and is_digit(s.k) for s in spatial):
        return Refusal("no spatial dimension: every axis is contracted or carried along as it is")
    unused = [a for a in problem.reduced if a not in lhs.axes and a not in rhs.axes]
    if unused:
        return Refusal(f"nothing depends on {unused[0].name}")
    return Match(problem.outputs, problem.reduced, lhs, rhs, tuple(spatial), (tuple(own[0]), tuple(own[1])))


def _joined(problem: Problem, forms: Sequence[Form], guards: Sequence[Expr]) -> list[tuple[Axis, ...]]:
    groups: list[tuple[Axis, ...]] = [(axis,) for axis in (*problem.free, *problem.reduced)]
    groups += [form.axes for form in forms]
    return groups + [tuple(free_axes(guard)) for guard in guards if free_axes(guard)]


def _spatial(
    problem: Problem, axes: tuple[Axis, ...], lhs: Operand, rhs: Operand, guards: Sequence[Expr]
) -> Spatial | Refusal:
    """The spatial dimension that ``axes`` are, if they are one."""
    here, given = frozenset(axes), frozenset(problem.free)
    free = [a for a in axes if a in given]
    reduced = [a for a in axes if a not in given]
    x = [f for f in lhs.forms if f.axes[0] in here]
    k = [f for f in rhs.forms if f.axes[0] in here]
    names = ", ".join(a.name for a in axes)
    if len(free) == len(axes) == len(x) == len(k) == 1:
        single = relate_single(free[0], x[0], k[0], guards)
        return single if isinstance(single, Refusal) else Spatial(free[0], None, x[0], k[0], single)
    if not len(free) == len(reduced) == 1 == len(axes) - 1 or not len(x) == len(k) == 1:
        return Refusal(f"the indices that mix {names} are not those of one spatial dimension")
    relation = relate(free[0], reduced[0], x[0], k[0], guards)
    if isinstance(relation, Refusal) and (is_quasi_affine(x[0]) or is_quasi_affine(k[0])):
        relation = relate_quasi_affine(free[0], reduced[0], x[0], k[0], guards)
    if isinstance(relation, Refusal):
        return relation
    operands = ((relation.alpha, relation.x_range), (relation.beta, relation.k_range))
    if any(step not in (1, -1) and _may_be_empty(size.size) for step, size in operands):
        return Refusal(
            "for some sizes there is nothing of what zeros are laid between, which lax counts as no position"
        )
    return Spatial(free[0], reduced[0], x[0], k[0], relation)


def _split(problem: Problem, axis: Axis) -> Problem:
    """``axis`` taken apart into quotient and remainder, as grouped convolutions do with their features."""
    split = split_axis(axis, problem.exprs)
    assert split is not None
    table, parts = split
    outputs = tuple(tuple(n for a in own for n in (parts if a is axis else (a,))) for own in problem.outputs)
    factors = tuple(replace(f, expr=substitute(f.expr, table)) for f in problem.factors)
    return Problem(outputs, problem.reduced, factors, tuple(substitute(g, table) for g in problem.guards))


def _may_be_empty(size: Expr) -> bool:
    return not nonnegative(linear(size) - constant(1))
