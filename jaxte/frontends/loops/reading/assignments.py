"""Assignments: of names, elements and slices, and what becomes of a name that stands for a number, an expression or an array."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.reading.calls import Calls
from jaxte.frontends.loops.reading.names import Names
from jaxte.frontends.loops.reading.numpy_rules import is_in_rows
from jaxte.frontends.loops.reading.values import Allocation, Block, as_precise, element_of, fitted, is_number
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Const, Expr, Read, as_expr
from jaxte.lang.walk import free_axes, reads_of


class Assignments(Names):
    """Reads assignments."""

    @abstractmethod
    def sum_idiom(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether ``target = value`` is an addition, which is recorded then."""

    def assigned(self, target: ast.expr, value_node: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpacked(target, value_node)
            return
        found = self.sum_idiom(target, value_node)
        if found:
            return
        value = self.value(value_node)
        self.put(target, value, value_node)

    def chained(self, targets: Sequence[ast.expr], value_node: ast.expr) -> None:
        """``a = b = value``: each target is given a number by itself, or the array that a name before it stands for."""
        if isinstance(value_node, ast.Constant):
            for target in targets:
                self.assigned(target, value_node)
            return
        name = next((t for t in targets if isinstance(t, ast.Name)), None)
        if name is None:
            raise self.fault(
                targets[1], "one value is assigned to several places; write a statement for each"
            )
        self.assigned(name, value_node)
        for target in targets:
            if target is not name:
                self.assigned(target, ast.copy_location(ast.Name(name.id, ast.Load()), name))

    def put(self, target: ast.expr, value: Any, node: ast.expr) -> None:
        """One assignment."""
        if isinstance(target, ast.Name):
            self.put_name(target, value, node)
            return
        if not isinstance(target, ast.Subscript):
            raise self.fault(target, "a name, an element or a slice is assigned")
        self.refuse_copies(target)
        place = self.value(target)
        if isinstance(value, (Variable, Allocation)):
            value = self.as_operand(value, node)
        if isinstance(place, Block):
            self.put_block(place, value, target)
        elif isinstance(place, Read):
            if not is_number(value):
                raise self.fault(node, "one element is assigned, and this is no number")
            span = self.frame.text.span(target)
            self.recorder.put(self.variable_of(place), place.indices, value, span, None)
        else:
            raise self.fault(target, "this is nothing that can be written")

    def refuse_copies(self, target: ast.expr) -> None:
        """Elements of lists are values, which are not written; those of a copy that no name stands for are nobody's."""
        base = self.value(target.value) if isinstance(target, ast.Subscript) else None
        if isinstance(base, Block):
            if base.of is None:
                raise self.fault(
                    target, "this is an element of a copy, which no name stands for; name it first"
                )
            self._check_view(base, target)
        if isinstance(base, (tuple, list)):
            raise self.fault(
                target,
                "the values of a list stay as they are; make an array, by np.array([...]) or np.zeros, and write its elements",
            )

    def _check_view(self, place: Block, node: ast.AST) -> None:
        """That who writes ``place`` writes the array that it is a part of."""
        if place.is_read_only:
            raise self.fault(
                node, "np.diagonal and np.diag of a matrix are not written in NumPy; write A[i, i] in a loop"
            )
        if place.is_copied_at_times:
            self.view(place, "what is written", node)

    def variable_of(self, read: Read) -> Variable:
        return next(v for v in self.recorder.variables.values() if v.cell is read.tensor)

    def put_block(self, place: Block, value: Any, node: ast.AST, op: str | None = None) -> None:
        """``place[...] = value``; all of ``value`` is read before anything is written."""
        own = place.of
        if own is None:
            raise self.fault(node, self._no_part(node))
        self._check_view(place, node)
        try:
            held = value = fitted(value, place.shape)
        except ShapeError as error:
            raise self.fault(
                node, f"{error}; what is written to a part of an array has its shape", ShapeError
            ) from None
        if isinstance(value, Expr) and any(r.tensor is own.cell for r in reads_of(value)):
            held = value = self.settled(value, f"{own.name}_held", node)
        if isinstance(value, Block) and self.may_read(value, own):
            shape = tuple(as_expr(e) for e in own.shape)
            held = self._temporary(value, place, shape, node)
        self.over(
            place.shape, lambda at: self._put_element(place.element(at), element_of(held, at), node, op)
        )

    def _no_part(self, node: ast.AST) -> str:
        """Why what stands in front of an assignment is nothing that can be written."""
        target = node.target if isinstance(node, ast.AugAssign) else node
        is_part = isinstance(target, ast.Subscript) and isinstance(target.slice, (ast.Name, ast.Subscript))
        if not isinstance(target, ast.Subscript) or not is_part:
            return "this is no part of an array that can be written"
        array, taken = ast.unparse(target.value), ast.unparse(target.slice)
        return (
            f"elements at an array of positions are written in a loop over these: for n in range(len({taken})): {array}[{taken}[n]] = ...; there a position "
            "that stands in the array twice is added to twice, where NumPy adds to it once"
        )

    def may_read(self, value: Block, own: Variable) -> bool:
        at = [as_expr(0) for _ in value.shape]
        saved = {r: list(g) for r, g in self.recorder.guards.items()}
        found = any(r.tensor is own.cell for r in reads_of(as_expr(value.element(at))))
        self.recorder.guards.clear()
        self.recorder.guards.update(saved)
        return found

    def _temporary(self, value: Block, place: Block, shape: Sequence[Expr], node: ast.AST) -> Block:
        """``value``, computed as a whole, at the positions of ``place``."""
        rank = len(value.shape)
        most = list(shape[-rank:]) if len(shape) >= rank else [None] * rank
        size = tuple(
            _plain(m) if m is not None and free_axes(e) else extent_of(e, self, node)
            for e, m in zip(value.shape, most, strict=True)
        )
        kind = as_expr(value.element([as_expr(0) for _ in value.shape])).dtype
        key = (self.frame.number, "block", len(self.recorder.statements), self.recorder.loops)
        name = f"{place.of.name if place.of else 'x'}_new"
        held = self.recorder.variable(key, name, size, kind, home=self.home(name))
        span = self.frame.text.span(node)
        self.over(value.shape, lambda at: self.recorder.assign(held, at, value.element(at), span))
        return Block(value.shape, lambda at: self.read(held, at, node))

    def _put_element(self, place: Expr, value: Any, node: ast.AST, op: str | None) -> None:
        assert isinstance(place, Read)
        variable, span = self.variable_of(place), self.frame.text.span(node)
        self.recorder.put(variable, place.indices, value, span, op)

    def over(self, shape: Sequence[Expr], body: Callable[[list[Expr]], None]) -> None:
        """Loops over the elements of a block."""

        def inner(at: list[Expr]) -> None:
            if len(at) == len(shape):
                body(at)
                return
            with self.recorder.loop(f"a{len(at)}", 0, shape[len(at)]) as counter:
                inner([*at, counter.value])

        inner([])

    def home(self, name: str) -> int:
        return self.frame.home(name, self.recorder.choices)

    def stored(self, key: tuple[object, ...], name: str, value: Any, node: ast.AST) -> Variable:
        """``value`` in a variable."""
        span = (
            self.frame.text.span(node)
            if hasattr(node, "lineno")
            else self.frame.text.span(self.frame.text.tree)
        )
        if not isinstance(value, Block):
            value = as_expr(value)
            kind = as_precise(value.dtype, self.default) if value.weak else value.dtype
            own = self.recorder.variable(key, name, (), kind, home=self.home(name))
            self.recorder.assign(own, (), value, span)
            return own
        first = as_expr(value.element([as_expr(0) for _ in value.shape]))
        kind = as_precise(first.dtype, self.default) if first.weak else first.dtype
        shape = tuple(extent_of(e, self, node) for e in value.shape)
        free = self._free(key, shape, name, value)
        own = self.recorder.variable(free, name, shape, kind, home=self.home(name))
        own.lies(is_in_rows(value))
        self.over(value.shape, lambda at: self.recorder.assign(own, at, value.element(at), span))
        return own


def extent_of(extent: Expr, reader: Calls, node: ast.AST) -> Any:
    if free_axes(extent):
        raise reader.fault(node, "the length of this block depends on a counter; write the loops")
    return _plain(extent)


def _plain(extent: Expr) -> Any:
    return int(extent.value) if isinstance(extent, Const) else extent  # type: ignore[arg-type]
