"""The operations of a definition, as a number or in terms of its symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxte.lang.expr import Axis, Call, Const, Expr, Reduce
from jaxte.lang.graphs import reached
from jaxte.lang.text import text
from jaxte.lang.walk import substitute
from jaxte.sets.affine import normal
from jaxte.tensors.tensor import Compute

_FREE = ("cast", "select", "and", "or", "not")


def operations(tensor: Compute, extent_of: Callable[[Any], int]) -> int:
    """Operations of computing all elements; ``extent_of`` says how many positions an extent stands for."""
    total = 0
    for extents, count in _scopes(tensor):
        points = count
        for extent in extents:
            points *= extent_of(extent)
        total += points
    return total


def operations_text(tensors: Sequence[Compute]) -> str:
    """Operations of computing ``tensors``, as a sum of products of sizes: ``6 * n * m + 128``."""
    return sum_text([scope for tensor in tensors for scope in _scopes(tensor)])


def sum_text(products: Sequence[tuple[Sequence[Expr], int]]) -> str:
    """The sum of numbers, each times the product of extents."""
    constant = 0
    terms: dict[str, int] = {}
    for extents, count in products:
        sizes: list[str] = []
        for extent in map(normal, extents):
            if isinstance(extent, Const):
                count *= int(extent)
            else:
                shown = text(extent)
                sizes.append(f"({shown})" if " " in shown else shown)
        if sizes:
            key = " * ".join(sorted(sizes))
            terms[key] = terms.get(key, 0) + count
        else:
            constant += count
    shown_terms = [key if count == 1 else f"{count:,} * {key}" for key, count in terms.items() if count]
    if constant or not shown_terms:
        shown_terms.append(f"{constant:,}")
    return " + ".join(shown_terms)


def _scopes(tensor: Compute) -> list[tuple[list[Expr], int]]:
    """For the body and each reduction in it, the extents of its points and the operations at each."""
    found: list[tuple[list[Expr], int]] = []
    pending: list[tuple[Sequence[Expr], list[Axis], int]] = [((tensor.body,), list(tensor.axes), 1)]
    seen: set[object] = set()
    while pending:
        roots, axes, own = pending.pop()
        nodes, reductions = _scope(roots)
        found.append(
            (
                [_extent(a) for a in axes],
                own + sum(isinstance(n, Call) and n.op.name not in _FREE for n in nodes),
            )
        )
        for node in reductions:
            one_pass = (node.exprs, node.axes, node.where)
            if one_pass not in seen:  # the results of a tuple reduction are found together
                seen.add(one_pass)
                pending.append((node.children, [*axes, *node.axes], 1))
    return found


def _scope(roots: Sequence[Expr]) -> tuple[list[Expr], list[Reduce]]:
    """The nodes below ``roots`` that are evaluated at each point, and the reductions at which they end."""
    found = reached(roots, lambda node: () if isinstance(node, Reduce) else node.children)
    reductions = [node for node in found if isinstance(node, Reduce)]
    return [node for node in found if not isinstance(node, Reduce)], reductions


def _extent(axis: Axis) -> Expr:
    """How many positions ``axis`` has at most: where its range depends on other axes, at the first of these."""
    extent = axis.extent
    return substitute(extent, {a: a.lo for a in _axes_in(extent)})


def _axes_in(expr: Expr) -> list[Axis]:
    return [n for n in _scope([expr])[0] if isinstance(n, Axis)]
