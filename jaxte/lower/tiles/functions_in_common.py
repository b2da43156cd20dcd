"""A dear function that several products of matrices sum, each along axes of its own, is computed once, with what else they have in common.

    dd[i, j] = sum over k of dy[i, k, j] * cos(d[i, j] * w[k]) * w[k]
    dw[k] = sum over i, j of dy[i, k, j] * cos(d[i, j] * w[k]) * d[i, j]     both read    c[i, j, k] = dy[i, k, j] * cos(d[i, j] * w[k])

are the gradients of ``sin(d[i, j] * w[k])`` by either of its arrays. A product of matrices is a call that reads arrays. XLA lays out what is computed for one
as that product wants it, as matrices of other rows for each, and computes the function for each layout. Of two dimensions there is one layout, and sums
that are loops share what they read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, multiplied, product_of, without
from jaxte.lang.dtypes import is_inexact, width
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import MARGIN
from jaxte.lang.walk import free_axes, postorder, reductions, substitute
from jaxte.lower.cost.general import is_contraction
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import Work, expensive_calls, is_expensive, points
from jaxte.lower.tiles.tiling import Tiling
from jaxte.sets.intervals import known
from jaxte.tensors.structure import CANONICAL, PartialSum
from jaxte.tensors.tensor import Compute


@dataclass(frozen=True, slots=True)
class _Use:
    """A sum in ``tensor``, or all of a definition that sums nothing, with what it is of.

    Attributes:
        tensor: whose definition has it.
        root: the sum, or the definition.
        function: what stands in it.
        axes: of the function.
    """

    tensor: Compute
    root: Expr
    function: Call
    axes: tuple[Axis, ...]

    @property
    def is_laid_out(self) -> bool:
        """Whether XLA lays out what is read as a product of matrices wants it; loops share what they read."""
        return isinstance(self.root, Reduce) and is_contraction(self.root)

    @property
    def summed(self) -> tuple[Axis, ...]:
        return self.root.axes if isinstance(self.root, Reduce) else ()

    @property
    def named(self) -> Mapping[Axis, Axis]:
        """For each of the axes what stands for it in all uses."""
        return dict(zip(self.axes, CANONICAL, strict=False))

    @property
    def key(self) -> tuple[Expr, tuple[Expr, ...]]:
        """What is the same where the same function is of axes of the same lengths."""
        return substitute(self.function, self.named), tuple(a.extent for a in self.axes)

    def over_all(self) -> dict[Factor, Factor]:
        """The factors of a sum that depend on no other axes than the function, by what they are over the axes that stand for these."""
        factors = product_of(self.root.exprs[0]).factors if isinstance(self.root, Reduce) else ()
        return {
            Factor(substitute(f.expr, self.named), f.inverse): f
            for f in factors
            if free_axes(f.expr)
            and {*free_axes(f.expr)} <= {*self.axes}
            and f.expr.dtype == self.function.dtype
        }

    def reading(self, read: Read, shared: Sequence[Factor]) -> Expr:
        """The same with ``read`` in place of ``shared``, factors that it has in common with others; of the function, where these are none."""
        if not shared or not isinstance(self.root, Reduce):
            return substitute(self.root, {self.function: read})
        left = without(product_of(self.root.exprs[0]).factors, shared)
        value = multiplied([Factor(read), *left])
        return self.root.changed(exprs=(value,), where=TRUE)


def with_common_functions(planned: Tiling, policy: Policy, is_step: bool = False) -> Tiling:
    """``planned`` with the dear functions that several products of matrices sum as tensors of their own.

    Of a loop it is a step, where starting one more operation takes no time of its own.
    """
    while policy.facts.copies_for_products and (uses := _that_gain(planned, policy, is_step)):
        planned = _reading(planned, uses)
    return planned


def _that_gain(planned: Tiling, policy: Policy, is_step: bool) -> Sequence[_Use]:
    """The uses of one function that is worth an array, of the dearest that is; none where there is no such function."""
    groups: dict[object, dict[Expr, _Use]] = {}
    for tensor in planned.order:
        for own in _uses(tensor) if isinstance(tensor, Compute) else ():
            groups.setdefault(own.key, {}).setdefault(own.root, own)
    several = [[*uses.values()] for uses in groups.values()]
    worth = [uses for uses in several if _is_worth_an_array(uses, policy, is_step)]
    return max(worth, key=lambda uses: expensive_calls([uses[0].function]), default=[])


def _uses(tensor: Compute) -> Iterator[_Use]:
    """The functions of more axes than a matrix has, in products that are summed, or in a definition that sums nothing."""
    roots: Sequence[Expr] = reductions(tensor.body) or [tensor.body]
    for root in roots:
        if isinstance(root, Reduce) and (root.where is not TRUE or not root.is_sum):
            continue
        body = root.exprs[0] if isinstance(root, Reduce) else root
        product = product_of(body)
        around = (*tensor.axes, *(root.axes if isinstance(root, Reduce) else ()))
        for one in postorder(*(f.expr for f in product.factors)) if not product.is_conditional else ():
            axes = (*free_axes(one),)
            if (
                isinstance(one, Call)
                and is_inexact(one.dtype)
                and is_expensive(one)
                and not one.reduces
                and 2 < len(axes) <= len(CANONICAL)
                and all(known(a.lo) == 0 and known(a.extent) and among(a, around) for a in axes)
            ):
                yield _Use(tensor, root, one, axes)


def _is_worth_an_array(uses: Sequence[_Use], policy: Policy, is_step: bool) -> bool:
    """Whether computing the function again takes longer than writing it and reading it, by as much as the rates may be off."""
    own, count = uses[0].function, points(uses[0].axes)
    times = sum(use.is_laid_out for use in uses) - all(use.is_laid_out for use in uses)
    again = Work(transcendental=float(count * expensive_calls([own]) * times))
    size = count * width(own.dtype)
    near = is_step and size <= policy.facts.near  # in the first cache it is as near as a register
    array = Work(stream=0.0 if near else 2.0 * size, kernel=not is_step)
    return again.seconds(policy.rates) > MARGIN * array.seconds(policy.rates)


def _reading(planned: Tiling, uses: Sequence[_Use]) -> Tiling:
    """``planned`` with one tensor for what all ``uses`` have in common, made before the first that reads it."""
    first = uses[0]
    own = [use.over_all() for use in uses]
    shared = [f for f in own[0] if all(f in other for other in own)]
    if not any(among(first.function, postorder(own[0][f].expr)) and not f.inverse for f in shared):
        shared = []
    axes = _order(uses)
    new = {a: Axis(a.name, 0, a.hi) for a in axes}
    element = multiplied([own[0][f] for f in shared]) if shared else first.function
    name = f"{first.tensor.name}_{first.function.op.name}"
    part = PartialSum(name, [*new.values()], substitute(element, new))
    tables: dict[Compute, dict[Expr, Expr]] = {}
    for use, found in zip(uses, own, strict=True):
        at = dict(zip(first.axes, use.axes, strict=True))
        read = Read(part, [at[a] for a in axes])
        tables.setdefault(use.tensor, {})[use.root] = use.reading(read, [found[f] for f in shared])
    return planned.sharing(part, tables)


def _order(uses: Sequence[_Use]) -> Sequence[Axis]:
    """The axes of the first use in an order in which most of the uses sum over the first or the last of them."""
    first = uses[0]
    orders = []
    for use in uses:
        back = dict(zip(use.axes, first.axes, strict=True))
        orders.append([back[a] for a in (*use.tensor.axes, *use.summed) if a in back])
    return max(orders, key=lambda order: sum(_is_at_an_end(order, use, first) for use in uses))


def _is_at_an_end(order: Sequence[Axis], use: _Use, first: _Use) -> bool:
    """Whether what a use sums over are the last, or the first, of the axes in this order."""
    at = dict(zip(first.axes, use.axes, strict=True))
    summed = [among(at[a], use.summed) for a in order]
    return summed in (sorted(summed), sorted(summed, reverse=True))
