"""Operands of a form as nodes."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from jaxte.lang.expr import Expr
from jaxte.lang.scalars import CALL
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Array
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.views.scope import Scope

_SHORT = 40


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
