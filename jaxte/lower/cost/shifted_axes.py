"""The axes over which a sum is taken as shifted slices, added up one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.product import product_of
from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.expr import Axis, Expr, Reduce
from jaxte.lang.limits import FEW_POSITIONS, FEWER, LONGEST_UNROLLED
from jaxte.lang.walk import free_axes
from jaxte.lower.cost.platform import Platform
from jaxte.lower.match.index_terms import Form, forms_of
from jaxte.sets.intervals import extent_of


def shifted_axes(node: Reduce, facts: Platform | None = None) -> tuple[Axis, ...]:
    """The axes that overlap with others in an index and are unrolled: the shortest of each overlap."""
    found: dict[Axis, None] = {}
    reduced = frozenset(node.axes)
    forms = [f for f in forms_of([*node.exprs]) if len(f.axes) > 1 and not are_digits(f)]
    of_result = frozenset(a for form in forms for a in form.axes if a not in reduced)
    factors = product_of(node.exprs[0]).factors
    few = (
        facts is not None
        and facts.fuses_products
        and is_product_beside([frozenset(free_axes(f.expr)) for f in factors], of_result)
    )
    for form in forms:
        own = [a for a in form.axes if a in reduced] or list(form.axes)
        shortest, small = (min(of, key=lambda a: extent_of(a.extent)) for of in (own, form.axes))
        extent = extent_of(shortest.extent)
        terms = extent <= LONGEST_UNROLLED and not (few and is_far_shorter(extent_of(small.extent), extent))
        found[shortest if terms else small] = None
    return tuple(found)


def is_far_shorter(own: int, other: int) -> bool:
    """Whether sums for each of ``own`` positions of the result are better than one of ``other`` terms, where what is shifted overlaps with both."""
    # A sum for each position reads everything again, which terms read in parts (bspline_3d).
    return own <= FEW_POSITIONS and FEWER * own <= other


def is_product_beside(dims: Sequence[frozenset[Axis]], shifted: frozenset[Axis]) -> bool:
    """Whether what is summed at each of the positions ``shifted`` of the result is a product of matrices, or shifted in one dimension alone.

    ``dims`` are those of each factor. Products of one array with itself moved in several dimensions are sums along rows.
    """
    return len(shifted) == 1 or frozenset().union(*dims) - shifted not in dims


def are_digits(form: Form) -> bool:
    """Whether a form takes another value at each point of what it is made of: axes, or quotients and remainders of them."""
    span = 0
    for atom, coefficient in sorted(form.terms.terms.items(), key=lambda item: abs(item[1])):
        extent = _values(atom)
        if extent is None or (extent > 1 and abs(coefficient) <= span):
            return False
        span += abs(coefficient) * (extent - 1)
    return True


def _values(atom: Expr) -> int | None:
    """How many values an axis has, or a quotient or a remainder of it."""
    if isinstance(atom, Axis):
        return extent_of(atom.extent)
    match division(atom):
        case Quotient(Axis() as axis, int() as divisor):
            return -(-extent_of(axis.extent) // divisor)
        case Remainder(Axis(), int() as divisor):
            return divisor
    return None
