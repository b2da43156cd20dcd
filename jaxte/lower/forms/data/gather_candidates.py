"""The forms of a read at one position that is data, with what each costs.

``X[I[i], j]`` is a gather. It is also the product of the one-hot matrix of the positions with X, which is fastest where
matrix products are cheap, gathers are not, and X has few rows. In that product every element of X is met by every position, with
a factor 0 if it is not the one that is read: where X holds an infinity or a NaN, ``0 * inf`` is NaN everywhere. Such products are taken
by their cost only where X is stated to be finite (``te.facts.finite``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import Axis, Read, as_expr
from jaxte.lang.operators import AND, LESS, LESS_EQUAL, SELECT
from jaxte.lang.walk import free_axes, substitute
from jaxte.lower.arrays.data import OneHot
from jaxte.lower.arrays.elementwise import Apply, Name, Number, size
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.body.candidates import Candidate, choose
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import broadcast
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.policy import signature
from jaxte.lower.cost.work import Work
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import extent_of
from jaxte.tensors.facts import Finite, find

GATHER, ONE_HOT = "gather", "one-hot product"
_MOST_ONES = 2**26  # elements of a one-hot matrix that is worth thinking of
_NOT_FINITE = "an infinity or a NaN in {} would make all that is read NaN, as 0 * inf"


def form_of(body: Body, node: Read, index: Value, place: int, scope: Scope) -> str:
    """How to read ``node``, whose only array of positions is ``index``, in the place ``place`` of its indices."""
    current = substitute(node, dict(scope.table))
    assert isinstance(current, Read)
    offers = list(_candidates(node, index, place))
    if len(offers) < 2:
        return GATHER
    axes = [d for d in scope.order if d in free_axes(current)]
    chosen = choose(body, offers, signature(axes, current))
    if chosen.caution:
        body.report.because(chosen.caution)
    return chosen.form


def _candidates(node: Read, index: Value, place: int) -> Iterator[Candidate]:
    rows = prod(extent_of(d.extent) for d in index.dims)
    extents = [extent_of(as_expr(e)) for e in node.tensor.shape]
    values = rows * prod(extents[:place] + extents[place + 1 :])
    yield Candidate(GATHER, Work(gather=values, kernel=1), None)
    ones = rows * extents[place]
    if not is_float(node.dtype) or ones > _MOST_ONES:
        return
    hot = ones * dtypes.width(node.dtype)
    work = Work(dot=2.0 * values * extents[place], stream=2.0 * hot, temporaries=hot, kernel=2)
    finite = find(node.tensor, Finite) is not None
    yield Candidate(ONE_HOT, work, None, "" if finite else _NOT_FINITE.format(node.tensor.name))


def one_hot_value(
    body: Body, node: Read, index: Value, place: int, kept: Sequence[Axis], inside: bool
) -> Value:
    """``node`` as a product, over ``kept`` with the dimensions of ``index`` at ``place``.

    Args:
        inside: whether every position is in range, or its element does not count where it is not.
    """
    extent = as_expr(node.tensor.shape[place])
    base, at = body.tensor(node.tensor), body.named(index).code
    letters = "abcdefghijklmnopqrstuvwxy"
    block, own = letters[: len(index.dims)], letters[len(index.dims) :][: len(kept)]
    spec = f"{block}z,{own[:place]}z{own[place:]}->{own[:place]}{block}{own[place:]}"
    assert isinstance(at, Name)
    ones = Value(OneHot(at, extent, node.dtype), (*index.dims, Axis("z", 0, extent)), (node.dtype, False))
    hot = body.named_as(f"{at.identifier}_one_hot", ones).code
    dims = (*kept[:place], *index.dims, *kept[place:])
    product = Value(Einsum(spec, (hot, base), exact=True), dims, (node.dtype, False))
    if inside:
        return product
    inside_range = Apply(AND, (Apply(LESS_EQUAL, (Number(0), at)), Apply(LESS, (at, size(extent)))))
    mask = broadcast(Value(inside_range, index.dims, ("bool", False)), dims)
    product = body.named(product)
    return Value(Apply(SELECT, (mask, product.code, Number(math.nan))), dims, product.kind)
