"""Conditions on the taps of a convolution alone: a mask on the weights, made once.

    sum over k, q, c of x[b, i + k, j + q, c] * w[k, q, c, o] where abs(k + q - 2) < 2      is
    m[k, q, c, o] = select(abs(k + q - 2) < 2, w[k, q, c, o], 0),    sum over k, q, c of x[b, i + k, j + q, c] * m[k, q, c, o]

A condition across axes that are summed cuts no range out of them, so that each position would be a product of its own. With the weights masked,
the sum is one convolution, and their gradient is masked in the same way. Positions that the
mask leaves out at the ends are not visited. The sum stays where a product for each position that counts, with the arrays that it reads and writes,
takes less than one of all positions between these ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from jaxte.algebra.product import Factor, Product, multiplied, product_of
from jaxte.lang.expr import Axis, Expr, Read, Reduce, call, cast, conjunction
from jaxte.lang.graphs import among
from jaxte.lang.limits import MARGIN, POSITIONS
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.sets.affine import normal
from jaxte.sets.digits import straightened
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent, known
from jaxte.sets.tabulate import tabulated
from jaxte.tensors.tensor import Compute


def with_masked_weights(node: Reduce, name: str) -> Reduce:
    """``node`` with what it is multiplied by masked, in a tensor called after ``name``; as it is where no condition is one on its taps alone."""
    if not node.is_sum or len(node.axes) < 3:
        return node
    product = product_of(node.exprs[0], [node.where])
    masks = [g for g in product.guards if _is_of_taps(g, node.axes)]
    if not masks:
        return node
    taps = list(dict.fromkeys(a for g in masks for a in free_axes(g)))
    weights = _weights(product, taps, node)
    found = None if weights is None else _box(conjunction(masks), taps)
    if weights is None or found is None:
        return node
    box, count = found
    if not _gains(product, taps, prod(hi - lo for lo, hi in box.values()), count, node):
        return node
    read = _masked(weights, masks, node.dtype, name)
    factors = [Factor(read) if f is weights else f for f in product.factors if not f.guard]
    rest = [
        *(g for g in product.guards if not among(g, masks)),
        *(f.expr for f in product.factors if f.guard),
    ]
    masked = node.changed(exprs=(multiplied(factors),), where=conjunction(rest))
    return _within(masked, box)


def _is_of_taps(guard: Expr, axes: Sequence[Axis]) -> bool:
    """Whether ``guard`` is about several axes that are summed, and no others."""
    own = list(free_axes(guard))
    return len(own) > 1 and not reads_of(guard) and all(among(a, axes) for a in own)


def _weights(product: Product, taps: Sequence[Axis], node: Reduce) -> Factor | None:
    """The factor over the taps and something else that is summed, which others are read around; None where the sum is no convolution of several channels."""
    if any(f.inverse for f in product.factors):
        return None
    arrays = [f for f in product.factors if not f.guard and free_axes(f.expr)]
    found = [f for f in arrays if all(depends_on(f.expr, [a]) for a in taps) and _is_straight(f.expr)]
    if len(arrays) != 2 or len(found) != 1:
        return None
    (weights,) = found
    (other,) = (f for f in arrays if f is not weights)
    channels = [a for a in node.axes if not among(a, taps) and all(depends_on(f.expr, [a]) for f in arrays)]
    indices = [i for r in reads_of(other.expr) for i in r.indices if len(free_axes(i)) > 1]
    mixed = all(any(depends_on(i, [a]) for i in indices) for a in taps)
    return weights if channels and mixed and weights.expr.dtype == node.dtype else None


def _gains(product: Product, taps: Sequence[Axis], visited: int, count: int, node: Reduce) -> bool:
    """Whether one product of ``visited`` positions takes less than one for each of the ``count`` that count, which is an array that is added."""
    costs = intermediates()
    arrays = [list(free_axes(f.expr)) for f in product.factors if not f.guard]
    every = [a for a in dict.fromkeys(a for own in arrays for a in own) if not among(a, taps)]
    returned = prod(extent(a) for a in every if not among(a, node.axes))
    points = prod(map(extent, every))
    elements = [prod(extent(a) for a in own if not among(a, taps)) for own in arrays]
    whole = visited * points + costs.element * min(elements) * prod(map(extent, taps))
    each = points + costs.element * (max(elements) + returned) + costs.loop
    return whole < MARGIN * count * each


def _is_straight(expr: Expr) -> bool:
    """Whether ``expr`` is an element of a tensor with one axis in each index."""
    return isinstance(expr, Read) and all(is_index(i) and len(free_axes(i)) < 2 for i in expr.indices)


def _box(mask: Expr, taps: Sequence[Axis]) -> tuple[dict[Axis, tuple[int, int]], int] | None:
    """Where each of ``taps`` begins and ends for ``mask`` to hold, and at how many positions it does; None where that is not known."""
    lows, extents = [known(a.lo) for a in taps], [known(a.extent) for a in taps]
    if None in extents or None in lows or prod(n or 0 for n in extents) > POSITIONS:
        return None
    ranges = [np.arange(lo or 0, (lo or 0) + (n or 0)) for lo, n in zip(lows, extents, strict=True)]
    grid = np.meshgrid(*ranges, indexing="ij")
    truth = tabulated(mask, dict(zip(taps, grid, strict=True)))
    if truth is None or not np.any(truth):
        return None
    found = np.argwhere(np.broadcast_to(truth, grid[0].shape))
    first, last = found.min(0), found.max(0) + 1
    box = {a: (int(r[i]), int(r[j - 1]) + 1) for a, r, i, j in zip(taps, ranges, first, last, strict=True)}
    return box, len(found)


def _within(node: Reduce, box: dict[Axis, tuple[int, int]]) -> Reduce:
    """``node`` over the positions between the ends in ``box``."""
    ends = {a: e for a, e in box.items() if e != (known(a.lo), known(a.hi))}
    if not ends:
        return node
    own = {a: Axis(a.name, 0, hi - lo, reduction=True) for a, (lo, hi) in ends.items()}
    table: dict[Expr, Expr] = {a: own[a] + lo for a, (lo, _) in ends.items()}
    where, *exprs = (straightened(substitute(e, table)) for e in (node.where, *node.exprs))
    return node.changed(exprs=exprs, axes=[own.get(a, a) for a in node.axes], where=where)


def _masked(weights: Factor, masks: Sequence[Expr], dtype: str, name: str) -> Read:
    """The element of a tensor of ``weights`` where ``masks`` hold."""
    own = list(free_axes(weights.expr))
    axes = [Axis(a.name, 0, a.extent) for a in own]
    table: dict[Expr, Expr] = {a: new + a.lo for a, new in zip(own, axes, strict=True)}
    value = straightened(substitute(call(SELECT, conjunction(masks), weights.expr, cast(0, dtype)), table))
    return Read(Compute(f"{name}_weights", axes, value), [normal(a - a.lo) for a in own])
