"""Equations of a program: what a statement writes, or what an array holds, over axes; they read each other, in circles too."""

from __future__ import annotations

from dataclasses import dataclass

from jaxte.frontends.loops.program import Statement
from jaxte.lang.expr import TRUE, Axis, Expr
from jaxte.tensors.shapes import as_extent
from jaxte.tensors.tensor import Placeholder


class Stand(Placeholder):
    """What stands in expressions for the tensor of an equation."""

    __slots__ = ("equation",)

    def __init__(self, equation: Equation) -> None:
        super().__init__(equation.name, tuple(as_extent(a.extent) for a in equation.axes), equation.dtype)
        self.equation = equation


@dataclass(eq=False)
class Equation:
    """``name[axes] = body``, within ``domain``; the body reads other equations by their :class:`Stand`.

    Attributes:
        statement: that it is the value of; None for what elements of an array hold.
        counters: of the loops around it.
    """

    name: str
    axes: tuple[Axis, ...]
    domain: Expr
    dtype: str
    statement: Statement | None = None
    body: Expr = TRUE

    def __post_init__(self) -> None:
        self.stand = Stand(self)

    def says(self, body: Expr) -> None:
        """Its body is ``body`` from here on: an equation may read others that read it."""
        self.body = body
