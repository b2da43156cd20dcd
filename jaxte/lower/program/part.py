"""The statements of a function, or of one tile of a pass, one after the other: definitions, loops, passes in tiles and calls.

From a definition to the statement that assigns its tensor: what is rewritten, padded, peeled or kept around, and then evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jaxte.autodiff.terms.beside import Held, owners
from jaxte.lang.expr import Call, Const, as_expr
from jaxte.lang.rules import applied
from jaxte.lower.arrays.data import Call as FunctionCall
from jaxte.lower.arrays.data import Output
from jaxte.lower.arrays.elementwise import Full, Name, Number, full_of
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.assignment import Assignment, Shared
from jaxte.lower.body.candidates import noted
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.choice import Choice
from jaxte.lower.code.lines import identifier
from jaxte.lower.code.vocabulary import WHEN_TRACED, AnyStatement, Statement, Value, tensor_name, with_sources
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.across.barriers import (
    behind_barrier,
    held,
    keep_functions,
    put_together,
    read_by_one,
    with_calls,
    with_functions_apart,
    with_numbers_first,
    with_padded_apart,
    without_barrier,
)
from jaxte.lower.program.across.halos import with_rolls_chosen
from jaxte.lower.program.across.materialised import materialised
from jaxte.lower.program.across.outside_rows import unread_points
from jaxte.lower.program.across.padded_once import keep_apart, padded_in
from jaxte.lower.program.across.pieces_within import as_padded
from jaxte.lower.program.across.reduced_slices import with_arrays_of_slices, with_long_sums_in_parts
from jaxte.lower.program.across.without_copies import (
    with_ends_chosen,
    with_pads_between,
    with_repeats_as_windows,
)
from jaxte.lower.program.repeated import Repeated
from jaxte.lower.program.verdicts import verdict_in_tiles
from jaxte.lower.recurrences.replayed import loop_statements
from jaxte.lower.rewrites.table import AFTER_PADDING, Place
from jaxte.lower.rules.interleaved import kept_around, write_into
from jaxte.lower.rules.peeled_edges import peeled, write_pieces
from jaxte.lower.rules.pieces import summed_in_pieces
from jaxte.lower.rules.select import literal_of
from jaxte.lower.tiles.sizes import TILES
from jaxte.lower.tiles.tiling import Tiles, Tiling, with_costs
from jaxte.lower.tiles.write import Writer, Written, tile_statements
from jaxte.lower.tiles.write_kernel import kernel_statements
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import known
from jaxte.tensors.copies import Extended
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.structure import Known
from jaxte.tensors.tensor import Compute, Extern, Tensor


@dataclass(eq=False)
class Whole:
    """The function that parts are of.

    Attributes:
        shared: names, printer, policy and rules.
        results: what it returns.
        refused: forms that tensors have not, with the reason, by their names.
        externs: what the result of each call of a function on arrays is named.
        functions: those functions, by the names that they are called by.
    """

    shared: Shared
    results: frozenset[Tensor]
    refused: Mapping[str, tuple[tuple[str, str], ...]]
    externs: dict[object, str] = field(default_factory=dict, kw_only=True)
    functions: list[tuple[str, Callable[..., Any]]] = field(default_factory=list, kw_only=True)


class Part:
    """The statements of one function, or of one tile of a pass, as they are written one after the other."""

    def __init__(
        self,
        whole: Whole,
        written: Callable[[Tiling, Mapping[Tensor, str], str], Written],
        planned: Tiling,
        given: Mapping[Tensor, str],
        tile_of: str,
    ) -> None:
        self.idents = dict(given)
        self.statements: list[AnyStatement] = []
        self.choices: list[Choice] = []
        self._whole, self._written, self._planned, self._tile_of = whole, written, planned, tile_of
        shared, facts = whole.shared, whole.shared.policy.facts
        self._policy = shared.policy
        self._shared = replace(shared, written={})  # the bodies of one function
        self._before_calls = replace(shared, written={})  # those of what is known before it is called
        self._tensors = [t for t in planned.order if isinstance(t, Tensor)]
        self._again = facts.computes_again
        self._shifted = materialised(self._tensors, whole.results) if self._again and not tile_of else ()
        self._by_call = facts.drops_barriers and not tile_of
        self._in_one = read_by_one(self._tensors, whole.results) if self._by_call else ()
        self._original: dict[Tensor, Tensor] = {own: tensor for tensor, own in planned.stand_ins.items()}
        self._unread = {} if tile_of else unread_points(planned.order, whole.results, self._original)
        self._repeated, self._owned = Repeated(lower_tensor), owners()

    def _writer(self) -> Writer:
        return Writer(self._whole.shared, lower_tensor, self._written)

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
        names, called = self._whole.shared.names, self._whole.externs
        scope = identifier(tensor.name)
        if tensor.group not in called:
            # never "fn" alone, which is the name of the module's own function
            function = names.new(f"{scope}_fn")
            self._whole.functions.append((function, tensor.fn))
            called[tensor.group] = names.new(f"{scope}_out")
            arguments = tuple(tensor_name(self.idents[t], t) for t in tensor.inputs)
            call = FunctionCall(function, arguments)
            self.statements.append(Statement(scope, called[tensor.group], call))
        target = names.new(tensor.name)
        own = tensor_name(target, tensor)
        source = Output(Name(called[tensor.group]), tensor.position, own.shape, own.kind)
        self.statements.append(Statement(scope, target, source))
        self.idents[tensor] = target
        self.choices.append(Choice(tensor.name, "extern"))

    def write_definition(self, tensor: Compute) -> None:
        """The statements of a definition, and what its producers become for its sake: arrays behind barriers, or calls."""
        target = self._whole.shared.names.new(tensor.name)
        label = WHEN_TRACED if isinstance(tensor, Known) else self._tile_of or target
        unread = self._unread.get(self._original.get(tensor, tensor), ())
        own = Assignment(label, target, tensor.name, self.idents, in_tiles=bool(self._tile_of), unread=unread)
        shared = self._before_calls if label == WHEN_TRACED else self._shared
        made = self._repeated.lowered(own, shared, tensor)
        lines = made.statements if self._again else with_sources(made.statements, without_barrier)
        if self._whole.shared.policy.facts.joins_apart:
            lines = with_sources(lines, lambda source: with_pads_between(with_rolls_chosen(source)))
        if self._whole.shared.policy.facts.moves_lanes_apart:
            lines = with_sources(lines, lambda source: with_ends_chosen(with_repeats_as_windows(source)))
        if self._by_call and self._again:
            keep_functions(self.statements, lines)
            lines = with_functions_apart(with_numbers_first(self.statements, lines))
            lines = with_padded_apart(lines, self._policy.facts.functions)
        if self._policy.facts.copies_reduced_slices and not self._tile_of:
            arrays = {self.idents[t] for t in self._whole.results if t in self.idents}
            lines = with_arrays_of_slices(self.statements, lines, arrays)
        if (most := self._policy.facts.vector_terms) and not self._tile_of:
            lines = with_long_sums_in_parts(self.statements, lines, most)
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
        if tensor.name in self._whole.refused:
            choice = replace(choice, refused=(*choice.refused, *self._whole.refused[tensor.name]))
        return choice


def _told(choices: Sequence[Choice], tiles: Tiles, policy: Policy) -> list[Choice]:
    """``choices``, those of the pass ``tiles``, with what it costs, and with a verdict where most of what it computes does not count."""
    *others, last = with_costs(choices, tiles, policy)
    verdict = verdict_in_tiles(tiles)
    return [*others, last if verdict is None else replace(last, verdict=verdict)]


def _named(tensor: Compute, owned: Mapping[Compute, Tensor]) -> str:
    """What the user calls the tensor that ``tensor`` is beside; nothing where there is none."""
    owner: Tensor | None = owned.get(tensor)
    while isinstance(owner, Compute) and owner in owned:
        owner = owned[owner]
    return owner.part_of if isinstance(owner, Compute) else ""


_WIDE = ("float64", "complex128")


def lower_tensor(own: Assignment, shared: Shared, tensor: Compute) -> Body:
    """The body that has lowered ``tensor``; the last of its statements assigns it."""
    scope, policy = Scope(tensor.axes), shared.policy
    if any(known(as_expr(e)) == 0 for e in tensor.shape):
        body = Body(own, shared)
        body.assign(body.target, Full(tuple(a.hi for a in tensor.axes), Number(0), tensor.dtype))
        return body
    if (numbers := literal_of(tensor)) is not None:
        body = Body(own, shared)
        body.assign(body.target, numbers)
        return body
    place = Place(tensor.axes, scope, policy, own.in_tiles)
    root, padded = as_padded(tensor.body, place)
    if isinstance(tensor, Extended):  # whose pieces lie inside, one after the other
        padded = {}
    wide = any(dtype in _WIDE for dtype in (tensor.dtype, *(t.dtype for t in tensor.inputs)))
    while isinstance(root, Call) and root.op.name == "cast" and isinstance(root.args[0], Const):
        root = root.args[0]
    root = applied(root, AFTER_PADDING, place)
    own = replace(own, axes=tensor.axes, padded=padded, wide=wide)
    summed = summed_in_pieces(root, own, policy, scope)
    if summed.rest is not root:
        left = padded_in(summed.rest, policy.facts.tests_pads)
        own = replace(own, padded=left, sliced=tuple(t for t in padded if t not in left), faces=summed.faces)
        root = summed.root
    around = kept_around(root, own, tensor.dtype, scope)
    peeling = peeled(root, own, policy, scope)
    if peeling.is_chosen or around is not None:
        own = replace(own, padded={}, sliced=tuple(padded))
    body = Body(own, shared)
    body.report.fired([*tensor.planned_by, *place.fired])
    for choice in (peeling.choice, summed.choice):
        if choice is not None:
            noted(body, choice)
    if around is not None:
        write_into(body, around, tensor.dtype)
    elif peeling.is_chosen:
        write_pieces(body, root, tensor.axes, tensor.dtype, peeling.pieces)
    else:
        body.finish(_code(body, body.evaluate(root, scope), tensor))
    return body


def _code(body: Body, value: Value, tensor: Compute) -> Node:
    """``value`` as an array of the dtype and over all axes of ``tensor``."""
    if value.literal:
        return _constant(tensor, value.code)
    return body.full(body.typed(value, tensor.dtype), tensor.axes)


def _constant(tensor: Compute, number: Node) -> Node:
    return full_of(tuple(a.hi for a in tensor.axes), number, tensor.dtype)
