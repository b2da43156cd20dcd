"""Equations that read each other, as blocks in the order in which they are computed, with the clocks of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jaxte.frontends.loops.equations.clocks import Search
from jaxte.frontends.loops.equations.dataflow import Dataflow
from jaxte.frontends.loops.equations.edges import Clocks, Nest, PointsOf
from jaxte.frontends.loops.equations.lines import own_lines
from jaxte.frontends.loops.program import Equation, Stand
from jaxte.lang.expr import Reduce
from jaxte.lang.graphs import circles, reached
from jaxte.lang.walk import postorder, reads_of, reductions
from jaxte.lower.cost.work import points as points_in

Scheduled = tuple[list[list[Equation]], list[Clocks | Nest | None]]
"""Blocks of equations that read each other, and the clocks of each."""


def ordered(flow: Dataflow) -> tuple[Dataflow, list[list[Equation]], list[Clocks | Nest | None]]:
    """The equations in blocks, with their clocks.

    If sums in a block leave it without fixed lags, the program is read once more with these additions as writes (those that are summed over all iterations so far), and that is taken unless it computes more; where
    the block has no clock, as often as there are others: first those that are summed over the loop around all of it, which no step of that has as a sum. Blocks are asked one after the other: a triangular solve behind an elimination stays a sum.
    """
    points = PointsOf()
    flow, (blocks, clocks) = _best(flow, points)
    if any(c.shared and not c.around for c in flow.contents_of(_open_equations(blocks))):
        apart, rows = _best(Dataflow(flow.program, nested=True, flows=flow.flows), points, nested=True)
        if elements(_open_equations(rows[0])) < elements(_open_equations(blocks)):
            flow, (blocks, clocks) = apart, rows
    plain: set[int] = set()
    left: set[int] = set()  # additions that stay sums
    while (found := _next_loose(flow, blocks, clocks, plain, left)) is not None:
        more, has_clocks, of_block = found
        if has_clocks and _stays_leaner(flow, blocks, more):
            left |= of_block
            continue
        other, rows = _best(Dataflow(flow.program, plain | more, flows=flow.flows), points, plain | more)
        if has_clocks and (
            _loose_blocks(*rows) >= _loose_blocks(blocks, clocks) or _is_leaner(blocks, rows[0])
        ):
            left |= of_block
        else:
            plain |= more
            flow, (blocks, clocks) = other, rows
    return flow, blocks, clocks


def _next_loose(
    flow: Dataflow,
    blocks: Sequence[Sequence[Equation]],
    clocks: Sequence[Clocks | Nest | None],
    plain: Collection[int],
    left: Collection[int],
) -> tuple[set[int], bool, set[int]] | None:
    """Additions of the first block without fixed lags that has any but those known: the next to be writes, whether the block has clocks, and all of it.

    What stays a sum for the sake of a block with clocks becomes writes where another one has none: any order is better than no program.
    """
    for block, own in zip(blocks, clocks, strict=True):
        if is_open(block) and (own is None or not own.is_fixed):
            every = flow.additions_in(block)
            known = plain if own is None else {*plain, *left}
            loose = flow.additions_over_outermost(block) if own is None else flow.additions_in(_loose([own]))
            more = loose.difference(known) or every.difference(known)
            if more:
                return more, own is not None, every
    return None


def _loose_blocks(
    blocks: Sequence[Sequence[Equation]], clocks: Sequence[Clocks | Nest | None]
) -> tuple[int, int]:
    """How many recurrences have no clocks, and how many read their tensors no fixed number of steps ago."""
    own = [c for b, c in zip(blocks, clocks, strict=True) if is_open(b)]
    return sum(c is None for c in own), sum(c is None or not c.is_fixed for c in own)


def _best(
    flow: Dataflow, points: PointsOf, plain: Collection[int] = (), nested: bool = False
) -> tuple[Dataflow, Scheduled]:
    """``flow`` with its blocks, without equations of whole arrays where these leave it without fixed lags: isl has put steps together that follow in another way."""
    found = _scheduled(flow, points)
    wholes = any(content.around for content in flow.contents_of(_open_equations(found[0])))
    if not _loose_blocks(*found)[1] or not wholes:
        return flow, found
    flow = Dataflow(flow.program, plain, nested, False, flow.flows)
    return flow, _scheduled(flow, points)


def _is_leaner(blocks: Sequence[Sequence[Equation]], others: Sequence[Sequence[Equation]]) -> bool:
    """Whether the recurrences of ``blocks`` have fewer elements than those of ``others`` and add up no more terms, as the rows of a factorisation."""
    own, other = _open_equations(blocks), _open_equations(others)
    return elements(own) < elements(other) and sum(map(_terms, own)) <= sum(map(_terms, other))


def _loose(clocks: Sequence[Clocks | Nest | None]) -> list[Equation]:
    """The equations that read others no fixed number of steps ago, as a sum over all iterations so far does."""
    every = [own for own in clocks if isinstance(own, Clocks)]
    return [e.source for own in every for e in own.lags if not own.lag(e.source, e.read).is_fixed]


def _open_equations(blocks: Sequence[Sequence[Equation]]) -> list[Equation]:
    """The equations that lead back to themselves."""
    return [e for block in blocks if is_open(block) for e in block]


def elements(equations: Sequence[Equation]) -> int:
    """Of all of ``equations``."""
    return sum(points_in(e.axes) for e in equations)


def _stays_leaner(flow: Dataflow, blocks: Sequence[Sequence[Equation]], more: Collection[int]) -> bool:
    """Whether the block of the additions ``more`` has fewer elements than these have iterations, and adds up no more terms: as writes, they would have one each, beside what is no sum."""
    own = next(block for block in blocks if flow.additions_in(block) & {*more})
    iterations = sum(points_in(flow.program.statements[number].axes) for number in more)
    others = [e for e in own if not any(isinstance(n, Reduce) for n in postorder(e.body))]
    return elements(own) < iterations and sum(map(_terms, own)) <= iterations + elements(others)


def _terms(equation: Equation) -> int:
    """How often the elements of ``equation`` evaluate a part of a sum, or themselves."""
    inner = sum(points_in(node.axes) for node in reductions(equation.body))
    return elements([equation]) * max(1, inner)


def _found(block: Sequence[Equation], points: PointsOf) -> Clocks | Nest | None:
    search = Search(block, points)
    found = search.fixed() or search.nested() or search.kept()
    return found or own_lines(block, lambda more: Search(more, points).fixed()) or search.in_order()


def is_open(block: Sequence[Equation]) -> bool:
    return len(block) > 1 or _reads_itself(block)


def _reads_itself(block: Sequence[Equation]) -> bool:
    return any(r.tensor is e.stand for e in block for r in reads_of(e.body))


def _below(equation: Equation) -> list[Equation]:
    return [r.tensor.equation for r in reads_of(equation.body) if isinstance(r.tensor, Stand)]


def _scheduled(flow: Dataflow, points: PointsOf) -> Scheduled:
    """The equations in blocks that read each other, each after what it reads, with their clocks."""
    every = list(reached(flow.roots, _below))
    blocks = circles(every, _below)
    clocks: list[Clocks | Nest | None] = []
    for block in blocks:
        found = _found(block, points) if is_open(block) else None
        clocks.append(found)
        block += [e for e in found.times if e not in block] if isinstance(found, Clocks) else []
    return blocks, clocks
