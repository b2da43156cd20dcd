"""Where a head is other than zero, as far as positions decide: elsewhere it passes on nothing, however infinite the slope is there.

y[i] = z[2 * i],   z[j] = x[j] / w[j]:   dz[j] = select(j % 2 == 0, H[j // 2], 0.0),   dx[j] = dz[j] / w[j] at even j only

Sums that count only where positions are multiples are a tensor of their own over these positions. What stands behind ``i % 2 == 0`` is the same as ``S[i // 2]`` there, where ``S[m]`` is the sum at ``i == 2 * m``: half of the points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxte.algebra.simplify import simplify_reads
from jaxte.autodiff.terms.guards import guard
from jaxte.lang.budget import remembered
from jaxte.lang.divisions import Remainder, division
from jaxte.lang.expr import (
    FALSE,
    TRUE,
    ZERO,
    Axis,
    Call,
    Const,
    Expr,
    Read,
    Reduce,
    call,
    cast,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import among
from jaxte.lang.limits import BEHIND, CASES
from jaxte.lang.operators import ADD, AND, DIVIDE, EQUAL, MULTIPLY, NEGATIVE, NOT, OR, SELECT, SUBTRACT
from jaxte.lang.walk import fold, free_axes, postorder, substitute
from jaxte.sets.affine import linear, normal
from jaxte.sets.conditions import tidy
from jaxte.sets.domain import IntegerSet
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.tensor import Compute


@dataclass(frozen=True, eq=False)
class _Term:
    """Where one term of a head may be other than zero: where ``conditions`` hold at some positions of ``axes``.

    They are found when they are asked for: of most heads there are too many terms, which their number says.
    """

    find: Callable[[], tuple[Expr, ...]] = tuple
    axes: tuple[Axis, ...] = ()

    @cached_property
    def conditions(self) -> tuple[Expr, ...]:
        return self.find()

    def within(self, condition: Expr, axes: Sequence[Axis] = ()) -> _Term:
        def find() -> tuple[Expr, ...]:
            own = [c for c in conjuncts(condition) if c is not TRUE and is_decidable(c)]
            return (*self.conditions, *own)

        return _Term(find, (*self.axes, *axes))

    def moved(self, table: Mapping[Expr, Expr]) -> _Term:
        def find() -> tuple[Expr, ...]:
            return tuple(c for own in self.conditions if is_decidable(c := substitute(own, table)))

        return _Term(find, self.axes)


_EVERYWHERE = [_Term()]


def _is_everywhere(terms: Sequence[_Term]) -> bool:
    return len(terms) == 1 and not terms[0].axes and not terms[0].conditions


class _TooMany(Exception):
    """There are more terms than a short condition has."""


@remembered(64)  # asked for by each tensor that a head flows into, and where such tensors are compared
def support(head: Compute) -> Expr | None:
    """A condition on the axes of ``head`` outside of which its elements are zero; None where there is none that is short."""
    for into_reads in (True, False):
        terms = _terms(head.body, into_reads)
        if terms and all(t.conditions for t in terms):
            cases: Expr = FALSE
            for term in terms:
                cases = call(OR, cases, conjunction(term.conditions))
            inner = dict.fromkeys(a for term in terms for a in term.axes)
            found = IntegerSet((*head.axes, *inner), [cases]).shadow(head.axes)
            return None if found is TRUE else found
    return None


def _terms(value: Expr, into_reads: bool) -> list[_Term]:
    """What ``value`` is a sum of; nothing where that is much."""
    try:
        return _Search(into_reads).terms(value)
    except _TooMany:
        return []


def nonzero(value: Expr) -> Expr:
    """A condition on positions outside of which ``value`` is zero, looking into no tensor."""

    def rule(node: Expr, below: list[Expr]) -> Expr:
        match node:
            case Const(number) if number == 0:
                return FALSE
            case Call(op) if op in (ADD, SUBTRACT):
                return call(OR, *below)
            case Call(op) if op is MULTIPLY:
                return call(AND, *below)
            case Call(op) if op in (DIVIDE, NEGATIVE) or op.name == "cast":
                return below[0]
            case Call(op, (test, _, _)) if op is SELECT:
                _, taken, other = below
                if not is_decidable(test):
                    return call(OR, taken, other)
                return call(OR, call(AND, test, taken), call(AND, call(NOT, test), other))
        return TRUE

    return fold(value, rule)  # type: ignore[no-any-return]


class _Search:
    """The terms of a head; no more than a short condition has, which those of a part are too.

    A guard of the head holds whatever it reads, so that a search that ends within the tensors that are read is made again without these.
    """

    def __init__(self, into_reads: bool) -> None:
        self._into_reads = into_reads
        self._visited = 0

    def terms(self, value: Expr) -> list[_Term]:
        """What ``value`` is a sum of, without terms that are zero."""
        if isinstance(value, Const) and value.value == 0:
            return []
        self._visited += 1
        if self._visited > BEHIND:
            return _EVERYWHERE
        match value:
            case Call(op, (a, b)) if op is ADD:
                first = self.terms(a)
                return first if _is_everywhere(first) else _few([*first, *self.terms(b)])
            case Call(op, (a,)) if op is NEGATIVE or op.name == "cast":
                return self.terms(a)
            case Call(op, (a, b)) if op in (MULTIPLY, DIVIDE):
                first = self.terms(a)
                return self.terms(b) if op is MULTIPLY and _is_everywhere(first) else first
            case Call(op, (test, a, b)) if op is SELECT:
                taken = [t.within(test) for t in self.terms(a)]
                return _few(taken + [t.within(call(NOT, test)) for t in self.terms(b)])
            case Reduce(reducer, (element,), axes, where) if reducer.is_sum:
                renamed = [Axis(f"{a.name}_{self._visited}", a.lo, a.hi, reduction=True) for a in axes]
                own: dict[Expr, Expr] = dict(zip(axes, renamed, strict=True))
                inner = [t.moved(own) for t in self.terms(element)]
                return [t.within(substitute(where, own), renamed) for t in inner]
            case Read(tensor, indices) if self._into_reads and isinstance(tensor, Compute):
                table: dict[Expr, Expr] = dict(zip(tensor.axes, indices, strict=True))
                return [t.moved(table) for t in self.terms(tensor.body)]
        return _EVERYWHERE


def _few(terms: list[_Term]) -> list[_Term]:
    if len(terms) > CASES:
        raise _TooMany
    return terms


class LatticeSum(Compute):
    """A sum within an adjoint, over the positions at which it counts."""

    __slots__ = ()


def guarded(conditions: Sequence[Expr], value: Expr, targets: Sequence[Axis], name: str) -> Expr:
    """``value`` where all of ``conditions`` hold, else zero; a sum that they ask for at multiples only is a tensor, a part of ``name``.

    Its axes are in the order of ``targets``, after those of the prefix of a head.
    """
    remainders = dict(found for c in conditions if (found := _remainder(c)) is not None)
    if remainders:
        value = simplify_reads(substitute(value, remainders))
    own = free_axes(value)
    free = (*(a for a in own if not among(a, targets)), *(a for a in targets if a in own))
    multiples = {c: m for c in conditions if (m := _multiples(c)) is not None and among(m.axis, free)}
    if not multiples or not _is_plain_sum(value):
        return guard(conjunction(conditions), value)
    rest = [c for c in conditions if c not in multiples]
    inside = [c for c in rest if is_decidable(c) and all(among(a, free) for a in free_axes(c))]
    implied = _implied(conditions, free)
    if implied is None:
        return guard(conjunction(conditions), value)
    inside += [c for c in conjuncts(implied) if not among(c, inside)]
    outside = [*multiples, *(c for c in rest if not among(c, inside))]
    element = _of_tensor(guard(conjunction(inside), value), free, list(multiples.values()), name)
    return guard(conjunction(outside), element)


def _implied(conditions: Sequence[Expr], free: Sequence[Axis]) -> Expr | None:
    """What conditions on other axes, too, say of the axes of the tensor: it reads nothing that they keep out. None if that is long."""
    known = [c for c in conditions if is_decidable(c)]
    others = {a: None for c in known for a in free_axes(c) if not among(a, free)}
    if not any(
        among(a, free) and among(b, others) for c in known for a in free_axes(c) for b in free_axes(c)
    ):
        return TRUE
    return IntegerSet((*free, *others), known).shadow(free)


@dataclass(frozen=True, slots=True)
class Multiples:
    """The values ``start``, ``start + step``, ... of ``axis``."""

    axis: Axis
    step: int
    start: int


def _of_tensor(value: Expr, free: Sequence[Axis], multiples: Sequence[Multiples], name: str) -> Read:
    """``value`` as the element of a tensor over ``free`` that has the positions of ``multiples`` only."""
    by_axis = {m.axis: m for m in multiples}
    axes: list[Axis] = []
    table: dict[Expr, Expr] = {}
    places: list[Expr] = []
    for axis in free:
        m = by_axis.get(axis, Multiples(axis, 1, 0))
        axes.append(Axis(axis.name, 0, normal((axis.hi - m.start + (m.step - 1)) // m.step)))
        table[axis] = normal(m.step * axes[-1] + m.start)
        places.append(normal(axis // m.step))
    body = tidy(simplify_reads(substitute(value, table)))
    made = LatticeSum(f"{name}_at_multiples", axes, cast(body, body.dtype) if body.weak else body)
    return Read(made.as_part_of(name), places)


def _remainder(condition: Expr) -> tuple[Expr, Expr] | None:
    """``(e % c, r)`` of a condition ``e % c == r``, ``r`` a number."""
    if not (isinstance(condition, Call) and condition.op is EQUAL):
        return None
    for node, first in (condition.args, condition.args[::-1]):
        if isinstance(division(node), Remainder) and isinstance(first, Const):
            return node, first
    return None


def _multiples(condition: Expr) -> Multiples | None:
    """The values of an axis from 0 that ``condition`` leaves, if it is about their remainder."""
    remainder = _remainder(condition)
    if remainder is None:
        return None
    node, first = remainder
    form, step = linear(node.children[0]), int(node.children[1])
    for axis, sign in form.terms.items():
        if len(form.terms) == 1 and isinstance(axis, Axis) and axis.lo is ZERO and sign in (1, -1):
            return Multiples(axis, step, (int(first) - form.constant) * sign % step)
    return None


def _is_plain_sum(value: Expr) -> bool:
    """Whether there is a sum in ``value``, and no choice by data, which later adjoints have to see."""
    nodes = list(postorder(value))
    choices = [n.args[0] for n in nodes if isinstance(n, Call) and n.op is SELECT]
    choices += [n.where for n in nodes if isinstance(n, Reduce)]
    return any(isinstance(n, Reduce) for n in nodes) and all(map(is_decidable, choices))
