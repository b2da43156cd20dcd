"""Several forms of one reduction, and the choice among them.

Each recogniser offers candidates: the name of a form, the work that it is, and a generator that writes it. What the user
named comes first, then what was measured, then the least estimated time. A candidate whose largest intermediate is
above the budget is taken only where every other one is above it too.

A reduction that wants a form: what the families of forms ask about it first, and how a form is written, its operands as nodes, then the node that it makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from jaxte.algebra.product import Factor, product_of, split_outer, summand
from jaxte.lang.expr import Axis, Expr, Reduce, conjuncts
from jaxte.lang.scalars.rows import CALL
from jaxte.lang.walk import free_axes, reads_of
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.choice import Estimate
from jaxte.lower.code.spec import Array
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.cost.work import Work
from jaxte.lower.match.index_terms import is_row_major
from jaxte.lower.views.scope import Scope

Search = Generator[tuple[Expr, Scope], Value, Value | None]
GENERAL = "general"  # what rules/reduce.py does by itself: einsum, shifted sums, jnp's reductions


@dataclass(frozen=True)
class Candidate:
    """One form.

    Attributes:
        form: its name, as ``te.explain`` shows it.
        work: what it does.
        write: makes its value; None for the general path, which is the caller's.
        caution: why it is taken only where the user names it or ``te.autotune`` measures it, whatever it is estimated to
            take: its results are not as exact as those of the others. Empty for a form that may be taken at any time.
    """

    form: str
    work: Work
    write: Callable[[], Search] | None
    caution: str = ""


@dataclass(frozen=True)
class Chosen:
    """A choice among candidates, with what ``te.explain`` says of it.

    Attributes:
        candidate: the one to write.
        estimates: what each of them costs.
        refused: those that are not taken whatever they cost, with the reason.
    """

    candidate: Candidate
    estimates: tuple[Estimate, ...]
    refused: tuple[tuple[str, str], ...]


def choose(body: Body, offers: Sequence[Candidate], key: str) -> Candidate:
    """The candidate to write, as :func:`chosen` says, noted for ``te.explain``."""
    found = chosen(body.policy, body.name, offers, key)
    noted(body, found)
    return found.candidate


def noted(body: Body, found: Chosen) -> None:
    """Notes a choice for ``te.explain``."""
    for form, reason in found.refused:
        body.report.refuse(form, reason)
    body.report.estimate(found.estimates)


def chosen(policy: Policy, tensor: str, offers: Sequence[Candidate], key: str) -> Chosen:
    """What to write.

    Args:
        policy: how forms are chosen.
        tensor: the name of the tensor that is lowered.
        offers: the candidates; the first of two alike is taken.
        key: the signature of the definition, under which measurements are looked up.
    """
    measured = policy.measured.get(key, {})
    estimates = [
        Estimate(c.form, c.work.seconds(policy.rates), c.work.temporaries, measured.get(c.form))
        for c in offers
    ]
    cautious = frozenset(c.form for c in offers if c.caution)
    at = _index(policy, tensor, estimates, cautious)
    refused = [
        (c.form, f"{c.caution}: only by name, or as te.autotune measures it")
        for n, c in enumerate(offers)
        if c.caution and n != at
    ]
    if policy.max_memory is not None and estimates[at].temporaries > policy.max_memory:
        held = f"{estimates[at].form} holds {estimates[at].temporaries:,.0f} bytes, no form less"
        refused.append(("within max_memory", held))
    own = tuple(replace(e, chosen=n == at, key=key) for n, e in enumerate(estimates))
    return Chosen(offers[at], own, tuple(refused))


def _index(policy: Policy, tensor: str, estimates: Sequence[Estimate], cautious: frozenset[str]) -> int:
    wanted = policy.forms.get(tensor, policy.forms.get(ANY))
    for n, estimate in enumerate(estimates):
        if estimate.form == wanted:
            return n
    allowed = [n for n, e in enumerate(estimates) if e.form not in policy.without] or list(
        range(len(estimates))
    )
    sure = [n for n in allowed if estimates[n].form not in cautious or estimates[n].measured is not None]
    allowed = sure or allowed
    if policy.max_memory is not None:
        budget = policy.max_memory
        small = [n for n in allowed if estimates[n].temporaries <= budget]
        allowed = small or [min(allowed, key=lambda n: estimates[n].temporaries)]
    known = [n for n in allowed if estimates[n].measured is not None]
    if known:
        return min(known, key=lambda n: estimates[n].measured or 0.0)
    return min(allowed, key=lambda n: estimates[n].seconds)


@dataclass(frozen=True, eq=False)
class Wanted:
    """A reduction that wants a form.

    Attributes:
        node: the reduction, over the dimensions of ``scope``.
        axes: the dimensions of its result.
        guards: conditions without which the result is zero.
        scope: where it stands.
    """

    node: Reduce
    axes: tuple[Axis, ...]
    guards: tuple[Expr, ...]
    scope: Scope

    @property
    def conditions(self) -> list[Expr]:
        return conjuncts(self.node.where)

    @cached_property
    def chosen(self) -> list[Expr]:
        """Its conditions, and those of choices between a product and zero."""
        return self.conditions if not self.node.is_sum else summand(self.node)[1]

    @cached_property
    def mixes(self) -> bool:
        """Whether an index mixes a dimension of the result with a reduced one."""
        return any(map(self._mixed, self._indices))

    @cached_property
    def slides(self) -> bool:
        """Whether an index without data does."""
        return any(self._mixed(i) for i in self._indices if not reads_of(i))

    @cached_property
    def _indices(self) -> list[Expr]:
        return [index for read in reads_of(*self.node.exprs) for index in read.indices]

    def _mixed(self, index: Expr) -> bool:
        free = free_axes(index)
        return any(a in free for a in self.node.axes) and any(a in free for a in self.axes)

    @cached_property
    def is_product(self) -> bool:
        """Whether it sums products of which several factors depend on the reduced axes."""
        return self.node.is_sum and len(self._inner) > 1

    @cached_property
    def is_of_digits(self) -> bool:
        """Whether indices of several axes are numbers with these as digits, so that reads are views of tensors."""
        return all(is_row_major(i) or len(free_axes(i)) < 2 for i in self._indices)

    @cached_property
    def chooses(self) -> bool:
        """Whether it sums at chosen positions, such as those that hold a maximum: no product of matrices."""
        return any(factor.guard for factor in self._inner)

    @cached_property
    def _inner(self) -> tuple[Factor, ...]:
        return tuple(split_outer(product_of(self.node.exprs[0]).factors, self.node.axes)[1])


_SHORT = 40  # characters of an operand that stands in the call itself


def operands_of(
    body: Body, arrays: Sequence[Array], scope: Scope
) -> Generator[tuple[Expr, Scope], Value, list[Node]]:
    """The nodes of arrays: names, or short ones that bind like calls.

    Args:
        body: the tensor that is lowered.
        arrays: what a form takes.
        scope: where the form stands.
    """
    found: list[Node] = []
    for array in arrays:
        value = yield array.body, Scope(array.axes, direct=True, hits=scope.hits)
        value = body.cast(value, array.dtype)
        entire = Value(body.full(value, array.axes), array.axes, value.kind)
        text, strength = body.printer.write(entire.code)
        short = len(text) <= _SHORT and strength == CALL
        found.append(entire.code if short else body.named(entire).code)
    return found


def way(
    body: Body,
    wanted: Wanted,
    form: str,
    work: Work,
    arrays: Sequence[Array],
    source: Callable[[list[Node]], Node],
    caution: str = "",
) -> Candidate:
    """The candidate ``form`` that does ``work``: what ``source`` makes of the nodes of ``arrays``."""

    def write() -> Search:
        operands = yield from operands_of(body, arrays, wanted.scope)
        body.report.note(form)
        return Value(source(operands), wanted.axes, (wanted.node.dtype, False))

    return Candidate(form, work, write, caution)
