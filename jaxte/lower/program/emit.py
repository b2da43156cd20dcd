"""The text of functions and modules."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from jaxte.lang.dtypes import is_float
from jaxte.lang.graphs import identical
from jaxte.lang.limits import LARGE_RESULT
from jaxte.lang.scalars.rows import CALL
from jaxte.lang.scalars.table import TABLE
from jaxte.lower.arrays.data import Gather, Output, Scatter
from jaxte.lower.arrays.elementwise import Apply, Cast, Kept, Name, Number
from jaxte.lower.arrays.loops import Item
from jaxte.lower.arrays.node import Node, nodes_below
from jaxte.lower.arrays.views import Index, Reshape, Transpose, View
from jaxte.lower.code.lines import APART, FIRST, KEPT, REPLAYED, docstring_text, lines_of
from jaxte.lower.code.vocabulary import WHEN_TRACED, AnyStatement, Function, Program, Statement
from jaxte.lower.printing.data import FUNCTION, KERNEL, PALLAS, TRITON
from jaxte.lower.printing.views import ROLLED, SHIFTED
from jaxte.lower.recurrences.replays import descent, left, restarts
from jaxte.show.printing import ROWS

_IMPORTS = ("import functools", "import jax", "import jax.numpy as jnp", "from jax import lax")
_METADATA = "from jax.experimental.xla_metadata import set_xla_metadata"
_USES = {"import functools": "functools."}
_FIRST = """
_same = jax.jit(lambda x: x)


def _first(x):
    \"\"\"``x``, which XLA computes before what reads it, and once: it fuses nothing across this call.\"\"\"
    with set_xla_metadata(inlineable="false"):
        return _same(x)
"""
_APART = """
def _apart(x):
    \"\"\"``x`` as by ``_first``, for any reader: XLA may write over an array while it reads it both itself and through a call.\"\"\"
    return _first({own})
"""
_COPIED = """
def _apart(x):
    \"\"\"``x`` as by ``_first``, for any reader: XLA may write over an array while it reads it both itself and through a call.

    A short line is copied by the call: those that do nothing wait for nothing, and XLA hands them to other threads.
    \"\"\"
    if not all(isinstance(n, int) for n in x.shape) or x.size > {short}:
        return _first({own})
    with set_xla_metadata(inlineable="false"):
        return _copied(x)


_copied = jax.jit(lambda x: {own})
"""
_AT_ONCE = 8  # calls that wait for nothing which XLA's CPU begins with by itself; from nine on, all go to other threads: leapfrog of 4,000 elements
_ROUNDED = "lax.reduce_precision(x, jnp.finfo(x.dtype).nexp, jnp.finfo(x.dtype).nmant)"
_OWN = f"""
def _own(x):
    \"\"\"``x`` as an array of its own: rounded to the bits that it has, between the least and the greatest of its integers.\"\"\"
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return lax.complex(_own(x.real), _own(x.imag))
    if jnp.issubdtype(x.dtype, jnp.floating):
        return {_ROUNDED}
    if jnp.issubdtype(x.dtype, jnp.integer):
        ends = jnp.iinfo(x.dtype)
        return lax.clamp(jnp.array(ends.min, x.dtype), x, jnp.array(ends.max, x.dtype))
    return _own(x.astype(jnp.uint8)).astype(x.dtype)
"""
BINOMIAL = (
    *(inspect.getsource(own) for own in (restarts, descent, left)),
    """
def _kept(step, start, steps, slots):
    \"\"\"What ``step`` carries on from ``start`` over ``steps``, and what it is handed at those that ``slots`` hold, and at one more.\"\"\"
    into = jnp.array(restarts(steps, slots)[0], jnp.int32)

    def one(carried, t):
        states, kept = carried
        kept = _put(kept, states, into[t])
        return (step(states, t)[0], kept), None

    kept = jax.tree.map(lambda s: jnp.zeros((slots + 1, *s.shape), s.dtype), start)
    return lax.scan(one, (start, kept), jnp.arange(steps, dtype=jnp.int32))[0]
""",
    """
def _replayed(step, back, start, kept, end, steps, slots, ahead):
    \"\"\"What ``back`` carries on from ``start`` over ``steps``, the last first, and returns beside that; ``step`` computes again what it is handed.\"\"\"
    taken, first, offset, into = (jnp.array([*own, slots], jnp.int32) for own in restarts(steps, slots)[1:])

    def one(carried, t):
        so_far, kept, behind = carried

        def again(q, carried):
            states, kept = carried
            kept = _put(kept, states, into[offset[t] + q - first[t]])
            return step(states, q)[0], kept

        states = jax.tree.map(lambda a: a[taken[t]], kept)
        states, kept = lax.fori_loop(first[t], t, again, (states, kept))
        so_far, row = back(so_far, t, states, *behind)
        return (so_far, kept, [states, *behind[:-1]]), row

    carried = start, kept, [end] * (1 + ahead)
    (so_far, *_), rows = lax.scan(one, carried, jnp.arange(steps, dtype=jnp.int32), reverse=True)
    return so_far, rows
""",
    """
def _put(kept, states, slot):
    return jax.tree.map(lambda a, s: lax.dynamic_update_index_in_dim(a, s, slot, 0), kept, states)
""",
)
_ROLLED = """
def _rolled(x, shift, axis):
    \"\"\"``jnp.roll`` as a choice between two pads, which XLA computes in what reads them: slices side by side would be an array.\"\"\"
    n, zero = x.shape[axis], jnp.zeros((), x.dtype)
    shift %= n
    ends = [(shift, -shift, 0), (shift - n, n - shift, 0)]
    before, around = (lax.pad(x, zero, [own if d == axis else (0, 0, 0) for d in range(x.ndim)]) for own in ends)
    return jnp.where(lax.broadcasted_iota(jnp.int32, x.shape, axis) < shift, around, before)
"""
_SHIFTED = """
def _shifted(x, *places):
    \"\"\"``x`` moved by so many places along its dimensions, with zeros where nothing comes from.\"\"\"
    return lax.pad(x, jnp.zeros((), x.dtype), [(n, -n, 0) for n in places])
"""
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


def _apart_texts(programs: Sequence[Program]) -> tuple[str, ...]:
    """The functions by which arrays are kept apart: those of real numbers are rounded to the bits that they have."""
    sources = (source for p in programs for _, source in _assignments(p.statements))
    kept = {n for n in nodes_below(*sources) if isinstance(n, Kept) and n.how == "apart"}
    text = _COPIED if len(kept) > _AT_ONCE else _APART
    if all(is_float(node.dtype) for node in kept):
        return (text.format(own=_ROUNDED, short=LARGE_RESULT // 2),)
    return text.format(own="_own(x)", short=LARGE_RESULT // 2), _OWN


def module_text(programs: Sequence[Program], epilogue: str = "", title: str = "") -> str:
    """A complete module with the functions of ``programs``, and ``epilogue`` at its end.

    The module imports jax and nothing else. With one result a function returns an array, else a tuple.
    """
    heading = docstring_text(title) or "Written by jaxte: index expressions and their adjoints as JAX code."
    functions = [_function_among(program, programs) for program in programs]
    rest = "\n".join([*functions, epilogue])
    imports = [line for line in _IMPORTS if line not in _USES or _USES[line] in rest]
    apart = f"{APART}(" in rest
    if apart or f"{FIRST}(" in rest:
        imports.append(_METADATA)
        functions[:0] = [text.lstrip() for text in (_FIRST, *(_apart_texts(programs) if apart else ()))]
    if f"{KEPT}(" in rest or f"{REPLAYED}(" in rest:
        imports.append("from math import comb")
        functions[:0] = [text.lstrip() for text in BINOMIAL]
    if f"{ROLLED}(" in rest:
        functions.insert(0, _ROLLED.lstrip())
    if f"{SHIFTED}(" in rest:
        functions.insert(0, _SHIFTED.lstrip())
    if f"{KERNEL}(" in rest:
        imports += [PALLAS, TRITON] if "triton." in rest else [PALLAS]
        functions.insert(0, FUNCTION.lstrip())
    parts = [f'"""{heading}"""\n', "\n".join(imports) + "\n", *(f"\n{f}" for f in functions)]
    if epilogue:
        parts.append(f"\n{epilogue.strip()}\n")
    return "\n".join(parts)
