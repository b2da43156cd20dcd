"""Where a head is other than zero, as far as positions decide: elsewhere it passes on nothing, however infinite the slope is there.

y[i] = z[2 * i],   z[j] = x[j] / w[j]:   dz[j] = select(j % 2 == 0, H[j // 2], 0.0),   dx[j] = dz[j] / w[j] at even j only
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.budget import remembered
from jaxte.lang.expr import FALSE, TRUE, Axis, Call, Const, Expr, Read, Reduce, call, conjunction, conjuncts
from jaxte.lang.operators import ADD, AND, DIVIDE, MULTIPLY, NEGATIVE, NOT, OR, SELECT, SUBTRACT
from jaxte.lang.walk import fold, substitute
from jaxte.sets.domain import IntegerSet
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.tensor import Compute

_MOST_TERMS = 8  # each has its own region, and each pair of regions is compared
_MOST_NODES = 100  # that are looked at


@dataclass(frozen=True, slots=True)
class _Term:
    """Where one term of a head may be other than zero: where ``conditions`` hold at some positions of ``axes``."""

    conditions: tuple[Expr, ...] = ()
    axes: tuple[Axis, ...] = ()

    def within(self, condition: Expr, axes: Sequence[Axis] = ()) -> _Term:
        own = [c for c in conjuncts(condition) if c is not TRUE and is_decidable(c)]
        return _Term((*self.conditions, *own), (*self.axes, *axes))

    def moved(self, table: Mapping[Expr, Expr]) -> _Term:
        conditions = [substitute(c, table) for c in self.conditions]
        return _Term(tuple(c for c in conditions if is_decidable(c)), self.axes)


_EVERYWHERE = [_Term()]


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
        if self._visited > _MOST_NODES:
            return _EVERYWHERE
        match value:
            case Call(op, (a, b)) if op is ADD:
                first = self.terms(a)
                return first if first == _EVERYWHERE else _few([*first, *self.terms(b)])
            case Call(op, (a,)) if op is NEGATIVE or op.name == "cast":
                return self.terms(a)
            case Call(op, (a, b)) if op in (MULTIPLY, DIVIDE):
                first = self.terms(a)
                return self.terms(b) if first == _EVERYWHERE and op is MULTIPLY else first
            case Call(op, (test, a, b)) if op is SELECT:
                taken = [t.within(test) for t in self.terms(a)]
                return _few(taken + [t.within(call(NOT, test)) for t in self.terms(b)])
            case Reduce(reducer, (element,), axes, where) if reducer.name == "sum":
                renamed = [Axis(f"{a.name}_{self._visited}", a.lo, a.hi, reduction=True) for a in axes]
                own: dict[Expr, Expr] = dict(zip(axes, renamed, strict=True))
                inner = [t.moved(own) for t in self.terms(element)]
                return [t.within(substitute(where, own), renamed) for t in inner]
            case Read(tensor, indices) if self._into_reads and isinstance(tensor, Compute):
                table: dict[Expr, Expr] = dict(zip(tensor.axes, indices, strict=True))
                return [t.moved(table) for t in self.terms(tensor.body)]
        return _EVERYWHERE


def _few(terms: list[_Term]) -> list[_Term]:
    if len(terms) > _MOST_TERMS:
        raise _TooMany
    return terms
