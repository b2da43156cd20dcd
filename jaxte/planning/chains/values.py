"""Parts of the bodies of a recurrence as states of it: their names, what they are defined by, and what reads them.

    h[t, i] = w[t] * tanh(h[t - 1, i] + h[t - 1, i - 1])     ->     v[t, i] = tanh(h[t - 1, i] + h[t - 1, i - 1]),   h[t, i] = w[t] * v[t, i]

What no element of a tensor depends on is no part of a state either, or its adjoint would pass on zeros times slopes that may be infinite: a part is a state where the
tensor is made of it at all of its elements, or under the same condition.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod

from jaxte.lang.dtypes import is_complex, is_inexact
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, as_expr, call, cast
from jaxte.lang.graphs import among, identical
from jaxte.lang.operators import ADD, DIVIDE, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.scalars.rows import OPS
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.intervals import known
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.shapes import as_extent
from jaxte.tensors.tensor import Compute, Tensor

_CHOICES = (MAXIMUM, MINIMUM, OPS["relu"], OPS["relu6"])  # an operand may count for nothing
_SUMS = (ADD, SUBTRACT, NEGATIVE)


@dataclass(frozen=True, eq=False)
class Value:
    """A part of the body of a tensor, as a tensor of its own.

    Attributes:
        tensor: the one that it is part of.
        node: the part.
        places: the clock, and the other axes of ``node``.
        axes: over which it is defined, in place of these.
        nodes: what is read of it, with the places.
        test: what the tensor is made of it under, over ``axes``.
    """

    tensor: Compute
    node: Expr
    places: tuple[Axis, ...]
    axes: tuple[Axis, ...]
    nodes: dict[Expr, tuple[Expr, ...]]
    test: Expr = TRUE

    @property
    def points(self) -> int:
        return prod(known(a.hi) or 1 for a in self.axes)

    def body(self, node: Expr) -> Expr:
        """``node``, in place of the part, over ``axes``."""
        found = substitute(node, dict(zip(self.places, self.axes, strict=True)))
        return found if self.test is TRUE else call(SELECT, self.test, found, cast(as_expr(0), found.dtype))


def value_of(tensor: Compute, node: Expr, clock: Axis) -> Value | None:
    """``node``, a part of the body of ``tensor``, where it may be a state: real numbers over all positions of the ``clock``, which are all needed."""
    if not isinstance(node, Call) or node.op is SELECT or node.weak:
        return None
    if not is_inexact(node.dtype) or is_complex(node.dtype) or not among(clock, free_axes(node)):
        return None
    axes = [a for a in free_axes(node) if a is not clock]
    if any(a.lo is not as_expr(0) for a in axes):
        return None
    own = (Axis(clock.name, 0, clock.hi), *(Axis(a.name, 0, a.hi) for a in axes))
    places = (clock, *axes)
    test = _test_of(tensor)
    if test is not TRUE:
        test = substitute(test, dict(zip(places, own, strict=True)))
        if any(not among(a, own) for a in free_axes(test)):
            return None
    made = Value(tensor, node, places, own, {node: places}, test)
    return made if reads_inside(own, made.body(node)) else None


def needed_parts(tensor: Compute) -> set[Expr]:
    """The parts of its body that ``tensor`` is made of at all elements where it is not zero by its position; of what a choice may leave out, sums of multiples by numbers."""
    found: set[Expr] = set()
    left = [tensor.body.children[1]] if _test_of(tensor) is not TRUE else [tensor.body]
    while left:
        node = left.pop()
        if node in found:
            continue
        found.add(node)
        match node:
            case Reduce(where=where) if where is not TRUE:
                continue
            case Call(op) if op is SELECT:
                left.append(node.children[0])
            case Call(op) if op in _CHOICES:
                found |= {c for c in node.children if _is_sum_of_multiples(c)}
            case _:
                left += node.children
    return found


def _is_sum_of_multiples(node: Expr) -> bool:
    """Whether ``node`` is linear in what it reads, by numbers."""
    match node:
        case Read() | Const():
            return True
        case Call(op, (_, a, b)) if op is SELECT:
            return isinstance(a, Read) and isinstance(b, Read)
        case Call(op, children) if op in _SUMS:
            return all(map(_is_sum_of_multiples, children))
        case Call(op, (a, b)) if op is MULTIPLY or op is DIVIDE:
            own = b if isinstance(a, Const) and op is MULTIPLY else a if isinstance(b, Const) else None
            return own is not None and _is_sum_of_multiples(own)
    return False


def _test_of(tensor: Compute) -> Expr:
    """What ``tensor`` is zero without, by its position."""
    match tensor.body:
        case Call(op, (test, _, other)) if op is SELECT and not reads_of(test) and _is_zero(other):
            return test
    return TRUE


def _is_zero(node: Expr) -> bool:
    match node:
        case Call(op, (Const(0),)):
            return op.name == "cast"
        case Const(0):
            return True
    return False


def merged(values: Sequence[Value], clock: Axis) -> list[Value]:
    """``values`` of one tensor, where functions of the elements at other places are the one of all elements, read there."""
    places = {value: _one_place(value.node, clock) for value in values if value.test is TRUE}
    whole = [value for value, place in places.items() if _is_everywhere(value, place)]
    nodes: dict[Value, dict[Expr, tuple[Expr, ...]]] = {}
    for value in values:
        place = places.get(value, [])
        own = next((w for w in whole if place and w is not value and _is_at(w, value, place)), None)
        if own is None:
            nodes.setdefault(value, {}).update(value.nodes)
        else:
            nodes.setdefault(own, {})[value.node] = (clock, *(index for index, _ in place))
    return [replace(value, nodes=own) for value, own in nodes.items()]


Place = list[tuple[Expr, Expr]]
"""Indices, and the extents that they stay below."""


def _is_everywhere(value: Value, place: Place) -> bool:
    """Whether the elements that ``value`` is made of are all there are, each at its own place."""
    return len(place) == len(value.axes) - 1 and all(
        isinstance(index, Axis) and index.hi is size and index is own
        for (index, size), own in zip(place, value.places[1:], strict=True)
    )


def _is_at(whole: Value, value: Value, place: Place) -> bool:
    """Whether ``value`` is ``whole`` at ``place``."""
    if not identical([size for _, size in place], [a.hi for a in whole.axes[1:]]):
        return False
    at = {axis: index for axis, (index, _) in zip(whole.places[1:], place, strict=True)}
    return substitute(whole.node, at) is value.node


def _one_place(node: Expr, clock: Axis) -> Place:
    """Where all elements are that ``node`` reads; nothing where they are at several places."""
    found: Place = []
    for read in reads_of(node):
        own = [
            (index, as_expr(size))
            for index, size in zip(read.indices, read.tensor.shape, strict=True)
            if any(a is not clock for a in free_axes(index))
        ]
        if own and found and not identical(own, found):
            return []
        found = own or found
    return found if all(not among(clock, free_axes(index)) for index, _ in found) else []


def with_states(group: Recurrence, tensors: Sequence[Compute], values: Sequence[Value]) -> Recurrence:
    """``group``, of which ``tensors`` are all that is computed in a step, with ``values`` as states."""
    states: dict[Value, State] = {}
    for value in values:
        shape = tuple(as_extent(a.extent) for a in value.axes)
        states[value] = State(_name(value, states.values()), shape, value.node.dtype)
    table: dict[Expr, Expr] = {n: Read(states[v], at) for v in values for n, at in v.nodes.items()}
    stands: dict[Tensor, Compute] = {}
    bodies: dict[Value, Expr] = {}
    for tensor in tensors:
        own = dict(table)
        for read in reads_of(tensor.body):
            if isinstance(read.tensor, Compute) and read.tensor.body in table:
                own[read] = substitute(
                    table[read.tensor.body], dict(zip(read.tensor.axes, read.indices, strict=True))
                )
            elif read.tensor in stands:
                own[read] = Read(stands[read.tensor], read.indices)
        for value in values:
            if value.tensor is tensor:
                inner = {n: r for n, r in own.items() if n not in value.nodes}
                bodies[value] = value.body(substitute(value.node, inner))
        body = substitute(tensor.body, own)
        if body is not tensor.body:
            stands[tensor] = tensor.renewed(body)
    made = [Compute(states[v].name, v.axes, bodies[v]) for v in values]
    definitions = [stands.get(t, t) for t in group.definitions]
    return Recurrence(
        (*group.states, *states.values()),
        (*definitions, *made),
        (*group.places, *(0 for _ in made)),
        group.reverse,
    )


def _name(value: Value, others: Collection[State]) -> str:
    assert isinstance(value.node, Call)
    function = "of" if TABLE[value.node.op.name].cheap else value.node.op.name
    name = f"{value.tensor.name}_{function}"
    taken = {s.name for s in others}
    return next(n for n in (name, *(f"{name}_{k}" for k in range(1, len(taken) + 2))) if n not in taken)
