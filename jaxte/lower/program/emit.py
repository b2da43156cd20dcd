"""The text of functions and modules."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Sequence
from itertools import groupby

from jaxte.lang.identity import identical
from jaxte.lower.code.identifiers import APART, docstring_text
from jaxte.lower.code.lines import lines_of
from jaxte.lower.code.vocabulary import Program

_IMPORTS = ("import functools", "import jax", "import jax.numpy as jnp", "from jax import lax")
_METADATA = "from jax.experimental.xla_metadata import set_xla_metadata"
_USES = {"import functools": "functools."}
_APART = """
_same = jax.jit(lambda x: x)


def _apart(x):
    \"\"\"``x``, which XLA computes before what reads it, and once: it fuses nothing across this call.\"\"\"
    with set_xla_metadata(inlineable="false"):
        return _same(x)
"""
_MODULES = ("jnp", "lax", "jax")
_MOST_FORMULAS = 40
_WIDTH = 100

_AT_ARRAYS = re.compile(r"\[[^\]]*[a-zA-Z]")
"""A name within brackets, which may be an index that is an array; cheaper to ask for than the syntax tree."""


def function_text(program: Program) -> str:
    """The source of the function that ``program`` is, ending in a newline."""
    lines = [f"def {_call(program)}:", *_docstring(program), *_conversion(program)]
    lines += [f"    {name} = {source}" for name, source in program.sizes]
    for scope, statements in groupby(program.statements, key=lambda s: s.scope):
        lines.append(f'    with jax.named_scope("{scope}"):')
        lines += [
            f"        {line}" if line else "" for s in statements for line in lines_of(s, program.printer)
        ]
    lines.append(f"    return {_returned(program)}")
    return "\n".join(lines) + "\n"


def _call(program: Program) -> str:
    return f"{program.name}({', '.join(name for name, _ in program.params)})"


def _does_more(program: Program, other: Program) -> bool:
    """Whether ``program`` computes what ``other`` does, and returns all of that first and more."""
    count = len(other.results)
    same = identical(
        (program.params, program.sizes, program.statements), (other.params, other.sizes, other.statements)
    )
    return same and count < len(program.results) and program.results[:count] == other.results


def _caller_text(program: Program, other: Program) -> str:
    """``program`` as the first results of ``other``, so that a module holds its statements once."""
    count = len(program.results)
    first = "[0]" if count == 1 else f"[:{count}]"
    what = f'"""{", ".join(program.results)}, without what is kept for the backward pass."""'
    return f"def {_call(program)}:\n    {what}\n    return {_call(other)}{first}\n"


def _function_among(program: Program, programs: Sequence[Program]) -> str:
    longer = next((p for p in programs if _does_more(p, program)), None)
    return function_text(program) if longer is None else _caller_text(program, longer)


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
    """JAX arrays made of the parameters that are read as ``X.at[...]`` or at positions that are arrays of JAX.

    NumPy's arrays, which a jitted function may close over, do not have the one and refuse the tracers of the other.
    So are those that something is made from which is read so, by what NumPy's arrays do themselves: slices, arithmetic.
    """
    lines = [line for s in program.statements for line in lines_of(s, program.printer)]
    if not any(_AT_ARRAYS.search(line) for line in lines):
        return []
    tree = ast.parse("\n".join(lines))
    sizes = {name for name, _ in program.sizes}
    made = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    wanted = [
        n.value
        for n in ast.walk(tree)
        if (isinstance(n, ast.Attribute) and n.attr == "at")
        or (isinstance(n, ast.Subscript) and not _is_static(n.slice, sizes))
    ]
    read: set[str] = set()
    while wanted:
        new = (_numpy_names(wanted.pop()) or set()) - read
        read |= new
        wanted += [made[name] for name in new if name in made]
    names = [name for name, _ in program.params if name in read]
    if len(names) < 2:
        return [f"    {name} = jnp.asarray({name})" for name in names]
    listed = ", ".join(names)
    return [f"    {listed} = map(jnp.asarray, ({listed}))"]


def _is_static(index: ast.expr, sizes: Collection[str]) -> bool:
    """Whether an index is made of numbers, slices and sizes alone."""
    return not any(
        isinstance(n, ast.Call) or (isinstance(n, ast.Name) and n.id not in sizes) for n in ast.walk(index)
    )


def _numpy_names(code: ast.expr) -> set[str] | None:
    """The names that make ``code`` an array of NumPy if all of them are; None where it is one of JAX whatever they are."""
    match code:
        case ast.Constant():
            return set()
        case ast.Name(id=name):
            return None if name in _MODULES else {name}
        case (
            ast.Call(func=ast.Attribute(value=value))
            | ast.Subscript(value=value)
            | ast.Attribute(value=value)
        ):
            return _numpy_names(value)
        case ast.UnaryOp(operand=operand):
            return _numpy_names(operand)
        case ast.BinOp(left=left, right=right):
            operands = [left, right]
        case ast.Compare(left=left, comparators=others):
            operands = [left, *others]
        case _:
            return None
    found = [_numpy_names(operand) for operand in operands]
    return None if None in found else set().union(*(names for names in found if names is not None))


def _returned(program: Program) -> str:
    if len(program.results) == 1:
        return program.results[0]
    return f"({', '.join(program.results)})" if program.results else "()"


def module_text(programs: Sequence[Program], epilogue: str = "", title: str = "") -> str:
    """A complete module with the functions of ``programs``, and ``epilogue`` at its end.

    The module imports jax and nothing else. With one result a function returns an array, else a tuple.
    """
    heading = docstring_text(title) or "Written by jaxte: index expressions and their adjoints as JAX code."
    functions = [_function_among(program, programs) for program in programs]
    rest = "\n".join([*functions, epilogue])
    imports = [line for line in _IMPORTS if line not in _USES or _USES[line] in rest]
    if f"{APART}(" in rest:
        imports.append(_METADATA)
        functions.insert(0, _APART.lstrip())
    parts = [f'"""{heading}"""\n', "\n".join(imports) + "\n", *(f"\n{f}" for f in functions)]
    if epilogue:
        parts.append(f"\n{epilogue.strip()}\n")
    return "\n".join(parts)
