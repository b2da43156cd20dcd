"""The forms of a reduction over windows, with what each costs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from jaxte.expr import Axis, Reduce
from jaxte.lower.body import Body
from jaxte.lower.candidates import Candidate, Search
from jaxte.lower.ops import Statement, Value
from jaxte.lower.window import WindowSpec
from jaxte.lower.window_source import window_source
from jaxte.lower.work import Work, points
from jaxte.lower.writing import name
from jaxte.lower.written import operands_text


def window_candidates(
    body: Body, spec: WindowSpec, axes: tuple[Axis, ...], node: Reduce
) -> Iterator[Candidate]:
    """Shifted slices, or ``lax.reduce_window`` for large windows."""

    def write() -> Search:
        texts = yield from operands_text(body, spec.operands)
        body.note("window")
        target = body.names.numbered(body.target)
        for line in window_source(spec, texts, target, body.sizes.text):
            left, _, right = line.partition(" = ")
            body.statements.append(Statement(body.label, left, right))
        return Value(name(target), axes, (node.dtype, False))

    taps = (
        sum(d.size for d in spec.dims)
        if prod(d.size for d in spec.dims) > 9
        else prod(d.size for d in spec.dims)
    )
    yield Candidate("window", Work(tap=0.5 * points(axes) * taps, kernel=1), write)
