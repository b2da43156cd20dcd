"""Steps of periodic stencils, ``u[(i - 1) % n] - 2 * u[i] + u[(i + 1) % n]``, as one loop over a copy of ``u`` with its ends continued.

The other way is to peel edges off (``forms/pieces/peeled_edges.py``): a loop over the interior and one for each edge and corner, each of which
is text, time to compile, and a call for few elements. With the copy (:mod:`jaxte.tensors.copies`) a step is one concatenation for each axis and one
loop, and so is its adjoint. A copy stands right behind the tensor, and all that comes after it reads the tensor as a slice of the copy, so
that it is held once.

Which way is faster depends on how many reads share a copy, see ``docs/design/lowering.md``. A body with many rolls of one array, a bilateral filter or a
table of neighbours, has a copy of it whatever its size: written out once for the interior and once for each edge it takes long to compile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from jaxte.lang.expr import Call, Expr, Read
from jaxte.lang.identity import Members
from jaxte.lang.operators import FLOOR_DIVIDE, MAXIMUM, MINIMUM, MOD
from jaxte.lang.walk import postorder, reads_of, substitute
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.limits import (
    FEWEST_CONTINUED,
    MANY_ROLLS,
    MOST_GIVEN,
    MOST_TWICE,
    READS_OF_A_COPY,
)
from jaxte.lower.program.across.halos import Halo, Shifts, around, copies, growth, periodic_reads, within
from jaxte.lower.tiles.tiling import Tiling
from jaxte.tensors.copies import Extended
from jaxte.tensors.tensor import Compute, Tensor

CONTINUED = "continued ends"
_MOST_GROWTH, _MOST_GROWTH_OF_MANY = 1.25, 2.0  # elements of a copy for each of the tensor
_NOT_STRAIGHT = (MOD, FLOOR_DIVIDE, MINIMUM, MAXIMUM)
Reads = Mapping[Read, Shifts]
Taken = Mapping[Compute, frozenset[Tensor]]  # the tensors of which a body reads copies


def with_continued_ends(planned: Tiling, returned: Members[Tensor], policy: Policy) -> Tiling:
    """``planned`` with copies of what is read around its ends, where that is taken."""
    if CONTINUED in policy.without:
        return planned
    bodies = [t for t in planned.order if isinstance(t, Compute) and not isinstance(t, Extended)]
    periodic = {t: found for t in bodies if _is_free(t, policy) and (found := periodic_reads(t.body))}
    if not any(any(shifts) for reads in periodic.values() for shifts in reads.values()):
        return planned
    program = _Program(planned, returned)
    many = _many(periodic)
    rolls = {t: own for t, reads in periodic.items() if (own := frozenset(many & _shifted(reads).keys()))}
    steps = _steps(periodic, many, program) if policy.facts.continues_ends else {}
    taken = {t: rolls.get(t, frozenset()) | steps.get(t, frozenset()) for t in (*rolls, *steps)}
    if not taken:
        return planned
    behind = program.computed - many
    made = _Copies(program, taken, periodic, _halos(taken, periodic), behind)
    return replace(planned.with_bodies(made.rule), again=made.again)


class _Program:
    """What is asked of a program.

    Attributes:
        computed: the tensors that it makes.
        readers: how many read each tensor, or return it.
    """

    def __init__(self, planned: Tiling, returned: Members[Tensor]) -> None:
        self.planned = planned
        self.returned = returned
        self.readers = Counter(t for item in planned.order for t in item.inputs)
        self._originals: dict[Tensor, Tensor] = {own: t for t, own in planned.stand_ins.items()}
        self.computed = {self.original(t) for t in planned.order if isinstance(t, Compute)}

    def original(self, tensor: Tensor) -> Tensor:
        """What ``tensor`` is read as."""
        return self._originals.get(tensor, tensor)

    def is_computed_again(self, tensor: Compute, copied: Members[Tensor]) -> bool:
        """Whether XLA would compute ``tensor``, a plain loop now, in the loop of each of its readers: no copy is made of it and it is not returned."""
        own = self.original(tensor)
        return own not in copied and own not in self.returned and self.readers[own] > 1


@dataclass
class _Copies:
    """The copies of one program, made in its order.

    Attributes:
        behind: what has its copy right behind it, and is a slice of it then. What many rolls read exists beside its copy: XLA would
            write the many functions that it is made of for the ends once more.
        due: the tensors that exist, and whose copies are to be made next.
        made: the copies.
        again: the slices of copies that stand for tensors.
    """

    program: _Program
    taken: Taken
    periodic: Mapping[Compute, Reads]
    halos: Mapping[Tensor, Halo]
    behind: Members[Tensor]
    due: list[Tensor] = field(default_factory=list)
    made: dict[Tensor, Tensor] = field(default_factory=dict)
    again: dict[Tensor, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sources = ((t, item) for item in self.program.planned.order for t in item.inputs)
        read = {t for t, item in sources if not (isinstance(item, Compute) and t in self.taken.get(item, ()))}
        self._plain = read | set(self.program.returned)

    def rule(self, tensor: Compute) -> tuple[Sequence[Tensor], Expr]:
        """What stands before ``tensor``, copies of the tensors before it among them, and its body with reads of copies."""
        sources = self.taken.get(tensor, frozenset())
        reads = {r: s for r, s in self.periodic.get(tensor, {}).items() if r.tensor in sources}
        others = dict.fromkeys(r.tensor for r in reads if r.tensor not in self.behind)
        missing = [t for t in others if t not in self.made]
        before = [new for source in (*self.due, *missing) for new in self._copied(source)]
        own = self.program.original(tensor)
        self.due = [own] if own in self.halos and own in self.behind else []
        table: dict[Expr, Expr] = {
            r: within(r, s, self.halos[r.tensor], self.made[r.tensor]) for r, s in reads.items()
        }
        return before, substitute(tensor.body, table) if table else tensor.body

    def _copied(self, source: Tensor) -> Iterator[Tensor]:
        """The copy of ``source``, axis after axis, and what stands for ``source`` from there on."""
        halo = self.halos[source]
        made = copies(source, halo)
        yield from made
        self.made[source] = made[-1]
        if isinstance(source, Compute) and source in self.behind and source in self._plain:
            body = Read(made[-1], [a + h for a, h in zip(source.axes, halo, strict=True)])
            own = Compute(source.name, source.axes, body).with_facts(source.facts)
            self.again[own.as_part_of(source.part_of)] = source
            yield own


# --- which are taken


def _is_free(tensor: Compute, policy: Policy) -> bool:
    """Whether no form is named for ``tensor``."""
    return not {tensor.name, tensor.part_of, ANY} & policy.forms.keys()


def _shifted(reads: Reads) -> dict[Tensor, set[Shifts]]:
    """The shifts at which each tensor is read, of those that are shifted at all."""
    found: dict[Tensor, set[Shifts]] = {}
    for read, shifts in reads.items():
        if any(shifts):
            found.setdefault(read.tensor, set()).add(shifts)
    return found


def _many(periodic: Mapping[Compute, Reads]) -> set[Tensor]:
    """What one body reads at many positions around its ends."""
    shifts: dict[Tensor, set[Shifts]] = {}
    many: set[Tensor] = set()
    for reads in periodic.values():
        for tensor, found in _shifted(reads).items():
            shifts.setdefault(tensor, set()).update(found)
            if len(found) >= MANY_ROLLS:
                many.add(tensor)
    return {t for t in many if growth(t, around(shifts[t])) <= _MOST_GROWTH_OF_MANY}


def _halos(taken: Taken, periodic: Mapping[Compute, Reads]) -> dict[Tensor, Halo]:
    """How far the copies go on."""
    shifts: dict[Tensor, list[Shifts]] = {}
    for tensor, sources in taken.items():
        for read, own in periodic[tensor].items():
            if read.tensor in sources:
                shifts.setdefault(read.tensor, []).append(own)
    return {t: around(found) for t, found in shifts.items()}


def _steps(periodic: Mapping[Compute, Reads], many: Members[Tensor], program: _Program) -> Taken:
    """The steps of stencils whose copies have enough reads, and whose own values are not computed again for that."""
    able = {t: found for t, reads in periodic.items() if (found := _sources(t, reads))}
    while True:
        taken = _with_shared_copies(able, periodic, many)
        copied = frozenset(many).union(*taken.values())
        again = {t for t in taken if program.is_computed_again(t, copied)}
        if not again:
            break
        able = {t: sources for t, sources in able.items() if t not in again}
    if not copied & program.computed and any(_elements(t) > MOST_GIVEN for t in copied):
        return {}
    return taken


def _with_shared_copies(able: Taken, periodic: Mapping[Compute, Reads], many: Members[Tensor]) -> Taken:
    """Those that read each copy often enough, and those for which no further copies, or few, are to be made then."""
    reads = {t: sum(r.tensor in sources for r in periodic[t]) for t, sources in able.items()}
    found: dict[Compute, frozenset[Tensor]] = {}
    while True:
        copied = frozenset(many).union(*found.values())
        more = {
            t: sources
            for t, sources in able.items()
            if t not in found and reads[t] >= READS_OF_A_COPY * len(sources - copied)
        }
        if not more:
            return found
        found |= more


def _sources(tensor: Compute, reads: Reads) -> frozenset[Tensor]:
    """What ``tensor`` reads around the ends, if that is all that keeps its reads from being slices."""
    if _elements(tensor) < FEWEST_CONTINUED:
        return frozenset()
    others = [r for r in reads_of(tensor.body) if r not in reads]
    found = _shifted(reads)
    if any(r.tensor in found or any(_is_bent(i) for i in r.indices) for r in others):
        return frozenset()
    small = all(_is_small(t, around(shifts)) for t, shifts in found.items())
    return frozenset(found) if small else frozenset()


def _is_bent(index: Expr) -> bool:
    return any(isinstance(node, Call) and node.op in _NOT_STRAIGHT for node in postorder(index))


def _is_small(tensor: Tensor, halo: Halo) -> bool:
    """Whether a copy takes few passes, and has few elements more than ``tensor``."""
    passes = sum(width > 0 for width in halo)
    few = passes < 2 or (passes == 2 and _elements(tensor) <= MOST_TWICE)
    return few and growth(tensor, halo) <= _MOST_GROWTH


def _elements(tensor: Tensor) -> int:
    """Of a tensor of known shape; 0 of another."""
    extents = [extent for extent in tensor.shape if isinstance(extent, int)]
    return prod(extents) if len(extents) == tensor.ndim else 0
