"""Loops of a program: the range of a ``for``, and loops that are written out because their counter stands in a power."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from jaxte.frontends.loops.program import Unbounded, Variable
from jaxte.frontends.loops.reading.choices import Choices
from jaxte.frontends.loops.reading.frames import Redo
from jaxte.frontends.loops.reading.idioms import (
    assignment,
    counters_of,
    jumps_in,
    over_positions,
    unless,
    without_jumps,
)
from jaxte.frontends.loops.reading.values import Block, is_static
from jaxte.lang import functions
from jaxte.lang.expr import Const, Expr, as_expr
from jaxte.lang.limits import FEW, MOST_PARTS
from jaxte.sets.affine import normal


class Ranges(Choices):
    """Reads loops."""

    @abstractmethod
    def statement(self, node: ast.stmt) -> None:
        """One statement."""

    def loop(self, node: ast.For) -> None:
        if node.orelse:
            raise self.fault(node.orelse[0], "else of a loop is no part of te.loops; write an if behind it")
        counters = [n for n in counters_of(node) if isinstance(n, ast.Name)]
        for own in counters:
            if own.id in self.frame.counting:
                raise self.fault(
                    own,
                    f"{own.id} is the counter of a loop around this one, and would be another number behind it; use another name",
                )
        self.frame.counting.extend(own.id for own in counters)
        self._loop(node)
        for _ in counters:
            self.frame.counting.pop()

    def _loop(self, node: ast.For) -> None:
        if isinstance(node.iter, (ast.Name, ast.Tuple, ast.List)):
            listed = self.value(node.iter)
            if isinstance(listed, (tuple, list)):
                self._over_list(node, listed)
                return
        own = over_positions(node)
        if own is not None:
            self._check_same_array(node)
            node = own
        if not isinstance(node.target, ast.Name):
            raise self.fault(
                node.target,
                "the counter of a loop is one name, of range(...); loops over arrays are over names of these or slices, zip of them, and enumerate from a number that is written out",
            )
        name = node.target.id
        if name in self.frame.text.stores:
            raise self.fault(
                node.target, f"{name} is the counter of a loop and is assigned elsewhere; use another name"
            )
        lo, hi, step, most = self._range(node)
        self.over_range(node, name, (lo, hi, step), node.body, most)

    def _check_same_array(self, node: ast.For) -> None:
        """That no statement of a loop over an array gives its name another one: Python goes on with the first."""
        over = {n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)}
        for own in (n for statement in node.body for n in ast.walk(statement)):
            if isinstance(own, ast.Name) and isinstance(own.ctx, ast.Store) and own.id in over:
                raise self.fault(own, f"{own.id} is what the loop runs over; use another name here")

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Block:
        """``[value for i in range(n)]`` as an array, of ``value`` at each position."""
        (own, *more) = node.generators
        if more or own.ifs or not isinstance(own.target, ast.Name):
            raise self.fault(node, "a list of values has one for, of one name, without if; write a loop")
        name, names = own.target.id, self.frame.names
        if isinstance(own.iter, ast.Call) and self.value(own.iter.func) is range:
            lo, hi, step, most = self._range_of(own.iter)
            if most is not None:
                raise self.fault(own.iter, "how many values a list has is data; write a loop")
            extent = normal((as_expr(hi) - lo + (step - (1 if step > 0 else -1))) // step)
            passed: Any = Block((extent,), lambda at: normal(lo + at[0] * step))
        else:
            passed = self.operand(own.iter)
        if not isinstance(passed, Block):
            raise self.fault(
                own.iter, "the values of a list are for positions of range(...), or for an array"
            )

        def value(at: Sequence[Expr]) -> Any:
            before, count = dict(names), len(self.recorder.statements)
            inner = passed.shape[1:]
            taken = (
                Block(inner, lambda rest: passed.element([at[0], *rest])) if inner else passed.element(at[:1])
            )
            self.frame.bind(name, taken)
            found = self.operand(node.elt)
            names.clear()
            names.update(before)
            if len(self.recorder.statements) > count:
                raise self.fault(node.elt, "each value of this list takes a loop of its own; write the loops")
            return found

        first = value([as_expr(0)])
        if not isinstance(first, Block):
            return Block(passed.shape[:1], lambda at: as_expr(value(at)))
        return Block((passed.shape[0], *first.shape), lambda at: value(at[:1]).element(at[1:]))

    def _over_list(self, node: ast.For, values: Sequence[Any]) -> None:
        """A loop over numbers that are listed, written out."""
        if jumps_in(node.body):
            raise self.fault(node, "a loop over a list has no break or continue; write an if")
        before = dict(self.frame.names)
        for value in self.settled(values, "listed", node.iter):
            self._give(node.target, value, node.iter)
            self.block_of(node.body)
        for own in ast.walk(node.target):
            if isinstance(own, ast.Name):
                self._leave(before, self.frame.ends(own.id), own.id)

    def _give(self, target: ast.expr, value: Any, node: ast.expr) -> None:
        if not isinstance(target, (ast.Tuple, ast.List)):
            self.put(target, value, node)
            return
        if not isinstance(value, tuple) or len(value) != len(target.elts):
            raise self.fault(target, f"{len(target.elts)} names, and a value of the list is not as many")
        for own, part in zip(target.elts, value, strict=True):
            self._give(own, part, node)

    def _changed_numbers(self, before: Mapping[str, Any]) -> list[str]:
        """The names of numbers that are known, and were others."""
        names = self.frame.names
        known = [n for n in names if (self.frame.number, "known", n) in self.forced]
        return [n for n in known if n in before and names[n] is not before[n]]

    def over_range(
        self,
        node: ast.For | ast.While,
        name: str,
        ends: tuple[Any, Any, int],
        body: Sequence[ast.stmt],
        most: Any,
    ) -> None:
        """A loop; ``most`` is data that its counter stays below."""
        values = _numbers(ends, most)
        key = (self.frame.number, "written out", id(node))
        coloured = bool(self.recorder.loops) and _is_coloured(name, body) and not jumps_in(body)
        # Each colour of a sweep is a part with statements of its own.
        if values is not None and (key in self.forced or (coloured and len(values) <= FEW)):
            self._written_out(node, name, values, body)
            return
        own, jumps = list(body), jumps_in(body)
        if jumps:
            flag = f"ended_{self.recorder.new_number()}"
            own = without_jumps(body, flag)
            if any(isinstance(n, ast.Break) for n in jumps):
                self.statement(assignment(flag, False, node))
                own = [unless(flag, own, node)]
        try:
            with self.recorder.loop(name, *ends) as counter:
                if isinstance(counter.axis.extent, Const) and counter.axis.extent.value == 0:
                    return
                if values is not None:
                    self.recorder.may_be_written_out(counter.axis, key)
                before = dict(self.frame.names)
                self.frame.bind(name, counter.value)
                self.frame.around.append(node)
                if most is None:
                    self.block_of(own)
                else:
                    test = functions.less(counter.value, self.read(most, (), node))
                    self.branch_on(test, node, own, [])
                self.frame.around.pop()
                if values is not None and self._changed_numbers(before):
                    raise Redo(key)
                self._leave(before, self.frame.ends(name), name)
        except Unbounded:
            raise self.fault(node, "the range of this loop is not bounded by counters and sizes") from None

    def _written_out(
        self, node: ast.For | ast.While, name: str, values: range, body: Sequence[ast.stmt]
    ) -> None:
        """The body once for each of ``values``: a position, a bound or a size is a power of the counter, or another expression that is no sum.

        So are the colours of a sweep, each of which reads the others: as one statement it would have an element for each colour of each time step.
        """
        if jumps_in(body):
            raise self.fault(
                node,
                f"{name} stands in a position or a bound that is no sum of multiples of counters, so that the loop is written out, and break and "
                "continue are no part of such a loop; write an if",
            )
        names, around = self.frame.names, self.frame.names.get(name)
        for value in values:
            self.frame.bind(name, value)
            self.block_of(body)
        if values:
            self.frame.end(name, self.frame.ends(name))
        if around is not None:
            names[name] = around

    def _range(self, node: ast.For) -> tuple[Any, Any, int, Variable | None]:
        call = node.iter
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "reversed"
            and len(call.args) == 1
        ):
            inner = call.args[0]
            lo, hi, step, most = self._range_of(inner)
            if step != 1 or most is not None:
                raise self.fault(
                    inner,
                    "reversed of a range with a step, or to a bound that is data; write range(last, first - 1, -step)",
                )
            return normal(as_expr(hi) - 1), normal(as_expr(lo) - 1), -1, None
        return self._range_of(call)

    def _range_of(self, call: ast.expr) -> tuple[Any, Any, int, Variable | None]:
        if not isinstance(call, ast.Call) or self.value(call.func) is not range or call.keywords:
            raise self.fault(
                call,
                "a loop runs over range(...), reversed(range(...)), an array, or enumerate or zip of arrays",
            )
        args, most = [], None
        for n, own in enumerate(call.args):
            found = self.fixed(self.number(own), own)
            if isinstance(found, Expr) and not is_static(found) and n == len(call.args[:2]) - 1:
                limit = self._limit(own)
                if limit is not None:
                    key = (self.frame.number, "most", self.recorder.new_number(), self.recorder.loops)
                    most, found = self.stored(key, "most", found, own), limit
            if not is_static(found) or isinstance(found, float):
                self.as_known(own)
                raise self.fault(
                    own,
                    "the bound of a loop depends on data; loop over the greatest range, as in range(min(n, 100)) or with an if on the data around the body",
                )
            args.append(found)
        step = args[2] if len(args) == 3 else 1
        if isinstance(step, Expr) and isinstance(step, Const):
            step = int(step.value)  # type: ignore[arg-type]
        if not isinstance(step, int) or not step:
            raise self.fault(call, "the step of a range is a number that is known, and not 0")
        lo, hi = (0, args[0]) if len(args) == 1 else args[:2]
        if most is not None and step < 0:
            raise self.fault(
                call,
                "a range downwards to a bound that is data; loop over the greatest range, with an if around the body",
            )
        return lo, hi, step, most

    def _limit(self, node: ast.expr) -> Any:
        """The greatest that ``min(...)`` of numbers and data may be; None where nothing says."""
        if not isinstance(node, ast.Call) or self.value(node.func) not in (min, np.minimum):
            return None
        known = [v for v in map(self.number, node.args) if is_static(v)]
        return reduce(functions.minimum, known) if len(known) > 1 else known[0] if known else None


def _is_coloured(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether a loop over ``name`` takes elements in turn, those of which a remainder of positions says so, as a red and black sweep does."""
    tests = [node.test for statement in body for node in ast.walk(statement) if isinstance(node, ast.If)]
    named = [t for t in tests if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(t))]
    return any(isinstance(n, ast.Mod) for t in named for n in ast.walk(t))


def _numbers(ends: tuple[Any, Any, int], most: Any) -> range | None:
    """The values of a counter, where they are known and few."""
    first, last = (int(e.value) if isinstance(e, Const) else e for e in ends[:2])  # type: ignore[arg-type]
    if most is not None or not isinstance(first, int) or not isinstance(last, int):
        return None
    values = range(first, last, ends[2])
    return values if len(values) <= MOST_PARTS else None
