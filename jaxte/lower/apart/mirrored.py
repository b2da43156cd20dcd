"""Sums of one difference over its two sides: one sum, of weights that are added.

    sum over j of w[i, j] * (x[i, c] - x[j, c])  -  sum over j of v[j, i] * (x[j, c] - x[i, c])

is  sum over j of (w[i, j] + v[j, i]) * (x[i, c] - x[j, c])

Whatever depends on the distances of points to each other has such a gradient: each point is met as the first and as the second one of a pair. The weights have a
value for each pair, the difference one for each of its features, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxte.algebra.product import multiplied
from jaxte.algebra.sums import Signed, added, signed_terms
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Const, Expr, Read, Reduce, call
from jaxte.lang.graphs import Members, among, identical
from jaxte.lang.limits import MOST_PARTS
from jaxte.lang.operators import MULTIPLY, SELECT, SUBTRACT
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.apart.differences import Difference, Parts, difference_in, has_known_extents
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.lower.rewrites.merge_sums import SignedSum, domain, sum_in
from jaxte.tensors.tensor import Compute, Tensor

MIRRORED = "mirrored sums"
_FEWEST = 3  # values of a difference: of two, the weights are one array more that is held (point vortices: 7 -> 10 MB, in as long a time)
_SMALL = 8  # of the cache: weights of more pairs are left to be computed in tiles, where those of a pair the other way round are not at hand


@dataclass(frozen=True)
class _Pair:
    """Two terms of a body that are sums of one difference.

    Attributes:
        places: of the two among the terms.
        one: the first of them.
        difference: what both are sums of, over the axes of the first one.
        weights: what it is multiplied by in each.
    """

    places: tuple[int, int]
    one: SignedSum
    difference: Expr
    weights: tuple[Signed, Signed]

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
        table: dict[Expr, Expr] = {
            r: Read(known[r.tensor], r.indices) for r in reads_of(tensor.body) if r.tensor in known
        }
        new = substitute(tensor.body, table)
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
    groups: dict[object, dict[int, SignedSum]] = {}
    for n, term in enumerate(terms):
        if (own := sum_in(*term)) is not None:
            groups.setdefault(domain(own), {})[n] = own
    found = [pair for members in groups.values() for pair in _pairs_of(members)]
    features: Counter[tuple[Signed, ...]] = Counter()
    for pair in found:
        features[pair.alike] += pair.features
    most = policy.rates.cache / _SMALL
    return [p for p in found if features[p.alike] >= _FEWEST and p.bytes <= most]


def _pairs_of(left: dict[int, SignedSum]) -> Iterator[_Pair]:
    """Those among sums over the same positions, each in one pair."""
    while left:
        n = min(left)
        one = left.pop(n)
        tried = (_pair((n, m), one, other) for m, other in left.items())
        pair = next((p for p in tried if p is not None), None)
        if pair is not None:
            del left[pair.places[1]]
            yield pair


def _pair(places: tuple[int, int], one: SignedSum, other: SignedSum) -> _Pair | None:
    """The two as one, if they are sums of one difference; None where they are not."""
    axes = one.node.axes
    renamed = substitute(other.node.exprs[0], dict(zip(other.node.axes, axes, strict=True)))
    first = difference_in(one.node)
    second = difference_in(Reduce(one.node.reducer, (renamed,), axes, TRUE))
    if first is None or second is None or first.is_square or second.is_square:
        return None
    if not has_known_extents(first) or set(first.sides) != set(second.sides):
        return None
    turned = 1 if identical(first.sides, second.sides) else -1
    a, b = _weight(first, one.sign), _weight(second, turned * other.sign)
    if a is None or b is None or set(free_axes(a[0])) != set(free_axes(b[0])):
        return None
    if a[0].dtype != one.node.dtype or b[0].dtype != one.node.dtype:
        return None
    return _Pair(places, one, call(SUBTRACT, *first.sides), (a, b))


def _weight(found: Difference, sign: int) -> Signed | None:
    """What the difference is multiplied by; None where that is a number."""
    own, rest = found.product.signed()
    factors = [f for f in rest if f is not found.wide]
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
    result: Expr = Reduce(node.reducer, (call(MULTIPLY, weight, pair.difference),), node.axes, TRUE)
    condition = pair.one.condition
    return result if condition is TRUE else call(SELECT, condition, result, Const(0.0))
