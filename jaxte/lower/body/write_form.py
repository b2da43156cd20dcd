"""Operands of a form as text, and its text as a value."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from jaxte.lang.expr import Axis, Expr, Reduce
from jaxte.lang.scalars import CALL
from jaxte.lower.arrays.leaves import Text
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Array, as_atom
from jaxte.lower.code.vocabulary import Statement, Value
from jaxte.lower.views.scope import Scope

_SHORT = 40


def operands_text(body: Body, arrays: Sequence[Array]) -> Generator[tuple[Expr, Scope], Value, list[str]]:
    """The texts of arrays: names, or short expressions that bind like calls."""
    nodes = yield from operands_of(body, arrays)
    return [body.printer.text(node) for node in nodes]


def operands_of(body: Body, arrays: Sequence[Array]) -> Generator[tuple[Expr, Scope], Value, list[Node]]:
    """The nodes of arrays: names, or short ones that bind like calls."""
    found: list[Node] = []
    for array in arrays:
        direct, body.direct = body.direct, True
        value = yield array.body, Scope(array.axes)
        body.direct = direct
        value = body.cast(value, array.dtype)
        entire = Value(body.full(value, array.axes), array.axes, value.kind)
        text, strength = body.printer.write(entire.code)
        short = len(text) <= _SHORT and strength == CALL
        found.append(entire.code if short else body.named(entire).code)
    return found


def assigned(body: Body, lines: Callable[[Callable[[], str]], list[str]]) -> str:
    """Writes statements ``name = ...`` to names that they ask for, and returns the name of the last one."""
    for line in lines(lambda: body.names.numbered(body.target)):
        target, _, source = line.partition(" = ")
        body.statements.append(Statement(body.label, target, Text(source)))
    return target


def whole(text: str | Node, axes: tuple[Axis, ...], node: Reduce) -> Value:
    """An expression over all of ``axes``, which may need parentheses."""
    if isinstance(text, Node):
        return Value(text, axes, (node.dtype, False))
    strength = CALL if as_atom(text) == text else 0
    return Value(
        Text(text, strength, tuple(a.hi for a in axes), (node.dtype, False)), axes, (node.dtype, False)
    )
