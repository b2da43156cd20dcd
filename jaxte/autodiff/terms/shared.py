"""What several taps share is a tensor of its own: a body that reads ``u[i]``, ``u[i + 1]``, ... passes something on to each of them.

Solved for the element that is read, each of these contributions stands at another position, so that what they have in common would be computed
once for each. At the points of the definition it is computed once: the part that two of them have in common, and that
takes more than a few operations, becomes a tensor over the axes of the definition, and each contribution reads it where it needs it.

Functions of an element and a neighbour that are the same seen from the neighbour are no such part. The weight ``exp(-(x[i + 1] - x[i])**2)`` of the edge
from ``i`` is needed where its slope flows back to ``x[i]`` and, at ``i - 1``, where it flows back to ``x[i + 1]``. If the body has the edge to
``x[i - 1]`` as well, the latter is the weight of that edge from ``i``: solved for one element, each weight stands there once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from math import prod

from jaxte.algebra.signs import with_even_functions
from jaxte.algebra.sums import operands, operations, value_nodes
from jaxte.autodiff.terms.beside import may_be_held
from jaxte.autodiff.terms.scalar import Contribution
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, as_expr, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import FAR_FEWER, FUNCTION, MANY_ELEMENTS, MANY_OPERATIONS, PLACES, WORTH_A_TENSOR
from jaxte.lang.operators import NOT, SELECT
from jaxte.lang.scalars.times import ALIKE, taking
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.sets.intervals import extent_of, known
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.piecewise_affine import Neighbour, is_repeated, neighbour
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.tensor import Compute, Tensor

Places = tuple[Neighbour, ...]


def mirrored(values: Sequence[Expr]) -> frozenset[Expr]:
    """The nodes below ``values`` that are functions of an element and of one of two opposite neighbours, and the same from both sides."""
    places = {read: own for read in reads_of(*values) if (own := _places(read)) is not None}
    there = {(read.tensor, own) for read, own in places.items()}
    both = {
        r
        for r, p in places.items()
        if any(n.distance for n in p) and (r.tensor, tuple(n.opposite for n in p)) in there
    }
    if not both:
        return frozenset()
    found: set[Expr] = set()
    below: dict[Expr, frozenset[Expr]] = {}
    for node in value_nodes(*values):
        of = [below[child] for child in operands(node)]
        below[node] = read = frozenset({node}) if isinstance(node, Read) else frozenset().union(*of)
        if (
            isinstance(node, Call)
            and len(read) == 2
            and len(read & both) == 1
            and _is_same_turned(node, read)
        ):
            found.add(node)
    return frozenset(found)


def _is_same_turned(node: Expr, reads: frozenset[Expr]) -> bool:
    """Whether ``node`` is the same function of its two reads, of one tensor, in the other order."""
    first, second = reads
    if not isinstance(first, Read) or not isinstance(second, Read) or first.tensor is not second.tensor:
        return False
    return with_even_functions(substitute(node, {first: second, second: first})) is with_even_functions(node)


def _places(read: Read) -> Places | None:
    """Which neighbour of its own position an element is, in each axis of the tensor; None where an index is something else."""
    found = [neighbour(i, e) for i, e in zip(read.indices, read.tensor.shape, strict=True)]
    return None if any(n is None for n in found) else tuple(n for n in found if n is not None)


class Shared(Compute):
    """What several contributions to a tensor have in common, at the points of the definition."""

    __slots__ = ()


_parts: ContextVar[dict[Hashable, Shared] | None] = ContextVar("_parts", default=None)
_CANONICAL = tuple(Axis(f"p{n}", 0, 2**40) for n in range(8))


@contextmanager
def one_of_equal_parts() -> Iterator[None]:
    """Parts that are equal are one tensor, whichever adjoints they are of: those of the two ends of an edge have the same in common."""
    token = _parts.set({})
    try:
        yield
    finally:
        _parts.reset(token)


def shared_part(name: str, axes: Sequence[Axis], element: Expr) -> Shared:
    """The part with this ``element``, made unless there is an equal one."""
    known = _parts.get()
    if known is None or len(axes) > len(_CANONICAL):
        return Shared(name, axes, element)
    key = substitute(element, dict(zip(axes, _CANONICAL, strict=False))), tuple(a.extent for a in axes)
    if key not in known:
        known[key] = Shared(name, axes, element)
    return known[key]


def points_of(parts: Sequence[Contribution], axes: Sequence[Axis]) -> Sequence[Axis]:
    """The axes of the points at which ``parts`` stand: ``axes``, of the definition, or those of its sum as well, if each point passes on to elements of its own."""
    own = parts[0].axes if parts else axes
    each = all(isinstance(p.read, Read) and set(own) <= set(free_axes(p.read)) for p in parts)
    from_zero = all(known(a.lo) == 0 for a in own)
    return own if each and from_zero and may_be_held(own, "float32") else axes


def with_shared(parts: Sequence[Contribution], axes: Sequence[Axis], name: str) -> list[Contribution]:
    """``parts`` in terms of what they have in common; as they are where that is little, or where sums are around them."""
    nodes = postorder(*(part.value for part in parts))
    plain = all(identical(part.axes, axes) and part.where is TRUE for part in parts)
    # the value of a contribution to an own reduction may stand at points of the reduction, too
    over_axes = {node for node in nodes if isinstance(node, Axis)} <= set(axes)
    if (
        len({part.read for part in parts}) < 2
        or not plain
        or not over_axes
        or any(isinstance(n, Reduce) for n in nodes)
    ):
        return list(parts)
    table: dict[Expr, Read] = {}
    partial: set[Tensor] = (
        set()
    )  # those that are zero where conditions exclude them, which nothing is divided by there
    values = [part.value for part in parts]
    points = prod(extent_of(axis.extent) for axis in axes)
    for node in _common(values, mirrored(values) | _of_fewer_points(values, axes), points):
        body = substitute(node, table)
        along = [a for a in axes if among(a, free_axes(body))]
        own = tuple(Axis(a.name, 0, a.hi) for a in along)
        element = substitute(body, dict(zip(along, own, strict=True)))
        is_partial = any(r.tensor in partial for r in reads_of(element))
        if is_partial or not reads_inside(own, element):
            guards = conjunction(_around(node, values, along))
            guarded = call(SELECT, guards, body, cast(as_expr(0), body.dtype))
            element = substitute(guarded, dict(zip(along, own, strict=True)))
            is_partial = guards is not TRUE
        if reads_inside(own, element):
            table[node] = Read(shared_part(f"{name}_{len(table)}", own, element), along)
            partial |= {table[node].tensor} if is_partial else set()
    return [replace(part, value=substitute(part.value, table)) for part in parts] if table else list(parts)


def _around(node: Expr, values: Sequence[Expr], along: Sequence[Axis]) -> list[Expr]:
    """The conditions on positions ``along`` axes that are around ``node`` wherever it stands in ``values``: nothing reads it where they do not hold."""
    held: dict[Expr, set[Expr]] = {value: set() for value in values}
    for parent in reversed(postorder(*values)):
        own = held.get(parent)
        if own is None or parent is node or not isinstance(parent, Call):
            continue
        test = parent.args[0] if parent.op is SELECT else None
        chosen = (set(), {*conjuncts(test)}, {call(NOT, test)}) if test is not None else ()
        for n, child in enumerate(parent.args):
            there = own | chosen[n] if chosen else own
            held[child] = held[child] & there if child in held else there
    found = (c for c in held.get(node, ()) if is_decidable(c) and {*free_axes(c)} <= {*along})
    return sorted(found, key=text)


def _of_fewer_points(values: Sequence[Expr], axes: Sequence[Axis]) -> frozenset[Expr]:
    """What does not depend on all ``axes``, or is the same for several positions, so that it is computed at few points, wherever it stands: powers of known weights."""
    most = prod(map(extent_of, (a.extent for a in axes))) // FAR_FEWER
    nodes = value_nodes(*values)
    few = frozenset(n for n in nodes if prod(extent_of(a.extent) for a in free_axes(n)) <= most)
    repeated: dict[Expr, bool] = {}  # of what reads something
    for node in nodes:
        below = [repeated[child] for child in operands(node) if child in repeated]
        if isinstance(node, Read):
            repeated[node] = is_repeated(node.indices)
        elif below:
            repeated[node] = all(below)
    return few.union(n for n, own in repeated.items() if own)


def _common(values: Sequence[Expr], anyway: frozenset[Expr], points: int) -> list[Expr]:
    """The nodes that stand in several of ``values``, at ``points`` each, and in something that stands in fewer; those within others first.

    Those of which most is computed ``anyway`` do not count.
    """
    users: dict[Expr, int] = {}  # the values that a node stands in, as bits
    parents: dict[Expr, list[Expr]] = {}
    for n, value in enumerate(values):
        for node in value_nodes(value):
            users[node] = users.get(node, 0) | 1 << n
    if len(users) > PLACES:
        return []
    for node in users:
        for child in operands(node):
            parents.setdefault(child, []).append(node)
    chosen: dict[Expr, None] = {}
    for node in value_nodes(*values):
        several = users[node].bit_count()
        if several < 2 or not isinstance(node, Call) or node.weak or not dtypes.is_inexact(node.dtype):
            continue
        on_edge = node not in parents or any(users[parent] != users[node] for parent in parents[node])
        if on_edge and node not in anyway and _gains(node, anyway.union(chosen), several - 1, points):
            chosen[node] = None
    return list(chosen)


def _gains(node: Expr, known: Collection[Expr], again: int, points: int) -> bool:
    """Whether ``node``, which is computed ``again`` as often without the ``known`` ones, is worth a tensor: one more loop for a dear function needs many points."""
    own = operations(node, known)
    if own < WORTH_A_TENSOR or own * again < MANY_OPERATIONS:
        return False
    if own * again * points >= FUNCTION * MANY_ELEMENTS:
        return True
    with taking(ALIKE):
        return operations(node, known) * again >= MANY_OPERATIONS
