"""The tangent of one tensor: what moves it when the tensors that it reads move.

For a body over ``o`` that reads ``X[f(o, k)]`` with the slope ``w(o, k)``,

    dY[o] = sum over k of w(o, k) * dX[f(o, k)]

The slopes are not derived a second time. The adjoint of the body for a head ``h``, a symbol here, says what each read receives:
an expression that is linear in ``h``. Its own adjoint for the head ``dX[f]`` is the tangent, so that guards, ties and the slopes themselves
are those of the adjoint, whose transpose the tangent therefore is. No equation is solved: reads stay where they are. A body
that is linear in what moves is its own tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jaxte.algebra.data_conditions import data_limits
from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import collect, plus, times
from jaxte.autodiff.rules.prefixes import Prefix, Recurrence, solve
from jaxte.autodiff.rules.readers import free_of_guards, guarded_by_sums
from jaxte.autodiff.rules.reductions import reduction_contributions, scan_of
from jaxte.autodiff.rules.scans import (
    along,
    before,
    call_and,
    call_max,
    masked,
    partial,
    states_of,
    values_of,
)
from jaxte.autodiff.rules.seeds import moved_into
from jaxte.autodiff.terms.guards import guard
from jaxte.autodiff.terms.scalar import Contribution, contributions
from jaxte.autodiff.terms.zeros import sum_over
from jaxte.lang import dtypes
from jaxte.lang.expr import (
    TRUE,
    Axis,
    Call,
    Const,
    Expr,
    Read,
    Reduce,
    Symbol,
    call,
    cast,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import among, place_of
from jaxte.lang.operators import MINIMUM, NONZERO, SELECT
from jaxte.lang.walk import postorder, substitute
from jaxte.sets.conditions import prune
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.shapes import Extent
from jaxte.tensors.tensor import Compute, Tensor

Moves = Callable[[Read], Expr]  # the tangent of an element that was read


def push_forward(
    output: Compute, tangents: Mapping[Tensor, Tensor], prefix: Sequence[Extent] = ()
) -> Compute:
    """The Jacobian of ``output`` with respect to the tensors that it reads itself, times their ``tangents``.

    ``result[p, o] = sum over X, a of d output[o] / d X[a] * tangents[X][p, a]``

    Args:
        output: a computed tensor.
        tangents: for tensors that its body reads, a tensor of shape ``prefix + X.shape``.
        prefix: the extents of ``p``.
    """
    leading = tuple(Axis("p" if len(prefix) == 1 else f"p{n}", 0, extent) for n, extent in enumerate(prefix))
    axes = tuple(Axis(a.name, 0, a.hi) for a in output.axes)

    def moves(read: Read) -> Expr:
        element = moved_into(tangents[read.tensor], read, (*leading, *read.indices), output)
        return guard(conjunction(data_limits(read)), element)

    parts: dict[Compute, list[Tensor]] = {}
    for tensor in tangents:
        reader = guarded_by_sums(output, tangents[tensor])
        parts.setdefault(free_of_guards(reader, tensor), []).append(tensor)
    bodies = [_tangent_of(free, leading, _read_of(moving), moves) for free, moving in parts.items()]
    body = bodies[0] if len(bodies) == 1 else collect(bodies)
    body = substitute(body, dict(zip(output.axes, axes, strict=True)))
    if body.weak or body.dtype != output.dtype:
        body = cast(body, output.dtype)
    return Compute(f"{output.name}_dot", (*leading, *axes), body)


def _read_of(tensors: Sequence[Tensor]) -> Callable[[Expr], bool]:
    """Which leaves are elements of one of ``tensors``."""
    return lambda leaf: isinstance(leaf, Read) and among(leaf.tensor, tensors)


def _tangent_of(
    output: Compute, leading: Sequence[Axis], wanted: Callable[[Expr], bool], moves: Moves
) -> Expr:
    """The element of the tangent of ``output`` where what is ``wanted`` moves."""
    scan = scan_of(output)
    if scan is not None:
        return _of_scan(output, scan, leading, wanted, moves)
    if (replaced := _replaced(output.body, wanted, moves)) is not None:
        return replaced
    return collect(_terms(_parts(output, wanted), output.axes, output.dtype, moves, f"{output.name}_dot"))


def _replaced(body: Expr, wanted: Callable[[Expr], bool], moves: Moves) -> Expr | None:
    """A body that is linear in what is ``wanted`` with the tangents in place of that: it is its own tangent. None for others."""
    table: dict[Expr, Expr] = {}
    linear: set[Expr] = set()
    for node in postorder(body):
        moving = [child in linear for child in node.children]
        if wanted(node):
            assert isinstance(node, Read)
            table[node] = moved = moves(node)
            if _passes_nothing_on(moved):
                return None  # its guard belongs around what it is multiplied by
            linear.add(node)
        elif any(moving):
            if not _stays_linear(node, moving):
                return None
            linear.add(node)
    return substitute(body, table)


def _passes_nothing_on(moved: Expr) -> bool:
    """Whether a tangent is guarded, by where it is zero itself or by a condition on data that was put in place with it."""
    return any(
        isinstance(node, Call)
        and (node.op is NONZERO or (node.op is SELECT and not is_decidable(node.args[0])))
        for node in postorder(moved)
    )


def _stays_linear(node: Expr, moving: Sequence[bool]) -> bool:
    """Whether ``node`` is linear in what moves where the operands that are ``moving`` are, and the others stand still."""
    if isinstance(node, Reduce):
        return node.is_sum and not moving[-1]
    if not isinstance(node, Call):
        return False
    match node.op.name:
        case "multiply":
            return not all(moving)
        case "divide":
            return not moving[1]
        case "negative":
            return True
        case "add" | "subtract":
            return all(m or is_zero(a) for a, m in zip(node.args, moving, strict=True))
        case "select":
            chosen = list(zip(node.args, moving, strict=True))[1:]
            return not moving[0] and all(m or is_zero(a) for a, m in chosen)
        case "cast":
            return all(dtypes.is_float(n.dtype) for n in (node, *node.args))
    return False


def _head(dtype: str) -> Symbol:
    return Symbol("head", dtype)


def _parts(output: Compute, wanted: Callable[[Expr], bool]) -> list[Contribution]:
    """What each wanted read receives for the head."""
    seed = _head(output.dtype)
    if isinstance(output.body, Reduce):
        return reduction_contributions(output, seed, wanted)
    return contributions(output.body, output.axes, seed, Read(output, output.axes), wanted)


def _terms(
    parts: Sequence[Contribution], outer: Sequence[Axis], dtype: str, moves: Moves, name: str
) -> list[Expr]:
    """The tangent of an expression over ``outer`` as a sum of terms, from what its reads receive for the head."""
    head = _head(dtype)
    found: list[Expr] = []
    for part in parts:
        assert isinstance(part.read, Read)
        for term in contributions(part.value, part.axes, moves(part.read), None, lambda leaf: leaf is head):
            inner = [a for a in term.axes if not among(a, outer)]
            fresh: dict[Expr, Expr] = {a: Axis(a.name, a.lo, a.hi, reduction=True) for a in inner}
            where = [substitute(c, fresh) for c in conjuncts(call_and(part.where, term.where))]
            own = [fresh[a] for a in inner]
            value = substitute(term.value, fresh)
            found.append(sum_over([a for a in own if isinstance(a, Axis)], where, value, outer, name))
    return found


def _of_scan(
    output: Compute, scan: Prefix, leading: Sequence[Axis], wanted: Callable[[Expr], bool], moves: Moves
) -> Expr:
    """The tangent of a cumulative reduction ``F[m] = F[m - 1] (+) x[m]``: a linear recurrence from the same end."""
    outer = [a for a in output.axes if a is not scan.moving]
    values = values_of(output, scan, states_of(output, scan, outer))
    states, elements = before(scan, values), masked(scan)
    every, reducer = range(len(values)), scan.node.reducer
    moved = [_element_tangent(scan, n, outer, wanted, moves, output.name) for n in every]
    slopes = [[partial(reducer, p, states, elements, lhs=q) for q in every] for p in every]
    offsets = []
    for p in every:
        total: Expr = Const(0.0)
        for n in every:
            if not is_zero(moved[n]):
                total = plus(total, times(moved[n], partial(reducer, p, states, elements, rhs=n)))
        offsets.append(total)
    name = f"state_{output.name}_dot"
    place = len(leading) + place_of(scan.moving, output.axes)
    recurrence = Recurrence(slopes, offsets, scan.step, (*leading, *outer), place, False, output.dtype, name)
    solved = solve(recurrence, [scan.node.position])
    if not solved:
        return Const(0.0)
    last, moving = scan.step.hi - 1, (scan.moving,)
    filled = conjunction(prune([scan.at >= 0], moving))
    at = call(MINIMUM, scan.at, last) if prune([scan.at <= last], moving) else scan.at
    at = at if filled is TRUE else call_max(at)
    return guard(filled, Read(solved[scan.node.position], (*leading, *along(output, scan, at))))


def _element_tangent(
    scan: Prefix,
    position: int,
    outer: Sequence[Axis],
    wanted: Callable[[Expr], bool],
    moves: Moves,
    name: str,
) -> Expr:
    """The tangent of the reduced expression at ``position``, zero where the reduction leaves it out."""
    expr = scan.node.exprs[position]
    scope = (*outer, scan.step)
    parts = contributions(expr, scope, _head(expr.dtype), None, wanted)
    value = collect(_terms(parts, scope, expr.dtype, moves, f"element_{name}"))
    return value if is_zero(value) else guard(scan.node.where, value)
