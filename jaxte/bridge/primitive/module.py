"""Emitted text as a Python module that runs, with its lines shown in tracebacks.

Lines of an emitted function that are equal but for names as calls of one function, which JAX traces once.

An operation of ``jax.numpy`` takes JAX some seventy microseconds to trace, a line that was traced before as long as one operation. Steps of a loop that a user
wrote out, and layers of one kind, have the same lines again and again. The text that is shown stays as it is, and so do the operations.
"""

from __future__ import annotations

import builtins
import hashlib
import linecache
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from types import CodeType
from typing import Any

import jax

from jaxte.lang.limits import SEVERAL
from jaxte.lower.arrays.data import Call
from jaxte.lower.code.vocabulary import AnyStatement, Function, Program, Statement


@dataclass(frozen=True)
class Module:
    """A module and the text that it was made from.

    Attributes:
        text: what runs, and what ``te.source`` prints.
        outside: the globals that it does not make itself.
    """

    text: str
    outside: Mapping[str, Any]

    @cached_property
    def namespace(self) -> Mapping[str, Any]:
        """The globals of the module, which runs when one of them is asked for: who prints it compiles nothing."""
        found = dict(self.outside)
        filename = found["__file__"]
        text, functions = with_calls(self.text, filename)
        found |= {name: traced_once(eval(code, found)) for name, code in functions.items()}
        exec(compile(text, filename, "exec"), found)
        return found

    def __getitem__(self, name: str) -> Any:
        return self.namespace[name]


def load(text: str, label: str, externs: Mapping[str, Callable[..., Any]]) -> Module:
    """``text`` as a module; ``externs`` are the globals that it takes from outside."""
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]
    filename = f"<jaxte {label} {digest}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return Module(text, {"__name__": f"jaxte_{label}", "__file__": filename, **externs})


def with_own_externs(programs: Sequence[Program]) -> tuple[list[Program], dict[str, Callable[..., Any]]]:
    """``programs`` with one name for each extern function of the module, and the functions by name."""
    found: dict[str, Callable[..., Any]] = {}
    taken = {ident for program in programs for ident in _identifiers(program)}
    renamed = []
    for program in programs:
        table = {}
        for name, fn in program.externs:
            own, number = name, 1
            while (own != name and own in taken) or found.get(own, fn) is not fn:
                own, number = f"{name}_{number}", number + 1
            found[own] = fn
            table[name] = own
        renamed.append(_renamed(program, table) if any(a != b for a, b in table.items()) else program)
    return renamed, found


def _identifiers(program: Program) -> Iterator[str]:
    yield from (name for name, _ in (*program.params, *program.sizes, *program.externs))
    yield from (statement.target for statement in program.statements)


def _renamed(program: Program, table: Mapping[str, str]) -> Program:
    def call(statement: AnyStatement) -> AnyStatement:
        if isinstance(statement, Function):
            return replace(statement, statements=tuple(map(call, statement.statements)))
        if not isinstance(statement, Statement) or not isinstance(statement.source, Call):
            return statement
        own = statement.source
        return replace(statement, source=replace(own, function=table.get(own.function, own.function)))

    return replace(
        program,
        statements=tuple(map(call, program.statements)),
        externs=tuple((table[name], fn) for name, fn in program.externs),
    )


def title(name: str, externs: Iterable[str]) -> str:
    """The first line of the module's docstring."""
    outside = ", ".join(externs)
    needs = f" Expects in its globals: {outside}." if outside else ""
    return f"{name}: index expressions and their adjoints as JAX code, written by jaxte.{needs}"


def as_list(returned: Any, count: int) -> list[Any]:
    """What an emitted function returns, which is an array where it has one result."""
    return [returned] if count == 1 else list(returned)


_FUNCTION = re.compile(r"def \w+\((.*)\):")
_GLOBAL = re.compile(r"def (\w+)\(|(\w+) = |.*import (?:\S+ as )?(\w+)$")
_SCOPE = re.compile(r" {4}with jax\.named_scope")
_ASSIGNED = re.compile(r" {8}([A-Za-z_]\w*) = (.+)")  # in a scope of a function, not in a function within
_WORD = re.compile(r"""("[^"]*"|'[^']*')|(?<![\w.])([A-Za-z_]\w*)(?!\w|\s*=[^=])""")
_KNOWN = frozenset(dir(builtins)) | {"and", "or", "not", "if", "else"}


@dataclass(frozen=True)
class _Line:
    """``target = source``, where ``source`` has numbers for the ``names`` of arrays in it."""

    number: int
    target: str
    source: str
    names: Sequence[str]


def with_calls(text: str, filename: str) -> tuple[str, dict[str, CodeType]]:
    """The module ``text`` as it runs, line for line, and what makes the functions that it calls."""
    lines = text.split("\n")
    kinds: dict[str, list[_Line]] = {}
    for line in _lines(lines):
        kinds.setdefault(line.source, []).append(line)
    functions: dict[str, CodeType] = {}
    numbers = count()
    for source, alike in kinds.items():
        if len(alike) >= SEVERAL:
            name = f"_line_{next(numbers)}"  # no other name begins so
            functions[name] = _code(source, alike[0], filename)
            for line in alike:
                lines[line.number] = f"        {line.target} = {name}({', '.join(line.names)})"
    return "\n".join(lines), functions


def traced_once(line: Callable[..., Any]) -> Callable[..., Any]:
    """``line``, of which JAX finds the operations again where all arrays are traced; what is known when it is traced stays known."""
    again = jax.jit(line, inline=True)

    def call(*arrays: Any) -> Any:
        return (again if all(isinstance(a, jax.core.Tracer) for a in arrays) else line)(*arrays)

    return call


def _code(source: str, first: _Line, filename: str) -> CodeType:
    """A function of one line, which stands where the ``first`` such line does."""
    params = ", ".join(map(_argument, range(len(first.names))))
    return compile("\n" * first.number + f"lambda {params}: {source}", filename, "eval")


def _argument(number: int) -> str:
    return f"_{number}"


def _lines(lines: Sequence[str]) -> Iterator[_Line]:
    """The lines that assign an array made of arrays of the same function, and of what the module knows, alone."""
    known = {name for line in lines for name in _global(line)} | _KNOWN
    arrays: dict[str, None] = {}
    in_scope = False
    for number, line in enumerate(lines):
        if line and not line.startswith(" "):
            function = _FUNCTION.match(line)
            arrays = dict.fromkeys(function[1].split(", ")) if function else {}
        elif line and not line.startswith("     "):
            in_scope = _SCOPE.match(line) is not None
        found = _ASSIGNED.match(line) if in_scope else None
        if found is not None:
            own = _line(number, found[1], found[2], arrays, known)
            if own is not None:
                yield own
            arrays[found[1]] = None


def _global(line: str) -> list[str]:
    """What a line makes a global of its module."""
    found = None if line.startswith(" ") else _GLOBAL.match(line)
    return [name for name in found.groups() if name] if found else []


def _line(number: int, target: str, source: str, arrays: dict[str, None], known: set[str]) -> _Line | None:
    """The line, where it reads arrays; None where it reads what is neither one nor known."""
    names: dict[str, int] = {}
    others = False

    def named(word: re.Match[str]) -> str:
        nonlocal others
        name = word[2]
        if name in arrays:
            return _argument(names.setdefault(name, len(names)))
        others = others or (name is not None and name not in known)
        return word[0]

    made = _WORD.sub(named, source)
    return None if others or not names else _Line(number, target, made, list(names))
