"""The adjoint of a tensor from what its readers pass on to it, and whether two tensors are equal by the normal forms of their elements.

The law of cheap gradients: what a reader passes on takes at most four times the points of the reader, which with the forward pass makes five.

Solved for the element that is read, the sum of a contribution has one point for each point of the definition where indices are affine. Of quotients,
remainders and ends at which indices are held, a box around the points that count may be larger, and so may the copies of a
tensor that make such reads straight. Then contributions are added up where the definition has them, at positions that are a tensor,

    y[i] = x[(3 * i + 2) // 4 % 5]:   dx[a] = sum over i where at_x[i] == a of H[i],   at_x[i] = (3 * i + 2) // 4 % 5

the same form as that of positions that are data, which no solver can invert: a scatter-add, with as many points as the definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

from jaxte.algebra.polynomial import TooLarge, Whole, added, scaled
from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import collect
from jaxte.autodiff.rules.prefixes import as_prefix
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.autodiff.terms.scalar import Contribution
from jaxte.autodiff.terms.shared import Shared
from jaxte.autodiff.terms.zeros import has_many_cases, is_left_open, summands
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce, cast
from jaxte.lang.graphs import among
from jaxte.lang.limits import HALVED, MARGIN, MOST_TIMES
from jaxte.lang.operators import ADD, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.meaning.points import points
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent
from jaxte.tensors.reducers import number_of
from jaxte.tensors.shapes import Extent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor, new_axes


def zero_of(dtype: str) -> Const:
    """The element of a tensor of zeros."""
    return number_of(0, dtype)


def typed(body: Expr, dtype: str) -> Expr:
    """``body`` as an element of a tensor of ``dtype``."""
    if is_zero(body):
        return zero_of(dtype)
    return body if body.dtype == dtype and not body.weak else cast(body, dtype)


def merge(
    tensor: Tensor, heads: Sequence[Tensor], parts: Sequence[Tensor], prefix: Sequence[Extent]
) -> Tensor:
    """The sum of ``heads`` and ``parts``, all of shape ``prefix + tensor.shape``, as one tensor.

    The terms of several parts stand in one expression, where equal ones add up and opposite ones vanish.
    """
    every = [*heads, *parts]
    if len(every) == 1:
        return every[0]
    model = next((t for t in parts if isinstance(t, Compute)), None)
    names = [a.name for a in model.axes] if model is not None else [f"i{n}" for n in range(every[0].ndim)]
    axes = new_axes((*prefix, *tensor.shape), names)
    terms = [_element(part, axes, inline=not among(part, heads)) for part in every]
    body = typed(collect(terms), tensor.dtype)
    origins = [origin for part in every if isinstance(part, Adjoint) for origin in part.origins]
    whole = all(isinstance(part, Adjoint) and part.origins for part in parts)
    return Adjoint(f"d{tensor.name}", axes, body, every, origins if whole and not heads else ())


def _element(part: Tensor, axes: Sequence[Axis], inline: bool) -> Expr:
    if inline and isinstance(part, Compute):
        return part.element(axes)
    return Read(part, axes)


def equal_by_normal_forms(a: Tensor, b: Tensor, atoms: Sequence[Tensor]) -> bool:
    """Whether the elements of ``a`` and ``b`` are one polynomial over those of ``atoms`` and of the inputs of the graph.

    False where that was not found: they may be equal all the same.
    """
    axes = new_axes(a.shape)
    whole = Whole(atoms)
    try:
        difference = added(
            whole.polynomial(Read(a, axes)), scaled(whole.polynomial(Read(b, axes)), Fraction(-1))
        )
    except TooLarge:
        return False
    return not difference


class Positions(Compute):
    """The positions along one axis at which a definition reads, as integers at its own points."""

    __slots__ = ()


class LongPositions(Positions):
    """Positions that take more work to be solved for than derivation has."""

    __slots__ = ()


def allowed(reader: Compute, tensor: Tensor) -> float:
    """The points that ``reader`` may take to pass on what flows into it to ``tensor``."""
    return MOST_TIMES * (_points(reader) + _elements(tensor))


def taken(part: Tensor, reader: Compute, head: Tensor) -> float:
    """The points of all that ``part`` needs beside the reader, what that reads, and its head.

    What reads have in common are operations of one pass over the points of the reader, however many tensors hold them.
    """
    known = {reader, head, *reader.inputs, *head.inputs}
    order = topological_order([part], lambda tensor: () if tensor in known else tensor.inputs)
    new = [t for t in order if isinstance(t, Compute) and t not in known]
    one_pass = max((_points(t) for t in new if isinstance(t, Shared)), default=0)
    return one_pass + sum(_points(t) for t in new if not isinstance(t, Shared))


def _points(tensor: Compute) -> float:
    """The points of ``tensor``; a cumulative reduction is one pass."""
    is_scan = isinstance(tensor.body, Reduce) and as_prefix(tensor) is not None
    return _elements(tensor) if is_scan else points(tensor)


def within_budget(part: Contribution, targets: Sequence[Axis]) -> list[Expr]:
    """The summands of ``part``: solved, or accumulated where that is more cases than there is a budget for."""
    return summands(_at_positions(part, LongPositions) if has_many_cases(part) else part, targets)


def cheaper(part: Contribution, targets: Sequence[Axis]) -> list[Expr]:
    """The summands of ``part``: solved where that takes about as many points as the definition, else accumulated where that takes fewer by half."""
    solved = within_budget(part, targets)
    found = _of_terms(solved, targets)
    if has_many_cases(part) or found <= MARGIN * prod(map(extent, part.axes)):
        return solved
    kind = LongPositions if is_left_open(part, targets) else Positions
    added = summands(_at_positions(part, kind), targets)
    # How many times the points of a scatter-add a solved contribution takes that is not taken.
    return added if HALVED * _of_terms(added, targets) <= found else solved


def _of_terms(terms: Sequence[Expr], targets: Sequence[Axis]) -> float:
    return sum(points(Compute("part", targets, term)) for term in terms)


def _is_affine(index: Expr) -> bool:
    """Whether ``index`` is a sum of multiples of axes: solved for them, a sum has as many points as the definition, but for its edges."""
    return not any(
        isinstance(n, Call) and n.op not in (ADD, SUBTRACT, MULTIPLY, NEGATIVE) for n in postorder(index)
    )


def _at_positions(part: Contribution, kind: type[Positions]) -> Contribution:
    """``part`` read at positions that are a tensor where they are not affine."""
    assert isinstance(part.read, Read)
    tensor, found = part.read.tensor, list[Expr]()
    for number, index in enumerate(part.read.indices):
        stays = _is_affine(index) or reads_of(index)
        found.append(index if stays else _position(f"at_{tensor.name}_{number}", index, kind))
    return replace(part, read=Read(tensor, found))


def _position(name: str, index: Expr, kind: type[Positions]) -> Read:
    axes = tuple(free_axes(index))
    own = tuple(Axis(a.name, 0, a.extent) for a in axes)
    inside: dict[Expr, Expr] = {a: normal(new + a.lo) for a, new in zip(axes, own, strict=True)}
    positions = kind(name, own, cast(substitute(index, inside), "int32"))
    return Read(positions, [normal(a - a.lo) for a in axes])


def _elements(tensor: Tensor) -> int:
    return prod(extent(Axis("i", ZERO, e)) for e in map(_end, tensor.shape))


def _end(size: object) -> Expr:
    return size if isinstance(size, Expr) else Const(size)  # type: ignore[arg-type]
