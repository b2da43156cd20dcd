"""Sums of exponentials up to each position, or from each on: those of a logsumexp over all so far, or all that are left, and of its adjoint.

    y[t] = sum over s <= t of w[s] * exp(f[s] - c[t])

takes the exponential of each pair. ``exp(f[s])`` by itself may be infinite where ``y`` is not. So the largest exponent so far is kept beside the sum in units of it,

    m[t] = max over s <= t of f[s]
    z[t] = sum over s <= t of w[s] * exp(f[s] - m[t])
    y[t] = z[t] * exp(m[t] - c[t])

which is one pass over a row: two parts of it are joined by the larger exponent (Milakov and Gimelshein, 2018), in whatever way the platform runs through an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

from jaxte.algebra.exponential_sums import EXP, ExponentialSum, exponential_sum
from jaxte.algebra.product import Factor, multiplied
from jaxte.lang.expr import Axis, Const, Expr, Reduce, Reducer, Symbol, call, cast, conjunction
from jaxte.lang.graphs import Members
from jaxte.lang.limits import MARGIN
from jaxte.lang.operators import EQUAL, MAXIMUM, SELECT
from jaxte.lang.walk import depends_on, outermost, substitute, with_tensors
from jaxte.lower.apart.differences import Parts
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import Work, points
from jaxte.lower.forms.scan.candidates import ASSOCIATIVE, SEQUENTIAL, scan_work
from jaxte.lower.forms.scan.recognise import recognise_scan
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.tensor import Compute, Tensor

EXPONENTIALS = "exponentials by the largest"


@dataclass(frozen=True, slots=True)
class _Carried:
    """What is carried on for a sum.

    Attributes:
        largest: the largest exponent.
        scaled: the sum in units of its exponential.
        axes: those of the definition that each of the two depends on.
    """

    found: ExponentialSum
    largest: Reduce
    scaled: Reduce
    axes: tuple[tuple[Axis, ...], tuple[Axis, ...]]


def with_sums_of_exponentials(order: Sequence[Tensor], given: Members[Tensor], policy: Policy) -> Changed:
    """What stands for the tensors of ``order`` that are computed otherwise, and for those that read them.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        policy: the platform.
    """
    if EXPONENTIALS in policy.without:
        return {}
    own = [t for t in order if t not in given]
    met = {t for t in own if isinstance(t, Compute) and _sums(t.axes, t.body, policy)}
    if not met:
        return {}
    parts = Parts()
    for tensor in own:  # a logsumexp has taken the largest already
        if isinstance(tensor, Compute) and isinstance(largest := tensor.body, Reduce) and largest.is_extremum:
            parts.exists(tensor, _over_one_axis(largest))

    def body(tensor: Compute, known: Changed) -> Expr:
        if tensor not in met:
            return tensor.body
        new = with_tensors(tensor.body, known)
        sums = _sums(tensor.axes, new, policy)
        return substitute(new, {node: _renewed(own, tensor, parts) for node, own in sums.items()})

    changed = changes(own, body, {})
    for old in met:
        if isinstance(new := changed.get(old), Compute):
            new.as_planned_by([*new.planned_by, EXPONENTIALS])
    return changed


def _renewed(own: _Carried, owner: Compute, parts: Parts) -> Expr:
    """What stands for the sum, by two tensors that are part of ``owner``."""
    m = parts.element(owner, "largest", own.axes[0], own.largest)
    z = parts.element(owner, "scaled", own.axes[1], own.scaled)
    # of no exponent there is nothing, whatever is added to it
    dtype = own.scaled.dtype
    total = call(SELECT, call(EQUAL, m, Const(-inf, dtype)), m, m + cast(own.found.held, dtype))
    factors = (*own.found.outside, Factor(z), Factor(call(EXP, total)))
    return cast(multiplied(factors, own.found.around), dtype)


def _sums(axes: Sequence[Axis], body: Expr, policy: Policy) -> dict[Expr, _Carried]:
    """The sums in ``body`` that are computed so, since that is faster."""
    if not body.reduces:
        return {}
    found = {node: exponential_sum(node, axes) for node in outermost(body)}
    carried = {node: _carried(node, own, axes) for node, own in found.items() if own is not None}
    return {node: own for node, own in carried.items() if _is_faster(node, own, axes, policy)}


def _carried(node: Reduce, found: ExponentialSum, axes: Sequence[Axis]) -> _Carried:
    values = [cast(found.moving, node.dtype), cast(found.weight, node.dtype)]
    where = conjunction(found.guards)
    largest = _over_one_axis(Reduce(builtin_reducer("max", node.dtype), values[:1], node.axes, where))
    scaled = _over_one_axis(Reduce(_joined(node.dtype), values, node.axes, where, 1))
    over, of_all = (tuple(a for a in axes if depends_on(e, [a])) for e in (largest, scaled))
    return _Carried(found, largest, scaled, (over, of_all))


def _over_one_axis(node: Reduce) -> Reduce:
    """``node`` over the axis that all reductions over its range are over here."""
    if len(node.axes) != 1:
        return node
    (own,) = node.axes
    s = _axis(own.lo, own.hi)
    exprs = [substitute(e, {own: s}) for e in node.exprs]
    return node.changed(exprs=exprs, axes=(s,), where=substitute(node.where, {own: s}))


@cache
def _axis(lo: Expr, hi: Expr) -> Axis:
    """One axis for all sums over a range, so that those of the same terms are one."""
    return Axis("s", lo, hi, reduction=True)


def _is_faster(node: Reduce, found: _Carried, axes: Sequence[Axis], policy: Policy) -> bool:
    """Whether a pass over each row takes less than the exponential of each pair."""
    spec = recognise_scan(found.axes[1], found.scaled)
    if isinstance(spec, Refusal):
        return False
    used = [a for a in axes if depends_on(node, [a])]
    pairs = Work(transcendental=points([*used, *node.axes]))
    joined = Work(transcendental=2 * points(found.axes[1]) + points(used))
    passes = min(
        scan_work(spec, form, policy.facts).seconds(policy.rates) for form in (ASSOCIATIVE, SEQUENTIAL)
    )
    return pairs.seconds(policy.rates) >= MARGIN * (joined.seconds(policy.rates) + passes)


@cache
def _joined(dtype: str) -> Reducer:
    """Two parts, each the largest exponent and the sum in units of it, as one."""
    (m, z), (n, y) = ((Symbol(a, dtype), Symbol(b, dtype)) for a, b in ("mz", "ny"))
    larger = call(MAXIMUM, m, n)

    def scaled(value: Expr, exponent: Expr) -> Expr:
        # infinite exponents have no difference
        is_largest = call(EQUAL, exponent, larger)
        return value * call(SELECT, is_largest, Const(1.0, dtype), call(EXP, exponent - larger))

    results = (larger, scaled(z, m) + scaled(y, n))
    identity = (Const(-inf, dtype), Const(0.0, dtype))
    return Reducer("custom", "logsumexp", "even", (m, z), (n, y), results, identity)
