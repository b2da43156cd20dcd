"""Jacobians kept in structured form: for each element of an output the elements of an input that it depends on, and how.

A Jacobian is a sum of *terms*. A term says, for an element ``o`` of the output and a point ``k`` of a few more axes, which element
``g(o, k)`` of the input moves it and by how much, where its conditions on positions hold:

    J[o, g(o, k)] += value(o, k)      where conditions(o, k)

Terms start at the output, where ``g(o) = o`` and the value is 1, and are carried to what each tensor reads: indices are composed, values
multiplied. Terms with the same indices are added up. Nothing is probed and no matrix is formed: the pattern is the set of points of the terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import plus, simplify_index
from jaxte.autodiff.rules.reductions import reduction_contributions, scan_of
from jaxte.autodiff.terms.guards import guard
from jaxte.autodiff.terms.scalar import Contribution, contributions
from jaxte.autodiff.terms.support import nonzero
from jaxte.autodiff.terms.zeros import lift_guards
from jaxte.lang import dtypes
from jaxte.lang.checks import counted
from jaxte.lang.errors import DifferentiationError, ShapeError
from jaxte.lang.expr import (
    TRUE,
    Axis,
    Const,
    Expr,
    Read,
    Reduce,
    Symbol,
    as_expr,
    call,
    cast,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import among
from jaxte.lang.limits import PLACES
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import reads_of, substitute
from jaxte.meaning.interpret import interpret
from jaxte.sets.affine import linear
from jaxte.sets.conditions import prune
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor, new_axes


@dataclass(frozen=True)
class Term:
    """``J[o, g(o, k)] += value(o, k)`` where ``conditions`` hold.

    Attributes:
        axes: ``k``.
        indices: ``g``.
        conditions: on positions.
        value: what data says.
    """

    axes: tuple[Axis, ...]
    indices: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    value: Expr


class StructuredJacobian:
    """The Jacobian of ``output`` with respect to ``input``, as terms.

    Attributes:
        axes: those of the output.
        terms: what it is the sum of.
        shape: ``output.shape + input.shape``.
        indices: the positions of its elements that are not zero by structure, one row each, sorted and different.
        values: a tensor for each term, over the axes of the output and its own, zero where its conditions do not hold.
        order: which elements of all ``values``, one after the other, stand at ``indices``, in that order.
        is_whole: whether these are all elements, row by row of the output.
        segments: for each of ``order`` the position in ``indices`` that it adds to, where several do; else None.
    """

    def __init__(self, output: Tensor, input: Tensor, axes: Sequence[Axis], terms: Sequence[Term]) -> None:
        self.output = output
        self.input = input
        self.axes = tuple(axes)
        self.terms = tuple(terms)
        self.shape: tuple[int, ...] = tuple(map(_known, (*output.shape, *input.shape)))
        self.values = [
            _value(self.axes, term, f"d{output.name}_{n}", input.dtype) for n, term in enumerate(self.terms)
        ]
        self._assemble()

    @property
    def nnz(self) -> int:
        """How many elements are not zero by structure."""
        return len(self.indices)

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """Rows and columns, where the axes of the output are one and those of the input another."""
        n = self.output.ndim
        return math.prod(self.shape[:n]), math.prod(self.shape[n:])

    def _assemble(self) -> None:
        rows, columns = self.matrix_shape
        places = [_places(self.axes, term, rows, self.shape[self.output.ndim :]) for term in self.terms]
        column = np.concatenate(places, axis=1) if places else np.zeros((rows, 0), np.int64)
        row = np.broadcast_to(np.arange(rows)[:, None], column.shape)
        held = np.flatnonzero(column.ravel() >= 0)
        key = row.ravel()[held].astype(np.int64) * columns + column.ravel()[held]
        if np.all(key[1:] > key[:-1]):
            unique, self.order, self.segments = key, held, None
        else:
            by_key = np.argsort(key, kind="stable")
            unique, inverse = np.unique(key[by_key], return_inverse=True)
            self.order = held[by_key]
            self.segments = None if len(unique) == len(key) else inverse
        self.is_whole = (
            self.segments is None
            and len(self.order) == column.size
            and bool(np.all(np.diff(self.order) == 1))
        )
        self.order = _term_by_term(self.order, rows, [p.shape[1] for p in places])
        self.flat_indices = (
            np.stack(np.divmod(unique, columns), axis=1) if columns else np.zeros((0, 2), np.int64)
        )
        n = self.output.ndim
        parts = [
            *np.unravel_index(self.flat_indices[:, 0], self.shape[:n] or (1,))[: n or 0],
            *np.unravel_index(self.flat_indices[:, 1], self.shape[n:] or (1,))[: self.input.ndim or 0],
        ]
        self.indices = np.stack(parts, axis=1) if parts else np.zeros((len(unique), 0), np.int64)

    @property
    def diagonals(self) -> list[tuple[int, Compute]] | None:
        """Offsets ``column - row`` with the elements along each, one for each row (zero outside); None if it is not banded."""
        if self.output.ndim != 1 or self.input.ndim != 1:
            return None
        found = []
        for term, tensor in zip(self.terms, self.values, strict=True):
            form = linear(term.indices[0] - self.axes[0]) if is_decidable(term.indices[0] >= 0) else None
            if term.axes or form is None or form.terms:
                return None
            found.append((form.constant, tensor))
        return sorted(found, key=lambda pair: pair[0])

    def __repr__(self) -> str:
        return f"d {self.output.name} / d {self.input.name}: {shape_text(self.shape)}, {self.nnz:,} elements in {counted(len(self.terms), 'term', 'terms')}"


def structured_jacobian(output: Tensor, input: Tensor) -> StructuredJacobian:
    """The terms of the Jacobian of ``output`` with respect to ``input``, any number of steps away.

    Raises:
        ShapeError: sizes are symbolic.
        DifferentiationError: a tensor in between has no structure to keep: positions that are data, a cumulative reduction, a
            function of arrays, a given derivative.
    """
    for tensor in (output, input):
        if not all(isinstance(e, int) for e in tensor.shape):
            raise ShapeError(
                f"the structured Jacobian of {output.name} with respect to {input.name} needs known sizes, and {tensor.name} has the "
                f"shape {shape_text(tensor.shape)}; define it with numbers"
            )
        if not dtypes.is_float(tensor.dtype):
            raise DifferentiationError(
                f"{tensor.name} has dtype {tensor.dtype}; structured Jacobians are of real floats"
            )
    axes = tuple(Axis(a.name, 0, a.hi) for a in output.axes) if isinstance(output, Compute) else ()
    if output is input:
        axes = new_axes(output.shape)
    order = topological_order([output])
    leads = {t for t in order if t is input or among(input, topological_order([t]))}
    terms: dict[Tensor, list[Term]] = {output: [Term((), axes, (), Const(1.0))]}
    for tensor in reversed(order):
        if tensor is input or tensor not in leads or tensor not in terms:
            continue
        _check_structure(tensor, output, input)
        assert isinstance(tensor, Compute)
        parts = [p for p in _parts(tensor) if p.read.tensor in leads]  # type: ignore[attr-defined]
        for term in terms.pop(tensor):
            for part in parts:
                assert isinstance(part.read, Read)
                _add(terms.setdefault(part.read.tensor, []), _carried(term, tensor, part, axes))
        # Each term of the Jacobian of one tensor is an expression, and they multiply from tensor to tensor.
        if sum(map(len, terms.values())) > PLACES:
            raise DifferentiationError(
                f"the Jacobian of {output.name} has more than {PLACES:,} terms at {tensor.name}; take it in fewer steps, or dense"
            )
    return StructuredJacobian(output, input, axes, terms.get(input, []))


def _known(extent: object) -> int:
    assert isinstance(extent, int)
    return extent


def _check_structure(tensor: Tensor, output: Tensor, input: Tensor) -> None:
    what = ""
    if tensor.override is not None:
        what = "has a derivative of its own"
    elif not isinstance(tensor, Compute):
        what = "is a function of arrays"
    elif scan_of(tensor) is not None:
        what = "is a cumulative reduction"
    elif any(reads_of(*read.indices) for read in reads_of(tensor.body) if dtypes.is_inexact(read.dtype)):
        what = "reads at positions that are data"
    if what:
        raise DifferentiationError(
            f"the Jacobian of {output.name} with respect to {input.name} has no structure that is known from positions: {tensor.name} {what}; "
            "take it dense, or in parts"
        )


def _parts(tensor: Compute) -> list[Contribution]:
    """What each read receives for a head, a symbol."""
    seed = Symbol("head", tensor.dtype)

    def wanted(leaf: Expr) -> bool:
        return isinstance(leaf, Read) and dtypes.is_inexact(leaf.dtype)

    if isinstance(tensor.body, Reduce):
        return reduction_contributions(tensor, seed, wanted)
    return contributions(tensor.body, tensor.axes, seed, Read(tensor, tensor.axes), wanted)


def _carried(term: Term, tensor: Compute, part: Contribution, outer: Sequence[Axis]) -> Term | None:
    """``term``, which is about elements of ``tensor``, as one about what these read; None if there is nothing."""
    table: dict[Expr, Expr] = dict(zip(tensor.axes, term.indices, strict=True))
    fresh = [Axis(a.name, 0, a.extent) for a in part.axes if not among(a, tensor.axes)]
    old = [a for a in part.axes if not among(a, tensor.axes)]
    table |= {a: (new if a.lo is as_expr(0) else new + a.lo) for a, new in zip(old, fresh, strict=True)}
    assert isinstance(part.read, Read)
    indices = tuple(simplify_index(substitute(i, table)) for i in part.read.indices)
    axes = (*term.axes, *fresh)
    head = Symbol("head", tensor.dtype)
    found = contributions(
        substitute(part.value, table), (*outer, *axes), term.value, None, lambda leaf: leaf is head
    )
    value: Expr = Const(0.0)
    for one in found:
        value = plus(value, one.value)
    if is_zero(value):
        return None
    value, guards = lift_guards(value)
    conditions = [c for e in (*term.conditions, substitute(part.where, table), *guards) for c in conjuncts(e)]
    about_data = [c for c in conditions if not is_decidable(c)]
    if about_data:
        value = guard(conjunction(about_data), value)
    known = prune([c for c in conditions if is_decidable(c)], (*outer, *axes))
    if any(isinstance(c, Const) and c.value is False for c in known):
        return None
    return Term(axes, indices, tuple(known), value)


def _add(terms: list[Term], new: Term | None) -> None:
    """Adds ``new`` to ``terms``, to the value of one with the same indices and conditions where there is one."""
    if new is None:
        return
    for n, term in enumerate(terms):
        same = len(term.axes) == len(new.axes) == 0
        same = same and all(a is b for a, b in zip(term.indices, new.indices, strict=True))
        same = same and len(term.conditions) == len(new.conditions)
        if same and all(a is b for a, b in zip(term.conditions, new.conditions, strict=True)):
            terms[n] = Term((), term.indices, term.conditions, plus(term.value, new.value))
            return
    terms.append(new)


def _value(axes: Sequence[Axis], term: Term, name: str, dtype: str) -> Compute:
    """The values of ``term`` as a tensor of ``dtype``, which is that of the dense Jacobian: numbers alone have none of their own."""
    own = [Axis(a.name, 0, a.hi) for a in (*axes, *term.axes)]
    table: dict[Expr, Expr] = dict(zip((*axes, *term.axes), own, strict=True))
    value = guard(conjunction(term.conditions), term.value)
    return Compute(name, own, cast(substitute(value, table), dtype))


def _term_by_term(order: np.ndarray, rows: int, widths: Sequence[int]) -> np.ndarray:
    """Positions in the rows of all terms side by side, as positions in the terms one after the other."""
    width = np.repeat(np.asarray(widths, np.int64), widths)
    start = np.repeat(np.cumsum([0, *widths])[:-1], widths)
    row, column = np.divmod(order, max(1, sum(widths)))
    return rows * start[column] + row * width[column] + column - start[column] if len(order) else order


def _places(axes: Sequence[Axis], term: Term, rows: int, shape: Sequence[int]) -> np.ndarray:
    """The column of each point of ``term``, by rows; -1 where its conditions do not hold, or its value is zero by position."""
    held = conjunction((*term.conditions, nonzero(term.value)))
    column: Expr = Const(0)
    for index, extent in zip(term.indices, shape, strict=True):
        column = column * extent + index
    at = column if held is TRUE else call(SELECT, held, column, Const(-1))
    found: np.ndarray = interpret(Compute("columns", (*axes, *term.axes), cast(at, "int32")), {})
    return found.reshape(rows, math.prod(found.shape[len(axes) :])).astype(np.int64)
