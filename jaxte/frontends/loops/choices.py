"""Choices of a program: ``if`` on positions, which is a condition around statements, and ``if`` on data, whose test is held in a variable."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxte.frontends.loops.additions import Additions
from jaxte.frontends.loops.expressions import BINARY, truth
from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.truths import check_in_place, first_of
from jaxte.frontends.loops.values import Block
from jaxte.lang import functions
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr, as_expr
from jaxte.lang.walk import reads_of
from jaxte.sets.isl_text import is_decidable


class Choices(Additions):
    """Reads the choices of one function, and what names stand for behind them."""

    @abstractmethod
    def block_of(self, body: Sequence[ast.stmt]) -> None:
        """Reads statements, one after the other."""

    def put(self, target: ast.expr, value: Any, node: ast.expr) -> None:
        """One assignment; ``x[mask] = number`` is one of each element, to what it is or to the number."""
        chosen = self._chosen(target)
        if chosen is None:
            super().put(target, value, node)
            return
        self._where(*chosen, lambda own: self._one(value, node), target)

    def augmented(self, node: ast.AugAssign) -> None:
        """``x[mask] += number`` likewise."""
        chosen = self._chosen(node.target)
        if chosen is None:
            super().augmented(node)
            return
        number = self._one(self.value(node.value), node.value)
        try:
            first = first_of(self.block(chosen[0], node.target))
            check_in_place(chosen[0].name, first.dtype, BINARY[type(node.op)](first, number))
        except DefinitionError as error:
            raise self.fault(node, str(error)) from None
        self._where(*chosen, lambda own: BINARY[type(node.op)](own, number), node.target)

    def _where(self, own: Variable, mask: Block, new: Callable[[Expr], Any], target: ast.expr) -> None:
        """Each element of ``own`` for which ``mask`` holds becomes ``new`` of it."""
        place = self.block(own, target)

        def element(at: Sequence[Expr]) -> Expr:
            was = place.element(at)
            return functions.select(mask.element(at), new(was), was)

        self.put_block(place, Block(place.shape, element), target)

    def _one(self, value: Any, node: ast.expr) -> Any:
        own = self.as_operand(value, node)
        if isinstance(own, Block):
            raise self.fault(
                node, "what a mask chooses is given one number; write a loop with an if, or np.where"
            )
        return own

    def _chosen(self, target: ast.expr) -> tuple[Variable, Block] | None:
        """The array and the mask of ``x[mask]``."""
        if not isinstance(target, ast.Subscript) or isinstance(
            target.slice, (ast.Slice, ast.Tuple, ast.Constant)
        ):
            return None
        own, mask = self.value(target.value), self.value(target.slice)
        if isinstance(mask, Variable) and mask.shape:
            mask = self.block(mask, target.slice)
        if not isinstance(own, Variable) or not isinstance(mask, Block):
            return None
        if as_expr(mask.element([as_expr(0) for _ in mask.shape])).dtype != "bool":
            return None
        if len(mask.shape) != len(own.shape):
            raise self.fault(target.slice, "a mask has the shape of the array")
        return own, mask

    def branch(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        if isinstance(test, ast.BoolOp) and len(test.values) > 1:
            parts = test.values
            if isinstance(test.op, ast.And):
                # those on positions change nothing for those on data before them, and hold for what the body reads
                parts = sorted(parts, key=lambda part: not self.frame.is_of_positions(part))
            first = parts[0]
            rest = (
                parts[1] if len(parts) == 2 else ast.copy_location(ast.BoolOp(test.op, parts[1:]), parts[1])
            )
            own = truth(self.number(first))
            if isinstance(own, bool) or is_decidable(as_expr(own)):
                nested = [_if(test, rest, body, orelse)]
                if isinstance(test.op, ast.And):
                    self.branch_on(own, first, nested, orelse)
                else:
                    self.branch_on(own, first, body, nested)
                return
        self.branch_on(self.number(test), test, body, orelse)

    def branch_on(
        self, test: Any, node: ast.AST, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]
    ) -> None:
        test = truth(test)
        if isinstance(test, bool):
            self.block_of(body if test else orelse)
            return
        before = dict(self.frame.names)
        if is_decidable(test) and not reads_of(test):
            with self.recorder.under(test):
                self.block_of(body)
            self._leave(before, "it is assigned in a branch")
            if orelse:
                with self.recorder.under(functions.logical_not(test)):
                    self.block_of(orelse)
                self._leave(before, "it is assigned in a branch")
            return
        self._on_data(test, node, body, orelse, before)

    def _on_data(
        self,
        test: Expr,
        node: ast.AST,
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
        before: Mapping[str, Any],
    ) -> None:
        number = self.recorder.new_number()
        held = self.stored((self.frame.number, "if", number, self.recorder.loops), f"if_{number}", test, node)
        start = len(self.recorder.statements)
        for branch, own in ((True, body), (False, orelse)):
            if not own:
                continue
            with self.recorder.choice(held, number, branch):
                self.frame.settle(own, self.recorder.choices)
                self.block_of(own)
            self._leave(before, "it is assigned in a branch")
        self.recorder.complete(start, number)

    def _leave(self, before: Mapping[str, Any], why: str, counter: str = "") -> None:
        """What was bound in a loop, or in a branch, and is no variable has no meaning behind it."""
        for name, value in list(self.frame.names.items()):
            if name in before and before[name] is value:
                continue
            if isinstance(value, Variable) and name not in before:
                continue
            if name == counter:
                self.frame.end(name, why)
                if name in before:
                    self.frame.bind(name, before[name])
                continue
            if name in before and (self.frame.number, "known", name) in self.forced:
                raise self.fault(
                    self.frame.text.last_store(name),
                    f"the bound of a loop depends on data: {name} changes where a condition on data holds, or in a loop that is too long to be written out; loop over "
                    "the greatest range, as in range(min(n, 100)) or with an if on the data around the body",
                )
            if name in before:
                raise self.fault(
                    self.frame.text.last_store(name),
                    f"{name} stands for another array within a loop or an if; write {name}[...] = instead",
                )
            self.frame.end(name, why)


def _if(like: ast.AST, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> ast.If:
    return ast.copy_location(ast.If(test, list(body), list(orelse)), like)
