"""Statements as lines of Python, and the identifiers in them."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence

from jaxte.lower.arrays.loops import Tuple
from jaxte.lower.code.prefixes import prefix_lines
from jaxte.lower.code.vocabulary import AnyStatement, Function, PrefixFunction, Program, Statement
from jaxte.lower.printing.printer import Printer

_TAKEN = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))
_MODULES = frozenset({"jax", "jnp", "lax", "functools", "pl", "triton"})
_LONGEST = 40  # characters that are kept of a name
# functions of emitted modules; no identifier begins with an underscore
APART, FIRST, KEPT, REPLAYED = ("_apart", "_first", "_kept", "_replayed")


class Names:
    """Hands out identifiers, each once, in the order in which they are asked for."""

    def __init__(self, taken: Iterable[str] = (), following: Mapping[str, int] | None = None) -> None:
        self._used = set(taken)
        self._next = dict(following or {})

    def new(self, wanted: str) -> str:
        """An identifier like ``wanted`` that is not taken yet."""
        base = identifier(wanted)
        if base in self._used or base in _TAKEN or base in _MODULES:
            return self.numbered(base)
        self._used.add(base)
        return base

    def numbered(self, base: str) -> str:
        """``base_1``, ``base_2``, ...: the next one that is not taken yet."""
        number = self._next.get(base, 1)
        while f"{base}_{number}" in self._used:
            number += 1
        self._next[base] = number + 1
        self._used.add(f"{base}_{number}")
        return f"{base}_{number}"

    def copied(self) -> Names:
        """Another one that has given the same identifiers so far."""
        return Names(self._used, self._next)

    def become(self, other: Names) -> None:
        """This one has given what ``other`` has."""
        self._used, self._next = other._used, other._next


def identifier(name: str) -> str:
    """The ASCII identifier nearest to ``name``; it may still be a keyword."""
    cleaned = re.sub(r"[^A-Za-z0-9_]+", "_", name)[:_LONGEST].strip("_")
    if not cleaned:
        return "t"
    return cleaned if not cleaned[0].isdigit() else f"t{cleaned}"


def docstring_text(text: str) -> str:
    """``text`` as it may stand inside a docstring: one line, nothing that ends the string or escapes."""
    shown = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return shown.replace("\\", "/").replace('"', "'")


def lines_of(statement: AnyStatement, printer: Printer) -> list[str]:
    """``target = source``, or the function that a statement defines."""
    if isinstance(statement, PrefixFunction):
        return _function(statement.name, ("x",), prefix_lines(statement, printer))
    if isinstance(statement, Function):
        inside = [line for s in statement.statements for line in lines_of(s, printer)]
        result = statement.result
        results = result.items if isinstance(result, Tuple) else (result,)
        inside.append(f"return {', '.join(map(printer.text, results))}")
        return _function(statement.name, statement.params, inside)
    if isinstance(statement, Statement):
        return [f"{statement.target} = {printer.text(statement.source)}"]
    return ["", f"def {statement.target}:", *(f"    {line}" if line else "" for line in statement.body), ""]


def _function(name: str, params: Sequence[str], inside: Sequence[str]) -> list[str]:
    return ["", f"def {name}({', '.join(params)}):", *(f"    {line}" if line else "" for line in inside), ""]


def sources_of(program: Program) -> list[str]:
    """The right-hand sides of the assignments of ``program``; empty for the functions that it defines."""
    return [program.printer.text(s.source) if isinstance(s, Statement) else "" for s in program.statements]
