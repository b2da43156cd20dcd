"""What a nonlinear function in a step is taken of, where a product of matrices with a state is part of it, as a state: the gates of a cell, before their function.

    c[t] = sigmoid(x[t] + U h[t - 1]) * ...     ->     p[t] = x[t] + U h[t - 1],   c[t] = sigmoid(p[t]) * ...

Derivatives read it. A loop stacks a state where something reads it, and the adjoint of one is computed where the loop from the other end makes it; what is between states is
computed again from them, by as many products as the loop has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import Axis, Call, Expr, Read, Reduce, cast
from jaxte.lang.identity import among, place_of
from jaxte.lang.operators import ADD, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.walk import free_axes, postorder, substitute
from jaxte.sets.intervals import extent
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.shapes import as_extent
from jaxte.tensors.tensor import Compute, Tensor

_LINEAR = (ADD, SUBTRACT, NEGATIVE, SELECT)
_LONG = 16  # terms of a sum, which takes longer than to write it and to read it again


def with_products(group: Recurrence) -> Recurrence:
    """``group`` with such states."""
    states: list[State] = []
    made: list[Compute] = []
    places: list[int] = []
    definitions = []
    inside = frozenset(group.inside)
    for definition, place in zip(group.definitions, group.places, strict=True):
        table: dict[Expr, Expr] = {}
        for own in _arguments(definition, inside):
            axes = [a for a in definition.axes if a in free_axes(own)]
            if not among(definition.axes[place], axes):
                continue
            number = f"_{len(table)}" if table else ""
            name = f"{definition.name}_pre{number}"
            state = State(name, tuple(as_extent(a.extent) for a in axes), own.dtype)
            states.append(state)
            made.append(Compute(name, tuple(axes), cast(own, own.dtype)))
            places.append(place_of(definition.axes[place], axes))
            table[own] = Read(state, axes)
        definitions.append(definition.renewed(substitute(definition.body, table)) if table else definition)
    if not states:
        return group
    return Recurrence(
        (*group.states, *states), (*definitions, *made), (*group.places, *places), group.reverse
    )


def _arguments(definition: Compute, inside: frozenset[Tensor]) -> list[Expr]:
    """What nonlinear functions are taken of in a body, with a long product among its terms; not that of which the body is the function, whose slope its value has."""
    linear = {n for n in postorder(definition.body) if _is_product(n, definition.axes, inside)}
    found: dict[Expr, None] = {}
    for node in postorder(definition.body) if linear else ():
        if not isinstance(node, Call):
            continue
        own = [a for a in node.children if a in linear]
        if own and node.op in _LINEAR and not (node.op is SELECT and node.children[0] in linear):
            linear.add(node)
        elif node is not definition.body or len(node.children) > 1:
            found.update(dict.fromkeys(a for a in own if is_inexact(a.dtype)))
    return list(found)


def _is_product(node: Expr, axes: Sequence[Axis], inside: frozenset[Tensor]) -> bool:
    """Whether ``node`` reads, at ``axes``, a long sum of products of which a state is a factor."""
    if not isinstance(node, Read) or not isinstance(node.tensor, Compute) or isinstance(node.tensor, State):
        return False
    if any(not isinstance(i, Axis) or not among(i, axes) for i in node.indices):
        return False
    body = node.tensor.body
    if not isinstance(body, Reduce) or body.reducer.name != "sum" or node.tensor not in inside:
        return False
    return prod(map(extent, body.axes)) >= _LONG
