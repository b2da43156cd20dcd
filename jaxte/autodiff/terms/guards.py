"""Adjoints under guards: sums and products of them, with the guards left outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, reduce
from typing import TypeGuard

from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import plus, times
from jaxte.lang import dtypes
from jaxte.lang import operators as ops
from jaxte.lang.expr import TRUE, Call, Const, Expr, call, cast
from jaxte.lang.graphs import ordered
from jaxte.lang.limits import CASES, LEVELS, MOST_PARTS
from jaxte.lang.walk import postorder
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.resolved import Values, condition_of, values_beside, values_of

_WITH_EQUAL = {ops.LESS: ops.LESS_EQUAL, ops.GREATER: ops.GREATER_EQUAL}
_NOTHING, _ALL = Const(0.0), Const(1.0)
# are nothing where what they are made of is, as casts are
_CARRY_GUARDS = (ops.SELECT, ops.ADD, ops.MULTIPLY, ops.NEGATIVE, ops.DIVIDE)


def through_guards(g: Expr, rule: Callable[[Expr], Expr | None], keeps_zero: bool = False) -> Expr | None:
    """``rule`` applied to the leaves of nested ``select``s (and sums of them), so that guards stay outside; to ``g`` as one where they are many.

    What makes nothing of nothing whatever the operands are, as a number does that ``g`` is multiplied by, then needs no guard (``keeps_zero``).
    """
    if _leaves(g) > CASES:
        if keeps_zero:
            return rule(g)
        return choice(_where_there(g), rule(g), None) if _excludes(g) else rule(g)
    return _through(g, rule, 0)


@lru_cache(maxsize=1024)  # of what flows into one node, for each of its operands
def _leaves(g: Expr) -> int:
    """How many paths lead to the leaves of the guards and sums of ``g``."""
    counts: dict[Expr, int] = {}

    def below(node: Expr) -> Sequence[Expr]:
        if not _carries_guards(node):
            return ()
        if node.op.name == "cast":
            return node.args
        if node.op in (ops.SELECT, ops.ADD):
            return node.args[1:] if node.op is ops.SELECT else node.args
        multiple = multiple_of_guard(node)
        return () if multiple is None else multiple[1:]

    for node in ordered([g], below):
        counts[node] = 0 if is_zero(node) else sum(map(counts.__getitem__, below(node))) or 1
    return counts[g]


def _through(g: Expr, rule: Callable[[Expr], Expr | None], depth: int) -> Expr | None:
    if is_zero(g):
        return None
    if depth < LEVELS and isinstance(g, Call):
        if g.op is ops.SELECT and not is_decidable(g.args[0]):
            if not _excludes(g):
                return rule(g)
            if (shared := _choice_under_guard(g)) is not None:
                condition, either = shared
                return choice(condition, rule(either), None)
        if g.op is ops.SELECT:
            taken, other = (_through(a, rule, depth + 1) for a in g.args[1:])
            return choice(g.args[0], taken, other)
        if g.op is ops.ADD and any(_has_guard(a) for a in g.args):
            left, right = (_through(a, rule, depth + 1) for a in g.args)
            return left if right is None else right if left is None else plus(left, right)
        if (multiple := multiple_of_guard(g)) is not None:
            factor, inner = multiple
            return _through(inner, lambda leaf: rule(scaled(factor, leaf)), depth + 1)
        if g.op.name == "cast" and _has_guard(g.args[0]):
            return _through(g.args[0], lambda leaf: rule(cast(leaf, g.dtype)), depth + 1)
    elif _excludes(g):
        return choice(_where_there(g), rule(g), None)
    return rule(g)


def _where_there(g: Expr) -> Expr:
    """The condition under which some leaf of nested guards and sums is taken: elsewhere ``g`` is nothing, and nothing is multiplied by a slope.

    It is a comparison of ``g`` with 1 for each leaf, since the same in ANDs and ORs is lowered in time that doubles with each guard.
    """
    there: dict[Expr, Expr] = {}
    for node in postorder(g):
        match node:
            case Call(op, (test, taken, other)) if op is ops.SELECT and dtypes.is_inexact(node.dtype):
                there[node] = call(ops.SELECT, test, there[taken], there[other])
            case Call(op, (left, right)) if op is ops.ADD:
                there[node] = plus(there[left], there[right])
            case Call(op, args) if op in (ops.MULTIPLY, ops.NEGATIVE) and any(
                there[a] is not _ALL for a in args
            ):
                there[node] = reduce(times, (there[a] for a in args))
            case Call(op, (first, *_)) if (op is ops.DIVIDE or op.name == "cast") and there[
                first
            ] is not _ALL:
                there[node] = there[first]
            case _:
                there[node] = _NOTHING if is_zero(node) else _ALL
    return call(ops.GREATER, there[g], _NOTHING)


def _carries_guards(node: Expr) -> TypeGuard[Call]:
    return isinstance(node, Call) and (
        node.op in _CARRY_GUARDS or (node.op.name == "cast" and dtypes.is_inexact(node.args[0].dtype))
    )


def _excludes(g: Expr) -> bool:
    """Whether there is nothing of ``g`` where some condition excludes it; then slopes are multiplied inside of the condition."""
    stack, seen = [g], {g}
    while stack:
        node = stack.pop()
        if is_zero(node):
            return True
        if not _carries_guards(node):
            continue
        if node.op is ops.SELECT and is_decidable(node.args[0]):
            return True
        own = (
            node.args[1:] if node.op is ops.SELECT else node.args[:1] if node.op is ops.DIVIDE else node.args
        )
        below = [a for a in own if a not in seen]
        seen.update(below)
        stack += below
    return False


def _choice_under_guard(g: Call) -> tuple[Expr, Expr] | None:
    """``select(a, x, select(b, y, 0))`` as the condition ``a or b`` and ``select(a, x, y)``, which a slope is multiplied by once, not each of both."""
    first, taken, rest = g.args
    if not (isinstance(rest, Call) and rest.op is ops.SELECT and is_zero(rest.args[2])):
        return None
    second, other, _ = rest.args
    if is_decidable(second) or _excludes(taken) or _excludes(other):
        return None
    return _either(first, second), call(ops.SELECT, first, taken, other)


def _either(first: Expr, second: Expr) -> Expr:
    """``first or second``; ``a <= b`` of ``a < b`` and ``a == b``, as extrema share what flows into them."""
    if (
        isinstance(first, Call)
        and isinstance(second, Call)
        and second.op is ops.EQUAL
        and first.op in _WITH_EQUAL
    ):
        if {*first.args} == {*second.args}:
            return call(_WITH_EQUAL[first.op], *first.args)
    return call(ops.OR, first, second)


def multiple_of_guard(g: Call) -> tuple[Expr, Expr] | None:
    """The number and the guarded expression that ``g`` is a product of, as equal terms are when they are added; one over what it is divided by."""
    inner = _without_number(g)
    if inner is g or not _has_guard(inner):
        return None
    if g.op is ops.NEGATIVE:
        return Const(-1.0), inner
    if g.op is ops.DIVIDE:
        return call(ops.DIVIDE, _ALL, g.args[1]), inner
    return (g.args[1] if inner is g.args[0] else g.args[0]), inner


def scaled(number: Expr, value: Expr) -> Expr:
    """``value`` times the ``number`` of :func:`multiple_of_guard`."""
    return times(number, value) if isinstance(number, Const) else times(value, number)


def _has_guard(g: Expr) -> bool:
    """Whether ``g`` is a guard, or a short sum of multiples with one."""
    for _ in range(LEVELS):
        if not isinstance(g, Call):
            return False
        if g.op is ops.ADD:
            if _is_select(_without_number(_without_cast(g.args[1]))):
                return True
            g = g.args[0]
        elif (inner := _without_cast(g)) is not g:
            g = inner
        elif (inner := _without_number(g)) is g:
            break
        else:
            g = inner
    return _is_select(g)


def _without_number(g: Expr) -> Expr:
    """``g`` without a number that it is a multiple of, or divided by, and without its sign."""
    match g:
        case Call(op, (inner,)) if op is ops.NEGATIVE and not isinstance(inner, Const):
            return inner
        case Call(op, (a, b)) if op is ops.MULTIPLY and isinstance(a, Const) is not isinstance(b, Const):
            return b if isinstance(a, Const) else a
        case Call(op, (a, Const(number))) if op is ops.DIVIDE and not isinstance(a, Const) and number:
            return a
    return g


def _without_cast(g: Expr) -> Expr:
    return (
        g.args[0] if isinstance(g, Call) and g.op.name == "cast" and dtypes.is_inexact(g.args[0].dtype) else g
    )


def _is_select(g: Expr | None) -> TypeGuard[Call]:
    return isinstance(g, Call) and g.op is ops.SELECT


def guard(condition: Expr, value: Expr) -> Expr:
    """``value`` where ``condition`` holds, else zero."""
    return value if condition is TRUE else call(ops.SELECT, condition, value, Const(0.0))


def choice(condition: Expr, taken: Expr | None, other: Expr | None) -> Expr | None:
    """``select(condition, taken, other)`` where None is zero, and what a branch chooses by the condition again is decided."""
    if taken is None and other is None:
        return None
    # A Python zero is weak: it takes the dtype of the other branch.
    branches = [Const(0.0) if branch is None else branch for branch in (taken, other)]
    for n, branch in enumerate(branches):
        while isinstance(branch, Call) and branch.op is ops.SELECT and branch.args[0] is condition:
            branch = branch.args[n + 1]
        branches[n] = branch
    plain = _of_one_axis(condition, *branches)
    return call(ops.SELECT, condition, *branches) if plain is None else plain


def _of_one_axis(condition: Expr, taken: Expr, other: Expr) -> Expr | None:
    """``select(c == 0, 0, select(c == 1, 0, x))`` as ``select(c >= 2, x, 0)``: what a chain of choices by the values of an axis leaves; None where it is none."""
    branch = _only_branch(taken, other)
    inner = _only_branch(*branch.args[1:]) if _is_select(branch) else None
    if not _is_select(branch) or inner is None:
        return None
    outer = _values(condition, branch is taken)
    left = None if outer is None else _values(branch.args[0], inner is branch.args[1], outer)
    if outer is None or left is None or outer.axis is not left.axis:
        return None
    both = Values(outer.axis, max(outer.low, left.low), min(outer.high, left.high))
    if both.low > both.high:
        return _NOTHING
    if both == left and inner is branch.args[1]:
        return branch
    found = condition_of(both)
    return None if found is None else guard(found, inner)


def _only_branch(taken: Expr, other: Expr) -> Expr | None:
    """The branch that is not zero, where the other one is."""
    if is_zero(taken) is is_zero(other):
        return None
    return other if is_zero(taken) else taken


def _values(condition: Expr, holds: bool, within: Values | None = None) -> Values | None:
    """The values of an axis at which ``condition`` holds, or at which it does not."""
    return values_of(condition) if holds else values_beside(condition, within)


def addends(g: Expr) -> list[Expr]:
    """The terms of a sum, from the left, and of a choice by the values of an axis what each branch adds; ``g`` alone where these are many."""
    return list(_addends(g)) if _leaves(g) <= MOST_PARTS else [g]


def _addends(g: Expr) -> Iterator[Expr]:
    later = [g]
    while later:
        g = later.pop()
        if isinstance(g, Call) and g.op is ops.ADD:
            later += reversed(g.args)
        elif isinstance(g, Call) and g.op is ops.SELECT and values_of(g.args[0]) is not None:
            taken, other = ([own for own in _addends(a) if not is_zero(own)] for a in g.args[1:])
            chosen = [choice(g.args[0], own, None) for own in taken]
            chosen += [choice(g.args[0], None, own) for own in other]
            yield from (own for own in chosen if own is not None)
        else:
            yield g
