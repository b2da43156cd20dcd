"""A reduction that wants a form, and what the families of forms ask about it first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxte.algebra.product import Factor, product_of, split_outer, summand
from jaxte.lang.expr import Axis, Expr, Reduce, conjuncts
from jaxte.lang.walk import free_axes, reads_of
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
