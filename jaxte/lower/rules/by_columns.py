"""Sums of products with what is computed over one more dimension, one position of that dimension after the other.

    dx[i, c] = sum over j of w[i, j] * (x[i, c] - y[j, c])      as stack of sum(w * (x[:, c, None] - y[None, :, c]), axis=1) for each c

A product of matrices needs the differences as an array, which is ``c`` times as large as the weights. Each column by itself is one loop that holds
nothing. XLA on the CPU writes a vector that is broadcast to an array as soon as several sums read it, so each sum has the vectors behind a
barrier of its own: two sums of 2,048 x 2,048 weights and three columns take 3 ms for 17 and hold 0.1 MB for 50.

A dimension of a few positions written out: what is computed at each of them is combined.

Definitions are written out by ``rewrites/short_axes.py``; here it is values, where how a dimension is read decides.

Reducing calls of ``jnp``. Where all that is kept lies side by side and is more than the blocks of XLA's library for the CPU, it takes 8 ns for each element:
rows are added one by one, 0.1 ms for 5 (9 x 65,536), and many of them are a product with ones, 1.3 ms for 23 (256 x 20,000).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod

from jaxte.algebra.product import Factor
from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.limits import LARGE_RESULT, MOST_TERMS
from jaxte.lang.operators import ADD, Op
from jaxte.lang.walk import reads_of
from jaxte.lower.arrays.elementwise import Apply, Full, Kept, Number
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Einsum, Reduced
from jaxte.lower.arrays.views import ALL, Index, View
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.paces import SIZES
from jaxte.lower.cost.work import points
from jaxte.lower.rewrites.short_axes import is_short
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Tensor

_ADDED = ("float32", "float64")  # numbers of fewer bits are added in more


def column_of(
    dims: Sequence[set[Axis]], plain: Sequence[bool], reduced: Sequence[Axis], scope: Scope
) -> Axis | None:
    """A kept dimension of few points that one computed operand has beyond all the others, which are in cache as it is not.

    Args:
        dims: the dimensions of each operand.
        plain: whether each of them is an array that exists.
        reduced: what is summed over.
        scope: of the sum.
    """
    every = set().union(*dims)
    for own, exists in zip(dims, plain, strict=True):
        if own != every or exists:
            continue
        alone = [d for d in own if not among(d, reduced) and sum(d in other for other in dims) == 1]
        few = [d for d in scope.order if among(d, alone) and is_short(d)]
        if few and any(other == own - {few[0]} for other in dims):
            return few[0]
    return None


def by_columns(
    body: Body, wide: Sequence[Factor], scope: Scope, dim: Axis, make: Callable[[Scope], Task], dtype: str
) -> Task:
    """What ``make`` gives at each position of ``dim``, over which ``wide`` is computed, stacked, in ``dtype``."""
    before = body.tensors
    if body.policy.facts.drops_barriers and not body.in_tiles and points(scope.order) >= LARGE_RESULT:
        body.read_by({**before, **again(body, [f.expr for f in wide])})
    values: list[Value] = []
    for at in scope.at_each(dim):
        value = yield from make(at)
        value = body.cast(value, dtype) if value.literal else value
        values.append(body.named(value) if body.in_tiles else value)
    body.read_by(before)
    return body.stack(values, dim, scope)


def again(body: Body, exprs: Sequence[Expr]) -> dict[Tensor, str]:
    """Names of what ``exprs`` read behind barriers that nothing else reads: each behind the last one, as XLA takes equal ones for one."""
    found: dict[Tensor, str] = {}
    for tensor in dict.fromkeys(r.tensor for r in reads_of(*exprs)):
        if tensor not in body.padded:
            kept = Kept(body.tensor(tensor), "barrier")
            while kept in body.written:
                kept = Kept(body.shared(kept), "barrier")
            found[tensor] = body.shared(kept, f"{body.tensors[tensor]}_again").identifier
    return found


def combined(body: Body, op: Op, dim: Axis, scope: Scope, dtype: str, make: Callable[[Scope], Task]) -> Task:
    """What ``make`` gives at each position of ``dim``, combined by ``op`` one after the other, zeros left out of sums."""
    total: Value | None = None
    for at in scope.at_each(dim):
        value = yield from make(at)
        if total is None or (op is ADD and _is_zero(total)):
            total = value
        elif op is not ADD or not _is_zero(value):
            total = body.combine(op, [total, value], (dtype, False), scope)
    assert total is not None
    return total


def _is_zero(value: Value) -> bool:
    return value.literal and value.number == 0


def reduced_call(
    body: Body,
    function: str,
    value: Value,
    reduced: Sequence[Axis],
    scope: Scope,
    dtype: str,
    start: Node | None = None,
) -> Value:
    """A reducing function of jnp over some of the dimensions of ``value``."""
    axes = tuple(n for n, d in enumerate(value.dims) if among(d, reduced))
    left = tuple(d for d in value.dims if not among(d, reduced))
    # under x64 JAX would widen integers
    widened = function in ("sum", "prod") and not dtype.startswith(("f", "b", "c"))
    body.report.note(function)
    node = None if function != "sum" else _of_wide_rows(body, value, axes, dtype)
    node = node or Reduced(function, value.code, axes if left else None, dtype if widened else "", start)
    result = Value(node, left, (dtype, False))
    result = body.in_order(result, scope)
    return body.cast(result, dtype) if value.dtype == dtype else body.cast(result, dtype, always=True)


def _of_wide_rows(body: Body, value: Value, axes: tuple[int, ...], dtype: str) -> Node | None:
    """The sum of rows that are too wide for the library, of which all elements lie side by side; None of others."""
    extents = [known(e) or 0 for e in value.code.shape]
    count, wide = prod(extents[: len(axes)]), prod(extents[len(axes) :])
    if not body.policy.facts.copies_reduced_slices or body.in_tiles or axes != tuple(range(len(axes))):
        return None
    if dtype not in _ADDED or value.dtype != dtype or count < 2 or wide <= SIZES.wide:
        return None
    if len(axes) == 1 and count <= MOST_TERMS:
        array, rest = body.named(value).code, (ALL,) * (len(extents) - 1)
        rows: list[Node] = [View(array, Index((as_expr(n), *rest))) for n in range(count)]
        return functools.reduce(lambda total, row: Apply(ADD, (total, row)), rows)
    letters = "abcdefghijklmnopqrstuvwxyz"[: len(extents)]
    ones = Full(value.code.shape[: len(axes)], Number(1), dtype)
    return Einsum(f"{letters[: len(axes)]},{letters}->{letters[len(axes) :]}", (ones, value.code))
