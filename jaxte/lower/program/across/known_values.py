"""Sums of what is in memory anyway: a reduction whose terms are the elements of an earlier tensor reads that tensor.

    dz[b, t, c] = H[b, t, c] * silu'(z[b, t, c] + bias[c])
    dbias[c]    = sum over b, t of H[b, t, c] * silu'(z[b, t, c] + bias[c])   is   sum over b, t of dz[b, t, c]

Adjoints of a sum inside of a function come so: each of its terms is passed the same, at the same points. XLA would compute the function again
for each of them, where the tensor stands behind a barrier or is read at several places.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from jaxte.lang.expr import ZERO, Axis, Call, Expr, Read, Reduce
from jaxte.lang.walk import free_axes, postorder, substitute
from jaxte.lower.tiles.tiling import Tiling
from jaxte.tensors.tensor import Compute, Tensor

_LEAST = 4  # operations from which on a tensor is rather read than computed again


def with_known_values(planned: Tiling) -> Tiling:
    """``planned`` with such reductions reading the tensors that come before them."""
    known: dict[Expr, Compute] = {}

    def rule(tensor: Compute) -> tuple[Sequence[Tensor], Expr]:
        body = _reading(tensor, known)
        if body is tensor.body and _is_worth_reading(tensor):
            known.setdefault(_numbered(body), tensor)
        return (), body

    return planned.with_bodies(rule)


def _is_worth_reading(tensor: Compute) -> bool:
    """Whether ``tensor`` is a function of several operations, each axis of which its body names."""
    nodes = postorder(tensor.body)
    return (
        len(free_axes(tensor.body)) == len(tensor.axes)
        and not any(isinstance(n, Reduce) for n in nodes)
        and sum(isinstance(n, Call) and not n.weak and n.dtype == tensor.dtype for n in nodes) >= _LEAST
    )


def _reading(tensor: Compute, known: dict[Expr, Compute]) -> Expr:
    """The body of ``tensor`` with terms of its reductions read where they are known."""
    table: dict[Expr, Expr] = {}
    for node in postorder(tensor.body) if known else ():
        if not isinstance(node, Reduce) or len(node.exprs) > 1:
            continue
        (term,) = node.exprs
        axes = tuple(free_axes(term))
        found = known.get(_numbered(term)) if all(a.lo is ZERO for a in axes) else None
        if found is not None and found.dtype == term.dtype and not term.weak:
            at = dict(zip(free_axes(found.body), axes, strict=True))
            read = Read(found, [at[a] for a in found.axes])
            table[node] = Reduce(node.reducer, (read,), node.axes, node.where, node.position)
    return substitute(tensor.body, table) if table else tensor.body


def _numbered(expr: Expr) -> Expr:
    """``expr`` over axes that are the same for equal expressions: numbered as they appear, with their extents."""
    return substitute(expr, {a: _axis(n, a.hi) for n, a in enumerate(free_axes(expr))})


@lru_cache(maxsize=4096)
def _axis(number: int, end: Expr) -> Axis:
    return Axis(f"a{number}", 0, end)
