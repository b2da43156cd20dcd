"""Sums with geometric weights, which are linear recurrences: step by step, or in blocks, with what was summed before a block carried to it.

    y[t] = sum over s <= t of r ** (t - s) * x[s]   is   y[t] = x[t] + r * y[t - 1]

in a loop, where a step of one takes no time to start, as on a CPU: n operations for n ** 2. Elsewhere, for t = B * q + i,

    y[t] = P[q, i] + r ** (i + 1) * S[q]
    with   P[q, i] = sum over j <= i of r ** (i - j) * x[B * q + j]          each block by itself
           S[q] = sum over c < q of r ** (B * (q - 1 - c)) * P[c, B - 1]     at the beginning of each

With B about the square root of the length n these are products with small matrices, n ** 1.5 operations, and as parallel as sums are: what is called
a chunked scan of a linear recurrence.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod

from jaxte.algebra.product import Factor, multiplied
from jaxte.lang.expr import ONE, ZERO, Axis, Const, Expr, Read, Reduce, as_expr, call, cast
from jaxte.lang.limits import LONG, NARROW
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import depends_on, reads_of, substitute
from jaxte.meaning.interpret import interpret
from jaxte.planning.asked import intermediates
from jaxte.planning.orders.geometric_sums import GeometricSum, geometric_sum
from jaxte.sets.intervals import extent
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute

_LOOPS = 3  # more than a product with a triangle takes


def carried(node: Reduce, axes: Sequence[Axis], name: str) -> Expr:
    """``node``, at the points of ``axes``, step by step or in blocks; as it is where it is no such sum, or a short one.

    Args:
        name: what the tensors are called after.
    """
    in_steps = has_cheap_steps()
    found = geometric_sum(node, axes, NARROW if in_steps else LONG)
    if found is None or prod(map(extent, (*axes, found.s))) <= _LOOPS * intermediates().loop:
        return node
    value = (_in_steps if in_steps else _in_blocks)(found, axes, node.dtype, name)
    if value is None:
        return node
    return cast(multiplied((*found.outside, Factor(value))), node.dtype) if found.outside else value


def has_cheap_steps() -> bool:
    """Whether a step of a loop takes no longer to start than a sum takes to add."""
    return intermediates().cheap_steps


def _in_steps(found: GeometricSum, axes: Sequence[Axis], dtype: str, name: str) -> Expr:
    """One position after the other, each with what the one before it came to."""
    kept = _over(found, axes, (*found.rest, Factor(found.weight)))
    every = [found.t, *kept]
    own = _own(every)
    mine, t = list(own.values()), own[found.t]
    state = State(f"{name}_carried", tuple(a.hi for a in mine), dtype)
    inside, before = (t + 1 < t.hi, t + 1) if found.backwards else (t >= 1, t - 1)
    last = Read(state, [before, *mine[1:]])
    ratio, first = (
        _weight(substitute(e, own), mine, f"{name}_{of}", dtype)
        for e, of in ((found.over(ONE), "ratio"), (found.first, "first"))
    )
    value = cast(substitute(multiplied(found.rest), {**own, found.s: t}), dtype)
    now = value if isinstance(first, Const) and first.value == 1 else first * value
    body = now + ratio * call(SELECT, inside, last, cast(as_expr(0), dtype))
    group = Recurrence((state,), (Compute(state.name, mine, body),), (0,), found.backwards)
    return Read(group.tensors[0], every)


def _weight(weight: Expr, axes: Sequence[Axis], name: str, dtype: str) -> Expr:
    """``weight``, which is the same in each step: a number, or what a tensor has, so that no step computes it again."""
    own = _own([a for a in axes if depends_on(weight, [a])])
    tensor = Compute(name, list(own.values()), cast(substitute(weight, own), dtype))
    return Read(tensor, [*own]) if own or reads_of(weight) else as_expr(float(str(interpret(tensor, {}))))


def _in_blocks(found: GeometricSum, axes: Sequence[Axis], dtype: str, name: str) -> Expr | None:
    """Each block by itself, and with what is carried to its beginning."""
    summed = _over(found, axes, found.rest)
    rows = _rows(found, summed, _block(extent(found.t)), dtype, name)
    if rows is None:
        return None
    kept = _over(found, axes, (*found.rest, Factor(found.weight)))
    parts = _blocks(found, rows, summed, kept, name)
    joined = _joined(found, parts, _carried(found, parts, kept, name), kept, name)
    size = extent(joined.axes[-1])
    return Read(joined, [*kept, found.t // size, found.t % size])


def _over(found: GeometricSum, axes: Sequence[Axis], factors: Sequence[Factor]) -> list[Axis]:
    """The axes that ``factors`` depend on beside the two of the recurrence."""
    return [a for a in axes if a is not found.t and any(depends_on(f.expr, [a]) for f in factors)]


def _block(length: int) -> int:
    """About the square root of ``length``, a divisor of it if there is one nearby."""
    root = isqrt(length)
    near = [size for size in range(root // 2, 2 * root + 1) if length % size == 0]
    return min(near, key=lambda size: abs(size - root)) if near else root


def _rows(found: GeometricSum, over: Sequence[Axis], size: int, dtype: str, name: str) -> Compute | None:
    """What is summed, a block in each row, zeros behind the end; None where it would read what only a condition keeps in range."""
    length = extent(found.t)
    own = _own(over)
    q, j = Axis("q", 0, -(-length // size)), Axis("j", 0, size)
    place = size * q + j
    value = cast(substitute(multiplied(found.rest), own | {found.s: place}), dtype)
    element = call(SELECT, place < length, value, cast(as_expr(0), dtype)) if length % size else value
    axes = [*own.values(), q, j]
    return Compute(f"{name}_rows", axes, element) if reads_inside(axes, element) else None


def _blocks(
    found: GeometricSum, rows: Compute, summed: Sequence[Axis], kept: Sequence[Axis], name: str
) -> PartialSum:
    """Each block by itself."""
    own = _own(kept)
    q, place = rows.axes[-2:]
    i, j = Axis("i", 0, place.hi), Axis("j", 0, place.hi, reduction=True)
    block = Axis("q", 0, q.hi)
    weight = substitute(found.weight, own | {found.t: i, found.s: j})
    element = Read(rows, [*(own[a] for a in summed), block, j])
    return PartialSum(
        f"{name}_blocks",
        [*own.values(), block, i],
        _sum(weight * element, j, j >= i if found.backwards else j <= i, rows.dtype),
    )


def _carried(found: GeometricSum, parts: PartialSum, kept: Sequence[Axis], name: str) -> PartialSum:
    """What the blocks before each one (behind it, backwards) come to at its beginning."""
    own = _own(kept)
    count, size = (extent(a) for a in parts.axes[-2:])
    q, c = Axis("q", 0, count), Axis("c", 0, count, reduction=True)
    between, within = (c - q - 1, c > q) if found.backwards else (q - 1 - c, c < q)
    weight = substitute(found.over(size * between), own)
    last = Read(parts, [*own.values(), c, ZERO if found.backwards else as_expr(size - 1)])
    return PartialSum(f"{name}_carried", [*own.values(), q], _sum(weight * last, c, within, parts.dtype))


def _joined(
    found: GeometricSum, parts: PartialSum, carried: PartialSum, kept: Sequence[Axis], name: str
) -> Compute:
    """The sums, a block in each row."""
    own = _own(kept)
    q, i = (Axis(a.name, 0, a.hi) for a in parts.axes[-2:])
    weight = substitute(found.over(i.hi - i if found.backwards else i + 1), own)
    value = Read(parts, [*own.values(), q, i]) + cast(weight, parts.dtype) * Read(carried, [*own.values(), q])
    return Compute(f"{name}_joined", [*own.values(), q, i], value)


def _own(axes: Sequence[Axis]) -> dict[Expr, Axis]:
    """Axes of a new tensor for those of another."""
    return {a: Axis(a.name, 0, a.hi) for a in axes}


def _sum(value: Expr, over: Axis, within: Expr, dtype: str) -> Reduce:
    return Reduce(builtin_reducer("sum", dtype), (cast(value, dtype),), (over,), within)
