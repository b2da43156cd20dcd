"""From equations to tensors: definitions where nothing leads back, recurrences of what does."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaxte.algebra.simplify import without_decided
from jaxte.frontends.loops.equations.blocks import elements, is_open, ordered
from jaxte.frontends.loops.equations.checks import check
from jaxte.frontends.loops.equations.dataflow import Dataflow
from jaxte.frontends.loops.equations.edges import Clocks, Nest
from jaxte.frontends.loops.equations.given import Made, give_gradient
from jaxte.frontends.loops.equations.lines import with_lines
from jaxte.frontends.loops.equations.nests import Nesting
from jaxte.frontends.loops.equations.rotated import Row, rotated, with_firsts_inside
from jaxte.frontends.loops.equations.states import Kept, Timed, extents, with_starts
from jaxte.frontends.loops.equations.widened import widened
from jaxte.frontends.loops.program import Equation, Program, Stand
from jaxte.frontends.loops.reading.additions import joined
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, Reduce, as_expr, cast
from jaxte.lang.functions import select
from jaxte.lang.limits import MOST_BYTES
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite_reads, substitute, with_tensors
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.intervals import highest
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.node import Recurrence
from jaxte.tensors.recurrences.products import with_products
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.tensor import Compute, Tensor

_MOST_STEPS_AGO = 1000  # steps that are kept where what a step reads lies that far back
_SMALL = 12  # nodes of an expression that is computed again rather than kept
_TEST = 30  # the same of a test of more elements than all it is made of, which a reduction of what it chooses makes as it goes


def tensors_of(program: Program) -> tuple[Tensor, ...]:
    """The results of a program.

    Raises:
        DefinitionError: a read of what was never written, or out of range; loops whose order no clock describes.
    """
    flow = Dataflow(widened(joined(program)))
    check(flow)
    flow, blocks, clocks = ordered(flow)
    blocks, clocks = with_lines(blocks, clocks)
    every = [e for block in blocks for e in block]
    making = _Making(every, frozenset(n for own in program.regions for n in own.whole))
    for block, own in zip(blocks, clocks, strict=True):
        making.add(block, own, program)
    for region in program.regions:
        give_gradient(region, flow, making.made, making.definitions)
    return tuple(making.result(e, e.name) for e in flow.results)


class _Making:
    """Tensors under way; the values of the statements ``whole`` are tensors of their own, however small."""

    def __init__(self, every: Sequence[Equation], whole: frozenset[int] = frozenset()) -> None:
        self._every = every
        self.made: dict[Equation, Made] = {}
        self._whole = whole
        self.definitions: dict[Equation, tuple[Compute, Timed]] = {}
        self._handed: list[tuple[Row, Recurrence, Tensor]] = []

    def add(self, block: Sequence[Equation], clocks: Clocks | Nest | None, program: Program) -> None:
        if not is_open(block):
            (own,) = block
            self.made[own] = self._plain(own)
            return
        if clocks is None:
            raise DefinitionError(f"{program.name}: {_no_clock(block)}")
        if isinstance(clocks, Clocks):
            self._check_length(block, clocks, program)
        try:
            self._recurrence(block, clocks)
        except DefinitionError as error:
            if _at_data(block) is None:
                raise
            raise DefinitionError(f"{program.name}: {_no_clock(block)}") from error

    def _check_length(self, block: Sequence[Equation], clocks: Clocks, program: Program) -> None:
        steps = self._length(block, clocks)
        longest = max(lag.least for lag in clocks.lags.values())
        if isinstance(steps, Const) and (
            int(steps.value) * elements(block) > MOST_BYTES  # type: ignore[arg-type]
            if any(clocks.solved(e) is None for e in block)
            else longest > _MOST_STEPS_AGO
        ):
            names = ", ".join(dict.fromkeys(e.name for e in block))
            raise DefinitionError(
                f"{program.name}: {names} are computed in an order that no clock of one loop describes, so that each of {text(steps)} iterations would be a step that "
                "keeps all that was computed so far; make a function of the inner loops, with @te.loops, and call it in a loop of JAX (lax.scan, fori_loop)"
            )

    def _recurrence(self, block: Sequence[Equation], clocks: Clocks | Nest) -> None:
        for equation in block:
            equation.says(self._joined(equation))
        if isinstance(clocks, Nest):
            others = [e for e in self._every if e not in set(block)]
            self.made.update(Nesting(block, clocks, self._length, others).made())
        elif all(clocks.solved(equation) is not None for equation in block):
            self._timed(block, clocks)
        else:
            self._kept(block, clocks)

    def result(self, equation: Equation, name: str) -> Tensor:
        made = self.made[equation]
        axes = tuple(Axis(a.name, 0, a.extent) for a in made.axes)
        value = made.at(axes)
        if isinstance(value, Read) and isinstance(value.tensor, Tensor) and value.tensor.name == name:
            if len(axes) == len(value.indices) and all(map(operator.is_, value.indices, axes)):
                return value.tensor
        return defined([name], axes, [cast(value, equation.dtype)])[0]

    def _joined(self, equation: Equation) -> Expr:
        """The body of ``equation`` with what stands for the equations that are made; what is left of its reads is known by those that clocks have a lag for."""

        def rule(node: Read, moved: Read) -> Expr:
            if not isinstance(node.tensor, Stand):
                return moved
            own = self.made.get(node.tensor.equation)
            if own is not None:
                return own.at(moved.indices)
            equation.reads_now(moved, node)
            return moved

        return rewrite_reads(equation.body, rule)

    def _plain(self, equation: Equation) -> Made:
        """A definition; what is small stands in place of each read of it."""
        body = without_decided(self._joined(equation))
        handed = self._handed_on(equation, body)
        if handed is not None:
            return Made(equation.axes, handed)
        nodes = postorder(body)
        is_whole = equation.statement is not None and equation.statement.number in self._whole
        most = _TEST if _is_wide_test(equation) else _SMALL
        if not is_whole and len(nodes) <= most and not any(isinstance(n, Reduce) for n in nodes):
            return Made(equation.axes, cast(body, equation.dtype))
        axes = tuple(Axis(a.name, 0, a.extent) for a in equation.axes)
        table: dict[Expr, Expr] = dict(zip(equation.axes, axes, strict=True))
        value = cast(substitute(_guarded(equation.domain, body), table), equation.dtype)
        (tensor,) = defined([equation.name], axes, [value])
        return Made(equation.axes, Read(tensor, equation.axes))

    def _handed_on(self, equation: Equation, body: Expr) -> Read | None:
        """What a recurrence hands on from its last step, where ``body`` is that: a result that the next iteration would begin with."""
        for row, group, tensor in self._handed:
            rest = row.axes[1:]
            if len(rest) == len(equation.axes) and isinstance(row.clock.hi, Const):
                last = normal(row.clock.hi - 1)
                tensors = dict(zip(group.states, group.tensors, strict=True))
                own = substitute(row.body, {row.clock: last, **dict(zip(rest, equation.axes, strict=True))})
                if with_tensors(own, tensors) is body:
                    return Read(tensor, [last, *equation.axes])
        return None

    # --- recurrences

    def _timed(self, block: Sequence[Equation], clocks: Clocks) -> None:
        """Each equation over its clock: what it reads is a fixed number of steps ago, or at any position before."""
        length, wide = self._length(block, clocks), extents(block)
        own = {e: Timed(e, clocks, length, wide=wide) for e in block}

        bodies = {}
        for equation in block:
            timed = own[equation]

            def rule(node: Read, moved: Read, timed: Timed = timed) -> Expr:
                if not isinstance(node.tensor, Stand):
                    return moved
                target, lag = own[node.tensor.equation], clocks.lag(timed.equation, node)
                clock = timed.clock - lag.least if lag.is_fixed else target.place(moved.indices)[0]
                return target.read(clock, moved.indices)

            bodies[equation] = substitute(rewrite_reads(equation.body, rule), timed.table)
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

            def rule(node: Read, moved: Read, reader: Timed | Kept = reader) -> Expr:
                if not isinstance(node.tensor, Stand):
                    return moved
                target, lag = node.tensor.equation, clocks.lag(reader.equation, node)
                if lag.is_fixed and target in own:
                    return own[target].read(reader.clock - lag.least, moved.indices)
                return kept[target].read(reader.clock, moved.indices, lag.least > 0)

            value = rewrite_reads(equation.body, rule)
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
                self.made[state.equation] = Made(
                    state.equation.axes, Read(tensor, state.place(state.equation.axes))
                )
            elif state.equation not in own:
                last = normal(as_expr(length) - 1)
                self.made[state.equation] = Made(
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
        plain = [Row(own[e].state, own[e].axes, bodies[e], own[e].domain) for e in block]
        rows = rotated([with_firsts_inside(row, {r.state for r in plain}) for row in plain])
        states = tuple(row.state for row in rows)
        started = with_starts([row.body for row in rows], states)
        definitions = [replace(row, body=body).definition() for row, body in zip(rows, started, strict=True)]
        self.definitions.update({e: (made, own[e]) for e, made in zip(block, definitions, strict=False)})
        group = with_products(Recurrence(states, tuple(definitions), (0,) * len(states), False))
        step_of(group)
        more = zip(rows[len(block) :], group.tensors[len(block) :], strict=False)
        self._handed += [(row, group, tensor) for row, tensor in more]
        for equation, tensor in zip(block, group.tensors, strict=False):
            place = own[equation].place(equation.axes)
            self.made[equation] = Made(equation.axes, Read(tensor, place))


def _no_clock(block: Sequence[Equation]) -> str:
    names = ", ".join(dict.fromkeys(e.name for e in block))
    said = f"the order in which {names} are computed follows no clock that te.loops finds"
    at_data = _at_data(block)
    if at_data is None:
        return (
            f"{said}; give sizes that are known, in place of symbols, or make a function of the inner loops, with @te.loops, and call it in a loop of JAX "
            "(lax.scan, fori_loop)"
        )
    return (
        f"{said}: {at_data} is read at positions that are data, which the same sweep may have written; if what was there before the sweep is meant, copy it in front "
        f"of the sweep, as in old = {at_data}.copy(), and read old"
    )


def _at_data(block: Sequence[Equation]) -> str | None:
    """The name of an array of the block that is read at positions that are data."""
    stands: dict[object, str] = {e.stand: e.name for e in block}
    reads = [r for e in block for r in reads_of(e.body) if r.tensor in stands]
    return next((stands[r.tensor] for r in reads if any(map(reads_of, r.indices))), None)


def _is_wide_test(equation: Equation) -> bool:
    """Whether the value is a truth at positions of several axes, made of what has fewer of them each."""
    reads = reads_of(equation.body)
    return equation.dtype == "bool" and all(len(free_axes(r)) < len(equation.axes) for r in reads)


def _guarded(domain: Expr, body: Expr) -> Expr:
    return body if domain is TRUE else select(domain, body, 0)
