"""What does not depend on all axes of a definition is a tensor of its own: computed once for all points that have it, and differentiated so.

    y[b, m] = sum over f of p[b, f] * max(0, min((f - lo[m]) / (c[m] - lo[m]), (hi[m] - f) / (hi[m] - c[m])))

is a product with a matrix of weights over ``m`` and ``f``. What flows back to ``lo[m]`` is linear in what flows back to such a weight, so that is summed
over ``b`` first, by a product of matrices; in place, the slopes would be computed at each ``b``, ``m`` and ``f``. In the same way what the elements of a
short axis share, ``r[i, j]`` of ``select(c == 0, -dx * r, select(c == 1, -dy * r, r))``, receives the sum of what they pass on.

The factors of a sum by the axes that they have: those of fewer axes join a factor that has these axes, too.

    sum over k of (g[i, k] - 2*p[k]) * (g[j, k] - 2*p[k]) / v[k]   is   sum over k of w[i, k] * u[j, k]
    with   w[i, k] = (g[i, k] - 2*p[k]) / v[k]   and   u[j, k] = g[j, k] - 2*p[k]

What flows back to all that a group reads is linear in what flows back to the group, one product of matrices. Solved for each element that is read, the
same product would stand in the adjoint of every one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.algebra.sums import operands, operations, value_nodes
from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Call, Expr, Read, Reduce, as_expr, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEWER, HALVED, MOST_LARGER, SMALL_ARRAY, WORTH_A_TENSOR
from jaxte.lang.walk import free_axes, substitute
from jaxte.planning.terms import reads_windows
from jaxte.sets.domain import IntegerSet
from jaxte.sets.intervals import extent, known
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.tensor import Compute, Tensor


class FewerAxes(Compute):
    """A part of a definition that does not depend on all of its axes."""

    __slots__ = ()


def with_fewer_axes(tensor: Compute) -> Expr:
    """The body of ``tensor``, with what does not depend on all axes in scope as reads of tensors."""
    if type(tensor) is not Compute or tensor.override is not None:
        return tensor.body
    body, groups = with_groups(tensor)
    table = _parts(tensor, body, groups)
    if groups.isdisjoint(table):  # the factors stay in the order in which they were written
        body, table = tensor.body, _parts(tensor, tensor.body, frozenset()) if groups else table
    return substitute(body, table) if table else tensor.body


def _parts(tensor: Compute, body: Expr, groups: frozenset[Expr]) -> dict[Expr, Expr]:
    """What in ``body``, that of ``tensor``, is an element of a tensor of its own: ``groups``, whatever they compute, and what computes much."""
    found = _candidates(tensor, body, groups)
    guards = guards_of(body, set(found)) if found else {}
    most = max(SMALL_ARRAY, _bytes(tensor) + sum(map(_bytes, tensor.inputs)))
    table: dict[Expr, Expr] = {}
    for node, scope in found.items():
        axes = _as_read(node, scope)
        # Times as many as the arrays around it, of what is the operand of a product, which exists in any case.
        least, held = (1, MOST_LARGER * most) if node in groups else (WORTH_A_TENSOR, most)
        if operations(node, table) < least or prod(map(extent, axes)) * dtypes.width(node.dtype) > held:
            continue
        name = f"{tensor.name}_part" + (f"_{len(table)}" if table else "")
        ranges = _needed(axes, scope, guards.get(node, []), node in groups)
        read = None if ranges is None else _read(name, substitute(node, table), axes, ranges)
        if read is not None:
            table[node] = read
    return table


def _candidates(tensor: Compute, body: Expr, groups: frozenset[Expr]) -> dict[Expr, tuple[Axis, ...]]:
    """The expressions that something with more points is made of, operands first, with the axes in scope where they stand."""
    scopes = _scopes(tensor, body)
    parents: dict[Expr, list[Expr]] = {}
    for node in scopes:
        for child in operands(node):
            parents.setdefault(child, []).append(node)
    found: dict[Expr, tuple[Axis, ...]] = {}
    for node in value_nodes(body):
        if not _may_be_a_part(node, scopes[node], node in groups):
            continue
        own = prod(map(extent, free_axes(node)))
        users = (
            (*scopes[p], *p.axes) if isinstance(p, Reduce) else free_axes(p) for p in parents.get(node, ())
        )
        if any(prod(map(extent, axes)) >= HALVED * own for axes in users):
            found[node] = scopes[node]
    return found


def _may_be_a_part(node: Expr, scope: Sequence[Axis], is_group: bool) -> bool:
    """Whether ``node`` is elementwise, over axes from 0 on of which the extents are numbers, and of several elements.

    The slope of a function of one element is a factor, which leaves sums by itself.
    """
    if not isinstance(node, Call) or node.weak or not dtypes.is_inexact(node.dtype):
        return False
    axes = free_axes(node)
    plain = all(a.lo is ZERO and known(a.extent) is not None for a in axes)
    # over a part of the axes of a sum alone, weights of corners as well as others, it is a matter of the order of sums
    if any(a.reduction for a in axes) and all(a.reduction for a in scope if not among(a, tuple(axes))):
        return False
    return plain and len(axes) < len(scope) and (is_group or len(_elements(node)) > 1) and not node.reduces


def _elements(node: Expr) -> list[Read]:
    """What ``node`` reads that may have a derivative."""
    return [r for r in value_nodes(node) if isinstance(r, Read) and dtypes.is_inexact(r.dtype)]


def _scopes(tensor: Compute, body: Expr) -> dict[Expr, tuple[Axis, ...]]:
    """For each node that is not part of an index, the axes in scope; the most where it stands at several places."""
    found: dict[Expr, tuple[Axis, ...]] = {}
    stack: list[tuple[Expr, tuple[Axis, ...]]] = [(body, tuple(tensor.axes))]
    while stack:
        node, scope = stack.pop()
        if len(found.get(node, ())) >= len(scope) and node in found:
            continue
        found[node] = scope
        own = (*scope, *node.axes) if isinstance(node, Reduce) else scope
        stack.extend((child, own) for child in operands(node))
    return found


def _needed(
    axes: Sequence[Axis], scope: Sequence[Axis], guards: Sequence[Expr], is_group: bool
) -> list[tuple[int, int]] | None:
    """From where to where along each of ``axes`` elements are asked for, all of them but of a group; None where one between these is not.

    One that none asks for passes nothing on, not zero times an infinite slope. So of what a sum up to a position excluded is of, the last is no element.
    """
    whole = [(0, known(a.extent) or 0) for a in axes]
    if not guards:
        return whole
    if not all(map(is_decidable, guards)):
        return None
    rest = [a for a in scope if not among(a, axes)]
    asked = IntegerSet((*axes, *rest), guards)
    if asked.covers(axes):
        return whole
    if not is_group or asked.is_empty():
        return None
    tied = [among(a, free_axes(conjunction(guards))) for a in axes]
    ranges = [_range(asked, a) if own else r for a, own, r in zip(axes, tied, whole, strict=True)]
    if None in ranges or ranges == whole:
        return None
    found = [r for r in ranges if r is not None]
    own = {a: Axis(a.name, low, high) for a, (low, high) in zip(axes, found, strict=True)}
    within = IntegerSet((*own.values(), *rest), [substitute(g, own) for g in guards])
    return found if within.covers(tuple(own.values())) else None


def _range(asked: IntegerSet, axis: Axis) -> tuple[int, int] | None:
    """The first position along ``axis`` that is asked for, and the one after the last."""
    least, most = asked.maximum(0 - axis), asked.maximum(axis)
    low, high = (known(e) if e is not None else None for e in (least, most))
    return None if low is None or high is None or -low > high else (-low, high + 1)


def _as_read(node: Expr, scope: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes of ``node`` in the order of an element that has all of them, or of ``scope``."""
    axes = free_axes(node)
    for read in _elements(node):
        if len(read.indices) == len(axes) and all(isinstance(i, Axis) for i in read.indices):
            own = tuple(i for i in read.indices if isinstance(i, Axis))
            if set(own) == set(axes):
                return own
    return tuple(a for a in scope if a in axes)


def _read(name: str, node: Expr, axes: Sequence[Axis], ranges: Sequence[tuple[int, int]]) -> Read | None:
    """An element of a tensor of ``node`` between ``ranges``; None where that would read what only a condition keeps in range."""
    own = [Axis(a.name, 0, high - low) for a, (low, high) in zip(axes, ranges, strict=True)]
    lows = [low for low, _ in ranges]
    at: dict[Expr, Expr] = {a: o + low if low else o for a, o, low in zip(axes, own, lows, strict=True)}
    body = substitute(node, at)
    indices = [a - low if low else a for a, low in zip(axes, lows, strict=True)]
    return Read(FewerAxes(name, tuple(own), body), indices) if reads_inside(tuple(own), body) else None


def _bytes(tensor: Tensor) -> int:
    sizes = [known(as_expr(e)) for e in tensor.shape]
    return 0 if None in sizes else dtypes.width(tensor.dtype) * prod(e for e in sizes if e is not None)


_EXACT = ("float32", "float64", "complex64", "complex128")  # a group of others would be rounded once more


def with_groups(tensor: Compute) -> tuple[Expr, frozenset[Expr]]:
    """The body of ``tensor`` with the factors of its sums in groups, and those groups that several elements flow into."""
    table: dict[Expr, Expr] = {}
    found: set[Expr] = set()
    for node in value_nodes(tensor.body):
        if not isinstance(node, Reduce) or not node.is_sum or node.dtype not in _EXACT:
            continue
        scope = tuple(dict.fromkeys((*tensor.axes, *node.axes)))
        product = product_of(node.exprs[0])
        if any(f.guard for f in product.factors):
            continue
        groups = [multiplied(g) for g in _groups(product.factors, len(scope))]
        shared = [g for g in groups if _is_shared(g, scope)]
        summand = multiplied([Factor(g) for g in groups])
        if shared and summand.dtype == node.exprs[0].dtype:
            where = conjunction([*conjuncts(node.where), *product.guards])
            table[node] = node.changed(exprs=(summand,), where=where)
            found.update(shared)
    return (substitute(tensor.body, table) if table else tensor.body), frozenset(found)


def _groups(factors: Sequence[Factor], most: int) -> list[list[Factor]]:
    """``factors`` in groups, each with all axes of one factor in it; what has as many axes as there are stays alone."""
    groups: list[list[Factor]] = []
    for factor in sorted(factors, key=lambda f: -len(free_axes(f.expr))):
        own = free_axes(factor.expr)
        around = [g for g in groups if len(_axes(g)) < most and all(among(a, _axes(g)) for a in own)]
        around = [g for g in around if not reads_windows(g[0].expr)]
        if around and not (factor.inverse and not own):
            min(around, key=lambda g: prod(map(extent, _axes(g)))).append(factor)
        else:
            groups.append([factor])
    return groups


def _axes(group: Sequence[Factor]) -> tuple[Axis, ...]:
    return tuple(free_axes(group[0].expr))


def _is_shared(group: Expr, scope: Sequence[Axis]) -> bool:
    """Whether several elements flow into ``group``, which stands at several times as many points as it has."""
    elements = {r for r in value_nodes(group) if isinstance(r, Read) and _is_variable(r)}
    axes = free_axes(group)
    return (
        len(elements) > 1
        and not reads_windows(group)
        and prod(map(extent, scope)) >= FEWER * prod(map(extent, axes)) > 1
    )


def _is_variable(read: Read) -> bool:
    """Whether ``read`` may have a derivative: it is a number that is computed of inputs."""
    constant = isinstance(read.tensor, Compute) and not read.tensor.inputs
    return dtypes.is_inexact(read.dtype) and not constant
