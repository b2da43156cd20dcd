"""Large tensors with an axis of a few positions: ``d[i, j, e]`` as ``d_0[i, j]``, ``d_1[i, j]`` and ``d_2[i, j]``.

What reads them reads one of them at a time, so that nothing is evaluated over the short axis: reductions over it are written out,
and a result that has it is put together from its positions:

    m[i, j] = min over e of d[i, j, e]       =  minimum(minimum(d_0[i, j], d_1[i, j]), d_2[i, j])
    g[j, e] = sum over i of h(d[i, j, e])    =  the sums over i of h(d_0[i, j]), h(d_1[i, j]) and h(d_2[i, j]), stacked

An operation of a tile is then a loop over two long axes. XLA on the CPU takes several times as long for the same points with a short
axis before, between or behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.functions import const
from jaxte.lang.identity import among
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, substitute
from jaxte.lower.limits import FEW
from jaxte.lower.rewrites.unroll import OPS, chosen, written_out
from jaxte.lower.tiles.carried_sums import outermost
from jaxte.sets.affine import normal
from jaxte.tensors.tensor import Compute, Extern, Tensor

_NARROW = ("float16", "bfloat16")  # parts of a sum would be rounded one by one


@dataclass(frozen=True)
class Pieces:
    """``tensor`` as one tensor for each position of its axis number ``dim``."""

    dim: int
    tensors: tuple[Compute, ...]


def split_positions(
    order: Sequence[Tensor], large: Sequence[Compute]
) -> tuple[list[Tensor], dict[Tensor, Tensor], dict[Tensor, int]]:
    """``order`` with the tensors among ``large`` that have a short axis in pieces.

    Args:
        order: all tensors, each after what it reads.
        large: those that are to exist in tiles only.

    Returns:
        The new order, what stands for each tensor whose definition this changes, and how many pieces there are of
        the tensor that each piece belongs to.
    """
    dims = _divisible(order, large)
    if not dims:
        return list(order), {}, {}
    pieces: dict[Tensor, Pieces] = {}
    new: dict[Tensor, Tensor] = {}
    found: list[Tensor] = []
    for tensor in order:
        if not isinstance(tensor, Compute):
            found.append(tensor)
        elif tensor in dims:
            pieces[tensor] = _pieces(tensor, dims[tensor], pieces, new)
            found += pieces[tensor].tensors
        else:
            body = _read_in_pieces(_at_positions(tensor, dims), pieces, new)
            if body is not tensor.body:
                new[tensor] = tensor.renewed(body)
            found.append(new.get(tensor, tensor))
    counts: dict[Tensor, int] = {t: len(own.tensors) for own in pieces.values() for t in own.tensors}
    return found, new, counts


def _pieces(
    tensor: Compute,
    dim: int,
    pieces: Mapping[Tensor, Pieces],
    new: Mapping[Tensor, Tensor],
) -> Pieces:
    axis = tensor.axes[dim]
    found = []
    for position in range(int(axis.hi)):
        axes = [Axis(a.name, a.lo, a.hi) for a in tensor.axes if a is not axis]
        left = iter(axes)
        table = {a: Const(position) if a is axis else next(left) for a in tensor.axes}
        body = _read_in_pieces(substitute(tensor.body, table), pieces, new)
        found.append(Compute(f"{tensor.name}_{position}", axes, body))
    return Pieces(dim, tuple(found))


# --- which


def _divisible(order: Sequence[Tensor], large: Sequence[Compute]) -> dict[Tensor, int]:
    """The tensors to divide, and which of their axes has few positions."""
    if any(
        isinstance(t, Extern) and t.inputs for t in order
    ):  # an extern node is handed its tensors themselves
        return {}
    dims: dict[Tensor, int] = {}
    for tensor in large:
        short = [
            n for n, axis in enumerate(tensor.axes) if n and _is_short(axis)
        ]  # the first is around the others
        if short and not _reduces(tensor.body) and isinstance(tensor.body, Call):
            dims[tensor] = short[-1]
    readers = [t for t in order if isinstance(t, Compute)]
    while True:
        kept = {
            t: n for t, n in dims.items() if all(_follows(r, t, dims) for r in readers if among(t, r.inputs))
        }
        if len(kept) == len(dims):
            reduced = any(_short_axes(r.body, kept) - {*r.axes} for r in readers)
            return kept if reduced else {}
        dims = kept


def _is_short(axis: Axis) -> bool:
    return isinstance(axis.hi, Const) and axis.lo is ZERO and 1 < int(axis.hi) <= FEW


def _reduces(body: Expr) -> bool:
    return any(isinstance(n, Reduce) for n in postorder(body))


def _follows(reader: Compute, tensor: Tensor, dims: Mapping[Tensor, int]) -> bool:
    """Whether ``reader`` can read pieces of ``tensor``: it is divided itself, or reduces all that it reads of it."""
    own = {tensor: dims[tensor]}
    if any(r.tensor is tensor and reads_of(r.indices[dims[tensor]]) for r in reads_of(reader.body)):
        return False  # a position that is data
    axes = _short_axes(reader.body, own)
    if reader in dims:
        return axes <= {reader.axes[dims[reader]]}
    if not all(map(_is_short, axes)):
        return False
    sums = outermost(reader.body)
    inside = {r for node in sums for r in reads_of(node)}
    if any(r.tensor is tensor and r not in inside for r in reads_of(reader.body)):
        return False
    return all(
        _is_plain(n) for n in postorder(reader.body) if isinstance(n, Reduce) and axes.intersection(n.axes)
    )


def _short_axes(body: Expr, dims: Mapping[Tensor, int]) -> set[Axis]:
    """The axes in ``body`` that decide which piece of one of ``dims`` is read."""
    indices = [r.indices[dims[r.tensor]] for r in reads_of(body) if r.tensor in dims]
    return {axis for index in indices for axis in free_axes(index)}


def _is_plain(node: Reduce) -> bool:
    """Whether ``node`` can be written out: a combination of values in the dtype of the result."""
    (expr, *others) = node.exprs
    if others or node.reducer.name not in OPS or node.dtype in _NARROW:
        return False
    return expr.dtype == node.dtype and not expr.weak


# --- readers


def _at_positions(reader: Compute, dims: Mapping[Tensor, int]) -> Expr:
    """The body of ``reader`` with each read of ``dims`` at a number."""
    axes = _short_axes(reader.body, dims)
    if not axes:
        return reader.body
    body = rewrite(reader.body, lambda node: _apart(node, axes))
    own = [a for a in reader.axes if a in axes]
    table: dict[Expr, Expr] = {}
    for node in (*outermost(body), *_outside(body, dims)):
        short = [a for a in own if a in free_axes(node) and any(r.tensor in dims for r in reads_of(node))]
        if short:
            table[node] = _chosen(node, short)
    return substitute(body, table)


def _apart(node: Expr, axes: set[Axis]) -> Expr:
    return written_out(node, axes) if isinstance(node, Reduce) and axes.intersection(node.axes) else node


def _outside(body: Expr, dims: Mapping[Tensor, int]) -> list[Read]:
    """The reads of ``dims`` that are part of no reduction, which those are that were of a reduction written out."""
    found: list[Read] = []
    stack, seen = [body], set()
    while stack:
        node = stack.pop()
        if node in seen or isinstance(node, Reduce):
            continue
        seen.add(node)
        if isinstance(node, Read) and node.tensor in dims:
            found.append(node)
        else:
            stack += node.children
    return found


def _chosen(node: Expr, short: Sequence[Axis]) -> Expr:
    """``node`` as the one of its values at each position of ``short`` that an element is about."""
    if not short:
        return node
    axis, *others = short
    values = [_chosen(substitute(node, {axis: Const(n)}), others) for n in range(int(axis.hi))]
    return chosen(axis, values)


def _read_in_pieces(body: Expr, pieces: Mapping[Tensor, Pieces], new: Mapping[Tensor, Tensor]) -> Expr:
    """``body`` with the pieces in place of the tensors that they belong to."""
    table: dict[Expr, Expr] = {}
    for read in reads_of(body):
        indices = [substitute(index, table) for index in read.indices]
        if read.tensor in pieces:
            own = pieces[read.tensor]
            position = normal(indices.pop(own.dim))
            assert isinstance(position, Const)
            number = int(position)
            inside = 0 <= number < len(own.tensors)  # else a condition keeps it from being read
            table[read] = Read(own.tensors[number], indices) if inside else const(0, read.dtype)
        elif read.tensor in new or any(i is not j for i, j in zip(indices, read.indices, strict=True)):
            table[read] = Read(new.get(read.tensor, read.tensor), indices)
    return substitute(body, table)
