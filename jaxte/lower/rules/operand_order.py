"""The order of the operands of an einsum, and of their dimensions, in which XLA copies least."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import Axis, Expr
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import NARROW
from jaxte.lang.walk import free_axes, reads_data, reads_of
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import points
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import dims_of, extent_of


def in_good_order(values: Sequence[Value], out: Sequence[Axis], turns: bool) -> Sequence[Value]:
    """``values``, whose product is over ``out``, in the order in which XLA copies least of two operands; ``turns`` where it is XLA on the CPU."""
    if len(values) != 2:
        return values
    for vector, other in (values, values[::-1]):
        at_first = _summed_first(vector, other, out)
        if at_first is not None:
            return [vector, other] if at_first is _is_in_order(vector, other, out) else [other, vector]
    for lies, other in (values, values[::-1]) if turns else ():
        if _lies_as_second(lies, other, out) and not _lies_as_second(other, lies, out):
            return [lies, other]
    return _small_first(values, out)


def _lies_as_second(value: Value, other: Value, out: Sequence[Axis]) -> bool:
    """Whether ``value`` lies as the second operand of matrices for each element has to, what is summed in front of its own, where the product is in no order of ``out``.

    XLA on the CPU turns such a product around before it copies it into that order, so that it is the second one if it is written first. Otherwise it is the first, with what is summed in
    front, and the routine for many small matrices does not take it: 26 random products take 0.55 to 1.02 of the time, and none more.
    """
    both = [d for d in out if among(d, value.dims) and among(d, other.dims)]
    summed = [d for d in value.dims if not among(d, out)]
    alone, theirs = ([d for d in v.dims if among(d, out) and not among(d, both)] for v in (value, other))
    if not (both and summed and alone and theirs) or not identical(value.dims, (*both, *summed, *alone)):
        return False
    return not any(
        identical((*both, *one, *two), tuple(out)) for one, two in ((alone, theirs), (theirs, alone))
    )


def _summed_first(vector: Value, other: Value, out: Sequence[Axis]) -> bool | None:
    """Whether ``other`` has the dimensions that are summed over in front of those that only it has, or behind them.

    None where they stand otherwise, where ``vector`` is a matrix, or ``other`` is. The first operand of a product of matrices has what is
    summed behind, the second one in front. XLA on the CPU copies what has it in the other place, matrices excepted. A vector may be either. Matrices of which
    there is one for each element of a dimension behind are copied in any case, and in the order that they have the copy is the same for sums over either side.
    """
    summed = [d for d in vector.dims if not among(d, out)]
    left = [d for d in other.dims if not (among(d, out) and among(d, vector.dims))]
    is_matrix = len(left) < 2 or (len(left) == 2 and identical(tuple(left), other.dims[-2:]))
    if not summed or is_matrix or any(among(d, out) and not among(d, other.dims) for d in vector.dims):
        return None
    if set(left[: len(summed)]) == set(summed):
        return True
    return False if set(left[-len(summed) :]) == set(summed) else None


def _is_in_order(vector: Value, other: Value, out: Sequence[Axis]) -> bool:
    """Whether the product has its dimensions in the order of ``out``: ``jnp.einsum`` multiplies the operands as they are written then, and the other way round otherwise."""
    both = [d for d in out if among(d, vector.dims)]
    return identical((*both, *(d for d in other.dims if among(d, out) and not among(d, both))), tuple(out))


def _small_first(values: Sequence[Value], out: Sequence[Axis]) -> Sequence[Value]:
    """Two ``values``, the one of fewer elements first, where the product of matrices has its dimensions in another order than ``out``.

    The dimensions of the larger operand are those that change fastest in that product then, and the copy that brings it into order moves rows. (A layer in
    tensor-train form takes half of the time, forward and backward.)
    """
    dims = [set(v.dims) for v in values]
    both = [d for d in out if all(d in own for own in dims)]
    alone = [[d for d in v.dims if among(d, out) and not among(d, both)] for v in values]
    given = [(*both, *alone[0], *alone[1]), (*both, *alone[1], *alone[0])]
    summed = prod(extent_of(d.hi) for d in dims[0] & dims[1] if not among(d, out))
    if summed < NARROW or not all(alone) or any(identical(order, tuple(out)) for order in given):
        return values
    sizes = [prod(extent_of(d.hi) for d in v.dims) for v in values]
    return [values[1], values[0]] if sizes[1] < sizes[0] else values


def operand_order(body: Body, expr: Expr, scope: Scope, reduced: Sequence[Axis]) -> tuple[Axis, ...]:
    """The dimensions in the order in which what is reduced is written: of the largest read, or where copies in another order are dear, of as many as agree.

    Of as many as agree also where sums are no part of the loop that computes what they are of, and those that are ``reduced`` would stand behind a
    dimension that is kept: ``p[i, k]`` and ``q[j, k]`` are read as they lie, and summed in vectors, as ``i, j, k``.
    """
    if body.policy.facts.copies_transposed:
        return agreed_order(expr, scope)
    order = natural_order(expr, scope)
    if body.policy.facts.fuses_products:
        return order
    own = scope.dims_under(expr)
    last = [d for d in order if among(d, own)][-1:]
    if last and among(last[0], reduced) and not all(among(d, reduced) for d in own):
        agreed = agreed_order(expr, scope)
        return order if among([d for d in agreed if among(d, own)][-1], reduced) else agreed
    return order


def agreed_order(expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions in an order in which all reads have theirs, ``i, j, k`` for ``h[i, k]``, ``g[j, k]`` and ``H[i, j]``; where some contradict
    others, in that of the larger ones.
    """
    wanted = _orders_of_reads(expr, scope)
    before: dict[Axis, set[Axis]] = {d: set() for d in scope.order}
    for dims in sorted(wanted, key=lambda dims: -points(dims)):
        if any(later in before[d] for n, d in enumerate(dims) for later in dims[n + 1 :]):
            continue
        for n, d in enumerate(dims):
            later = set(dims[n + 1 :])
            for follows in [a for a, own in before.items() if a in later or not later.isdisjoint(own)]:
                before[follows] |= {d, *before[d]}
    found: dict[Axis, None] = {}
    left = natural_order(expr, scope)
    while len(found) < len(left):
        found[next(d for d in left if d not in found and before[d] <= found.keys())] = None
    return tuple(found)


def _orders_of_reads(expr: Expr, scope: Scope) -> list[tuple[Axis, ...]]:
    """The dimensions of each read of several, in the order in which its tensor has them."""
    reduced_first = scope.arranged(scope.order[::-1])
    views = [reduced_first.view(r) for r in reads_of(expr) if not any(map(reads_of, r.indices))]
    orders = [tuple(d for d in v.dims if among(d, scope.order)) for v in views if not isinstance(v, Refusal)]
    return [dims for dims in dict.fromkeys(orders) if len(dims) > 1]


def natural_order(expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions in the order in which the largest read has them, so that it need not be transposed.

    Where no read has any, as in ``sin(w[0] * t * h)``, in that of the expression: all who need it compute the same array, which XLA does once. The
    axes of a reduction within ``expr`` are not among them yet. Beside reads at positions that are data, vectors say nothing: such elements are summed
    along rows (over the first of three dimensions, a stack of interpolated traces takes four times as long).
    """
    at_data = reads_data(expr)
    best: tuple[Axis, ...] = ()
    reduced_first = scope.arranged(scope.order[::-1])  # as rows, whose sums are sums of vectors
    for read in reads_of(expr):
        if any(reads_of(i) for i in read.indices):
            continue
        found = reduced_first.view(read)
        if not isinstance(found, Refusal):
            dims = tuple(d for d in found.dims if among(d, scope.order))
            best = dims if len(dims) > max(len(best), at_data) else best
    if not best and at_data:
        return scope.order
    if not best:
        met = (d for axis in free_axes(expr) for d in dims_of(scope.table.get(axis, axis)))
        best = tuple(d for d in dict.fromkeys(met) if among(d, scope.order))
    return (*best, *(d for d in scope.order if not among(d, best)))
