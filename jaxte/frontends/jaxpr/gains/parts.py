"""Products of which little is computed: a diagonal that is read alone, or its sum, and sums of a few reads where a matrix is known.

JAX multiplies whole matrices for ``jnp.trace(a @ b)``. Slices are moved before products elsewhere (``narrow``); in index notation the sum of the product is read at
the positions that are asked for, ``sum over i, k of a[i, k] * b[k, i]``.

Products with known matrices that are sums of a few reads: of chosen elements, or of those side by side in each row.

A matrix with one number in each row is a selection: one-hot rows, permutations, cyclic shifts, and the kernels with which
``lax.conv_general_dilated_patches`` takes windows. One with a few numbers side by side is a band: resizing, finite differences, smoothing. A
product with it is ``sum over t of w[j, t] * x[start(j) + t]`` with ``start(j) = (p * j + c) // q``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.values.positions import positions_in, replaced
from jaxte.lang import operators as ops
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.limits import FEW, FEWER, MANY_OPERATIONS
from jaxte.lang.walk import all_of, postorder
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.intervals import reach
from jaxte.sets.linear import Linear
from jaxte.tensors.tensor import Compute, Tensor

_VIEWS = ("transpose", "squeeze", "reshape", "copy")


def is_read_in_part(step: Step) -> bool:
    """Whether a quarter of what ``step`` makes is read at most."""
    return FEWER * _share(step.outputs[0]) <= 1


def _share(slot: Slot) -> float:
    """How much of ``slot`` its readers read; all of it where nothing is known."""
    readers = list(dict.fromkeys(slot.readers))
    return sum(map(_share_of, readers)) if readers and slot.shape else 1.0


def _share_of(reader: Step) -> float:
    source, out = reader.inputs[0], reader.outputs[0]
    if reader.name == "gather" and reader.inputs[1].known is not None:
        return prod(out.shape) / max(prod(source.shape), 1)
    if reader.name in _VIEWS:
        return _share(out)
    if all(sums_diagonal(r) for r in out.readers) and out.readers:
        return 1 / max(source.shape)
    return 1.0


def sums_diagonal(step: Step) -> bool:
    """Whether ``step`` sums the elements at which two positions are equal, as ``jnp.trace`` does; all others were made 0."""
    if step.name != "reduce_sum":
        return False
    chosen = step.inputs[0].origin
    if chosen is None or chosen.name != "select_n" or len(chosen.inputs) != 3:
        return False
    which, zeros, _ = chosen.inputs
    if which.known is None or zeros.known is None or np.any(zeros.known) or np.ndim(which.known) < 2:
        return False
    return bool(np.count_nonzero(which.known) * max(which.shape) <= which.known.size)


def part_of_product(body: Expr, shape: Sequence[int]) -> Expr | None:
    """A read of a product at a part of its positions, or a sum of such reads, as the product summed there; else None."""
    if isinstance(body, Reduce):
        return _summed_part(body, shape)
    if not isinstance(body, Read) or not _is_product(body.tensor):
        return None
    if FEWER * prod(shape) > prod(body.tensor.shape):
        return None
    return _at(body.tensor, body.indices)


def _summed_part(body: Reduce, shape: Sequence[int]) -> Expr | None:
    """A sum of elements of a product as one sum."""
    extents = [_extent(a) for a in body.axes]
    if not body.is_sum or body.where is not TRUE or None in extents:
        return None
    (element,) = body.exprs
    inner = part_of_product(element, [*shape, *(e for e in extents if e is not None)])
    if not isinstance(inner, Reduce):
        return None
    return body.changed(exprs=inner.exprs, axes=[*body.axes, *inner.axes], where=inner.where)


def _at(tensor: Compute, indices: Sequence[Expr]) -> Expr:
    """The element of a product at ``indices``, over axes of its own."""
    body = replaced(tensor.body, dict(zip(tensor.axes, indices, strict=True)))
    assert isinstance(body, Reduce)
    taken = {n.name for i in indices for n in all_of(Axis, i)}
    own = {a: Axis(_unlike(a.name, taken), 0, a.hi, reduction=True) for a in body.axes}
    return body.changed(exprs=[replaced(e, own) for e in body.exprs], axes=list(own.values()))


def _unlike(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _is_product(tensor: Tensor) -> bool:
    if not isinstance(tensor, Compute):
        return False
    body = tensor.body
    return (
        isinstance(body, Reduce)
        and body.is_sum
        and body.where is TRUE
        and isinstance(body.exprs[0], Call)
        and body.exprs[0].op is ops.MULTIPLY
    )


def is_diagonal(body: Expr) -> bool:
    """Whether an array is a read where two positions are equal, and 0 elsewhere."""
    match body:
        case Call(op, (Call(equal, (a, b)), Read(), Const(0 | 0.0))) if (
            op is ops.SELECT and equal is ops.EQUAL
        ):
            return all(isinstance(n, (Axis, Const, Call)) for n in postorder(a, b))
    return False


def along_diagonal(element: Expr, axes: Sequence[Axis]) -> tuple[Expr, list[Axis]]:
    """What is summed over ``axes`` where two positions are equal, and 0 elsewhere, summed along that diagonal only."""
    if not is_diagonal(element):
        return element, list(axes)
    (left, right), read = element.children[0].children, element.children[1]
    form = linear(left) - linear(right)
    for axis in axes:
        line = _line(form, axis, axes)
        if line is not None:
            own, other, moved = line
            found = replaced(
                replaced(read, {axis: from_linear(own)}), {} if other is None else {other: moved[0]}
            )
            return found, [moved[1] if a is other else a for a in axes if a is not axis]
    return element, list(axes)


def _line(form: Linear, axis: Axis, axes: Sequence[Axis]) -> Any:
    """``axis`` where ``form`` is 0, as a form of other axes; and one of these that is summed over, from where this is inside, as
    what it becomes and its new axis. None where it cannot be solved for ``axis``.
    """
    sign, extent = form.coefficient(axis), _extent(axis)
    if abs(sign) != 1 or extent is None or any(not isinstance(a, Axis) for a in form.terms):
        return None
    own = form.without(axis) * -sign
    found = reach(own)
    if found is not None and found[0] >= 0 and found[1] < extent:
        return own, None, ()
    match list(own.terms.items()):
        case [(Axis() as other, 1)] if any(a is other for a in axes) and _extent(other) is not None:
            low = max(0, -own.constant)
            high = min(_extent(other) or 0, extent - own.constant)
            if high > low:
                inner = Axis(other.name, 0, high - low, reduction=True)
                return own, other, (inner + low, inner)
    return None


def _extent(axis: Axis) -> int | None:
    return axis.hi.value if isinstance(axis.hi, Const) and isinstance(axis.hi.value, int) else None


@dataclass(frozen=True)
class Band:
    """The numbers of a matrix beside its steep line.

    Attributes:
        slope, shift: row ``j`` begins at column ``(p * j + shift) // q`` for the slope ``p / q``.
        taps: the numbers of each row from there on, (rows, taps).
    """

    slope: Fraction
    shift: int
    taps: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        return _starts(self.slope, self.shift, len(self.taps))


def band_of(matrix: np.ndarray) -> Band | None:
    """The band of ``matrix``, (rows, columns); None where its rows have too many numbers, or do not lie along one line."""
    rows, columns = matrix.shape
    filled = matrix != 0
    held = filled.any(1)
    # Elements other than 0 in a column, up to which the others are not multiplied.
    if columns < MANY_OPERATIONS or not held.any() or int(filled.sum(1).max()) > FEW:
        return None
    first = np.where(held, filled.argmax(1), columns)
    last = np.where(held, columns - 1 - filled[:, ::-1].argmax(1), -1)
    for slope in _slopes(rows, columns):
        p, q = slope.numerator, slope.denominator
        shift = int(np.min((q * first + q - 1 - p * np.arange(rows))[held]))
        starts = _starts(slope, shift, rows)
        count = int(np.max((last - starts)[held])) + 1
        # Each tap is a loop in place of so many products; with fewer, a product of matrices is as fast.
        if count <= FEW and count * MANY_OPERATIONS <= columns:
            place = starts[:, None] + np.arange(count)
            inside = (place >= 0) & (place < columns)
            numbers = np.take_along_axis(matrix, np.clip(place, 0, columns - 1), 1)
            return Band(slope, shift, np.where(inside, numbers, 0).astype(matrix.dtype))
    return None


def _slopes(rows: int, columns: int) -> Iterator[Fraction]:
    yield Fraction(1)
    if rows != columns:
        yield Fraction(columns, rows)


def _starts(slope: Fraction, shift: int, rows: int) -> np.ndarray:
    return (slope.numerator * np.arange(rows) + shift) // slope.denominator


@dataclass(frozen=True)
class Selection:
    """Where the number of each row stands, one array for each dimension that is summed over, and the number, one for all."""

    positions: tuple[np.ndarray, ...]
    number: Any


def selection_of(rows: np.ndarray) -> Selection | None:
    """The selection that ``rows`` is, of which the first dimension stays.

    None where some row has no number, several, or its own, and where their positions follow no index expression.
    """
    if rows.ndim < 2 or rows.shape[0] < 2 or rows[0].size < 2:
        return None
    flat = rows.reshape(rows.shape[0], -1)
    filled = flat != 0
    if not np.all(np.count_nonzero(filled, axis=1) == 1):
        return None
    numbers = flat[filled]
    if np.any(numbers != numbers[0]):
        return None
    places = np.unravel_index(filled.argmax(1), rows.shape[1:])
    if any(positions_in(p, [ZERO], e) is None for p, e in zip(places, rows.shape[1:], strict=True)):
        return None
    return Selection(places, numbers[0].item())


def kernel_selection(kernel: Any, spec: tuple[int, ...]) -> Selection | None:
    """What a known kernel of a convolution selects for each output feature; ``spec`` are its dimensions, output and input features first."""
    return None if kernel is None else selection_of(np.transpose(np.asarray(kernel), spec))


def known_factors(step: Step) -> Iterator[np.ndarray]:
    """The known matrix of a ``dot_general`` with an array that is not, along its rows; none where there is no such product."""
    (left, right), batched = step.eqn.params["dimension_numbers"]
    if any(batched) or len(left) != 1:
        return
    for n, (contracted,) in enumerate((left, right)):
        matrix = step.inputs[n].known
        if matrix is not None and np.ndim(matrix) == 2 and step.inputs[1 - n].known is None:
            yield along_rows(np.asarray(matrix), contracted)


def along_rows(matrix: np.ndarray, contracted: int) -> np.ndarray:
    """``matrix`` with the dimension that is summed over as its columns."""
    return matrix if contracted == 1 else matrix.T
