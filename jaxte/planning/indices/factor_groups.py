"""The factors of a sum by the axes that they have: those of fewer axes join a factor that has these axes, too.

    sum over k of (g[i, k] - 2*p[k]) * (g[j, k] - 2*p[k]) / v[k]   is   sum over k of w[i, k] * u[j, k]
    with   w[i, k] = (g[i, k] - 2*p[k]) / v[k]   and   u[j, k] = g[j, k] - 2*p[k]

What flows back to all that a group reads is linear in what flows back to the group, one product of matrices. Solved for each element that is read, the
same product would stand in the adjoint of every one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.algebra.operations import value_nodes
from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Expr, Read, Reduce, conjunction, conjuncts
from jaxte.lang.identity import among
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.intervals import extent
from jaxte.tensors.tensor import Compute

_EXACT = ("float32", "float64", "complex64", "complex128")  # a group of others would be rounded once more
_REUSED = 4  # points of a sum for each element of a group, that is worth an array


def with_groups(tensor: Compute) -> tuple[Expr, frozenset[Expr]]:
    """The body of ``tensor`` with the factors of its sums in groups, and those groups that several elements flow into."""
    table: dict[Expr, Expr] = {}
    found: set[Expr] = set()
    for node in value_nodes(tensor.body):
        if not isinstance(node, Reduce) or node.reducer.name != "sum" or node.dtype not in _EXACT:
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
            table[node] = Reduce(node.reducer, (summand,), node.axes, where, node.position)
            found.update(shared)
    return (substitute(tensor.body, table) if table else tensor.body), frozenset(found)


def _groups(factors: Sequence[Factor], most: int) -> list[list[Factor]]:
    """``factors`` in groups, each with all axes of one factor in it; what has as many axes as there are stays alone."""
    groups: list[list[Factor]] = []
    for factor in sorted(factors, key=lambda f: -len(free_axes(f.expr))):
        own = free_axes(factor.expr)
        around = [g for g in groups if len(_axes(g)) < most and all(among(a, _axes(g)) for a in own)]
        around = [g for g in around if not _reads_windows(g[0].expr)]
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
        and not _reads_windows(group)
        and prod(map(extent, scope)) >= _REUSED * prod(map(extent, axes)) > 1
    )


def _reads_windows(expr: Expr) -> bool:
    """Whether ``expr`` reads a tensor at the sum of two axes: it has many times as many points as elements."""
    return any(len(free_axes(index)) > 1 for read in reads_of(expr) for index in read.indices)


def _is_variable(read: Read) -> bool:
    """Whether ``read`` may have a derivative: it is a number that is computed of inputs."""
    constant = isinstance(read.tensor, Compute) and not read.tensor.inputs
    return dtypes.is_inexact(read.dtype) and not constant
