"""Rules that make an adjoint simpler without changing it.

``simplify_reads`` normalises index expressions; ``factors_outside`` moves what does not depend on the reduction
axes out of a sum; ``collect`` adds equal terms up; ``added`` makes one choice of two by the same data; and choices within choices by the same
condition are decided: ``select(not c, b, select(c, a, x))`` is ``select(c, a, b)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from jaxte.algebra.product import is_zero
from jaxte.algebra.sums import addends, alike, term_of, with_one_number
from jaxte.lang.expr import Axis, Call, Const, Expr, call
from jaxte.lang.limits import CASES
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, NOT, SELECT, SUBTRACT, Op
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, with_indices
from jaxte.sets.affine import from_linear
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import axis_bounds
from jaxte.sets.resolved import resolved

Wrap = Callable[[Expr], Expr]


def simplify_reads(expr: Expr) -> Expr:
    """``expr`` with the indices of every read in normal form."""
    return with_indices(expr, simplify_index)


def simplify_index(index: Expr) -> Expr:
    """An index in normal form, with ``//`` and ``%`` that the axes' ranges decide resolved."""
    if isinstance(index, (Axis, Const)):
        return index
    form = linear_or_none(index)
    return index if form is None else from_linear(resolved(form, axis_bounds(free_axes(index))))


def factors_outside(
    value: Expr, axes: Sequence[Axis], may_leave: Callable[[Expr, bool], bool]
) -> tuple[list[Wrap], Expr]:
    """``value`` split into what can be done after summing over ``axes`` (outermost first) and what remains.

    ``may_leave(e, divides)`` says whether a factor ``e``, or divisor, may be put outside.
    """
    inside = _dependence(value, axes)
    wraps: list[Wrap] = []
    while isinstance(value, Call):
        match value.op, value.args:
            case op, (a,) if op is NEGATIVE:
                wraps.append(lambda e: call(NEGATIVE, e))
                value = a
            case op, (a, b) if op is MULTIPLY and not inside[a] and inside[b] and may_leave(a, False):
                wraps.append(_multiplier(a))
                value = b
            case op, (a, b) if op is MULTIPLY and not inside[b] and inside[a] and may_leave(b, False):
                wraps.append(_right_multiplier(b))
                value = a
            case op, (a, b) if op is DIVIDE and not inside[b] and inside[a] and may_leave(b, True):
                wraps.append(_divisor(b))
                value = a
            case _:
                break
    return wraps, value


def _multiplier(factor: Expr) -> Wrap:
    return lambda e: call(MULTIPLY, factor, e)


def _right_multiplier(factor: Expr) -> Wrap:
    return lambda e: call(MULTIPLY, e, factor)


def _divisor(factor: Expr) -> Wrap:
    return lambda e: call(DIVIDE, e, factor)


def _dependence(root: Expr, axes: Sequence[Axis]) -> dict[Expr, bool]:
    """For every node below ``root``, whether it depends on one of ``axes``."""
    wanted = set(axes)
    found: dict[Expr, bool] = {}
    for node in postorder(root):
        found[node] = node in wanted or any(found[child] for child in node.children)
    return found


def collect(terms: Sequence[Expr]) -> Expr:
    """The sum of ``terms``: like ones added up, opposite ones gone; 0 if nothing is left."""
    counts: dict[Expr, float] = {}
    parts = [part for term in terms for part in addends(term) if not is_zero(part)]
    for term in map(with_one_number, _gathered(parts)):
        sign, core = _sign_and_core(term)
        counts[core] = counts.get(core, 0) + sign
    result: Expr | None = None
    for core, count in counts.items():
        if count == 0:
            continue
        size = core if abs(count) == 1 else call(MULTIPLY, Const(abs(count)), core)
        if result is None:
            result = size if count > 0 else call(NEGATIVE, size)
        else:
            result = added(result, size, ADD if count > 0 else SUBTRACT)
    return Const(0.0) if result is None else result


def _gathered(terms: Sequence[Expr]) -> list[Expr]:
    """``terms`` with those that are multiples of an earlier one added to that one."""
    found: list[Expr] = []
    places: dict[object, int] = {}
    for term in terms:
        place = places.setdefault((term_of(term).factors, term.dtype), len(found))
        total = alike(found[place], term) if place < len(found) else None
        if total is None:
            found.append(term)
        else:
            found[place] = total
    return found


def added(a: Expr, b: Expr, op: Op = ADD) -> Expr:
    """``a + b`` (or ``a - b``); ``select(c, x, 0) + select(c, 0, y)`` as ``select(c, x, y)`` where ``c`` is about data."""
    if isinstance(a, Call) and a.op is ADD is op and _same_choice(a.args[1], b):
        return call(ADD, a.args[0], added(a.args[1], b))
    if (total := _in_sum(a, b, 1 if op is ADD else -1)) is not None:
        return total
    if (signed := _signed_choice(a, b, op)) is not None:
        return signed
    if not _same_choice(a, b):
        return call(op, a, b)
    assert isinstance(a, Call) and isinstance(b, Call)
    taken, other = (_total(x, y, op) for x, y in zip(a.args[1:], b.args[1:], strict=True))
    return call(SELECT, a.args[0], taken, other)


def _in_sum(a: Expr, b: Expr, sign: float) -> Expr | None:
    """``a + sign * b`` where ``b`` is a multiple of ``a``, or of one of the last addends of it."""
    if (total := alike(a, b, sign)) is not None:
        return total
    later: list[Expr] = []
    # How far back an opposite addend is looked for, so that long sums take linear time.
    while isinstance(a, Call) and a.op is ADD and a.dtype == b.dtype and len(later) < CASES:
        a, last = a.args
        own = alike(last, b, sign)
        if own is None and not (isinstance(a, Call) and a.op is ADD):
            first = alike(a, b, sign)
            if first is not None:
                return reduce(lambda x, y: call(ADD, x, y), [last, *reversed(later)], first)
        if own is not None:
            return reduce(
                lambda x, y: call(ADD, x, y), reversed(later), a if is_zero(own) else call(ADD, a, own)
            )
        later.append(last)
    return None


def _signed_choice(a: Expr, b: Expr, op: Op) -> Expr | None:
    """``select(c, x, 0) - select(c, 0, x)`` as ``select(c, 1, -1) * x``, and the like with other signs; None where it is none of these."""
    if not (isinstance(a, Call) and isinstance(b, Call) and a.op is b.op is SELECT):
        return None
    if a.args[0] is not b.args[0] or a.dtype != b.dtype:
        return None
    if is_zero(a.args[1]) and is_zero(b.args[2]):
        (s, x), (t, y) = _sign_and_core(b.args[1]), _sign_and_core(a.args[2])
        s = s if op is ADD else -s
    elif is_zero(a.args[2]) and is_zero(b.args[1]):
        (s, x), (t, y) = _sign_and_core(a.args[1]), _sign_and_core(b.args[2])
        t = t if op is ADD else -t
    else:
        return None
    if x is not y:
        return None
    if s == t:
        return x if s > 0 else call(NEGATIVE, x)
    return call(MULTIPLY, call(SELECT, a.args[0], Const(s), Const(t)), x)


def _same_choice(a: Expr, b: Expr) -> bool:
    """Whether both are choices by one condition, of data, or of positions where lowering would not take them apart."""
    if not (isinstance(a, Call) and isinstance(b, Call) and a.op is b.op is SELECT):
        return False
    if a.args[0] is not b.args[0] or a.dtype != b.dtype:
        return False
    return bool(reads_of(a.args[0])) or _reads_alike(a, b)


def _reads_alike(a: Expr, b: Expr) -> bool:
    """Whether both have no sums, and read their tensors at the same positions: nothing that is taken apart."""
    if a.reduces or b.reduces:
        return False
    return len({read.indices for read in reads_of(a, b) if read.indices}) <= 1


def _total(a: Expr, b: Expr, op: Op) -> Expr:
    if is_zero(b):
        return a
    if is_zero(a):
        return b if op is ADD else call(NEGATIVE, b)
    return added(a, b, op)


def _sign_and_core(term: Expr) -> tuple[float, Expr]:
    sign = 1.0
    while isinstance(term, Call) and term.op is NEGATIVE:
        sign, term = -sign, term.args[0]
    return sign, term


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


def is_one(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 1 and expr.dtype != "bool"


def times(g: Expr, factor: Expr) -> Expr:
    """``g * factor`` with the multiplications by 0, 1 and -1 left out."""
    if is_zero(g) or is_zero(factor):
        return Const(0.0)
    for one, other in ((g, factor), (factor, g)):
        if is_one(one):
            return other
        if isinstance(one, Const) and one.value == -1:
            return negate(other)
    if isinstance(factor, Call) and factor.op is NEGATIVE:
        return negate(times(g, factor.args[0]))
    if isinstance(factor, Call) and factor.op is DIVIDE and is_one(factor.args[0]):
        return call(DIVIDE, g, factor.args[1])
    return call(MULTIPLY, g, factor)


def negate(expr: Expr) -> Expr:
    if isinstance(expr, Call) and expr.op is NEGATIVE:
        return expr.args[0]
    return call(NEGATIVE, expr)


def plus(a: Expr, b: Expr) -> Expr:
    if is_zero(a):
        return b
    return a if is_zero(b) else added(a, b)
