"""Other definitions for some tensors of a program that has recurrences, and all that reads them made anew.

Of tensors of which nothing but the last position is read, the loop ends with it, and stacks no others.

What a step makes of less than it would read: ``select(t == 9, H[i], 0)`` over all positions is ``H`` and zeros, and is no array of all positions.

The adjoint of a tensor of which one position is read is such a one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from types import MappingProxyType

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Expr, Read, Reduce, as_expr
from jaxte.lang.graphs import Members, among, identical, place_of
from jaxte.lang.limits import MOST_LARGER
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite_reads, substitute, with_tensors
from jaxte.lower.recurrences.impulses import is_impulse, with_impulses
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index, linear_or_none
from jaxte.sets.intervals import extent_of, known, reach
from jaxte.tensors.recurrences.nests import Clocked
from jaxte.tensors.recurrences.node import Final, Kept, Recurrence, Recurrent, recurrences_in
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor

Changed = dict[Tensor, Tensor]
"""What stands for tensors of a program."""


def changes(
    order: Sequence[Tensor],
    body: Callable[[Compute, Changed], Expr],
    groups: Mapping[Recurrence, Recurrence],
    axes: Mapping[Tensor, Sequence[Axis]] = MappingProxyType({}),
    known: Mapping[Tensor, Tensor] = MappingProxyType({}),
) -> Changed:
    """What stands for each tensor of ``order`` that is another one where some definitions are.

    What exists already stays what it is for all that read it, though it may be computed once more with others of its recurrence.

    Args:
        order: the tensors that are computed, each after what it reads.
        body: that of a definition, over tensors of ``order`` and over what stands for those before it.
        groups: recurrences, and what is in place of them, the same tensors first.
        axes: of definitions whose bodies are over others.
        known: what stands for some tensors in any case.
    """
    stands, own_order = dict(known), frozenset(order)
    known = dict(known)
    there = cache(lambda: {t for tensor in order for t in (tensor, *tensor.inputs)})
    for tensor in order:
        if tensor in known:
            continue
        if isinstance(tensor, Compute):
            new = with_tensors(body(tensor, known), stands)
            if new is not tensor.body or tensor in axes:
                known[tensor] = stands[tensor] = tensor.renewed(new, axes.get(tensor))
            continue
        together: Sequence[Tensor] = (tensor,)
        if isinstance(tensor, Recurrent):
            together = tensor.group.tensors
        elif isinstance(tensor, Extern):
            together = [t for t in order if isinstance(t, Extern) and t.group is tensor.group]
        own = (
            groups[tensor.group].tensors
            if isinstance(tensor, Recurrent) and tensor.group in groups
            else together
        )
        if own is together and not any(t in stands for t in tensor.inputs):
            continue
        # what exists already stays, though it was made of what is another one now
        made = Rebuilt({**{t: t for t in there() if not among(t, together)}, **stands}).parts(own)
        new_ones = dict(zip(together, made, strict=False))
        if isinstance(tensor, Recurrent):
            new_ones |= _beside(tensor.group, made[0], order)
        known |= new_ones
        stands |= {t: new for t, new in new_ones.items() if t in own_order}
    return stands


def _beside(group: Recurrence, first: Tensor, order: Sequence[Tensor]) -> Changed:
    """What stands for the last values of the tensors of ``group``, and for what is kept of them, where ``first`` stands for its first tensor."""
    assert isinstance(first, Recurrent)
    own = first.group
    found: Changed = dict(zip(group.finals, own.finals, strict=False))
    for tensor in order:
        if isinstance(tensor, Kept) and tensor.group is group:
            found[tensor] = Kept(own, tensor.position, tensor.slots)
    return found


class StandIns:
    """What stands for the tensors of a program, one change after the other.

    Attributes:
        given: those that exist already.
        changed: what stands for others.
    """

    def __init__(
        self, order: Sequence[Tensor], given: Members[Tensor], results: Iterable[Tensor], changed: Changed
    ) -> None:
        self._order, self._results = order, tuple(results)
        self.given, self.changed = given, changed

    @property
    def results(self) -> frozenset[Tensor]:
        """What has to exist in the end."""
        return frozenset(self.changed.get(t, t) for t in self._results)

    @property
    def needed(self) -> Sequence[Tensor]:
        """All that the results need, each after what it reads."""
        if not self.changed:
            return self._order
        results = [self.changed.get(t, t) for t in self._results]
        return topological_order(results, lambda t: () if t in self.given else t.inputs)

    def change(self, second: Changed) -> None:
        """What stands for tensors is ``second`` where that has another one for it."""
        own = {old: second.get(new, new) for old, new in self.changed.items()}
        self.changed = {**second, **own}


def finals_only(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for the readers of tensors of which the last position is all that is read. The arguments are those of ``within_loops``."""
    own = [t for t in order if t not in given]
    last: dict[Tensor, None] = {
        t: None for t in own if type(t) is Recurrent and t not in results and _ends_with(t)
    }
    for reader in own:
        if isinstance(reader, Compute):
            for read in reads_of(reader.body):
                if read.tensor in last and not is_last(read):
                    del last[read.tensor]
        else:
            for tensor in reader.inputs:
                last.pop(tensor, None)
    if not last:
        return {}

    return changes(own, lambda tensor, _: with_finals(tensor.body, last), {})


def with_finals(body: Expr, of: Members[Tensor]) -> Expr:
    """``body`` where reads of the last position of tensors among ``of`` are reads of what the loop ends with."""

    def rule(read: Read, over: Read) -> Expr:
        whole = read.tensor
        if whole not in of or not isinstance(whole, Recurrent) or not is_last(read):
            return over
        place = whole.group.places[whole.position]
        return Read(whole.group.finals[whole.position], [i for n, i in enumerate(over.indices) if n != place])

    return rewrite_reads(body, rule) if any(r.tensor in of for r in reads_of(body)) else body


def _ends_with(tensor: Recurrent) -> bool:
    """Whether the loop has a last position that is known."""
    return bool(known(as_expr(tensor.group.extent)))


def is_last(read: Read) -> bool:
    """Whether ``read`` is of the position that is computed last, and of no other."""
    tensor = read.tensor
    assert isinstance(tensor, Recurrent)
    group = tensor.group
    if isinstance(tensor, (Final, Kept)) or not known(as_expr(group.extent)):
        return False
    index = read.indices[group.places[tensor.position]]
    if not is_index(index):
        return False
    wanted = 0 if group.reverse else known(as_expr(group.extent) - 1)
    ends = reach(linear(normal(index)))
    return ends is not None and ends[0] == ends[1] == wanted


def made_in_steps(order: Sequence[Tensor], given: Members[Tensor], again: Members[Tensor]) -> Changed:
    """What stands for the tensors of ``order`` where steps make what is much larger than what it is made from.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        again: tensors that do not exist in whole, so that a step makes what reads them, too.
    """
    own = [t for t in order if t not in given]
    table: dict[Recurrence, Recurrence] = {}
    for group in recurrences_in(own):
        if any(t in again for t in group.tensors):
            continue
        read = [t for t in group.inputs if t not in given and isinstance(t, Compute) and _is_elementwise(t)]
        cheap = {
            t for t in read if _is_large(t) or _is_transposed(t) or any(own in again for own in t.inputs)
        }
        made = _with_bodies(group, _Bodies(group, frozenset(read), frozenset(cheap), again))
        if not identical(made.definitions, group.definitions):
            table[group] = made
    return changes(own, lambda tensor, _: tensor.body, table) if table else {}


def _is_elementwise(tensor: Compute) -> bool:
    """Whether an element takes a few operations on elements at positions that are no data."""
    nodes = list(postorder(tensor.body))
    return not any(isinstance(n, Reduce) or (isinstance(n, Read) and reads_of(*n.indices)) for n in nodes)


def _is_large(tensor: Compute) -> bool:
    """Whether ``tensor`` is much larger than what it is made from, which is something, and not by reading it in windows."""
    if any(len(free_axes(index)) > 1 for read in reads_of(tensor.body) for index in read.indices):
        return False
    # How much larger it is than what it is made from.
    return bool(tensor.inputs) and MOST_LARGER * sum(map(bytes_of_any, tensor.inputs)) <= bytes_of_any(tensor)


def _is_transposed(tensor: Compute) -> bool:
    """Whether ``tensor`` is another one with its axes in another order: a step reads its part of that in place."""
    if not isinstance(tensor.body, Read):
        return False
    places = [place_of(a, tensor.axes) for index in tensor.body.indices for a in free_axes(index)]
    return places != sorted(places) and sorted(places) == [*range(tensor.ndim)]


@dataclass(frozen=True)
class _Bodies:
    """What definitions of ``group`` read in place of tensors from before its loop.

    Attributes:
        elementwise: those whose body may stand in a step.
        cheap: those of them of which it does.
        again: tensors that do not exist in whole.
    """

    group: Recurrence
    elementwise: Members[Tensor]
    cheap: Members[Tensor]
    again: Members[Tensor]
    _known: dict[tuple[Compute, int | None], Expr | None] = field(default_factory=dict)

    def of(self, read: Read, clock: Axis | None) -> Expr | None:
        """The body of what is read, where it stands in a step; ``clock`` is the axis of the positions where that is known."""
        source = read.tensor
        if source not in self.elementwise or not isinstance(source, Compute):
            return None
        key = source, None if clock is None else _along(clock, read)
        if key not in self._known:
            self._known[key] = self._made(*key)
        own = self._known[key]
        return None if own is None else substitute(own, dict(zip(source.axes, read.indices, strict=True)))

    def _made(self, source: Compute, place: int | None) -> Expr | None:
        if place is None or any(t in self.again for t in source.inputs):
            return source.body if source in self.cheap else None
        if source in self.cheap or is_impulse(source, place):
            return with_impulses(source, place)
        return None


def _with_bodies(group: Recurrence, bodies: _Bodies) -> Recurrence:
    """``group`` with ``bodies`` where it reads tensors that have one, and with the last values of those ``again`` where it reads no others."""
    known: dict[Tensor, Tensor] = {}
    clocked = Clocked(dict(zip(group.states, group.places, strict=True)), group.definitions)
    for tensor in group.inside:
        if not isinstance(tensor, Compute):
            if any(t in known for t in tensor.inputs):
                own = Rebuilt(known).parts(tensor.group.tensors)
                known.update(zip(tensor.group.tensors, own, strict=True))
            continue
        place = clocked.place(tensor)
        clock = None if place is None else tensor.axes[place]

        def rule(read: Read, over: Read, clock: Axis | None = clock) -> Expr:
            value = bodies.of(over, clock)
            if value is not None:
                return value
            return Read(known[read.tensor], over.indices) if read.tensor in known else over

        body = with_finals(rewrite_reads(tensor.body, rule), bodies.again)
        if body is not tensor.body:
            known[tensor] = tensor.renewed(body)
    definitions = tuple(t for t in (known.get(t, t) for t in group.definitions) if isinstance(t, Compute))
    return Recurrence(group.states, definitions, group.places, group.reverse)


def _along(clock: Axis, read: Read) -> int | None:
    """The axis of what is read that goes along with the ``clock``."""
    forms = [linear_or_none(index) for index in read.indices]
    found = [n for n, f in enumerate(forms) if f is not None and len(f.terms) == 1 and clock in f.terms]
    return found[0] if len(found) == 1 else None


def bytes_of_any(tensor: Tensor) -> int:
    """The memory of ``tensor``, a guess where sizes are symbolic."""
    return prod(extent_of(as_expr(e)) for e in tensor.shape) * dtypes.width(tensor.dtype)
