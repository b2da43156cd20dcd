"""Other ways to write a definition that mean the same: reductions with their axes reordered, moved, reversed, split and merged, guards
that are redundant, split, or choices, factors in another order.

Each respelling takes a Compute whose body is a reduction and returns another one over the same axes, or None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, call, conjunction, conjuncts
from jaxte.lang.operators import ADD, AND, MULTIPLY, NOT, SELECT
from jaxte.lang.walk import postorder, reads_of, rewrite, substitute
from jaxte.tensors.tensor import Compute

Respelling = Callable[[Compute, Reduce], "Compute | None"]


def respelled(tensor: Compute) -> Iterator[tuple[str, Compute]]:
    """Every respelling that applies to ``tensor``, with its name."""
    if not isinstance(tensor.body, Reduce):
        return
    for name, respelling in RESPELLINGS.items():
        found = respelling(tensor, tensor.body)
        if found is not None:
            yield name, found


def _with(tensor: Compute, body: Expr) -> Compute:
    return Compute(tensor.name, tensor.axes, body)


def _over(
    tensor: Compute, node: Reduce, axes: list[Axis], table: dict[Expr, Expr], where: Expr = TRUE
) -> Compute:
    """``tensor`` reducing over ``axes``, of which ``table`` says what the old ones are."""
    exprs = [substitute(e, table) for e in node.exprs]
    condition = call(AND, substitute(node.where, table), where)
    return _with(tensor, Reduce(node.reducer, exprs, axes, condition, node.position))


def _known(axis: Axis) -> tuple[int, int] | None:
    if isinstance(axis.lo, Const) and isinstance(axis.hi, Const):
        return int(axis.lo), int(axis.hi)
    return None


def reordered(tensor: Compute, node: Reduce) -> Compute | None:
    if len(node.axes) < 2:
        return None
    return _over(tensor, node, list(reversed(node.axes)), {})


def moved(tensor: Compute, node: Reduce) -> Compute | None:
    """Every axis begins three further on."""
    table: dict[Expr, Expr] = {}
    axes = []
    for axis in node.axes:
        fresh = Axis(axis.name, axis.lo + 3, axis.hi + 3, reduction=True)
        axes.append(fresh)
        table[axis] = fresh - 3
    return _over(tensor, node, axes, table)


def backwards(tensor: Compute, node: Reduce) -> Compute | None:
    table: dict[Expr, Expr] = {}
    axes = []
    for axis in node.axes:
        fresh = Axis(axis.name, axis.lo, axis.hi, reduction=True)
        axes.append(fresh)
        table[axis] = axis.lo + axis.hi - 1 - fresh
    return _over(tensor, node, axes, table)


def split(tensor: Compute, node: Reduce) -> Compute | None:
    """The first axis that has an even extent in two digits."""
    for axis in node.axes:
        ends = _known(axis)
        if ends is None or (ends[1] - ends[0]) % 2 or ends[1] - ends[0] < 4:
            continue
        high = Axis(f"{axis.name}_high", 0, (ends[1] - ends[0]) // 2, reduction=True)
        low = Axis(f"{axis.name}_low", 0, 2, reduction=True)
        axes = [a for own in node.axes for a in ((high, low) if own is axis else (own,))]
        return _over(tensor, node, axes, {axis: 2 * high + low + ends[0]})
    return None


def merged(tensor: Compute, node: Reduce) -> Compute | None:
    """The last two axes as one number."""
    if len(node.axes) < 2:
        return None
    *others, first, second = node.axes
    ends = _known(first), _known(second)
    if ends[0] is None or ends[1] is None:
        return None
    extents = [hi - lo for lo, hi in ends]  # type: ignore[misc]
    flat = Axis(f"{first.name}_{second.name}", 0, extents[0] * extents[1], reduction=True)
    table: dict[Expr, Expr] = {first: flat // extents[1] + first.lo, second: flat % extents[1] + second.lo}
    return _over(tensor, node, [*others, flat], table)


def redundant(tensor: Compute, node: Reduce) -> Compute | None:
    """Conditions that the ranges of the axes imply, and those that are there a second time."""
    extra: Expr = TRUE
    for axis in node.axes:
        extra = call(AND, extra, call(AND, axis >= axis.lo, axis < axis.hi + 2))
    again = [call(NOT, call(NOT, c)) for c in conjuncts(node.where) if c is not TRUE]
    return _over(tensor, node, list(node.axes), {}, conjunction([*again, extra]))


def longer(tensor: Compute, node: Reduce) -> Compute | None:
    """The first axis ends one further on, under a condition that leaves that out."""
    axis = node.axes[0]
    fresh = Axis(axis.name, axis.lo, axis.hi + 1, reduction=True)
    return _over(tensor, node, [fresh, *node.axes[1:]], {axis: fresh}, fresh < axis.hi)


def as_choice(tensor: Compute, node: Reduce) -> Compute | None:
    """The condition of a sum as a choice around the product."""
    if node.reducer.name != "sum" or node.where is TRUE:
        return None
    chosen = call(SELECT, node.where, node.exprs[0], Const(0.0))
    return _with(tensor, Reduce(node.reducer, [chosen], node.axes, TRUE))


def as_choices(tensor: Compute, node: Reduce) -> Compute | None:
    """One choice inside of the other for each part of the condition."""
    if node.reducer.name != "sum" or len(conjuncts(node.where)) < 2:
        return None
    expr = node.exprs[0]
    for condition in conjuncts(node.where):
        expr = call(SELECT, call(NOT, condition), Const(0.0), expr)
    return _with(tensor, Reduce(node.reducer, [expr], node.axes, TRUE))


def choice_of_factor(tensor: Compute, node: Reduce) -> Compute | None:
    """The condition of a sum as a choice around the first read of the product."""
    if node.reducer.name != "sum" or node.where is TRUE:
        return None
    match node.exprs[0]:
        case Call(op, (Read() as first, second)) if op is MULTIPLY:
            expr = call(MULTIPLY, call(SELECT, node.where, first, Const(0.0)), second)
            return _with(tensor, Reduce(node.reducer, [expr], node.axes, TRUE))
    return None


def commuted(tensor: Compute, node: Reduce) -> Compute | None:
    def turned(n: Expr) -> Expr:
        match n:
            case Call(op, (a, b)) if op in (MULTIPLY, ADD) and not n.weak:
                return call(op, b, a)
        return n

    body = Reduce(
        node.reducer, [rewrite(e, turned) for e in node.exprs], node.axes, node.where, node.position
    )
    return None if body is node else _with(tensor, body)


def through_a_tensor(tensor: Compute, node: Reduce) -> Compute | None:
    """The first tensor that is read is a copy of itself."""
    reads = reads_of(*node.exprs)
    if not reads:
        return None
    source = reads[0].tensor
    axes = [Axis(f"a{n}", 0, extent) for n, extent in enumerate(source.shape)]
    copy = Compute(f"{source.name}_copy", axes, Read(source, axes))
    table: dict[Expr, Expr] = {
        r: Read(copy, r.indices) for r in postorder(*node.exprs) if isinstance(r, Read) and r.tensor is source
    }
    return _over(tensor, node, list(node.axes), table)


RESPELLINGS: dict[str, Respelling] = {
    f.__name__: f
    for f in (
        *(reordered, moved, backwards, split, merged, redundant, longer),
        *(as_choice, as_choices, choice_of_factor, commuted, through_a_tensor),
    )
}
