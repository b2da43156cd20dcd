"""Products in tiles without their factors over some axes only: ``ds[i, j] = h[i] * b[j] * exp(-d[i, j])``.

A tensor that tiles keep from existing, and that sums of products alone read, is taken apart: the sums read its *core*
``exp(-d[i, j])``, a tensor of its own, and its other factors stand in each of them. There they leave the sum, or become the vector
that a block is multiplied by:

    dx[i] = sum over j of ds[i, j] * (x[i] - y[j])  =  h[i] * sum over j of (exp(-d[i, j]) * (x[i] - y[j])) * b[j]

What all of a row is divided by, as the total of a softmax, leaves the sum in the same way: a row of the result is divided instead.

XLA on the CPU takes less time for the product of a block and a vector than for the sum of a product of two blocks.
What else has the same ``exp(-d[i, j])`` reads the core too, so that it is evaluated once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, multiplied, product_of, split_outer, times_sum
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.walk import at_positions, free_axes, postorder, reads_of, reductions, substitute
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute, Extern, Tensor


@dataclass(frozen=True)
class _Split:
    """``core`` times ``others``, which is what ``tensor`` is."""

    tensor: Compute
    core: Expr
    others: tuple[Factor, ...]

    def with_core(self, core: Expr, indices: Sequence[Expr], new: Mapping[Tensor, Tensor]) -> Expr:
        """The tensor at ``indices``, where its core is ``core``."""
        at = dict(zip(self.tensor.axes, indices, strict=True))
        others = [Factor(at_positions(_renewed(f.expr, new), at), f.inverse) for f in self.others]
        return multiplied([*others, Factor(core)])


def split_products(
    order: Sequence[Tensor], large: Sequence[Compute]
) -> tuple[list[Tensor], dict[Tensor, Tensor]]:
    """``order`` with the products among ``large`` taken apart, and what stands for each tensor that this changes.

    Args:
        order: all tensors, each after what it reads.
        large: those that are to exist in tiles only.
    """
    splits: dict[Tensor, _Split] = {}
    # an extern node is handed its tensors themselves
    if not any(isinstance(t, Extern) and t.inputs for t in order):
        splits = {s.tensor: s for s in map(_split, large) if s and _is_read_in_products(s.tensor, order)}
    if not splits:
        return list(order), {}
    cores: dict[Tensor, Compute] = {}
    new: dict[Tensor, Tensor] = {}
    found: list[Tensor] = []
    for tensor in order:
        if not isinstance(tensor, Compute):
            found.append(tensor)
        elif tensor not in splits:
            body = _rewritten(tensor.body, splits, cores, new)
            if body is not tensor.body:
                new[tensor] = tensor.renewed(body)
            found.append(new.get(tensor, tensor))
        elif not isinstance(splits[tensor].core, Read):
            core = splits[tensor].core
            cores[tensor] = Compute(_name(core), tensor.axes, _rewritten(core, splits, cores, new))
            found.append(cores[tensor])
    return found, new


def _split(tensor: Compute) -> _Split | None:
    """``tensor`` as a product; None where all factors are over all of its axes, or only numbers are not."""
    product = product_of(tensor.body)
    if product.is_conditional:
        return None
    axes = {a for a in tensor.axes if known(a.extent) != 1}
    over = [axes.intersection(free_axes(f.expr)) for f in product.factors]
    others = [f for f, own in zip(product.factors, over, strict=True) if own != axes]
    inside = [f for f in product.factors if not among(f, others)]
    if not any(o and o != axes for o in over):
        return None
    core = multiplied(inside) if any(not f.inverse for f in inside) else None
    if core is None or core.dtype != tensor.dtype or core.weak or not axes <= free_axes(core).keys():
        return None
    return _Split(tensor, core, tuple(others))


def _is_read_in_products(tensor: Tensor, order: Sequence[Tensor]) -> bool:
    """Whether all that reads ``tensor`` is a sum of products with it as a factor."""
    for reader in order:
        if isinstance(reader, Compute) and among(tensor, reader.inputs):
            reads = {r for r in reads_of(reader.body) if r.tensor is tensor}
            if not reads <= _factors_of_sums(reader.body):
                return False
    return True


def _factors_of_sums(body: Expr) -> set[Expr]:
    sums = [n for n in reductions(body) if n.is_sum]
    return {f.expr for node in sums for f in product_of(node.exprs[0]).factors if not f.inverse}


# --- what reads them


def _rewritten(
    body: Expr, splits: Mapping[Tensor, _Split], cores: Mapping[Tensor, Compute], new: Mapping[Tensor, Tensor]
) -> Expr:
    """``body`` with the cores in place of the products, and of the same expressions elsewhere."""
    table: dict[Expr, Expr] = {}
    for node in postorder(body):
        if isinstance(node, Read):
            indices = [substitute(index, table) for index in node.indices]
            if node.tensor in splits:
                split = splits[node.tensor]
                at = dict(zip(split.tensor.axes, indices, strict=True))
                own = at_positions(_renewed(split.core, new), at)
                if node.tensor in cores:
                    own = Read(cores[node.tensor], indices)
                table[node] = split.with_core(own, indices, new)
            elif node.tensor in new or any(i is not j for i, j in zip(indices, node.indices, strict=True)):
                table[node] = Read(new.get(node.tensor, node.tensor), indices)
        elif isinstance(node, Reduce) and any(r.tensor in splits for r in reads_of(*node.exprs)):
            table[node] = _without_outer(node, [substitute(e, table) for e in node.exprs])
        elif isinstance(node, Call):
            for tensor, core in cores.items():
                at_core = _positions(splits[tensor], node)
                if at_core is not None:
                    table[node] = Read(core, [substitute(index, table) for index in at_core])
    return substitute(body, table)


def _without_outer(node: Reduce, exprs: Sequence[Expr]) -> Expr:
    """``node`` over ``exprs``; the factors that do not depend on its axes stand before it, not in what is carried through tiles."""
    own = node.changed(exprs=exprs)
    if not node.is_sum or node.where is not TRUE:
        return own
    product = product_of(exprs[0])
    outer, inner = split_outer(product.factors, node.axes)
    empty = any(not known(a.extent) for a in node.axes)
    if not outer or product.guards or empty or all(f.inverse or f.guard for f in inner):
        return own
    scaled = times_sum(outer, inner, own)
    return own if scaled is None else scaled


def _renewed(expr: Expr, new: Mapping[Tensor, Tensor]) -> Expr:
    """``expr``, a factor, with what stands for the tensors that it reads."""
    return _rewritten(expr, {}, {}, new)


def _positions(split: _Split, node: Call) -> list[Expr] | None:
    """The indices at which the core of ``split`` is ``node``."""
    core, found = split.core, dict[Expr, Expr]()
    if not isinstance(core, Call) or core.op is not node.op or core.dtype != node.dtype:
        return None
    own, other = reads_of(core), reads_of(node)
    if len(own) != len(other) or any(a.tensor is not b.tensor for a, b in zip(own, other, strict=True)):
        return None
    for mine, theirs in zip(own, other, strict=True):
        found |= {a: i for a, i in zip(mine.indices, theirs.indices, strict=True) if isinstance(a, Axis)}
    if any(a not in found for a in split.tensor.axes) or substitute(core, found) is not node:
        return None
    return [found[a] for a in split.tensor.axes]


def _name(core: Expr) -> str:
    """What a core is called: the function that it is, and of what."""
    source = reads_of(core)[0].tensor.name
    return f"{core.op.name}_{source}" if isinstance(core, Call) else source
