"""Assignments: of names, elements and slices, and what becomes of a name that stands for a number, an expression or an array."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxte.frontends.loops.buffers import Buffers, has_views
from jaxte.frontends.loops.calls import Calls
from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.values import (
    Allocation,
    Block,
    as_precise,
    element_of,
    fitted,
    is_number,
    is_static,
)
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Const, Expr, Read, as_expr
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.affine import normal
from jaxte.tensors.shapes import check_shape

_VIEWS = (ast.Name, ast.Subscript, ast.Attribute, ast.Call)


class Assignments(Buffers):
    """Reads assignments."""

    @abstractmethod
    def sum_idiom(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether ``target = value`` is an addition, which is recorded then."""

    def assigned(self, target: ast.expr, value_node: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            self._unpacked(target, value_node)
            return
        found = self.sum_idiom(target, value_node)
        if found:
            return
        value = self.value(value_node)
        self.put(target, value, value_node)

    def _unpacked(self, target: ast.Tuple | ast.List, value_node: ast.expr) -> None:
        value = self.value(value_node)
        if isinstance(value, Variable) or not isinstance(value, tuple) or len(value) != len(target.elts):
            raise self.fault(
                target, f"{len(target.elts)} names are assigned, and the other side is not as many values"
            )
        if self.exchanged(target.elts, value, value_node):
            return
        nodes = _parts(value_node, len(value))
        kept = []
        for n, own in enumerate(value):
            if isinstance(own, Variable) and not own.shape:
                own = self.read(own, (), value_node)
            is_view = isinstance(own, Block) and own.of is not None and isinstance(nodes[n], _VIEWS)
            if (isinstance(own, Block) and not is_view) or (isinstance(own, Expr) and not is_static(own)):
                key = (
                    self.frame.number,
                    "part",
                    n,
                    value_node.lineno,
                    value_node.col_offset,
                    self.recorder.loops,
                )
                held = self.stored(key, f"part_{n}", own, value_node)
                own = held if isinstance(own, Block) else self.read(held, (), value_node)
                if isinstance(own, Variable) and not self._is_handed_on(target.elts[n], value):
                    own = self.block(own, value_node)
            kept.append((own, nodes[n] if is_view else value_node))
        for own_target, (own, node) in zip(target.elts, kept, strict=True):
            self.put(own_target, own, node)

    def _is_handed_on(self, target: ast.expr, values: Sequence[Any]) -> bool:
        """Whether the array of ``target`` is among ``values``, so that another name takes it and nothing is written to it."""
        own = self.frame.names.get(target.id) if isinstance(target, ast.Name) else None
        return isinstance(own, Variable) and any(v is own for v in values)

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
        self.refuse_lists(target)
        place = self.value(target)
        if isinstance(value, Variable):
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

    def refuse_lists(self, target: ast.expr) -> None:
        """Elements of lists are values, which are not written."""
        if isinstance(target, ast.Subscript) and isinstance(self.value(target.value), (tuple, list)):
            raise self.fault(
                target,
                "the values of a list stay as they are; make an array, by np.array([...]) or np.zeros, and write its elements",
            )

    def variable_of(self, read: Read) -> Variable:
        return next(v for v in self.recorder.variables.values() if v.cell is read.tensor)

    def put_block(self, place: Block, value: Any, node: ast.AST, op: str | None = None) -> None:
        """``place[...] = value``; all of ``value`` is read before anything is written."""
        own = place.of
        if own is None:
            raise self.fault(node, "this is no part of an array that can be written")
        try:
            held = value = fitted(value, place.shape)
        except ShapeError as error:
            raise self.fault(
                node, f"{error}; what is written to a part of an array has its shape", ShapeError
            ) from None
        if isinstance(value, Block) and self._may_read(value, own):
            shape = tuple(as_expr(e) for e in own.shape)
            held = self._temporary(value, place, shape, node)
        self._over(
            place.shape, lambda at: self._put_element(place.element(at), element_of(held, at), node, op)
        )

    def _may_read(self, value: Block, own: Variable) -> bool:
        at = [as_expr(0) for _ in value.shape]
        saved = {r: list(g) for r, g in self.recorder.guards.items()}
        found = any(r.tensor is own.cell for r in reads_of(as_expr(value.element(at))))
        self.recorder.guards.clear()
        self.recorder.guards.update(saved)
        return found

    def _temporary(self, value: Block, place: Block, shape: Sequence[Expr], node: ast.AST) -> Block:
        """``value``, computed as a whole, at the positions of ``place``."""
        size = tuple(
            _bound_of(e, s) for e, s in zip(value.shape, shape[len(shape) - len(value.shape) :], strict=True)
        )
        kind = as_expr(value.element([as_expr(0) for _ in value.shape])).dtype
        key = (self.frame.number, "block", len(self.recorder.statements), self.recorder.loops)
        name = f"{place.of.name if place.of else 'x'}_new"
        held = self.recorder.variable(key, name, size, kind, home=self._home(name))
        span = self.frame.text.span(node)
        self._over(value.shape, lambda at: self.recorder.assign(held, at, value.element(at), span))
        return Block(value.shape, lambda at: self.read(held, at, node))

    def _put_element(self, place: Expr, value: Any, node: ast.AST, op: str | None) -> None:
        assert isinstance(place, Read)
        variable, span = self.variable_of(place), self.frame.text.span(node)
        self.recorder.put(variable, place.indices, value, span, op)

    def _over(self, shape: Sequence[Expr], body: Callable[[list[Expr]], None]) -> None:
        """Loops over the elements of a block."""

        def inner(at: list[Expr]) -> None:
            if len(at) == len(shape):
                body(at)
                return
            with self.recorder.loop(f"a{len(at)}", 0, shape[len(at)]) as counter:
                inner([*at, counter.value])

        inner([])

    def put_name(self, target: ast.Name, value: Any, node: ast.expr) -> None:
        name, names = target.id, self.frame.names
        key = (self.frame.number, name)
        if isinstance(value, Allocation):
            names[name] = self.made((*key, target.lineno, target.col_offset), name, value, target)
            return
        if isinstance(value, Variable) and not value.shape:
            value = self.read(value, (), node)
        if isinstance(value, Block):
            is_seen = value.of is not None and _is_meant(value.of, self._others(name))
            is_view = is_seen or isinstance(node, ast.Subscript) or not isinstance(names.get(name), Variable)
            if value.of is not None and is_view and isinstance(node, _VIEWS):
                if _is_at_counters(value):
                    names[name] = value
                    return
                raise self.fault(
                    node,
                    f"{name} would be a view of {value.of.name} at a position that is data; write .copy() behind it, or index {value.of.name} itself",
                )
            own = names.get(name)
            if isinstance(own, Variable) and self._is_own(own, value.shape) and self._keeps_dtype(own, value):
                self.put_block(self.block(own, target), value, target)
                return
            names[name] = self.stored((*key, target.lineno, target.col_offset), name, value, target)
            return
        if is_number(value):
            if is_static(value) and (self.frame.number, "known", name) in self.forced:
                names[name] = value
                return
            single = self.frame.text.stores.get(name, 0) == 1 and key not in self.forced
            if single and (is_static(value) or not reads_of(value)):
                names[name] = value
                return
            own = names.get(name)
            if isinstance(own, Variable) and not own.shape and own.initial is None:
                self.recorder.assign(own, (), value, self.frame.text.span(target))
                return
            names[name] = self.stored(key, name, value, target)
            return
        others = self._others(name)
        shared = isinstance(value, Variable) and any(own is value for own in others)
        if self.recorder.depth > self.frame.base and (shared or (name in names and names[name] is not value)):
            raise self.fault(
                target, f"{name} stands for another object within a loop or an if; use another name"
            )
        names[name] = value

    def _keeps_dtype(self, variable: Variable, value: Block) -> bool:
        """Whether ``value`` is of the dtype of ``variable``; within a loop, that is of the dtype at which both meet."""
        first = as_expr(value.element([as_expr(0) for _ in value.shape]))
        if self.recorder.depth > self.frame.base:
            self.recorder.meets(variable, first)
            return True
        return first.dtype == variable.dtype

    def _is_own(self, variable: Variable, shape: Sequence[Expr]) -> bool:
        """Whether an array of this ``shape`` that a statement makes anew may take the place of ``variable``, which no other name stands for."""
        if len(variable.shape) != len(shape) or not shape:
            return False
        keys = [key for key, own in self.recorder.variables.items() if own is variable]
        made_here = all(
            isinstance(k, tuple) and isinstance(k[0], tuple) and k[0][0] == self.frame.number for k in keys
        )
        extents = zip(variable.shape, shape, strict=True)
        alike = all(normal(as_expr(a) - b) is as_expr(0) for a, b in extents)
        names = self.frame.names.values()
        return (
            made_here and alike and sum(v is variable for v in names) == 1 and not has_views(names, variable)
        )

    def made(self, key: tuple[object, ...], name: str, value: Allocation, node: ast.AST) -> Variable:
        """A new array, which holds nothing yet, or the same number everywhere."""
        shape = check_shape(value.shape, name)
        kind = value.dtype or self.default
        own = self.recorder.variable(self._free(key, shape, name), name, shape, kind, home=self._home(name))
        own.is_known()
        if value.fill is not None:
            span = self.frame.text.span(node)
            fill = value.fill
            self._over([as_expr(e) for e in shape], lambda at: self.recorder.assign(own, at, fill, span))
        return own

    def _free(
        self, key: tuple[object, ...], shape: Sequence[Any], name: str, value: Block | None = None
    ) -> object:
        """The key of an array that ``name`` is given. That of a reading before of the same text, in a loop that is written out, may be another name's, or read by ``value``."""
        others = self._others(name)
        found, number = (key, shape), 0
        while (own := self.recorder.variables.get(found)) is not None and (
            _is_meant(own, others) or (value is not None and self._may_read(value, own))
        ):
            number += 1
            found = ((*key, number), shape)
        return found

    def _others(self, name: str) -> list[Any]:
        """What all names but ``name`` stand for."""
        return [own for other, own in self.frame.names.items() if other != name]

    def _home(self, name: str) -> int:
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
            own = self.recorder.variable(key, name, (), kind, home=self._home(name))
            self.recorder.assign(own, (), value, span)
            return own
        kind = as_expr(value.element([as_expr(0) for _ in value.shape])).dtype
        shape = tuple(extent_of(e, self, node) for e in value.shape)
        free = self._free(key, shape, name, value)
        own = self.recorder.variable(free, name, shape, kind, home=self._home(name))
        self._over(value.shape, lambda at: self.recorder.assign(own, at, value.element(at), span))
        return own


def _is_at_counters(view: Block) -> bool:
    """Whether a part of an array stands at positions that no statement changes."""
    element = view.element([as_expr(0) for _ in view.shape])
    return isinstance(element, Read) and not any(map(reads_of, element.indices))


def _is_meant(variable: Variable, values: Iterable[Any]) -> bool:
    """Whether one of ``values``, or of what they hold, is ``variable`` or a part of it."""
    for own in values:
        if own is variable or (isinstance(own, Block) and own.of is variable):
            return True
        if isinstance(own, (tuple, list)) and _is_meant(variable, own):
            return True
    return False


def _parts(node: ast.expr, count: int) -> list[ast.expr]:
    """The expressions of ``count`` values: those of a tuple, or ``node`` for each."""
    is_listed = isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == count
    return list(node.elts) if is_listed else [node] * count  # type: ignore[attr-defined]


def _bound_of(extent: Expr, most: Expr) -> Any:
    return _plain(most if free_axes(extent) else extent)


def extent_of(extent: Expr, reader: Calls, node: ast.AST) -> Any:
    if free_axes(extent):
        raise reader.fault(node, "the length of this block depends on a counter; write the loops")
    return _plain(extent)


def _plain(extent: Expr) -> Any:
    return int(extent.value) if isinstance(extent, Const) else extent  # type: ignore[arg-type]
