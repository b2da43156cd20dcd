"""Which symbolic sizes the extents of arrays tell, and how: ``n`` by an axis of ``2 * n + 1`` elements, not by one of ``n // 2``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Const, Expr, Var
from jaxte.lang.walk import postorder
from jaxte.sets.affine import Linear, linear
from jaxte.tensors.shapes import Extent, Shape


@dataclass(frozen=True)
class Told:
    """``factor * size + rest`` is the extent of ``axis`` of the array at ``array``; ``rest`` is made of sizes told before."""

    size: Var
    array: int
    axis: int
    factor: int
    rest: Linear


def told_sizes(shapes: Iterable[Shape]) -> list[Told]:
    """How each size is told by arrays of ``shapes``: by an extent that it is, else by one that is linear in it."""
    extents = [
        (n, axis, extent)
        for n, shape in enumerate(shapes)
        for axis, extent in enumerate(shape)
        if isinstance(extent, Expr)
    ]
    found: dict[Expr, Told] = {}
    for n, axis, extent in extents:
        if isinstance(extent, Var):
            found.setdefault(extent, Told(extent, n, axis, 1, Linear({})))
    while True:
        before = len(found)
        for n, axis, extent in extents:
            solved = _solved(extent, found)
            if solved is not None:
                size, factor, rest = solved
                found[size] = Told(size, n, axis, factor, rest)
        if len(found) == before:
            return list(found.values())  # type: ignore[return-value]


def _solved(extent: Expr, known: dict[Expr, Told]) -> tuple[Var, int, Linear] | None:
    """The one size that is not known in ``extent``, its factor and what is added to it; None where it is no such form."""
    unknown = [n for n in postorder(extent) if isinstance(n, Var) and n not in known]
    if len(unknown) != 1:
        return None
    try:
        form = linear(extent)
    except IndexExpressionError:
        return None
    (size,) = unknown
    factor, rest = form.coefficient(size), form.without(size)
    if not factor or any(node is size for node in postorder(*rest.terms)):
        return None
    return size, factor, rest


def sizes_in(extents: Sequence[Extent]) -> Iterator[Var]:
    """The sizes that ``extents`` are made of."""
    exprs = [extent for extent in extents if isinstance(extent, Expr) and not isinstance(extent, Const)]
    return (node for node in postorder(*exprs) if isinstance(node, Var))
