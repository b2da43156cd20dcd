"""The text of a Python function as a syntax tree, of which each node knows where it stands.

``return`` in the branches of an ``if`` becomes the values of names that are returned at the end of the function.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CellType
from typing import Any, TypeVar

from jaxte.frontends.loops.reading.idioms import counters_of, located
from jaxte.frontends.text.tree import Source, Span
from jaxte.lang.errors import DefinitionError

_EMPTY = CellType()


@dataclass(frozen=True, eq=False)
class Written:
    """A function as it is written.

    Attributes:
        function: what tells it from others, itself or the node that defines it.
    """

    function: object
    source: Source
    tree: ast.FunctionDef

    @property
    def names(self) -> Mapping[str, Any]:
        """What the names mean that it does not define itself, at present."""
        function: Any = self.function
        if isinstance(function, ast.AST):
            return vars(builtins)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closure = {name: cell.cell_contents for name, cell in cells if cell != _EMPTY}
        return {**vars(builtins), **function.__globals__, **closure}

    def span(self, node: Any) -> Span:
        start = self._offset(node.lineno, node.col_offset)
        return Span(self.source, start, self._offset(node.end_lineno, node.end_col_offset))

    def fault(
        self, node: ast.AST, message: str, kind: type[DefinitionError] = DefinitionError
    ) -> DefinitionError:
        """An error with a caret under ``node``."""
        return self.span(node).fault(message, kind)

    def _offset(self, line: int, column: int) -> int:
        """The position of a character, which Python counts in bytes within its line."""
        own = self._lines[line - 1].encode()[:column].decode(errors="ignore")
        return sum(len(text) + 1 for text in self._lines[: line - 1]) + len(own)

    @cached_property
    def _lines(self) -> list[str]:
        return self.source.text.split("\n")

    def is_rebound_only(self, name: str) -> bool:
        """Whether assignments give ``name`` other values, and none, nor a function that it is handed to, changes the array that it stands for."""
        return name in self.stores and not self._changes(name, ())

    def is_computed_with_only(self, name: str) -> bool:
        """Whether what ``name`` stands for is an operand or an element wherever it is read, so that no other name comes to stand for it, or for a part of it.

        It may be returned where it is given another value outside of any ``if``.
        """
        around = {id(child): node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        reads = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id == name]
        is_new = any(isinstance(n.ctx, ast.Store) and not _is_in_branch(n, around) for n in reads)
        return all(_is_operand(n, around, is_new) for n in reads if isinstance(n.ctx, ast.Load))

    def _changes(self, name: str, callers: Sequence[object]) -> bool:
        """Whether the array that ``name`` stands for may be changed, by a statement or by a function that it is handed to."""
        changed = (
            n.target if isinstance(n, ast.AugAssign) else n.value
            for n in ast.walk(self.tree)
            if isinstance(n, ast.AugAssign) or (isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
        )
        if any(isinstance(n, ast.Name) and n.id == name for n in changed):
            return True
        calls = (n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
        return any(self._changes_argument(n, name, (*callers, self.function)) for n in calls)

    def _changes_argument(self, node: ast.Call, name: str, callers: Sequence[object]) -> bool:
        """Whether the function that ``node`` calls may change ``name``, one of its arguments."""
        assert isinstance(node.func, ast.Name)
        given = [*enumerate(node.args), *((k.arg, k.value) for k in node.keywords)]
        places = [place for place, a in given if isinstance(a, ast.Name) and a.id == name]
        if not places or node.func.id in vars(builtins):
            return False
        text = self._function(node.func.id)
        if text is None or text.function in callers:
            return True
        names = [a.arg for a in text.tree.args.args]
        own = [names[p] if isinstance(p, int) and p < len(names) else p for p in places]
        return any(not isinstance(n, str) or text._changes(n, callers) for n in own)

    def _function(self, name: str) -> Written | None:
        """The text of a function that a call by ``name`` means: one within this function, or one under ``te.loops``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and node is not self.tree and node.name == name:
                return Written(node, self.source, node)
        own = None if name in self.stores else getattr(self.names.get(name), "written", None)
        return own if isinstance(own, Written) else None

    @cached_property
    def has_result(self) -> bool:
        """Whether it returns something."""
        return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(self.tree))

    def behind(self, node: ast.AST) -> list[str]:
        """The names that ``node`` mentions, and those that these are computed from, wherever the text says so."""
        found: dict[str, None] = {}
        under_way = [node]
        while under_way:
            for n in ast.walk(under_way.pop()):
                if isinstance(n, ast.Name) and n.id not in found:
                    found[n.id] = None
                    under_way += self._values.get(n.id, [])
        return list(found)

    @cached_property
    def _values(self) -> dict[str, list[ast.AST]]:
        """What assignments give to each name."""
        found: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            if not isinstance(node, (ast.Assign, ast.AugAssign)):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for n in (n for target in targets for n in ast.walk(target)):
                if isinstance(n, ast.Name):
                    found.setdefault(n.id, []).append(node.value)
        return found

    def last_store(self, name: str) -> ast.AST:
        """Where ``name`` is given a value last in the text."""
        found = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id == name]
        stores = [n for n in found if isinstance(n.ctx, ast.Store)]
        return max(stores, key=lambda n: (n.lineno, n.col_offset)) if stores else self.tree

    @cached_property
    def stores(self) -> dict[str, int]:
        """In how many places each name is given a value, the ranges of loops left out."""
        counts: dict[str, int] = {}
        loops = [n for n in ast.walk(self.tree) if isinstance(n, (ast.For, ast.comprehension))]
        counters = {
            id(n)
            for own in loops
            for n in (counters_of(own) if isinstance(own, ast.For) else ast.walk(own.target))
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in counters:
                counts[node.id] = counts.get(node.id, 0) + 1
        return counts


def written(function: Callable[..., Any]) -> Written:
    """The text of ``function``.

    Raises:
        DefinitionError: there is none, or it is no plain ``def``.
    """
    name = getattr(function, "__name__", str(function))
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise DefinitionError(
            f"te.loops of {name}: its source is not to be had; define it with def in a file or in a notebook"
        ) from None
    tree = ast.parse(text).body[0] if not text.lstrip().startswith("lambda") else None
    if not isinstance(tree, ast.FunctionDef):
        raise DefinitionError(f"te.loops of {name}: give a plain function, written with def")
    return Written(function, Source(name, text), with_one_return(tree))


def _is_in_branch(node: ast.AST, around: Mapping[int, ast.AST]) -> bool:
    """Whether an ``if`` is around ``node``."""
    while id(node) in around:
        node = around[id(node)]
        if isinstance(node, ast.If):
            return True
    return False


def _is_operand(node: ast.AST, around: Mapping[int, ast.AST], may_return: bool) -> bool:
    """Whether a number or a new array is made of ``node``, or of the part of it that is taken; or whether it is returned, where it may be."""
    if isinstance(around[id(node)], ast.Return):
        return may_return
    while True:
        own, node = node, around[id(node)]
        match node:
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.AugAssign():
                return True
            case ast.Assign(targets=[ast.Subscript()]):
                return True
            case ast.Subscript() if own is node.slice:
                return True
            case ast.Attribute() | ast.Subscript():
                continue
            case _:
                return False


T = TypeVar("T", bound=ast.AST)
_RETURNED = "returned"


def with_one_return(function: ast.FunctionDef) -> ast.FunctionDef:
    """``function`` with what is returned in branches of an ``if`` as the values of names, which are returned at its end."""
    values = _returned(function.body)
    if len(values) < 2 or None in values:
        return function
    lengths = {len(v.elts) if isinstance(v, ast.Tuple) else None for v in values}
    if len(lengths) > 1:
        return function
    (length,) = lengths
    names = [_RETURNED] if length is None else [f"{_RETURNED}_{n}" for n in range(length)]
    body = _settled(function.body, names)
    if body is None:
        return function
    last = function.body[-1]
    read: list[ast.expr] = [located(last, ast.Name(n, ast.Load())) for n in names]
    found = read[0] if length is None else located(last, ast.Tuple(read, ast.Load()))
    own = ast.FunctionDef(
        function.name, function.args, [*body, located(last, ast.Return(found))], function.decorator_list
    )
    return located(function, own)


def _returned(body: Sequence[ast.stmt]) -> list[ast.expr | None]:
    """What is returned in ``body`` and in the branches of it, loops left out."""
    found: list[ast.expr | None] = []
    for node in body:
        if isinstance(node, ast.Return):
            found.append(node.value)
        elif isinstance(node, ast.If):
            found += [*_returned(node.body), *_returned(node.orelse)]
    return found


def _settled(body: Sequence[ast.stmt], names: Sequence[str]) -> list[ast.stmt] | None:
    """``body`` with assignments of ``names`` in place of each return; None where it may end without one."""
    found: list[ast.stmt] = []
    for n, node in enumerate(body):
        rest = body[n + 1 :]
        if isinstance(node, ast.Return) and node.value is not None:
            values = node.value.elts if isinstance(node.value, ast.Tuple) and len(names) > 1 else [node.value]
            own = [
                located(node, ast.Assign([located(node, ast.Name(name, ast.Store()))], value))
                for name, value in zip(names, values, strict=True)
            ]
            return [*found, *own]
        if isinstance(node, ast.If) and _returned([node]):
            branches = [
                _settled([*own, *([] if _ends(own) else rest)], names) for own in (node.body, node.orelse)
            ]
            if branches[0] is None or branches[1] is None:
                return None
            return [*found, located(node, ast.If(node.test, branches[0], branches[1]))]
        found.append(node)
    return None


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether ``body`` returns, whatever holds."""
    return any(
        isinstance(node, ast.Return) or (isinstance(node, ast.If) and _ends(node.body) and _ends(node.orelse))
        for node in body
    )
