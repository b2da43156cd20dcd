"""Sums of one difference over its two sides as one: what flows back to both is summed once, and mirrored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, in_common, multiplied, product_of, taken_outside, without
from jaxte.algebra.sums import Signed, added, signed_terms
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Const, Expr, Reduce, call
from jaxte.lang.graphs import Members, among, identical
from jaxte.lang.limits import MOST_PARTS, SEVERAL
from jaxte.lang.operators import MULTIPLY, SELECT, SUBTRACT
from jaxte.lang.walk import free_axes, substitute, with_tensors
from jaxte.lower.apart.differences import Difference, Parts, difference_in, has_known_extents
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.lower.rewrites.merge_sums import SignedSum, domain, sum_in
from jaxte.tensors.tensor import Compute, Tensor

MIRRORED = "mirrored sums"
_SMALL = 8  # of the cache: weights of more pairs are left to be computed in tiles, where those of a pair the other way round are not at hand


@dataclass(frozen=True)
class _Pair:
    """Two terms of a body that are sums of one difference.

    Attributes:
        places: of the two among the terms.
        one: the first of them.
        difference: what both are sums of, over the axes of the first one.
        weights: what it is multiplied by in each.
        outside: what both sums are multiplied by.
    """

    places: tuple[int, int]
    one: SignedSum
    difference: Expr
    weights: tuple[Signed, Signed]
    outside: tuple[Factor, ...]

    @property
    def features(self) -> int:
        """For how many values of the difference weights are added once."""
        weighed = free_axes(self.weights[0][0])
        return points([a for a in free_axes(self.difference) if a not in weighed])

    @property
    def alike(self) -> tuple[Signed, ...]:
        """What is the same for pairs with the same weights, whatever the axes of their sums are called."""
        numbers = {a: Const(n, "int32") for n, a in enumerate(self.one.node.axes)}
        return tuple((substitute(weight, numbers), sign) for weight, sign in self.weights)

    @property
    def bytes(self) -> int:
        return points(free_axes(self.weights[0][0])) * dtypes.width(self.one.node.dtype)


def with_mirrored_sums(order: Sequence[Tensor], given: Members[Tensor], policy: Policy) -> Changed:
    """What stands for the tensors of ``order`` that are computed otherwise, and for those that read them.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        policy: the platform.
    """
    if MIRRORED in policy.without or not policy.facts.lays_out_sums:
        return {}
    own = [t for t in order if t not in given]
    met = {t for t in own if isinstance(t, Compute) and _pairs(t.body, policy)}
    if not met:
        return {}
    parts = Parts()

    def body(tensor: Compute, known: Changed) -> Expr:
        if tensor not in met:
            return tensor.body
        new = with_tensors(tensor.body, known)
        return _joined(new, _pairs(new, policy), tensor, parts)

    changed = changes(own, body, {})
    for old in met:
        if isinstance(new := changed.get(old), Compute):
            new.as_planned_by([*new.planned_by, MIRRORED])
    return changed


def _pairs(body: Expr, policy: Policy) -> list[_Pair]:
    """The terms of ``body`` that gain by being one sum."""
    terms = signed_terms(body, negated=True)
    if not body.reduces or not 1 < len(terms) <= MOST_PARTS:
        return []
    groups: dict[object, dict[int, _Scaled]] = {}
    for n, term in enumerate(terms):
        if (own := _scaled(*term)) is not None:
            groups.setdefault(domain(own.sum), {})[n] = own
    found = [pair for members in groups.values() for pair in _pairs_of(members)]
    features: Counter[tuple[Signed, ...]] = Counter()
    for pair in found:
        features[pair.alike] += pair.features
    most = policy.rates.cache / _SMALL
    # Values of a difference: of two, the weights are one array more that is held (point vortices: 7 -> 10 MB, in as long a time).
    return [p for p in found if features[p.alike] >= SEVERAL and p.bytes <= most]


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A sum, and what it is multiplied by."""

    sum: SignedSum
    factors: tuple[Factor, ...] = ()


def _scaled(term: Expr, sign: int) -> _Scaled | None:
    """``sign`` times ``term`` as a sum times factors; None where it is none."""
    if (own := sum_in(term, sign)) is not None:
        return _Scaled(own)
    product = product_of(term)
    number, factors = product.signed()
    sums = [f for f in factors if not f.inverse and isinstance(f.expr, Reduce) and f.expr.is_sum]
    if product.is_conditional or len(sums) != 1 or any(f.expr.dtype != term.dtype for f in factors):
        return None
    (only,) = sums
    assert isinstance(only.expr, Reduce)
    others = tuple(f for f in factors if f is not only)
    return _Scaled(SignedSum(sign * number, TRUE, only.expr), others)


def _pairs_of(left: dict[int, _Scaled]) -> Iterator[_Pair]:
    """Those among sums over the same positions, each in one pair."""
    while left:
        n = min(left)
        one = left.pop(n)
        tried = (_pair((n, m), one, other) for m, other in left.items())
        pair = next((p for p in tried if p is not None), None)
        if pair is not None:
            del left[pair.places[1]]
            yield pair


def _pair(places: tuple[int, int], one: _Scaled, other: _Scaled) -> _Pair | None:
    """The two as one, if they are sums of one difference; None where they are not."""
    node = one.sum.node
    renamed = substitute(other.sum.node.exprs[0], dict(zip(other.sum.node.axes, node.axes, strict=True)))
    first = difference_in(node)
    second = difference_in(node.changed(exprs=(renamed,), where=TRUE))
    if first is None or second is None:
        return None
    if not has_known_extents(first) or set(first.sides) != set(second.sides):
        return None
    scales = [_outside(first, one), _outside(second, other)]
    common = in_common(scales)
    turned = 1 if identical(first.sides, second.sides) else -1
    a = _weight(first, one.sum.sign, without(scales[0], common))
    b = _weight(second, turned * other.sum.sign, without(scales[1], common))
    if a is None or b is None or set(free_axes(a[0])) != set(free_axes(b[0])):
        return None
    if a[0].dtype != node.dtype or b[0].dtype != node.dtype:
        return None
    return _Pair(places, one.sum, call(SUBTRACT, *first.sides), (a, b), tuple(common))


def _outside(found: Difference, own: _Scaled) -> list[Factor]:
    """What a sum is multiplied by, and what it may be multiplied by as well outside."""
    outer, _ = taken_outside(found.others, found.node.axes)
    return [*own.factors, *outer]


def _weight(found: Difference, sign: int, scales: Sequence[Factor]) -> Signed | None:
    """What the difference is multiplied by, with what is left of the ``scales``; None where that is a number."""
    own, rest = found.product.signed()
    outer, _ = taken_outside(found.others, found.node.axes)
    factors = [f for f in rest if f is not found.wide and not among(f, outer)] + [*scales]
    return None if all(isinstance(f.expr, Const) for f in factors) else (multiplied(factors), sign * own)


def _joined(body: Expr, pairs: Sequence[_Pair], owner: Compute, parts: Parts) -> Expr:
    """``body`` with one sum for each of ``pairs``, in place of the first of the two."""
    table: dict[int, Expr | None] = {p.places[1]: None for p in pairs}
    table |= {p.places[0]: _sum(p, owner, parts) for p in pairs}
    kept: list[Signed] = []
    for n, (term, sign) in enumerate(signed_terms(body, negated=True)):
        whole = table.get(n)
        if n not in table:
            kept.append((term, sign))
        elif whole is not None:
            kept.append((whole, 1))
    return added(sorted(kept, key=lambda term: -term[1]))


def _sum(pair: _Pair, owner: Compute, parts: Parts) -> Expr:
    """One sum, of weights that are an array with what is summed in front: one row of it for each step. Coordinates that are written out are no steps."""
    own = list(free_axes(pair.weights[0][0]))
    axes = sorted(own, key=lambda a: not among(a, pair.one.node.axes)) if pair.features > 1 else own
    weight = parts.element(owner, "weights", axes, added(sorted(pair.weights, key=lambda own: -own[1])))
    node = pair.one.node
    result: Expr = node.changed(exprs=(call(MULTIPLY, weight, pair.difference),), where=TRUE)
    result = multiplied([*pair.outside, Factor(result)]) if pair.outside else result
    condition = pair.one.condition
    return result if condition is TRUE else call(SELECT, condition, result, Const(0.0))
