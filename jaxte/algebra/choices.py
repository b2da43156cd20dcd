"""Choices within choices by the same condition: the inner one is decided.

select(not c, b, select(c, a, x))   ->   select(c, a, b)
"""

from __future__ import annotations

from collections.abc import Mapping

from jaxte.lang.expr import Call, Expr, call
from jaxte.lang.operators import NOT, SELECT
from jaxte.lang.walk import rewrite


def without_decided(body: Expr) -> Expr:
    """``body`` without the choices that one around them decides."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Call) or node.op is not SELECT:
            return node
        inner = [a for a in node.args[1:] if isinstance(a, Call) and a.op is SELECT]
        return _chosen(node, {}) if inner else node

    return rewrite(body, rule)


def _chosen(node: Expr, known: Mapping[Expr, bool]) -> Expr:
    """``node`` where the conditions that are ``known`` hold, or do not."""
    if not isinstance(node, Call) or node.op is not SELECT:
        return node
    test, taken, other = node.args
    holds = True
    while isinstance(test, Call) and test.op is NOT:
        test, holds = test.args[0], not holds
    if test in known:
        return _chosen(taken if known[test] is holds else other, known)
    own = _chosen(taken, {**known, test: holds}), _chosen(other, {**known, test: not holds})
    if own[0] is taken and own[1] is other:
        return node
    return call(SELECT, test, *(own if holds else own[::-1]))
