"""Choices of a program: ``if`` on positions, which is a condition around statements, and ``if`` on data, whose test is held in a variable.

Where each branch of a choice by data writes an element, what it held before is nobody's concern.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jaxte.frontends.loops.program import Statement, Variable
from jaxte.frontends.loops.reading.additions import Additions
from jaxte.frontends.loops.reading.buffers import is_meant
from jaxte.frontends.loops.reading.expressions import BINARY
from jaxte.frontends.loops.reading.frames import truth
from jaxte.frontends.loops.reading.numpy_rules import check_in_place, first_of
from jaxte.frontends.loops.reading.values import Block
from jaxte.lang import functions
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr, Read, as_expr
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
            inner = self.recorder.choice(held, number, branch)
            with inner, self.frame.settled(own, self.recorder.choices, self.recorder.new_number()):
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
                raise self.fault(self.frame.text.last_store(name), self._another(name, before))
            self.frame.end(name, why)

    def _another(self, name: str, before: Mapping[str, Any]) -> str:
        """Why ``name`` is no other array behind a loop or an if than ``before`` it, and what would do."""
        own = before[name]
        is_own = isinstance(own, Variable) and self.is_made_here(own)
        others = [value for other, value in before.items() if other != name]
        if is_own and not is_meant(own, others):
            remedy = f"write {name}[...] = instead"
        else:
            remedy = f"begin with a copy, {name} = {name}.copy(), and write {name}[...] = instead"
        return f"{name} stands for another array within a loop or an if; {remedy}"


def _if(like: ast.AST, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> ast.If:
    return ast.copy_location(ast.If(test, list(body), list(orelse)), like)


Branch = tuple[tuple[int, bool], ...]


def overwritten(
    statements: Sequence[Statement], reads: Mapping[tuple[Statement, Read], Iterable[Statement]]
) -> set[Statement]:
    """The first statement of each such choice, which may write anything where its branch is not taken; ``reads`` says which statements each read sees.

    Those of one choice write the same element at the same iterations, and their branches cover it. Who reads the element within a branch reads what that
    has written, or the first statement is left as it is.
    """
    groups: dict[object, list[Statement]] = {}
    for own in statements:
        branch = _branch(own)
        if own.keeps is not None and branch:
            target = own.variable, tuple(map(id, own.indices)), own.counters, tuple(map(id, own.conditions))
            groups.setdefault((*target, branch[0][0]), []).append(own)
    found = set()
    for group in groups.values():
        if len(group) > 1 and _covers((), {_branch(s) for s in group}) and _is_unseen(group, reads):
            found.add(group[0])
    return found


def _branch(statement: Statement) -> Branch:
    """The choices around a statement within which its variable does not live."""
    return statement.branch[statement.variable.home :]


def _covers(within: Branch, branches: set[Branch]) -> bool:
    """Whether one of ``branches`` is taken wherever ``within`` is."""
    if within in branches:
        return True
    depth = len(within)
    numbers = {b[depth][0] for b in branches if len(b) > depth and b[:depth] == within}
    return any(all(_covers((*within, (n, b)), branches) for b in (True, False)) for n in numbers)


def _is_unseen(
    group: Sequence[Statement], reads: Mapping[tuple[Statement, Read], Iterable[Statement]]
) -> bool:
    """Whether each read that sees a statement before the last one is what another of them keeps, or is in a branch that has written the element."""
    early = set(group[:-1])
    for (reader, read), sources in reads.items():
        if (reader in group and reader.only_keeps(read)) or early.isdisjoint(sources):
            continue
        before = [s for s in group if s.number < reader.number]
        if not any(reader.branch[: len(s.branch)] == s.branch for s in before):
            return False
    return True
