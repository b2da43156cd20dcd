"""A definition as what flows back into it meets it: without guards on what flows on, with guards on sums that may have no points, and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.product import product_of, tensor_stays_finite
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.autodiff.terms.beside import same_elements
from jaxte.autodiff.terms.guards import guard
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Expr, Read, Reduce, as_expr, call, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.operators import DIVIDE, EQUAL, MULTIPLY, NEGATIVE, NONZERO
from jaxte.lang.walk import all_of, conditions_in, postorder, reads_of, reductions, substitute
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import is_index, linear_or_none
from jaxte.sets.intervals import known
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.linear import Linear
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.shapes import Extent, as_extent, same_extent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

_PRODUCTS = (MULTIPLY, DIVIDE, NEGATIVE)


def free_of_guards(reader: Compute, tensor: Tensor) -> Compute:
    """``reader`` without its guards on elements of ``tensor``, as it is differentiated with respect to these.

    ``select(g != 0, g * w, 0)`` is ``g * w`` in all that concerns ``g``: it is linear in it, and its slope is ``w`` also where ``g`` is zero. So it is
    for a part of the product that is a tensor of its own, ``select(g != 0, s * w, 0)`` with ``s = g * v``, which is told by what it reads.
    """
    tests = [n for n in all_of(Call, reader.body) if n.op is NONZERO]
    about = {n: TRUE for n in tests if any(_depends_on(tensor, read.tensor) for read in reads_of(n))}
    return _written(reader, substitute(reader.body, about))


def guarded_by_sums(reader: Compute, head: Tensor) -> Compute:
    """``reader``, if it is an adjoint, with guards on the sums in its products whose points data decides on, where ``head`` may be infinite or NaN.

    ``a * (sum over k where m[k] of b[k])`` was ``sum over k where m[k] of a * b[k]``: ``a`` left the sum since it is finite. What flows back into it need not be, as the tangent of
    a root, and passes on nothing where there are no points.
    """
    if not isinstance(reader, Adjoint) or tensor_stays_finite(head):
        return reader
    order = postorder(reader.body)
    inner = {a for n in order if _is_product(n) for a in n.children if _is_product(a)}
    table: dict[Expr, Expr] = {}
    for node in order:
        if _is_product(node) and node not in inner and (sums := _sums_by_data(node)):
            table[node] = guard(conjunction([call(NONZERO, s, 0) for s in sums]), node)
    return _written(reader, substitute(reader.body, table))


def _written(reader: Compute, body: Expr) -> Compute:
    """``reader`` with the same elements by another ``body``."""
    if body is reader.body:
        return reader
    made = Compute(reader.name, reader.axes, body)
    same_elements(made, reader)
    return made


def _is_product(node: Expr) -> bool:
    return isinstance(node, Call) and node.op in _PRODUCTS and dtypes.is_inexact(node.dtype)


def _sums_by_data(node: Expr) -> Sequence[Expr]:
    """The factors of a product that are sums whose points data decides on."""
    factors = product_of(node).factors
    return [f.expr for f in factors if not f.inverse and _is_empty_by_data(f.expr)]


def _is_empty_by_data(factor: Expr) -> bool:
    if isinstance(factor, Reduce):
        return _by_data(factor)
    if not isinstance(factor, Read) or not isinstance(factor.tensor, Compute):
        return False
    own = factor.tensor
    return own.masked if isinstance(own, Adjoint) else isinstance(own.body, Reduce) and _by_data(own.body)


def _by_data(node: Reduce) -> bool:
    conditions = [*conjuncts(node.where), *(f.expr for f in product_of(node.exprs[0]).factors if f.guard)]
    return node.is_sum and not all(map(is_decidable, conditions))


def _depends_on(tensor: Tensor, other: Tensor) -> bool:
    """Whether ``tensor`` is ``other``, or is computed from it."""
    if tensor is other or isinstance(tensor, Placeholder):
        return tensor is other
    return among(other, topological_order([tensor]))


def leaves_out(reader: Compute) -> bool:
    """Whether ``reader`` may leave elements of a tensor that it reads out: by a condition of any kind, or since it has no point that reads them."""
    body = reader.body
    if any(condition is not TRUE for condition in conditions_in(body)):
        return True
    axes = (*reader.axes, *(a for node in reductions(body) for a in node.axes))
    return not all(_reads_whole(read, axes) for read in reads_of(body) if dtypes.is_inexact(read.dtype))


def _reads_whole(read: Read, axes: Sequence[Axis]) -> bool:
    dims = [*zip(read.indices, read.tensor.shape, strict=True)]
    if len({*read.indices}) == len(dims) and all(_is_along(index, extent) for index, extent in dims):
        return True
    if _goes_step_by_step(read):
        return True
    places = [Axis(f"at{n}", 0, extent) for n, extent in enumerate(read.tensor.shape)]
    at = [call(EQUAL, place, index) for place, index in zip(places, read.indices, strict=True)]
    return all(map(is_decidable, at)) and IntegerSet((*places, *axes), at).covers(places)


def _is_along(index: Expr, extent: Extent) -> bool:
    return isinstance(index, Axis) and index.lo is ZERO and same_extent(as_extent(index.hi), extent)


def _goes_step_by_step(read: Read) -> bool:
    """Whether ``read`` meets every position of each dimension as a sum of axes of its own, as windows and convolutions do: nothing has to be solved."""
    forms = [linear_or_none(index) if is_index(index) else None for index in read.indices]
    terms = [atom for form in forms if form is not None for atom in form.terms]
    if len({*terms}) != len(terms):
        return False
    extents = (known(as_expr(extent)) for extent in read.tensor.shape)
    return all(
        form is not None and extent is not None and _meets_all(form, extent)
        for form, extent in zip(forms, extents, strict=True)
    )


def _meets_all(form: Linear, extent: int) -> bool:
    """Whether ``form`` takes all values from 0 to the last position: each coefficient is at most one more than what those below it reach."""
    low, width = form.constant, 0
    for axis, coefficient in sorted(form.terms.items(), key=lambda term: abs(term[1])):
        if not isinstance(axis, Axis) or axis.given is not TRUE or axis.ends != (None, None):
            return False
        first, end = known(axis.lo), known(axis.hi)
        if first is None or end is None or first >= end or abs(coefficient) > width + 1:
            return False
        low += min(coefficient * first, coefficient * (end - 1))
        width += abs(coefficient) * (end - 1 - first)
    return low <= 0 and low + width >= extent - 1
