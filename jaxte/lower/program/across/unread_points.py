"""Points at which a sum is read by nobody: whatever is computed there stays as it is.

A sum within a choice is a tensor of its own that sums where it is asked for,

    s[i, j] = sum(q[i, c] * k[j, c] for c in [0, 16) where j <= i)
    S[i, j] = select(j <= i, s[i, j] / 4, -1e9)

As a product of matrices it is computed everywhere. Zeros in place of what nobody reads would be chosen twice, once for ``s`` and once for ``S``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jaxte.lang.expr import Expr, Read, Reduce, conjuncts
from jaxte.lang.graphs import Members, among
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.tiles.tiling import Tiles
from jaxte.lower.views.condition_box import split_conditions
from jaxte.lower.views.scope import Scope
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.tensor import Compute, Tensor


def unread_points(
    order: Sequence[Tensor | Tiles], results: Members[Tensor], original: Mapping[Tensor, Tensor]
) -> dict[Tensor, tuple[Expr, ...]]:
    """For sums of ``order`` that are none of ``results``: conditions on their own positions that hold wherever they are read.

    Args:
        order: what a program computes.
        results: what it returns.
        original: the tensors that are read, where others are computed in their place.
    """
    own = {original.get(t, t): _conditions(t) for t in order if isinstance(t, Compute)}
    asked = {t: held for t, held in own.items() if held and t not in results}
    for item in order if asked else ():
        for tensor in _read_otherwise(item):
            asked.pop(tensor, None)
        if isinstance(item, Compute):
            _ask(item, asked)
    return asked


def _conditions(tensor: Compute) -> tuple[Expr, ...]:
    """Conditions on two positions of ``tensor`` without which its sum is zero."""
    if not isinstance(tensor.body, Reduce):
        return ()
    parts = split_conditions(tensor.body.where, Scope(tensor.axes)) or ()
    return tuple(p for p in parts if len(free_axes(p)) > 1 and _is_of(p, tensor))


def _is_of(condition: Expr, tensor: Compute) -> bool:
    return not reads_of(condition) and all(among(a, tensor.axes) for a in free_axes(condition))


def _read_otherwise(item: Tensor | Tiles) -> Iterable[Tensor]:
    """What ``item`` reads that is not chosen by conditions: of a sum, factors are masked, or all of them where one is zero."""
    if isinstance(item, Compute) and not item.body.reduces:
        return ()
    return item.inputs


def _ask(reader: Compute, asked: dict[Tensor, tuple[Expr, ...]]) -> None:
    """Leaves in ``asked`` what holds wherever ``reader`` reads."""
    reads = {r for r in reads_of(reader.body) if r.tensor in asked}
    for read, axes, held in contexts(reader.axes, reader.body, reads) if reads else ():
        tensor = read.tensor
        left = tuple(c for c in asked.get(tensor, ()) if _holds(c, read, held, Scope(axes)))
        if left:
            asked[tensor] = left
        else:
            asked.pop(tensor, None)


def _holds(condition: Expr, read: Read, held: Sequence[Expr], scope: Scope) -> bool:
    assert isinstance(read.tensor, Compute)
    there = substitute(condition, dict(zip(read.tensor.axes, read.indices, strict=True)))
    wanted = split_conditions(there, scope)
    known = [k for c in held for part in conjuncts(c) for k in split_conditions(part, scope) or ()]
    return wanted is not None and all(among(w, known) for w in wanted)
