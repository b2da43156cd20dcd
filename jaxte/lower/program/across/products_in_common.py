"""Products that several sums have in common are computed once.

Each sum has a vector of its own: ``dy[i] = sum over j of (h[i, j] * g[j]) * x[i, j]`` and ``dg[j] = sum over i of h[i, j] * (x[i, j] * s[i])``. The gradients of
normalisations read such products as tensors, ``h * g`` and ``x * s``. XLA on the CPU writes each of them to memory and sums its product with the other array. With the
factors of these tensors in the sums, all of them have ``h * x`` in common,

    dy = jnp.einsum("ij,j->i", h * x, g),   dg = jnp.sum(h * x * s[:, None], axis=0)

a product of a matrix and a vector along its columns, and one sum along its rows: a seventh less memory is met by a normalisation of a matrix, forward
and backward. On other platforms, where a sum of three factors is one kernel, it is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce
from jaxte.lang.graphs import Members, among
from jaxte.lang.limits import FEW
from jaxte.lang.walk import at_positions, depends_on, free_axes, postorder, reductions, substitute
from jaxte.lower.cost.policy import Policy
from jaxte.lower.tiles.tiling import Tiling
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute, Tensor

_DTYPES = ("float32", "float64")


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum with the factors of the tensors that it reads.

    Attributes:
        tensor: whose definition has it.
        node: as it stands there.
        factors: of its product.
        shared: the tensors that are read at every point.
    """

    tensor: Compute
    node: Reduce
    factors: tuple[Factor, ...]
    shared: frozenset[tuple[Tensor, int]]


def with_shared_products(planned: Tiling, results: Members[Tensor], policy: Policy) -> Tiling:
    """``planned`` with the products that several sums have in common as factors of these sums."""
    known = {*planned.stand_ins, *planned.stand_ins.values()}
    computed = dict.fromkeys(t for t in planned.order if isinstance(t, Compute) and t not in known)
    if not policy.facts.copies_for_products or not any(_is_scaled(t) for t in computed):
        return planned
    groups: dict[frozenset[tuple[Tensor, int]], list[_Sum]] = {}
    for tensor in computed:
        for node in _sums(tensor):
            found = _taken_apart(tensor, node, computed)
            if found is not None:
                groups.setdefault(found.shared, []).append(found)
    tables: dict[Compute, dict[Expr, Expr]] = {}
    for members in groups.values():
        if len({own.tensor for own in members}) > 1:
            for own in members:
                body = (multiplied(own.factors),)
                node = own.node.changed(exprs=body)
                tables.setdefault(own.tensor, {})[own.node] = node
    new: dict[Tensor, Compute] = {t: t.renewed(substitute(t.body, table)) for t, table in tables.items()}
    unread = [t for own in tables for t in own.inputs if isinstance(t, Compute)]
    return planned.with_definitions(new, unread, results)


def _is_scaled(tensor: Compute) -> bool:
    """Whether a tensor is a product with a factor over some of its axes only, all of it elementwise."""
    product = product_of(tensor.body)
    if tensor.dtype not in _DTYPES or product.is_conditional or len(product.factors) < 2:
        return False
    if any(isinstance(n, Reduce) for f in product.factors for n in postorder(f.expr)):
        return False
    long = _long(tensor.axes)
    over = [long.intersection(free_axes(f.expr)) for f in product.factors]
    return long in over and any(own and own != long for own in over)


def _long(axes: Sequence[Axis]) -> set[Axis]:
    return {a for a in axes if known(a.extent) != 1}


def _sums(tensor: Compute) -> list[Reduce]:
    if tensor.dtype not in _DTYPES:
        return []
    return [node for node in reductions(tensor.body) if node.is_sum and node.where is TRUE]


def _taken_apart(tensor: Compute, node: Reduce, computed: Members[Any]) -> _Sum | None:
    """A sum over some of the axes of what it reads, with its factors; None where it has no vector among them."""
    product = product_of(node.exprs[0])
    if product.is_conditional:
        return None
    factors = tuple(part for f in product.factors for part in _factors(f, computed))
    axes = _long([*node.axes, *tensor.axes])
    whole = [
        f.expr for f in factors if not f.inverse and isinstance(f.expr, Read) and _is_whole(f.expr, axes)
    ]
    if len(axes) != 2 or len(whole) < 2 or len({read.indices for read in whole}) > 1:
        return None  # in more dimensions XLA copies the product, transposed
    vectors = [f for f in factors if not among(f.expr, whole) and depends_on(f.expr, node.axes)]
    if not vectors or any(f.inverse or axes <= free_axes(f.expr).keys() for f in vectors):
        return None
    if any((known(a.extent) or FEW + 1) <= FEW for a in node.axes):
        return None  # it would be written out
    if multiplied(factors).dtype != node.dtype:
        return None
    return _Sum(tensor, node, factors, frozenset(Counter(read.tensor for read in whole).items()))


def _factors(factor: Factor, computed: Members[Any]) -> Sequence[Factor]:
    """The factors of a tensor that is read, where it is a product with a vector."""
    read = factor.expr
    if factor.inverse or not isinstance(read, Read) or not isinstance(read.tensor, Compute):
        return [factor]
    tensor = read.tensor
    if tensor not in computed or not _is_scaled(tensor):
        return [factor]
    at = dict(zip(tensor.axes, read.indices, strict=True))
    return [Factor(at_positions(f.expr, at), f.inverse) for f in product_of(tensor.body).factors]


def _is_whole(read: Read, axes: set[Axis]) -> bool:
    """Whether a read is at every point: at each of ``axes``, and at no other position."""
    own = {i for i in read.indices if isinstance(i, Axis)}
    return len(own) == len(read.indices) and axes <= own
