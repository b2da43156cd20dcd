"""From matched axes to a call of ``lax.conv_general_dilated``: orientation, padding and layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from jaxte.algebra.product import Factor, multiplied
from jaxte.lang.expr import ONE, Axis, Const, Expr, as_expr, cast
from jaxte.lang.limits import VECTOR
from jaxte.lang.walk import free_axes
from jaxte.lower.code.spec import Array, Finish, OfTwo, array
from jaxte.lower.cost.work import points
from jaxte.lower.match.affine_relation import Relation
from jaxte.lower.match.index_terms import Form, rewrite_forms, with_normal_indices
from jaxte.lower.match.two_operands import Layout, Operand, lay_out, role, size_of
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of

_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


@dataclass(frozen=True, slots=True)
class Spatial:
    """One spatial dimension: output axis, reduced axis (if any), the indices of lhs and rhs, and how they are tied."""

    t: Axis
    z: Axis | None
    x: Form
    k: Form
    relation: Relation


@dataclass(frozen=True)
class Match:
    """Two operands and the role of every axis; ``guards`` are the conditions on axes of either operand."""

    outputs: tuple[tuple[Axis, ...], ...]
    reduced: tuple[Axis, ...]
    lhs: Operand
    rhs: Operand
    spatial: tuple[Spatial, ...]
    guards: tuple[tuple[Expr, ...], tuple[Expr, ...]]

    def with_role(self, wanted: str) -> tuple[Axis, ...]:
        """The axes outside of spatial dimensions that have a role, in order."""
        return self._roles.get(wanted, ())

    @cached_property
    def _roles(self) -> Mapping[str, tuple[Axis, ...]]:
        used = frozenset(a for s in self.spatial for a in (s.t, s.z) if a is not None)
        found: dict[str, tuple[Axis, ...]] = {}
        for reduced, axes in ((False, chain.from_iterable(self.outputs)), (True, self.reduced)):
            for axis in axes:
                if axis not in used:
                    own = role(axis, self.lhs, self.rhs, reduced)
                    found[own] = (*found.get(own, ()), axis)
        return found

    @cached_property
    def windows(self) -> list[Window]:
        """Its spatial dimensions with positive signs."""
        return [oriented(s) for s in self.spatial]


@dataclass(frozen=True, slots=True)
class ConvolutionSpec(OfTwo):
    """A call of ``lax.conv_general_dilated`` and what is done to its result.

    Attributes:
        lhs, rhs: the operands; ``lhs_shape``, ``rhs_shape``: what they are reshaped to, None for nothing.
        strides, padding, lhs_dilation, rhs_dilation, groups, dimension_numbers: as ``lax`` has them; ``by_batch``: whether the
            groups are of the batch of lhs, not of its features.
        flipped: dimensions of the result that are reversed.
        shape, order: what the result is then reshaped and transposed to; None for nothing.
        finish: what is done to it in the end.
    """

    lhs: Array
    rhs: Array
    lhs_shape: tuple[Expr, ...] | None
    rhs_shape: tuple[Expr, ...] | None
    strides: tuple[int, ...]
    padding: tuple[tuple[Expr, Expr], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    groups: Expr
    dimension_numbers: tuple[str, str, str]
    flipped: tuple[int, ...]
    shape: tuple[Expr, ...] | None
    order: tuple[int, ...] | None
    finish: Finish
    by_batch: bool = False

    @property
    def shapes(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """What the operands of the call have."""
        return self.lhs_shape or self.lhs.shape, self.rhs_shape or self.rhs.shape


@dataclass(frozen=True, slots=True)
class Window:
    """A spatial dimension with positive signs; ``flip_*`` say what is read backwards."""

    spatial: Spatial
    alpha: int
    gamma: int
    beta: int
    c: Expr
    flip_x: bool = False
    flip_k: bool = False
    flip_t: bool = False

    @property
    def padding(self) -> tuple[Expr, Expr]:
        """Padding before and behind: just enough for the last output, or as much as before where that is the same."""
        relation = self.spatial.relation
        before = normal(-self.c)
        reach = self.gamma * (self.spatial.t.extent - 1) + self.beta * (relation.k_range.size - 1) + 1
        least = normal(reach - before - (self.alpha * (relation.x_range.size - 1) + 1))
        for candidate in (before, as_expr(0)):
            slack = normal(candidate - least)
            if isinstance(slack, Const) and 0 <= int(slack) < self.gamma:
                return before, candidate
        return before, least


def oriented(spatial: Spatial) -> Window:
    """``spatial`` with lhs, rhs or the output reversed where that makes a sign positive."""
    r = spatial.relation
    last_x, last_k, last_t = r.x_range.size - 1, r.k_range.size - 1, spatial.t.extent - 1
    if r.gamma < 0 and r.beta < 0:
        c = normal(r.alpha * last_x - r.c)
        return Window(spatial, r.alpha, -r.gamma, -r.beta, c, flip_x=True)
    if r.gamma < 0:
        return Window(spatial, r.alpha, -r.gamma, r.beta, normal(r.c + r.gamma * last_t), flip_t=True)
    if r.beta < 0:
        return Window(spatial, r.alpha, r.gamma, -r.beta, normal(r.c + r.beta * last_k), flip_k=True)
    return Window(spatial, r.alpha, r.gamma, r.beta, r.c)


def exchanged(match: Match) -> Match:
    """The same product with its operands exchanged."""
    spatial = []
    for s in match.spatial:
        r = s.relation
        sign = 1 if r.beta > 0 else -1
        turned = Relation(
            sign * r.beta, -sign * r.gamma, sign * r.alpha, normal(-sign * r.c), r.k_range, r.x_range
        )
        spatial.append(Spatial(s.t, s.z, s.k, s.x, turned))
    return replace(
        match, lhs=match.rhs, rhs=match.lhs, spatial=tuple(spatial), guards=(match.guards[1], match.guards[0])
    )


def _is_kernel(match: Match) -> bool:
    """Whether lhs is better taken for the kernel: the smaller operand; of two alike the one of more features, or the one that saves reversals."""
    sizes = [1, 1]
    for s in match.spatial:
        for n, extents in enumerate((s.relation.x_range, s.relation.k_range)):
            sizes[n] *= extent_of(extents.size)
    if 2 * min(sizes) > max(sizes):
        # More features of a kernel fill a register of the CPU.
        features = [min(points(match.with_role(own)), VECTOR) for own in ("batch", "feature")]
        if 1 < min(features) != max(features):  # one line alone is laid out as a matrix that repeats it
            return features[0] > features[1]
        own, other = _reversals(match), _reversals(exchanged(match))
        if own != other:
            return own > other
    return sizes[0] < sizes[1]


def _reversals(match: Match) -> int:
    return sum(w.flip_x + w.flip_k + w.flip_t for w in match.windows)


def specify(
    match: Match,
    axes: tuple[Axis, ...],
    dtype: str,
    outer: Sequence[Factor],
    guards: Sequence[Expr],
    by_batch: bool = False,
) -> ConvolutionSpec:
    """The call for ``match``, with the factors ``outer`` multiplied to its result; its groups are of features, or ``by_batch``."""
    if _is_kernel(match):
        match = exchanged(match)
    windows = match.windows
    letters = _LETTERS.get(len(windows), "ABDEFGHJKL")[: len(windows)]
    groups, contracted = match.with_role("group"), match.with_role("contracted")
    own = {"N": match.with_role("batch"), "C": contracted}
    own["N" if by_batch else "C"] = groups + own["N" if by_batch else "C"]
    lhs = _operand(match, 0, own, windows, letters, dtype)
    rhs = _operand(
        match, 1, {"O": groups + match.with_role("feature"), "I": contracted}, windows, letters, dtype
    )
    out = {"N": match.with_role("batch"), "C": groups + match.with_role("feature")}
    out |= {letter: (w.spatial.t,) for letter, w in zip(letters, windows, strict=True)}
    place = {axis: n for n, axis in enumerate(a for own in match.outputs for a in own)}
    order = sorted(out, key=lambda name: min((place[a] for a in out[name]), default=-1))
    shape, transposed, finish = finishing(match, [out[name] for name in order], axes, outer, guards)
    return ConvolutionSpec(
        lhs.array,
        rhs.array,
        lhs.shape,
        rhs.shape,
        tuple(w.gamma for w in windows),
        tuple(w.padding for w in windows),
        tuple(w.alpha for w in windows),
        tuple(w.beta for w in windows),
        size_of(groups),
        ("".join(lhs.dims), "".join(rhs.dims), "".join(order)),
        tuple(sorted(order.index(own) for w, own in zip(windows, letters, strict=True) if w.flip_t)),
        shape,
        transposed,
        finish,
        by_batch,
    )


def _operand(
    match: Match,
    side: int,
    dims: dict[str, tuple[Axis, ...]],
    windows: Sequence[Window],
    letters: str,
    dtype: str,
) -> Layout:
    """The array of lhs (``side`` 0) or rhs (1)."""
    operand = (match.lhs, match.rhs)[side]
    positions, replaced = _positions(side, windows)
    dims = {**dims, **{letter: (p,) for letter, p in zip(letters, positions, strict=True)}}
    summed = match.with_role("lhs_sum" if side == 0 else "rhs_sum")
    return lay_out(operand, dims, replaced, summed, match.guards[side], dtype)


def _positions(side: int, windows: Sequence[Window]) -> tuple[list[Axis], list[tuple[Form, Expr]]]:
    """An axis for the positions of an operand in each spatial dimension, and what stands for its index there."""
    positions: list[Axis] = []
    replaced: list[tuple[Form, Expr]] = []
    for w in windows:
        form = (w.spatial.x, w.spatial.k)[side]
        extents = (w.spatial.relation.x_range, w.spatial.relation.k_range)[side]
        named = w.spatial.t if side == 0 or w.spatial.z is None else w.spatial.z
        positions.append(Axis(named.name, 0, extents.size))
        backwards = (w.flip_x, w.flip_k)[side]
        value = extents.hi - 1 - positions[-1] if backwards else positions[-1] + extents.lo
        replaced.append((form, normal(value)))
    return positions, replaced


def operand_body(match: Match, side: int, windows: Sequence[Window], dtype: str) -> tuple[list[Axis], Expr]:
    """The element of lhs (``side`` 0) or rhs (1) over positions in each spatial dimension."""
    operand = (match.lhs, match.rhs)[side]
    positions, replaced = _positions(side, windows)
    body = rewrite_forms(multiplied(operand.factors, match.guards[side]), replaced)
    return positions, cast(with_normal_indices(body), dtype)


def finishing(
    match: Match,
    dims: Sequence[tuple[Axis, ...]],
    axes: Sequence[Axis],
    outer: Sequence[Factor],
    guards: Sequence[Expr],
) -> tuple[tuple[Expr, ...] | None, tuple[int, ...] | None, Finish]:
    """Reshape, transposition and what comes in the end, from the result's dimensions to the output axes, times ``outer`` where ``guards`` on these hold."""
    given = frozenset(axes)
    outside = [g for g in guards if all(a in given for a in free_axes(g))]
    scale = array(axes, multiplied(outer, outside)) if outer else None
    flat = {a: n for n, a in enumerate(a for own in dims for a in own)}
    present = [own for own in match.outputs if all(a in flat for a in own)]
    wanted = [a for own in present for a in own]
    whole = tuple(axis.extent for axis in axes)
    missing = len(present) < len(match.outputs)
    ones = tuple(size_of(own) if all(a in flat for a in own) else ONE for own in match.outputs)
    broadcast = whole if missing else None
    order = tuple(flat[a] for a in wanted)
    if order == tuple(range(len(order))):
        alike = [len(own) for own in dims] == [len(own) for own in match.outputs]
        return None if alike else ones, None, Finish(None, broadcast, scale)
    split = missing or any(len(own) > 1 for own in match.outputs)
    expanded = None if all(len(own) == 1 for own in dims) else tuple(a.extent for a in flat)
    return expanded, order, Finish(ones if split else None, broadcast, scale)
