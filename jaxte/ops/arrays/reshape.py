"""Reshape: the index of an element in the old shape as digits of its row-major number in the new one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import ShapeLike, normal_axis, operator
from jaxte.sets.affine import linear, normal
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, Shape, check_shape, same_extent, shape_text
from jaxte.tensors.tensor import Tensor


@operator
def reshape(x: Tensor, shape: ShapeLike) -> Tensor:
    """The elements of ``x`` in row-major order in another shape; one extent may be -1, and is worked out.

    Formula: ``y[q] = x[p] with the same number in row-major order``

    Raises:
        ShapeError: another number of elements, -1 more than once.

    Source: ``jnp.reshape``.

    Example:
        >>> te.ops.reshape(np.arange(6), (2, -1)).tolist()
        [[0, 1, 2], [3, 4, 5]]
    """
    target = _resolved(x, [shape] if isinstance(shape, (int, Expr)) else list(shape))
    groups = _matching_groups(x, target)
    if any(len(old) > 1 and len(new) > 1 for old, new in groups):
        # in two steps, each of which only merges or only splits axes: so the adjoints are reshapes as well
        x = reshape(x, [_product(target, new) for _, new in groups])
        groups = _matching_groups(x, target)

    def body(*index: Expr) -> Expr:
        positions: dict[int, Any] = {}
        for old, new in groups:
            positions |= _digits(x.shape, target, index, old, new)
        return x[tuple(positions.get(axis, 0) for axis in range(x.ndim))]

    return compute(target, body, "reshape")


@operator
def reshape_like(x: Tensor, like: Tensor) -> Tensor:
    """``x`` in the shape of ``like``, whose values do not matter.

    Formula: ``y[q] = x[p] with the same number in row-major order``

    Raises:
        ShapeError: another number of elements.

    Source: relay ``reshape_like``.

    Example:
        >>> te.ops.reshape_like(np.arange(2), np.zeros((2, 1), "bool")).tolist()
        [[0], [1]]
    """
    return reshape(x, like.shape)


@operator
def flatten(x: Tensor, start_dim: int = 1) -> Tensor:
    """``x`` with all axes from ``start_dim`` on in one; by default the first axis, the batch, is kept.

    Formula: ``y[n, i * W + j] = x[n, i, j]``

    Raises:
        ShapeError: an axis out of range.

    Source: ``torch.nn.Flatten``.

    Example:
        >>> te.ops.flatten(te.placeholder((2, 3, 4))).shape
        (2, 12)
    """
    start = normal_axis(start_dim, x.ndim + 1, "flatten") if x.ndim else 0
    return reshape(x, (*x.shape[:start], _product(x.shape, range(start, x.ndim))))


@operator
def batch_flatten(x: Tensor) -> Tensor:
    """``x`` with all axes but the first in one: :func:`flatten` under the name that it has in graphs.

    Formula: ``y[n, i * W + j] = x[n, i, j]``

    Raises:
        ShapeError: ``x`` has no axes.

    Source: relay ``batch_flatten``.

    Example:
        >>> te.ops.batch_flatten(te.placeholder((2, 3, 4))).shape
        (2, 12)
    """
    if not x.ndim:
        raise ShapeError(f"te.ops.batch_flatten: {x.name} has no axes; the first one is the batch")
    return flatten(x, 1)


def _product(shape: Shape, axes: Sequence[int]) -> Extent:
    """The number of elements along ``axes``."""
    product: Any = 1
    for axis in axes:
        product = product * shape[axis]
    return product


def _digits(
    source: Shape, target: Shape, index: Sequence[Expr], old: Sequence[int], new: Sequence[int]
) -> dict[int, Any]:
    """The indices of the axes ``old`` at the point ``index`` of the axes ``new``, in mixed radix."""
    flat: Any = as_expr(0)
    for axis in new:
        flat = flat * target[axis] + index[axis]
    digits = {}
    for axis in reversed(old[1:]):
        digits[axis] = normal(flat % source[axis])
        flat = normal(flat // source[axis])
    return digits | dict.fromkeys(old[:1], flat)


@dataclass(frozen=True)
class _Count:
    """A number of elements: an integer times symbolic extents."""

    number: int
    symbols: Counter[Expr]

    def times(self, extent: Extent) -> _Count:
        if isinstance(extent, int):
            return _Count(self.number * extent, self.symbols)
        terms = linear(extent)
        if terms.constant == 0 and len(terms.terms) == 1:
            ((atom, factor),) = terms.terms.items()
            return _Count(self.number * factor, self.symbols + Counter([atom]))
        return _Count(self.number, self.symbols + Counter([extent]))

    def divided_by(self, other: _Count) -> Extent | None:
        """The quotient as an extent; None where it is no such thing."""
        symbols = list((self.symbols - other.symbols).elements())
        if other.symbols - self.symbols or len(symbols) > 1 or not other.number or self.number % other.number:
            return None
        number = self.number // other.number
        return number * symbols[0] if symbols else number


def _count(extents: Sequence[Extent]) -> _Count:
    count = _Count(1, Counter())
    for extent in extents:
        count = count.times(extent)
    return count


def _matching_groups(x: Tensor, target: Shape) -> list[tuple[list[int], list[int]]]:
    """The least groups of neighbouring axes of ``x`` and ``target`` that hold equally many elements each.

    Axes of extent 1 are in no group: their index is 0.
    """
    empty = [any(same_extent(e, 0) for e in shape) for shape in (x.shape, target)]
    if any(empty):
        if not all(empty):
            raise _mismatch(x, target)
        return []
    old = [a for a, e in enumerate(x.shape) if not same_extent(e, 1)]
    new = [a for a, e in enumerate(target) if not same_extent(e, 1)]
    groups = []
    while old or new:
        left, right = _next_group(x, target, old, new)
        groups.append((left, right))
        old, new = old[len(left) :], new[len(right) :]
    return groups


def _next_group(x: Tensor, target: Shape, old: list[int], new: list[int]) -> tuple[list[int], list[int]]:
    """The first axes of ``old`` and of ``new`` that hold equally many elements."""
    left, right = _count([]), _count([])
    i = j = 0
    while not i or left != right:
        missing = right.symbols - left.symbols
        behind = bool(missing) or (not left.symbols - right.symbols and left.number <= right.number)
        if behind and i < len(old):
            left, i = left.times(x.shape[old[i]]), i + 1
        elif j < len(new):
            right, j = right.times(target[new[j]]), j + 1
        else:
            raise _mismatch(x, target)
    inner = [x.shape[a] for a in old[1:i]] + [target[a] for a in new[1:j]]
    if any(isinstance(extent, Expr) for extent in inner):
        raise ShapeError(
            f"te.ops.reshape: {x.name} {shape_text(x.shape)} to {shape_text(target)} would divide an index by a symbolic "
            "size; only the first of the axes that are merged or split may be symbolic"
        )
    return old[:i], new[:j]


def _mismatch(x: Tensor, target: Shape) -> ShapeError:
    return ShapeError(
        f"te.ops.reshape: {x.name} {shape_text(x.shape)} and {shape_text(target)} have different numbers of elements; "
        "the products of their extents must be equal"
    )


def _resolved(x: Tensor, shape: list[Any]) -> Shape:
    """``shape`` with its -1 worked out."""
    unknown = [n for n, extent in enumerate(shape) if isinstance(extent, int) and extent == -1]
    if len(unknown) > 1:
        raise ShapeError(
            f"te.ops.reshape: {tuple(shape)} has -1 more than once; one extent can be worked out"
        )
    if not unknown:
        return check_shape(shape, "reshape")
    before, after = shape[: unknown[0]], shape[unknown[0] + 1 :]
    extent = _count(x.shape).divided_by(_count(check_shape([*before, *after], "reshape")))
    if extent is None:
        raise ShapeError(
            f"te.ops.reshape: no extent fits -1 in {tuple(shape)} for {x.name} {shape_text(x.shape)}; the product of "
            "the other extents must divide the number of elements"
        )
    return check_shape([*before, extent, *after], "reshape")
