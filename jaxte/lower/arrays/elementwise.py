"""Nodes that are made of no others: names, numbers, sizes, constant arrays, positions.

Nodes that act on each element by itself, and what changes no value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxte.lang import dtypes
from jaxte.lang.dtypes import Kind, scalar_kind
from jaxte.lang.expr import Const, Expr
from jaxte.lang.expr import Scalar as PythonNumber
from jaxte.lang.operators import COMPARISONS, SELECT, Op
from jaxte.lower.arrays.kinds import Converted, LikeArray, OfExtents, Scalar, Stated
from jaxte.lower.arrays.node import Node, Shape, broadcast_shape
from jaxte.sets.affine import normal
from jaxte.sets.intervals import plus


@dataclass(frozen=True, eq=False)
class Name(Stated):
    """A parameter or a value that a statement has named; ``extents`` is None for a tuple of arrays."""

    identifier: str
    extents: Shape | None = None
    own_kind: Kind = ("", False)


@dataclass(frozen=True, eq=False)
class Number(Scalar):
    """A number of Python, which takes the dtype of what it meets."""

    value: PythonNumber

    @property
    def kind(self) -> Kind:
        return scalar_kind(self.value)


@dataclass(frozen=True, eq=False)
class Size(Scalar):
    """An integer made of sizes, known when the code is traced."""

    extent: Expr

    @property
    def kind(self) -> Kind:
        return "int32", True


@dataclass(frozen=True, eq=False)
class Typed(Scalar, Converted):
    """A Python number as a scalar of a JAX dtype."""

    number: Node
    own_dtype: str


@dataclass(frozen=True, eq=False)
class Full(OfExtents, Converted):
    """One number everywhere."""

    extents: Shape
    number: Node
    own_dtype: str


Numbers = PythonNumber | tuple["Numbers", ...]


@dataclass(frozen=True, eq=False)
class Literal(OfExtents, Converted):
    """An array of numbers that are written out; ``numbers`` are those of each row, nested."""

    extents: Shape
    numbers: Numbers
    own_dtype: str


@dataclass(frozen=True, eq=False)
class Arange(Node):
    """``start, start + step, ...`` below ``stop``; without a dtype, in JAX's default integers."""

    start: int
    stop: Expr
    step: int = 1
    own_dtype: str = ""

    @property
    def shape(self) -> Shape:
        towards = 1 if self.step > 0 else -1
        span = plus(self.stop, -self.start) if self.step > 0 else plus(self.start, normal(-self.stop))
        return (normal((span + (abs(self.step) - 1)) // abs(self.step)) if self.step != towards else span,)

    @property
    def kind(self) -> Kind:
        return self.own_dtype or "int32", False


_GREATEST = {"uint32": 2**31 - 1, "uint64": 2**63 - 1}  # that JAX takes as numbers of Python


def number(value: PythonNumber, dtype: str = "") -> Node:
    """A Python number, or one of ``dtype`` where JAX takes no such number of Python."""
    if type(value) is int and value > _GREATEST.get(dtype, value):
        return Typed(Number(value), dtype)
    return Number(value)


def size(extent: Expr) -> Node:
    """An extent as an operand: a number, where it is known."""
    return Number(extent.value) if isinstance(extent, Const) else Size(extent)


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


def full_of(shape: tuple[Expr, ...], number: Node, dtype: str) -> Node:
    """An array of one number, a scalar where it has no dimension."""
    return Full(shape, number, dtype) if shape else Typed(number, dtype)
