"""Two operands and a result whose dimensions have roles: a letter for each position on a line, and the axis for every other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import Axis, Expr
from jaxte.lang.graphs import among
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.broadcasting import finished
from jaxte.lower.code.lettered_array import Shaped, letters_of, shaped
from jaxte.lower.code.spec import OfTwo

Roles = tuple[str | Axis, ...]


class OfLines(OfTwo):
    """A specification by roles, whose result is reshaped to ``shape`` and broadcast to ``broadcast``, None for nothing."""

    __slots__ = ()
    lhs_roles: Roles
    rhs_roles: Roles
    out: Roles
    shape: tuple[Expr, ...] | None
    broadcast: tuple[Expr, ...] | None

    @property
    def axes(self) -> list[Axis]:
        """Those of the result, then those of the operands that are summed over."""
        return axes_in(self.out, self.lhs_roles, self.rhs_roles)

    @property
    def extents(self) -> dict[Axis, int]:
        return {a: int(a.extent) for a in self.axes}

    @property
    def groups(self) -> int:
        """How many products of matrices there are: the elements of the axes that are in both operands and the result."""
        every = (self.out, self.lhs_roles, self.rhs_roles)
        return prod(e for a, e in self.extents.items() if all(among(a, own) for own in every))

    def lettered(self, operands: Sequence[Node], reserved: str) -> tuple[Shaped, Shaped, str]:
        """The operands, and the letters of the result. Axes have no letter of those ``reserved``."""
        letters = letters_of(self.axes, reserved)
        out = "".join(letters[r] if isinstance(r, Axis) else r for r in self.out)
        lhs = shaped(self.lhs, self.lhs_roles, operands[0], letters)
        return lhs, shaped(self.rhs, self.rhs_roles, operands[1], letters), out

    def finished(self, result: Node, operands: Sequence[Node]) -> Node:
        return finished(result, self.shape, self.broadcast, operands[2] if self.scale else None)


def axes_in(*roles: Roles) -> list[Axis]:
    return [r for r in dict.fromkeys(r for own in roles for r in own) if isinstance(r, Axis)]
