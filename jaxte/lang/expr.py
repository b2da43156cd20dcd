"""The nodes that definitions are made of: sizes, axes, reads and reductions, beside constants and operations; conjunctions of conditions.

Index expressions are ordinary nodes whose leaves are axes, sizes and integers; ``jaxte.sets.affine`` reads them, ``jaxte.lang.walk`` has
the walks over nodes, and ``jaxte.lang.arithmetic`` makes those of operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol

from jaxte.lang.arithmetic import Call, apply, call, cast, narrowed
from jaxte.lang.dtypes import SHORT_INTEGERS
from jaxte.lang.graphs import free_in, leaves
from jaxte.lang.interning import Scalar, intern, new_node
from jaxte.lang.nodes import FALSE, ONE, TRUE, ZERO, Const, Expr, ScalarLike, as_expr, show_with
from jaxte.lang.operators import AND, OR, SUBTRACT

__all__ = [
    "Axis", "Call", "Const", "Expr", "FALSE", "ONE", "Read", "Reduce", "Reducer", "Scalar", "ScalarLike",
    "Symbol", "TRUE", "TensorLike", "Var", "ZERO", "apply", "as_expr", "call", "cast", "conjunction",
    "alternatives", "conjuncts", "narrowed", "show_with", "widened",
]  # fmt: skip

_reduces = attrgetter("reduces")


def widened(expr: Expr) -> Expr:
    """``expr``, an int32 if it is a shorter integer: what exact arithmetic on positions is done with."""
    return cast(expr, "int32") if expr.dtype in SHORT_INTEGERS else expr


class TensorLike(Protocol):
    """What a read needs of a tensor; ``jaxte.tensors.tensor.Tensor`` is the class."""

    name: str
    dtype: str
    shape: tuple[Any, ...]


class Var(Expr):
    """A symbolic size, an integer of at least ``least`` known when the code runs; equal arguments make the same size.

    Attributes:
        given: conditions that hold of it and of other sizes, each of which stands there as ``Var(name)``, itself included.
    """

    __slots__ = ("given", "least", "name")
    __match_args__ = ("name",)
    name: str
    least: int
    given: tuple[Expr, ...]

    def __new__(cls, name: str, least: int = 1, given: tuple[Expr, ...] = ()) -> Var:
        fields = {"name": name, "least": least, "given": given, "dtype": "int32", "weak": True}
        return intern(cls, (name, least, given), fields)

    def __reduce__(self) -> Any:
        return Var, (self.name, self.least)


class Axis(Expr):
    """A variable with the half-open range ``lo <= axis < hi``; every Axis made is a different one.

    Attributes:
        ends: the ends of a range that depends on other axes, each where it is another than ``lo`` or ``hi``.
        given: what else was stated of the axis.
        extent: how many values it takes.
        is_open: whether the range is not known yet.
    """

    __slots__ = ("ends", "extent", "given", "hi", "lo", "name", "reduction")
    __match_args__ = ("name", "lo", "hi")
    name: str
    lo: Expr
    hi: Expr
    reduction: bool
    given: Expr
    ends: tuple[Expr | None, Expr | None]
    extent: Expr
    is_open = False

    def __new__(
        cls,
        name: str,
        lo: Expr | int,
        hi: Expr | int,
        reduction: bool = False,
        condition: Expr | None = None,
        ends: tuple[Expr | None, Expr | None] = (None, None),
    ) -> Axis:
        low = lo if isinstance(lo, Expr) else as_expr(lo)
        high = hi if isinstance(hi, Expr) else as_expr(hi)
        extent = high if low is ZERO and high.weak and high.dtype == "int32" else call(SUBTRACT, high, low)
        fields = {"name": name, "lo": low, "hi": high, "extent": extent, "reduction": reduction}
        fields |= {"given": TRUE if condition is None else condition, "ends": ends}
        return new_node(cls, {**fields, "dtype": "int32", "weak": True})

    def __reduce__(self) -> Any:
        return Axis, (self.name, self.lo, self.hi, self.reduction, self.given, self.ends)

    @property
    def free(self) -> Mapping[Any, None]:  # type: ignore[override]
        return {self: None}  # held, it would be a cycle

    @property
    def condition(self) -> Expr:
        """What holds of the axis beyond its range."""
        first, stop = self.ends
        parts = [self.given] if first is None else [self.given, first <= self]
        return conjunction(parts if stop is None else [*parts, self < stop])


class Symbol(Expr):
    """A free scalar variable, as the arguments of a combiner are."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str, dtype: str) -> Symbol:
        return intern(cls, (name, dtype), {"name": name, "dtype": dtype, "weak": False})

    def __reduce__(self) -> Any:
        return Symbol, (self.name, self.dtype)


class Read(Expr):
    """An element of a tensor."""

    __slots__ = ("free", "indices", "reduces", "tensor")
    __match_args__ = ("tensor", "indices")
    tensor: Any
    indices: tuple[Expr, ...]

    def __new__(cls, tensor: TensorLike, indices: Sequence[Expr]) -> Read:
        indices = tuple([narrowed(i) if isinstance(i, Call) else i for i in indices])
        fields = {"tensor": tensor, "indices": indices, "dtype": tensor.dtype, "weak": False}
        fields |= {"free": free_in(indices), "reduces": any(map(_reduces, indices))}
        return intern(cls, (id(tensor), *map(id, indices)), fields)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Read(self.tensor, children)

    def __reduce__(self) -> Any:
        return Read, (self.tensor, self.indices)


Read.children = Read.indices  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Reducer:
    """How a reduction combines two (tuples of) values.

    ``name`` is "sum", "prod", "max", "min", "any", "all" or "custom"; ``ties`` is the rule for max and min.
    ``results`` are expressions of the symbols ``lhs`` and ``rhs``; ``identity`` starts the reduction.
    """

    name: str
    label: str
    ties: str
    lhs: tuple[Symbol, ...]
    rhs: tuple[Symbol, ...]
    results: tuple[Expr, ...]
    identity: tuple[Expr, ...]

    @property
    def arity(self) -> int:
        return len(self.results)

    @property
    def is_sum(self) -> bool:
        return self.name == "sum"

    @property
    def is_extremum(self) -> bool:
        """Whether it gives the value of a maximum or a minimum, not its place."""
        return self.name in ("max", "min")

    @property
    def ignores_order(self) -> bool:
        """Whether it is a reduction of one value in which the points may be met in any order: no winner by its place."""
        return self.name != "custom" and self.arity == 1 and self.ties not in ("first", "last")


class Reduce(Expr):
    """One result of a reduction of ``exprs`` over ``axes`` at the points where ``where`` holds."""

    __slots__ = ("axes", "children", "exprs", "free", "is_extremum", "is_sum", "position", "reducer", "where")
    __match_args__ = ("reducer", "exprs", "axes", "where", "position")
    reducer: Reducer
    exprs: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    where: Expr
    position: int
    is_sum: bool  # asked at each node of a walk, where a property takes a call
    is_extremum: bool
    reduces = True

    def __new__(
        cls, reducer: Reducer, exprs: Sequence[Expr], axes: Sequence[Axis], where: Expr, position: int = 0
    ) -> Reduce:
        exprs, axes = tuple(exprs), tuple(axes)
        combiner = (*reducer.lhs, *reducer.rhs, *reducer.results, *reducer.identity)
        key = (reducer.name, reducer.label, reducer.ties, *map(id, combiner), None)
        key += (*map(id, exprs), None, *map(id, axes), id(where), position)
        fields = {"reducer": reducer, "exprs": exprs, "axes": axes, "where": where, "position": position}
        fields |= {"dtype": reducer.results[position].dtype, "weak": False, "children": (*exprs, where)}
        fields |= {"is_sum": reducer.name == "sum", "is_extremum": reducer.name in ("max", "min")}
        fields["free"] = free_in((*exprs, where), axes)
        return intern(cls, key, fields)

    def changed(
        self,
        exprs: Sequence[Expr] | None = None,
        axes: Sequence[Axis] | None = None,
        where: Expr | None = None,
    ) -> Reduce:
        """The same reduction of other expressions, over other axes, or of other points."""
        return Reduce(
            self.reducer,
            self.exprs if exprs is None else exprs,
            self.axes if axes is None else axes,
            self.where if where is None else where,
            self.position,
        )

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return self.changed(children[:-1], where=children[-1])

    def __reduce__(self) -> Any:
        return Reduce, (self.reducer, self.exprs, self.axes, self.where, self.position)


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """All of ``conditions``."""
    result: Expr = TRUE
    for condition in conditions:
        result = call(AND, result, condition)
    return result


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions whose conjunction ``condition`` is, in order."""
    if not (isinstance(condition, Call) and condition.op is AND):  # most are not
        return [] if condition is TRUE else [condition]
    whole: Expr = condition
    parts = leaves(whole, lambda node: node.args if isinstance(node, Call) and node.op is AND else ())
    return [part for part in parts if part is not TRUE]


def alternatives(condition: Expr) -> list[Expr]:
    """The conditions of which ``condition`` says that one holds, in order."""
    return leaves(condition, lambda node: node.args if isinstance(node, Call) and node.op is OR else ())
