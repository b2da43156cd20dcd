"""What a name stands for behind an assignment: an array itself, a view of one, a copy, one that is made anew, or a number."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.reading.buffers import Buffers, is_meant
from jaxte.frontends.loops.reading.numpy_rules import is_contiguous, is_in_rows
from jaxte.frontends.loops.reading.values import Allocation, Block, is_number, is_static
from jaxte.lang.expr import Const, Expr, Read, as_expr
from jaxte.lang.walk import reads_of
from jaxte.sets.affine import normal
from jaxte.tensors.shapes import check_shape

_COPY = "write .copy() behind it"


class Names(Buffers):
    """Reads assignments of names."""

    @abstractmethod
    def put(self, target: ast.expr, value: Any, node: ast.expr) -> None:
        """``target = value``."""

    @abstractmethod
    def may_read(self, value: Block, own: Variable) -> bool:
        """Whether elements of ``value`` are those of ``own``."""

    @abstractmethod
    def over(self, shape: Sequence[Expr], body: Callable[[list[Expr]], None]) -> None:
        """Loops over the elements of a block."""

    @abstractmethod
    def home(self, name: str) -> int:
        """Within how many choices by data a variable of this ``name`` lives."""

    def unpacked(self, target: ast.Tuple | ast.List, value_node: ast.expr) -> None:
        value = self._values_of(self.value(value_node), value_node)
        count = len(target.elts)
        if any(isinstance(own, ast.Starred) for own in target.elts):
            raise self.fault(target, "* is no part of te.loops; take slices, as in a, b = x[0], x[1:]")
        if not isinstance(value, tuple):
            raise self.fault(
                target,
                f"{count} names are assigned, and the other side is one value, or an array of a length that is not known; index it, as in x[0], x[1]",
            )
        if len(value) != count:
            raise self.fault(
                target, f"{count} names are assigned, and the other side has {len(value)} values"
            )
        if self.exchanged(target.elts, value, value_node):
            return
        nodes = _parts(value_node, len(value))
        kept = []
        for n, own in enumerate(value):
            if isinstance(own, Variable) and not own.shape:
                own = self.read(own, (), value_node)
            is_view = isinstance(own, Block) and own.of is not None
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
                    own = self.elements(own, value_node)
            kept.append((own, nodes[n] if is_view else value_node))
        for own_target, (own, node) in zip(target.elts, kept, strict=True):
            self.put(own_target, own, node)

    def _values_of(self, value: Any, node: ast.expr) -> Any:
        """The elements, or the rows, of an array of a known length; anything else is what it is."""
        if not isinstance(value, (Variable, Block)) or not value.shape:
            return value
        length = as_expr(value.shape[0])
        if not isinstance(length, Const):
            return value
        places = [ast.copy_location(ast.Constant(n), node) for n in range(int(length.value))]  # type: ignore[arg-type]
        return tuple(self.taken(value, [place], node) for place in places)

    def _is_handed_on(self, target: ast.expr, values: Sequence[Any]) -> bool:
        """Whether the array of ``target`` is among ``values``, so that another name takes it and nothing is written to it."""
        own = self.frame.names.get(target.id) if isinstance(target, ast.Name) else None
        return isinstance(own, Variable) and any(v is own for v in values)

    def put_name(self, target: ast.Name, value: Any, node: ast.expr) -> None:
        """``target`` stands for ``value`` from here on."""
        if isinstance(value, Variable) and not value.shape:
            value = self.read(value, (), node)
        if isinstance(value, Allocation):
            self._put_allocation(target, value)
        elif isinstance(value, Block):
            self._put_block(target, value, node)
        elif is_number(value):
            self._put_number(target, value)
        else:
            self._put_object(target, value, node)

    def _put_allocation(self, target: ast.Name, value: Allocation) -> None:
        names = self.frame.names
        own = names.get(target.id)
        if isinstance(own, Variable) and self._is_filled_anew(own, value):
            own.lies(value.in_rows)
            self._fill(own, value.fill, target)
        else:
            names[target.id] = self.made(self._place_key(target), target.id, value, target)

    def _put_block(self, target: ast.Name, value: Block, node: ast.expr) -> None:
        name, names = target.id, self.frame.names
        own = names.get(name)
        is_seen = value.of is not None and is_meant(value.of, self._others(name))
        is_view = is_seen or isinstance(node, ast.Subscript) or not isinstance(own, Variable)
        if value.of is not None and (is_view or self._is_seen_outside(value.of)):
            names[name] = self.view(value, name, node)
        elif isinstance(own, Variable) and self._is_own(own, value.shape) and self._keeps_dtype(own, value):
            own.lies(is_in_rows(value) if value.of is None else is_contiguous(value))
            self.put_block(self.block(own, target), value, target)
        else:
            names[name] = self.stored(self._place_key(target), name, value, target)

    def _put_number(self, target: ast.Name, value: Any) -> None:
        name, names, frame = target.id, self.frame.names, self.frame
        own = names.get(name)
        is_known = is_static(value) and (frame.number, "known", name) in self.forced
        single = frame.text.stores.get(name, 0) == 1 and (frame.number, name) not in self.forced
        if is_known or (single and (is_static(value) or not reads_of(value))):
            names[name] = value
        elif isinstance(own, Variable) and not own.shape and own.initial is None:
            self.recorder.assign(own, (), value, frame.text.span(target))
        else:
            names[name] = self.stored(frame.key(name), name, value, target)

    def _put_object(self, target: ast.Name, value: Any, node: ast.expr) -> None:
        name, names = target.id, self.frame.names
        value = self.settled(value, name, node)
        shared = isinstance(value, Variable) and any(own is value for own in self._others(name))
        if self.recorder.depth > self.frame.base and (shared or (name in names and names[name] is not value)):
            raise self.fault(
                target, f"{name} stands for another object within a loop or an if; use another name"
            )
        names[name] = value

    def _place_key(self, target: ast.Name) -> tuple[object, ...]:
        """What tells an array that is made at ``target`` from others of its name."""
        return (*self.frame.key(target.id), target.lineno, target.col_offset)

    def _is_seen_outside(self, variable: Variable) -> bool:
        """Whether who calls the function sees what is written to ``variable``."""
        is_changed = variable.initial is not None and not self.frame.text.has_result
        return is_changed or not self.is_ours(variable)

    def view(self, value: Block, name: str, node: ast.AST) -> Block:
        """``value``, a part of an array that ``name`` stands for from here on: at the same place, whatever is written."""
        assert value.of is not None
        if value.is_copied_at_times:
            raise self.fault(
                node,
                f"whether NumPy makes {name} a view of {value.of.name} or a copy is not known here; {_COPY}",
            )
        if not _is_at_counters(value):
            raise self.fault(
                node,
                f"{name} would be a view of {value.of.name} at a position that is data; {_COPY}, or index {value.of.name} itself",
            )
        return value

    def settled(self, value: Any, name: str, node: ast.AST) -> Any:
        """``value`` as it is now, which ``name``, or a list that it stands for, holds whatever is written from here on; arrays and views stay what they are."""
        if isinstance(value, (tuple, list)):
            return tuple(self.settled(own, name, node) for own in value)
        if isinstance(value, Block) and value.of is not None:
            return self.view(value, name, node)
        if isinstance(value, Variable) and not value.shape:
            value = self.read(value, (), node)
        if isinstance(value, Allocation):
            return self.made(self._anew(name), name, value, node)
        if isinstance(value, Block):
            return self.stored(self._anew(name), name, value, node)
        if isinstance(value, Expr) and reads_of(value):
            return self.read(self.stored(self._anew(name), name, value, node), (), node)
        return value

    def _anew(self, name: str) -> tuple[object, ...]:
        """A key that no other variable has."""
        return (self.frame.number, "held", name, self.recorder.new_number())

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
        extents = zip(variable.shape, shape, strict=True)
        alike = all(normal(as_expr(a) - b) is as_expr(0) for a, b in extents)
        names = list(self.frame.names.values())
        held = sum(is_meant(variable, [own]) for own in names)
        return self.is_made_here(variable) and alike and held == 1

    def made(self, key: tuple[object, ...], name: str, value: Allocation, node: ast.AST) -> Variable:
        """A new array, which holds nothing yet, or the same number everywhere."""
        shape = check_shape(value.shape, name)
        kind = value.dtype or self.default
        own = self.recorder.variable(self._free(key, shape, name), name, shape, kind, home=self.home(name))
        own.is_known()
        own.lies(value.in_rows)
        self._fill(own, value.fill, node)
        return own

    def _is_filled_anew(self, variable: Variable, value: Allocation) -> bool:
        """Whether ``value``, made within a loop or an ``if``, may be written into ``variable``, which no other name stands for.

        One of np.empty may not: what is read before it is written is an error, and not what the array held before.
        """
        within = self.recorder.depth > self.frame.base and value.fill is not None
        dtype = value.dtype or self.default
        return (
            within and dtype == variable.dtype and self._is_own(variable, [as_expr(e) for e in value.shape])
        )

    def _fill(self, variable: Variable, number: Any, node: ast.AST) -> None:
        """Writes ``number`` to all of ``variable``; nothing where it is None."""
        if number is not None:
            span = self.frame.text.span(node)
            extents = [as_expr(e) for e in variable.shape]
            self.over(extents, lambda at: self.recorder.assign(variable, at, number, span))

    def _free(
        self, key: tuple[object, ...], shape: Sequence[Any], name: str, value: Block | None = None
    ) -> object:
        """The key of an array that ``name`` is given. That of a reading before of the same text, in a loop that is written out, may be another name's, or read by ``value``."""
        others = self._others(name)
        found, number = (key, shape), 0
        while (own := self.recorder.variables.get(found)) is not None and (
            is_meant(own, others) or (value is not None and self.may_read(value, own))
        ):
            number += 1
            found = ((*key, number), shape)
        return found

    def _others(self, name: str) -> list[Any]:
        """What all names but ``name`` stand for."""
        return [own for other, own in self.frame.names.items() if other != name]


def _is_at_counters(view: Block) -> bool:
    """Whether a part of an array stands at positions that no statement changes."""
    element = view.element([as_expr(0) for _ in view.shape])
    return isinstance(element, Read) and not any(map(reads_of, element.indices))


def _parts(node: ast.expr, count: int) -> list[ast.expr]:
    """The expressions of ``count`` values: those of a tuple, or ``node`` for each."""
    is_listed = isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == count
    return list(node.elts) if is_listed else [node] * count  # type: ignore[attr-defined]
