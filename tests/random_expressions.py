"""Random scalar bodies: reads at random indices, nested reductions, guards, smooth functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jaxte as te
from jaxte.lang.dtypes import is_complex
from jaxte.lang.expr import Axis, Expr
from jaxte.tensors.tensor import Tensor
from tests.choices import Choices

MOST_POINTS = 400  # of one body, so that the interpreter and finite differences stay quick

UNARY: tuple[Callable[[Expr], Expr], ...] = (
    te.sin,
    te.tanh,
    te.sigmoid,
    te.softplus,
    te.atan,
    te.square,
    lambda x: te.exp(-x * x),
    lambda x: te.sqrt(1.0 + x * x),
    lambda x: te.log1p(x * x),
    lambda x: 1 / (1.5 + te.cos(x)),
    lambda x: -x,
    te.relu,
    te.abs,
    lambda x: te.leaky_relu(x, 0.3),
)
"""Bounded or slowly growing, so that chains of them neither overflow nor lose digits."""

OF_COMPLEX: tuple[Callable[[Expr], Expr], ...] = (te.sin, te.square, lambda x: te.exp(-x * x), lambda x: -x)
"""Those of complex numbers, which have no order and so no extrema."""

_CIRCLE = te.comm_reducer(lambda p, q: p + q + p * q, lambda t: te.const(0.0, t), name="circle")


@dataclass(frozen=True)
class Index:
    """An index expression with the least and greatest value that it takes."""

    expr: Expr
    low: int
    high: int

    def __add__(self, offset: int) -> Index:
        return Index(self.expr + offset, self.low + offset, self.high + offset)


@dataclass(frozen=True)
class Guarded:
    """An expression that is defined where the conditions hold."""

    expr: Expr
    conditions: tuple[Expr, ...] = ()

    def chosen(self) -> Expr:
        """The expression, zero where it is not defined."""
        return te.select(_all(self.conditions), self.expr, 0.0) if self.conditions else self.expr


def _all(conditions: Sequence[Expr]) -> Expr:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result & condition
    return result


@dataclass(frozen=True)
class Writer:
    """Makes expressions that read ``sources`` (and index with the integers of ``tables``)."""

    choices: Choices
    sources: Sequence[Tensor]
    tables: Sequence[Tensor] = ()

    def among(self, *options: object) -> object:
        return self.choices.among(options)

    def number(self, low: int, high: int) -> int:
        return self.choices.number(low, high)

    def often(self, out_of: int = 2) -> bool:
        """False once in ``out_of``; the simplest draw is False."""
        return self.number(0, out_of - 1) > 0

    def rarely(self, out_of: int) -> bool:
        return self.number(0, out_of - 1) == out_of - 1

    @property
    def has_complex(self) -> bool:
        return is_complex(self.sources[0].dtype)

    # --- indices

    def affine(self, scope: Sequence[Axis]) -> Index:
        """Up to two axes with coefficients, plus an offset."""
        found = Index(te.const(0), 0, 0)
        for _ in range(self.number(0, min(2, len(scope)))):
            axis = self.choices.among(list(scope))
            factor = int(self.among(1, 1, 1, 2, 3, -1, -2))  # type: ignore[call-overload]
            low, high = int(axis.lo) * factor, (int(axis.hi) - 1) * factor
            found = Index(found.expr + factor * axis, found.low + min(low, high), found.high + max(low, high))
        return found + self.number(-2, 3) if self.rarely(3) else found

    def index(self, scope: Sequence[Axis], extent: int) -> tuple[Expr, tuple[Expr, ...]]:
        """An index into ``extent`` elements, with the conditions under which it is in range."""
        fitting = [axis for axis in scope if 0 <= int(axis.lo) and int(axis.hi) <= extent]
        if fitting and self.rarely(2):
            return self.choices.among(fitting), ()
        found = self.affine(scope)
        match self.among(
            "plain", "plain", "shift", "//", "%", "min", "max", "reverse", "integer", "periodic"
        ):
            case "shift":
                found = found + -found.low
            case "//":
                d = self.number(2, 4)
                found = Index(found.expr // d, found.low // d, found.high // d)
            case "%":
                d = self.number(2, 5)
                found = Index(found.expr % d, 0, d - 1)
            case "min" | "max" as end:
                other = self.affine(scope)
                pick = te.minimum if end == "min" else te.maximum
                rule = min if end == "min" else max
                low, high = rule(found.low, other.low), rule(found.high, other.high)
                found = Index(pick(found.expr, other.expr), low, high)
            case "integer":
                found = self.integer_operation(found, scope)
            case "periodic" if extent:
                found = Index(found.expr % extent, 0, extent - 1)
            case "reverse":
                found = Index(extent - 1 - found.expr, extent - 1 - found.high, extent - 1 - found.low)
        return self.bounded(found, extent)

    def integer_operation(self, found: Index, scope: Sequence[Axis]) -> Index:
        """An operation on integers that stands for sums, quotients, minima and maxima."""
        low, high = found.low, found.high
        match self.among("abs", ">>", "&", "cast", "sign", "int8"):
            case "abs":
                return Index(
                    te.abs(found.expr),
                    0 if low <= 0 <= high else min(abs(low), abs(high)),
                    max(abs(low), abs(high)),
                )
            case ">>":
                return Index(found.expr >> 1, low >> 1, high >> 1)
            case "&":
                mask = self.number(1, 6)
                return Index(found.expr & mask, 0, mask)
            case "sign":
                return Index(te.sign(found.expr) + 1, 0, 2)
            case "int8":
                return Index(te.cast(found.expr, "int8") * 1, low, high)
        return Index(te.cast(self.position_test(found.expr), "int32") + found.expr, low, high + 1)

    def position_test(self, index: Expr) -> Expr:
        bound = self.number(-1, 3)
        return self.among(index > bound, index <= bound, te.equal(index, bound), te.not_equal(index, bound))  # type: ignore[return-value]

    def bounded(self, found: Index, extent: int) -> tuple[Expr, tuple[Expr, ...]]:
        if found.low >= 0 and found.high < extent:
            return found.expr, ()
        how = self.among("guard", "guard", "clip", "wrap") if extent else "guard"
        if how == "clip":
            return te.minimum(te.maximum(found.expr, 0), extent - 1), ()
        if how == "wrap":
            return found.expr % extent, ()
        low = (found.expr >= 0,) if found.low < 0 else ()
        return found.expr, (*low, found.expr < extent) if found.high >= extent else low

    # --- scalars

    def coupled(self, scope: Sequence[Axis]) -> Guarded:
        """A read of an input that is as large as its positions need: strides, axes in common, and no guard."""
        indices: list[Expr] = []
        shape: list[int] = []
        for _ in range(self.number(1, 3)):
            found = self.affine(scope)
            found = found + -found.low
            if math.prod(shape) * (found.high + 1) <= MOST_POINTS // 2:
                indices.append(found.expr)
                shape.append(found.high + 1)
        return Guarded(te.placeholder(tuple(shape), self.sources[0].dtype, "C")[tuple(indices)])

    def read(self, scope: Sequence[Axis]) -> Guarded:
        if self.rarely(10):
            return self.coupled(scope)
        source = self.choices.among(list(self.sources))
        indices, conditions = [], []
        repeated: dict[int, tuple[Expr, tuple[Expr, ...]]] = {}
        for extent in source.shape:
            if extent in repeated and self.rarely(5):
                index, inside = repeated[extent]  # a diagonal
            elif self.tables and self.rarely(6):
                index, inside = self.entry(scope, extent)
            else:
                index, inside = self.index(scope, extent)
            repeated[extent] = index, inside
            indices.append(index)
            conditions += [c for c in inside if not any(c is d for d in conditions)]
        return Guarded(source[tuple(indices)], tuple(conditions))

    def entry(self, scope: Sequence[Axis], extent: int) -> tuple[Expr, tuple[Expr, ...]]:
        """An index that is data."""
        table = self.choices.among(list(self.tables))
        place, inside = self.index(scope, int(table.shape[0]))
        value = table[place]
        if inside:
            value = te.select(_all(inside), value, 0)
        return value, (value >= 0, value < extent)

    def scalar(self, scope: Sequence[Axis], depth: int, points: int) -> Expr:
        """An expression over the axes of ``scope``, which span ``points``."""
        return self.term(scope, depth, points).chosen()

    def term(self, scope: Sequence[Axis], depth: int, points: int) -> Guarded:
        """As :meth:`scalar`, with the guards of a read that stands alone left to whoever asks."""
        if depth <= 0:
            return self.read(scope) if self.often(6) else Guarded(self.leaf(scope))
        kinds = ("read", "unary", "+", "*", "*", "/", "select", "extremum", "reduce", "reduce")
        unary = OF_COMPLEX if self.has_complex else UNARY
        match self.among(*(k for k in kinds if k != "extremum" or not self.has_complex)):
            case "read":
                return self.read(scope)
            case "unary":
                return Guarded(self.among(*unary)(self.scalar(scope, depth - 1, points)))  # type: ignore[operator]
            case "reduce":
                return Guarded(self.reduction(scope, depth - 1, points))
            case "*":
                a, b = self.term(scope, depth - 1, points), self.term(scope, depth - 1, points)
                return Guarded(a.expr * b.expr, (*a.conditions, *b.conditions))
            case kind:
                a, b = self.scalar(scope, depth - 1, points), self.scalar(scope, depth - 1, points)
                match kind:
                    case "+":
                        return Guarded(a + b if self.often(3) else a - 0.7 * b)
                    case "/" if (divisor := self.read(scope)) and not divisor.conditions and self.often():
                        return Guarded(a / divisor.expr)
                    case "/":
                        return Guarded(a / (1.3 + b * b))
                    case "select":
                        return Guarded(te.select(self.condition(scope), a, b))
                    case _:
                        return Guarded((te.maximum if self.often() else te.minimum)(a, b))

    def leaf(self, scope: Sequence[Axis]) -> Expr:
        if scope and self.often():
            axis = self.choices.among(list(scope))
            return te.cast(axis, self.sources[0].dtype) * 0.25
        return te.const(float(self.among(0.5, -1.25, 2.0)), self.sources[0].dtype)  # type: ignore[arg-type]

    def condition(self, scope: Sequence[Axis]) -> Expr:
        """On axes, or on data: a comparison with a number that no value is near."""
        if not scope or self.rarely(3):
            data = self.read(scope).chosen()
            return (te.real(data) if self.has_complex else data) > 0.1137
        a = self.choices.among(list(scope))
        b = self.choices.among(list(scope))
        c, d = self.number(-1, 3), self.number(2, 3)
        match self.among(
            "<=", "band", "%", "bound", "!=", "not", "min", "max", "abs", "//", "digits", "coupled", "equal"
        ):
            case "min":
                return te.equal(te.minimum(a, c), c) if self.often() else te.minimum(a, b + c) <= d
            case "max":
                return te.equal(te.maximum(a, b), a + c) if self.often() else te.maximum(a - c, 0) < d
            case "abs":
                return te.abs(a - b) <= c if self.often() else te.equal(te.abs(a - c), b)
            case "//":
                return te.equal(a // d, b) if self.often() else te.equal((a + b) // d, c)
            case "digits":
                return te.equal(a % d, b % d) if self.often() else te.equal((a - b) % d, c % d)
            case "coupled":
                return te.equal(2 * a - 3 * b, c) if self.often() else (d * a + b) % 5 <= c
            case "equal":
                return te.equal(a + c, b)
            case "<=":
                return a <= b + self.number(-1, 1)
            case "band":
                return (a - b <= self.number(0, 2)) & (b - a <= self.number(0, 2))
            case "%":
                return (a + b) % 2 == self.number(0, 1)
            case "bound":
                return a >= self.number(0, 2)
            case "!=":
                return a != self.number(0, 2)
        return ~(a < b) | (b > 1)

    def reduction(self, scope: Sequence[Axis], depth: int, points: int) -> Expr:
        """A sum, product, extremum or other reduction over one or two new axes."""
        axes: list[Axis] = []
        for name in ("k", "m")[: self.number(1, 2)]:
            low = self.number(0, 1) if self.rarely(4) else 0
            extent = min(int(self.among(2, 3, 4, 5, 1)), max(1, MOST_POINTS // points))  # type: ignore[call-overload]
            axes.append(te.reduce_axis((low, low + extent), f"{name}{len(scope)}"))
            points *= extent
        inner = (*scope, *axes)
        element = self.term(inner, depth, points)
        conditions = list(element.conditions) if self.often() else []
        body = element.expr if conditions else element.chosen()
        if self.rarely(2):
            conditions.append(self.condition(inner))
        where = _all(conditions) if conditions else None
        return self.reduced(body, axes, where, self.read(inner).chosen())

    def reduced(self, body: Expr, axes: list[Axis], where: Expr | None, element: Expr) -> Expr:
        kinds = ("sum", "max", "sum", "min", "prod", "sum", "first", "circle", "any", "argmax")
        match self.among(*(("sum", "prod", "circle") if is_complex(body.dtype) else kinds)):
            case "sum":
                return te.sum(body, axes, where)
            case "max" | "first" as kind:
                found = te.max(body, axes, where, ties="even" if kind == "max" else "first")
                return te.maximum(found, -3.5) if where is not None else found  # of nothing: -inf
            case "min":
                found = te.min(body, axes, where)
                return te.minimum(found, 3.5) if where is not None else found
            case "prod":
                return te.prod(body, axes, where)
            case "any":
                return te.select(
                    te.any(body > 0.1137, axes, where), *(te.const(c, body.dtype) for c in (0.5, -0.25))
                )
            case "circle":
                # so that the product of many 1 + x stays small
                count = math.prod(int(a.hi) - int(a.lo) for a in axes)
                return _CIRCLE((te.sin if self.has_complex else te.tanh)(body) * (1 / count), axes, where)
        return (
            te.cast(te.argmax(body, axes), body.dtype) if where is None else te.sum(body * body, axes, where)
        )
