"""What stands within a function: functions of its own, and regions of its statements.

Functions within a function, ``def`` or ``lambda``, are read at each of their calls, and see the names around them.

Regions are ``with te.region() as r:``, and ``with te.gradient(r, outputs, inputs) as (dy, dx):`` right behind it.
The statements of a region work on copies of its inputs, which are written before it, and copies of its outputs are written behind it: so what flows from the
one to the other is known by name, iteration by iteration. The gradient consists of statements as well, which read the adjoints of the outputs, from
placeholders, and anything that the program holds at this point.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.derivatives.regions import gradient, region
from jaxte.frontends.loops.program import Marked, Variable
from jaxte.frontends.loops.reading.frames import Frame
from jaxte.frontends.loops.reading.source import Written, with_one_return
from jaxte.frontends.loops.reading.values import Allocation, Block, element_of
from jaxte.frontends.loops.reading.whiles import Whiles
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr, Read, as_expr
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.shapes import as_extent


@dataclass(frozen=True, eq=False)
class InnerWritten(Written):
    """The text of a function within another one, which ``around`` is."""

    around: Frame

    @property
    def names(self) -> Mapping[str, Any]:
        return {**self.around.text.names, **self.around.names}


@dataclass(frozen=True, eq=False)
class Inner:
    """A function within a function."""

    written: InnerWritten
    parameters: inspect.Signature


def inner(node: ast.FunctionDef | ast.Lambda, frame: Frame, value: Callable[[ast.expr], Any]) -> Inner:
    """What ``node`` defines; its defaults have the ``value`` that they have there.

    Raises:
        DefinitionError: parameters of a number that is not known, or decorators.
    """
    args = node.args
    if args.vararg or args.kwarg or args.posonlyargs or args.kwonlyargs:
        raise DefinitionError("a function within the function has plain parameters alone")
    if isinstance(node, ast.Lambda):
        body = ast.copy_location(ast.Return(node.body), node.body)
        tree = ast.copy_location(ast.FunctionDef("lambda", args, [body], []), node)
    else:
        tree = node
    if tree.decorator_list:
        raise DefinitionError("a function within the function has no decorators")
    given = dict(zip([a.arg for a in args.args][::-1], map(value, args.defaults[::-1]), strict=False))
    empty = inspect.Parameter.empty
    parameters = [
        inspect.Parameter(a.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=given.get(a.arg, empty))
        for a in args.args
    ]
    text = InnerWritten(node, frame.text.source, with_one_return(tree), frame)
    return Inner(text, inspect.Signature(parameters))


_FORM = "write `with te.region() as r:` around statements, and `with te.gradient(r, outputs, inputs) as (dy, dx):` right behind them"


class Regions(Whiles):
    """Reads regions."""

    def region(self, node: ast.With, following: ast.stmt | None) -> None:
        """A region, and its gradient, which is ``following``."""
        mark = self._call(node, region)
        if mark is None or not isinstance(node.items[0].optional_vars, ast.Name):
            raise self.fault(node, f"with is no part of te.loops but for regions: {_FORM}")
        if self.recorder.choices:
            raise self.fault(
                node,
                "a region under a condition on data; write the condition within the region and its gradient",
            )
        given = self._call(following, gradient)
        if given is None or len(given.args) != 3:
            raise self.fault(node, f"a region without its gradient; {_FORM}")
        assert isinstance(following, ast.With)
        if ast.unparse(given.args[0]) != node.items[0].optional_vars.id:
            raise self.fault(given.args[0], "the gradient of another region than the one before it")
        outputs, inputs = (_listed(a) for a in given.args[1:])
        names = self._names(following, len(outputs) + len(inputs))
        number = self.recorder.new_number()
        copies = [self._copy(n, f"{_label(n)}_in_{number}") for n in inputs]
        written_before = len(self.recorder.statements)
        renamed = _Renamed([(n, f"{_label(n)}_in_{number}") for n in inputs])
        for label, own in copies:
            self.frame.bind(label, own)
        self.block_of([renamed.of(s) for s in node.body])
        results = [self._copy(renamed.of(n), f"{_label(n)}_out_{number}") for n in outputs]
        behind = len(self.recorder.statements)
        for output, (_, own) in zip(outputs, results, strict=True):
            self._put_back(output, own)
        for label, _ in copies:
            self.frame.names.pop(label, None)
        heads = [self._head(name, own) for name, (_, own) in zip(names, results, strict=False)]
        first = len(self.recorder.statements)
        adjoints = self._gradient(following, names[len(outputs) :], [own for _, own in copies])
        self.recorder.regions.append(
            Marked(
                self.frame.text.span(node),
                tuple(range(written_before - len(copies), written_before)),
                range(written_before, behind - len(results)),
                tuple(range(behind - len(results), behind)),
                tuple(heads),
                range(first, len(self.recorder.statements) - len(adjoints)),
                tuple(adjoints),
            )
        )

    def _call(self, node: ast.stmt | None, function: Any) -> ast.Call | None:
        """The call of ``function`` that ``node`` is a ``with`` of; None for others."""
        if not isinstance(node, ast.With) or len(node.items) != 1:
            return None
        call = node.items[0].context_expr
        return call if isinstance(call, ast.Call) and self.value(call.func) is function else None

    def _names(self, node: ast.With, count: int) -> list[ast.Name]:
        target = node.items[0].optional_vars
        found = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        names = [n for n in found if isinstance(n, ast.Name)]
        if len(names) != count or len(names) != len(found):
            raise self.fault(
                node.items[0].context_expr,
                f"the gradient of a region has a name for the adjoint of each output, then of each input, {count} in all: as (dy, dx)",
            )
        return names

    def _copy(self, node: ast.expr, label: str) -> tuple[str, Variable]:
        """What ``node`` is now, in a variable of its own, which one statement writes."""
        own = self.as_operand(self.value(node), node)
        key = (self.frame.number, label, self.recorder.loops)
        if not isinstance(own, Block) and not isinstance(own, Expr):
            raise self.fault(node, "a name or a part of an array is wanted here, not a number")
        return label, self.stored(key, label, own, node)

    def _put_back(self, node: ast.expr, own: Variable) -> None:
        value = self.as_operand(own, node)
        target = self.value(node)
        place = self.block(target, node) if isinstance(target, Variable) and target.shape else target
        span = self.frame.text.span(node)
        if isinstance(place, Block):
            self.put_block(place, value, node)
        elif isinstance(place, Variable):
            self.recorder.assign(place, (), value, span)
        elif isinstance(place, Read):
            self.recorder.assign(self.variable_of(place), place.indices, value, span)
        else:
            raise self.fault(node, "an output of a region is a name, or a part of an array, that it writes")

    def _head(self, name: ast.Name, own: Variable) -> Placeholder:
        """The adjoint of an output, by its name: elements of a placeholder for all iterations."""
        around = self.recorder.axes
        shape = tuple(as_extent(e) for e in (*(a.extent for a in around), *map(as_expr, own.shape)))
        placeholder = Placeholder(name.id, shape, own.dtype)
        held = self.recorder.variable(
            (self.frame.number, "head", name.id, own.name), name.id, own.shape, own.dtype
        )
        held.is_known()
        span = self.frame.text.span(name)
        self.over(
            [as_expr(e) for e in own.shape],
            lambda at: self.recorder.assign(held, at, Read(placeholder, [*around, *at]), span),
        )
        self.frame.bind(name.id, held)
        return placeholder

    def _gradient(self, node: ast.With, names: Sequence[ast.Name], copies: Sequence[Variable]) -> list[int]:
        """The statements of a gradient, and the numbers of those that hold the adjoints of inputs in the end."""
        for name, own in zip(names, copies, strict=True):
            key = (self.frame.number, "adjoint", name.id, own.name)
            if own.shape:
                zeros = Allocation(own.shape, own.dtype, 0.0)
                self.frame.bind(name.id, self.made(key, name.id, zeros, name))
            else:
                self.frame.bind(name.id, self.stored(key, name.id, 0.0, name))
        self.block_of(node.body)
        return [self._adjoint(name, own) for name, own in zip(names, copies, strict=True)]

    def _adjoint(self, name: ast.Name, own: Variable) -> int:
        """The number of the statement that holds what ``name`` is in the end, the adjoint of ``own``."""
        value = self.as_operand(self.frame.names[name.id], name)
        label = f"{name.id}_of_{own.name}"
        held = self.recorder.variable((self.frame.number, label), label, own.shape, own.dtype)
        held.is_known()
        span = self.frame.text.span(name)

        def element(at: list[Expr]) -> None:
            self.recorder.assign(held, at, element_of(value, at), span)

        self.over([as_expr(e) for e in own.shape], element)
        return len(self.recorder.statements) - 1


class _Renamed(ast.NodeTransformer):
    """Statements in which the inputs of a region have the names of their copies."""

    def __init__(self, inputs: Sequence[tuple[ast.expr, str]]) -> None:
        self._inputs = [(*_parts(node), name) for node, name in inputs]

    def of(self, node: Any) -> Any:
        return ast.fix_missing_locations(self.visit(_copied(node)))

    def visit_Name(self, node: ast.Name) -> Any:
        for base, entries, name in self._inputs:
            if not entries and node.id == base:
                return ast.copy_location(ast.Name(name, node.ctx), node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        base, entries = _parts(node)
        for own, first, name in self._inputs:
            if (
                base == own
                and first
                and [*map(ast.unparse, entries)][: len(first)] == [*map(ast.unparse, first)]
            ):
                rest = entries[len(first) :]
                copy = ast.copy_location(ast.Name(name, ast.Load() if rest else node.ctx), node)
                if not rest:
                    return copy
                own_slice = rest[0] if len(rest) == 1 else ast.Tuple(list(rest), ast.Load())
                found = ast.Subscript(copy, own_slice, node.ctx)
                return ast.copy_location(self.generic_visit(found), node)
        return self.generic_visit(node)


def _parts(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """The name of what ``node`` is a part of, and the entries of its index, whole slices at the end left out."""
    if not isinstance(node, ast.Subscript):
        return ast.unparse(node), []
    entries = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    while entries and ast.unparse(entries[-1]) in (":", "..."):
        entries.pop()
    return ast.unparse(node.value), entries


def _copied(node: Any) -> Any:
    """A copy of a syntax tree with the places of its nodes."""
    if isinstance(node, list):
        return [_copied(n) for n in node]
    if not isinstance(node, ast.AST):
        return node
    own = type(node)(**{name: _copied(value) for name, value in ast.iter_fields(node)})
    return ast.copy_location(own, node)


def _listed(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]


def _label(node: ast.expr) -> str:
    return _parts(node)[0]
