"""Emitted text as a Python module that runs, with its lines shown in tracebacks."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jaxte.bridge.primitive.alike_lines import traced_once, with_calls
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
