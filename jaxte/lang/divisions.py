"""Quotients and remainders of positions as values: what stands for ``e // n`` and ``e % n`` in an expression, asked here alone.

>>> i = te.reduce_axis((0, 8), "i")
>>> [(d.number.name, d.base) for d in divisions(2 * (i // 4) + i % 4)]
[('i', 4), ('i', 4)]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from jaxte.lang.expr import Call, Const, Expr
from jaxte.lang.operators import FLOOR_DIVIDE, MOD, Op
from jaxte.lang.walk import all_of


@dataclass(frozen=True, slots=True, match_args=False)
class Division:
    """What is left of a number, or how often another one goes into it.

    Attributes:
        node: as it stands in the expression.
        number: what is divided.
        divisor: by what.
    """

    node: Call
    number: Expr
    divisor: Expr

    __match_args__ = ("number", "base")

    @property
    def base(self) -> int | None:
        """The divisor, where it is a number."""
        divisor = self.divisor
        return int(divisor.value) if isinstance(divisor, Const) and isinstance(divisor.value, int) else None


class Quotient(Division):
    """``number // divisor``."""

    __slots__ = ()


class Remainder(Division):
    """``number % divisor``."""

    __slots__ = ()


def division(expr: Expr) -> Division | None:
    """The :class:`Quotient` or :class:`Remainder` that ``expr`` is; None if it is something else."""
    kind = _KINDS.get(expr.op) if isinstance(expr, Call) else None
    return None if kind is None else kind(expr, *expr.children)  # type: ignore[arg-type]


_KINDS: dict[Op, type[Division]] = {FLOOR_DIVIDE: Quotient, MOD: Remainder}


def divisions(*roots: Expr) -> list[Division]:
    """All that are in ``roots``, each before what it stands in."""
    return list(_divisions(roots))


@lru_cache(maxsize=4096)
def _divisions(roots: tuple[Expr, ...]) -> tuple[Division, ...]:
    nodes = [node for node in all_of(Call, *roots) if node.op in _KINDS]
    return tuple([_KINDS[node.op](node, *node.args) for node in nodes])
