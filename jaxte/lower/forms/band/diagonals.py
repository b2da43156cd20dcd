"""Banded products one diagonal after the other: slices of rows and columns, multiplied and added.

On diagonal ``z`` row ``r`` meets column ``g r + s z``, so all rows together meet a slice of the columns:

    weighted       sum(P[:, z, None] * Y[s * z:s * z + N] for z in range(W))

The columns of a transposed product meet a slice of the rows in the same way, where zeros stand before the first row and behind
the last one:

    transposed     sum(P[M - s * z:N + M - s * z, z, None] * X[M - s * z:N + M - s * z] for z in range(W))

Both operands are read at the same rows, so where diagonals are few and a padded array is read in the loop that pads it, their product is padded instead:

    transposed     sum(jnp.pad(P[:, z, None] * X, ((s * z, M - s * z), (0, 0))) for z in range(W))

XLA makes a single loop of all of it, which holds nothing in between. Blocks multiply about twice as many elements, most of them
zeros where windows are short, but faster ones; they are better where windows are long. Sums over further axes are products of matrices,
and no slices. Numbers of 16 bits would be rounded at each diagonal.

Scores have a sum for each row of each diagonal,

    scores         stack([sum(X * Y[s * z:s * z + N], axis=1) for z in range(W)], axis=1)

which are slices where XLA sums products as it makes them and blocks are copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Expr, Read, as_expr
from jaxte.lang.graphs import among, identical, place_of
from jaxte.lang.limits import FEW, LONGEST_UNROLLED, MOST_DIAGONALS
from jaxte.lang.operators import MULTIPLY
from jaxte.lower.arrays.elementwise import Apply, Name, Number, Typed
from jaxte.lower.arrays.loops import Each, Loop, Stacked, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.views import ALL, NEW, Entry, Index, Pad, Range, Reshape, Spread, Step, Transpose
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lines import identifier
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import Work, long_text
from jaxte.lower.forms.band.spec import COLUMN, DIAGONAL, ROW, SCORES, TRANSPOSED, BandSpec, Dims, Part
from jaxte.lower.forms.band.write_blocks import Assign
from jaxte.sets.affine import normal

_LOOPS = "pqrsuvw"


def refusal_of_slices(spec: BandSpec, facts: Platform) -> Refusal | None:
    """Why ``spec`` is no sum of slices; None where it is one."""
    if spec.kind == SCORES:
        if not (facts.copies_overlaps and facts.fuses_products):
            return Refusal("")  # each element is a sum of its own
    elif _summed(spec):
        return Refusal("there is a matrix product on each diagonal")
    if spec.kind == TRANSPOSED and any(band.stride > 1 for band in spec.bands):
        return Refusal("the rows of a column are some diagonals apart")
    slices = prod(band.window for band in spec.bands)
    if not FEW < slices <= MOST_DIAGONALS:
        return Refusal(f"{slices} diagonals; from {FEW + 1} to {MOST_DIAGONALS} are added in a loop")
    if (
        slices <= LONGEST_UNROLLED
        and not pads_products(spec, facts)
        and (_is_padded(spec, spec.first) or _is_padded(spec, spec.second))
        and not all(isinstance(d.array.body, Read) for d in (spec.first, spec.second))
    ):
        return Refusal("an operand is a function, which may be infinite beside a zero")
    if min(_width(d) for d in (spec.first, spec.second)) < dtypes.width("float32"):
        return Refusal("numbers of 16 bits are not added one after the other")
    return None


def pads_products(spec: BandSpec, facts: Platform) -> bool:
    """Whether zeros stand around the product on each diagonal, and not around what is multiplied: where they are fewer than its elements."""
    slices = prod(band.window for band in spec.bands)
    most_count = all(band.columns <= 2 * band.rows for band in spec.bands)
    # Of more, comparing positions takes as long as copies of the operands with zeros around them.
    return spec.kind == TRANSPOSED and facts.fuses_pads and slices <= LONGEST_UNROLLED and most_count


def slices_work(spec: BandSpec, facts: Platform) -> Work:
    """An element of the result for each diagonal, and the zeros around operands."""
    sizes = {role: d.extent(role) for d in (spec.first, spec.second) for role in d.roles}
    for number, band in enumerate(spec.bands):
        sizes |= {Part(ROW, number): band.rows, Part(COLUMN, number): band.columns}
    scored = spec.kind == SCORES
    result = prod(sizes[role] for role in _order(spec))
    width = max(_width(d) for d in (spec.first, spec.second))
    padded = sum(
        _width(d) * prod(d.extent(r) + sum(_zeros_around(spec, r)) for r in d.roles)
        for d in (spec.first, spec.second)
        if _is_padded(spec, d) and not pads_products(spec, facts)
    )
    slices = prod(band.window for band in spec.bands)
    met = slices * width * _behind_rows(spec, sizes)
    taps = result * slices * max(1, width // 4) * (1 if met <= facts.near else 2)
    copied = 2 * width * result if padded else 0
    return Work(tap=taps, stream=copied, kernel=slices if scored else 1, temporaries=padded) + long_text(
        slices
    )


def _behind_rows(spec: BandSpec, sizes: Mapping[Part | Axis, int]) -> int:
    """The extent of all dimensions of the result that come after the last one that is sliced."""
    order = _order(spec)
    last = max(n for n, role in enumerate(order) if isinstance(role, Part))
    return prod(sizes[role] for role in order[last + 1 :])


def _summed(spec: BandSpec) -> tuple[Axis, ...]:
    """The axes of both operands that the result has not."""
    roles = dict.fromkeys((*spec.first.roles, *spec.second.roles))
    return tuple(r for r in roles if isinstance(r, Axis) and not among(r, spec.out))


def _order(spec: BandSpec) -> tuple[Part | Axis, ...]:
    """The dimensions of what is made on a diagonal: the result's, and what is summed where the first operand has it."""
    order: list[Part | Axis] = [r for r in spec.out if not _is_diagonal(r)]
    for axis in reversed(_summed(spec)):
        behind = (
            spec.first.roles[place_of(axis, spec.first.roles) + 1 :] if among(axis, spec.first.roles) else ()
        )
        order.insert(next((place_of(r, order) for r in behind if among(r, order)), len(order)), axis)
    return tuple(order)


def slices_source(spec: BandSpec, operands: Sequence[Node], assign: Assign, padded: bool = False) -> Node:
    """``spec`` on the nodes of ``spec.operands``; ``assign`` gives a node a name, and ``padded`` says that products are padded, not operands."""
    found = [
        _operand(spec, dims, node, assign, padded)
        for dims, node in zip((spec.first, spec.second), operands, strict=False)
    ]
    loops = _loops(spec)
    first, second = (_factor(spec, node, roles, loops, padded) for node, roles in found)
    product: Node = Apply(MULTIPLY, (first, second))
    if padded:
        product = _among_zeros(spec, product, loops)
    total = _side_by_side(spec, product, loops) if spec.kind == SCORES else Total(Each(product, loops))
    return spec.finish.of(total, operands[2:])


def _side_by_side(spec: BandSpec, product: Node, loops: Sequence[Loop]) -> Node:
    """The sums of the products on each diagonal, as a dimension of the result for each band; of bands that are next to each other in one stack."""
    order = _order(spec)
    found: Node = Reduced("sum", product, tuple(place_of(a, order) for a in _summed(spec)))
    for at, run in _runs(spec.out):
        own = tuple(_loop_of(role, loops) for role in run)
        found = Stacked((Each(found, own),), at)
        if len(own) > 1:
            extents = (*found.shape[:at], *(as_expr(o.count) for o in own), *found.shape[at + 1 :])
            found = apply_steps(found, [Reshape(extents)])
    return found


def _runs(out: Sequence[Part | Axis]) -> list[tuple[int, list[Part | Axis]]]:
    """The diagonals among ``out`` that are next to each other, and where they begin."""
    found: list[tuple[int, list[Part | Axis]]] = []
    for at, role in enumerate(out):
        if _is_diagonal(role):
            if not (at and _is_diagonal(out[at - 1])):
                found.append((at, []))
            found[-1][1].append(role)
    return found


def _loops(spec: BandSpec) -> tuple[Loop, ...]:
    """The diagonals of each band, called as their axis is."""
    if spec.kind == SCORES:  # no operand has the diagonals
        return tuple(loop(name, band.window) for name, band in zip(_LOOPS, spec.bands, strict=False))
    own = [
        spec.first.array.axes[place_of(Part(DIAGONAL, number), spec.first.roles)]
        for number in range(len(spec.bands))
    ]
    return tuple(loop(identifier(a.name), b.window) for a, b in zip(own, spec.bands, strict=True))


def _among_zeros(spec: BandSpec, product: Node, loops: Sequence[Loop]) -> Node:
    """The product on a diagonal with zeros for the columns before its first row and behind its last one; cut where rows meet no column."""
    widths: list[tuple[Expr, Expr]] = [(ZERO, ZERO)] * len(_order(spec))
    cut = False
    for at, role in enumerate(_order(spec)):
        if isinstance(role, Part):
            band = spec.bands[role.band]
            last = abs(band.step) * (band.window - 1)
            start, more = (0 if band.step > 0 else last) - band.before, band.columns - band.rows
            first = normal(band.step * loops[role.band].axis + start)
            widths[at] = first, normal(as_expr(more) - first)
            cut = cut or band.before > 0 or last - band.before > more
    if not cut:
        return apply_steps(product, [Pad(tuple(widths))])
    return Spread(product, Typed(Number(0), product.dtype), tuple((*pair, 0) for pair in widths))


def _operand(
    spec: BandSpec, dims: Dims, node: Node, assign: Assign, bare: bool
) -> tuple[Node, tuple[Part | Axis, ...]]:
    """An operand that is long enough for each slice, or ``bare`` as it is, and its roles; those of the result are in the result's order."""
    of_result = [(r, n) for n, r in enumerate(dims.roles) if not _is_diagonal(r)]
    ordered = iter(sorted(of_result, key=lambda pair: place_of(_of_result(spec, pair[0]), _order(spec))))
    order = tuple(n if _is_diagonal(r) else next(ordered)[1] for n, r in enumerate(dims.roles))
    roles = tuple(dims.roles[n] for n in order)
    widths = tuple((as_expr(a), as_expr(b)) for a, b in (_zeros_around(spec, role) for role in roles))
    steps: list[Step] = [] if list(order) == sorted(order) else [Transpose(order)]
    node = apply_steps(node, steps if bare else [*steps, Pad(widths)])
    return node if isinstance(node, Name) else assign(node), roles


def _factor(
    spec: BandSpec, node: Node, roles: Sequence[Part | Axis], loops: Sequence[Loop], whole: bool
) -> Node:
    """An operand at one position of each loop, with the dimensions of the result; ``whole`` has all of its rows."""
    entries: list[Entry] = []
    left = list(roles)  # of the operand, in the order of the result
    for role in _order(spec):
        while left and _is_diagonal(left[0]):
            entries.append(_turn(left.pop(0), loops))
        there = left and identical(_of_result(spec, left[0]), role)
        role_there = left.pop(0) if there else None
        entries.append(NEW if role_there is None else ALL if whole else _entry(spec, role_there, loops))
    entries += [_turn(role, loops) for role in left]
    while entries and entries[-1] is ALL:
        entries.pop()
    return apply_steps(node, [Index(tuple(entries))])


def _entry(spec: BandSpec, role: Part | Axis, loops: Sequence[Loop]) -> Range:
    """The slice of a dimension that is met on a diagonal."""
    if not isinstance(role, Part) or (role.role == ROW and spec.kind != TRANSPOSED):
        return ALL
    band, turn = spec.bands[role.band], loops[role.band].axis
    before, _ = _zeros_around(spec, role)
    last = abs(band.step) * (band.window - 1)
    if role.role == COLUMN:
        start = before - band.before + (0 if band.step > 0 else last)
        factor, length, stride = band.step, band.stride * (band.rows - 1) + 1, band.stride
    else:
        start = before + band.before - (0 if band.step > 0 else last)
        factor, length, stride = -band.step, band.columns, 1
    first, stop = (_position(start + n, factor, turn) for n in (0, length))
    return Range(first, stop, stride)


def _position(constant: int, factor: int, turn: Axis) -> Expr:
    """``constant + factor * turn``, which is nowhere negative."""
    term = abs(factor) * turn
    return as_expr(constant) - term if factor < 0 else term + constant


def _turn(role: Part | Axis, loops: Sequence[Loop]) -> Axis:
    return _loop_of(role, loops).axis


def _loop_of(role: Part | Axis, loops: Sequence[Loop]) -> Loop:
    assert isinstance(role, Part)
    return loops[role.band]


def _is_diagonal(role: Part | Axis) -> bool:
    return isinstance(role, Part) and role.role == DIAGONAL


def _of_result(spec: BandSpec, role: Part | Axis) -> Part | Axis:
    """The dimension of the result along which ``role`` lies."""
    return Part(COLUMN if spec.kind == TRANSPOSED else ROW, role.band) if isinstance(role, Part) else role


def _zeros_around(spec: BandSpec, role: Part | Axis) -> tuple[int, int]:
    """How many zeros are wanted before and behind the dimension ``role`` of an operand."""
    if not isinstance(role, Part):
        return 0, 0
    band = spec.bands[role.band]
    if role.role == COLUMN:
        return max(0, band.before), max(0, band.reach - band.before - band.columns)
    if role.role == ROW and spec.kind == TRANSPOSED:
        last = abs(band.step) * (band.window - 1)
        return max(0, last - band.before), max(0, band.columns + band.before - band.rows)
    return 0, 0


def _is_padded(spec: BandSpec, dims: Dims) -> bool:
    return any(any(_zeros_around(spec, role)) for role in dims.roles)


def _width(dims: Dims) -> int:
    return dtypes.width(dims.array.dtype)
