"""Convolutions with few results of many products each: all of the sums in one pass.

The gradient of a depthwise convolution for its weights is ``dW[c, k] = sum over n, t of H[n, c, t] * X[n, c, gamma*k + beta*t + p]``:
for each of a few output positions ``k``, the product of two arrays of the same shape, one of them a slice, summed up. There
is nothing to contract that would be a matrix product. A sum for each position reads both arrays, and XLA makes each
slice and each product first. One ``lax.reduce`` of all the products at once reads them once, and makes nothing.

It applies where every axis outside of the spatial dimensions is in both operands (grouped or contracted), the output positions
are few, and lhs is not dilated. The last dimension is summed at the end, by itself, so that the sums are short enough to
be as exact as those of a convolution. Channels that both operands have last stay there: positions are summed in the pass, for each channel by
itself, and what is left at the end. Where a core has little memory for columns, as on a GPU, each row is summed by itself in the pass, and the sums of
rows at the end; channels that stand last are turned to the front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.algebra.product import Factor
from jaxte.lang.dtypes import NARROW
from jaxte.lang.expr import ZERO, Axis, Const, Expr
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import FEW, MOST_PARTS, VECTOR
from jaxte.lang.operators import MULTIPLY
from jaxte.lower.arrays.elementwise import Apply, Cast, Kept, Name, Number, Typed
from jaxte.lower.arrays.loops import Each, Items, Loop, Stacked, Sums, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.views import ALL, Entry, Index, Pad, Spread
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import moving
from jaxte.lower.code.spec import Array, Finish, OfTwo, Refusal, array
from jaxte.lower.cost.work import points
from jaxte.lower.forms.conv.spec import Match, Window, exchanged, finishing, operand_body
from jaxte.lower.forms.conv.write import rearranged
from jaxte.sets.affine import normal

NONE = (ZERO, ZERO)


@dataclass(frozen=True, slots=True)
class TapSumsSpec(OfTwo):
    """Sums of products of slices of ``lhs`` with ``rhs``, one for each output position.

    Attributes:
        lhs, rhs: arrays over the same axes and a position in each spatial dimension.
        padding: zeros around lhs.
        windows: for each spatial dimension the number of output positions, how far lhs is moved for each of them, whether they
            come backwards, how far apart its elements are taken, and how many.
        first: the number of the first spatial dimension; the others follow it.
        kept: the other dimensions that are grouped; the rest are summed over.
        shape, order, finish: as in ``ConvolutionSpec``.
        along_rows: whether the last dimension is summed in the pass, and the others at the end.
        is_turned: whether the operands are copied first, so that what is moved along stands last.
    """

    lhs: Array
    rhs: Array
    padding: tuple[tuple[Expr, Expr], ...]
    windows: tuple[tuple[int, int, bool, int, Expr], ...]
    first: int
    kept: tuple[int, ...]
    shape: tuple[Expr, ...] | None
    order: tuple[int, ...] | None
    finish: Finish
    along_rows: bool = False
    is_turned: bool = False

    @property
    def sums(self) -> int:
        return prod(w[0] for w in self.windows)

    @property
    def ends(self) -> int:
        """The number of the dimension behind the spatial ones."""
        return self.first + len(self.windows)

    @property
    def in_pass(self) -> tuple[int, ...]:
        """The dimensions that are summed in the pass; the other summed ones are at the end."""
        ndim = len(self.lhs.axes)
        if self.along_rows:
            return (ndim - 1,)
        if self.ends < ndim:
            return tuple(range(self.first, self.ends))
        return tuple(n for n in range(ndim - 1) if n not in self.kept)


def recognise_tap_sums(
    match: Match,
    axes: Sequence[Axis],
    dtype: str,
    outer: Sequence[Factor],
    guards: Sequence[Expr],
    along_columns: bool = True,
    most: int = MOST_PARTS,
) -> TapSumsSpec | Refusal:
    """The sums that the convolution ``match`` is, at ``most`` positions; the other arguments as those of ``specify``.

    Where columns cannot be summed together, each sum is along its rows first.
    """
    if any(match.with_role(r) for r in ("batch", "feature", "lhs_sum", "rhs_sum")):
        return Refusal("an axis is in one operand only: there are products of matrices")
    found = _small(match, most) or _small(exchanged(match), most)
    if found is None:
        return Refusal(f"more than {most} output positions, or a dilated operand")
    match, windows = found
    groups, contracted = match.with_role("group"), match.with_role("contracted")
    read = [axis for form in match.lhs.forms for axis in form.axes]
    leading = [a for a in read if among(a, groups) or among(a, contracted)]
    leading += [a for a in (*groups, *contracted) if not among(a, leading)]
    # Sums along columns that any platform takes together.
    few, rows = prod(map(_count, windows)) <= FEW, _has_rows(match)
    along_rows = not along_columns and (rows or not few)
    channels_last = (rows or not along_rows) and _has_channels_last(match, groups)
    trailing = [a for a in leading if among(a, groups)] if channels_last else []
    leading = [a for a in leading if not among(a, trailing)]
    operands = []
    for side in (0, 1):
        positions, body = operand_body(match, side, windows, dtype)
        operands.append(array((*leading, *positions, *trailing), body))
    order_of_all = [*leading, *(None for _ in windows), *trailing]
    kept = [a for a in order_of_all if a is not None and among(a, groups)]
    dims = [*((a,) for a in kept), *((w.spatial.t,) for w in windows)]
    shape, order, finish = finishing(match, dims, axes, outer, guards)
    return TapSumsSpec(
        operands[0],
        operands[1],
        (*(NONE for _ in leading), *(_padding(w) for w in windows), *(NONE for _ in trailing)),
        tuple((_count(w), w.gamma, w.flip_t, w.beta, w.spatial.relation.k_range.size) for w in windows),
        len(leading),
        tuple(n for n, a in enumerate(order_of_all) if a is not None and among(a, groups)),
        shape,
        order,
        finish,
        along_rows,
        along_rows and not rows,
    )


def _has_channels_last(match: Match, groups: Sequence[Axis]) -> bool:
    """Whether both operands have the grouped axes behind their positions, and there are enough of them for vectors."""
    if points(groups) < VECTOR:
        return False
    moving = [a for s in match.spatial for a in (s.t, s.z) if a is not None]
    for operand in (match.lhs, match.rhs):
        behind = True
        for form in reversed(operand.forms):
            behind = behind and not any(among(a, moving) for a in form.axes)
            if not behind and any(among(a, groups) for a in form.axes):
                return False
    return True


def _has_rows(match: Match) -> bool:
    """Whether the last dimension that is moved along is the last one of both operands."""
    last = match.spatial[-1]
    moving = [a for a in (last.t, last.z) if a is not None]
    return all(
        any(among(a, moving) for a in side.forms[-1].axes) for side in (match.lhs, match.rhs) if side.forms
    )


def _small(match: Match, most: int) -> tuple[Match, list[Window]] | None:
    windows = match.windows
    counts = [w.spatial.t.extent for w in windows]
    if not all(isinstance(c, Const) and w.alpha == 1 for c, w in zip(counts, windows, strict=True)):
        return None
    if prod(int(c) for c in counts) > most or any(s.z is None for s in match.spatial):
        return None
    return match, windows


def _count(window: Window) -> int:
    return int(window.spatial.t.extent)


def _padding(window: Window) -> tuple[Expr, Expr]:
    """Zeros, or elements that are cut off where negative, so that the slices are exactly what is left."""
    relation = window.spatial.relation
    before = normal(-window.c)
    reach = window.gamma * (window.spatial.t.extent - 1) + window.beta * (relation.k_range.size - 1) + 1
    return before, normal(reach - before - relation.x_range.size)


def tap_sums_source(
    spec: TapSumsSpec, operands: Sequence[Node], step: Callable[..., Name], shared: Callable[[Node], Name]
) -> Node:
    """``spec`` on the nodes of ``spec.operands``.

    Args:
        spec: what is computed.
        operands: nodes of the operands.
        step: gives a node a name, by default a new one.
        shared: gives a node the name that it has, as an array with zeros around it that others read too.
    """
    target = ""
    padded = padded_operand(spec, operands[0], shared)
    if not isinstance(padded, Name):
        padded = named = step(padded)
        target = named.identifier
    turns: list[Loop] = []
    entries: list[Entry] = [ALL] * spec.first
    for name, (size, move, flipped, every, count) in zip("ijklmn", spec.windows, strict=False):
        turns.append(loop(name, size, backwards=flipped))
        entries.append(moving(move * turns[-1].axis, normal(every * (count - 1) + 1), every))
    met = apply_steps(padded, [Index(tuple(entries))])
    rounded = met.kind[0] in NARROW
    met = Cast(met, "float32") if rounded else met
    sums = Sums(Each(Apply(MULTIPLY, (met, operands[1])), tuple(turns)), spec.in_pass)
    values = step(sums, target)
    items = Items(values, sums.count, sums.item_shape, sums.parts.kind)
    result = _finished(spec, items, operands)
    return step(Cast(result, spec.lhs.dtype) if rounded else result, values.identifier)


def padded_operand(spec: TapSumsSpec, node: Node, shared: Callable[[Node], Name]) -> Node:
    """The first operand with zeros around it, where there are any."""
    if all(identical(w, (ZERO, ZERO)) for w in spec.padding):
        return node
    return shared(Kept(_padded(spec, node)))


def _padded(spec: TapSumsSpec, node: Node) -> Node:
    if all(isinstance(w, Const) and int(w) >= 0 for pair in spec.padding for w in pair):
        return apply_steps(node, [Pad(spec.padding)])
    widths = tuple((*pair, 0) for pair in spec.padding)
    return Spread(node, Typed(Number(0), spec.lhs.dtype), widths)


def _finished(spec: TapSumsSpec, sums: Items, operands: Sequence[Node]) -> Node:
    """The sums, each over the grouped axes and what is summed at the end, as one array over the output axes."""
    if spec.ends < len(spec.lhs.axes):
        result: Node = Stacked((sums,), len(sums.extents))
        if spec.first:
            result = Reduced("sum", result, tuple(range(spec.first)))
    elif spec.along_rows:
        left = len(spec.lhs.axes) - 1
        result = Stacked((sums,), left)
        others = tuple(n for n in range(left) if n not in spec.kept)
        result = Reduced("sum", result, others) if others else result
    else:
        result = Reduced("sum", Stacked((sums,), len(spec.kept)), (-1,))
    return placed(spec, result, operands)


def placed(spec: TapSumsSpec, result: Node, operands: Sequence[Node]) -> Node:
    """The sums, over the grouped axes and the positions, as one array over the output axes."""
    kept = [spec.lhs.axes[n].hi for n in spec.kept]
    positions = [Const(size) for size, *_ in spec.windows]
    shape: Sequence[Expr] = (*kept, *positions) if spec.shape is None else spec.shape
    given = len(positions) > 1 or spec.shape is not None
    result = rearranged(result, shape if given else None, spec.order)
    return spec.finish.of(result, operands[2:])
