"""Statements of a program: Python's syntax tree of a function as a :class:`Program`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxte.frontends.loops.program import Program, Variable
from jaxte.frontends.loops.reading.buffers import is_meant
from jaxte.frontends.loops.reading.expressions import said
from jaxte.frontends.loops.reading.frames import Frame, truth
from jaxte.frontends.loops.reading.idioms import exchanges
from jaxte.frontends.loops.reading.recorder import Recorder
from jaxte.frontends.loops.reading.source import Written
from jaxte.frontends.loops.reading.values import Allocation, Block, is_number, is_static
from jaxte.frontends.loops.reading.whiles import counted
from jaxte.frontends.loops.reading.within import Inner, InnerWritten, Regions, inner
from jaxte.lang.errors import DefinitionError, JaxteError
from jaxte.lang.expr import Expr
from jaxte.tensors.tensor import Tensor

_REMEDIES: dict[type, str] = {
    ast.Try: "try is no part of te.loops",
    ast.Global: "global variables are not written by te.loops",
    ast.Delete: "del is no part of te.loops",
}


class Reader(Regions):
    """Reads the statements of one function."""

    def __init__(
        self,
        text: Written,
        recorder: Recorder,
        forced: set[object],
        default: str,
        callers: tuple[object, ...],
        base: int = 0,
    ) -> None:
        number = recorder.new_number()
        super().__init__(
            Frame(text, {}, {}, number, base, recorder.choices, is_called=bool(callers)), recorder, default
        )
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
            tuple(self.recorder.regions),
        )

    def _results(self, changed: Sequence[Variable]) -> tuple[list[Variable], bool]:
        self._check_outside()
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

    def _check_outside(self) -> None:
        """Arrays of the module are written nowhere."""
        outside = [
            v for key, v in self.recorder.variables.items() if isinstance(key, tuple) and key[0] == "outside"
        ]
        for statement in self.recorder.statements:
            if statement.variable in outside:
                raise statement.span.fault(
                    f"{statement.variable.name} is no argument and no array of the function; begin with a .copy() of it",
                    DefinitionError,
                )

    def _kept(self, value: Any, node: ast.AST, name: str) -> Variable:
        value = self.settled(value, name, node) if isinstance(value, Allocation) else value
        if isinstance(value, Variable):
            return value
        if not isinstance(value, Block) and not is_number(value):
            raise self.fault(node, "a function returns arrays and numbers, and this is neither")
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
            elif isinstance(value, Variable) and self._is_of_our_own(name, value, values):
                copy = self.block(value, self.frame.text.tree)
                self.frame.bind(name, self.stored((*key, "copy"), name, copy, self.frame.text.tree))
            else:
                self.frame.bind(name, value)

    def _is_of_our_own(self, name: str, value: Variable, values: Mapping[str, Any]) -> bool:
        """Whether a parameter may begin with a copy of its array, which its other values are written to: nobody else sees the one or the other."""
        text = self.frame.text
        if not text.is_rebound_only(name):
            return False
        if not self.frame.is_called:
            return True
        others = [own for other, own in values.items() if other != name]
        if isinstance(text, InnerWritten):
            names = text.around.names
            named = {n.id for n in ast.walk(text.tree) if isinstance(n, ast.Name)} & set(names)
            others += [names[own] for own in named]
        is_seen = is_meant(value, others) or any(isinstance(own, Inner) for own in others)
        return not is_seen and text.is_computed_with_only(name)

    # --- statements

    def block_of(self, body: Sequence[ast.stmt]) -> None:
        in_pairs = False
        body = list(exchanges(body, self.frame.text.tree))
        for n, node in enumerate(body):
            if in_pairs:  # the gradient of the region before
                in_pairs = False
                continue
            if self.has_returned:
                raise self.fault(node, "nothing is executed after return; remove it")
            self.recorder.new_statement()
            self.frame.evaluates(node)
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
            elif isinstance(node, ast.With):
                in_pairs = True
                self.region(node, body[n + 1] if n + 1 < len(body) else None)
            else:
                self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Reads one statement; an error without a place is at it."""
        try:
            self._statement(node)
        except JaxteError as error:
            if "\n" in str(error):
                raise
            raise self.fault(node, str(error), DefinitionError) from None

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Pass():
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Expr(value=ast.Call() as call):
                found = self.value(call)
                if found is not None and not isinstance(found, (tuple, Variable, Block)):
                    return
            case ast.FunctionDef():
                self.frame.bind(node.name, self.function(node))
            case ast.Assert():
                self._asserted(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() as value) if self.is_handed_over(
                value.id, node
            ):
                self.hand_over(name, value, node)
            case ast.Assign(targets=[target], value=value):
                self.assigned(target, value)
            case ast.Assign(targets=targets, value=value):
                self.chained(targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assigned(target, value)
            case ast.AugAssign():
                self.augmented(node)
            case ast.For():
                self.loop(node)
            case ast.While() if (own := counted(node, self.frame.text.tree)) is not None:
                self.counted(node, own)
            case ast.While():
                self.repeated(node)
            case ast.If():
                self.branch(node.test, node.body, node.orelse)
            case _:
                remedy = _REMEDIES.get(type(node), f"{said(node)} is no statement of te.loops")
                raise self.fault(node, remedy)

    def _asserted(self, node: ast.Assert) -> None:
        """A condition on sizes and numbers, which holds or does not before anything is computed."""
        test = truth(self.number(node.test))
        if not isinstance(test, bool):
            raise self.fault(node.test, "an assert on data has no place in a program of JAX; remove it")
        if not test:
            raise self.fault(
                node.test, "this does not hold" if node.msg is None else str(self.value(node.msg))
            )

    def function(self, node: ast.FunctionDef | ast.Lambda) -> Inner:
        """A function within the function."""
        try:
            return inner(node, self.frame, lambda own: self.settled(self.value(own), "default", own))
        except DefinitionError as error:
            raise self.fault(node, str(error)) from None

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
        existing, start = set(self.recorder.variables.values()), len(self.recorder.statements)
        reader = Reader(text, self.recorder, self.forced, self.default, self.callers, self.recorder.depth)
        reader.bind(bound.arguments)
        reader.block_of(text.tree.body)
        self._check_result(reader, start, node)
        self._check_order(existing & {s.variable for s in self.recorder.statements[start:]}, node)
        return reader.returned

    def _check_result(self, reader: Reader, start: int, node: ast.Call) -> None:
        """That what the function returns is no copy of an argument that it would return itself, as no iteration gave its name another array."""
        for key, own in self.recorder.variables.items():
            is_copy = (
                isinstance(key, tuple) and isinstance(key[0], tuple) and key[0][0] == reader.frame.number
            )
            if not is_copy or key[0][-1] != "copy" or not is_meant(own, [reader.returned]):  # type: ignore[index]
                continue
            if sum(s.variable is own for s in self.recorder.statements[start:]) == 1:
                raise self.fault(
                    node, f"{own.name} of the function is its argument, or another array; return a .copy()"
                )

    def _check_order(self, changed: Iterable[Variable], node: ast.Call) -> None:
        """That nothing is evaluated together with ``node`` that reads what its function has ``changed``: before or after that would be another number."""
        beside = self.frame.beside(node)
        for own in changed:
            if is_meant(own, beside) or any(isinstance(value, Inner) for value in beside):
                raise self.fault(
                    node,
                    f"{ast.unparse(node.func)} writes {own.name}, which may be read in the same expression; call it in a statement of its own, as in y = "
                    f"{ast.unparse(node)}",
                )

    def _argument(self, node: ast.expr, n: int) -> Any:
        own = self.value(node)
        if isinstance(own, Block):
            if own.of is not None:
                return self.view(own, f"argument {n}", node)
            key = (self.frame.number, "argument", self.recorder.new_number())
            return self.stored(key, f"argument_{n}", own, node)
        if isinstance(own, Expr) and not is_static(own):
            key = (self.frame.number, "argument", self.recorder.new_number())
            return self.stored(key, f"argument_{n}", own, node)
        is_made = isinstance(own, (tuple, list, Allocation))
        return self.settled(own, f"argument_{n}", node) if is_made else own
