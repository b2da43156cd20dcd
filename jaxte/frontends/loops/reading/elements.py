"""Elements and slices of arrays, and what is known of a slice: its first position, its step and its length."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.reading.expressions import Expressions
from jaxte.frontends.loops.reading.numpy_rules import is_in_rows, strides_of
from jaxte.frontends.loops.reading.values import Block, is_static
from jaxte.lang import dtypes
from jaxte.lang.checks import counted
from jaxte.lang.expr import Const, Expr, as_expr
from jaxte.sets.affine import linear, normal
from jaxte.sets.intervals import reach

# an index, an array of indices, the first position and the step of a slice, or None for a new axis
_Place = Expr | Block | tuple[Expr, int] | None


class Elements(Expressions):
    """Reads expressions with elements and slices."""

    def subscript(self, node: ast.Subscript) -> Any:
        base = self.value(node.value)
        if isinstance(base, tuple):
            if isinstance(node.slice, ast.Slice):
                return base[self._plain_slice(node.slice)]
            place = None if isinstance(node.slice, ast.Tuple) else self.number(node.slice)
            if isinstance(place, int):
                return base[place]
            base = self.listed(base, node.value)
        if not isinstance(base, (Variable, Block)):
            shown = ast.unparse(node.value)
            raise self.fault(
                node.value, f"{shown} is no array, and only arrays, lists and shapes have elements"
            )
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self.taken(base, entries, node)

    def _plain_slice(self, node: ast.Slice) -> slice:
        return slice(*(None if e is None else self.number(e) for e in (node.lower, node.upper, node.step)))

    def taken(self, base: Variable | Block, entries: Sequence[ast.expr], node: ast.AST) -> Any:
        """Elements of ``base``: one of them, or a block where some of the entries are slices."""
        shape = [as_expr(e) for e in base.shape]
        places: list[_Place] = []
        extents: list[Expr] = []
        entries = self._filled(entries, len(shape), node)
        rest = iter(shape)
        for entry in entries:
            place, own = self._placed_entry(entry, entries, rest)
            places.append(place)
            extents += own

        def element(at: Sequence[Expr]) -> Expr:
            indices = _indices(places, at)
            return base.element(indices) if isinstance(base, Block) else self.read(base, indices, node)

        if not extents:
            return element(())
        whole = base if isinstance(base, Block) else self.block(base, node)
        if any(isinstance(p, Block) for p in places):
            return Block(tuple(extents), element, is_laid_out=is_in_rows(whole))
        strides = strides_of(whole)
        cut = None if strides is None else _cut(strides, places)
        return replace(whole, shape=tuple(extents), element=element, strides=cut)

    def _placed_entry(
        self, entry: ast.expr, entries: Sequence[ast.expr], rest: Iterator[Expr]
    ) -> tuple[_Place, Sequence[Expr]]:
        """Where one of ``entries`` reads along the next of the ``rest`` of the extents, and the extents of the block that it gives axes to."""
        if isinstance(entry, ast.Constant) and entry.value is None:
            return None, [as_expr(1)]
        length = next(rest)
        if isinstance(entry, ast.Slice):
            first, step, extent = self._sliced(entry, length)
            return (first, step), [extent]
        own = self.value(entry)
        own = self.listed(own, entry) if isinstance(own, tuple) else own
        if isinstance(own, Block) or (isinstance(own, Variable) and own.shape):
            block = self._positions(own, entries, entry)
            return block, block.shape
        return self.index(own, entry, length), []

    def _positions(self, own: Any, entries: Sequence[ast.expr], node: ast.expr) -> Block:
        """An array as an index, alone among indices that are numbers or slices."""
        block = self.as_operand(own, node)
        dtype = as_expr(block.element([as_expr(0) for _ in block.shape])).dtype
        if dtype == "bool":
            raise self.fault(
                node,
                "how many elements a mask chooses is data; write x[mask] = value, np.where, or a loop with an if",
            )
        if not dtypes.is_integer(dtype):
            raise self.fault(node, "an index is an integer")
        others = [e for e in entries if e is not node and not isinstance(e, (ast.Slice, ast.Constant))]
        if others and any(isinstance(self.value(e), (Variable, Block)) for e in others):
            raise self.fault(node, "two arrays as indices of one; write a loop over positions")
        return block

    @abstractmethod
    def listed(self, values: Sequence[Any], node: Any) -> Block:
        """A list as an array."""

    def _filled(self, entries: Sequence[ast.expr], rank: int, node: ast.AST) -> list[ast.expr]:
        """The entries of an index with ``...``, and what stands behind the last, as whole slices."""
        entries = [ast.copy_location(ast.Constant(None), e) if self._is_new_axis(e) else e for e in entries]
        own = [e for e in entries if not (isinstance(e, ast.Constant) and e.value in (None, ...))]
        missing: list[ast.expr] = [ast.Slice() for _ in range(rank - len(own))]
        if len(own) > rank:
            raise self.fault(node, _too_many(node, len(own), rank))
        found: list[ast.expr] = []
        for entry in entries:
            if isinstance(entry, ast.Constant) and entry.value is ...:
                found, missing = [*found, *missing], []
            else:
                found.append(entry)
        return [*found, *missing]

    def _is_new_axis(self, node: ast.expr) -> bool:
        """Whether an entry of an index is another name of None, as ``np.newaxis`` is."""
        return isinstance(node, (ast.Attribute, ast.Name)) and self.value(node) is None

    def index(self, given: Any, node: ast.expr, extent: Expr) -> Expr:
        """One index; a negative number counts from the end."""
        found = self.fixed(self.as_number(given, node), node)
        if isinstance(found, (float, np.floating)):
            raise self.fault(node, "an index is an integer")
        own = as_expr(found)
        if is_static(own) and (ends := reach(linear(normal(own)))) is not None and ends[1] < 0:
            own = extent + own
        return normal(own) if is_static(own) else own

    def _known_slice(self, node: ast.Slice, step: int, extent: Expr) -> range | None:
        """The positions of a slice of an array, where its ends are numbers: as Python cuts them, where they leave the array, too."""
        ends = [None if e is None else self.number(e) for e in (node.lower, node.upper)]
        ends = [int(e.value) if isinstance(e, Const) else e for e in ends]  # type: ignore[arg-type]
        if not isinstance(extent, Const) or not all(e is None or isinstance(e, int) for e in ends):
            return None
        return range(*slice(ends[0], ends[1], step).indices(int(extent.value)))  # type: ignore[arg-type]

    def _sliced(self, node: ast.Slice, extent: Expr) -> tuple[Expr, int, Expr]:
        """The first position, the step and the count of a slice."""
        step = 1 if node.step is None else self.number(node.step)
        if not isinstance(step, int) or not step:
            raise self.fault(node, "the step of a slice is a number that is known")

        def end(entry: ast.expr | None, default: Expr) -> Expr:
            if entry is None:
                return default
            own = as_expr(self.fixed(self.number(entry), entry))
            if not is_static(own):
                self.as_known(entry)
                raise self.fault(
                    entry, "the end of a slice is data; write a loop over all positions with an if"
                )
            return extent + own if isinstance(own, Const) and int(own.value) < 0 else own  # type: ignore[arg-type]

        known = self._known_slice(node, step, extent)
        if known is not None:
            return as_expr(known.start), step, as_expr(len(known))
        if step > 0:
            first, stop = end(node.lower, as_expr(0)), end(node.upper, extent)
            return first, step, normal((stop - first + (step - 1)) // step)
        first, stop = end(node.lower, extent - 1), end(node.upper, as_expr(-1))
        return first, step, normal((first - stop + (-step - 1)) // -step)


def _too_many(node: ast.AST, count: int, rank: int) -> str:
    """What is wrong with more indices than axes."""
    shown = ast.unparse(node.value) if isinstance(node, ast.Subscript) else "the array"
    if not rank:
        return f"{shown} is a number, which has no elements; leave the index out"
    given, own = counted(count, "index", "indices"), counted(rank, "axis", "axes")
    return f"{given} for the {own} of {shown}; give one for each axis"


def _indices(places: Sequence[_Place], at: Sequence[Expr]) -> list[Expr]:
    """Where an element of a block at ``at`` stands in what the block is taken of."""
    rest, found = iter(at), []
    for place in places:
        match place:
            case None:
                next(rest)
            case Block():
                found.append(place.element([next(rest) for _ in place.shape]))
            case (first, step):
                found.append(normal(first + next(rest) * step))
            case _:
                found.append(place)
    return found


def _cut(strides: Sequence[Expr], places: Sequence[_Place]) -> tuple[Expr, ...]:
    """The strides of a part of a block, in which arrays of indices are not."""
    rest, found = iter(strides), []
    for place in places:
        step = as_expr(0) if place is None else next(rest)
        if place is None or isinstance(place, tuple):
            found.append(step if place is None else normal(step * place[1]))
    return tuple(found)
