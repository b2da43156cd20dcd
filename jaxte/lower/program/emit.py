"""The text of functions and modules."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from jaxte.lang.graphs import identical
from jaxte.lang.scalars.rows import CALL
from jaxte.lang.scalars.table import TABLE
from jaxte.lower.arrays.data import Gather, Output, Scatter
from jaxte.lower.arrays.elementwise import Apply, Cast, Name, Number
from jaxte.lower.arrays.loops import Item
from jaxte.lower.arrays.node import Node, nodes_below
from jaxte.lower.arrays.views import Index, Reshape, Transpose, View
from jaxte.lower.code.lines import docstring_text, lines_of
from jaxte.lower.code.vocabulary import WHEN_TRACED, AnyStatement, Function, Program, Statement
from jaxte.lower.program.prelude import prelude
from jaxte.show.printing import ROWS

_WIDTH = 100  # characters of a line of it


def function_text(program: Program) -> str:
    """The source of the function that ``program`` is, ending in a newline."""
    read = _read_as_arrays(program)
    made = {s.target for s in program.statements if isinstance(s, Statement) and isinstance(s.source, Output)}
    converted = made & read
    lines = [f"def {_call(program)}:", *_docstring(program), *_conversion(program, read)]
    lines += [f"    {name} = {source}" for name, source in program.sizes]
    for scope, statements in groupby(program.statements, key=lambda s: s.scope):
        lines.append(f"    with {_context(scope)}:")
        lines += [
            f"        {line}" if line else ""
            for s in statements
            for line in (
                *lines_of(s, program.printer),
                *([f"{s.target} = jnp.asarray({s.target})"] if s.target in converted else ()),
            )
        ]
    lines.append(f"    return {_returned(program)}")
    return "\n".join(lines) + "\n"


def _context(scope: str) -> str:
    return "jax.ensure_compile_time_eval()" if scope == WHEN_TRACED else f'jax.named_scope("{scope}")'


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
    formulas = list(program.formulas[:ROWS])
    if len(program.formulas) > ROWS:
        formulas.append(f"... and {len(program.formulas) - ROWS} more")
    if not formulas:
        return ['    """Returns its arguments."""']
    lines = [line for formula in formulas for line in _wrapped(formula)]
    if len(lines) == 1:
        return [f'    """{lines[0]}"""']
    return [f'    """{lines[0]}', *(f"    {line}" for line in lines[1:]), '    """']


def _wrapped(formula: str) -> list[str]:
    return textwrap.wrap(formula, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _conversion(program: Program, read: Collection[str]) -> list[str]:
    """JAX arrays made of the parameters that are ``read`` as these."""
    names = [name for name, _ in program.params if name in read]
    if len(names) < 2:
        return [f"    {name} = jnp.asarray({name})" for name in names]
    listed = ", ".join(names)
    return [f"    {listed} = map(jnp.asarray, ({listed}))"]


def _read_as_arrays(program: Program) -> set[str]:
    """The names of what is read as ``X.at[...]`` or at positions that are arrays of JAX.

    NumPy's arrays, which a jitted function may close over and functions of arrays may return, do not have the one and refuse the tracers of the other.
    So are those that something is made from which is read so, by what NumPy's arrays do themselves: slices, arithmetic.
    """
    made = dict(_assignments(program.statements))
    sources = [source for source in made.values() if not source.kinds.isdisjoint((Gather, Scatter))]
    wanted = [n.array for n in nodes_below(*sources) if isinstance(n, (Gather, Scatter))]
    read: set[str] = set()
    while wanted:
        new = (_numpy_names(wanted.pop()) or set()) - read
        read |= new
        wanted += [made[name] for name in new if name in made]
    return read


def _assignments(statements: Iterable[AnyStatement]) -> Iterator[tuple[str, Node]]:
    """What is assigned to which name, within functions too."""
    for statement in statements:
        if isinstance(statement, Function):
            yield from _assignments(statement.statements)
            yield f"{statement.name}()", statement.result
        elif isinstance(statement, Statement):
            yield statement.target, statement.source


def _numpy_names(node: Node) -> set[str] | None:
    """The names that make ``node`` an array of NumPy if all of them are; None where it is one of JAX whatever they are."""
    match node:
        case Number():
            return set()
        case Name(identifier):
            return {identifier}
        case View(array, step) if isinstance(step, (Index, Reshape, Transpose)):
            return _numpy_names(array)
        case Cast(array) | Gather(array, mode="") | Item(array):
            return _numpy_names(array)
        case Apply(op, args) if TABLE[op.name].precedence < CALL:
            found = [_numpy_names(arg) for arg in args]
            return None if None in found else set().union(*(names for names in found if names is not None))
    return None


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
    sources = [source for p in programs for _, source in _assignments(p.statements)]
    imports, used = prelude(sources, "\n".join([*functions, epilogue]))
    parts = [f'"""{heading}"""\n', "\n".join(imports) + "\n", *(f"\n{f}" for f in (*used, *functions))]
    if epilogue:
        parts.append(f"\n{epilogue.strip()}\n")
    return "\n".join(parts)
