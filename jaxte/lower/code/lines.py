"""Statements as lines of Python: identifiers, assignments, the functions of cumulative reductions in blocks, and the check of a whole program.

def y_prefix(x):
    n = x.shape[1]
    if n <= 1:
        return x
    x = jnp.pad(x, ((0, 0), (0, -n % 4)))
    parts = [x[:, k::4] for k in range(4)]
    for k in range(1, 4):
        parts[k] = parts[k - 1] + parts[k]
    before = y_prefix(parts[3])
    total = jnp.pad(before[:, :-1], ((0, 0), (1, 0)))
    totals = [total + part for part in parts]
    return jnp.stack(totals, axis=2).reshape(x.shape)[:, :n]

What comes before a block is added to the sums within it, so that each level rounds large numbers once. Of other reducers, one part after the other is
combined with it.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Reducer, as_expr
from jaxte.lower.arrays.elementwise import Name, Number
from jaxte.lower.arrays.loops import Item, Tuple
from jaxte.lower.arrays.node import ArrayError, Node
from jaxte.lower.arrays.products import OPS, combined
from jaxte.lower.arrays.verify import verify_node
from jaxte.lower.code.vocabulary import AnyStatement, Function, PrefixFunction, Program, Statement
from jaxte.lower.printing.printer import Printer
from jaxte.lower.printing.products import combiner_source
from jaxte.lower.printing.writer import tuple_text
from jaxte.tensors.tensor import Tensor

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


BLOCK = 4  # elements whose running sum is written out, before one runs over the blocks


def _prefix_lines(function: PrefixFunction, printer: Printer) -> list[str]:
    """The body of ``function``, of ``x``, an array or one for each value of the reducer."""
    reducer, ndim, axis, reverse = function.reducer, function.ndim, function.axis, function.reverse
    lead = ":, " * axis
    own = "x" if reducer.arity == 1 else f"x[{function.position}]"
    first = "x" if reducer.arity == 1 else "x[0]"
    fills = [_fill(printer, identity) for identity in function.identities]
    if reverse:
        other, rest, widths, parts, totals = "after", "1:", "(0, 1)", "reversed(parts)", "totals[::-1]"
    else:
        other, rest, widths, parts, totals = "before", ":-1", "(1, 0)", "parts", "totals"
    shifted = f"jnp.pad({other}[{lead}{rest}], {_widths(ndim, axis, widths)}{fills[function.position]})"
    step_text, within, whole = printer.text(function.step), list[str](), _whole(printer, reducer)
    if reducer.is_sum:
        within, whole = _sums_within(reverse), f"parts[{0 if reverse else BLOCK - 1}]"
        combining, totals = [f"totals = [{step_text} for part in parts]"], "totals"
    else:
        combining = [
            "totals = []",
            f"for part in {parts}:",
            f"    total = {step_text}",
            "    totals.append(total)",
        ]
    return [
        f"n = {first}.shape[{axis}]",
        "if n <= 1:",
        f"    return {own}",
        *_parts(ndim, axis, fills),
        *within,
        f"{other} = {function.name}({whole})",
        f"total = {shifted}",
        *combining,
        f"return jnp.stack({totals}, axis={axis + 1}).reshape({first}.shape)[{lead}:n]",
    ]


def _parts(ndim: int, axis: int, fills: Sequence[str]) -> list[str]:
    """The positions of all blocks, first ones, second ones and so on, identities behind the last."""
    ends = _widths(ndim, axis, f"(0, -n % {BLOCK})")
    entry = f"[{':, ' * axis}k::{BLOCK}]"
    if len(fills) == 1:
        return [f"x = jnp.pad(x, {ends}{fills[0]})", f"parts = [x{entry} for k in range({BLOCK})]"]
    return [
        f"ends = {ends}",
        f"x = {tuple_text(f'jnp.pad(x[{n}], ends{fill})' for n, fill in enumerate(fills))}",
        f"parts = [{tuple_text(f'x[{n}]{entry}' for n in range(len(fills)))} for k in range({BLOCK})]",
    ]


def _whole(printer: Printer, reducer: Reducer) -> str:
    """What each block comes to."""
    if reducer.name not in OPS:
        listed = "parts" if reducer.arity > 1 else f"[{', '.join(f'parts[{k}]' for k in range(BLOCK))}]"
        return f"functools.reduce({combiner_source(reducer)}, {listed})"
    parts = [Item(Name("parts"), k, (), (reducer.results[0].dtype, False)) for k in range(BLOCK)]
    return printer.text(combined(reducer, parts))


def _sums_within(reverse: bool) -> list[str]:
    """The parts of each block up to each of its positions, or from there on."""
    if reverse:
        return [f"for k in range({BLOCK - 2}, -1, -1):", "    parts[k] = parts[k] + parts[k + 1]"]
    return [f"for k in range(1, {BLOCK}):", "    parts[k] = parts[k - 1] + parts[k]"]


def _widths(ndim: int, axis: int, own: str) -> str:
    return tuple_text([own if n == axis else "(0, 0)" for n in range(ndim)])


def _fill(printer: Printer, identity: Node) -> str:
    zero = isinstance(identity, Number) and not identity.value
    return "" if zero else f", constant_values={printer.text(identity)}"


def lines_of(statement: AnyStatement, printer: Printer) -> list[str]:
    """``target = source``, or the function that a statement defines."""
    if isinstance(statement, PrefixFunction):
        return _function(statement.name, ("x",), _prefix_lines(statement, printer))
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


Bound = dict[str, Name | None]


def verify_program(program: Program) -> None:
    """Checks that ``program`` has a meaning.

    Raises:
        ArrayError: it has none; the message names the statement.
    """
    bound: Bound = {ident: tensor_name(ident, tensor) for ident, tensor in program.params}
    try:
        _verify(program.statements, bound)
    except ArrayError as error:
        raise ArrayError(
            f"{program.name}: {error}; the array program that jaxte made has no meaning, which is a fault of jaxte: "
            "please report it, and give te.function another form, as forms={'*': 'general'}"
        ) from None
    for result in program.results:
        if result not in bound:
            raise ArrayError(f"{program.name}: the result {result} is not assigned")


def _verify(statements: Iterable[AnyStatement], bound: Bound) -> None:
    for statement in statements:
        try:
            _verify_statement(statement, bound)
        except ArrayError as error:
            raise ArrayError(f"{statement.target}: {error}") from None


def _verify_statement(statement: AnyStatement, bound: Bound) -> None:
    match statement:
        case Statement(_, target, source):
            verify_node(source, bound)
            names = [name.strip("() ") for name in target.split(",")]
            bound.update(dict.fromkeys(names))
            if len(names) == 1:
                bound[names[0]] = _named(names[0], source)
        case Function(_, name, params, inner, result):
            inside: Bound = {**bound, **dict.fromkeys(params)}
            _verify(inner, inside)
            for item in result.items if isinstance(result, Tuple) else (result,):
                verify_node(item, inside)
            bound[name] = None
        case PrefixFunction(name=name):
            bound[name] = None


def _named(name: str, source: Node) -> Name | None:
    """``source`` under a name; None where it is no single array."""
    return None if source.is_tuple else Name(name, source.shape, source.kind)


def tensor_name(identifier: str, tensor: Tensor) -> Name:
    """The name of ``tensor``."""
    return Name(identifier, tuple(as_expr(e) for e in tensor.shape), (tensor.dtype, False))


def name_of(identifier: str, dims: Sequence[Axis], kind: dtypes.Kind) -> Name:
    """The name of an array over ``dims``."""
    return Name(identifier, tuple(d.hi for d in dims), kind)
