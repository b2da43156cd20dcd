"""The derivative of a body: for each read in it, what an adjoint of the body contributes to that element.

The walk is reverse mode on the expression: adjoints go from the root to the reads, each node's adjoint the sum
over its uses. Guards travel with the adjoint: a factor is multiplied *inside* ``select(cond, g, 0)``, so that a
branch that is not taken contributes exactly nothing, not ``0 * inf``.

What is subtracted from another tensor wherever this is read receives the opposite: of ``abs(x[i + 1] - x[i] - (y[i + 1] - y[i]))``, ``dy[i] = -dx[i]``.
The two are compared at each position by itself: what a target receives at ``i + 1`` has to be what its estimate receives there, up to one sign for all.
"""

from __future__ import annotations

import cmath
import operator
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import plus, times
from jaxte.algebra.sums import signed_terms
from jaxte.autodiff.terms.guards import through_guards
from jaxte.lang import dtypes
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, Symbol, call, cast
from jaxte.lang.graphs import identical, ordered
from jaxte.lang.operators import ADD, AND, DIVIDE, MULTIPLY, NEGATIVE, SELECT
from jaxte.lang.scalars.rows import OPS
from jaxte.lang.scalars.table import TABLE, has_slope
from jaxte.lang.walk import postorder, substitute

_children = operator.attrgetter("children")
_CHOOSING = frozenset(["add", "subtract", "negative", "select", "maximum", "minimum", "relu", "relu6"])
_FOLDS: dict[str, Callable[..., Any]] = {
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
}


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one read receives.

    Attributes:
        read: the element that was read.
        axes: the axes in scope there: those of the body and of the sums around the read.
        where: the conditions of those sums.
        value: the adjoint that flows into the read, an expression over ``axes``.
    """

    read: Expr
    axes: tuple[Axis, ...]
    where: Expr
    value: Expr

    def at(self, positions: Mapping[Axis, Expr]) -> Contribution:
        """The contribution where some of its axes have these positions, and are no axes any more."""
        if not positions:
            return self
        table = dict[Expr, Expr](positions.items())
        read, where, value = (substitute(e, table) for e in (self.read, self.where, self.value))
        axes = tuple(axis for axis in self.axes if axis not in positions)
        # a choice that is decided there may leave zero of what it guards, which nothing else is multiplied by
        return Contribution(read, axes, where, Const(0.0) if _is_nothing(value) else value)


def _is_nothing(value: Expr) -> bool:
    """Whether ``value`` is made of zeros and of numbers that they are multiplied by."""
    stack = [value]
    while stack:
        match stack.pop():
            case Call(op, (a, b)) if op is ADD:
                stack += [a, b]
            case Call(op, (a,)) if op is NEGATIVE or op.name == "cast":
                stack.append(a)
            case Call(op, (Const(number), a)) if op is MULTIPLY and cmath.isfinite(number):
                stack.append(a)
            case Call(op, (a, Const(number))) if (
                op in (MULTIPLY, DIVIDE) and number and cmath.isfinite(number)
            ):
                stack.append(a)
            case node if not is_zero(node):
                return False
    return True


def contributions(
    body: Expr, axes: Sequence[Axis], seed: Expr, value: Expr | None, wanted: Callable[[Expr], bool]
) -> list[Contribution]:
    """The contributions of ``seed``, the adjoint of ``body``, to every leaf that is ``wanted``.

    Args:
        body: an expression whose reductions are sums.
        axes: the axes that ``body`` is over.
        value: an expression that has the value of ``body`` already (the tensor's own element), to be used
            instead of computing it again.
        wanted: which reads (or symbols) to report.
    """
    found: list[Contribution] = []
    pending: list[tuple[Expr, tuple[Axis, ...], Expr, Expr, Expr | None]] = [
        (body, tuple(axes), TRUE, seed, value)
    ]
    while pending:
        root, scope, where, adjoint, known = pending.pop(0)
        for node, g in _adjoints_within(root, adjoint, known, wanted):
            if not isinstance(node, Reduce):
                found.append(Contribution(node, scope, where, g))
                continue
            fresh = {axis: Axis(axis.name, axis.lo, axis.hi, reduction=True) for axis in node.axes}
            inner, condition = (substitute(e, fresh) for e in (node.exprs[0], node.where))
            pending.append((inner, (*scope, *fresh.values()), call(AND, where, condition), g, None))
    return found


def _adjoints_within(
    root: Expr, seed: Expr, value: Expr | None, wanted: Callable[[Expr], bool]
) -> list[tuple[Expr, Expr]]:
    """Adjoints of the wanted leaves and of the sums below ``root``, not looking into the sums."""
    order = _leading(root, wanted)
    if not order:
        return []
    adjoints: dict[Expr, Expr] = {root: seed}
    leading = set(order)
    have = {} if value is None else _with_value(root, value)
    results: list[tuple[Expr, Expr]] = []
    for node in reversed(order):
        if node not in adjoints:
            continue
        g = adjoints[node]
        if isinstance(node, Call):
            shares = _operand_adjoints(node, have.get(node, node), g, leading)
            for child, share in zip(node.args, shares, strict=True):
                if share is not None and not is_zero(share):
                    adjoints[child] = plus(adjoints[child], share) if child in adjoints else share
        else:
            results.append((node, g))
    results.reverse()  # in the order in which the expression has them
    return results


def _with_value(root: Expr, value: Expr) -> dict[Expr, Expr]:
    """The nodes that ``value``, what ``root`` is, has the value of where they count: branches of its choices, and what is negated.

    The guard of a branch travels with the adjoint, so that the slope of ``exp`` in ``select(c, exp(x), 0)`` is the element itself. Something that stands at
    another place as well counts there, too, and so does all that is within it.
    """
    times = Counter(chain.from_iterable(map(_children, postorder(root))))
    have, stack = {root: value}, [root]
    while stack:
        node = stack.pop()
        match node:
            case Call(op, (_, *branches)) if op is SELECT:
                below = dict.fromkeys(branches, have[node])
            case Call(op, (inner,)) if op is NEGATIVE:
                below = {inner: call(NEGATIVE, have[node])}
            case _:
                continue
        for own, known in below.items():
            if own.dtype == node.dtype and not own.weak and times[own] == 1:
                have[own] = known
                stack.append(own)
    return have


def _leading(root: Expr, wanted: Callable[[Expr], bool]) -> list[Expr]:
    """The nodes through which a wanted leaf (or one inside a sum) depends on ``root``, children first."""
    leads: dict[Expr, None] = {}
    for node in postorder(root):
        match node:
            case Read() | Symbol():
                useful = wanted(node)
            case Reduce(reducer, exprs, _, _, _):
                useful = any(e in leads for e in exprs)
                if useful and not reducer.is_sum and dtypes.is_inexact(node.dtype):
                    raise DifferentiationError(
                        f"a {reducer.label} inside an expression has no derivative there; make it a tensor of its own"
                    )
            case Call(op, args) if has_slope(op) and dtypes.is_inexact(node.dtype):
                useful = not leads.keys().isdisjoint(args[1:] if op is SELECT else args)
            case _:
                useful = False
        if useful:
            leads[node] = None
    return _outside_sums(root, leads)


def _outside_sums(root: Expr, leads: Collection[Expr]) -> list[Expr]:
    """The leading nodes reachable from ``root`` without entering a sum, children first."""

    def below(node: Expr) -> list[Expr]:
        return [child for child in node.args if child in leads] if isinstance(node, Call) else []

    return ordered([root], below) if root in leads else []


def _operand_adjoints(node: Call, value: Expr, g: Expr, leading: Collection[Expr]) -> Sequence[Expr | None]:
    """The adjoint of each operand of ``node`` that is ``leading`` for the adjoint ``g`` of its ``value``; the others need none, and may have none."""
    if node.op.name == "cast":
        (operand,) = node.args
        return (
            (_in_dtype(g, operand),) if operand in leading and dtypes.is_inexact(operand.dtype) else (None,)
        )
    row = TABLE[node.op.name]
    keeps_zero = _makes_nothing_of_nothing(node)
    results: list[Expr | None] = []
    for position, operand in enumerate(node.args):
        if operand not in leading or not dtypes.is_inexact(operand.dtype):
            results.append(None)
            continue

        def rule(leaf: Expr, position: int = position) -> Expr | None:
            if row.vjp is not None:
                return row.vjp(leaf, value, *node.args)[position]
            assert row.partials is not None
            partial = row.partials[position]
            slope = None if partial is None else partial(value, *node.args)
            return None if slope is None else times(leaf, slope)

        share = through_guards(g, rule, keeps_zero)
        results.append(None if share is None else _in_dtype(_folded(share), operand))
    return results


def _makes_nothing_of_nothing(node: Call) -> bool:
    """Whether the adjoint of each operand is zero where that of ``node`` is, be the operands infinite or NaN: it is chosen, or multiplied by a number."""
    if node.op.name in _CHOOSING:
        return True
    numbers = [isinstance(a, Const) and cmath.isfinite(a.value) for a in node.args]
    return (node.op is MULTIPLY and any(numbers)) or (
        node.op is DIVIDE and numbers[1] and not is_zero(node.args[1])
    )


def _folded(share: Expr) -> Expr:
    """A product or quotient of two numbers as a number: what is left of a constant head."""
    if not isinstance(share, Call) or share.op.name not in _FOLDS or not dtypes.is_float(share.dtype):
        return share
    numbers = [a.value for a in share.args if isinstance(a, Const)]
    if len(numbers) < len(share.args) or (share.op is DIVIDE and numbers[1] == 0):
        return share
    return Const(float(_FOLDS[share.op.name](*numbers)), None if share.weak else share.dtype)


def _in_dtype(g: Expr, operand: Expr) -> Expr:
    """``g`` as an adjoint of ``operand``: its real part for a real operand, in the operand's dtype."""
    if dtypes.is_complex(g.dtype) and not dtypes.is_complex(operand.dtype):
        real = through_guards(g, lambda leaf: call(OPS["real"], leaf))
        g = Const(0.0) if real is None else real
    if g.weak or operand.weak or g.dtype == operand.dtype:
        return g
    return cast(g, operand.dtype)


def sign_at_same_places(parts: Sequence[Contribution], others: Sequence[Contribution]) -> int:
    """1 where both are the same for the same positions, -1 where they are opposite, 0 for anything else, or where there is nothing to compute."""
    if len(parts) != len(others) or all(is_plain(o.value) for o in others):
        return 0
    received = {_place(o, others[0].axes): o for o in others}
    signs = set()
    for part in parts:
        known = received.pop(_place(part, others[0].axes), None)
        if known is None:
            return 0
        own, there = _terms(part, others[0].axes), _terms(known, others[0].axes)
        if own not in (there, Counter({(term, -sign): count for (term, sign), count in there.items()})):
            return 0
        signs.add(1 if own == there else -1)
    return signs.pop() if len(signs) == 1 else 0


def _place(part: Contribution, axes: Sequence[Axis]) -> tuple[Expr, ...]:
    """The position that receives ``part`` and where it does, over ``axes``."""
    assert isinstance(part.read, Read)
    return tuple(_over(e, part, axes) for e in (*part.read.indices, part.where))


def _terms(part: Contribution, axes: Sequence[Axis]) -> Counter[tuple[Expr, int]]:
    """The terms of what is received, each with its sign, over ``axes``."""
    return Counter(signed_terms(_over(part.value, part, axes), negated=True))


def _over(expr: Expr, part: Contribution, axes: Sequence[Axis]) -> Expr:
    """``expr`` over ``axes`` in place of those of ``part``; as it is where they are others, so that it is like nothing else."""
    if identical(part.axes, tuple(axes)) or not identical(_extents(part.axes), _extents(axes)):
        return expr
    return substitute(expr, dict(zip(part.axes, axes, strict=True)))


def _extents(axes: Sequence[Axis]) -> tuple[Expr, ...]:
    return tuple(end for a in axes for end in (a.lo, a.hi))


def is_plain(value: Expr) -> bool:
    """Whether there is nothing to compute: the head's own element."""
    while isinstance(value, Call) and (value.op is NEGATIVE or value.op.name == "cast"):
        value = value.args[0]
    return isinstance(value, Read)
