"""Frames of functions while their statements are read: what names stand for, what is put back behind a branch, and which names live within one."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.reading.source import Written
from jaxte.frontends.loops.reading.values import Block
from jaxte.lang import functions
from jaxte.lang.expr import Const, Expr, as_expr

_SIZES = ("shape", "size", "ndim")


class Redo(Exception):
    """The text has to be read again, with ``name`` as a variable."""

    def __init__(self, key: object) -> None:
        super().__init__(str(key))
        self.key = key


@dataclass
class Frame:
    """One function that is read: its text, and what its names stand for.

    Attributes:
        base: how many loops and choices are around its call.
        choices: how many of these are choices by data.
        homes: of names, how many choices by data hold all that the text says of them.
        within: of these names, the number of the branch that they live in.
        around: the loops around the statement that is read, the outermost first.
        counting: the names that count them, and those that are written out.
        is_called: whether another such function calls it.
        evaluated: the expression, or the statement, that is evaluated.
    """

    text: Written
    names: dict[str, Any]
    ended: dict[str, str]
    number: int
    base: int = 0
    choices: int = 0
    homes: dict[str, int] = field(default_factory=dict)
    within: dict[str, int] = field(default_factory=dict)
    around: list[ast.For | ast.While] = field(default_factory=list)
    counting: list[str] = field(default_factory=list)
    is_called: bool = False
    evaluated: ast.AST | None = None

    def evaluates(self, node: ast.AST) -> None:
        """``node`` is what is evaluated: of a statement, what it evaluates before it does anything."""
        match node:
            case (
                ast.Assign(value=own) | ast.AnnAssign(value=own) | ast.Expr(value=own) | ast.Return(value=own)
            ):
                self.evaluated = own
            case ast.If(test=own) | ast.While(test=own) | ast.For(iter=own):
                self.evaluated = own
            case _:
                self.evaluated = node

    def beside(self, node: ast.AST) -> list[Any]:
        """What the names stand for that are evaluated together with ``node``, outside of it; nothing where ``node`` is all."""
        if self.evaluated is None:
            return []
        own = {id(n) for n in ast.walk(node)}
        named = (n.id for n in ast.walk(self.evaluated) if isinstance(n, ast.Name) and id(n) not in own)
        return [self.names[name] for name in named if name in self.names]

    def home(self, name: str, present: int) -> int:
        """How many of the ``present`` choices a variable lives within: of names that the text does not have, all."""
        return self.homes.get(name, self.choices) if name in self.text.stores else present

    @contextmanager
    def settled(self, body: Sequence[ast.stmt], present: int, number: int) -> Iterator[None]:
        """The names that ``body``, a branch of a choice by data, sets first and whose values nothing outside of it reads live within it."""
        own = [name for name in names_of_its_own(body, self.text.tree) if name in self.text.stores]
        before = {name: (self.homes.get(name), self.within.get(name)) for name in own}
        for name in own:
            self.names.pop(name, None)
            self.homes[name], self.within[name] = present, number
        yield
        for name, (home, within) in before.items():
            self.names.pop(name, None)
            _put_back(self.homes, name, home)
            _put_back(self.within, name, within)

    def key(self, name: str) -> tuple[object, ...]:
        """What the variable of ``name`` is found by: those of names that live within choices are others in each."""
        within = self.within.get(name)
        return (self.number, name) if within is None else (self.number, name, "within", within)

    def bind(self, name: str, value: Any) -> None:
        """``name`` stands for ``value`` from here on."""
        self.names[name] = value

    def end(self, name: str, why: str) -> None:
        """``name`` stands for nothing from here on."""
        del self.names[name]
        self.ended[name] = why

    def ends(self, name: str) -> str:
        """Why a counter stands for nothing behind its loop."""
        return f"{name} is the counter of a loop that has ended; keep its last value in a name of its own, or use another counter"

    def is_of_positions(self, node: ast.expr) -> bool:
        """Whether counters, sizes and numbers decide ``node`` alone: it names no array and no local number but for their sizes."""
        sizes = {id(n.value) for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr in _SIZES}
        named = (n for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in sizes)
        return not any(isinstance(self.names.get(n.id), (Variable, Block)) for n in named)


def _put_back(table: dict[str, int], name: str, value: int | None) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value


def truth(value: Any) -> Any:
    """What a number says as a condition: whether it is not 0."""
    if not isinstance(value, Expr):
        return bool(value)
    if isinstance(value, Const):
        return bool(value.value)
    return value if value.dtype == "bool" else functions.not_equal(value, 0)


def is_truth(value: Any) -> bool:
    """Whether ``value`` is a truth, known or an expression."""
    return as_expr(value).dtype == "bool"


def names_of_its_own(body: Sequence[ast.stmt], function: ast.FunctionDef) -> list[str]:
    """The names that the first statement of ``body`` to mention them gives a value, and whose values nothing else in ``function`` reads.

    So does the first of each iteration of a loop, where no statement outside of that mentions them. Where other statements mention the name,
    they stand in other blocks that give it a value first, too, and that ``body`` is no part of.
    """
    inside = _nodes(body)
    first = _set_first(body)
    others: dict[str, set[int]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in first and id(node) not in inside:
            others.setdefault(node.id, set()).add(id(node))
    apart = [(set(_set_first(own)), _nodes(own)) for own in _blocks(function)] if others else []
    found = []
    for name in first:
        left = others.get(name, set())
        for names, nodes in apart:
            if name in names and id(body[0]) not in nodes:
                left = left - nodes
        if not left:
            found.append(name)
    return found


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """The bodies of choices and loops in ``function``."""
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.For, ast.While)):
            yield node.body
        if isinstance(node, ast.If) and node.orelse:
            yield node.orelse


def _nodes(body: Iterable[ast.AST]) -> set[int]:
    return {id(n) for own in body for n in ast.walk(own)}


def _set_first(body: Sequence[ast.AST]) -> list[str]:
    """The names that the first of ``body`` to mention them gives a value."""
    mentioned = [[n for n in ast.walk(own) if isinstance(n, ast.Name)] for own in body]
    count = Counter(name for names in mentioned for name in {n.id for n in names})
    seen: set[str] = set()
    found: list[str] = []
    for own, names in zip(body, mentioned, strict=True):
        if isinstance(own, ast.Assign):
            once = Counter(n.id for n in names)
            here = [n.id for n in names if isinstance(n.ctx, ast.Store) and once[n.id] == 1]
        elif isinstance(own, (ast.For, ast.While)):
            head = own.test if isinstance(own, ast.While) else own.iter
            here = [name for name in _set_first([head, *own.body]) if count[name] == 1]
        else:
            here = []
        found += [name for name in here if name not in seen]
        seen.update(n.id for n in names)
    return found
