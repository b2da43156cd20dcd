"""A sum that is multiplied by numbers as the sum of what is: ``-(2 * jnp.sum(x, axis=0))`` is ``jnp.sum(-(2 * x), axis=0)``.

XLA for GPUs fuses a sum with what it is taken of and with nothing that reads it, so that a number outside of it is a kernel. What is computed of a sum and of other
arrays is a kernel in any case, which takes the number with it.
"""

from __future__ import annotations

from dataclasses import replace

from jaxte.lang.operators import DIVIDE, MULTIPLY, NEGATIVE
from jaxte.lower.arrays.elementwise import Apply, Number
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.steps import Transpose
from jaxte.lower.arrays.views import View

ROUNDED_ALIKE = (
    "float32",
    "float64",
)  # narrower elements would be rounded, and leave their range, before they are added
_LARGEST = 1e6  # of numbers: larger ones, and the inverse of these, might take an element out of its range


def number_within(node: Node) -> Node | None:
    """``node`` with its numbers within the sum that it is a multiple of; None where it is none."""
    outer: list[Node] = []
    total = node
    while (inner := _scaled(total)) is not None:
        outer.append(total)
        total = inner
    if not any(isinstance(n, Apply) for n in outer) or node.dtype not in ROUNDED_ALIKE:
        return None
    if not isinstance(total, Reduced) or total.function != "sum" or total.array.kind != node.kind:
        return None
    array = total.array
    for step in reversed(outer):
        if isinstance(step, Apply):
            array = replace(step, args=tuple(a if isinstance(a, Number) else array for a in step.args))
    result: Node = replace(total, array=array)
    for step in reversed(outer):
        if isinstance(step, View):
            result = replace(step, array=result)
    return result


def _scaled(node: Node) -> Node | None:
    """What ``node`` has in another order, or multiplied by a number."""
    if isinstance(node, View):
        return node.array if isinstance(node.step, Transpose) else None
    if not isinstance(node, Apply) or node.op not in (NEGATIVE, MULTIPLY, DIVIDE):
        return None
    others = [a for a in node.args if not isinstance(a, Number)]
    numbers = [abs(a.value) for a in node.args if isinstance(a, Number)]
    if len(others) != 1 or (node.op is DIVIDE and others[0] is not node.args[0]):
        return None
    return others[0] if all(1 / _LARGEST < n < _LARGEST for n in numbers) else None
