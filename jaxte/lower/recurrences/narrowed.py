"""Definitions of which a box is all that is read, as that box: of what they read themselves, a box may be all, too.

    dXp[i, j] = sum over k, l of dY[i - k, j - l] * W[k, l],   dX[i, j] = dXp[i + 1, j + 1]

The adjoint of a padded copy is defined at all of its elements, and that of the input reads no ends: ``dXp`` is a convolution with the shape of ``X``, without
a slice behind it. The gradient of what a loop begins with reads the adjoint of its first state, and what lies between is defined for all states.

Tensors of recurrences of which one position along another axis than the clock is all that is read, as states of that position.

The gradient of what a loop within a loop begins with reads the first of its adjoints in each step, and the outer loop would hand on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod

from jaxte.algebra.simplify import simplify_reads
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.lang.divisions import divisions
from jaxte.lang.expr import TRUE, Axis, Expr, Read, as_expr
from jaxte.lang.graphs import Members, among, identical
from jaxte.lang.limits import FEWER
from jaxte.lang.operators import DIVIDE
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite_reads, substitute
from jaxte.lower.cost.work import is_expensive
from jaxte.lower.recurrences.finals import Changed, changes, is_last
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index, linear_or_none
from jaxte.sets.intervals import known, reach
from jaxte.sets.resolved import decided
from jaxte.tensors.inputs import Head
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.tensor import Compute, Tensor

Position = tuple[int, int]
"""An axis, and where along it all reads are."""
Ends = tuple[int, int]
_KINDS = (Compute, Adjoint)  # others have their shape by what they are, as copies with continued ends


def narrowed(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for such definitions, and for their readers. The arguments are those of ``within_loops``."""
    own = [t for t in order if t not in given]
    boxes = _boxes(own, results)
    if not boxes:
        return {}

    def body(tensor: Compute, changed: Changed) -> Expr:
        found = boxes[tensor].body if tensor in boxes else tensor.body

        # an index of what is read may hold what is read in part, too
        def rule(read: Read, over: Read) -> Expr:
            box = boxes.get(read.tensor)
            return over if box is None else Read(changed[read.tensor], box.inside(over))

        return rewrite_reads(found, rule) if any(r.tensor in boxes for r in reads_of(found)) else found

    return changes(own, body, {}, {t: box.axes for t, box in boxes.items()})


@dataclass(frozen=True, eq=False)
class _Box:
    """What is read of a definition.

    Attributes:
        tensor: the definition.
        axes: of the box.
        table: the axes of the definition as positions in the box.
        first: where the box begins, along each axis.
    """

    tensor: Compute
    axes: tuple[Axis, ...]
    table: Mapping[Expr, Expr]
    first: tuple[int, ...]

    @cached_property
    def body(self) -> Expr:
        """The definition at the points of the box."""
        return decided(simplify_reads(substitute(self.tensor.body, self.table)))

    def inside(self, read: Read) -> list[Expr]:
        """The position of ``read`` in the box."""
        lengths = [known(a.extent) for a in self.axes]
        shifted = zip(read.indices, self.first, lengths, strict=True)
        return [as_expr(0) if n == 1 else normal(i - at) if at else i for i, at, n in shifted]


def _boxes(order: Sequence[Tensor], results: Members[Tensor]) -> dict[Tensor, _Box]:
    """Of the definitions that are no results and that only definitions read, the boxes that are read, if these are smaller."""
    readers: dict[Tensor, list[Read]] = {}
    found: dict[Tensor, _Box] = {}
    others = {t for own in order if not isinstance(own, Compute) for t in own.inputs}
    for tensor in reversed(order):
        if not isinstance(tensor, Compute):
            continue
        body = tensor.body
        if type(tensor) in _KINDS and tensor in readers and tensor not in results and tensor not in others:
            box = _box(tensor, readers[tensor])
            if box is not None and not _takes_known_functions(tensor, box):
                found[tensor] = box
                body = box.body
        for read in reads_of(body):
            readers.setdefault(read.tensor, []).append(read)
    return found


def _takes_known_functions(tensor: Compute, box: _Box) -> bool:
    """Whether an adjoint would take functions of nearly all that the forward pass takes them of: of the whole XLA finds them computed, of a slice it does not."""
    points, left = (prod(known(a.extent) or 1 for a in axes) for axes in (tensor.axes, box.axes))
    if not isinstance(tensor, Adjoint) or FEWER * (points - left) > points:
        return False
    functions = [n for n in postorder(tensor.body) if is_expensive(n) and n.op is not DIVIDE]  # type: ignore[attr-defined]
    return any(not any(isinstance(r.tensor, (Adjoint, Head)) for r in reads_of(n)) for n in functions)


def _box(tensor: Compute, reads: Sequence[Read]) -> _Box | None:
    """The box of ``tensor`` that ``reads`` are in, if it is smaller, and no digits of positions would be cut."""
    axes, first = list(tensor.axes), [0] * tensor.ndim
    divided = cache(lambda: {a for found in divisions(tensor.body) for a in free_axes(found.node)})
    for place, axis in enumerate(tensor.axes):
        indices = [read.indices[place] for read in reads]
        if any(_is_along(index, axis) for index in indices):  # of most tensors
            continue
        extent, ends = known(axis.extent), _ends(indices)
        if ends is None or extent is None:
            continue
        low, high = max(ends[0], 0), min(ends[1], extent - 1)
        if low <= high and high - low + 1 < extent and (axis not in divided() or low == high):
            axes[place], first[place] = Axis(axis.name, 0, high - low + 1), low
    if identical(axes, list(tensor.axes)):
        return None
    table: dict[Expr, Expr] = {}
    for axis, new, at in zip(tensor.axes, axes, first, strict=True):
        if new is not axis:
            table[axis] = as_expr(at) if known(new.extent) == 1 else new + at
    return _Box(tensor, tuple(axes), table, tuple(first))


def _is_along(index: Expr, axis: Axis) -> bool:
    """Whether ``index`` is an axis of its own over all positions of ``axis``."""
    if not isinstance(index, Axis) or index.given is not TRUE or index.ends != (None, None):
        return False
    return index.lo is axis.lo and index.hi is axis.hi


def _ends(indices: Sequence[Expr]) -> Ends | None:
    """Between which positions ``indices`` lie, where each is one or goes along its axes step by step."""
    found: list[Ends] = []
    for index in dict.fromkeys(indices):
        form = linear_or_none(index)
        if form is None or any(c != 1 or not isinstance(a, Axis) for a, c in form.terms.items()):
            return None
        ends = reach(form)
        if ends is None:
            return None
        found.append(ends)
    return min(low for low, _ in found), max(high for _, high in found)


def position_of(tensor: Tensor, reads: Sequence[Read], but: int | None = None) -> Position | None:
    """Along which axis, but for one, ``reads`` of ``tensor`` are all at one position."""
    for place, extent in enumerate(tensor.shape):
        if place != but and reads and known(as_expr(extent) - 1):
            ends = {_end(r.indices[place]) for r in reads}
            if len(ends) == 1 and None not in ends:
                (end,) = ends
                assert end is not None
                return place, end
    return None


def is_at(read: Read, position: Position) -> bool:
    """Whether ``read`` is at ``position``."""
    place, at = position
    return _end(read.indices[place]) == at


def _end(index: Expr) -> int | None:
    """The position that ``index`` is, where it is but one."""
    if not is_index(index):
        return None
    ends = reach(linear(normal(index)))
    return ends[0] if ends is not None and ends[0] == ends[1] else None


def narrowed_states(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for the readers of such tensors. The arguments are those of ``within_loops``."""
    own = [t for t in order if t not in given]
    positions = _state_positions(own, results)
    if not positions:
        return {}
    numbers: dict[Tensor, int] = {}
    longer: dict[Recurrence, Recurrence] = {}
    for tensor, position in positions.items():
        assert isinstance(tensor, Recurrent)
        group = longer.get(tensor.group, tensor.group)
        longer[tensor.group], numbers[tensor] = _with(group, tensor, position)

    def body(tensor: Compute, known: Changed) -> Expr:
        def rule(read: Read, over: Read) -> Expr:
            if read.tensor not in numbers or not is_at(read, positions[read.tensor]):
                return over
            whole, place = known.get(read.tensor, read.tensor), positions[read.tensor][0]
            assert isinstance(whole, Recurrent)
            rest = [i for n, i in enumerate(over.indices) if n != place]
            return Read(whole.group.tensors[numbers[read.tensor]], rest)

        return rewrite_reads(tensor.body, rule)

    return changes(own, body, longer)


def _state_positions(order: Sequence[Tensor], results: Members[Tensor]) -> dict[Tensor, Position]:
    """The axis and the position at which each such tensor is read by definitions, and by nothing else."""
    readers: dict[Tensor, list[Read]] = {}
    others: set[Tensor] = set()
    for tensor in order:
        if isinstance(tensor, Compute):
            for read in reads_of(tensor.body):
                readers.setdefault(read.tensor, []).append(read)
        else:
            others.update(tensor.inputs)
    found: dict[Tensor, Position] = {}
    for tensor in order:
        if type(tensor) is Recurrent and tensor not in results and tensor not in others:
            clock = tensor.group.places[tensor.position]
            reads = readers.get(tensor, [])
            # what the loop ends with is there whatever it stacks
            before = [r for r in reads if not is_last(r)]
            position = position_of(tensor, reads, but=clock) or position_of(tensor, before, but=clock)
            if position is not None:
                found[tensor] = position
    return found


def _with(group: Recurrence, tensor: Recurrent, position: Position) -> tuple[Recurrence, int]:
    """``group`` with a state that is ``tensor`` at ``position``, and its number: one that is there already, or another one."""
    place, at = position
    whole, clock = group.definitions[tensor.position], group.places[tensor.position]
    axes = tuple(Axis(a.name, 0, a.extent) for n, a in enumerate(whole.axes) if n != place)
    table: dict[Expr, Expr] = {whole.axes[place]: as_expr(at)}
    table |= dict(zip((a for n, a in enumerate(whole.axes) if n != place), axes, strict=True))
    state = group.states[tensor.position]
    if any(among(state, t.inputs) for t in group.inside):  # the loop hands all of it on
        body: Expr = Read(state, [table[a] for a in whole.axes])
    else:
        body = decided(substitute(whole.body, table))
    for number, other in enumerate(group.definitions):
        if len(other.axes) == len(axes) and all(
            same_extent(a.hi, b.hi) for a, b in zip(other.axes, axes, strict=True)
        ):
            if other.element(axes) is body:
                return group, number
    made = Compute(tensor.name, axes, body)
    longer = Recurrence(
        (*group.states, State(tensor.name, made.shape, made.dtype)),
        (*group.definitions, made),
        (*group.places, clock - (place < clock)),
        group.reverse,
    )
    return longer, len(group.states)
