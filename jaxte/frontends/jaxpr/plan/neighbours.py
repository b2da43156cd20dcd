"""Functions of an element and one of its neighbours, of which there are many and which are added up: one expression each.

What is made of ``x[i]`` and ``x[i + s]`` by anything nonlinear is a tensor otherwise, since its slopes would be computed again wherever it is read.
Where only sums read it, its slopes are computed twice, at ``i`` and at ``i - s``, which costs less than the arrays of many such functions: a weight
``exp(-(x[i] - x[i + s])**2)`` for each of 24 neighbours. The sum of all of them is one tensor.

What is asked of the expression of an element, to decide whether it is composed further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.frontends.jaxpr.gains.gains import MOVES, SHIFTS
from jaxte.lang import operators as ops
from jaxte.lang.divisions import Remainder, divisions
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr
from jaxte.lang.limits import FEW_POSITIONS, MOST_LARGER
from jaxte.lang.walk import all_of, postorder, reads_of
from jaxte.sets.affine import linear

_SUMS = frozenset(["add", "sub", "add_any"])

_MOST = 3  # arrays that such a function reads: a weight of two, times a third one
Pair = frozenset[Slot]


@dataclass(frozen=True)
class Neighbours:
    """What a list of steps computes of elements and their neighbours.

    Attributes:
        paired: functions of two arrays at most, one of them shifted, that sums and such functions alone read; and the shifted arrays.
        summed: what adds them up.
    """

    paired: frozenset[Slot] = frozenset()
    summed: frozenset[Slot] = frozenset()


def neighbours(steps: Sequence[Step], results: Sequence[Slot]) -> Neighbours:
    """The functions of pairs in ``steps``, none of which is among the ``results`` or read by anything but sums.

    Args:
        steps: in order.
        results: what is needed as an array.
    """
    views = _shifted(steps)
    if not views:
        return Neighbours()
    pairs = _pairs(steps, views)
    kept = _kept(pairs, results)
    paired = {slot for slot, own in pairs.items() if own not in kept}
    paired |= {v for v in views if v not in results and all(r.outputs[0] in paired for r in v.readers)}
    summed: set[Slot] = set()
    for step in steps:
        if step.name in _SUMS and any(s in paired or s in summed for s in step.inputs):
            summed.update(s for s in step.outputs if s not in paired)
    return Neighbours(frozenset(paired), frozenset(summed))


def _kept(pairs: dict[Slot, Pair], results: Sequence[Slot]) -> set[Pair]:
    """The pairs of which a function is a result, or is read by anything but sums and other functions of the pair."""
    kept = {pairs[slot] for slot in results if slot in pairs}
    for slot, own in reversed(pairs.items()):
        for reader in slot.readers:
            larger = pairs.get(reader.outputs[0])
            if reader.name not in _SUMS and (larger is None or not own <= larger or larger in kept):
                kept.add(own)
    return kept


def _shifted(steps: Sequence[Step]) -> frozenset[Slot]:
    """The rolls of arrays of which there are many of one shape, that anything but another one reads."""
    roots: dict[Slot, Slot] = {}
    read: list[Slot] = []
    for step in steps:
        sources = {roots.get(s, s) for s in step.inputs if s.known is None}
        if (step.name in MOVES or step.name in SHIFTS) and len(sources) == 1 and len(step.outputs) == 1:
            (out,) = step.outputs
            roots[out] = sources.pop()
            if step.name == "concatenate" and not all(r.name in SHIFTS for r in out.readers):
                read.append(out)
    times = Counter((roots[s], s.shape) for s in read)
    # Neighbours of an array, from which on arrays for each of them cost more than slopes that are computed twice.
    return frozenset(s for s in read if times[roots[s], s.shape] >= FEW_POSITIONS)


def _pairs(steps: Sequence[Step], views: frozenset[Slot]) -> dict[Slot, Pair]:
    """What each function of two arrays, one of them among ``views``, is a function of."""
    found: dict[Slot, Pair] = {}
    for step in steps:
        rule = RULES.get(step.name)
        elementwise = rule is not None and rule.reads in (Reads.POINTWISE, Reads.LINEAR)
        if not elementwise or step.is_known or len(step.outputs) != 1:
            continue
        own = frozenset(leaf for s in step.inputs if s.known is None for leaf in found.get(s, (s,)))
        most = 2 if step.name in _SUMS else _MOST
        if len(own) <= most and not own.isdisjoint(views):
            found[step.outputs[0]] = own
    return found


def is_shifted(body: Expr) -> bool:
    """Whether an element reads a float tensor at other positions than its own."""
    for node in postorder(body):
        if isinstance(node, Read) and not all(isinstance(i, (Axis, Const)) for i in node.indices):
            return True
        if isinstance(node, Call) and node.op is ops.SELECT and not _reads(node.args[0]):
            return True
    return False


def _reads(body: Expr) -> bool:
    return any(isinstance(n, Read) for n in postorder(body))


def chooses_between_reads(body: Expr) -> bool:
    """Whether a view is made of several arrays; one array with numbers around it is composed further."""
    return sum(isinstance(n, Read) for n in postorder(body)) > 1


def is_held(body: Expr) -> bool:
    """Whether a view repeats the ends of an array: composed with shifts, its adjoint has a part for each of them at each end."""
    return any(isinstance(n, Call) and n.op in (ops.MINIMUM, ops.MAXIMUM) for n in postorder(body))


def divides(read: Read) -> bool:
    return bool(divisions(*read.indices))


def is_repeat(read: Read) -> bool:
    """Whether an array is read at affine indices, and quotients of axes that stand nowhere else: elements repeated."""
    found = divisions(*read.indices)
    divided = [d.number for d in found]
    if any(isinstance(d, Remainder) for d in found) or not all(isinstance(a, Axis) for a in divided):
        return False
    bare = [n for i in read.indices for n in all_of(Axis, i)]
    return all(sum(a is b for b in bare) == 1 for a in divided)


def size_of(body: Expr) -> int:
    return sum(1 for _ in postorder(body))


def is_framed(body: Expr, shape: Sequence[int]) -> bool:
    """Whether an array of ``shape`` is overlapping parts of a tensor, zeros around it: composed, a product with it is a banded one."""
    match body:
        case Call(op, (condition, Read() as read, Const(0 | 0.0))) if op is ops.SELECT and not _reads(
            condition
        ):
            return is_framed(read, shape)
        case Read(tensor):
            whole = all(isinstance(e, int) for e in tensor.shape)
            affine = all(isinstance(a, Axis) for i in body.indices for a in linear(i).terms)
            # Times as many elements as the tensor has that parts of it hold together.
            return whole and affine and prod(shape) >= MOST_LARGER * prod(tensor.shape)
    return False


def is_turned(body: Expr) -> bool:
    """Whether an array is a whole tensor, some dimensions of it counted from the other end."""
    if not isinstance(body, Read):
        return False
    return all(_is_line(i, e) for i, e in zip(body.indices, body.tensor.shape, strict=True))


def _is_line(index: Expr, extent: object) -> bool:
    """Whether ``index`` is an axis over the whole of ``extent``, from either end."""
    form = linear(index)
    if len(form.terms) != 1 or not isinstance(extent, int):
        return False
    ((axis, factor),) = form.terms.items()
    whole = isinstance(axis, Axis) and axis.extent is as_expr(extent)
    return whole and (factor, form.constant) in ((1, 0), (-1, extent - 1))


def steepens_itself(left: Expr, right: Expr) -> bool:
    """Whether a difference of neighbours is multiplied by an element of the same tensor, as in ``u * (u[i + 1] - u[i - 1])``.

    Composed, it is one more term of the stencil around it: its slopes read no array that the stencil does not read.
    """
    shifted, other = (left, right) if is_shifted(left) else (right, left)
    if is_shifted(other) or not is_shifted(shifted):
        return False
    reads, own = (reads_of(e) for e in (shifted, other))
    return len(reads) <= 2 and len(own) == 1 and {r.tensor for r in reads} == {own[0].tensor}
