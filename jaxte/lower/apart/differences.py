"""Sums of products with a difference of what depends on other axes: products of matrices, where that takes less time and is exact enough.

    sum over j of w[i, j] * (x[i, c] - y[j, c])   is   (x[i, c] - m[c]) * (sum over j of w[i, j])
                                                       - sum over j of w[i, j] * (y[j, c] - m[c])

The difference has a value for each point of the whole sum, which no product of matrices has. Apart, each of its sides leaves one. Both are
taken from a position that they share, ``m[c] = y[0, c]``, so that what is rounded is as large as the points are apart, however far from zero they
lie: the result is off by no more than a change of ``x - m`` and ``y - m`` by a few units in the last place would make. The difference itself is
exacter where the weights are large for points that nearly coincide (see ``concentrated.py``), and where they choose between points that are near to each
other and far from all others, as a narrow kernel does over few features. There it stays, unless the user names this form.

The square of a difference, ``sum over c of (x[i, c] - y[j, c])**2``, stays: of points that nearly coincide, what is left of it multiplied out is rounding, and
it is summed in steps, or for each point, in 0.9 to 1.2 times the time of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, Product, multiplied, product_of, split_outer, times_sum
from jaxte.algebra.sums import signed_terms
from jaxte.lang import dtypes
from jaxte.lang import functions as scalar
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import MARGIN, MOST_TERMS, NARROW
from jaxte.lang.operators import ADD, SUBTRACT
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.lower.apart.concentrated import Pairs, may_be_concentrated, reads_unknown_pairs
from jaxte.lower.cost.general import general_work
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.steps import is_in_steps, seconds_in_steps, seconds_otherwise
from jaxte.lower.cost.work import points
from jaxte.sets.intervals import known
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute

APART = "differences apart"
_FEW = "points of few features may lie many times farther apart than those that the weights tell apart"
_UNKNOWN = "nothing is known of the weights where both sides coincide"


@dataclass(frozen=True)
class Difference:
    """A sum with a difference among its factors.

    Attributes:
        node: the sum.
        product: what it sums.
        wide: the factor that is the difference.
        sides: what it is a difference of: the first one less the second one.
        pairs: the axes of the first side alone, and of the second one alone.
    """

    node: Reduce
    product: Product
    wide: Factor
    sides: tuple[Expr, Expr]
    pairs: Pairs

    @property
    def others(self) -> list[Factor]:
        return [f for f in self.product.factors if f is not self.wide]

    @property
    def axes(self) -> dict[Axis, None]:
        """All that the sum runs over, or depends on."""
        return dict.fromkeys((*free_axes(self.node), *self.node.axes))


def difference_in(node: Reduce) -> Difference | None:
    """``node`` as a sum with one difference of what depends on other axes; None where it is none."""
    if not node.is_sum or node.where is not TRUE or node.dtype not in ("float32", "float64"):
        return None
    product = product_of(node.exprs[0])
    if product.is_conditional or node.exprs[0].dtype != node.dtype:
        return None
    found = [own for f in product.factors if (own := _difference(node, product, f)) is not None]
    return found[0] if len(found) == 1 and all(map(_is_plain, reads_of(*node.exprs))) else None


def _difference(node: Reduce, product: Product, factor: Factor) -> Difference | None:
    if factor.inverse:
        return None
    expr = factor.expr
    if not isinstance(expr, Call) or expr.op not in (ADD, SUBTRACT):
        return None
    terms = signed_terms(expr, negated=True)
    if sorted(sign for _, sign in terms) != [-1, 1]:
        return None
    (first, _), (second, _) = sorted(terms, key=lambda term: -term[1])
    own = [a for a in free_axes(first) if a not in free_axes(second)]
    others = [a for a in free_axes(second) if a not in free_axes(first)]
    if not own or not others:
        return None
    return Difference(node, product, factor, (first, second), (own, others))


def _is_plain(read: Read) -> bool:
    """Whether each index is of one axis: no window, and no data."""
    return all(len(free_axes(i)) <= 1 and not reads_of(i) for i in read.indices)


# --- what it takes, and how exact it is


def seconds_apart(found: Difference, facts: Platform) -> tuple[float, float]:
    """The time of the sum as it is, in whatever way takes least, and of its sides apart."""
    width = dtypes.width(found.node.dtype)
    whole = seconds_otherwise(found.node, facts, laid_out=not _has_column(found))
    if is_in_steps(found.node):
        whole = min(whole, seconds_in_steps(found.node, facts))
    apart = 0.0
    for side in found.sides:
        factors = [Factor(side) if f is found.wide else f for f in found.product.factors]
        _, inner = split_outer(factors, found.node.axes)
        own = found.node.changed(exprs=(multiplied(inner),), where=TRUE)
        apart += general_work(tuple(free_axes(own)), own, facts).seconds(facts.rates)
        apart += 2 * width * points(free_axes(side)) / _moved(facts)
    return whole, apart + 4 * width * points(free_axes(found.node)) / _moved(facts)


def _moved(facts: Platform) -> float:
    """Bytes a second of loops whose arrays are read by the next one."""
    return facts.rates.stream if facts.paces is None else facts.paces.moved


def _has_column(found: Difference) -> bool:
    """Whether a kept axis of few points is of the difference alone, so that it is summed for one position after the other."""
    kept = [a for a in free_axes(found.wide.expr) if not among(a, found.node.axes)]
    return any(
        points([a]) <= MOST_TERMS and not any(a in free_axes(f.expr) for f in found.others) for a in kept
    )


def is_faster(found: Difference, facts: Platform) -> bool:
    whole, apart = seconds_apart(found, facts)
    return whole >= MARGIN * apart


def why_inexact(found: Difference) -> str:
    """Why the sum may be less exact with its sides apart; empty where it is as exact as what it is made of."""
    weights = [f.expr for f in found.others]
    scaled = any(isinstance(w, Const) and w.value not in (1, -1) for w in weights)
    if scaled and reads_unknown_pairs(weights, found.pairs):
        return _UNKNOWN  # the derivative of a square, by what flows back into it
    if why := may_be_concentrated(weights, found.sides, found.pairs):
        return why
    first, second = map(free_axes, found.sides)
    # With 3 to 12, gradients of sums of Gaussians were 2.8 to 7 times as far off as those of the difference, with 16 at most twice; and nothing was faster.
    return _FEW if points([a for a in first if among(a, second)]) < NARROW else ""


def has_known_extents(found: Difference) -> bool:
    """Whether there is a position that both sides are taken from."""
    return all((known(a.extent) or 0) > 0 for a in found.axes)


# --- apart


class Parts:
    """The tensors that sums with their sides apart read: one for all that read the same."""

    def __init__(self) -> None:
        self._axes: dict[tuple[str, Expr, int], Axis] = {}
        self._made: dict[Expr, Compute] = {}

    def element(self, owner: Compute, name: str, axes: Sequence[Axis], body: Expr) -> Expr:
        """The element at ``axes`` of a tensor with ``body``, a part of ``owner``."""
        own, inside = self._inside(axes, body)
        if inside not in self._made:
            self._made[inside] = PartialSum(f"{owner.name}_{name}", own, inside).as_part_of(owner.part_of)
        return Read(self._made[inside], [a - a.lo for a in axes])

    def exists(self, tensor: Compute, body: Expr) -> None:
        """``tensor``, whose element is ``body``, is taken where another one would be made."""
        self._made.setdefault(self._inside(tensor.axes, body)[1], tensor)

    def _inside(self, axes: Sequence[Axis], body: Expr) -> tuple[list[Axis], Expr]:
        """``body`` over axes that are the same for all tensors, and these."""
        own: dict[Axis, Axis] = {}
        for a in axes:  # two of one name are two
            alike = sum(b.name == a.name for b in own)
            own[a] = self._axes.setdefault((a.name, a.extent, alike), Axis(a.name, 0, a.extent))
        return list(own.values()), substitute(body, {a: b + a.lo for a, b in own.items()})


def apart(found: Difference, owner: Compute, parts: Parts) -> Expr | None:
    """The value of the sum with the sides of its difference apart; None where its dtype would be another one.

    Args:
        found: what it is.
        owner: the tensor that it is in.
        parts: those that are made, which grow.
    """
    weights = _weights(found, owner, parts)
    first, second = _from_a_position(found, owner, parts)
    sums = [_sum(found, [*weights, Factor(side)]) for side in (first, second)]
    return None if sums[0] is None or sums[1] is None else sums[0] - sums[1]


def _weights(found: Difference, owner: Compute, parts: Parts) -> list[Factor]:
    """The other factors; an element of a tensor for those that are computed for each pair, which several sums read."""
    wide = [f for f in found.others if all(depends_on(f.expr, own) for own in found.pairs)]
    if all(isinstance(f.expr, Read) and not f.inverse for f in wide):
        return found.others
    axes = list(dict.fromkeys(a for f in wide for a in free_axes(f.expr)))
    part = parts.element(owner, "weights", axes, multiplied(wide))
    return [*(f for f in found.others if all(f is not w for w in wide)), Factor(part)]


def _from_a_position(found: Difference, owner: Compute, parts: Parts) -> tuple[Expr, Expr]:
    """Both sides, less the second one at its first position: nothing where that is no number."""
    first, second = found.sides
    place = substitute(second, {a: a.lo for a in found.pairs[1]})
    number = scalar.select(scalar.isfinite(place), place, 0)
    middle = parts.element(owner, "from", list(free_axes(place)), number)
    return first - middle, second - middle


def _sum(found: Difference, factors: Sequence[Factor]) -> Expr | None:
    """The sum of the product of ``factors``, over axes of its own, what does not depend on these outside."""
    fresh = {a: Axis(a.name, a.lo, a.hi, reduction=True) for a in found.node.axes}
    own = [Factor(substitute(f.expr, fresh), f.inverse) for f in factors]
    axes = tuple(fresh.values())
    outer, inner = split_outer(own, axes)
    if all(isinstance(f.expr, Const) for f in inner):
        return None
    node = found.node.changed(exprs=(multiplied(inner),), axes=axes, where=TRUE)
    return times_sum(outer, inner, node) if outer else node
