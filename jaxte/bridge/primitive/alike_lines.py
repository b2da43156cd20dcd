"""Lines of an emitted function that are equal but for names as calls of one function, which JAX traces once.

An operation of ``jax.numpy`` takes JAX some seventy microseconds to trace, a line that was traced before as long as one operation. Steps of a loop that a user
wrote out, and layers of one kind, have the same lines again and again. The text that is shown stays as it is, and so do the operations.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from types import CodeType
from typing import Any

import jax

from jaxte.lang.limits import SEVERAL

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
