"""The forms of a read at one position that is data: a gather, a product with one-hot rows, a choice of few.

``X[I[i], j]`` is a gather. It is also the product of the one-hot matrix of the positions with X, which is fastest where
matrix products are cheap, gathers are not, and X has few rows. In that product every element of X is met by every position, with
a factor 0 if it is not the one that is read: where X holds an infinity or a NaN, ``0 * inf`` is NaN everywhere. Such products are taken
by their cost only where X is stated to be finite (``te.facts.finite``).

Of a table of few elements, as ``p[m, q, letter[n, i + q]]`` has four, each may be chosen where a position is its own::

    where(at == 0, p[0], where(at == 1, p[1], nan))

That is exact whatever the elements are, and computed in vectors in the loop that reads it. Rows are gathered in vectors, so single elements are chosen only:
of 2, 4 and 8 a million take 0.13, 0.19 and 0.28 ms on a CPU and 0.38 as a gather, of 16 0.74.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxte.lang import dtypes
from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import Axis, Read, Scalar, as_expr
from jaxte.lang.limits import FEW_POSITIONS, MANY_ELEMENTS, MOST_KEPT, VECTOR
from jaxte.lang.operators import AND, EQUAL, LESS, LESS_EQUAL, SELECT
from jaxte.lang.walk import free_axes, substitute
from jaxte.lower.arrays.data import OneHot
from jaxte.lower.arrays.elementwise import Apply, Name, Number, number, size
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.candidates import Candidate, choose
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import broadcast
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.policy import signature
from jaxte.lower.cost.work import Work, points
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import extent_of, index_stays_in, known
from jaxte.tensors.facts import Finite, find

GATHER, ONE_HOT, CHOSEN = "gather", "one-hot product", "choice of few"
_NOT_FINITE = "an infinity or a NaN in {} would make all that is read NaN, as 0 * inf"


@dataclass(frozen=True)
class Place:
    """Where a read has its only position that is data.

    Attributes:
        at: which of its indices that is.
        index: the positions.
        dims: of what is read, in the order in which a gather gives them.
        alone: whether all other dimensions are read in whole.
        rows: elements side by side that one position reads.
    """

    at: int
    index: Value
    dims: tuple[Axis, ...]
    alone: bool
    rows: int


def form_of(body: Body, node: Read, place: Place, scope: Scope) -> str:
    """How to read ``node``."""
    current = substitute(node, dict(scope.table))
    assert isinstance(current, Read)
    offers = list(_candidates(node, place))
    if len(offers) < 2:
        return GATHER
    axes = [d for d in scope.order if d in free_axes(current)]
    chosen = choose(body, offers, signature(axes, current))
    if chosen.caution:
        body.report.because(chosen.caution)
    return chosen.form


def _candidates(node: Read, place: Place) -> Iterator[Candidate]:
    values, extent = points(place.dims), extent_of(as_expr(node.tensor.shape[place.at]))
    yield Candidate(GATHER, Work(gather=values, kernel=1), None)
    if _is_of_few(node, place):
        yield Candidate(CHOSEN, Work(tap=values * extent, kernel=1), None)
    ones = points(place.index.dims) * extent
    hot = ones * dtypes.width(node.dtype)
    if not place.alone or not is_float(node.dtype) or hot > MOST_KEPT:
        return
    work = Work(dot=2.0 * values * extent, stream=2.0 * hot, temporaries=hot, kernel=2)
    finite = find(node.tensor, Finite) is not None
    yield Candidate(ONE_HOT, work, None, "" if finite else _NOT_FINITE.format(node.tensor.name))


def _is_of_few(node: Read, place: Place) -> bool:
    """Whether each of few elements is read by many positions, one by one."""
    extent = known(as_expr(node.tensor.shape[place.at]))
    others = [
        (i, as_expr(e))
        for n, (i, e) in enumerate(zip(node.indices, node.tensor.shape, strict=True))
        if n != place.at
    ]
    return (
        extent is not None
        and extent <= FEW_POSITIONS
        and place.rows < VECTOR
        and points(place.dims) >= MANY_ELEMENTS
        and all(index_stays_in(i, e) for i, e in others)
    )


def chosen_value(body: Body, node: Read, place: Place, inside: bool, scope: Scope) -> Task:
    """``node`` as a choice among all that it may read.

    Args:
        inside: whether every position is in range, or its element does not count where it is not.
    """
    index = body.named(place.index)
    each = []
    for k in range(extent_of(as_expr(node.tensor.shape[place.at]))):
        at = (*node.indices[: place.at], as_expr(k), *node.indices[place.at + 1 :])
        each.append((yield Read(node.tensor, at), scope))
    if not inside:
        each.append(Value(number(outside_element(node, True)), (), (node.dtype, True), literal=True))
    value = each.pop()
    for k, own in reversed(list(enumerate(each))):
        here = Value(Number(k), (), ("int32", True), literal=True, number=k)
        is_here = body.combine(EQUAL, [index, here], ("bool", False), scope)
        value = body.combine(SELECT, [is_here, own, value], (node.dtype, False), scope)
    body.read_in_slices([node.tensor])
    return value


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


def outside_element(node: Read, has_data: bool) -> Scalar:
    """The element that a read out of range gives; affine reads leave their tensor behind guards only."""
    if node.dtype == "bool":
        return False
    return math.nan if has_data and dtypes.is_inexact(node.dtype) else 0
