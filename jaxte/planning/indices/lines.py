"""Expensive weights that one number decides: a tensor over that number, computed once for each of its values.

    sum over s of 0.97 ** (s - t) * r[b, s]            is   sum over s of L[s - t] * r[b, s]     with   L[d] = 0.97 ** d
    sum over k of exp(-a[h] * abs(i - k)) * x[k, h]    is   sum over k of L[h, i - k] * x[k, h]  with   L[h, d] = exp(-a[h] * abs(d))

A power or an exponential of ``s - t`` has as many values as ``s - t`` takes where the sum has terms, not one for each pair. What is left is
a convolution, or a product with a matrix that repeats a line. All factors that one number decides are one line, with what they read at other axes; where
another factor is left on the axes of the number, the line is laid out to meet it, and functions are computed at each point where that takes less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from jaxte.algebra.product import Factor, Product, multiplied, product_of
from jaxte.algebra.sums import function_times
from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Call, Expr, Read, Reduce, cast, conjunction
from jaxte.lang.graphs import among
from jaxte.lang.limits import FAR_FEWER, MANY_OPERATIONS, MARGIN
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.terms import term_bounds
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import Term, is_index, term_of
from jaxte.sets.intervals import extent
from jaxte.sets.linear import Linear
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.tensor import Compute


class Line(Compute):
    """The values of weights over the number that decides them."""

    __slots__ = ()


@dataclass(frozen=True)
class _Weight:
    """A factor that a number decides.

    Attributes:
        factor: what it is.
        term: the number.
        times: the largest parts of the factor that the number decides, with what it is multiplied by in each.
        others: the axes that the factor depends on beside those of the number.
    """

    factor: Factor
    term: Term
    times: Mapping[Expr, int]
    others: tuple[Axis, ...]

    def at(self, table: Mapping[Axis, Axis], own: Linear) -> Factor:
        """The factor by the axes in ``table``, where its number is ``own``."""
        parts = {i: from_linear(own * n + Linear({}, linear(i).constant)) for i, n in self.times.items()}
        return replace(self.factor, expr=substitute(self.factor.expr, {**parts, **table}))


def with_lines(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node`` with such weights as reads of lines; as it is where it has none.

    Args:
        node: a sum.
        axes: those of the definition in which it stands.
        name: what the lines are called after.
    """
    product = product_of(node.exprs[0], [node.where])
    found = _lines(node, product, axes, name)
    if not found:
        return node
    factors = list(product.factors)
    for taken, read in found:  # in the place of the first of them
        at = min(n for n, f in enumerate(factors) if among(f, taken))
        rest = [f for f in factors if not among(f, taken)]
        factors = [*rest[:at], Factor(read), *rest[at:]]
    body = cast(multiplied([f for f in factors if not f.guard]), node.exprs[0].dtype)
    where = conjunction([*product.guards, *(f.expr for f in factors if f.guard)])
    return node.changed(exprs=(body,), where=where)


def on_lines(node: Reduce) -> list[Expr]:
    """The factors of ``node`` that are read of lines."""
    product = product_of(node.exprs[0], [node.where])
    return [factor.expr for own, _ in _lines(node, product, (), "") for factor in own]


def _lines(
    node: Reduce, product: Product, axes: Sequence[Axis], name: str
) -> list[tuple[list[Factor], Read]]:
    """The factors that each line stands for, with a read of it."""
    if not node.is_sum:
        return []
    groups: dict[Term, list[_Weight]] = {}
    for factor in product.factors:
        if not factor.guard and (own := _weight(factor, groups)) is not None:
            groups.setdefault(own.term, []).append(own)
    found = [(own, _line(own, product, axes, node.exprs[0].dtype, name)) for own in groups.values()]
    return [([w.factor for w in own], read) for own, read in found if read is not None]


def _weight(factor: Factor, known: Iterable[Term]) -> _Weight | None:
    """``factor`` as one that a number decides, which is one of ``known`` if it can be; None where that is not so."""
    times: dict[Expr, int] = {}
    found: dict[Term, None] = {}
    others: dict[Axis, None] = {}
    for index in _indices(factor.expr):
        form = linear(index)
        if len(form.terms) < 2:
            others |= dict.fromkeys(free_axes(index))
            continue
        term, times[index] = term_of(form - Linear({}, form.constant), [*found, *known])
        found[term] = None
    if len(found) != 1:
        return None
    (term,) = found
    own = free_axes(from_linear(term.form))
    read = {a for r in reads_of(factor.expr) for a in free_axes(r)}
    if any(among(a, own) for a in (*others, *read)) or any(a.lo is not ZERO for a in others):
        return None
    return _Weight(factor, term, times, tuple(others))


def _indices(root: Expr) -> list[Expr]:
    """The largest parts of ``root`` that are affine in axes."""
    found: dict[Expr, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if not free_axes(node):
            continue
        if is_index(node) and all(isinstance(atom, Axis) for atom in linear(node).terms):
            found[node] = None
        else:
            stack += node.children
    return list(found)


def _line(
    group: Sequence[_Weight], product: Product, axes: Sequence[Axis], dtype: str, name: str
) -> Read | None:
    """A read of the line of ``group``; None where it has about as many values as there are points, or takes more than it saves."""
    term, taken = group[0].term, [w.factor for w in group]
    nodes = dict.fromkeys(postorder(*(f.expr for f in taken)))
    functions = sum(function_times(n) for n in nodes if isinstance(n, Call) and _is_expensive(n))
    conditions = (*product.guards, *(f.expr for f in product.factors if f.guard))
    bounds = term_bounds([term], conditions)[term] if functions else None
    if bounds is None:
        return None
    low, count = bounds[0], bounds[1] - bounds[0] + 1
    mixed, others = free_axes(from_linear(term.form)), list(dict.fromkeys(a for w in group for a in w.others))
    points, costs = prod(map(extent, mixed)), intermediates()
    if (
        not 0 < count * FAR_FEWER <= points
        or points * prod(map(extent, others)) * MANY_OPERATIONS < costs.loop
    ):
        return None
    rest = [f.expr for f in product.factors if not f.guard and not among(f, taken)]
    meets = any(all(depends_on(e, (a,)) for a in mixed) for e in rest)
    if meets and functions * costs.function < MARGIN * costs.element:
        return None
    axis = Axis("d", 0, count)
    table = {a: Axis(a.name, 0, a.hi) for a in others}
    values = [w.at(table, linear(axis) + Linear({}, low)) for w in group]
    place: dict[Axis, Expr] = {
        axis: from_linear(term.form - Linear({}, low)),
        **{table[a]: a for a in others},
    }
    order = sorted(
        place, key=lambda own: min((n for n, a in enumerate(axes) if depends_on(place[own], (a,))), default=0)
    )
    value = cast(multiplied(values), dtype)
    if not reads_inside(order, value):
        return None
    return Read(Line(f"{name}_line", order, value), [place[own] for own in order])


def _is_expensive(node: Call) -> bool:
    return dtypes.is_inexact(node.dtype) and not TABLE[node.op.name].cheap
