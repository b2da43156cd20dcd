"""Convolutions with few results of many products each: all of the sums in one pass.

The gradient of a depthwise convolution for its weights is ``dW[c, k] = sum over n, t of H[n, c, t] * X[n, c, gamma*k + beta*t + p]``:
for each of a few output positions ``k``, the product of two arrays of the same shape, one of them a slice, summed up. There
is nothing to contract that would be a matrix product. A sum for each position reads both arrays, and XLA makes each
slice and each product first. One ``lax.reduce`` of all the products at once reads them once, and makes nothing.

It applies where every axis outside of the spatial dimensions is in both operands (grouped or contracted), the output positions
are few, and lhs is not dilated. The last dimension is summed at the end, by itself, so that the sums are short enough to
be as exact as those of a convolution.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang.expr import ZERO, Axis, Const, Expr
from jaxte.lang.identity import among, identical
from jaxte.lang.walk import free_axes
from jaxte.lower.code.spec import Array, OfTwo, Refusal, Write, array, as_factor, tuple_text, write_extent
from jaxte.lower.forms.conv.spec import Match, Window, exchanged, finish, operand_body, oriented
from jaxte.lower.match.product import Factor, multiplied
from jaxte.sets.affine import normal

MOST_SUMS = 64


@dataclass(frozen=True, slots=True)
class TapSumsSpec(OfTwo):
    """Sums of products of slices of ``lhs`` with ``rhs``, one for each output position.

    Attributes:
        lhs, rhs: arrays over the same leading axes and a position in each spatial dimension.
        padding: zeros around lhs.
        windows: for each spatial dimension the number of output positions, how far lhs is moved for each of them, whether they
            come backwards, how far apart its elements are taken, and how many.
        kept: the leading dimensions that are grouped; the others are summed over.
        shape, order, final_shape, broadcast, scale: as in ``ConvolutionSpec``.
    """

    lhs: Array
    rhs: Array
    padding: tuple[tuple[Expr, Expr], ...]
    windows: tuple[tuple[int, int, bool, int, Expr], ...]
    kept: tuple[int, ...]
    shape: tuple[Expr, ...] | None
    order: tuple[int, ...] | None
    final_shape: tuple[Expr, ...] | None
    broadcast: tuple[Expr, ...] | None
    scale: Array | None

    @property
    def sums(self) -> int:
        return prod(w[0] for w in self.windows)


def recognise_tap_sums(
    match: Match, axes: Sequence[Axis], dtype: str, outer: Sequence[Factor], guards: Sequence[Expr]
) -> TapSumsSpec | Refusal:
    """The sums that the convolution ``match`` is; arguments as those of ``specify``."""
    if any(match.with_role(r) for r in ("batch", "feature", "lhs_sum", "rhs_sum")):
        return Refusal("an axis is in one operand only: there are products of matrices")
    found = _small(match) or _small(exchanged(match))
    if found is None:
        return Refusal(f"more than {MOST_SUMS} output positions, or a dilated operand")
    match, windows = found
    groups, contracted = match.with_role("group"), match.with_role("contracted")
    leading = [a for a in _order_of_reads(match) if among(a, groups) or among(a, contracted)]
    leading += [a for a in (*groups, *contracted) if not among(a, leading)]
    operands = []
    for side in (0, 1):
        positions, body = operand_body(match, side, windows, dtype)
        operands.append(array((*leading, *positions), body))
    kept = [a for a in leading if among(a, groups)]
    dims = [*((a,) for a in kept), *((w.spatial.t,) for w in windows)]
    shape, order, final, broadcast = finish(match, dims, tuple(axes))
    given = frozenset(axes)
    outside = [g for g in guards if all(a in given for a in free_axes(g))]
    return TapSumsSpec(
        operands[0],
        operands[1],
        tuple((ZERO, ZERO) for _ in leading) + tuple(_padding(w) for w in windows),
        tuple((_count(w), w.gamma, w.flip_t, w.beta, w.spatial.relation.k_range.size) for w in windows),
        tuple(n for n, a in enumerate(leading) if among(a, groups)),
        shape,
        order,
        final,
        broadcast,
        array(axes, multiplied(outer, outside)) if outer else None,
    )


def _small(match: Match) -> tuple[Match, list[Window]] | None:
    windows = [oriented(s) for s in match.spatial]
    counts = [w.spatial.t.extent for w in windows]
    if not all(isinstance(c, Const) and w.alpha == 1 for c, w in zip(counts, windows, strict=True)):
        return None
    if prod(int(c) for c in counts) > MOST_SUMS or any(s.z is None for s in match.spatial):
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


def _order_of_reads(match: Match) -> list[Axis]:
    """The axes of lhs in the order in which its largest read names them."""
    return [axis for form in match.lhs.forms for axis in form.axes]


def tap_sums_source(
    spec: TapSumsSpec, operands: Sequence[str], target: str, write: Write = write_extent
) -> list[str]:
    """Statements that assign the result of ``spec`` on the texts of ``spec.operands`` to ``target``."""
    lines: list[str] = []
    padded = operands[0]
    if any(not identical(w, (ZERO, ZERO)) for w in spec.padding):
        lines.append(f"{target} = lax.optimization_barrier({_padded(spec, operands[0], write)})")
        padded = target
    elif not padded.isidentifier():
        lines.append(f"{target} = {padded}")
        padded = target
    ndim = len(spec.lhs.axes)
    names = _loop_names(spec, [padded, operands[1]], write)
    leading = ndim - len(spec.windows)
    entries = [":"] * leading
    for name, (_, move, _, step, count) in zip(names, spec.windows, strict=True):
        start = name if move == 1 else f"{move} * {name}"
        reach = write(normal(step * (count - 1) + 1))
        entries.append(f"{start}:{start} + {as_factor(reach)}" + (f":{step}" if step > 1 else ""))
    loops = " ".join(
        f"for {name} in {f'reversed(range({size}))' if flipped else f'range({size})'}"
        for name, (size, _, flipped, _, _) in zip(names, spec.windows, strict=True)
    )
    summed = [n for n in range(ndim - 1) if n not in spec.kept]
    products = f"[{padded}[{', '.join(entries)}] * {as_factor(operands[1])} {loops}]"
    start = f"[jnp.{spec.lhs.dtype}(0)] * {spec.sums}"
    add = "lambda a, b: [x + y for x, y in zip(a, b)]"
    lines.append(f"{target} = lax.reduce({products}, {start}, {add}, {tuple_text(map(str, summed))})")
    lines.append(f"{target} = {_finished(spec, target, operands, write)}")
    return lines


def _padded(spec: TapSumsSpec, text: str, write: Write) -> str:
    if all(isinstance(w, Const) and int(w) >= 0 for pair in spec.padding for w in pair):
        return f"jnp.pad({text}, {tuple_text(tuple_text(map(write, pair)) for pair in spec.padding)})"
    entries = [tuple_text([*map(write, pair), "0"]) for pair in spec.padding]
    return f"lax.pad({text}, jnp.{spec.lhs.dtype}(0), {tuple_text(entries)})"


def _loop_names(spec: TapSumsSpec, texts: Sequence[str], write: Write) -> list[str]:
    """Names for the loops over output positions that nothing inside of them mentions."""
    inside = [*texts, *(write(w[4]) for w in spec.windows)]
    taken = {word for text in inside for word in re.findall(r"\w+", text)}
    fresh = (f"{letter}{number or ''}" for number in itertools.count() for letter in "ijklmn")
    return list(itertools.islice((n for n in fresh if n not in taken), len(spec.windows)))


def _finished(spec: TapSumsSpec, text: str, operands: Sequence[str], write: Write) -> str:
    """The sums, each over the grouped axes and the last dimension, as one array over the output axes."""
    result = f"jnp.sum(jnp.stack({text}, axis={len(spec.kept)}), axis=-1)"
    kept = [spec.lhs.axes[n].hi for n in spec.kept]
    positions = [Const(size) for size, *_ in spec.windows]
    shape: Sequence[Expr] = (*kept, *positions) if spec.shape is None else spec.shape
    if len(positions) > 1 or spec.shape is not None:
        result += f".reshape({', '.join(map(write, shape))})"
    if spec.order is not None:
        result += f".transpose({', '.join(map(str, spec.order))})"
    if spec.final_shape is not None:
        result += f".reshape({', '.join(map(write, spec.final_shape))})"
    if spec.broadcast is not None:
        result = f"jnp.broadcast_to({result}, {tuple_text(map(write, spec.broadcast))})"
    return result if spec.scale is None else f"{as_factor(operands[2])} * {result}"
