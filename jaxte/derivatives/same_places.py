"""What is subtracted from another tensor wherever this is read receives the opposite: of ``abs(x[i + 1] - x[i] - (y[i + 1] - y[i]))``, ``dy[i] = -dx[i]``.

The two are asked for each position by itself: what a target receives at ``i + 1`` has to be what its estimate receives there, up to one sign for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxte.algebra.sums import signed_terms
from jaxte.autodiff.terms.scalar import Contribution
from jaxte.lang.expr import Axis, Call, Expr, Read
from jaxte.lang.graphs import identical
from jaxte.lang.operators import NEGATIVE
from jaxte.lang.walk import substitute


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
