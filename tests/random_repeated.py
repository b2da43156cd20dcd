"""Random bodies that use what they have computed again: operands of choices by their own values, factors of themselves, parts of other parts.

Bodies of :mod:`tests.random_expressions` are trees, in which a node has one use; the adjoint of a node with several is the sum over its uses, and what is known
of one use, as that a branch of a choice has the value of the tensor, holds for no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from tests.random_expressions import Writer


@dataclass(frozen=True)
class Repeating(Writer):
    """A writer whose parts are parts of what it wrote before, half of the time."""

    made: dict[tuple[Axis, ...], list[Expr]] = field(default_factory=dict)

    def scalar(self, scope: Sequence[Axis], depth: int, points: int) -> Expr:
        known = self.made.setdefault(tuple(scope), [])
        if known and self.rarely(3):
            return self.choices.among(known)
        found = super().scalar(scope, depth, points)
        if depth > 0 and self.often():
            found = self.of_itself(found)
        known.append(found)
        return found

    def of_itself(self, e: Expr) -> Expr:
        """A function that reads ``e`` several times."""
        other = self.read(()).chosen() if self.rarely(4) else te.const(0.25, e.dtype)
        match self.among("leaky", "gate", "value", "ratio", "clipped", "power", "smooth", "sides"):
            case "leaky":
                return te.select(e >= 0, e, 0.3 * e)
            case "gate":
                return e * te.sigmoid(e)
            case "value":
                bounded = te.tanh(e)
                return te.select(e > 0.1137, te.exp(-bounded), bounded) * other
            case "ratio":
                return e / (1.0 + te.abs(e)) - other
            case "clipped":
                return te.minimum(te.maximum(e, -1.25), te.maximum(e * 0.5, other))
            case "power":
                return e * e * other + e
            case "smooth":
                return te.select(te.abs(e) < 1.0, 0.5 * e * e, te.abs(e) - 0.5)
        return te.select(e > 0.1137, te.sqrt(te.abs(e) + 0.5), -te.exp(te.minimum(e, 2.0))) + other
