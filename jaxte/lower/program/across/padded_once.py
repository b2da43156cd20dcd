"""Tensors that one body reads at several places: ``X[i - 1, j] + X[i + 1, j]``, or ``X[i + k]`` inside of a sum over ``k``.

Each such read is a slice, with zeros where it leaves the tensor. Two things make slices fast:

- the zeros are put around the tensor once, so that all of the reads are slices of one array. XLA on a CPU would otherwise test
  each element of each of them for being inside, which costs more than a hundred times as much;
- what is sliced exists. XLA fuses the computation of a tensor into its readers, and computes it again for each slice.
  ``lax.optimization_barrier`` around it keeps the two apart.

The widths of the zeros follow from the least and the greatest value of each index over the ranges of its axes. Reading
behind a condition or not makes no difference: a read is treated as if its tensor were surrounded by zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any

from jaxte.lang.expr import Axis, Call, Expr, Read, as_expr, call, conjuncts
from jaxte.lang.limits import FEWER, PLACES
from jaxte.lang.operators import NOT, SELECT
from jaxte.lang.walk import all_of, depends_on, free_axes, postorder, reads_of, reductions, substitute
from jaxte.lower.code.vocabulary import AnyStatement
from jaxte.lower.cost.work import expensive_calls
from jaxte.lower.match.index_terms import decompose, is_injective
from jaxte.lower.program.across.barriers import behind_barrier
from jaxte.lower.rules.select import literal_of
from jaxte.lower.views.condition_box import box_of
from jaxte.lower.views.one_axis import ends_of_values
from jaxte.lower.views.scope import Scope, Widths
from jaxte.sets.affine import linear
from jaxte.sets.conditions import positive
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import constant, dims_of, highest, known, lowest, surely_inside
from jaxte.sets.linear import Linear
from jaxte.tensors.structure import of_each_kind
from jaxte.tensors.tensor import Compute, Tensor

_CHEAP_CALLS = 3  # operations that are as well computed again for each slice


def padded_in(root: Expr, tests_pads: bool) -> Mapping[Tensor, Widths]:
    """What a body on its platform surrounds with zeros: where pads cost nothing, only what is sliced for each position of another axis.

    A shift by a constant keeps the extents there, ``jnp.pad(u[1:], (0, 1))``: of an array that is sharded along them, one chip sends a row to
    the next, where one with zeros around it has other shards than the array itself.
    """
    found = paddings(root)
    if tests_pads or not found:
        return found
    reads = by_tensor(root)
    return {
        tensor: widths
        for tensor, widths in found.items()
        if any(len(free_axes(index)) > 1 for read in reads[tensor] for index in read.indices)
    }


@lru_cache(maxsize=1024)  # asked for by each tensor, and by all of them together
@of_each_kind(1024)
def paddings(root: Expr) -> Mapping[Tensor, Widths]:
    """The tensors that ``root`` reads at several places, some of them outside, with the zeros wanted around each."""
    found: dict[Tensor, Widths] = {}
    shifted, reduced = shifted_axes(root), _reduced(root)
    pieces = cache(partial(_in_pieces, root))  # for a body that reads many tensors, once for all of them
    for tensor, reads in by_tensor(root).items():
        if not are_several(reads, shifted) or all(map(surely_inside, reads)):
            continue
        widths = None if _reads_digits(reads, reduced) else _widths(tensor, pieces()[tensor])
        if widths is not None and any(low or high for low, high in widths):
            found[tensor] = widths
    return found


def keep_apart(statements: list[AnyStatement], tensor: Tensor, target: str, by_call: bool) -> None:
    """Puts ``tensor``, if it is computed here and takes more than a few operations, behind a barrier from what slices it."""
    if isinstance(tensor, Compute) and not is_cheap(tensor.body) and literal_of(tensor) is None:
        for n in range(len(statements) - 1, -1, -1):
            if statements[n].target == target:
                statements[n] = behind_barrier(statements[n], by_call)
                return


def are_several(reads: Sequence[Read], shifted: frozenset[Axis]) -> bool:
    """Whether ``reads`` of one tensor are more than one slice."""
    if any(reads_of(index) for read in reads for index in read.indices):
        return False
    if len({read.indices for read in reads}) > 1:
        return True
    return any(depends_on(index, shifted) for read in reads for index in read.indices)


def _reduced(root: Expr) -> frozenset[Axis]:
    return frozenset(a for node in reductions(root) for a in node.axes)


def shifted_axes(root: Expr) -> frozenset[Axis]:
    """The axes that a reduction runs over and that stand in a sum with others that they are no digits of one number with.

    Such a sum is taken apart into slices, of all that depends on these axes.
    """
    reduced = _reduced(root)
    return reduced & mixed_axes(root) if reduced else reduced


@lru_cache(maxsize=512)
def mixed_axes(root: Expr) -> frozenset[Axis]:
    """The axes that stand in a sum with others that they are no digits of one number with."""
    indices = (index for read in reads_of(root) for index in read.indices)
    uses = (decompose(index) for index in indices if is_index(index))
    forms = (use.form for use in uses if use is not None)
    return frozenset(a for form in forms if len(form.axes) > 1 and not is_injective(form) for a in form.axes)


def _reads_digits(reads: Sequence[Read], reduced: frozenset[Axis]) -> bool:
    """Whether an index is a number with digits of its own, ``12 * (i - p) + j - q``.

    A condition keeps each of them in range, and the number then is; zeros before the first and behind the last would not.
    """
    forms = [linear(index) for read in reads for index in read.indices if is_index(index)]
    kept = [{abs(c) for a, c in f.terms.items() if isinstance(a, Axis) and a not in reduced} for f in forms]
    return any(len(factors) > 1 for factors in kept)


def by_tensor(root: Expr) -> dict[Tensor, list[Read]]:
    found: dict[Tensor, list[Read]] = {}
    for node in reads_of(root):
        found.setdefault(node.tensor, []).append(node)
    return found


def _in_pieces(root: Expr) -> dict[Tensor, list[Read]]:
    """The reads of each tensor, over the part of an axis where a choice takes them, if that is no more than most of it.

    A choice that leaves out some edges is met by zeros; one that takes an axis apart is met piece by piece.
    """
    if not any(isinstance(node, Call) and node.op is SELECT for node in postorder(root)):
        return by_tensor(root)
    found: dict[Tensor, list[Read]] = {}
    seen: set[tuple[Expr, tuple[tuple[Expr, Expr], ...]]] = set()
    parts: dict[
        tuple[Any, Expr], dict[Expr, Expr]
    ] = {}  # the same part of an axis has the same axis of its own

    def within(condition: Expr) -> dict[Expr, Expr]:
        if (key[1], condition) not in parts:
            parts[key[1], condition] = _narrowed(table, condition)
        return parts[key[1], condition]

    stack: list[tuple[Expr, dict[Expr, Expr]]] = [(root, {})]
    while stack and len(seen) < PLACES:
        node, table = stack.pop()
        key = node, tuple(table.items())
        if key in seen:
            continue
        seen.add(key)
        if isinstance(node, Read):
            own = Read(node.tensor, [substitute(i, table) for i in node.indices])
            found.setdefault(node.tensor, []).append(own)
        if isinstance(node, Call) and node.op is SELECT:
            test, taken, other = node.args
            stack += [(test, table), (taken, within(test)), (other, within(call(NOT, test)))]
        else:
            stack += [(child, table) for child in node.children if child.children or isinstance(child, Read)]
    return found if len(seen) < PLACES else by_tensor(root)


def _narrowed(table: dict[Expr, Expr], condition: Expr) -> dict[Expr, Expr]:
    """``table`` with axes of their own for those that ``condition`` leaves a part of."""
    result = dict(table)
    for dim, start, stop in _parts(condition):
        now = result.get(dim, dim)
        assert isinstance(now, Axis)
        ends = known(now.lo), known(now.hi)
        if ends[0] is None or ends[1] is None:
            continue
        low, high = max(ends[0], start), min(ends[1], stop)
        length = ends[1] - ends[0]
        if low < high and FEWER * (length - (high - low)) >= length:
            result[dim] = Axis(dim.name, low, high)
    return result


@lru_cache(maxsize=1024)  # each branch of choices within choices asks again
def _parts(condition: Expr) -> tuple[tuple[Axis, int, int], ...]:
    """The parts of axes that ``condition`` leaves, where their ends are numbers."""
    boxes = [box_of(positive(part), Scope(tuple(free_axes(part)))) for part in conjuncts(condition)]
    known_now = [b for b in boxes if b and b.step == 1 and b.start.is_constant and b.stop.is_constant]
    return tuple((b.dim, b.start.constant, b.stop.constant) for b in known_now)


def _widths(tensor: Tensor, reads: Sequence[Read]) -> Widths | None:
    """How far the reads leave each dimension; None where that is not known, or farther than the tensor is long."""
    widths: list[tuple[int, int]] = []
    for axis, extent in enumerate(tensor.shape):
        before = after = 0
        for read in reads:
            index = read.indices[axis]
            if not is_index(index) or not _is_affine(index):
                return None
            low, high = _ends(index)
            if low is None or high is None:
                return None
            beyond = high + constant(1) - linear(as_expr(extent))
            if not low.is_constant or not beyond.is_constant:
                return None
            before, after = max(before, -low.constant), max(after, beyond.constant)
        size = known(as_expr(extent))
        if size is not None and before + after > max(size, 2):
            return None
        widths.append((before, after))
    return tuple(widths)


def _ends(index: Expr) -> tuple[Linear | None, Linear | None]:
    """The least and the greatest value of an index; by its values where it has digits of one axis, of which interval arithmetic sees each alone."""
    exact = ends_of_values(index)
    if exact is not None:
        return constant(exact[0]), constant(exact[1])
    return lowest(linear(index)), highest(linear(index))


def _is_affine(index: Expr) -> bool:
    """Whether floors and remainders are of one axis each: others take apart what cannot be padded first."""
    return all(isinstance(atom, Axis) or len(dims_of(atom)) < 2 for atom in linear(index).terms)


@lru_cache(maxsize=1024)
def is_cheap(body: Expr) -> bool:
    """Whether an element takes a few operations and no loop."""
    return calls_in(body) <= _CHEAP_CALLS and not has_loops(body)


@lru_cache(maxsize=1024)
def calls_in(body: Expr) -> int:
    """The operations of an element, those on positions not counted."""
    return len([node for node in all_of(Call, body) if not node.weak])


@lru_cache(maxsize=1024)
def has_loops(body: Expr) -> bool:
    """Whether an element takes a sum, or a function that is a loop itself."""
    return body.reduces or bool(expensive_calls([body]))
