"""Sums over what data choose for each row of the result, as products with a matrix of zeros and ones.

    y[s, c] = sum over i of select(o[s] <= i and i < o[s + 1], x[i, c], 0)
    y[n, c] = sum over j of e[j, t[n, j], c]

Whether a point counts is ``M[s, i]``, of which the general path makes an array with all columns. ``M @ x`` does not, and neither does a product with all rows of a
table that are chosen among, ``M[n, (j, k)] = t[n, j] == k``, which gathers nothing. Both would make NaN of what is left out where that is infinite, as ``0 * inf``.
So the product says by itself whether it is finite. Only where it is not, finite values are multiplied, and two more products count the infinities (and
NaN, which is both) that are chosen: where there is one of plus infinity it is added, and one of minus infinity too. Beyond a table is one more row of it, of NaN.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from math import inf, nan
from string import ascii_lowercase

from jaxte.algebra.product import multiplied, product_of
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, ZERO, Axis, Const, Expr, Read, as_expr, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import FEWER, MOST_KEPT, NARROW, WORTH_MULTIPLYING
from jaxte.lang.operators import ADD, AND, EQUAL, GREATER, GREATER_EQUAL, LESS, NOT, OR, SELECT, SUBTRACT
from jaxte.lang.scalars.rows import OPS
from jaxte.lang.walk import depends_on, free_axes, reads_data, reads_of
from jaxte.lower.arrays.data import Call, IfFinite
from jaxte.lower.arrays.elementwise import Apply, Cast, Name, Number
from jaxte.lower.arrays.loops import Joined
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.views import ALL, Index, Range
from jaxte.lower.body.candidates import GENERAL, Candidate, Search, Wanted
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.spec import Array, Refusal, array
from jaxte.lower.code.vocabulary import Function, Statement, Value
from jaxte.lower.cost.work import Work, points
from jaxte.lower.forms.data.recognise import is_known_inside
from jaxte.lower.match.empty_sums import guarded_reads
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import index_stays_in, known

MASKED, OF_TABLE = "product with a mask", "product of a table"
_EXACT = ("float32", "float64")


@dataclass(frozen=True)
class Masked:
    """A sum of ``value`` where ``mask`` holds, which depends on other axes of the result.

    Attributes:
        mask: zeros and ones over ``rows``, NaN where a position is beyond the table.
        value: over ``columns``.
        rows, columns: the axes of both, among them those that are summed over.
        guard: without which the result is zero.
        row: the axis of the rows of a table, the last of ``rows``; None where there is no table, or nothing beyond it.
        beyond: what the row beyond that table is, over ``columns``.
    """

    mask: Expr
    value: Expr
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    guard: Expr = TRUE
    row: Axis | None = None
    beyond: Expr = ZERO

    @property
    def work(self) -> Work:
        """That of the product."""
        rows, both = points(self.rows), points(a for a in self.rows if among(a, self.columns))
        matrix = dtypes.width(self.value.dtype) * rows
        own = rows * points(self.columns) / both
        return Work(dot=2.0 * own, stream=2.0 * matrix, temporaries=matrix, kernel=4)


def recognise_mask(wanted: Wanted) -> Masked | Refusal:
    """The product with a mask that a sum is."""
    node = wanted.node
    if not node.is_sum or node.dtype not in _EXACT:
        return Refusal("")
    product = product_of(node.exprs[0], conjuncts(node.where))
    tests = [*product.guards, *(f.expr for f in product.factors if f.guard)]
    inside = [t for t in tests if depends_on(t, node.axes)]
    if not any(reads_of(t) for t in inside):
        return Refusal("")
    mask = conjunction(inside)
    value = multiplied([f for f in product.factors if not f.guard])
    rows, columns = free_axes(mask), free_axes(value)
    if any(a not in rows or a not in columns for a in node.axes) or value.dtype != node.dtype:
        return Refusal("")
    guard = conjunction([t for t in tests if not among(t, inside)])
    return _wide(wanted, Masked(cast(mask, node.dtype), value, tuple(rows), tuple(columns), guard))


def recognise_table(wanted: Wanted) -> Masked | Refusal:
    """The product with ones at the rows of a table that data choose."""
    node = wanted.node
    if not node.is_sum or node.dtype not in _EXACT:
        return Refusal("")
    product = product_of(node.exprs[0], conjuncts(node.where))
    chosen = [f for f in product.factors if reads_data(f.expr)]
    tests = [*product.guards, *(f.expr for f in product.factors if f.guard)]
    if len(chosen) != 1 or chosen[0].inverse or any(map(reads_data, tests)):
        return Refusal("")
    read, row = chosen[0].expr, _row_of(chosen[0].expr, node.axes)
    if row is None or read.dtype != node.dtype:
        return Refusal("")
    assert isinstance(read, Read)
    index = next(i for i in read.indices if reads_of(i))
    table = Read(read.tensor, [row if i is index else i for i in read.indices])
    others = [f for f in product.factors if f is not chosen[0] and not f.guard]
    value = multiplied([type(chosen[0])(table), *others])
    rows, columns = (*free_axes(index), row), tuple(free_axes(value))
    on_rows = [t for t in tests if all(among(a, rows) for a in free_axes(t))]
    on_columns = conjunction([t for t in tests if not among(t, on_rows)])
    both = [a for a in rows if among(a, columns) and not among(a, (*node.axes, row))]
    if both or reads_of(on_columns) or not all(among(a, columns) for a in free_axes(on_columns)):
        return Refusal("")
    mask = cast(conjunction([*on_rows, call(EQUAL, index, row)]), node.dtype)
    nowhere = read in guarded_reads(node) or is_known_inside(index, row.extent)
    if not nowhere:
        inside = call(AND, call(GREATER_EQUAL, index, 0), call(LESS, index, row.extent))
        counts = call(OR, inside, call(NOT, conjunction(on_rows))) if on_rows else inside
        mask = call(SELECT, counts, mask, Const(nan, node.dtype))
    value, counted = (
        call(SELECT, on_columns, own, Const(0.0, node.dtype)) for own in (value, Const(nan, node.dtype))
    )
    return _wide(wanted, Masked(mask, value, rows, columns, row=None if nowhere else row, beyond=counted))


def _row_of(read: Expr, axes: Sequence[Axis]) -> Axis | None:
    """An axis for the rows that data choose among, for each point of ``axes``; None where ``read`` is no read of one of these."""
    if not isinstance(read, Read):
        return None
    data = [(i, as_expr(e)) for i, e in zip(read.indices, read.tensor.shape, strict=True) if reads_of(i)]
    affine = [
        (i, as_expr(e)) for i, e in zip(read.indices, read.tensor.shape, strict=True) if not reads_of(i)
    ]
    if len(data) != 1 or not all(index_stays_in(i, e) for i, e in affine):
        return None
    ((index, extent),) = data
    is_known = known(extent) is not None and all(depends_on(index, (a,)) for a in axes)
    return Axis("row", 0, extent) if is_known else None


def _wide(wanted: Wanted, found: Masked) -> Masked | Refusal:
    """``found`` where it is a product of matrices that are no vectors."""
    own = [a for a in wanted.axes if among(a, found.rows) and not among(a, found.columns)]
    others = [a for a in wanted.axes if among(a, found.columns) and not among(a, found.rows)]
    summed = [a for a in found.rows if among(a, found.columns) and not among(a, wanted.axes)]
    return found if min(map(points, (own, others, summed))) >= NARROW else Refusal("")


def mask_candidates(body: Body, spec: Masked, wanted: Wanted) -> Iterator[Candidate]:
    """The product with the matrix of zeros and ones."""
    yield Candidate(MASKED, spec.work, lambda: _written(body, spec, wanted, MASKED))


def table_candidates(body: Body, spec: Masked, wanted: Wanted) -> Iterator[Candidate]:
    """The same, and gathering what is chosen: one element after the other, but from a table that lies near."""
    gathered = points(wanted.axes) * points(wanted.node.axes)
    yield Candidate(GENERAL, Work(gather=gathered / FEWER, kernel=1), None)
    if spec.work.temporaries <= MOST_KEPT and gathered >= WORTH_MULTIPLYING:
        yield Candidate(OF_TABLE, spec.work, lambda: _written(body, spec, wanted, OF_TABLE))


def _written(body: Body, spec: Masked, wanted: Wanted, form: str) -> Search:
    body.report.note(form)
    dtype, scope = wanted.node.dtype, wanted.scope
    mask = yield from _operand(body, array(spec.rows, spec.mask), scope, dtype)
    value = yield from _operand(body, array(spec.columns, spec.value), scope, dtype)
    letters = dict(zip(dict.fromkeys((*spec.rows, *spec.columns)), ascii_lowercase, strict=False))
    out = tuple(a for a in wanted.axes if a in letters)
    own, theirs, result = ("".join(letters[a] for a in axes) for axes in (spec.rows, spec.columns, out))
    product = Einsum(f"{own},{theirs}->{result}", (mask, value))
    found = body.shared(product)
    row: Node | None = None
    if spec.row is not None:
        single = [Axis("beyond", 0, 1) if a is spec.row else a for a in spec.columns]
        row = yield from _operand(body, array(single, spec.beyond), scope, dtype)
    function = _counted(body, spec, product, row)
    body.add(function)
    otherwise = Call(function.name, (), found.shape, found.kind)
    total = Value(IfFinite(found, found, otherwise), out, (dtype, False))
    if spec.guard is TRUE:
        return total
    guard, zero = (yield spec.guard, scope), (yield Const(0.0, dtype), scope)
    return body.combine(SELECT, [guard, total, zero], (dtype, False), scope)


def _operand(body: Body, own: Array, scope: Scope, dtype: str) -> Generator[tuple[Expr, Scope], Value, Name]:
    """The name of an array."""
    body.survey(own.body)
    value = yield own.body, Scope(own.axes, direct=True, hits=scope.hits)
    return body.shared(body.full(body.typed(value, dtype), own.axes))


def _counted(body: Body, spec: Masked, product: Einsum, beyond: Node | None) -> Function:
    """The function of what ``product`` is with infinities that are counted: that of the finite values, and whether there are any.

    Args:
        body: the tensor that is lowered.
        spec: the sum.
        product: of its mask and its value, which may be NaN.
        beyond: the row beyond a table.
    """
    mask, value = product.factors
    statements: list[Statement] = []

    def assign(target: str, node: Node) -> Name:
        statements.append(Statement(body.label, target, node))
        return Name(target, node.shape, node.kind)

    if beyond is not None and spec.row is not None:
        is_beyond = assign("beyond", Apply(OPS["isnan"], (mask,)))
        last = apply_steps(is_beyond, [Index((*(ALL,) * (mask.ndim - 1), Range(as_expr(-1))))])
        inside = Apply(SELECT, (is_beyond, Number(0), mask))
        mask = assign("chosen", Joined((inside, Cast(last, mask.dtype)), mask.ndim - 1))
        value = assign("values", Joined((value, beyond), place_of(spec.row, spec.columns)))
    is_finite, is_nan = Apply(OPS["isfinite"], (value,)), assign("is_nan", Apply(OPS["isnan"], (value,)))
    total: Node = Einsum(product.spec, (mask, Apply(SELECT, (is_finite, value, Number(0)))))
    for op, bound in ((ADD, inf), (SUBTRACT, -inf)):
        total = assign("total", total)
        spoilt = Cast(Apply(OR, (Apply(EQUAL, (value, Number(bound))), is_nan)), value.dtype)
        some = Apply(GREATER, (Einsum(product.spec, (mask, spoilt)), Number(0)))
        total = Apply(op, (total, Apply(SELECT, (some, Number(inf), Number(0)))))
    return Function(body.label, body.names.new(f"{body.target}_counted"), (), tuple(statements), total)
