"""Whether every affine read in a body stays inside its tensor, under the guards that it stands behind.

Points at which an index leaves its range are asked of isl, or looked for one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.lang.budget import unbounded
from jaxte.lang.errors import IndexExpressionError, RangeError
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Var, as_expr, call, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.operators import NOT, OR, SELECT
from jaxte.lang.text import text
from jaxte.lang.walk import postorder, reads_of
from jaxte.sets.affine import linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.intervals import surely_inside
from jaxte.sets.isl_text import left_open
from jaxte.sets.tabulate import Open, evaluate_index, first_of, quotients
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.bodies.piecewise_indices import has_choices, mixes_positions

_FEW_QUOTIENTS = 2  # in each other, up to which isl is asked first

_SLOWER = 20  # times as long an operation of isl takes among many quotients

_UNDECIDED = (
    "whether it stays in range takes more work to decide than there is a budget for; keep it in range by "
    "te.minimum(te.maximum(index, 0), extent - 1), which changes nothing where it does, or read at a tensor of positions"
)


def find_violation(
    variables: Sequence[Expr], conditions: Sequence[Expr], index: Expr, extent: Expr
) -> tuple[dict[Expr, int], int] | None:
    """A point at which ``index`` leaves ``[0, extent)``, and the value it has there.

    Where isl leaves open whether there is one, the points are looked at one by one.

    Raises:
        IndexExpressionError: there are too many of them, or sizes are symbols.
    """
    for outside in (index >= extent, index < ZERO):
        with unbounded():
            point = _first(variables, [*conditions, outside])
        if point is not None:
            return point, evaluate_index(index, point)
    return None


def _first(variables: Sequence[Expr], conditions: Sequence[Expr]) -> dict[Expr, int] | None:
    """A point at which ``conditions`` hold: asked of isl, but of many quotients in each other, for which that takes long."""
    nested = quotients(conditions) > _FEW_QUOTIENTS
    try:
        if nested:
            return first_of(variables, conditions)
    except Open:
        pass
    before = left_open()
    point = IntegerSet(variables, conditions).sample(_SLOWER if nested else 1)
    if point is not None or left_open() == before:
        return point
    try:
        return first_of(variables, conditions)
    except Open:
        raise IndexExpressionError(_UNDECIDED) from None


_OPEN_CHOICE = (
    "a choice in an index has to be between affine indices, by a condition on positions along axes of fixed extents; "
    "for any other choose between reads, as in te.select(cond, X[i], X[j])"
)


def check_reads(name: str, axes: Sequence[Axis], body: Expr) -> None:
    """Every affine read in ``body`` stays inside its tensor, under the guards that it stands behind."""
    suspects = {read for read in reads_of(body) if not _surely_inside(read)}
    if not suspects:
        return
    for read, variables, conditions in contexts(axes, body, suspects):
        held = _decided(conditions)
        for position, index in enumerate(read.indices):
            _check_index(name, read, position, index, variables, held)


def reads_inside(axes: Sequence[Axis], body: Expr) -> bool:
    """Whether every affine read in ``body`` stays inside its tensor."""
    suspects = {read for read in reads_of(body) if not _surely_inside(read)}
    for read, variables, conditions in contexts(axes, body, suspects) if suspects else ():
        held = _decided(conditions)
        for index, extent in zip(read.indices, read.tensor.shape, strict=True):
            if not reads_of(index) and not _is_inside(variables, held, index, as_expr(extent)):
                return False
    return True


def _is_inside(variables: Sequence[Axis], held: Sequence[Expr], index: Expr, extent: Expr) -> bool:
    try:
        return find_violation(variables, held, index, extent) is None
    except IndexExpressionError:
        return False


def _surely_inside(read: Read) -> bool:
    """Whether interval arithmetic alone shows that every affine index is in range."""
    try:
        return surely_inside(read)
    except IndexExpressionError:
        return False


def _decided(conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """``conditions`` with those that are chosen by another one of them as what is chosen then."""
    held = tuple(part for condition in conditions for part in conjuncts(condition))
    for condition in held:
        if isinstance(condition, Call) and condition.op is SELECT:
            test, taken, other = condition.args
            chosen = taken if among(test, held) else other if among(call(NOT, test), held) else None
            if chosen is not None:
                return _decided((*(c for c in held if c is not condition), chosen))
    return held


def _check_index(
    name: str,
    read: Read,
    position: int,
    index: Expr,
    variables: tuple[Axis, ...],
    conditions: tuple[Expr, ...],
) -> None:
    if reads_of(index):
        return
    extent = as_expr(read.tensor.shape[position])
    try:
        violation = (
            _violation_of_mixed(variables, conditions, index, extent) if mixes_positions(index) else None
        )
        if violation is None:
            linear(index)
            violation = find_violation(variables, conditions, index, extent)
    except IndexExpressionError as error:
        reason = _OPEN_CHOICE if has_choices(index) else error
        raise IndexExpressionError(
            f"{name} reads {text(read)}, axis {position} of {read.tensor.name}: {reason}"
        ) from None
    if violation is None:
        return
    point, value = violation
    shown = {node: v for node, v in point.items() if any(n is node for n in postorder(index, extent))}
    at = ", ".join(f"{text(node)}={v}" for node, v in shown.items())
    line = f"  {name} = … {text(read)} …"
    before = text(read).index("[") + 1 + sum(len(text(i)) + 2 for i in read.indices[:position])
    caret = " " * (line.index(text(read)) + before) + "^" * len(text(index))
    fixed = isinstance(index, Const) and value < 0
    remedy = (
        f"positions do not count from the end: the last one is {text(extent - 1)}"
        if fixed
        else f"shrink the range, pad the tensor, or guard the read with te.select or where={_larger(shown)}"
    )
    raise RangeError(
        f"{text(read)} reads {read.tensor.name}[{', '.join([':'] * position + [str(value)])}] at {at or 'every point'}, "
        f"but axis {position} of {read.tensor.name} has {text(extent)} elements\n{line}\n{caret}\n{remedy}"
    )


def _violation_of_mixed(
    variables: Sequence[Axis], conditions: Sequence[Expr], index: Expr, extent: Expr
) -> tuple[dict[Expr, int], int] | None:
    """A point at which an ``index`` of several positions leaves ``[0, extent)``, with its value there, where positions are few enough to look at each."""
    told = [c for c in conditions if not reads_of(c)]
    try:
        point = first_of(variables, [*told, call(OR, index >= extent, index < 0)])
    except Open:
        return None
    return None if point is None else (point, evaluate_index(index, point))


def _larger(shown: Mapping[Expr, int]) -> str:
    """What else helps where a size is too small: to state that it is larger."""
    sizes = [(node.name, node.least) for node in shown if isinstance(node, Var)]
    if not sizes:
        return ""
    (name, least), *_ = sizes
    return (
        f'; or state that {name} is larger: te.var("{name}", at_least={least + 1}), or constraints=["{name} >= {least + 1}"] of '
        "jax.export.symbolic_shape"
    )
