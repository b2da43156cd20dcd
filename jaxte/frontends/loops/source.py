"""The text of a Python function as a syntax tree, of which each node knows where it stands."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CellType
from typing import Any

from jaxte.frontends.loops.idioms import counters_of
from jaxte.frontends.text.tree import Source, Span
from jaxte.lang.errors import DefinitionError

_EMPTY = CellType()


@dataclass(frozen=True, eq=False)
class Written:
    """A function as it is written."""

    function: Callable[..., Any]
    source: Source
    tree: ast.FunctionDef

    @property
    def names(self) -> Mapping[str, Any]:
        """What the names mean that it does not define itself, at present."""
        function: Any = self.function
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
        if name not in self.stores:
            return False
        changed = (
            n.target if isinstance(n, ast.AugAssign) else n.value
            for n in ast.walk(self.tree)
            if isinstance(n, ast.AugAssign) or (isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
        )
        handed = (
            a
            for n in ast.walk(self.tree)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id not in vars(builtins)
            for a in [*n.args, *(k.value for k in n.keywords)]
        )
        return not any(isinstance(n, ast.Name) and n.id == name for n in (*changed, *handed))

    @cached_property
    def has_result(self) -> bool:
        """Whether it returns something."""
        return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(self.tree))

    def last_store(self, name: str) -> ast.AST:
        """Where ``name`` is given a value last in the text."""
        found = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id == name]
        stores = [n for n in found if isinstance(n.ctx, ast.Store)]
        return max(stores, key=lambda n: (n.lineno, n.col_offset)) if stores else self.tree

    @cached_property
    def stores(self) -> dict[str, int]:
        """In how many places each name is given a value, the ranges of loops left out."""
        counts: dict[str, int] = {}
        loops = [n for n in ast.walk(self.tree) if isinstance(n, ast.For)]
        counters = {id(n) for own in loops for n in counters_of(own)}
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
    return Written(function, Source(name, text), tree)
