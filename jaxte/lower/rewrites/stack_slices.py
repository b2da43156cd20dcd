"""Products with the slices of one tensor, added, as one product: ``x @ w[0] + s @ w[1] + t @ w[2]``.

What is multiplied by the slices is put side by side; the matrix product is then over the slices too:

    sum over k of (x[i, k] * w[0, k, o] + s[i, k] * w[1, k, o])   =   sum over p, k of [x, s][i, p, k] * w[p, k, o]

The result is written once, and a product over few terms becomes one over several times as many. What is put side by side is a
copy, so all of it must not be larger than the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.algebra.sums import addends
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, Reduce
from jaxte.lang.identity import among
from jaxte.lang.walk import free_axes, rewrite
from jaxte.lower.cost.work import points
from jaxte.lower.limits import FEW_POSITIONS
from jaxte.lower.rewrites.short_axes import chosen
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True)
class _Term:
    """``other`` times ``read``, which reads its tensor at the number ``position`` of dimension ``dim``."""

    read: Read
    dim: int
    position: int
    other: Expr


def with_stacked_terms(root: Expr) -> Expr:
    """``root`` with sums of products with slices of one tensor as single products."""
    return rewrite(root, _one_product)


def _one_product(node: Expr) -> Expr:
    if not isinstance(node, Reduce) or node.reducer.name != "sum" or node.where is not TRUE:
        return node
    # without what Python's sum begins with
    parts = [p for p in addends(node.exprs[0]) if not (isinstance(p, Const) and p.value == 0)]
    if not 1 < len(parts) <= FEW_POSITIONS:
        return node
    for tensor, dim in _candidates(parts[0]):
        terms = [_term(part, tensor, dim) for part in parts]
        found = [t for t in terms if t is not None]
        if len(found) == len(terms) and same_extent(len(terms), tensor.shape[dim]) and _fit(found, node):
            return _joined(sorted(found, key=lambda t: t.position), node)
    return node


def _candidates(part: Expr) -> list[tuple[Tensor, int]]:
    """What the first product reads at a number."""
    reads = [f.expr for f in product_of(part).factors if isinstance(f.expr, Read) and not f.inverse]
    return [(r.tensor, n) for r in reads for n, index in enumerate(r.indices) if isinstance(index, Const)]


def _term(part: Expr, tensor: Tensor, dim: int) -> _Term | None:
    product = product_of(part)
    own = [
        f for f in product.factors if isinstance(f.expr, Read) and f.expr.tensor is tensor and not f.inverse
    ]
    if len(own) != 1 or product.is_conditional:
        return None
    read = own[0].expr
    assert isinstance(read, Read)
    others = [f for f in product.factors if f is not own[0]]
    index = read.indices[dim]
    if not isinstance(index, Const) or all(f.inverse for f in others):
        return None
    return _Term(read, dim, int(index), multiplied([Factor(f.expr, f.inverse) for f in others]))


def _fit(terms: Sequence[_Term], node: Reduce) -> bool:
    """Whether the slices are all those of the tensor, of the same kind, and all copies together not larger than the result."""
    first = terms[0]
    rest = [i for n, i in enumerate(first.read.indices) if n != first.dim]
    over = free_axes(first.other).keys()
    weights = free_axes(first.read).keys()
    for term in terms:
        same = [i for n, i in enumerate(term.read.indices) if n != first.dim]
        if any(a is not b for a, b in zip(rest, same, strict=True)) or free_axes(term.other).keys() != over:
            return False
        if term.other.weak or term.other.dtype != node.dtype or term.read.dtype != node.dtype:
            return False
    kept = {a for a in (*over, *weights) if not among(a, node.axes)}
    return (
        {t.position for t in terms} == set(range(len(terms)))
        and bool(weights - over)
        and bool(over - weights)
        and all(a in over and a in weights for a in node.axes)
        and len(terms) * points(over) <= points(kept)
    )


def _joined(terms: Sequence[_Term], node: Reduce) -> Expr:
    first = terms[0]
    axis = Axis("part", 0, len(terms), reduction=True)
    others = chosen(axis, [t.other for t in terms])
    indices = [axis if n == first.dim else index for n, index in enumerate(first.read.indices)]
    product = others * Read(first.read.tensor, indices)
    return Reduce(node.reducer, (product,), (axis, *node.axes), TRUE)
