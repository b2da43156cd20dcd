"""A program: variables, the counters of loops, and statements that write one element, each at a time that its place in the loops gives.

Equations of a program: what a statement writes, or what an array holds, over axes; they read each other, in circles too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from jaxte.frontends.text.tree import Span
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, as_expr
from jaxte.lang.functions import logical_and
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.affine import normal
from jaxte.sets.domain import IntegerSet
from jaxte.sets.tabulate import evaluate_index
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.shapes import Shape, as_extent
from jaxte.tensors.tensor import Tensor


class Cell(Placeholder):
    """What stands in expressions for the present content of a variable."""

    __slots__ = ()


@dataclass(eq=False)
class Variable:
    """An array, or a number, that statements write.

    Attributes:
        initial: the argument that it holds at first; None for one that holds nothing.
        is_inferred: whether its dtype is that of what is written to it.
        home: how many choices by data, of those around its first statement, hold all that is said of it: where they leave it out, nobody reads it.
        is_laid_out: whether NumPy has its elements row by row; else the order of its axes is not known.
    """

    name: str
    shape: Shape
    dtype: str
    initial: Tensor | None = None
    is_inferred: bool = True
    home: int = 0
    is_laid_out: bool = True
    cell: Cell = field(init=False)

    def __post_init__(self) -> None:
        self.cell = Cell(self.name, self.shape, self.dtype)

    def __len__(self) -> int:
        return len(self.shape)

    def is_known(self) -> None:
        """Its dtype is the one that it has, whatever is written to it."""
        self.is_inferred = False

    def lies(self, in_rows: bool) -> None:
        """What it is given stands row by row in NumPy's memory, or may not."""
        self.is_laid_out = self.is_laid_out and in_rows


@dataclass(frozen=True, eq=False)
class Counter:
    """The counter of a loop: ``axis`` counts the iterations from 0, ``value`` is what the program sees, within ``condition``."""

    name: str
    axis: Axis
    value: Expr
    condition: Expr

    def at(self, point: Mapping[Axis, int]) -> int:
        """What the program sees at ``point``."""
        return evaluate_index(self.value, {a: point[a] for a in free_axes(self.value)})


@dataclass(frozen=True, eq=False)
class Statement:
    """``variable[indices] = whole``, which is ``op`` of the element itself and ``part`` where it adds to it.

    Attributes:
        counters: of the loops around it, the outermost first.
        places: its place among the statements of each block around it, one more than counters.
        conditions: on counters and sizes, under which it is executed.
        guards: the conditions under which each read is evaluated, of all that it may be.
        keeps: what it reads where a condition on data leaves the element as it was.
        alone: ``whole`` with zero in place of what it keeps.
        complete: whether ``keeps`` may find nothing, because the other branch writes the element.
        finishes: whether it is the last of the statements of both branches that do.
        branch: of which choices by data it is part: the number of each ``if``, and which of its branches.
    """

    number: int
    counters: tuple[Counter, ...]
    places: tuple[int, ...]
    conditions: tuple[Expr, ...]
    variable: Variable
    indices: tuple[Expr, ...]
    whole: Expr
    span: Span
    guards: Mapping[Read, Sequence[tuple[Expr, ...]]]
    spans: Mapping[Read, Span]
    op: str | None = None
    part: Expr | None = None
    keeps: Read | None = None
    alone: Expr | None = None
    complete: bool = False
    finishes: bool = False
    branch: tuple[tuple[int, bool], ...] = ()

    def only_keeps(self, read: Read) -> bool:
        """Whether ``read`` is what it keeps, and nothing that it computes with."""
        return read is self.keeps and self.alone is not None and not among(read, reads_of(self.alone))

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(c.axis for c in self.counters)

    def time(self, depth: int, step: int) -> tuple[Expr, ...]:
        """When it is executed, with ``depth`` loops: reads at step 0, the write at step 1."""
        found: list[Expr] = []
        for place, counter in zip(self.places, self.counters, strict=False):
            found += [as_expr(place), counter.axis]
        found.append(as_expr(self.places[-1]))
        found += [as_expr(0)] * (2 * (depth - len(self.counters)))
        return (*found, as_expr(step))


@dataclass(frozen=True, eq=False)
class Marked:
    """A region of statements with a gradient of its own, by the numbers of statements.

    Attributes:
        inputs, outputs: those that write a copy of each.
        body: those of the region.
        heads: what stands for the adjoints of the outputs in the gradient, over the loops around and the elements of each.
        gradient: the statements of the gradient.
        adjoints: those that write what the adjoint of each input is in the end.
    """

    span: Span
    inputs: tuple[int, ...]
    body: range
    outputs: tuple[int, ...]
    heads: tuple[Placeholder, ...]
    gradient: range
    adjoints: tuple[int, ...]

    @property
    def whole(self) -> tuple[int, ...]:
        """The statements whose values have to be tensors of their own."""
        return (*self.inputs, *self.outputs, *self.adjoints)


@dataclass(frozen=True, eq=False)
class Program:
    """Statements in the order of the text.

    Attributes:
        results: the variables that it returns.
        regions: those with a gradient of their own.
    """

    name: str
    statements: tuple[Statement, ...]
    variables: tuple[Variable, ...]
    results: tuple[Variable, ...]
    is_tuple: bool
    regions: tuple[Marked, ...] = ()

    def instance(self, statement: Statement, point: Mapping[Axis, int]) -> str:
        """The iteration of ``statement`` at ``point``, as in ``i = 3, j = 0``."""
        return ", ".join(f"{c.name} = {c.at(point)}" for c in statement.counters)


class Stand(Placeholder):
    """What stands in expressions for the tensor of an equation."""

    __slots__ = ("equation",)

    def __init__(self, equation: Equation) -> None:
        super().__init__(equation.name, tuple(as_extent(a.extent) for a in equation.axes), equation.dtype)
        self.equation = equation


@dataclass(eq=False)
class Equation:
    """``name[axes] = body``, within ``domain``; the body reads other equations by their :class:`Stand`.

    Attributes:
        statement: that it is the value of; None for what elements of an array hold.
        counters: of the loops around it.
        origins: the reads of the body as they were written, of those whose indices read what is a tensor by now.
    """

    name: str
    axes: tuple[Axis, ...]
    domain: Expr
    dtype: str
    statement: Statement | None = None
    body: Expr = TRUE
    origins: dict[Read, Read] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stand = Stand(self)

    def says(self, body: Expr) -> None:
        """Its body is ``body`` from here on: an equation may read others that read it."""
        self.body = body

    def reads_now(self, moved: Read, written: Read) -> None:
        """``moved`` stands where the body was written with ``written``: what is known of the one holds for the other."""
        self.origins[moved] = written


class Unbounded(Exception):
    """The range of a loop has no greatest length."""


def counter_of(
    name: str, lo: Expr, hi: Expr, step: int, around: Sequence[Axis], conditions: Sequence[Expr]
) -> Counter:
    """The counter of a loop from ``lo`` to ``hi``, which may move with the axes of the loops ``around``, under the ``conditions`` there.

    Raises:
        Unbounded: it has no greatest length.
    """
    sign = 1 if step > 0 else -1
    size, span = abs(step), normal((hi - lo) * sign)
    moving = bool(free_axes(lo) or free_axes(hi))
    if not moving:
        extent = normal((span + (size - 1)) // size)
        if isinstance(extent, Const) and int(extent.value) < 0:  # type: ignore[arg-type]
            extent = as_expr(0)
        axis = Axis(name, 0, extent)
        return Counter(name, axis, normal(lo + axis * step), TRUE)
    points = IntegerSet(around, [*conditions, span > 0])
    first, most = lo, span
    empty = points.is_empty()
    if free_axes(lo) and size == 1:
        ends = (None, None) if empty else (points.maximum(lo * -sign), points.maximum(hi * sign))
        if ends[0] is not None and ends[1] is not None:
            first, most = normal(ends[0] * -sign), normal(ends[1] + ends[0])
    if free_axes(most):
        found = as_expr(0) if empty else points.maximum(most)
        if found is None:
            raise Unbounded
        most = found
    axis = Axis(name, 0, normal((most + (size - 1)) // size))
    value = normal(first + axis * step)
    inside = logical_and(value * sign >= lo * sign, value * sign < hi * sign)
    return Counter(name, axis, value, inside)


Target = tuple[Variable, tuple[object, ...]]


def target_of(statement: Statement, loops: int, given: Sequence[Expr]) -> Target:
    """The elements that ``statement`` writes in an iteration of the ``loops`` around a choice, under more conditions than are ``given`` there.

    Counters of loops within are their places and extents, so that two statements that write a whole array write the same.
    """
    within = [c.axis for c in statement.counters[loops:]]
    table: dict[Axis, Expr] = {axis: _stand_in(n, axis.extent) for n, axis in enumerate(within)}
    around = set(given)
    more = [c for c in statement.conditions if c not in around]
    parts = [*table.values(), *(substitute(e, table) for e in (*statement.indices, *more))]
    return statement.variable, tuple(map(id, parts))


@cache
def _stand_in(place: int, extent: Expr) -> Axis:
    return Axis(f"_{place}", 0, extent)
