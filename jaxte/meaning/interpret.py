"""The meaning of the language: every element of every tensor computed with NumPy, nothing rearranged.

A body is evaluated node by node over all points of its axes at once. Each axis has a dimension in the arrays, of
length 1 where a value does not depend on it, so that values meet by broadcasting; axes of reductions that stand side
by side share one, since NumPy has 64. An operation is
computed widely (in float64) and rounded to the dtype of its node; sums are accumulated widely and rounded once.
A read outside of its tensor is NaN (0 for integers): where that is not meant to happen, a guard discards it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from jaxte.lang.checks import several, wants_arguments
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import FeedError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, Var, as_expr
from jaxte.lang.limits import TABLE
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.meaning.fact_checks import check_facts
from jaxte.meaning.feeds import Sizes, bind_sizes, check_feeds, result_shape, size_value
from jaxte.meaning.rounding import converted, operated, storage, widened
from jaxte.tensors.recurrences.node import Recurrence, Recurrent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor

_REDUCTIONS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}


@overload
def interpret(tensors: Tensor, feeds: Mapping[Any, ArrayLike]) -> np.ndarray: ...
@overload
def interpret(tensors: Sequence[Tensor], feeds: Mapping[Any, ArrayLike]) -> list[np.ndarray]: ...
@wants_arguments
def interpret(tensors: Tensor | Sequence[Tensor], feeds: Mapping[Any, ArrayLike]) -> Any:
    """The values of ``tensors`` for the arrays in ``feeds``, by plain loops of NumPy, which are slow and right by inspection.

    Args:
        tensors: one Tensor, or several.
        feeds: ``{placeholder: array}`` with an array for each input of ``tensors``, and no other.

    Returns:
        A NumPy array, or a list of them for several tensors.

    Raises:
        FeedError: an array that is missing, not asked for, or of another shape or dtype than its placeholder, or
            that does not have a fact stated of its placeholder; an argmax of nothing.

    Example:
        >>> X = te.placeholder((3,), name="X")
        >>> te.interpret(te.compute((3,), lambda i: 2 * X[2 - i]), {X: np.float32([1, 2, 3])})
        array([6., 4., 2.], dtype=float32)
    """
    wanted = several(tensors, Tensor, "the first argument of te.interpret", "a Tensor or several")
    order = topological_order(wanted)
    arrays = check_feeds(order, feeds)
    sizes = bind_sizes(arrays)
    for tensor in wanted:
        result_shape(tensor.name, tensor.shape, sizes)
    values = {tensor: np.asarray(array) for tensor, array in arrays.items()}
    check_facts(values)
    calls: dict[object, Sequence[Any]] = {}
    with np.errstate(all="ignore"):
        for tensor in order:
            if isinstance(tensor, Compute):
                values[tensor] = _compute(tensor, values, sizes)
            elif isinstance(tensor, Extern):
                values[tensor] = _extern(tensor, values, calls)
            elif isinstance(tensor, Recurrent):
                if tensor not in values:
                    values |= _recurrence(tensor.group, values, sizes)
    results = [values[tensor] for tensor in wanted]
    return results[0] if isinstance(tensors, Tensor) else results


def _extern(
    tensor: Extern, values: Mapping[Tensor, np.ndarray], calls: dict[object, Sequence[Any]]
) -> np.ndarray:
    if tensor.group not in calls:
        result = tensor.fn(*(values[t] for t in tensor.inputs))
        calls[tensor.group] = result if isinstance(result, (tuple, list)) else (result,)
    return np.asarray(calls[tensor.group][tensor.position])


def _recurrence(
    group: Recurrence, values: Mapping[Tensor, np.ndarray], sizes: Sizes
) -> dict[Tensor, np.ndarray]:
    """The tensors of ``group``: position by position, everything that depends on them computed anew from what is known by then."""
    known = dict(values)
    for state in group.states:
        nothing = np.nan if is_inexact(state.dtype) else 0
        known[state] = np.full([size_value(as_expr(e), sizes) for e in state.shape], nothing, state.dtype)
    count = size_value(as_expr(group.extent), sizes)
    placed = dict(zip(group.definitions, zip(group.states, group.places, strict=True), strict=True))
    for position in reversed(range(count)) if group.reverse else range(count):
        for _ in group.states:  # those that read each other at one position are known after as many turns
            for tensor in group.inside:
                if isinstance(tensor, Compute):
                    known[tensor] = _compute(tensor, known, sizes)
                else:
                    known |= _recurrence(tensor.group, known, sizes)
            for tensor, (state, place) in placed.items():
                at = (slice(None),) * place + (position,)
                known[state][at] = known[tensor][at]
    return {tensor: known[state] for tensor, state in zip(group.tensors, group.states, strict=True)}


def _compute(tensor: Compute, values: Mapping[Tensor, np.ndarray], sizes: Sizes) -> np.ndarray:
    ranges = _ranges(tensor, sizes)
    dims = _dimensions(tensor, list(ranges))
    extents = [len(ranges[axis]) for axis in tensor.axes]
    points = max(1, math.prod(extents))
    at_once = max(1, TABLE * points // max(1, _largest_grid(tensor, ranges)))
    result = np.empty(extents, tensor.dtype)
    for box in _boxes(extents, at_once):
        grid = _Grid({**ranges, **dict(zip(tensor.axes, box, strict=True))}, dims, values, sizes)
        (value,) = grid.evaluate([tensor.body])
        value = value.reshape(value.shape[: len(extents)])  # the reduced axes have length 1
        result[tuple(slice(r.start, r.stop) for r in box)] = converted(value, (tensor.dtype, False))
    return result


def _ranges(tensor: Compute, sizes: Sizes) -> dict[Axis, range]:
    """The integers of every axis of ``tensor``: of its own, then of those in its body."""
    inner = itertools.chain.from_iterable(_axes_of(node) for node in postorder(tensor.body))
    axes = dict.fromkeys((*tensor.axes, *inner))
    return {axis: range(size_value(axis.lo, sizes), size_value(axis.hi, sizes)) for axis in axes}


def _axes_of(node: Expr) -> tuple[Axis, ...]:
    return node.axes if isinstance(node, Reduce) else (node,) if isinstance(node, Axis) else ()


def _dimensions(tensor: Compute, axes: Sequence[Axis]) -> dict[Axis, int]:
    """A dimension for each axis: those of ``tensor`` first, others where no axis of the same subexpression is."""
    free: dict[Expr, frozenset[Axis]] = {}
    beside: dict[Axis, set[Axis]] = {axis: set() for axis in axes}
    for node in postorder(tensor.body):
        own = frozenset(_axes_of(node)).union(*(free[child] for child in node.children))
        free[node] = own
        if isinstance(node, Reduce):
            free[node] = own.difference(node.axes)
            for axis in own:
                beside[axis] |= own
    found = {axis: n for n, axis in enumerate(tensor.axes)}
    for axis in axes:
        if axis not in found:
            taken = {found[other] for other in beside[axis] if other in found}
            found[axis] = next(n for n in itertools.count(len(tensor.axes)) if n not in taken)
    return found


def _largest_grid(tensor: Compute, ranges: Mapping[Axis, range]) -> int:
    """The greatest number of points at which a node of the body is evaluated."""
    free: dict[Expr, frozenset[Axis]] = {}
    largest = 1
    for node in postorder(tensor.body):
        axes = frozenset(_axes_of(node)).union(*(free[child] for child in node.children))
        largest = max(largest, math.prod(len(ranges[axis]) for axis in axes.union(tensor.axes)))
        free[node] = axes.difference(node.axes) if isinstance(node, Reduce) else axes
    return largest


def _boxes(extents: Sequence[int], most: int) -> Iterator[tuple[range, ...]]:
    """Boxes that partition the points, each of at most ``most``."""
    pieces: list[list[range]] = []
    for extent in reversed(extents):
        step = max(1, min(extent, most))
        most //= step
        pieces.insert(0, [range(lo, min(lo + step, extent)) for lo in range(0, extent, step)])
    return itertools.product(*pieces)


@dataclass(frozen=True)
class _Grid:
    """The points at which a body is evaluated: the ``ranges`` of its axes, and the dimension ``dims`` of each."""

    ranges: Mapping[Axis, range]
    dims: Mapping[Axis, int]
    values: Mapping[Tensor, np.ndarray]
    sizes: Sizes

    def evaluate(
        self, roots: Sequence[Expr], known: Mapping[Expr, np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """The values of ``roots``; those of the nodes in ``known`` are given."""
        memo: dict[Expr, np.ndarray] = dict(known or {})
        nodes = list(postorder(*roots))
        uses = Counter(child for node in nodes for child in node.children) + Counter(roots)
        for node in nodes:
            if node not in memo:
                memo[node] = self._value(node, [memo[child] for child in node.children])
            for child in node.children:
                uses[child] -= 1
                if not uses[child]:
                    memo.pop(child, None)  # a deep body would hold too many arrays
        return [memo[root] for root in roots]

    def _value(self, node: Expr, below: list[np.ndarray]) -> np.ndarray:
        match node:
            case Const(value):
                return self._scalar(value, node)
            case Var():
                return self._scalar(size_value(node, self.sizes), node)
            case Axis():
                return np.array(self.ranges[node], np.int64).reshape(self._shape(node))
            case Read(tensor, _):
                return self._read(self.values[tensor], below)
            case Call():
                return operated(node.op, below, [a.kind for a in node.args], node.kind)
            case Reduce():
                return self._reduce(node, below[:-1], below[-1])
        raise AssertionError(f"no value for {type(node).__name__}")

    def _scalar(self, value: Any, node: Expr) -> np.ndarray:
        return np.full(self._shape(), value, storage(node.kind))

    def _shape(self, *axes: Axis) -> tuple[int, ...]:
        shape = [1] * (1 + max(self.dims.values(), default=-1))
        for axis in axes:
            shape[self.dims[axis]] = len(self.ranges[axis])
        return tuple(shape)

    def _read(self, source: np.ndarray, indices: list[np.ndarray]) -> np.ndarray:
        inside = np.ones(self._shape(), bool)
        positions = []
        for index, extent in zip(indices, source.shape, strict=True):
            valid = (index >= 0) & (index < extent)
            inside = inside & valid
            positions.append(np.where(valid, index, 0).astype(np.int64))
        outside = np.array(np.nan if is_inexact(source.dtype.name) else 0, source.dtype)
        if not source.size:
            return np.full(inside.shape, outside)
        return np.where(inside, source[tuple(positions)], outside)

    def _reduce(self, node: Reduce, exprs: list[np.ndarray], where: np.ndarray) -> np.ndarray:
        dims = tuple(self.dims[axis] for axis in node.axes)
        shape = np.broadcast_shapes(*(e.shape for e in exprs), where.shape, self._shape(*node.axes))
        starts = self.evaluate(node.reducer.identity)
        if node.reducer.name not in _REDUCTIONS:
            return self._fold(
                node, [np.broadcast_to(e, shape) for e in exprs], np.broadcast_to(where, shape), starts
            )
        start = widened(converted(starts[0], node.kind))
        terms = np.where(where, widened(converted(exprs[0], node.kind)), start)
        reduction = _REDUCTIONS[node.reducer.name].reduce
        total = reduction(np.broadcast_to(terms, shape), axis=dims, keepdims=True, initial=start.item())
        return converted(np.asarray(total), node.kind)

    def _fold(
        self, node: Reduce, exprs: list[np.ndarray], where: np.ndarray, state: list[np.ndarray]
    ) -> np.ndarray:
        """A custom reduction: the points one after the other, in the order of the axes."""
        for axis in node.axes:
            if node.reducer.name in ("argmax", "argmin") and not self.ranges[axis]:
                raise FeedError(
                    f"{node.reducer.name} over {axis.name}, whose range from {text(axis.lo)} to {text(axis.hi)} is empty with these arrays"
                )
        reducer, dims = node.reducer, [self.dims[axis] for axis in node.axes]
        at: list[slice] = [slice(None)] * where.ndim
        for point in np.ndindex(*(where.shape[dim] for dim in dims)):
            for dim, position in zip(dims, point, strict=True):
                at[dim] = slice(position, position + 1)
            terms = [
                converted(e[tuple(at)], symbol.kind) for e, symbol in zip(exprs, reducer.rhs, strict=True)
            ]
            known: dict[Expr, np.ndarray] = dict(
                zip((*reducer.lhs, *reducer.rhs), (*state, *terms), strict=True)
            )
            combined = self.evaluate(reducer.results, known)
            state = [np.where(where[tuple(at)], new, old) for new, old in zip(combined, state, strict=True)]
        return state[node.position]
