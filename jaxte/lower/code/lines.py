"""Statements as lines of Python."""

from __future__ import annotations

from jaxte.lower.code.vocabulary import Program, Statement
from jaxte.lower.printing.printer import Printer


def lines_of(statement: Statement, printer: Printer) -> list[str]:
    """``target = source``, or the function that a statement defines."""
    if statement.source is not None:
        return [f"{statement.target} = {printer.text(statement.source)}"]
    return ["", f"def {statement.target}:", *(f"    {line}" if line else "" for line in statement.body), ""]


def sources_of(program: Program) -> list[str]:
    """The right-hand sides of the assignments of ``program``; empty for the functions that it defines."""
    return ["" if s.source is None else program.printer.text(s.source) for s in program.statements]
