"""A sum of products, one axis after the other: which axes to sum first, and the tensors in between.

    sum over k, m of g[k] * g[m] * x[i + k, j + m]   is   sum over k of g[k] * T[i + k, j]
    with                                                  T[p, j] = sum over m of g[m] * x[p, j + m]

This is the elimination of variables that paths of einsum are made of, over index terms in place of axes (see :mod:`jaxte.planning.terms`): an intermediate
is a tensor over the terms that are left when the summed axes are gone. Products of arrays at plain axes are left to ``jnp.einsum``, which has
such a search of its own. Of 16-bit numbers, all sums but the last are kept in float32, so that the whole is rounded
once, but where they have units of their own.

What is computed of elements at one position that mixes axes is summed along whole dimensions of it first:

    sum over b, i of d[b, i, i - j + n - 1]    is    sum over i of s[i, i - j + n - 1]    with    s[i, k] = sum over b of d[b, i, k]

The gradient of a table of biases is such a sum: positions are turned into those of the table, by a mask or a copy of all of them, for each element of a batch. Summed
first, they are so once.

What choices do not depend on is summed inside of them, by products of matrices in place of a choice at every point:

    sum over k, o of select(x[b, i] < k, -(g[b, o] * c[i, o, k]), g[b, o] * c[i, o, k]) where abs(x[b, i] - k) < 1
    is   sum over k of select(x[b, i] < k, -1, 1) * T[b, i, k] where abs(x[b, i] - k) < 1   with   T[b, i, k] = sum over o of g[b, o] * c[i, o, k]

The derivative of a function with kinks is such a choice. It has no value to give for ``o``, so ``o`` is summed first, and the choice is made of the results, a
fraction of the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.algebra.product import (
    Factor,
    Product,
    in_common,
    is_zero,
    may_be_infinite,
    multiplied,
    product_of,
    without,
)
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, call, cast, conjunction
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import FEW_POSITIONS, FEWER, LEVELS, MARGIN
from jaxte.lang.operators import EQUAL, SELECT
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.orders.contraction_search import Search, Step, Sum, remaining, tensor_of
from jaxte.sets.affine import linear
from jaxte.sets.conditions import tidy
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent, known, reach
from jaxte.tensors.reducers import builtin_reducer, is_rounded, with_wide_reads
from jaxte.tensors.structure import PartialSum

EXACT = ("float32", "float64", "complex64", "complex128")  # sums of others would be rounded once more


def planned_sum(
    node: Reduce, axes: Sequence[Axis], guards: Sequence[Expr], name: str, parts: Sequence[PartialSum] = ()
) -> Expr:
    """``node``, or the same from partial sums, which are tensors of their own.

    Args:
        node: a reduction over the points of ``axes`` where ``guards`` hold.
        name: what the tensors are called after.
        parts: those of all sums of the graph.
    """
    if not node.is_sum or not node.axes:
        return node
    if node.dtype in EXACT:
        return _planned(node, axes, guards, name, parts)
    wide = with_wide_reads(node)
    if wide is None or (intermediates().narrow and not is_rounded(node)):
        return node
    found = _planned(wide, axes, guards, name)
    return node if found is wide and not is_rounded(node) else cast(found, node.dtype)


def _planned(
    node: Reduce, axes: Sequence[Axis], guards: Sequence[Expr], name: str, parts: Sequence[PartialSum] = ()
) -> Expr:
    node = with_batches_first(node, name)
    product = product_of(node.exprs[0], [node.where])
    shared = with_shared_branches(product)
    search, whole = Search(axes, guards, name, parts, as_read=True), _whole(shared, node)
    inside = search.step_over(whole, summed_inside(shared, node))
    if inside is not None and (found := _written(search, whole, [inside], node, name)) is not node:
        return found
    if not _may_gain(product, node):
        return node
    search, whole = Search(axes, guards, name, parts), _whole(product, node)
    steps = search.best(whole)
    return _written(search, whole, steps, node, name) if steps else node


def _whole(product: Product, node: Reduce) -> Sum:
    return Sum(tuple(f for f in product.factors if not f.guard), node.axes, _conditions(product))


def _conditions(product: Product) -> tuple[Expr, ...]:
    return tuple(map(_about_less, (*product.guards, *(f.expr for f in product.factors if f.guard))))


def _about_less(condition: Expr) -> Expr:
    """``condition`` without the axes that it mentions and does not depend on, as ``l`` in ``(i + 2 * l) % 2 == 0``: it is one on the result then."""
    own = tidy(condition)
    return own if len(own.free) < len(condition.free) else condition


def _may_gain(product: Product, node: Reduce) -> bool:
    """Whether there are several factors, with an index that is more than an axis, or one that meets the same elements again and again."""
    several = [f for f in product.factors if not f.guard and free_axes(f.expr)]
    if not several or any(map(_is_data_equation, _conditions(product))):
        return False
    indices = [i for f in several for read in reads_of(f.expr) for i in read.indices]
    if len(several) == 1:
        return any(_meets_again(i, node.axes) for i in indices)
    plain = all(isinstance(i, (Axis, Const)) for i in indices)
    return not (plain and not _conditions(product))


def _meets_again(index: Expr, axes: Sequence[Axis]) -> bool:
    """Whether ``index`` has the same value at many points of ``axes``, as ``i + k + l + m`` has."""
    own = [a for a in axes if depends_on(index, (a,))]
    ends = reach(linear(index)) if len(own) > 2 and is_index(index) else None
    others = reach(linear(substitute(index, {a: a.lo for a in own}))) if ends is not None else None
    if ends is None or others is None:
        return False
    values = ends[1] - ends[0] - (others[1] - others[0]) + 1
    # Points at which one element is met that a sum of one factor is planned for.
    return prod(map(extent, own)) >= FEWER * values


def _is_data_equation(condition: Expr) -> bool:
    """Whether ``condition`` says where a value goes: such a sum visits each value once, whatever its axes are."""
    return isinstance(condition, Call) and condition.op is EQUAL and bool(reads_of(condition))


def _written(search: Search, whole: Sum, steps: Sequence[Step], node: Reduce, name: str) -> Expr:
    """``whole`` by ``steps``; as it was where an intermediate would read what is not there."""
    current = whole
    for planned in steps:
        step = search.step_over(current, planned.own.axes)
        if step is None or not search.may_leave(current, step.own):
            return node
        part = tensor_of(step, node.dtype, name) if step.known is None else step.known
        if part is None:
            return node
        current = remaining(current, step, Read(part, [c.position for c in step.coordinates.order]))
    if not current.axes:
        value = multiplied(current.factors, current.conditions)
    else:
        body = multiplied(current.factors)
        value = Reduce(
            builtin_reducer("sum", node.dtype),
            (cast(body, node.dtype),),
            current.axes,
            conjunction(current.conditions),
        )
    return value if value.dtype == node.dtype and not value.weak else cast(value, node.dtype)


def with_batches_first(node: Reduce, name: str) -> Reduce:
    """``node``, or a sum of the same elements of a partial sum, which is called after ``name``."""
    reads = reads_of(*node.exprs)
    if not node.is_sum or not reads or node.exprs[0].dtype != node.dtype or node.exprs[0].reduces:
        return node
    read = reads[0]  # all that is computed is of elements at one position
    if not all(
        identical(r.indices, read.indices) and identical(r.tensor.shape, read.tensor.shape) for r in reads[1:]
    ):
        return node
    alone = {n: a for n, a in enumerate(read.indices) if isinstance(a, Axis) and _is_alone(a, n, read, node)}
    others = [i for n, i in enumerate(read.indices) if n not in alone]
    if not alone or not any(len(free_axes(i)) > 1 for i in others) or not _gains(read, alone, node):
        return node
    axes = [Axis(f"p{n}", 0, e) for n, e in enumerate(read.tensor.shape) if n not in alone]
    summed = {n: Axis(a.name, a.lo, a.hi, reduction=True) for n, a in alone.items()}
    kept = iter(axes)
    place = [summed[n] if n in summed else next(kept) for n in range(len(read.indices))]
    element = substitute(node.exprs[0], {r: Read(r.tensor, place) for r in reads})
    if any(not among(a, place) for a in free_axes(element)):
        return node
    label = "_".join(a.name for a in alone.values())
    total = node.changed(exprs=(element,), axes=tuple(summed.values()), where=TRUE)
    left = tuple(a for a in node.axes if not among(a, list(alone.values())))
    part = PartialSum(f"{name}_over_{label}", axes, total)
    return node.changed(exprs=(Read(part, others),), axes=left)


def _is_alone(axis: Axis, place: int, read: Read, node: Reduce) -> bool:
    """Whether ``axis`` is summed over, along the whole of its dimension, and nothing else depends on it."""
    others = [i for n, i in enumerate(read.indices) if n != place]
    size = read.tensor.shape[place]
    return (
        among(axis, node.axes)
        and known(axis.lo) == 0
        and isinstance(size, int)
        and known(axis.extent) == size
        and not any(depends_on(e, (axis,)) for e in (*others, node.where))
    )


def _gains(read: Read, alone: dict[int, Axis], node: Reduce) -> bool:
    """Whether the tensor and what is left have fewer points than the sum."""
    shape = read.tensor.shape
    if not all(isinstance(e, int) for e in shape) or any(
        known(a.extent) is None for a in (*free_axes(node), *node.axes)
    ):
        return False
    costs = intermediates()
    whole = prod(map(extent, (*free_axes(node), *node.axes)))
    if not whole:
        return False  # a sum of no points
    kept = prod(e for n, e in enumerate(shape) if n not in alone and isinstance(e, int))
    first = prod(e for e in shape if isinstance(e, int)) + kept * costs.element + costs.loop
    return whole >= MARGIN * (first + whole / prod(extent(a) for a in alone.values()))


def with_shared_branches(product: Product) -> Product:
    """``product`` with what all branches of a choice are multiplied by as factors beside it."""
    found: list[Factor] = []
    for factor in product.factors:
        choice = factor.expr
        if factor.inverse or not (isinstance(choice, Call) and choice.op is SELECT):
            found.append(factor)
            continue
        found += _shared(choice, LEVELS)
    return Product(tuple(found), product.guards)


def _shared(choice: Call, deepest: int) -> list[Factor]:
    """``choice`` as a product: what is left of it, and what its branches have in common."""
    test, *branches = choice.args
    parts = [_factors(branch, deepest - 1) for branch in branches]
    if any(is_zero(branch) for branch in branches):
        (rest,) = [p for branch, p in zip(branches, parts, strict=True) if not is_zero(branch)] or [[]]
        shared = [f for f in rest if isinstance(f.expr, Read) and not may_be_infinite(f)]
    else:
        shared = [f for f in in_common(parts) if free_axes(f.expr)]
    if not shared:
        return [Factor(choice)]
    left = [
        branch if is_zero(branch) else multiplied(without(own, shared))
        for branch, own in zip(branches, parts, strict=True)
    ]
    return [Factor(call(SELECT, test, *left)), *shared]


def _factors(expr: Expr, deepest: int) -> list[Factor]:
    found: list[Factor] = []
    for factor in product_of(expr, whole=True).factors:
        inner = factor.expr
        nested = isinstance(inner, Call) and inner.op is SELECT and not factor.inverse and deepest > 0
        found += _shared(inner, deepest) if nested and isinstance(inner, Call) else [factor]
    return found


def summed_inside(product: Product, node: Reduce) -> tuple[Axis, ...]:
    """The axes of ``node`` that no choice of ``product`` depends on, if what is summed over them is a product of matrices; none otherwise."""
    choices = [f.expr for f in product.factors if f.guard or _is_choice(f.expr)]
    if not choices or not dtypes.is_inexact(node.dtype):
        return ()
    tests = [*choices, *product.guards]
    inside = tuple(
        a
        for a in node.axes
        if not depends_on(node.where, (a,)) and not any(depends_on(e, (a,)) for e in tests)
    )
    own = [f for f in product.factors if depends_on(f.expr, inside)]
    if len(inside) in (0, len(node.axes)) or prod(map(extent, inside)) < FEW_POSITIONS:
        return ()
    outer = {a for f in own for a in free_axes(f.expr)} - set(inside)
    # each operand lacks an axis that another one has, so that what they are summed to is a product of matrices
    return inside if own and all(outer - set(free_axes(f.expr)) for f in own) else ()


def _is_choice(expr: Expr) -> bool:
    return any(isinstance(n, Call) and n.op is SELECT for n in postorder(expr))
