"""Statements as lines of Python."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lower.arrays.loops import Tuple
from jaxte.lower.code.vocabulary import AnyStatement, Function, PrefixFunction, Program, Statement
from jaxte.lower.printing.prefix_function import prefix_lines
from jaxte.lower.printing.printer import Printer


def lines_of(statement: AnyStatement, printer: Printer) -> list[str]:
    """``target = source``, or the function that a statement defines."""
    if isinstance(statement, PrefixFunction):
        s = statement
        inside = prefix_lines(
            printer, s.name, s.reducer, s.position, s.ndim, s.axis, s.reverse, s.step, s.identities
        )
        return _function(s.name, ("x",), inside)
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
