"""What adds to an element: ``+=``, ``x = max(x, e)`` and the like, and sums of blocks.

Additions right behind the write of the same element, as part of what is written: ``u[i] = a`` and ``u[i] += b`` is ``u[i] = a + b``.

An addition by itself has no tensor: who reads the element sees what was written and all that was added since. Where the write is one statement before, that sum
would stand in each of them, and the statement that writes the whole of an array in each iteration would be none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jaxte.frontends.loops.program import Program, Statement, Variable
from jaxte.frontends.loops.reading.assignments import Assignments, extent_of
from jaxte.frontends.loops.reading.expressions import BINARY
from jaxte.frontends.loops.reading.frames import Redo
from jaxte.frontends.loops.reading.numpy_rules import check_in_place, computed, elementwise, first_of
from jaxte.frontends.loops.reading.recorder import FOLDS, identity
from jaxte.frontends.loops.reading.values import Block, as_precise, is_number
from jaxte.lang.dtypes import promote, sum_dtype
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Const, Expr, Read, as_expr
from jaxte.lang.graphs import among, identical
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.domain import IntegerSet
from jaxte.sets.isl_text import is_decidable

_SUMS = {ast.Add: "sum", ast.Sub: "sum", ast.Mult: "prod"}


class Additions(Assignments):
    """Reads what adds to elements."""

    def augmented(self, node: ast.AugAssign) -> None:
        op = _SUMS.get(type(node.op))
        if isinstance(node.target, ast.Name) and (self.frame.number, "known", node.target.id) in self.forced:
            was = self.frame.names.get(node.target.id)
            if is_number(was):
                self.put(node.target, BINARY[type(node.op)](was, self.number(node.value)), node.value)
                return
        place = self._place(node.target)
        value = self.operand(node.value)
        try:
            made = computed(node.op, BINARY[type(node.op)], [place, value])
            if isinstance(place, Block):
                check_in_place(place.of.name if place.of else "this", first_of(place).dtype, made)
        except DefinitionError as error:
            raise self.fault(node, str(error), type(error)) from None
        if op == "sum" and isinstance(node.op, ast.Sub):
            value = elementwise(lambda x: -as_expr(x), [value])
        if isinstance(place, Block):
            if op is None or first_of(place).dtype == "bool":
                self.put_block(place, made, node)
            else:
                self.put_block(place, value, node, op)
            return
        self._add(op, place, value, node, BINARY[type(node.op)])

    def _place(self, target: ast.expr) -> Read | Block:
        self.refuse_copies(target)
        own = self.value(target)
        if isinstance(own, Variable):
            return self.block(own, target) if own.shape else self.read(own, (), target)
        if not isinstance(own, (Read, Block)):
            key = (self.frame.number, target.id) if isinstance(target, ast.Name) else None
            if key is not None and is_number(own) and key not in self.forced:
                raise Redo(key)
            raise self.fault(target, "this is nothing that can be written")
        return own

    def _add(self, op: str | None, place: Read, value: Any, node: Any, function: Callable[..., Any]) -> None:
        variable, span = self.variable_of(place), self.frame.text.span(node.target)
        if not is_number(value):
            raise self.fault(node.value, "one element is written, and this is no number")
        reads_itself = among(place, reads_of(as_expr(value)))
        if op is None or reads_itself or variable.dtype == "bool" or not _keeps_kind(variable, value):
            if op == "sum":
                function = BINARY[ast.Add]  # of what is subtracted, its negative
            self.recorder.put(variable, place.indices, function(place, value), span, None)
            return
        self.recorder.put(variable, place.indices, value, span, op)

    def sum_idiom(self, target: ast.expr, value: ast.expr) -> bool:
        """``x = x + e``, ``x = max(x, e)`` and the like, as what they are."""
        shown = ast.unparse(target)
        op, parts = None, []
        match value:
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as sign, right=right):
                op, parts = _SUMS[type(sign)], [left, right]
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if ast.unparse(left) == shown:
                minus = ast.copy_location(ast.UnaryOp(ast.USub(), right), right)
                op, parts = "sum", [left, minus]
            case ast.Call(func=func, args=[left, right], keywords=[]):
                name = ast.unparse(func).split(".")[-1]
                op = {"max": "max", "min": "min", "maximum": "max", "minimum": "min"}.get(name)
                parts = [left, right]
        if op is None or isinstance(target, (ast.Tuple, ast.List)):
            return False
        own = [n for n, p in enumerate(parts) if ast.unparse(p) == shown]
        if not own or (isinstance(target, ast.Name) and target.id not in self.frame.names):
            return False
        if isinstance(target, ast.Name) and not (
            isinstance(self.frame.names[target.id], Variable) and not self.frame.names[target.id].shape
        ):
            return False
        place = self._place(target)
        if not isinstance(place, Read):
            return False
        other = self.number(parts[1 - own[0]])
        variable = self.variable_of(place)
        if op in ("sum", "prod"):
            sign = ast.Add() if op == "sum" else ast.Mult()
            whole = computed(sign, FOLDS[op], [place, other])
        else:
            whole = FOLDS[op](place, other)
        is_read = among(place, reads_of(as_expr(other)))
        if is_read or variable.dtype == "bool" or not _keeps_kind(variable, other):
            self.recorder.put(variable, place.indices, whole, self.frame.text.span(target), None)
        else:
            self.recorder.put(variable, place.indices, other, self.frame.text.span(target), op)
        return True

    def summed(self, op: str, block: Block, count: int, node: ast.AST) -> Any:
        """The reduction of the last ``count`` axes of ``block``, by loops before the statement."""
        rest = block.shape[: len(block.shape) - count]
        if op in ("max", "min") and any(map(self._may_be_empty, block.shape[len(rest) :])):
            raise self.fault(node, f"the {op} of no elements is no number; put an if around it")
        kind = _sum_dtype(op, block, self.default)
        shape = tuple(extent_of(e, self, node) for e in rest)
        key = (self.frame.number, op, self.recorder.new_number())
        name = f"{op}_{len(self.recorder.statements)}"
        held = self.recorder.variable(key, name, shape, kind, home=self.home(name))
        span = self.frame.text.span(node)
        self.over(rest, lambda at: self.recorder.assign(held, at, identity(op, kind), span))
        self.over(
            block.shape, lambda at: self.recorder.add(op, held, at[: len(rest)], block.element(at), span)
        )
        if not rest:
            return self.read(held, (), node)
        return Block(rest, lambda at: self.read(held, at, node))

    def _may_be_empty(self, extent: Expr) -> bool:
        """Whether an axis has no elements, at some iteration of the loops around."""
        given = [c for c in (*self.recorder.conditions, *self.recorder.within) if is_decidable(c)]
        if not free_axes(extent):
            return isinstance(extent, Const) and int(extent.value) < 1  # type: ignore[arg-type]
        return not IntegerSet(self.recorder.axes, [*given, extent < 1]).is_empty()

    def prefixes(self, op: str, own: Block, place: int, node: ast.AST) -> Block:
        """The reductions of all elements up to each along one axis, by loops before the statement."""
        kind = _sum_dtype(op, own, self.default)
        shape = tuple(extent_of(e, self, node) for e in own.shape)
        name = f"{op}_{len(self.recorder.statements)}"
        key = (self.frame.number, op, self.recorder.new_number())
        held = self.recorder.variable(key, name, shape, kind, home=self.home(name))
        span = self.frame.text.span(node)

        def added(at: list[Expr]) -> None:
            self.recorder.assign(held, at, identity(op, kind), span)
            with self.recorder.loop("k", 0, at[place] + 1) as counter:
                value = own.element([counter.value if n == place else i for n, i in enumerate(at)])
                self.recorder.add(op, held, at, value, span)

        self.over(own.shape, added)
        return Block(own.shape, lambda at: self.read(held, at, node))


def _sum_dtype(op: str, block: Block, default: str) -> str:
    """The dtype of what elements of ``block`` are reduced to: conditions are counted, and short integers widened, beside doubles to NumPy's."""
    own = as_expr(block.element([as_expr(0) for _ in block.shape]))
    found = sum_dtype(own.dtype) if op in ("sum", "prod") else own.dtype
    return as_precise(found, default) if own.weak or found != own.dtype else found


def _keeps_kind(variable: Variable, value: Any) -> bool:
    """Whether adding ``value`` in the dtype of the variable is what Python does: not so of a float that is added to an integer."""
    return promote([(variable.dtype, False), as_expr(value).kind])[0] == variable.dtype


def joined(program: Program) -> Program:
    """``program`` with such additions within the statement before; regions are told by numbers of statements, and stay."""
    if program.regions:
        return program
    found: list[Statement] = []
    for statement in program.statements:
        if found and _continues(statement, found[-1]):
            found[-1] = _both(found[-1], statement)
        else:
            found.append(statement)
    if len(found) == len(program.statements):
        return program
    return replace(program, statements=tuple(replace(s, number=n) for n, s in enumerate(found)))


def _continues(statement: Statement, before: Statement) -> bool:
    """Whether ``statement`` adds to the element that ``before`` writes, in the same iteration and with nothing between them."""
    if statement.op is None or before.op is not None or statement.part is None:
        return False
    if statement.branch or before.branch or before.keeps is not None:
        return False
    same = (statement.counters, statement.conditions, statement.indices)
    if statement.variable is not before.variable or len(statement.counters) != len(before.counters):
        return False
    if not identical(same, (before.counters, before.conditions, before.indices)):
        return False
    *around, place = statement.places
    *around_before, place_before = before.places
    return (
        around == around_before
        and place == place_before + 1
        and not any(r.tensor is statement.variable.cell for r in reads_of(statement.part))
    )


def _both(before: Statement, addition: Statement) -> Statement:
    assert addition.op is not None
    guards = {read: tuple(given) for read, given in before.guards.items()}
    own = Read(addition.variable.cell, addition.indices)
    for read, given in addition.guards.items():
        if read is not own:
            guards[read] = (*guards.get(read, ()), *given)
    spans = {**addition.spans, **before.spans}
    whole = FOLDS[addition.op](before.whole, addition.part)
    return replace(before, whole=whole, guards=guards, spans=spans, places=addition.places)
