"""From the tree of a formula to the expression of an element: once with open axes, to learn their ranges, and once with these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxte.frontends.text.tree import Element, Name, Node, Number, Operation, Reduced, Reduction, nodes_of
from jaxte.frontends.text.vocabulary import END, FUNCTIONS, KEEPING, NUMBERS, padded_read, reducers_with
from jaxte.lang.checks import described
from jaxte.lang.errors import ArgumentError, DtypeError, IndexExpressionError, JaxteError, ShapeError, nearest
from jaxte.lang.expr import TRUE, ZERO, Axis, Const, Expr, Read, as_expr, call
from jaxte.lang.operators import AND
from jaxte.tensors.bodies.open_ranges import extents_of
from jaxte.tensors.bodies.open_uses import OpenAxis, OpenRangeError
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Tensor

Axes = Mapping[str, Expr]


@dataclass(frozen=True)
class Scope:
    """What the names of a formula stand for, beside its axes.

    Attributes:
        tensors: Tensors, and numbers that stand where a tensor without axes may.
        sizes: in indices and values, and of axes.
        ranges: the first value of an axis, and the one after its last.
        given: functions and reductions that the user brought.
        pad: what reads outside of a tensor give, None where they are errors.
        remedy: how a size is given, for messages.
    """

    tensors: Mapping[str, Any]
    sizes: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    given: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    pad: str | None = None
    remedy: str = "give its size as a keyword, {name}=..."

    def range_of(self, name: str) -> tuple[Any, Any] | None:
        """The ends of an axis, where they were given."""
        return self.ranges.get(name, (0, self.sizes[name]) if name in self.sizes else None)


class Built:
    """One formula as an expression.

    Attributes:
        axes: of the result, in the order of their names.
    """

    def __init__(self, names: Sequence[Name], body: Node, scope: Scope) -> None:
        first = _Builder(scope, None)
        outer = [first.axis(None, Reduced(own.span, own), {}, reduction=False) for own in names]
        expr = first.value(body, dict(zip([n.name for n in names], outer, strict=True)))
        try:
            extents = extents_of(outer, [expr], padded=scope.pad is not None)
        except OpenRangeError as error:
            raise _explained(error, first, scope) from None
        self._found = {key: extents.get(own, own.hi) for key, own in first.open.items()}
        self._body, self._scope = body, scope
        self.axes = tuple(Axis(a.name, ZERO, extents[a]) if isinstance(a, OpenAxis) else a for a in outer)
        self._names = [n.name for n in names]

    def expression(self, at: Mapping[str, Expr] | None = None) -> Expr:
        """The element at its axes, or at the expressions that ``at`` has for their names."""
        env = dict(zip(self._names, self.axes, strict=True)) if at is None else at
        return _Builder(self._scope, self._found).value(self._body, env)


Key = tuple[Node | None, str]


class _Builder:
    """A walk over a tree; without ``found``, the extents of open axes, it leaves these open and remembers where they stand."""

    def __init__(self, scope: Scope, found: Mapping[Key, Expr] | None) -> None:
        self.scope, self.found = scope, found
        self.open: dict[Key, OpenAxis] = {}
        self.places: dict[Axis, Node] = {}
        self.indices: dict[tuple[Read, int], Node] = {}
        self.reducers = reducers_with(scope.given)

    def value(self, node: Node, axes: Axes) -> Expr:
        match node:
            case Number(value=value):
                return as_expr(value)
            case Name():
                return self.name(node, axes)
            case Element():
                return self.element(node, axes)
            case Operation():
                return self.operation(node, axes)
            case Reduction():
                return self.reduction(node, axes)
        raise AssertionError(type(node))

    def name(self, node: Name, axes: Axes) -> Expr:
        if node.name in axes:
            return axes[node.name]
        if node.name in self.scope.sizes:
            return as_expr(self.scope.sizes[node.name])
        if node.name in self.scope.tensors:
            found = self.scope.tensors[node.name]
            if isinstance(found, Tensor) and found.shape:
                raise node.span.fault(
                    f"{node.name} has the shape {shape_text(found.shape)}, and no index is given; a formula is of one element, "
                    f"as in {node.name}[{', '.join('ijklmnop'[: found.ndim])}]",
                    ShapeError,
                )
            return found[()] if isinstance(found, Tensor) else as_expr(found)
        if node.name in NUMBERS:
            return as_expr(NUMBERS[node.name])
        near = nearest(node.name, [*axes, *self.scope.sizes, *self.scope.tensors])
        how = near or f"; a size is a keyword, {node.name}=..."
        raise node.span.fault(f"{node.name} is not known here{how}")

    def element(self, node: Element, axes: Axes) -> Expr:
        tensor = self.scope.tensors[node.tensor]
        if not isinstance(tensor, Tensor):
            if node.indices:
                if isinstance(tensor, (list, tuple)):
                    raise node.span.fault(
                        f"{node.tensor} is a {type(tensor).__name__}; give an array, jnp.asarray(...)"
                    )
                what = (
                    f"the number {tensor!r}, which has no axes"
                    if isinstance(tensor, (bool, int, float, complex))
                    else f"{described(tensor)}; give an array"
                )
                raise node.span.fault(f"{node.tensor} is {what}")
            return as_expr(tensor)
        if len(node.indices) != tensor.ndim:
            raise node.span.fault(
                f"{node.tensor} has the shape {shape_text(tensor.shape)}, and {len(node.indices)} {'index is' if len(node.indices) == 1 else 'indices are'} "
                "given; give one for each axis",
                ShapeError,
            )
        ends = [{END: as_expr(extent) - 1, **axes} for extent in tensor.shape]
        indices = [self.value(i, own) for i, own in zip(node.indices, ends, strict=True)]
        try:
            read = tensor[tuple(indices)]
        except IndexExpressionError as error:
            raise node.span.fault(str(error), IndexExpressionError) from None
        if self.found is None:
            self.indices |= {(read, n): index for n, index in enumerate(node.indices)}
            return read
        if self.scope.pad is None:
            return read
        try:
            return padded_read(read, self.scope.pad)
        except ShapeError as error:
            raise node.span.fault(str(error), ShapeError) from None

    def operation(self, node: Operation, axes: Axes) -> Expr:
        own = self.scope.given.get(node.function) or FUNCTIONS[node.function]
        args = [self.value(a, axes) for a in node.args]
        if node.function == "power" and (number := _power_of_integers(node, args)) is not None:
            return as_expr(number)
        try:
            result: Expr = as_expr(own(*args))
        except (ArgumentError, DtypeError, IndexExpressionError) as error:
            raise node.span.fault(str(error), type(error)) from None
        return result

    def reduction(self, node: Reduction, axes: Axes) -> Expr:
        if node.reducer in KEEPING and node.reducer not in self.scope.given:
            own = [self.kept(node, reduced, axes) for reduced in node.axes]
        else:
            own = [self.axis(node, reduced, axes) for reduced in node.axes]
        conditions = [c for reduced in node.axes for c in self.moving(node, reduced, axes)]

        def values(at: Sequence[Axis]) -> tuple[list[Expr], Expr]:
            inner = {**axes, **{r.name.name: a for r, a in zip(node.axes, at, strict=True)}}
            where: Expr = TRUE if node.where is None else self.value(node.where, inner)
            for condition in reversed(conditions):
                where = call(AND, condition(inner), where)
            return [self.value(v, inner) for v in node.values], where

        result = self.reducers[node.reducer](own, values, node.options)
        if isinstance(result, tuple):
            return as_expr(result[node.part or 0])
        return as_expr(result)

    def kept(self, node: Reduction, reduced: Reduced, axes: Axes) -> Axis:
        """The axis around a reduction that keeps it."""
        found = axes.get(reduced.name.name)
        if not isinstance(found, Axis):
            raise reduced.span.fault(
                f"{node.reducer} keeps its axes, and {reduced.name.name} is none of the axes around it: those of the result, and of "
                "reductions in which it stands"
            )
        return found

    def axis(self, owner: Reduction | None, reduced: Reduced, axes: Axes, reduction: bool = True) -> Axis:
        """The axis of a reduction or of the result, open where its range is not known."""
        name = reduced.name.name
        given = self.scope.range_of(name)
        if given is not None:
            made = Axis(name, given[0], given[1], reduction)
        elif self.is_range(reduced, axes):
            lo = ZERO if reduced.lo is None else self.value(reduced.lo, {})
            assert reduced.hi is not None
            made = Axis(name, lo, self.value(reduced.hi, {}), reduction)
        elif self.found is not None:
            made = Axis(name, ZERO, self.found[owner, name], reduction)
        else:
            made = self.open[owner, name] = OpenAxis(name, reduction)
            self.places[made] = reduced.name
        return made

    def is_range(self, reduced: Reduced, axes: Axes) -> bool:
        """Whether the bounds beside an axis are its range: no numbers that depend on other axes, of which each hides the size of its name."""
        if self.scope.range_of(reduced.name.name) is not None or reduced.hi is None:
            return False
        bounds = [b for b in (reduced.lo, reduced.hi) if b is not None]
        return not any(
            isinstance(node, Name) and (node.name in axes or node.name not in self.scope.sizes)
            for b in bounds
            for node in nodes_of(b)
        )

    def moving(self, node: Reduction, reduced: Reduced, axes: Axes) -> list[Callable[[Axes], Expr]]:
        """The bounds of an axis that are conditions."""
        if self.is_range(reduced, axes):
            return []
        lo, hi = reduced.lo, reduced.hi
        found: list[Callable[[Axes], Expr]] = []
        if lo is not None:
            found.append(lambda inner: self.value(lo, inner) <= inner[reduced.name.name])
        if hi is not None:
            found.append(lambda inner: inner[reduced.name.name] < self.value(hi, inner))
        return found


def _power_of_integers(node: Operation, args: Sequence[Expr]) -> int | None:
    """A power of two integers is an integer, too, of 32 bits: one that is none, or does not fit, is no constant that a formula could mean."""
    base, exponent = (a.value if isinstance(a, Const) else None for a in args)
    if not isinstance(base, int) or not isinstance(exponent, int):
        return None
    if exponent < 0:
        raise node.span.fault(
            f"an integer has no negative powers: write {base}.0**{exponent} for the number", ArgumentError
        )
    if abs(base) > 1 and (exponent > 31 or not -(2**31) <= base**exponent < 2**31):
        raise node.span.fault(
            f"{base}**{exponent} does not fit into an integer of 32 bits: write {base}.0**{exponent} for the number",
            ArgumentError,
        )
    return int(base**exponent)


def _explained(error: OpenRangeError, builder: _Builder, scope: Scope) -> JaxteError:
    """``error`` with carets under the letters of the text."""
    spans = [builder.indices[place].span for place in error.places if place in builder.indices]
    own = builder.places.get(error.axis)
    span = spans[-1] if spans else own.span if own is not None else None
    assert span is not None
    remedy = error.remedy or scope.remedy.format(name=error.axis.name)
    reversed_ = [
        n for place in error.places if place in builder.indices for n in nodes_of(builder.indices[place])
    ]
    if any(
        isinstance(n, Operation) and n.function == "subtract" and not isinstance(n.args[1], Number)
        for n in reversed_
    ):
        remedy = f"the last position along an axis is `end`, as in (end-i); {remedy}"
    return span.fault(f"{error.reason}; {remedy}", ShapeError)
