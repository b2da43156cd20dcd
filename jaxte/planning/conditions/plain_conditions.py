"""Conditions on one axis by where they hold, however they are spelled: a range of positions, or those of one remainder.

i // 2 * 2 == i,   i % 2 < 1,   i % 2 != 1   and   (i + 1) // 2 == i // 2   are   i % 2 == 0
i // 4 == 3                                                                 is    12 <= i and i < 16
"""

from __future__ import annotations

from math import gcd

import numpy as np

from jaxte.lang.divisions import Remainder, division, divisions
from jaxte.lang.expr import FALSE, TRUE, Axis, Call, Const, Expr, call
from jaxte.lang.operators import AND, COMPARISONS, EQUAL, MOD, NOT, NOT_EQUAL, Op
from jaxte.lang.walk import free_axes, rewrite
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known
from jaxte.sets.tabulate import tabulated

_MOST = 4096  # positions that are asked


def with_plain_conditions(body: Expr) -> Expr:
    """``body`` with comparisons of quotients and remainders of one axis as comparisons of the axis, or of one remainder."""

    def rule(node: Expr) -> Expr:
        return _plain(node) if isinstance(node, Call) and _has_quotients(node) else node

    return rewrite(body, rule)


def _has_quotients(node: Call) -> bool:
    """Whether ``node`` compares indices with quotients or remainders, negated or not, and not one remainder with a number."""
    inner = node.args[0] if node.op is NOT else node
    if not isinstance(inner, Call) or inner.op not in COMPARISONS:
        return False
    if not all(a.weak and is_index(a) for a in inner.args):
        return False
    if node.op is EQUAL and isinstance(node.args[1], Const):
        match division(node.args[0]):
            case Remainder(Axis()):
                return False
    return bool(divisions(node))


def _plain(condition: Expr) -> Expr:
    """``condition`` by the positions at which it holds; as it is where these are neither a range nor have one remainder."""
    axes = list(free_axes(condition))
    low, extent = (known(axes[0].lo), known(axes[0].extent)) if len(axes) == 1 else (None, None)
    if low is None or extent is None or not 0 < extent <= _MOST:
        return condition
    positions = np.arange(low, low + extent)
    truth = tabulated(condition, {axes[0]: positions})
    if truth is None:
        return condition
    truth = np.broadcast_to(truth, positions.shape)
    for found in (
        _range(axes[0], positions, truth),
        _one_remainder(axes[0], positions, truth, EQUAL),
        _one_remainder(axes[0], positions, ~truth, NOT_EQUAL),
    ):
        if found is not None:
            return found
    return condition


def _range(axis: Axis, positions: np.ndarray, truth: np.ndarray) -> Expr | None:
    """The condition that ``axis`` is between the first and the last of the positions that are ``truth``, if all between are, too."""
    found = positions[truth]
    if not len(found):
        return FALSE
    first, last = int(found[0]), int(found[-1])
    if last - first + 1 != len(found):
        return None
    begin = axis >= first if first > positions[0] else TRUE
    end = axis <= last if last < positions[-1] else TRUE
    return call(EQUAL, axis, first) if first == last and len(positions) > 1 else call(AND, begin, end)


def _one_remainder(axis: Axis, positions: np.ndarray, truth: np.ndarray, op: Op) -> Expr | None:
    """The comparison by ``op`` of a remainder of ``axis`` with that which the positions that are ``truth`` have, and no others."""
    found = positions[truth]
    if len(found) < 2:
        return None
    step = gcd(*(int(p - found[0]) for p in found))
    remainder = int(found[0]) % step
    every = positions % step == remainder
    return call(op, call(MOD, axis, step), remainder) if len(found) == every.sum() else None
