"""Banded products: sliding-window attention, its weighted sums and their adjoints.

Three tensors meet at the points (r, z) of a band: ``P[r, z]`` on its rows and diagonals, ``X[r]`` on its rows, ``Y[l]`` on its
columns ``l = r + s z``. Given two of them, a sum of products over the band makes the third:

    scores       P[r, z] = sum over d of X[r, d] * Y[r + s z, d]
    weighted     X[r, d] = sum over z of P[r, z] * Y[r + s z, d]
    transposed   Y[l, d] = sum over z of P[l - s z, z] * X[l - s z, d]

The adjoints of each are the other two. Any further axes may stand anywhere; which of them are summed and which are kept is
the einsum's business. A sum is one of the three if

1. it is a product of two operands in which an index mixes axes, and this index is ``r + s z`` (or ``l - s z``), with
   the coefficient 1 or -1 on the axis that is no diagonal;
2. each axis of the pair stands where the table above has it, and nowhere else;
3. the conditions hold exactly where ``l`` (or ``r``) is inside of its range: isl compares the two sets. What is outside
   enters as zeros.

Rows are taken in blocks of ``B``. A block meets ``B + s (W - 1)`` columns, so it is a dense product of two small matrices, of
which the band is a parallelogram; see ``bands_source`` for how it becomes a rectangle. A step ``s`` above one is one band for
each remainder of ``r`` by ``s``, side by side.

A window may move by a stride of its own, ``l = g r + s z``. The parallelogram then leans by ``g`` columns a row; with a step, the columns
of each remainder are ``s`` apart (``band_remainders``). The third form has two mixed indices then; see ``band_columns``.

Several indices may be such lines at once, each on axes of its own, as those of a volume of correlations between two images. These are
bands side by side: what 1 to 3 say holds for each of them, and all are of the same form.

An infinity or NaN in ``Y`` or ``X`` reaches the other rows of its block in the second and third form, since ``0 * inf`` is NaN.

The forms of a banded product, by blocks of rows and by slices, with what each costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from jaxte.algebra.product import Factor, product_of, taken_outside
from jaxte.lang.expr import Axis, Const, Expr, Reduce, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes
from jaxte.lower.arrays.counts import total_flops
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.body.candidates import Candidate, Wanted, way
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Dry, Finish, Refusal, on_names, over_all
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.band.diagonals import pads_products, refusal_of_slices, slices_source, slices_work
from jaxte.lower.forms.band.spec import (
    COLUMN,
    DIAGONAL,
    ROW,
    SCORES,
    TRANSPOSED,
    WEIGHTED,
    Band,
    BandSpec,
    Dims,
    Part,
    column_roles,
    dims_of,
    recognise_columns,
)
from jaxte.lower.forms.band.write_blocks import band_source, blocks_of
from jaxte.lower.match.index_terms import Form
from jaxte.lower.match.two_operands import Operand, two_operands
from jaxte.sets.affine import from_linear, normal
from jaxte.sets.domain import IntegerSet
from jaxte.sets.intervals import extent_of, known

_SEVERAL = "more than one index mixes axes"


@dataclass(frozen=True, slots=True)
class _Roles:
    """Who is who: ``line`` is the index that mixes; ``one`` is its axis with coefficient ``sign * stride``, ``z`` the other one."""

    kind: str
    one: Axis
    z: Axis
    line: Form
    sign: int
    stride: int
    step: int
    first: Operand
    second: Operand


def recognise_band(axes: Sequence[Axis], node: Reduce, guards: Sequence[Expr] = ()) -> BandSpec | Refusal:
    """The banded product that ``node``, a sum at each point of ``axes`` where ``guards`` hold, is."""
    if not node.is_sum:
        return Refusal(f"{node.reducer.label} is no sum")
    if not all((known(a.extent) or 0) > 0 for a in (*axes, *node.axes)):
        return Refusal("extents depend on sizes")
    product = product_of(node.exprs[0], [*conjuncts(node.where), *guards])
    if any(f.guard for f in product.factors):
        return Refusal("a condition depends on data")
    operands = two_operands(product.factors)
    kept: list[Factor] = []
    if isinstance(operands, Refusal):
        kept, inner = taken_outside(product.factors, node.axes)
        operands = two_operands(tuple(inner))
    if isinstance(operands, Refusal):
        return operands
    found = _bands(axes, node.axes, *operands)
    columns = column_roles(axes, node.axes, *operands) if isinstance(found, Refusal) else None
    if isinstance(found, Refusal) and columns is None:
        return found
    used = operands[0].axes | operands[1].axes
    for axis in (*axes, *node.axes):
        if axis not in used:
            return Refusal(f"nothing depends on {axis.name}")
    finish = over_all(axes, axes, kept)
    if columns is not None:
        return recognise_columns(axes, columns, product.guards, finish)
    assert not isinstance(found, Refusal)
    return _specification(axes, found, product.guards, finish)


def _bands(
    axes: Sequence[Axis], reduced: Sequence[Axis], a: Operand, b: Operand
) -> tuple[_Roles, ...] | Refusal:
    """The roles in each of the bands that the indices of ``a`` and ``b`` make: those of the same product."""
    lines = list({f.key: f for f in (*a.forms, *b.forms) if not f.plain}.values())
    if not lines:
        return Refusal("")  # nothing to say of an ordinary product
    mixed = [axis for line in lines for axis in line.axes]
    if any(len(f.axes) != 2 or set(f.terms.terms) != set(f.axes) for f in lines):
        return Refusal("the index that mixes axes is no r + s z" if len(lines) == 1 else _SEVERAL)
    found = [_roles(axes, reduced, line, a, b) for line in lines]
    alike = {(r.kind, r.first is a) for r in found if isinstance(r, _Roles)}
    if len(lines) > 1 and (len(set(mixed)) < len(mixed) or len(alike) != 1):
        return Refusal(_SEVERAL)
    bands: list[_Roles] = []
    for roles in found:
        if isinstance(roles, Refusal):
            return roles if len(lines) == 1 else Refusal(_SEVERAL)
        bands.append(roles)
    return tuple(bands)


def _roles(
    axes: Sequence[Axis], reduced: Sequence[Axis], line: Form, a: Operand, b: Operand
) -> _Roles | Refusal:
    terms = line.terms.terms
    with_line = [o for o in (a, b) if any(f.key == line.key for f in o.forms)]
    plain_a, plain_b = ({f.axes[0] for f in o.forms if f.plain} for o in (a, b))
    for one, z in (line.axes, line.axes[::-1]):
        stride = abs(terms[one])
        sign = terms[one] // stride
        step = sign * terms[z]
        if not among(one, axes):
            continue
        if len(with_line) == 1:
            (second,) = with_line
            first, own, other = (b, plain_b, plain_a) if second is a else (a, plain_a, plain_b)
            if one not in own or other & {one, z}:
                continue
            if among(z, axes) and z not in own:
                return _Roles(SCORES, one, z, line, sign, stride, step, first, second)
            if among(z, reduced) and z in own:
                return _Roles(WEIGHTED, one, z, line, sign, stride, step, first, second)
        elif (
            stride == 1
            and among(z, reduced)
            and one not in plain_a | plain_b
            and (z in plain_a) != (z in plain_b)
        ):
            first, second = (a, b) if z in plain_a else (b, a)
            return _Roles(TRANSPOSED, one, z, line, sign, 1, -step, first, second)
    return Refusal(f"{' and '.join(x.name for x in line.axes)} are not the rows and diagonals of one band")


# what the first and the second operand depend on at least
_NEEDED = {
    SCORES: ({ROW}, {COLUMN}),
    WEIGHTED: ({ROW, DIAGONAL}, {COLUMN}),
    TRANSPOSED: ({ROW, DIAGONAL}, {ROW}),
}


def _specification(
    axes: Sequence[Axis], found: Sequence[_Roles], guards: Sequence[Expr], finish: Finish
) -> BandSpec | Refusal:
    replaced: list[tuple[Form, Expr]] = []
    parts: dict[Axis, Part] = {}
    bands: list[Band] = []
    pairs = [frozenset((r.one, r.z)) for r in found]
    if any(not any(pair.issuperset(free_axes(g)) for pair in pairs) for g in guards):
        return Refusal("a condition depends on more than rows and diagonals")
    for number, (roles, pair) in enumerate(zip(found, pairs, strict=True)):
        reach = _reach(roles, [g for g in guards if pair.issuperset(free_axes(g))])
        if isinstance(reach, Refusal):
            return reach
        on_line = Axis(roles.one.name, 0, reach[1] - reach[0])
        replaced.append((roles.line, normal(roles.sign * (on_line + reach[0]))))
        row, column = (on_line, roles.one) if roles.kind == TRANSPOSED else (roles.one, on_line)
        parts |= {row: Part(ROW, number), roles.z: Part(DIAGONAL, number), column: Part(COLUMN, number)}
        bands.append(_band(roles, *reach))
    first, second = (dims_of(o, replaced, parts) for o in (found[0].first, found[0].second))
    for dims, needed in zip((first, second), _NEEDED[found[0].kind], strict=True):
        for number in range(len(bands)):
            own = [role.role for role in dims.roles if isinstance(role, Part) and role.band == number]
            # two of them are positions in a band, and tell the third
            if len(own) > 2 or not needed.issubset(own):
                return Refusal("an operand depends on other parts of a band than the products by blocks read")
    out = tuple(parts.get(a, a) for a in axes)
    return BandSpec(found[0].kind, tuple(bands), first, second, out, finish)


def _band(roles: _Roles, lo: int, hi: int) -> Band:
    """The band whose line is in ``[lo, hi)``."""
    one, z, step = roles.one, roles.z, roles.step
    first_z = int(z.lo) if step > 0 else int(z.hi) - 1
    if roles.kind == TRANSPOSED:
        before = int(one.lo) - lo - step * first_z
        return Band(hi - lo, int(z.extent), int(one.extent), 1, step, before)
    before = lo - roles.stride * int(one.lo) - step * first_z
    return Band(int(one.extent), int(z.extent), hi - lo, roles.stride, step, before)


def _reach(roles: _Roles, guards: Sequence[Expr]) -> tuple[int, int] | Refusal:
    """The range of the line (columns, or rows in a transposed product) at which the conditions hold."""
    pair = (roles.one, roles.z)
    line = normal(roles.sign * from_linear(roles.line.terms))
    lo, hi = roles.line.lo, roles.line.hi
    if not isinstance(lo, Const) or not isinstance(hi, Const):
        return Refusal("the range of the columns is not known")
    low, high = (int(lo), int(hi)) if roles.sign > 0 else (1 - int(hi), 1 - int(lo))
    held = IntegerSet(pair, tuple(guards))
    ends = held.maximum(normal(-line)), held.maximum(line)
    if not (isinstance(ends[0], Const) and isinstance(ends[1], Const)):
        return Refusal("the conditions hold nowhere")
    low, high = max(low, -int(ends[0])), min(high, int(ends[1]) + 1)
    if guards and not held.is_equal(IntegerSet(pair, (line >= low, line < high))):
        return Refusal("the conditions are not those of columns that exist")
    return low, high


BLOCKS = "block-skew"
SLICES = "shifted products"


def band_candidates(body: Body, spec: BandSpec, wanted: Wanted) -> Iterator[Candidate]:
    """Blocks of rows against the columns that they meet, skewed by reshape; one slice after the other."""
    blocks = partial(band_source, spec, skewed=skewed_band(spec))
    yield way(body, wanted, BLOCKS, band_work(spec), spec.operands, partial(blocks, assign=body.shared))
    refusal = refusal_of_slices(spec, body.policy.facts)
    if refusal is None:
        padded = pads_products(spec, body.policy.facts)
        slices = partial(slices_source, spec, assign=body.shared, padded=padded)
        yield way(body, wanted, SLICES, slices_work(spec, body.policy.facts), spec.operands, slices)
    elif refusal.reason:
        body.report.refuse(SLICES, refusal.reason)


def skewed_band(spec: BandSpec) -> int:
    """The number of the band whose blocks are the least work; the last one of those alike, which is next in memory."""
    return min(
        range(len(spec.bands)), key=lambda n: (blocks_of(spec.bands[n]).entries / _points(spec.bands[n]), -n)
    )


def _points(band: Band) -> int:
    return band.rows * band.window


def band_work(spec: BandSpec) -> Work:
    """The work of ``spec`` in float32: products counted from its nodes, copies as XLA was seen to make them."""
    skewed = skewed_band(spec)
    blocks, outer = blocks_of(spec.bands[skewed]), [b for n, b in enumerate(spec.bands) if n != skewed]
    sizes = {
        role: int(a.hi)
        for d in (spec.first, spec.second)
        for role, a in zip(d.roles, d.array.axes, strict=True)
    }
    entries = blocks.entries * prod(map(_points, outer))
    dry = Dry()
    flops = total_flops(dry.roots(band_source(spec, on_names(spec.operands), dry, skewed)), extent_of, Einsum)
    band = 4 * entries * prod(sizes[a] for a in _band_axes(spec))
    second = blocks.columns * prod(b.columns for b in outer) * prod(sizes[a] for a in _own(spec.second))
    plain = 4 * second * (blocks.spans + 1) / blocks.spans
    times = prod(b.window for b in outer)
    return Work(dot=flops, stream=4 * band + 2 * plain, kernel=4 + 4 * times, temporaries=band)


def _own(dims: Dims) -> set[Axis]:
    return {role for role in dims.roles if isinstance(role, Axis)}


def _band_axes(spec: BandSpec) -> set[Axis]:
    """The axes beside the band itself in what stands on its rows and diagonals."""
    if spec.kind == SCORES:
        return {role for role in spec.out if isinstance(role, Axis)}
    return _own(spec.first)
