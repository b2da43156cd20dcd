"""From equations to tensors: definitions where nothing leads back, recurrences of what does."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.frontends.loops.checks import check
from jaxte.frontends.loops.clocks import Clocks, Search
from jaxte.frontends.loops.dataflow import Dataflow, Equation, Stand
from jaxte.frontends.loops.program import Program
from jaxte.frontends.loops.starts import with_starts
from jaxte.frontends.loops.states import Kept, Timed
from jaxte.frontends.loops.widened import widened
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, Reduce, as_expr, cast
from jaxte.lang.functions import select
from jaxte.lang.graphs import reached
from jaxte.lang.walk import postorder, reads_of, rewrite, substitute
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.intervals import extent_of, highest
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.node import Recurrence
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.tensor import Compute, Tensor

_SMALL = 12  # nodes of an expression that is computed again rather than kept


def tensors_of(program: Program) -> tuple[Tensor, ...]:
    """The results of a program.

    Raises:
        DefinitionError: a read of what was never written, or out of range; loops whose order no clock describes.
    """
    flow = Dataflow(widened(program))
    check(flow)
    flow, blocks, clocks = _ordered(flow)
    making = _Making()
    for block, own in zip(blocks, clocks, strict=True):
        making.add(block, own, program)
    return tuple(making.result(e, e.name) for e in flow.results)


def _ordered(flow: Dataflow) -> tuple[Dataflow, list[list[Equation]], list[Clocks | None]]:
    """The equations in blocks, with their clocks.

    If sums in a block leave it without fixed lags, the program is read once more with its additions as writes, and that is taken unless it computes more; without
    any clock, as often as there are others.
    """
    blocks, clocks = _scheduled(flow)
    if any(content.shared for content in flow.contents_of(_open_equations(blocks))):
        apart = Dataflow(flow.program, nested=True)
        rows = _scheduled(apart)
        if _elements(_open_equations(rows[0])) < _elements(_open_equations(blocks)):
            flow, (blocks, clocks) = apart, rows
    plain: set[int] = set()
    while not _are_fixed(blocks, clocks):
        more = flow.additions_in(_open_equations(blocks)) - plain
        if not more:
            break
        plain |= more
        other = Dataflow(flow.program, plain)
        rows = _scheduled(other)
        has_clocks = all(c for b, c in zip(blocks, clocks, strict=True) if _is_open(b))
        if has_clocks and (not _are_fixed(*rows) or _is_leaner(blocks, rows[0])):
            break
        flow, (blocks, clocks) = other, rows
    return flow, blocks, clocks


def _is_leaner(blocks: Sequence[Sequence[Equation]], others: Sequence[Sequence[Equation]]) -> bool:
    """Whether the recurrences of ``blocks`` have fewer elements than those of ``others`` and add up no more terms, as the rows of a factorisation."""
    own, other = _open_equations(blocks), _open_equations(others)
    return _elements(own) < _elements(other) and sum(map(_terms, own)) <= sum(map(_terms, other))


def _are_fixed(blocks: Sequence[Sequence[Equation]], clocks: Sequence[Clocks | None]) -> bool:
    """Whether each recurrence reads its tensors a fixed number of steps ago."""
    return all(c is not None and c.is_fixed for b, c in zip(blocks, clocks, strict=True) if _is_open(b))


def _open_equations(blocks: Sequence[Sequence[Equation]]) -> list[Equation]:
    """The equations that lead back to themselves."""
    return [e for block in blocks if _is_open(block) for e in block]


def _elements(equations: Sequence[Equation]) -> int:
    return sum(prod(extent_of(a.extent) for a in e.axes) for e in equations)


def _terms(equation: Equation) -> int:
    """How often the elements of ``equation`` evaluate a part of a sum, or themselves."""
    inner = sum(
        prod(extent_of(a.extent) for a in node.axes)
        for node in postorder(equation.body)
        if isinstance(node, Reduce)
    )
    return _elements([equation]) * max(1, inner)


def _is_open(block: Sequence[Equation]) -> bool:
    return len(block) > 1 or _reads_itself(block)


def _reads_itself(block: Sequence[Equation]) -> bool:
    return any(r.tensor is e.stand for e in block for r in reads_of(e.body))


def _below(equation: Equation) -> list[Equation]:
    return [r.tensor.equation for r in reads_of(equation.body) if isinstance(r.tensor, Stand)]


def _scheduled(flow: Dataflow) -> tuple[list[list[Equation]], list[Clocks | None]]:
    """The equations in blocks that read each other, each after what it reads, with their clocks."""
    every = list(reached(flow.results, _below))
    below = {e: set(reached(_below(e), _below)) for e in every}
    blocks: list[list[Equation]] = []
    done: set[Equation] = set()
    for own in sorted(every, key=lambda e: len(below[e] | {e})):
        if own not in done:
            block = [e for e in every if e is own or (own in below[e] and e in below[own])]
            blocks.append(block)
            done.update(block)
    clocks: list[Clocks | None] = []
    for block in blocks:
        search = Search(block) if _is_open(block) else None
        clocks.append(None if search is None else search.fixed() or search.kept() or search.in_order())
    return blocks, clocks


@dataclass(frozen=True, eq=False)
class _Made:
    """What stands for an equation: an expression of its axes."""

    axes: tuple[Axis, ...]
    value: Expr

    def at(self, indices: Sequence[Expr]) -> Expr:
        return substitute(self.value, dict(zip(self.axes, indices, strict=True)))


class _Making:
    """Tensors under way."""

    def __init__(self) -> None:
        self._made: dict[Equation, _Made] = {}

    def add(self, block: Sequence[Equation], clocks: Clocks | None, program: Program) -> None:
        if not _is_open(block):
            (own,) = block
            self._made[own] = self._plain(own)
            return
        if clocks is None:
            names = ", ".join(dict.fromkeys(e.name for e in block))
            raise DefinitionError(
                f"{program.name}: the order in which {names} are computed follows no clock that te.loops finds: sizes that are symbols, or data as "
                "indices of what the loop itself writes; give sizes that are known"
            )
        for equation in block:
            equation.says(self._joined(equation.body, block))
        if all(clocks.solved(equation) is not None for equation in block):
            self._timed(block, clocks)
        else:
            self._kept(block, clocks)

    def result(self, equation: Equation, name: str) -> Tensor:
        made = self._made[equation]
        axes = tuple(Axis(a.name, 0, a.extent) for a in made.axes)
        value = made.at(axes)
        if isinstance(value, Read) and isinstance(value.tensor, Tensor) and value.tensor.name == name:
            if len(axes) == len(value.indices) and all(map(operator.is_, value.indices, axes)):
                return value.tensor
        return defined([name], axes, [cast(value, equation.dtype)])[0]

    def _joined(self, body: Expr, block: Sequence[Equation] = ()) -> Expr:
        """``body`` with what stands for the equations that it reads, those of ``block`` left out."""

        def rule(node: Expr) -> Expr:
            if isinstance(node, Read) and isinstance(node.tensor, Stand):
                own = self._made.get(node.tensor.equation)
                if own is not None:
                    return own.at(node.indices)
            return node

        return rewrite(body, rule)

    def _plain(self, equation: Equation) -> _Made:
        """A definition; what is small stands in place of each read of it."""
        body = self._joined(equation.body)
        nodes = postorder(body)
        if len(nodes) <= _SMALL and not any(isinstance(n, Reduce) for n in nodes):
            return _Made(equation.axes, cast(body, equation.dtype))
        axes = tuple(Axis(a.name, 0, a.extent) for a in equation.axes)
        table: dict[Expr, Expr] = dict(zip(equation.axes, axes, strict=True))
        value = cast(substitute(_guarded(equation.domain, body), table), equation.dtype)
        (tensor,) = defined([equation.name], axes, [value])
        return _Made(equation.axes, Read(tensor, equation.axes))

    # --- recurrences

    def _timed(self, block: Sequence[Equation], clocks: Clocks) -> None:
        """Each equation over its clock: what it reads is a fixed number of steps ago, or at any position before."""
        own = {e: Timed(e, clocks, self._length(block, clocks)) for e in block}

        bodies = {}
        for equation in block:
            timed = own[equation]

            def rule(node: Expr, timed: Timed = timed) -> Expr:
                if isinstance(node, Read) and isinstance(node.tensor, Stand):
                    target, lag = own[node.tensor.equation], clocks.lag(timed.equation, node)
                    clock = timed.clock - lag.least if lag.is_fixed else target.place(node.indices)[0]
                    return target.read(clock, node.indices)
                return node

            bodies[equation] = substitute(rewrite(equation.body, rule), timed.table)
        self._close(block, own, bodies)

    def _kept(self, block: Sequence[Equation], clocks: Clocks) -> None:
        """What is read is kept as long as the loop runs, in a second state for each equation."""
        length = self._length(block, clocks)
        own: dict[Equation, Timed] = {}
        kept: dict[Equation, Kept] = {}
        for equation in block:
            if any(clocks.times[equation] is a for a in equation.axes):
                own[equation] = Timed(equation, clocks, length)
            kept[equation] = Kept(equation, clocks, length, own.get(equation))
        bodies: dict[Equation, Expr] = {}
        for equation in block:
            reader = own.get(equation) or kept[equation]

            def rule(node: Expr, reader: Timed | Kept = reader) -> Expr:
                if not isinstance(node, Read) or not isinstance(node.tensor, Stand):
                    return node
                target, lag = node.tensor.equation, clocks.lag(reader.equation, node)
                if lag.is_fixed and target in own:
                    return own[target].read(reader.clock - lag.least, node.indices)
                return kept[target].read(reader.clock, node.indices, lag.least > 0)

            value = rewrite(equation.body, rule)
            bodies[equation] = substitute(value, reader.table) if isinstance(reader, Timed) else value
        states: list[Timed | Kept] = [*own.values(), *kept.values()]
        names, axes, values = [], [], []
        for timed in own.values():
            names.append(timed.equation.name)
            axes.append(timed.axes)
            values.append(cast(_guarded(timed.domain, bodies[timed.equation]), timed.equation.dtype))
        for k in kept.values():
            names.append(f"{k.equation.name}_kept")
            axes.append(k.axes)
            values.append(cast(k.body(bodies[k.equation]), k.equation.dtype))
        definitions = [defined([n], a, [v])[0] for n, a, v in zip(names, axes, values, strict=True)]
        group = Recurrence(tuple(s.state for s in states), tuple(definitions), (0,) * len(states), False)
        step_of(group)
        for state, tensor in zip(states, group.tensors, strict=True):
            if isinstance(state, Timed):
                self._made[state.equation] = _Made(
                    state.equation.axes, Read(tensor, state.place(state.equation.axes))
                )
            elif state.equation not in own:
                last = normal(as_expr(length) - 1)
                self._made[state.equation] = _Made(
                    state.equation.axes, Read(tensor, [last, *state.equation.axes])
                )

    def _length(self, block: Sequence[Equation], clocks: Clocks) -> Expr:
        """The number of steps."""
        ends = []
        for equation in block:
            most = highest(linear(clocks.times[equation]))
            assert most is not None
            ends.append(normal(from_linear(most) + 1))
        if all(e is ends[0] for e in ends):
            return ends[0]
        numbers = [int(e.value) for e in ends if isinstance(e, Const)]  # type: ignore[arg-type]
        if len(numbers) < len(ends):
            raise DefinitionError(
                f"loops over {', '.join(e.name for e in block)} of different symbolic sizes depend on each other; give sizes that are known"
            )
        return as_expr(max(numbers))

    def _close(
        self, block: Sequence[Equation], own: Mapping[Equation, Timed], bodies: Mapping[Equation, Expr]
    ) -> None:
        definitions: list[Compute] = []
        states = tuple(own[e].state for e in block)
        started = with_starts([bodies[e] for e in block], states)
        for equation, body in zip(block, started, strict=True):
            timed = own[equation]
            value = cast(_guarded(timed.domain, body), equation.dtype)
            definitions += defined([equation.name], timed.axes, [value])
        group = Recurrence(states, tuple(definitions), (0,) * len(states), False)
        step_of(group)
        for equation, tensor in zip(block, group.tensors, strict=True):
            place = own[equation].place(equation.axes)
            self._made[equation] = _Made(equation.axes, Read(tensor, place))


def _guarded(domain: Expr, body: Expr) -> Expr:
    return body if domain is TRUE else select(domain, body, 0)
