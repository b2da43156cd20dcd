"""Statements of a program: Python's syntax tree of a function as a :class:`Program`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from jaxte.frontends.loops.choices import Choices
from jaxte.frontends.loops.expressions import Frame, Redo
from jaxte.frontends.loops.jumps import (
    Counted,
    assignment,
    counted,
    jumps_in,
    stop_unless,
    unless,
    without_jumps,
)
from jaxte.frontends.loops.program import Program, Variable
from jaxte.frontends.loops.recorder import Recorder, Unbounded
from jaxte.frontends.loops.source import Written
from jaxte.frontends.loops.values import (
    Block,
    is_number,
    is_static,
)
from jaxte.lang import dtypes, functions
from jaxte.lang.dtypes import promote
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Const, Expr, as_expr
from jaxte.sets.affine import normal
from jaxte.tensors.tensor import Tensor

_AGAIN = 12  # readings of a text, until the dtypes of its variables are found
_REMEDIES: dict[type, str] = {
    ast.While: "a while loop has no bound that is known; write for t in range(most): if not (...): break, or count in it, as in while t < most and ...: ...; t += 1",
    ast.FunctionDef: "a function within the function; define it outside and decorate it with @te.loops",
    ast.Try: "try is no part of te.loops",
    ast.With: "with is no part of te.loops",
    ast.Global: "global variables are not written by te.loops",
    ast.Assert: "assert is no part of te.loops",
    ast.Delete: "del is no part of te.loops",
}


def program_of(text: Written, arguments: Mapping[str, Any]) -> Program:
    """The program of a function for its arguments: Tensors, and static objects.

    Raises:
        DefinitionError: a statement that is not understood, with a caret under it.
    """
    kinds: dict[object, str] = {}
    forced: set[object] = set()
    for _ in range(_AGAIN):
        recorder = Recorder(kinds)
        try:
            reader = Reader(text, recorder, forced, _default_of(arguments), ())
            found = reader.run(arguments)
        except Redo as again:
            forced.add(again.key)
            continue
        before = dict(kinds)
        for key, variable in recorder.variables.items():
            if variable.is_inferred and variable in recorder.found:
                kind, weak = promote(recorder.found[variable])
                kinds[key] = reader.default if weak and dtypes.is_float(kind) else kind
        if before == kinds:
            return found
    raise DefinitionError(
        f"{text.source.who}: the dtypes of its variables depend on each other; give them by arrays"
    )


def _default_of(arguments: Mapping[str, Any]) -> str:
    """The dtype of floats: the widest of the arguments."""
    kinds = [
        (a.dtype, False) for a in arguments.values() if isinstance(a, Tensor) and dtypes.is_inexact(a.dtype)
    ]
    return dtypes.real_dtype(promote(kinds)[0]) if kinds else "float32"


class Reader(Choices):
    """Reads the statements of one function."""

    def __init__(
        self,
        text: Written,
        recorder: Recorder,
        forced: set[object],
        default: str,
        callers: tuple[Callable[..., Any], ...],
        base: int = 0,
    ) -> None:
        number = recorder.new_number()
        super().__init__(Frame(text, {}, {}, number, base, recorder.choices), recorder, default)
        self.forced = forced
        self.callers = (*callers, text.function)
        self.returned: Any = None
        self.has_returned = False

    # --- a function

    def run(self, arguments: Mapping[str, Any]) -> Program:
        """The program of the outermost function."""
        given: dict[str, Variable] = {}
        for name, value in arguments.items():
            if isinstance(value, Tensor):
                own = self.recorder.variable(("argument", name), name, value.shape, value.dtype, value)
                own.is_known()
                given[name] = own
        self.bind({name: given.get(name, value) for name, value in arguments.items()})
        self.block_of(self.frame.text.tree.body)
        written = {s.variable for s in self.recorder.statements}
        changed = [v for v in given.values() if v in written and v.shape]
        results, is_tuple = self._results(changed)
        return Program(
            self.frame.text.source.who,
            tuple(self.recorder.statements),
            tuple(self.recorder.variables.values()),
            tuple(results),
            is_tuple,
        )

    def _results(self, changed: Sequence[Variable]) -> tuple[list[Variable], bool]:
        tree = self.frame.text.tree
        if not self.has_returned:
            if not changed:
                raise self.fault(tree, "the function returns nothing and writes none of its arguments")
            return list(changed), len(changed) > 1
        values = self.returned if isinstance(self.returned, tuple) else (self.returned,)
        results = [self._kept(v, tree.body[-1], f"result_{n}") for n, v in enumerate(values)]
        lost = [v.name for v in changed if v not in results]
        if lost:
            raise self.fault(
                tree.body[-1],
                f"{lost[0]} is an argument that the function writes, and arrays of JAX do not change: return {lost[0]} too, or begin with "
                f"{lost[0]} = {lost[0]}.copy()",
            )
        return results, isinstance(self.returned, tuple)

    def _kept(self, value: Any, node: ast.AST, name: str) -> Variable:
        if isinstance(value, Variable):
            return value
        return self.stored((self.frame.number, name), name, value, node)

    def bind(self, values: Mapping[str, Any]) -> None:
        """The values of parameters."""
        for name, value in values.items():
            key = (self.frame.number, name)
            if name in self.frame.text.stores and is_number(value) and not isinstance(value, Tensor):
                self.frame.bind(name, self.stored(key, name, value, self.frame.text.tree.args))
            elif isinstance(value, Variable) and not value.shape and name in self.frame.text.stores:
                own = self.read(value, (), self.frame.text.tree)
                self.frame.bind(name, self.stored(key, name, own, self.frame.text.tree))
            elif isinstance(value, Variable) and self.frame.text.is_rebound_only(name):
                copy = self.block(value, self.frame.text.tree)
                self.frame.bind(name, self.stored((*key, "copy"), name, copy, self.frame.text.tree))
            else:
                self.frame.bind(name, value)

    # --- statements

    def block_of(self, body: Sequence[ast.stmt]) -> None:
        for n, node in enumerate(body):
            if self.has_returned:
                raise self.fault(node, "nothing is executed after return; remove it")
            self.recorder.new_statement()
            if isinstance(node, ast.Return):
                if self.recorder.depth > self.frame.base:
                    raise self.fault(
                        node,
                        "return within a loop or an if; assign a variable there, and return it at the end",
                    )
                self.returned = self.value(node.value) if node.value is not None else None
                self.has_returned = node.value is not None
                if not self.has_returned and n + 1 < len(body):
                    raise self.fault(node, "nothing is executed after return; remove it")
            else:
                self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Pass():
                return
            case ast.Expr(value=ast.Constant(value=str())):
                return
            case ast.Expr(value=ast.Call() as call):
                found = self.value(call)
                if found is not None and not isinstance(found, (tuple, Variable, Block)):
                    return
            case ast.Assign(targets=[target], value=value):
                self.assigned(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assigned(target, value)
            case ast.AugAssign():
                self.augmented(node)
            case ast.For():
                self.loop(node)
            case ast.While() if (own := counted(node, self.frame.text.tree)) is not None:
                self._counted(node, own)
            case ast.If():
                self.branch(node.test, node.body, node.orelse)
            case _:
                remedy = _REMEDIES.get(type(node), f"{type(node).__name__} is no statement of te.loops")
                raise self.fault(node, remedy)

    def loop(self, node: ast.For) -> None:
        if node.orelse:
            raise self.fault(node, "else of a loop is no part of te.loops")
        if not isinstance(node.target, ast.Name):
            raise self.fault(node.target, "the counter of a loop is one name, of range(...)")
        name = node.target.id
        if name in self.frame.text.stores:
            raise self.fault(
                node.target, f"{name} is the counter of a loop and is assigned elsewhere; use another name"
            )
        lo, hi, step, most = self._range(node)
        self._over_range(node, name, (lo, hi, step), node.body, most)

    def _counted(self, node: ast.While, own: Counted) -> None:
        """A ``while`` that counts, as a loop over a range that may end earlier."""
        if node.orelse:
            raise self.fault(node, "else of a loop is no part of te.loops")
        first, bound = self.number(own.first), self.number(own.bound)
        if not is_static(first) or not is_static(bound):
            raise self.fault(
                node.test, f"what {own.name} counts from and to depends on data; {_REMEDIES[ast.While]}"
            )
        end = bound + (1 if own.step > 0 else -1) if own.is_inclusive else bound
        body = [*(stop_unless(t) for t in own.others), *own.body]
        self._over_range(node, own.name, (first, end, own.step), body, None)
        self.frame.end(own.name, f"{own.name} is the counter of a loop that has ended")

    def _over_range(
        self,
        node: ast.For | ast.While,
        name: str,
        ends: tuple[Any, Any, int],
        body: Sequence[ast.stmt],
        most: Any,
    ) -> None:
        """A loop; ``most`` is data that its counter stays below."""
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
                before = dict(self.frame.names)
                self.frame.bind(name, counter.value)
                if most is None:
                    self.block_of(own)
                else:
                    test = functions.less(counter.value, self.read(most, (), node))
                    self.branch_on(test, node, own, [])
                self._leave(before, f"{name} is the counter of a loop that has ended", name)
        except Unbounded:
            raise self.fault(node, "the range of this loop is not bounded by counters and sizes") from None

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
            raise self.fault(call, "a loop runs over range(...) or reversed(range(...))")
        args, most = [], None
        for n, own in enumerate(call.args):
            found = self.number(own)
            if isinstance(found, Expr) and not is_static(found) and n == len(call.args[:2]) - 1:
                limit = self._limit(own)
                if limit is not None:
                    key = (self.frame.number, "most", self.recorder.new_number(), self.recorder.loops)
                    most, found = self.stored(key, "most", found, own), limit
            if not is_static(found) or isinstance(found, float):
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

    # --- calls of other such functions

    def called(self, target: Any, node: ast.Call) -> Any:
        text = getattr(target, "written", None)
        if not isinstance(text, Written):
            return super().called(target, node)
        if text.function in self.callers:
            raise self.fault(node, f"{text.source.who} calls itself; te.loops has no recursion, write a loop")
        values = [self._argument(a, n) for n, a in enumerate(node.args)]
        words = {str(k.arg): self._argument(k.value, len(values) + n) for n, k in enumerate(node.keywords)}
        try:
            bound = target.parameters.bind(*values, **words)
        except TypeError as error:
            raise self.fault(node, str(error)) from None
        bound.apply_defaults()
        inner = Reader(text, self.recorder, self.forced, self.default, self.callers, self.recorder.depth)
        inner.bind(bound.arguments)
        inner.block_of(text.tree.body)
        return inner.returned

    def _argument(self, node: ast.expr, n: int) -> Any:
        own = self.value(node)
        if isinstance(own, Block):
            if own.of is not None and isinstance(node, ast.Subscript):
                raise self.fault(
                    node,
                    "a slice is handed to a function; hand over a .copy(), or the whole array and the index",
                )
            key = (self.frame.number, "argument", self.recorder.new_number())
            return self.stored(key, f"argument_{n}", own, node)
        if isinstance(own, Expr) and not is_static(own):
            key = (self.frame.number, "argument", self.recorder.new_number())
            return self.stored(key, f"argument_{n}", own, node)
        return own
