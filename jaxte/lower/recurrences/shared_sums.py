"""Reductions over the positions of a loop that are there already under another name, as those.

    dp[i, j] = (sum over t of du[t, i, j - 1]) - (sum over t of du[t, i, j + 1])        S[i, j] = sum over t of du[t, i, j]

The adjoint of what each step reads at several places is such sums. As one, it is added up once, by the loop itself where that takes less time.

    m[i] = max over k of f(x[i, k]),   held[i, k] = f(x[i, k]),   best[i] = max over k of held[i, k]

An adjoint that holds elements asks which of them are equal to ``best``, whose bits are those of the held elements. Where a program needs both and has neither, ``m`` is ``best``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.autodiff.terms.beside import all_beside
from jaxte.lang.expr import Axis, Const, Expr, Read, Reduce, as_expr, cast
from jaxte.lang.graphs import Members, among
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.lower.tiles.carried_sums import outermost
from jaxte.sets.index_forms import is_index
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class _Placed:
    """A sum at one place.

    Attributes:
        axes: of the sum as a tensor of its own.
        body: over these.
        place: the position of each of them that is read.
    """

    axes: tuple[Axis, ...]
    body: Expr
    place: tuple[Expr, ...]


def shared_sums(order: Sequence[Tensor], given: Members[Tensor]) -> Changed:
    """What stands for the tensors of ``order`` that read such sums. The arguments are those of ``within_loops``."""
    own = [t for t in order if isinstance(t, Compute) and t not in given]
    canonical: dict[tuple[object, ...], Axis] = {}
    found: dict[Reduce, _Placed] = {}
    work: dict[Reduce, int] = {}
    for tensor in own:
        for node in outermost(tensor.body):
            placed = _placed(node, canonical)
            if placed is not None:
                found[node] = placed
                work[node] = points([a for a in tensor.axes if a in free_axes(node)])
    together: dict[Expr, list[Reduce]] = {}
    for node, placed in found.items():
        together.setdefault(placed.body, []).append(node)
    table: dict[Expr, Expr] = {}
    for body, nodes in together.items():
        axes = found[nodes[0]].axes
        if len({found[n].place for n in nodes}) > 1 and points(axes) <= sum(work[n] for n in nodes):
            (read, *_) = reads_of(body)
            whole = Compute(f"{read.tensor.name}_total", axes, cast(body, nodes[0].dtype))
            table |= {n: Read(whole, found[n].place) for n in nodes}
    return changes(order, lambda tensor, _: substitute(tensor.body, table), {}) if table else {}


def _placed(node: Reduce, canonical: dict[tuple[object, ...], Axis]) -> _Placed | None:
    """``node`` as a sum of its own, of what loops make; None for others."""
    reads = reads_of(*node.exprs, node.where)
    if node.reducer.name != "sum" or not any(isinstance(r.tensor, Recurrent) for r in reads):
        return None
    if any(isinstance(n, Reduce) for n in postorder(*node.exprs)) or not all(
        isinstance(a.lo, Const) for a in node.axes
    ):
        return None
    table: dict[Expr, Expr] = {
        a: canonical.setdefault(("sum", n, a.hi), Axis(a.name, 0, a.hi)) for n, a in enumerate(node.axes)
    }
    own: dict[Expr, Axis] = {}
    for read in reads:
        for index, extent in zip(read.indices, read.tensor.shape, strict=True):
            free = [a for a in free_axes(index) if not among(a, node.axes)]
            if not free:
                continue
            if len(free) < len(free_axes(index)) or not is_index(index):
                return None
            key = ("place", len(own), as_expr(extent))
            axis = own.setdefault(index, canonical.setdefault(key, Axis(f"a{len(own)}", 0, as_expr(extent))))
            if axis.hi is not as_expr(extent):
                return None
    reduced = [canonical[("sum", n, a.hi)] for n, a in enumerate(node.axes)]
    table |= own
    exprs, where = [substitute(e, table) for e in node.exprs], substitute(node.where, table)
    body = Reduce(node.reducer, exprs, reduced, where, node.position)
    axes = tuple(own.values())
    return _Placed(axes, body, tuple(own)) if all(among(a, axes) for a in free_axes(body)) else None


def found_again(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for such extrema, and for their readers. The arguments are those of ``within_loops``."""
    own = [t for t in order if t not in given]
    there = frozenset(own)
    found: Changed = {}
    for tensor in own:
        if isinstance(tensor, Compute) and isinstance(tensor.body, Reduce) and tensor not in results:
            best = all_beside(tensor).get("best")
            if best in there and best is not None and _is_alike(tensor, best):
                found[tensor] = best
    known = {t: best for t, best in found.items() if found.keys().isdisjoint(topological_order([best]))}
    return changes(own, lambda tensor, _: tensor.body, {}, known=known) if known else {}


def _is_alike(tensor: Compute, best: Compute) -> bool:
    """Whether both have the same axes: elements that do not differ along one of them are held without it."""
    return tensor.ndim == best.ndim and all(map(same_extent, tensor.shape, best.shape))
