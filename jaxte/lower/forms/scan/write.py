"""Cumulative reductions as nodes, in each of their forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from jaxte.lang.expr import ZERO, Const, Expr, Reducer, Symbol, as_expr
from jaxte.lang.graphs import identical
from jaxte.lang.limits import VECTOR
from jaxte.lang.operators import GREATER_EQUAL, LESS_EQUAL, SELECT
from jaxte.lower.arrays.data import Call
from jaxte.lower.arrays.elementwise import Apply, Arange, Cast, Name, Number, full_of
from jaxte.lower.arrays.loops import Item, Scanned, Tuple
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import OPS, Cumulative, Prefixes, filled, identity_of, node_of
from jaxte.lower.arrays.views import ALL, NEW, Entry, Index, Range, Transpose
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.vocabulary import Function, PrefixFunction, Statement
from jaxte.lower.cost.steps import TOGETHER
from jaxte.lower.forms.scan.recognise import Scan, ScanSpec
from jaxte.lower.printing.products import needed_values
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of


def prefix_function(
    spec: ScanSpec, scan: Scan, values: Sequence[Node], scope: str, name: str
) -> PrefixFunction:
    """The function ``name`` of ``x``, an array or one for each value of the reducer."""
    arity = spec.reducer.arity
    blocks = [(v.shape, v.kind) for v in values]  # an element of a block is as wide as the blocks are many
    part = Name("part", *blocks[0]) if arity == 1 else Name("part")
    step = step_node(spec, scan, Name("total", *blocks[spec.position]), part, blocks)
    identities = tuple(identity_of(spec.reducer, n) for n in range(arity))
    ndim = len(values[0].shape)
    return PrefixFunction(
        scope, name, spec.reducer, spec.position, ndim, scan.axis, scan.reverse, step, identities
    )


def in_blocks(spec: ScanSpec, values: Sequence[Node], name: str) -> Node:
    """The call of the function of :func:`prefix_function`."""
    own = values[spec.position]
    return Call(name, (values[0] if len(values) == 1 else Tuple(tuple(values)),), own.shape, own.kind)


Run = Callable[[ScanSpec, Scan, Sequence[Node]], Node]
CUMULATIVE = ("sum", "prod", "max", "min")  # that JAX has a cumulative function for
_REVERSED = Range(step=-1)


def scan_source(spec: ScanSpec, operands: Sequence[Node], run: Run | None = None) -> Node:
    """``spec`` on the nodes of ``spec.operands``.

    ``run`` makes one pass over an axis; the cumulative function of the reducer where there is one, else
    ``lax.associative_scan``, if it is not given.
    """
    run = run or cumulative
    arity = spec.reducer.arity
    values = list(operands[:arity])
    for scan in spec.scans:
        padded = [_padded(value, scan, identity_of(spec.reducer, n)) for n, value in enumerate(values)]
        values = [_taken(run(spec, scan, padded), scan)]
    return _finished(spec, values[0], operands[arity:])


def _padded(value: Node, scan: Scan, identity: Node) -> Node:
    if identical(scan.pad, (ZERO, ZERO)):
        return value
    widths: list[tuple[Expr, Expr]] = [(ZERO, ZERO)] * len(value.shape)
    widths[scan.axis] = scan.pad
    return filled(value, widths, identity)


def has_cumulative(reducer: Reducer) -> bool:
    """Whether JAX has a cumulative function for ``reducer``; those of maxima and minima refuse booleans."""
    if reducer.is_extremum and reducer.results[0].dtype == "bool":
        return False
    return reducer.name in CUMULATIVE


def cumulative(spec: ScanSpec, scan: Scan, values: Sequence[Node]) -> Node:
    """The cumulative function of the reducer, where it has one."""
    if not has_cumulative(spec.reducer):
        return associative(spec, scan, values)
    return Cumulative(spec.reducer.name, values[0], scan.axis, scan.reverse)


def associative(spec: ScanSpec, scan: Scan, values: Sequence[Node]) -> Node:
    """``lax.associative_scan``."""
    result = Prefixes(spec.reducer, tuple(values), scan.axis, scan.reverse)
    own = values[spec.position]
    return result if len(values) == 1 else Item(result, spec.position, own.shape, own.kind)


# --- one step after the other


def step_function(spec: ScanSpec, scan: Scan, values: Sequence[Node], scope: str, name: str) -> Function:
    """The function ``(total, x)``, one step of ``lax.scan`` along the first dimension of ``values``."""
    rows = [(_moved(v, scan).shape[1:], v.kind) for v in values]
    carried = carried_values(spec, scan)
    total = Name("total", *rows[carried[0]]) if len(carried) == 1 else Name("total")
    element = Name("x", *rows[0]) if len(values) == 1 else Name("x")
    new = step_node(spec, scan, total, element, rows)
    own = total if len(carried) == 1 else Item(total, 0, *rows[carried[0]])
    return Function(scope, name, ("total", "x"), (Statement(scope, "total", new),), Tuple((total, own)))


def step_node(
    spec: ScanSpec,
    scan: Scan,
    total: Name,
    element: Name,
    rows: Sequence[tuple[tuple[Expr, ...], tuple[str, bool]]],
) -> Node:
    """``total`` and one more element, or tuples of them: the new ``total``."""
    reducer = spec.reducer
    if reducer.name in OPS:
        own, other = (element, total) if scan.reverse else (total, element)
        return Apply(OPS[reducer.name], (own, other))
    carried, new = (reducer.rhs, reducer.lhs) if scan.reverse else (reducer.lhs, reducer.rhs)
    values = carried_values(spec, scan)
    known = _items(new, range(reducer.arity), element, rows) | _items(carried, values, total, rows)
    results = [node_of(reducer.results[value], known) for value in values]
    return results[0] if len(results) == 1 else Tuple(tuple(results))


def _items(
    symbols: Sequence[Symbol],
    values: Sequence[int],
    of: Name,
    rows: Sequence[tuple[tuple[Expr, ...], tuple[str, bool]]],
) -> dict[Symbol, Node]:
    """What ``symbols`` are: ``of``, or its items, which are those of ``values``."""
    if len(values) == 1:
        return {symbols[values[0]]: of}
    return {symbols[value]: Item(of, n, *rows[value]) for n, value in enumerate(values)}


def carried_values(spec: ScanSpec, scan: Scan) -> list[int]:
    """The values that a step hands on, the one that is asked for first."""
    return needed_values(spec.reducer, spec.position, spec.reducer.rhs if scan.reverse else spec.reducer.lhs)


def sequential(spec: ScanSpec, scan: Scan, values: Sequence[Node], step: str) -> Node:
    """``lax.scan`` with the function ``step`` along the axis, which is the first one meanwhile."""
    moved = [_moved(value, scan) for value in values]
    starts = tuple(
        full_of(moved[n].shape[1:], identity_of(spec.reducer, n), spec.arrays[n].dtype)
        for n in carried_values(spec, scan)
    )
    own = moved[spec.position]
    # of wider rows each step is a loop by itself, which others beside it only slow down; jax.export divides no symbolic length
    narrow = prod(map(extent_of, own.shape[1:])) <= VECTOR
    together = TOGETHER if narrow and isinstance(own.shape[0], Const) else 1
    result = Scanned(step, starts, tuple(moved), own.shape, own.kind, scan.reverse, together)
    order = [n + 1 if n < scan.axis else 0 if n == scan.axis else n for n in range(len(own.shape))]
    return _in_order(result, order)


def _moved(value: Node, scan: Scan) -> Node:
    """``value`` with the axis first."""
    return _in_order(value, [scan.axis, *(n for n in range(len(value.shape)) if n != scan.axis)])


def _in_order(node: Node, order: Sequence[int]) -> Node:
    return node if list(order) == sorted(order) else apply_steps(node, [Transpose(tuple(order))])


# --- one position after the other


def written_out(body: Body, spec: ScanSpec, scan: Scan, value: Node) -> Node:
    """The cumulative values of ``value`` along the axis of ``scan``, each position chosen where it counts.

    One loop over the result, in vectors whatever the axis is, in which nothing waits for a position before. XLA makes windows of ``jnp.cumsum``, and of pieces that are put
    side by side an array of each.

        x[:, :1] + where(i >= 1, x[:, 1:2], 0) + where(i >= 2, x[:, 2:3], 0)
    """
    own = body.shared(value)
    extent, others = own.shape[scan.axis], len(own.shape) - scan.axis - 1
    entries: tuple[Entry, ...] = (*(NEW,) * scan.axis, ALL, *(NEW,) * others)
    positions = body.shared(apply_steps(Arange(0, extent), [Index(entries)]), f"{body.target}_at")
    first, *numbers = range(extent_of(extent))[:: -1 if scan.reverse else 1]
    result = _at(own, scan, first)
    for k in numbers:
        counts = Apply(LESS_EQUAL if scan.reverse else GREATER_EQUAL, (positions, Number(k)))
        chosen = Apply(SELECT, (counts, _at(own, scan, k), identity_of(spec.reducer, 0)))
        so_far = result if k == numbers[0] else body.shared(result)
        result = Apply(OPS[spec.reducer.name], (so_far, chosen))
    return result


def _at(own: Node, scan: Scan, position: int) -> Node:
    """The elements at one position, which all results are beside."""
    entry = Range(as_expr(position) if position else None, as_expr(position + 1))
    return apply_steps(own, [Index((*(ALL,) * scan.axis, entry))])


# --- the result


def _taken(value: Node, scan: Scan) -> Node:
    """The part of the cumulative values that is the result."""
    entries: list[Range] = []
    if scan.start is not None:
        start = None if scan.start is ZERO else scan.start
        entries.append(Range(start, normal(scan.start + scan.length)))
    if scan.flip:
        entries.append(_REVERSED)
    return apply_steps(value, [Index((*(ALL,) * scan.axis, entry)) for entry in entries])


def _finished(spec: ScanSpec, result: Node, others: Sequence[Node]) -> Node:
    result = spec.finish.of(result, others)
    if spec.guard is not None:
        result = Apply(SELECT, (others[-1], result, identity_of(spec.reducer, spec.position)))
    return result if spec.arrays[spec.position].dtype == spec.dtype else Cast(result, spec.dtype)
