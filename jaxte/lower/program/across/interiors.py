"""What surrounds an array with zeros is that array, too: who reads it later reads the interior of what has the zeros.

    u3_padded = jnp.pad(u3, 1);   u4 = f(u3_padded) - u2;   u4_padded = jnp.pad(u4, 1);   u5 = f(u4_padded) - u3_padded[1:65, 1:65]

A step of a wave reads slices of the step before, which has zeros around it, and the step before that as it is. XLA on the CPU writes the padded array, and computes
what is read as it is again from what it is made of: of slices of the padded one before, and of the step two before, which it computes again, and so on. For 30 steps
it counts 72 operations an element for 9, and 64 x 64 elements take seven times as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from jaxte.lang.expr import ZERO, Expr
from jaxte.lower.arrays.elementwise import Kept, Name
from jaxte.lower.arrays.node import Node, nodes_below, rewritten
from jaxte.lower.arrays.views import ALL, Index, Pad, Range, View
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.sets.intervals import plus


def with_interiors(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """``statements`` in which arrays made of several slices are read where they stand within zeros, once they do."""
    times = Counter(s.target for s in statements)
    made: dict[str, Statement] = {}
    inside: dict[str, Node] = {}
    found: list[AnyStatement] = []
    for own in statements:
        if isinstance(own, Statement):
            padded = _padded(own.source)
            if padded is None and inside:
                own = replace(own, source=rewritten(own.source, lambda n: _within(n, inside)))
            elif padded is not None and times[own.target] == 1:
                name, pad = padded
                if times[name.identifier] == 1 and _is_of_slices(made.get(name.identifier), made):
                    whole = Name(own.target, own.source.shape, own.source.kind)
                    inside.setdefault(
                        name.identifier, apply_steps(whole, [Index(_interior(pad, name.shape))])
                    )
            made[own.target] = own
        found.append(own)
    return found


def _within(node: Node, inside: dict[str, Node]) -> Node:
    return inside.get(node.identifier, node) if isinstance(node, Name) else node


def _padded(source: Node) -> tuple[Name, Pad] | None:
    """What ``source`` surrounds with zeros, kept apart or not."""
    array = source.array if isinstance(source, Kept) else source
    if isinstance(array, View) and isinstance(array.step, Pad) and array.step.mode == "zeros":
        return (array.array, array.step) if isinstance(array.array, Name) else None
    return None


def _interior(pad: Pad, shape: Sequence[Expr]) -> tuple[Range, ...]:
    return tuple(
        ALL if low is ZERO and high is ZERO else Range(None if low is ZERO else low, plus(low, extent))
        for (low, high), extent in zip(pad.widths, shape, strict=True)
    )


def _is_of_slices(own: Statement | None, made: dict[str, Statement]) -> bool:
    """Whether several slices of one array are in what ``own`` assigns, or in the values of its tensor that have names."""
    if own is None or isinstance(own.source, Kept):
        return False
    scope, slices, seen = own.scope, Counter[str](), {own.target}
    wanted = [own.source]
    while wanted:
        for node in nodes_below(wanted.pop()):
            if isinstance(node, View) and isinstance(node.step, Index) and isinstance(node.array, Name):
                slices[node.array.identifier] += 1
            part = made.get(node.identifier) if isinstance(node, Name) else None
            if (
                part is not None
                and part.scope == scope
                and part.target not in seen
                and not isinstance(part.source, Kept)
            ):
                seen.add(part.target)
                wanted.append(part.source)
    return any(times > 1 for times in slices.values())
