"""Banded products: sliding-window attention, its weighted sums and their adjoints.

Three tensors meet at the points (r, z) of a band: ``P[r, z]`` on its rows and diagonals, ``X[r]`` on its rows, ``Y[l]`` on its
columns ``l = r + s z``. Given two of them, a sum of products over the band makes the third:

    scores       P[r, z] = sum over d of X[r, d] * Y[r + s z, d]
    weighted     X[r, d] = sum over z of P[r, z] * Y[r + s z, d]
    transposed   Y[l, d] = sum over z of P[l - s z, z] * X[l - s z, d]

The adjoints of each are the other two. Any further axes may stand anywhere; which of them are summed and which are kept is
the einsum's business. A sum is one of the three if

1. it is a product of two operands in which exactly one index mixes axes, and this index is ``r + s z`` (or ``l - s z``), with
   the coefficient 1 or -1 on the axis that is no diagonal;
2. each axis of the pair stands where the table above has it, and nowhere else;
3. the conditions hold exactly where ``l`` (or ``r``) is inside of its range: isl compares the two sets. What is outside
   enters as zeros.

Rows are taken in blocks of ``B``. A block meets ``B + s (W - 1)`` columns, so it is a dense product of two small matrices, of
which the band is a parallelogram; see ``bands_source`` for how it becomes a rectangle. A step ``s`` above one is one band for
each remainder of ``r`` by ``s``, side by side.

In the first two forms a window may move by a stride of its own, ``l = g r + s z``. The parallelogram then leans by ``g`` columns a row, and
where ``s`` is above one as well, only every ``s``-th of its diagonals is there.

An infinity or NaN in ``Y`` or ``X`` reaches the other rows of its block in the second and third form, since ``0 * inf`` is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.affine import normal
from jaxte.domain import IntegerSet
from jaxte.expr import Axis, Const, Expr, Reduce, conjuncts
from jaxte.lower.factors import multiplied, product_of, split_outer
from jaxte.lower.forms import Form, rewrite_forms
from jaxte.lower.operands import Operand, two_operands
from jaxte.lower.specs import Array, Refusal, array
from jaxte.walk import free_axes, reads_of

SCORES, WEIGHTED, TRANSPOSED = "scores", "weighted", "transposed"


@dataclass(frozen=True, slots=True)
class Dims:
    """An operand of a banded product: an array and the role of each of its dimensions.

    ``roles`` holds "row", "diagonal", "column", or the axis itself for one that the band does not touch.
    """

    array: Array
    roles: tuple[str | Axis, ...]


@dataclass(frozen=True, slots=True)
class BandSpec:
    """A banded product.

    Attributes:
        kind: what is made: "scores", "weighted" or "transposed".
        first, second: the operands.
        out: the roles of the result's dimensions, in order.
        rows, window, step: extents of r and z, and s.
        stride: how many columns the window moves from row to row; where it is more than one, ``step`` is 1, ``window`` the
            columns from the first to the last diagonal, and ``gap`` how far apart the diagonals are.
        flip: whether diagonals are counted from the last one.
        columns: extent of l.
        before: the position of the first column on the line ``r + s z``, counted from the first row's first one.
        scale: what the result is multiplied by.
    """

    kind: str
    first: Dims
    second: Dims
    out: tuple[str | Axis, ...]
    rows: int
    window: int
    step: int
    flip: bool
    columns: int
    before: int
    scale: Array | None
    stride: int = 1
    gap: int = 1

    @property
    def operands(self) -> tuple[Array, ...]:
        own = (self.first.array, self.second.array)
        return own if self.scale is None else (*own, self.scale)


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
    if node.reducer.name != "sum":
        return Refusal(f"{node.reducer.label} is no sum")
    if not all(isinstance(a.extent, Const) and int(a.extent) > 0 for a in (*axes, *node.axes)):
        return Refusal("extents depend on sizes")
    product = product_of(node.exprs[0], [*conjuncts(node.where), *guards])
    if any(f.guard for f in product.factors):
        return Refusal("a condition depends on data")
    outer, _ = split_outer(product.factors, node.axes)
    operands = two_operands(product.factors)
    kept = []
    if isinstance(operands, Refusal):
        kept = [f for f in outer if free_axes(f.expr)]
        operands = two_operands(tuple(f for f in product.factors if f not in kept))
    if isinstance(operands, Refusal):
        return operands
    roles = _roles(axes, node.axes, *operands)
    if isinstance(roles, Refusal):
        return roles
    used = operands[0].axes | operands[1].axes
    for axis in (*axes, *node.axes):
        if axis not in used:
            return Refusal(f"nothing depends on {axis.name}")
    scale = array(axes, multiplied(kept)) if kept else None
    return _specification(axes, node, roles, product.guards, scale)


def _roles(axes: Sequence[Axis], reduced: Sequence[Axis], a: Operand, b: Operand) -> _Roles | Refusal:
    mixed = {f.key: f for f in (*a.forms, *b.forms) if not f.plain}
    if not mixed:
        return Refusal("")  # nothing to say of an ordinary product
    if len(mixed) > 1:
        return Refusal("more than one index mixes axes")
    (line,) = mixed.values()
    terms = line.terms.terms
    if len(line.axes) != 2 or set(terms) != set(line.axes):
        return Refusal("the index that mixes axes is no r + s z")
    with_line = [o for o in (a, b) if any(f.key == line.key for f in o.forms)]
    plain_a, plain_b = ({f.axes[0] for f in o.forms if f.plain} for o in (a, b))
    for one, z in (line.axes, line.axes[::-1]):
        stride = abs(terms[one])
        sign = terms[one] // stride
        step = sign * terms[z]
        if one not in axes:
            continue
        if len(with_line) == 1:
            (second,) = with_line
            first, own, other = (b, plain_b, plain_a) if second is a else (a, plain_a, plain_b)
            if one not in own or other & {one, z}:
                continue
            if z in axes and z not in own:
                return _Roles(SCORES, one, z, line, sign, stride, step, first, second)
            if z in reduced and z in own:
                return _Roles(WEIGHTED, one, z, line, sign, stride, step, first, second)
        elif (
            stride == 1 and z in reduced and one not in plain_a | plain_b and (z in plain_a) != (z in plain_b)
        ):
            first, second = (a, b) if z in plain_a else (b, a)
            return _Roles(TRANSPOSED, one, z, line, sign, 1, -step, first, second)
    return Refusal(f"{' and '.join(x.name for x in line.axes)} are not the rows and diagonals of one band")


def _specification(
    axes: Sequence[Axis], node: Reduce, roles: _Roles, guards: Sequence[Expr], scale: Array | None
) -> BandSpec | Refusal:
    one, z, step = roles.one, roles.z, roles.step
    line = roles.sign * _line_of(roles.line)
    reach = _reach(roles, guards, normal(line))
    if isinstance(reach, Refusal):
        return reach
    lo, hi = reach
    on_line = Axis(one.name, 0, hi - lo)
    replaced = [(roles.line, normal(roles.sign * (on_line + lo)))]
    first_z = int(z.lo) if step > 0 else int(z.hi) - 1
    if roles.kind == TRANSPOSED:
        rows, columns, base = hi - lo, int(one.extent), lo + step * first_z
        before = int(one.lo) - base
        names = {on_line: "row", one: "column", z: "diagonal"}
    else:
        rows, columns = int(one.extent), hi - lo
        base = roles.stride * int(one.lo) + step * first_z
        before = lo - base
        names = {one: "row", on_line: "column", z: "diagonal"}
    first = _dims(roles.first, replaced, names, last=("row", "diagonal"), dtype=node.dtype)
    second = _dims(roles.second, replaced, names, last=(), dtype=node.dtype)
    out = tuple(names.get(a, a) for a in axes)
    window, step, gap = int(z.extent), abs(step), 1
    if roles.stride > 1:
        window, step, gap = step * (window - 1) + 1, 1, step
    flip = roles.step < 0
    return BandSpec(
        roles.kind, first, second, out, rows, window, step, flip, columns, before, scale, roles.stride, gap
    )


def _line_of(form: Form) -> Expr:
    total: Expr = Const(0)
    for atom, coefficient in form.terms.terms.items():
        total = total + coefficient * atom
    return total


def _reach(roles: _Roles, guards: Sequence[Expr], line: Expr) -> tuple[int, int] | Refusal:
    """The range of the line (columns, or rows in a transposed product) at which the conditions hold."""
    pair = (roles.one, roles.z)
    if any(a not in pair for guard in guards for a in free_axes(guard)):
        return Refusal("a condition depends on more than rows and diagonals")
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


def _dims(
    operand: Operand,
    replaced: Sequence[tuple[Form, Expr]],
    names: dict[Axis, str],
    last: tuple[str, ...],
    dtype: str,
) -> Dims:
    """An operand over single axes, in the order in which its largest read has them, but for those in ``last``."""
    body = rewrite_forms(multiplied(operand.factors), replaced)
    own = list(free_axes(body))
    reads = sorted((r for r in reads_of(body) if free_axes(r)), key=lambda r: -len(free_axes(r)))
    seen = [a for r in reads for index in r.indices for a in free_axes(index)]
    order = [a for a in dict.fromkeys([*seen, *own]) if a in own]
    if "diagonal" in (names.get(a) for a in order):
        order.sort(key=lambda a: last.index(names[a]) if names.get(a) in last else -1)
    return Dims(array(order, body), tuple(names.get(a, a) for a in order))
