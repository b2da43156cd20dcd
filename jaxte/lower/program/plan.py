"""From tensors to a program: each tensor in turn, in the order in which they are needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxte.autodiff.terms.beside import Held, owners
from jaxte.lang.budget import bounded
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Expr, as_expr
from jaxte.lang.rules import applied
from jaxte.lower.apart.graph import with_differences_apart, with_mirrored_sums
from jaxte.lower.arrays.data import Call as FunctionCall
from jaxte.lower.arrays.data import Output
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.body.assignment import Assignment, Rules, Shared
from jaxte.lower.code.lines import Names, identifier, lines_of, verify_program
from jaxte.lower.code.vocabulary import WHEN_TRACED, AnyStatement, Choice, Program, Statement, with_sources
from jaxte.lower.cost.policy import Policy
from jaxte.lower.forms.data.chains import chained
from jaxte.lower.printing.printer import Printer
from jaxte.lower.program.across.barriers import behind_barrier, held, keep_padded, with_calls, without_barrier
from jaxte.lower.program.across.computed_once import put_together, read_by_one, with_one_gather
from jaxte.lower.program.across.equal_values import Naming, with_equal_functions_once, with_equal_values_once
from jaxte.lower.program.across.halos import with_rolls_chosen
from jaxte.lower.program.across.idle_pads import without_idle_pads
from jaxte.lower.program.across.materialised import materialised
from jaxte.lower.program.across.once_within import with_alike_parts_in_loops, with_masked_once, with_opposites
from jaxte.lower.program.across.outside_rows import unread_points, with_rows_multiplied
from jaxte.lower.program.across.padded_once import keep_apart
from jaxte.lower.program.across.without_copies import (
    with_ends_chosen,
    with_pads_between,
    with_repeats_as_windows,
)
from jaxte.lower.program.definition import lower_tensor
from jaxte.lower.program.head import formulas, read_sizes
from jaxte.lower.program.repeated import Repeated
from jaxte.lower.program.rows import PASSES, Within
from jaxte.lower.program.verdicts import verdict_in_tiles
from jaxte.lower.recurrences.finals import renewed
from jaxte.lower.recurrences.replayed import loop_statements
from jaxte.lower.recurrences.sums import within_loops
from jaxte.lower.rules.gather import gather_value
from jaxte.lower.rules.powers import whole_power
from jaxte.lower.rules.reduce import reduce_value
from jaxte.lower.rules.select import select_value
from jaxte.lower.tiles.planner import tiling
from jaxte.lower.tiles.sizes import TILES
from jaxte.lower.tiles.tiling import Tiles, Tiling, with_costs
from jaxte.lower.tiles.write import Writer, Written, tile_statements
from jaxte.lower.tiles.write_kernel import kernel_statements
from jaxte.planning.indices.known import Known
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor

_RULES = Rules(
    select=select_value, reduce=reduce_value, gather=gather_value, power=whole_power, total=chained
)


def lower(
    name: str, params: Sequence[Tensor], results: Sequence[Tensor], policy: Policy | None = None
) -> Program:
    """One function of ``params`` that computes ``results``.

    Args:
        name: what the function is called.
        params: the tensors that are passed in; computed ones are not computed again.
        results: the tensors that are returned.
        policy: how forms are chosen; by default for the CPU.

    Raises:
        LoweringError: a result needs a placeholder, or a size, that no parameter gives.
    """
    policy = policy or Policy()
    order = _order(params, results)
    with bounded(len(order)):
        program = _lowered(name, params, results, order, policy)
    if policy.debug:
        verify_program(program)
    return program


def _order(params: Sequence[Tensor], results: Sequence[Tensor]) -> list[Tensor]:
    """What ``results`` need, without what lies behind ``params``."""
    given = frozenset(params)  # the tuple would be searched with ==, which builds tensors
    return topological_order(results, lambda tensor: () if tensor in given else tensor.inputs)


def _lowered(
    name: str, params: Sequence[Tensor], results: Sequence[Tensor], order: Sequence[Tensor], policy: Policy
) -> Program:
    names = Names()
    own = names.new(name)
    idents = {tensor: names.new(tensor.name) for tensor in dict.fromkeys(params)}
    sizes, reads = read_sizes(params, idents, names, order)
    changed = within_loops(order, idents, frozenset(results), policy)
    shown = order if any(isinstance(t, Recurrent) for t in order) else [changed.get(t, t) for t in order]
    changed = renewed(
        changed, with_mirrored_sums(_order(params, [changed.get(t, t) for t in results]), idents, policy)
    )
    made = [changed.get(t, t) for t in results]
    sides = with_differences_apart(_order(params, made) if changed else order, idents, policy)
    changed = renewed(changed, sides.changed)
    made = [changed.get(t, t) for t in results]
    returned = frozenset(made)
    within = Within(returned, policy)
    own_order = _order(params, made) if changed else order
    planned = applied(tiling(own_order, idents, returned, policy), PASSES, within)
    own_policy = policy.for_parts({t.name: t.part_of for t in planned.order if isinstance(t, Compute)})
    lowering = _Lowering(
        Shared(names, Printer(sizes), own_policy, _RULES), name, params, returned, sides.refused
    )
    written = lowering.written(planned, idents)
    for statement in written.statements:  # an error of a size that no input has belongs here, not to text
        lines_of(statement, lowering.shared.printer)
    idents |= written.names
    idents |= {old: idents[new] for old, new in changed.items() if new in idents}
    return Program(
        own,
        tuple((idents[p], p) for p in params),
        reads,
        tuple(written.statements),
        tuple(idents[r] for r in results),
        tuple(formulas(shown, params, idents)),
        tuple(written.choices),
        tuple(lowering.functions),
        tuple(results),
        lowering.shared.printer,
        tuple(within.fired),
    )


class _Lowering:
    """What the parts of a program share, and the functions that it calls."""

    def __init__(
        self,
        shared: Shared,
        name: str,
        params: Sequence[Tensor],
        results: frozenset[Tensor],
        refused: Mapping[str, tuple[tuple[str, str], ...]],
    ) -> None:
        self.shared = shared
        self.name = name
        self.params = params
        self.results = results
        self.refused = refused
        self.externs: dict[object, str] = {}
        self.functions: list[tuple[str, Callable[..., Any]]] = []

    def written(self, planned: Tiling, given: Mapping[Tensor, str], tile_of: str = "") -> Written:
        """The statements of ``planned`` where ``given`` exist; those of a single tile if they are part of a pass."""
        part = _Part(self, planned, given, tile_of)
        for tensor in planned.order:
            match tensor:
                case Tiles():
                    part.write_tiles(tensor)
                case Recurrent():
                    part.write_loop(tensor)
                case Extern():
                    part.write_extern(tensor)
                case Compute():
                    part.write_definition(tensor)
                case _:
                    raise _missing(self.name, tensor, self.params)
        idents = part.idents
        idents |= {tensor: idents[new] for tensor, new in planned.renewed.items() if new in idents}
        own, shared = frozenset(idents.values()), self.shared
        statements, sliced = without_idle_pads(with_one_gather(part.statements), own)
        part.keep_sliced(statements, sliced)
        if self.shared.policy.facts.multiplies_nan:
            statements = with_rows_multiplied(statements, self.shared.names)
        if not self.shared.policy.facts.computes_again:
            statements = with_opposites(statements, shared.printer.text)
        statements = with_equal_values_once(
            with_masked_once(statements, shared.names),
            own,
            Naming(shared.names.numbered, shared.printer.text),
        )
        text = shared.printer.text
        statements = with_sources(
            with_equal_functions_once(statements), lambda source: with_alike_parts_in_loops(source, text)
        )
        return Written(statements, idents, part.choices)


class _Part:
    """The statements of one function, or of one tile of a pass, as they are written one after the other."""

    def __init__(
        self, lowering: _Lowering, planned: Tiling, given: Mapping[Tensor, str], tile_of: str
    ) -> None:
        self.idents = dict(given)
        self.statements: list[AnyStatement] = []
        self.choices: list[Choice] = []
        self._lowering, self._planned, self._tile_of = lowering, planned, tile_of
        shared, facts = lowering.shared, lowering.shared.policy.facts
        self._policy = shared.policy
        self._shared = replace(shared, written={})  # the bodies of one function
        self._before_calls = replace(shared, written={})  # those of what is known before it is called
        self._tensors = [t for t in planned.order if isinstance(t, Tensor)]
        self._again = facts.computes_again
        self._shifted = materialised(self._tensors, lowering.results) if self._again and not tile_of else ()
        self._by_call = facts.drops_barriers and not tile_of
        self._in_one = read_by_one(self._tensors, lowering.results) if self._by_call else ()
        self._original: dict[Tensor, Tensor] = {own: tensor for tensor, own in planned.stand_ins.items()}
        self._unread = {} if tile_of else unread_points(planned.order, lowering.results, self._original)
        self._repeated, self._owned = Repeated(lower_tensor), owners()

    def _writer(self) -> Writer:
        return Writer(self._lowering.shared, lower_tensor, self._lowering.written)

    def _add(self, written: Written, choices: Sequence[Choice]) -> None:
        self.statements += written.statements
        self.idents |= written.names
        self.choices += choices

    def write_tiles(self, tiles: Tiles) -> None:
        """A pass over tiles: a loop, or a kernel."""
        if tiles.is_kernel and not self._tile_of:
            found = kernel_statements(tiles, self.idents, self._writer())
        else:
            found = tile_statements(tiles, self.idents, self._writer(), self._tile_of)
        told = found.choices if self._tile_of else _told(found.choices, tiles, self._policy)
        self._add(found, told)

    def write_loop(self, tensor: Recurrent) -> None:
        """The loop of the recurrence that ``tensor`` is of, once for all its tensors."""
        if tensor in self.idents:
            return
        together = [t for t in self._tensors if isinstance(t, Recurrent) and t.group is tensor.group]
        found = loop_statements(together, self.idents, self._writer())
        self._add(found, found.choices)

    def write_extern(self, tensor: Extern) -> None:
        """A call of the function once for all its outputs, then the output that ``tensor`` is."""
        names, called = self._lowering.shared.names, self._lowering.externs
        scope = identifier(tensor.name)
        if tensor.group not in called:
            # never "fn" alone, which is the name of the module's own function
            function = names.new(f"{scope}_fn")
            self._lowering.functions.append((function, tensor.fn))
            called[tensor.group] = names.new(f"{scope}_out")
            arguments = tuple(Name(self.idents[t], _extents(t), (t.dtype, False)) for t in tensor.inputs)
            call = FunctionCall(function, arguments)
            self.statements.append(Statement(scope, called[tensor.group], call))
        target = names.new(tensor.name)
        source = Output(Name(called[tensor.group]), tensor.position, _extents(tensor), (tensor.dtype, False))
        self.statements.append(Statement(scope, target, source))
        self.idents[tensor] = target
        self.choices.append(Choice(tensor.name, "extern"))

    def write_definition(self, tensor: Compute) -> None:
        """The statements of a definition, and what its producers become for its sake: arrays behind barriers, or calls."""
        target = self._lowering.shared.names.new(tensor.name)
        label = WHEN_TRACED if isinstance(tensor, Known) else self._tile_of or target
        unread = self._unread.get(self._original.get(tensor, tensor), ())
        own = Assignment(label, target, tensor.name, self.idents, in_tiles=bool(self._tile_of), unread=unread)
        shared = self._before_calls if label == WHEN_TRACED else self._shared
        made = self._repeated.lowered(own, shared, tensor)
        lines = made.statements if self._again else with_sources(made.statements, without_barrier)
        if self._lowering.shared.policy.facts.joins_apart:
            lines = with_sources(lines, lambda source: with_pads_between(with_rolls_chosen(source)))
        if self._lowering.shared.policy.facts.moves_lanes_apart:
            lines = with_sources(lines, lambda source: with_ends_chosen(with_repeats_as_windows(source)))
        if self._by_call and self._again:
            keep_padded(self.statements, lines)
        self.statements += with_calls(lines) if self._by_call else lines
        if isinstance(tensor, Held):
            target = held(self.statements, self._policy.facts.drops_barriers)
        elif tensor in self._shifted or tensor in self._planned.once:
            self.statements[-1] = behind_barrier(self.statements[-1], self._policy.facts.drops_barriers)
        if tensor in self._in_one:
            self.statements[-1] = put_together(self.statements[-1])
        for sliced in made.sliced if self._again else ():
            keep_apart(self.statements, sliced, self.idents[sliced], self._by_call)
        self.idents[self._original.get(tensor, tensor)] = target
        self.choices.append(self._told_of(tensor, made.choice))

    def keep_sliced(self, statements: list[AnyStatement], names: Collection[str]) -> None:
        """Keeps the tensors of ``names``, which some of ``statements`` slice, from being computed again for each of these."""
        for tensor in self._tensors if self._again and names else ():
            target = self.idents[self._original.get(tensor, tensor)]
            if target in names:
                keep_apart(statements, tensor, target, self._by_call)

    def _told_of(self, tensor: Compute, choice: Choice) -> Choice:
        """``choice`` with what the planning of ``tensor`` says: what it is part of, what it stands beside, and what was refused for it."""
        part_of = tensor.part_of if tensor.part_of != tensor.name else ""
        choice = replace(choice, part_of=part_of, beside=_named(tensor, self._owned))
        if tensor in self._planned.refused:
            choice = replace(choice, refused=(*choice.refused, (TILES, self._planned.refused[tensor])))
        if tensor.name in self._lowering.refused:
            choice = replace(choice, refused=(*choice.refused, *self._lowering.refused[tensor.name]))
        return choice


def _told(choices: Sequence[Choice], tiles: Tiles, policy: Policy) -> list[Choice]:
    """``choices``, those of the pass ``tiles``, with what it costs, and with a verdict where most of what it computes does not count."""
    *others, last = with_costs(choices, tiles, policy)
    verdict = verdict_in_tiles(tiles)
    return [*others, last if verdict is None else replace(last, verdict=verdict)]


def _missing(name: str, tensor: Tensor, params: Sequence[Tensor]) -> LoweringError:
    given = ", ".join(p.name for p in params)
    return LoweringError(f"{name}: {tensor.name} is needed but is none of the parameters {given}; pass it in")


def _named(tensor: Compute, owned: Mapping[Compute, Tensor]) -> str:
    """What the user calls the tensor that ``tensor`` is beside; nothing where there is none."""
    owner: Tensor | None = owned.get(tensor)
    while isinstance(owner, Compute) and owner in owned:
        owner = owned[owner]
    return owner.part_of if isinstance(owner, Compute) else ""


def _extents(tensor: Tensor) -> tuple[Expr, ...]:
    return tuple(as_expr(e) for e in tensor.shape)
