"""Nodes that act on each element by itself, and what changes no value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxte.lang import dtypes
from jaxte.lang.dtypes import Kind
from jaxte.lang.operators import COMPARISONS, SELECT, Op
from jaxte.lower.arrays.kinds import Converted, LikeArray
from jaxte.lower.arrays.node import Node, Shape, broadcast_shape


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """An operation of the scalar table at every element."""

    op: Op
    args: tuple[Node, ...]

    @cached_property
    def shape(self) -> Shape:
        return broadcast_shape([a.shape for a in self.args])

    @cached_property
    def kind(self) -> Kind:
        args = self.args[1:] if self.op is SELECT else self.args
        if self.op in COMPARISONS or self.op.result == "bool":
            return "bool", False
        met = dtypes.promote(a.kind for a in args)
        if self.op.result == "inexact":
            return dtypes.to_inexact(met)
        return (dtypes.real_dtype(met[0]), met[1]) if self.op.result == "real" else met


@dataclass(frozen=True, eq=False)
class Cast(Converted):
    """An array in another dtype."""

    array: Node
    own_dtype: str

    @property
    def shape(self) -> Shape:
        return self.array.shape


@dataclass(frozen=True, eq=False)
class Kept(LikeArray):
    """An array that is not fused into what reads it ("barrier"), that a call keeps apart ("apart"), or without a tangent ("constant").

    Where readers make arrays of other shapes alone, a call as it is will do ("first"): see docs/design/views.md.
    """

    array: Node
    how: str = "barrier"
