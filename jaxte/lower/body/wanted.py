"""A reduction that wants a form: what the families of forms ask about it first, and how a form is written, its operands as nodes, then the node that it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxte.algebra.product import Factor, product_of, split_outer, summand
from jaxte.lang.expr import Axis, Expr, Reduce, conjuncts
from jaxte.lang.scalars.rows import CALL
from jaxte.lang.walk import free_axes, reads_of
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.candidates import Candidate, Search
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Array
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import Work
from jaxte.lower.match.index_terms import is_row_major
from jaxte.lower.views.scope import Scope


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
        return self.conditions if self.node.reducer.name != "sum" else summand(self.node)[1]

    @cached_property
    def mixes(self) -> bool:
        """Whether an index mixes a dimension of the result with a reduced one."""
        for read in reads_of(*self.node.exprs):
            for index in read.indices:
                free = free_axes(index)
                if any(a in free for a in self.node.axes) and any(a in free for a in self.axes):
                    return True
        return False

    @cached_property
    def is_product(self) -> bool:
        """Whether it sums products of which several factors depend on the reduced axes."""
        return self.node.reducer.name == "sum" and len(self._inner) > 1

    @cached_property
    def is_of_digits(self) -> bool:
        """Whether indices of several axes are numbers with these as digits, so that reads are views of tensors."""
        indices = [i for r in reads_of(*self.node.exprs) for i in r.indices]
        return all(is_row_major(i) or len(free_axes(i)) < 2 for i in indices)

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
