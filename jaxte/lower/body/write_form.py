"""How a form is written: its operands as nodes, then the node that it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from jaxte.lang.expr import Expr
from jaxte.lang.scalars.rows import CALL
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.candidates import Candidate, Search
from jaxte.lower.body.evaluator import Body
from jaxte.lower.body.wanted import Wanted
from jaxte.lower.code.spec import Array
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import Work
from jaxte.lower.views.scope import Scope

_SHORT = 40


def operands_of(
    body: Body, arrays: Sequence[Array], scope: Scope
) -> Generator[tuple[Expr, Scope], Value, list[Node]]:
    """The nodes of arrays: names, or short ones that bind like calls.

    Args:
        body: the tensor that is lowered.
        arrays: what a form takes.
        scope: where the form stands.
    """
    found: list[Node] = []
    for array in arrays:
        value = yield array.body, Scope(array.axes, direct=True, hits=scope.hits)
        value = body.cast(value, array.dtype)
        entire = Value(body.full(value, array.axes), array.axes, value.kind)
        text, strength = body.printer.write(entire.code)
        short = len(text) <= _SHORT and strength == CALL
        found.append(entire.code if short else body.named(entire).code)
    return found


def way(
    body: Body,
    wanted: Wanted,
    form: str,
    work: Work,
    arrays: Sequence[Array],
    source: Callable[[list[Node]], Node],
    caution: str = "",
) -> Candidate:
    """The candidate ``form`` that does ``work``: what ``source`` makes of the nodes of ``arrays``."""

    def write() -> Search:
        operands = yield from operands_of(body, arrays, wanted.scope)
        body.report.note(form)
        return Value(source(operands), wanted.axes, (wanted.node.dtype, False))

    return Candidate(form, work, write, caution)
