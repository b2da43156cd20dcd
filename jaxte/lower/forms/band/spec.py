"""The banded product as a specification: what is multiplied, and which dimension of each array plays which role.

A band with a step as bands without one, side by side: one for each remainder of the rows.

Column ``g r + s z`` is, for the rows ``r = s q + m`` of one remainder ``m``, the column ``g q + z`` of those that are ``s`` apart from
``g m`` on. Where windows move by one column a row, these are what a reshape to rows of ``s`` makes of all columns; where they move
by a stride ``g``, there is a slice for each remainder.

The columns of a band whose windows move by a stride: the third form of ``bands``, where no index is ``l - s z`` alone.

A window that moves by ``g`` meets column ``l`` in the rows ``r`` and diagonals ``z`` on the line ``g r + s z = l + c``. Where ``g`` and ``s``
have no common divisor, the points of a line are ``s`` rows and ``g`` diagonals apart, and the adjoint of the columns runs through them with an axis
``m`` of its own, from a first one that depends on the remainder of ``l``:

    Y[l, d] = sum over m of P[l // 2 - m, 2 m + l % 2] * X[l // 2 - m, d]            (g = 2, s = 1)

So rows and diagonals are two indices made of ``l`` and ``m``. Over ``l = M q + t``, where ``M`` is a multiple of all that ``l`` is divided by,
they are ``alpha q + a m + c_t`` and ``beta q + b m + e_t``, and ``g`` and ``s`` follow from

    g alpha + s beta = M,        g a + s b = 0.

The sum is a banded product if these are whole numbers, if ``g c_t + s e_t - t`` is the same for each ``t``, if no point of a line is
left out (``a`` and ``b`` have no common divisor), and if the conditions hold exactly where row and diagonal are in their ranges.
Where the window is longer than all rows together, ``m`` may be the row itself, and ``M`` is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import NamedTuple

from jaxte.algebra.product import multiplied
from jaxte.lang.divisions import divisions
from jaxte.lang.expr import Axis, Const, Expr, as_expr
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import MOST_PARTS
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.arrays.elementwise import Number, Typed
from jaxte.lower.arrays.loops import Each, Loop, Stacked, Total
from jaxte.lower.arrays.views import Spread
from jaxte.lower.code.lettered_array import NO_WIDTH, Shaped
from jaxte.lower.code.spec import Array, Finish, Refusal, array
from jaxte.lower.match.index_terms import Form, rewrite_forms
from jaxte.lower.match.two_operands import Operand
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.domain import IntegerSet

SCORES, WEIGHTED, TRANSPOSED = "scores", "weighted", "transposed"
ROW, DIAGONAL, COLUMN = "row", "diagonal", "column"


class Part(NamedTuple):
    """What a dimension is to a band: the rows, diagonals or columns of the one with this number."""

    role: str
    band: int


@dataclass(frozen=True, slots=True)
class Dims:
    """An operand of a banded product: an array and the role of each of its dimensions: its part in a band, or its own axis."""

    array: Array
    roles: tuple[Part | Axis, ...]

    def extent(self, role: Part | Axis) -> int:
        return int(self.array.axes[place_of(role, self.roles)].hi)


@dataclass(frozen=True, slots=True)
class Band:
    """The points (r, z) of a band; column ``stride * r + step * z - before`` is theirs.

    Attributes:
        rows, window, columns: extents of r, of z and of the columns.
        stride: how many columns the window moves from row to row.
        step: how far apart the columns of a window are. Where it is negative, diagonals are counted from the last one, at ``before``.
        before: the position of the first column on the line, counted from the first row's first one.
    """

    rows: int
    window: int
    columns: int
    stride: int
    step: int
    before: int

    @property
    def remainders(self) -> int:
        """How many bands without steps it is, side by side: one for each remainder of the rows."""
        return abs(self.step)

    @property
    def reach(self) -> int:
        """The columns from the first row's first to the last row's last."""
        return self.stride * (self.rows - 1) + abs(self.step) * (self.window - 1) + 1


@dataclass(frozen=True, slots=True)
class BandSpec:
    """A banded product.

    Attributes:
        kind: what is made: "scores", "weighted" or "transposed".
        bands: the bands, one for each pair of dimensions that meet in an index.
        first, second: the operands.
        out: the roles of the result's dimensions, in order.
        finish: what is done to the result in the end.
    """

    kind: str
    bands: tuple[Band, ...]
    first: Dims
    second: Dims
    out: tuple[Part | Axis, ...]
    finish: Finish

    @property
    def operands(self) -> tuple[Array, ...]:
        return (self.first.array, self.second.array, *self.finish.operands)


def dims_of(operand: Operand, replaced: Sequence[tuple[Form, Expr]], parts: Mapping[Axis, Part]) -> Dims:
    """An operand over single axes, in the order in which its largest read has them."""
    body = rewrite_forms(multiplied(operand.factors), replaced)
    own = list(free_axes(body))
    reads = sorted((r for r in reads_of(body) if free_axes(r)), key=lambda r: -len(free_axes(r)))
    seen = [a for r in reads for index in r.indices for a in free_axes(index)]
    order = [a for a in dict.fromkeys([*seen, *own]) if among(a, own)]
    return Dims(array(order, body), tuple(parts.get(a, a) for a in order))


def columns_in_all(count: int, stride: int, step: int) -> int:
    """The number of columns, where there are ``count`` for each remainder."""
    return stride * (step - 1) + step * (count - 1) + 1


def by_remainders(y: Shaped, at: int, stride: int, step: int, loop: Loop) -> Shaped:
    """The columns in dimension ``at`` of ``y`` as those of each remainder, which come next."""
    count = (y.extents[at] - stride * (step - 1) - 1) // step + 1
    if stride == 1:
        return y.reshaped(at, 1, "js", (count, step))
    taken = y.moving(at, stride * loop.axis, step, count)
    letters = f"{y.letters[: at + 1]}s{y.letters[at + 1 :]}"
    extents = (*y.extents[:at], count, step, *y.extents[at + 1 :])
    return Shaped(Stacked((Each(taken.node, (loop,)),), at + 1), letters, extents)


def added_remainders(y: Shaped, at: int, stride: int, loop: Loop, dtype: str) -> Shaped:
    """All columns in dimension ``at``, of those of each remainder in the next one: the other way round."""
    count, step = y.extents[at : at + 2]
    length = columns_in_all(count, stride, step)
    if stride == 1:
        return y.reshaped(at, 2, "j", (length,))
    taken, turn = y.at(at + 1, loop.axis), loop.axis
    widths: list[tuple[Expr, Expr, int]] = [(*NO_WIDTH, 0)] * len(taken.extents)
    widths[at] = stride * turn, stride * (as_expr(step - 1) - turn), step - 1
    placed = Spread(taken.node, Typed(Number(0), dtype), tuple(widths))
    extents = (*y.extents[:at], length, *y.extents[at + 2 :])
    return Shaped(Total(Each(placed, (loop,))), taken.letters, extents)


@dataclass(frozen=True, slots=True)
class _Line:
    """A form over ``l = M q + t``: the coefficients of q and m, and the constant for each t."""

    outer: int
    inner: int
    constants: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """The output axis, the reduced one, the forms of rows and diagonals, and the operand that has both beside the other one."""

    column: Axis
    point: Axis
    row: Form
    diagonal: Form
    first: Operand
    second: Operand


def recognise_columns(
    axes: Sequence[Axis], roles: ColumnRoles, guards: Sequence[Expr], finish: Finish
) -> BandSpec | Refusal:
    """The transposed product of which ``roles`` are the rows and diagonals, at each point of ``axes`` where ``guards`` hold."""
    found = _steps(roles)
    if isinstance(found, Refusal):
        return found
    stride, step, constant = found
    ranges = _ranges(roles, guards)
    if isinstance(ranges, Refusal):
        return ranges
    (first_row, last_row), (low, high) = ranges
    row = Axis(roles.row.axes[0].name, 0, last_row - first_row)
    diagonal = Axis(roles.diagonal.axes[0].name, 0, high - low)
    replaced = [(roles.row, normal(row + first_row)), (roles.diagonal, normal(diagonal + low))]
    parts = {row: Part(ROW, 0), diagonal: Part(DIAGONAL, 0), roles.column: Part(COLUMN, 0)}
    first, second = (dims_of(o, replaced, parts) for o in (roles.first, roles.second))
    base = stride * first_row + step * (low if step > 0 else high - 1) - constant
    before = int(roles.column.lo) - base
    band = Band(int(row.extent), high - low, int(roles.column.extent), stride, step, before)
    return BandSpec(TRANSPOSED, (band,), first, second, tuple(parts.get(a, a) for a in axes), finish)


def column_roles(axes: Sequence[Axis], reduced: Sequence[Axis], a: Operand, b: Operand) -> ColumnRoles | None:
    """The roles in a transposed product of ``a`` and ``b``; None where their indices are not those of rows and diagonals."""
    mixed = {axis for o in (a, b) for f in o.forms if not f.plain for axis in f.axes}
    outer, inner = [x for x in axes if x in mixed], [x for x in reduced if x in mixed]
    if len(outer) != 1 or len(inner) != 1 or len(mixed) != 2:
        return None
    own_a, own_b = ({f.key: f for f in o.forms if mixed & set(f.axes)} for o in (a, b))
    if len(own_a) < len(own_b):
        a, b, own_a, own_b = b, a, own_b, own_a
    if len(own_a) != 2 or len(own_b) != 1 or not own_b.keys() <= own_a.keys():
        return None
    (row,) = (f for key, f in own_a.items() if key in own_b)
    (diagonal,) = (f for key, f in own_a.items() if key not in own_b)
    return ColumnRoles(outer[0], inner[0], row, diagonal, a, b)


def _steps(roles: ColumnRoles) -> tuple[int, int, int] | Refusal:
    """``(g, s, c)`` with ``g row + s diagonal = l + c`` at each l and m."""
    forms = [from_linear(f.terms) for f in (roles.row, roles.diagonal)]
    period = lcm(*_divisors(forms))
    if period > MOST_PARTS:
        return Refusal(f"rows and diagonals repeat after {period} columns only")
    lines = [_line(form, roles, period) for form in forms]
    row, diagonal = lines
    if row is None or diagonal is None:
        return Refusal("rows and diagonals are not those of one line for each column")
    area = row.outer * diagonal.inner - diagonal.outer * row.inner
    if gcd(row.inner, diagonal.inner) != 1 or not area:
        return Refusal("rows and diagonals leave out some points of each column")
    (stride, left), (step, rest) = divmod(period * diagonal.inner, area), divmod(-period * row.inner, area)
    if left or rest or stride < 1 or not step:
        return Refusal("rows and diagonals are not those of columns g r + s z")
    constants = zip(row.constants, diagonal.constants, strict=True)
    found = {stride * c + step * e - t for t, (c, e) in enumerate(constants)}
    return (stride, step, found.pop()) if len(found) == 1 else Refusal("columns are not in order")


def _divisors(exprs: Iterable[Expr]) -> list[int]:
    """What is divided by in ``exprs``."""
    return [d.base for d in divisions(*exprs) if d.base is not None]


def _line(form: Expr, roles: ColumnRoles, period: int) -> _Line | None:
    """``form`` over ``l = period * q + t``, if its coefficients are those of each t."""
    q = Axis(roles.column.name, 0, 1)
    found = [linear(substitute(form, {roles.column: period * q + t})) for t in range(period)]
    steps = {(f.coefficient(q), f.coefficient(roles.point)) for f in found}
    if len(steps) != 1 or any(not among(atom, (q, roles.point)) for f in found for atom in f.terms):
        return None
    return _Line(*steps.pop(), tuple(f.constant for f in found))


def _ranges(roles: ColumnRoles, guards: Sequence[Expr]) -> list[tuple[int, int]] | Refusal:
    """The least ranges of rows and of diagonals, if the conditions hold exactly where both are in theirs."""
    pair = (roles.column, roles.point)
    if any(not among(a, pair) for guard in guards for a in free_axes(guard)):
        return Refusal("a condition depends on more than rows and diagonals")
    held = IntegerSet(pair, tuple(guards))
    if held.is_empty():
        return Refusal("the conditions hold nowhere")
    found: list[tuple[int, int]] = []
    inside: list[Expr] = []
    for form in (roles.row, roles.diagonal):
        line = from_linear(form.terms)
        least, most = held.maximum(normal(-line)), held.maximum(line)
        ends = [int(e) for e in (form.lo, form.hi, least, most) if isinstance(e, Const)]
        if len(ends) != 4:
            return Refusal("the range of the rows is not known")
        lo, hi = max(ends[0], -ends[2]), min(ends[1], ends[3] + 1)
        found.append((lo, hi))
        inside += [line >= lo, line < hi]
    whole = IntegerSet(pair, tuple(inside), {roles.point: None})
    return found if held.is_equal(whole) else Refusal("the conditions are not those of rows that exist")
