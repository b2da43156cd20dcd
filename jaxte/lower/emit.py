"""The text of functions and modules."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import groupby

from jaxte.lower.names import docstring_text
from jaxte.lower.ops import Program

_IMPORTS = ("import functools", "import jax", "import jax.numpy as jnp", "from jax import lax")
_USES = {"import functools": "functools."}
_MOST_FORMULAS = 40
_WIDTH = 100


def function_text(program: Program) -> str:
    """The source of the function that ``program`` is, ending in a newline."""
    lines = [f"def {program.name}({', '.join(name for name, _ in program.params)}):"]
    lines += _docstring(program)
    lines += _conversion(program)
    lines += [f"    {name} = {source}" for name, source in program.sizes]
    for scope, statements in groupby(program.statements, key=lambda s: s.scope):
        lines.append(f'    with jax.named_scope("{scope}"):')
        lines += [f"        {line}" if line else "" for s in statements for line in s.lines]
    lines.append(f"    return {_returned(program)}")
    return "\n".join(lines) + "\n"


def _docstring(program: Program) -> list[str]:
    formulas = list(program.formulas[:_MOST_FORMULAS])
    if len(program.formulas) > _MOST_FORMULAS:
        formulas.append(f"... and {len(program.formulas) - _MOST_FORMULAS} more")
    if not formulas:
        return ['    """Returns its arguments."""']
    lines = [line for formula in formulas for line in _wrapped(formula)]
    if len(lines) == 1:
        return [f'    """{lines[0]}"""']
    return [f'    """{lines[0]}', *(f"    {line}" for line in lines[1:]), '    """']


def _wrapped(formula: str) -> list[str]:
    return textwrap.wrap(formula, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _conversion(program: Program) -> list[str]:
    """JAX arrays made of the parameters that are read as ``X.at[...]``, which NumPy's arrays do not have."""
    code = "\n".join(line for s in program.statements for line in (s.source, *s.body) if ".at[" in line)
    read = set(re.findall(r"(?<![\w.])(\w+)\.at\[", code)) if code else set[str]()
    names = [name for name, _ in program.params if name in read]
    if len(names) < 2:
        return [f"    {name} = jnp.asarray({name})" for name in names]
    listed = ", ".join(names)
    return [f"    {listed} = map(jnp.asarray, ({listed}))"]


def _returned(program: Program) -> str:
    if len(program.results) == 1:
        return program.results[0]
    return f"({', '.join(program.results)})" if program.results else "()"


def module_text(programs: Sequence[Program], epilogue: str = "", title: str = "") -> str:
    """A complete module with the functions of ``programs``, and ``epilogue`` at its end.

    The module imports jax and nothing else. With one result a function returns an array, else a tuple.
    """
    heading = docstring_text(title) or "Written by jaxte: index expressions and their adjoints as JAX code."
    functions = [function_text(program) for program in programs]
    rest = "\n".join([*functions, epilogue])
    imports = [line for line in _IMPORTS if line not in _USES or _USES[line] in rest]
    parts = [f'"""{heading}"""\n', "\n".join(imports) + "\n", *(f"\n{f}" for f in functions)]
    if epilogue:
        parts.append(f"\n{epilogue.strip()}\n")
    return "\n".join(parts)
