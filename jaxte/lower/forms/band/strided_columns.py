"""The columns of a band whose windows move by a stride: the third form of ``bands``, where no index is ``l - s z`` alone.

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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd, lcm

from jaxte.lang.divisions import divisions
from jaxte.lang.expr import Axis, Const, Expr
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, substitute
from jaxte.lower.code.spec import Array, Refusal
from jaxte.lower.forms.band.spec import COLUMN, DIAGONAL, ROW, TRANSPOSED, Band, BandSpec, Part, dims_of
from jaxte.lower.match.index_terms import Form
from jaxte.lower.match.two_operands import Operand
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.domain import IntegerSet

_LARGEST_PERIOD = 64  # remainders of the columns, each of which is a band of its own


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
    axes: Sequence[Axis], roles: ColumnRoles, guards: Sequence[Expr], scale: Array | None
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
    return BandSpec(TRANSPOSED, (band,), first, second, tuple(parts.get(a, a) for a in axes), scale)


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
    if period > _LARGEST_PERIOD:
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
