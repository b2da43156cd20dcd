"""Parts of an array that differ in one position alone are written once, in a loop over it, where they would make a long line.

    jnp.stack([jnp.sum(w * (x[:, k, None] - y[None, :, k]), axis=1) for k in range(3)], axis=1)

stands for what has the same text three times, with 0, 1 and 2 for ``k``. The loop runs when the program is traced: XLA sees the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from jaxte.lang.expr import Axis, Const, Expr, Reducer
from jaxte.lower.arrays.loops import Each, Joined, Loop, Stacked, loop
from jaxte.lower.arrays.node import Node, names_of, nodes_below, replaced
from jaxte.lower.body.statements import LONGEST_LINE
from jaxte.sets.affine import Linear, from_linear

_FEWEST = 3  # parts


def with_alike_parts_in_loops(source: Node, text_of: Callable[[Node], str]) -> Node:
    """``source`` with the parts of stacks and concatenations in loops, where its line is long."""
    if source.kinds.isdisjoint((Stacked, Joined)):
        return source
    joined = [node for node in nodes_below(source) if isinstance(node, (Stacked, Joined))]
    whole = [node for node in joined if len(node.parts) >= _FEWEST]
    if not whole or len(text_of(source)) <= LONGEST_LINE:
        return source
    table: dict[Node, Node] = {}
    for node in whole:
        each = _each(node.parts)
        if each is not None:
            table[node] = replace(node, parts=(each,))
    return replaced(source, table)


def _each(parts: tuple[Node, ...]) -> Each | None:
    """``parts`` as one loop; None where they differ in more than positions that are evenly spaced."""
    own = loop("k", len(parts))
    try:
        element = _common(parts, own)
    except _DifferentError:
        return None
    return None if element is parts[0] else Each(element, (own,))


class _DifferentError(Exception):
    """Parts that are not the same but for a position."""


def _common(values: Sequence[Any], own: Loop) -> Any:
    """What all ``values`` are, with the axis of the loop where they differ."""
    first = values[0]
    if all(v is first for v in values):
        return first
    if any(type(v) is not type(first) for v in values):
        raise _DifferentError
    if isinstance(first, Const):
        return _position([v.value for v in values], own.axis)
    if isinstance(first, tuple):
        if any(len(v) != len(first) for v in values):
            raise _DifferentError
        return tuple([_common(items, own) for items in zip(*values, strict=True)])
    if is_dataclass(first) and not isinstance(first, (type, Expr, Reducer)):
        fields = [[getattr(v, name) for v in values] for name in names_of(first)]
        kind: Any = type(first)
        return kind(*[_common(items, own) for items in fields])
    if isinstance(first, Expr) or any(v != first for v in values):
        raise _DifferentError
    return first


def _position(values: Sequence[Any], axis: Axis) -> Expr:
    """Evenly spaced integers as a form of the position in the loop."""
    step = values[1] - values[0] if all(type(v) is int for v in values) else 0
    if not step or any(v != values[0] + n * step for n, v in enumerate(values)):
        raise _DifferentError
    return from_linear(Linear({axis: step}, values[0]))
