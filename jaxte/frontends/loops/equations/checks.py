"""What a program must not do: read what was never written, and read or write out of range; each with the iteration that does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.frontends.loops.equations.dataflow import Dataflow
from jaxte.frontends.loops.program import Marked, Statement, Variable
from jaxte.frontends.text.tree import Span
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DefinitionError, RangeError
from jaxte.lang.expr import Axis, Const, Expr, Read, as_expr
from jaxte.lang.text import text
from jaxte.lang.walk import substitute
from jaxte.sets.accesses import Access


def check(flow: Dataflow) -> None:
    """Refuses a program that reads what was never written, or leaves an array.

    Raises:
        RangeError: with the element and the iteration.
        DefinitionError: likewise, of an element that holds nothing.
    """
    for access, own in flow.writes.items():
        if isinstance(own, Statement):
            _check_range(flow, own, access, own.variable, own.span, "writes")
    for (statement, read), access in flow.reads.items():
        span = statement.spans.get(read, statement.span)
        _check_range(flow, statement, access, flow.variable_of(read), span, "reads")
    by_label = {access.label: own for access, own in flow.writes.items()}
    undefined: set[Statement] = set()
    for statement in flow.program.statements:
        for read in flow.cells(statement):
            labels = flow.flow(flow.reads[statement, read]).labels(flow.reads[statement, read])
            seen = [own for n in labels if isinstance(own := by_label[n], Statement) and own in undefined]
            _check_written(flow, statement, read, seen, undefined)
    for variable, access in flow.outputs.items():
        _check_returned(flow, variable, access)
    for region in flow.program.regions:
        _check_covered(flow, region, by_label)
        _check_apart(flow, region, by_label)


def _check_covered(flow: Dataflow, region: Marked, by_label: Mapping[str, Statement | Variable]) -> None:
    """That a region reads nothing with a derivative but its inputs, and what it wrote itself."""
    own = {*region.inputs, *region.body, *region.outputs}
    for (statement, read), access in flow.reads.items():
        variable = flow.variable_of(read)
        if statement.number not in own - {*region.inputs} or not is_inexact(variable.dtype):
            continue
        for label in flow.flow(access).labels(access):
            source = by_label[label]
            if not isinstance(source, Statement) or source.number not in own:
                raise statement.spans.get(read, statement.span).fault(
                    f"the region reads {variable.name}, which is none of its inputs and was written before it, so that its derivative would be lost; name "
                    f"{variable.name}, or the part of it that the region reads, among the inputs of te.gradient"
                )


def _check_apart(flow: Dataflow, region: Marked, by_label: Mapping[str, Statement | Variable]) -> None:
    """That nothing but the gradient of a region reads what it writes."""
    own = {*region.gradient, *region.adjoints}
    reads = [(s.number, flow.variable_of(r), a) for (s, r), a in flow.reads.items()]
    for number, variable, access in (*reads, *((-1, v, a) for v, a in flow.outputs.items())):
        for source in (by_label[n] for n in flow.flow(access).labels(access)):
            if number not in own and isinstance(source, Statement) and source.number in own:
                raise source.span.fault(
                    f"the gradient of a region writes {variable.name}, which is read outside of it; write to names of its own, and to the adjoints of the inputs"
                )


def _check_range(
    flow: Dataflow, statement: Statement, access: Access, variable: Variable, span: Span, what: str
) -> None:
    wrong = flow.flow(access).outside(access, [as_expr(e) for e in variable.shape])
    if wrong is None:
        return
    point, place = wrong
    extent = text(as_expr(variable.shape[place]))
    index = substitute(access.indices[place], {a: as_expr(v) for a, v in point.items()})
    below = isinstance(index, Const) and int(index.value) < 0  # type: ignore[arg-type]
    wraps = (
        f"; a position that moves below 0 is none from the end: write % {extent} behind it for that"
        if below
        else ""
    )
    raise span.fault(
        f"{what} {_shown(access.indices, point, variable)}{_at(flow, statement, point)}, but axis {place} of {variable.name} has {extent} elements; "
        f"shrink the range of the loop, or put an if around it{wraps}",
        RangeError,
    )


def _check_written(
    flow: Dataflow, statement: Statement, read: Read, seen: Sequence[Statement], undefined: set[Statement]
) -> None:
    """That what is read was written: of a choice by data, by the end of both of its branches."""
    access, variable = flow.reads[statement, read], flow.variable_of(read)
    point, keeps = flow.flow(access).unwritten(access), statement.only_keeps(read)
    if keeps and statement.complete:
        if (point is not None or seen) and not statement.finishes:
            undefined.add(statement)
        return
    span = statement.spans.get(read, statement.span)
    if point is not None:
        shown, at = _shown(access.indices, point, variable), _at(flow, statement, point)
        if keeps:
            raise span.fault(
                f"{shown} is written{at} only where a condition on data holds, and holds nothing before; give it a value before the if"
            )
        raise span.fault(
            f"{shown} is read{at} and was never written before; give it a value first, or make the array by np.zeros"
        )
    if any(statement.branch[: len(own.branch)] != own.branch for own in seen):
        raise span.fault(
            f"{variable.name} is read here where one branch of an if has not written it; give it a value before the if"
        )


def _check_returned(flow: Dataflow, variable: Variable, access: Access) -> None:
    point = flow.flow(access).unwritten(access)
    if point is None:
        return
    message = f"{_shown(access.indices, point, variable)} is returned and was never written; make the array by np.zeros, or write all of its elements"
    own = next((s.span for s in flow.program.statements if s.variable is variable), None)
    raise own.fault(message) if own else DefinitionError(f"{flow.program.name}: {message}")


def _at(flow: Dataflow, statement: Statement, point: Mapping[Axis, int]) -> str:
    found = flow.program.instance(statement, point)
    return f" at {found}" if found else ""


def _shown(indices: Sequence[Expr], point: Mapping[Axis, int], variable: Variable) -> str:
    """The element of ``variable`` at ``point``."""
    if not variable.shape:
        return variable.name
    table = {a: as_expr(v) for a, v in point.items()}
    return f"{variable.name}[{', '.join(text(substitute(i, table)) for i in indices)}]"
