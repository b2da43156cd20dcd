"""Nodes that put the elements of an array in other places: slices, zeros around them, other shapes, copies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxte.lang.expr import Expr
from jaxte.lower.arrays.kinds import LikeArray, OfArray, OfExtents
from jaxte.lower.arrays.node import Node, Shape
from jaxte.lower.arrays.steps import Step, shape_after
from jaxte.sets.intervals import plus


@dataclass(frozen=True, eq=False)
class View(OfArray):
    """The elements of an array in other places: a slice, zeros around it, another shape or order, copies."""

    array: Node
    step: Step

    @cached_property
    def shape(self) -> Shape:
        return shape_after(self.step, self.array.shape)


@dataclass(frozen=True, eq=False)
class Broadcast(OfArray, OfExtents):
    """An array repeated to a shape."""

    array: Node
    extents: Shape


@dataclass(frozen=True, eq=False)
class Padded(OfArray):
    """``fill`` before and after each dimension."""

    array: Node
    widths: tuple[tuple[Expr, Expr], ...]
    fill: Node

    @cached_property
    def shape(self) -> Shape:
        own = zip(self.array.shape, self.widths, strict=True)
        return tuple(plus(extent, *pair) for extent, pair in own)


@dataclass(frozen=True, eq=False)
class Spread(OfArray):
    """``fill`` before, behind and between the elements of each dimension; a negative number cuts elements off."""

    array: Node
    fill: Node
    widths: tuple[tuple[Expr, Expr, int], ...]

    @cached_property
    def shape(self) -> Shape:
        found = []
        for extent, (before, behind, between) in zip(self.array.shape, self.widths, strict=True):
            inside = plus(extent, *[plus(extent, -1)] * between) if between else extent
            found.append(plus(inside, before, behind))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Flip(LikeArray):
    """An array the other way round in ``axes``."""

    array: Node
    axes: tuple[int, ...]
