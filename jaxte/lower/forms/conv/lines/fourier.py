"""Convolutions by Fourier transforms.

With ``u`` the elements of lhs ``alpha`` apart and ``v`` those of rhs ``beta`` apart and reversed, the convolution
``alpha * x == gamma * t + beta * k + c`` is ``out[t] = (u * v)[gamma * t + c + beta * (nk - 1)]``, where ``*`` is the convolution
of sequences: the product of their transforms, transformed back. The transforms have as many points as keep what is
read apart from what wraps around, at least as many as the longer operand, and no prime factor above 5.

It takes ``n log n`` in place of ``n**2`` multiplications. Every result is a sum over all of the data, so that its error is relative
to the largest result and not to itself, and an infinity or NaN anywhere is NaN everywhere. It is never taken unless it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxte.algebra.product import Factor
from jaxte.lang.expr import Axis, Const, Expr, as_expr
from jaxte.lang.limits import NARROW
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Fourier
from jaxte.lower.arrays.views import ALL, Index, Range
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import Shaped, einsum
from jaxte.lower.code.spec import Array, Finish, Refusal, array
from jaxte.lower.forms.conv.lines.toeplitz import OfLines, end_of_lines, order_of_reads
from jaxte.lower.forms.conv.spec import Match, Window, operand_body

DTYPES = ("float32", "float64", "complex64", "complex128")
_POSITIONS = "xyzuvw"


@dataclass(frozen=True, slots=True)
class Along:
    """One dimension of the transforms.

    Attributes:
        points: of the transform.
        before: zeros in front of lhs.
        alpha, beta: how far apart the elements of lhs and rhs are.
        start, gamma, count: the positions of the result that are read.
    """

    points: int
    before: int
    alpha: int
    beta: int
    start: int
    gamma: int
    count: int


@dataclass(frozen=True, slots=True)
class FourierSpec(OfLines):
    """A convolution by transforms.

    Attributes:
        lhs, rhs: the operands; ``lhs_roles``, ``rhs_roles``: a letter for each spatial dimension, else the axis.
        out: the same of the result.
        along: the dimensions of the transforms, in the order of their letters.
        finish: what is done to the result in the end.
    """

    lhs: Array
    rhs: Array
    lhs_roles: tuple[str | Axis, ...]
    rhs_roles: tuple[str | Axis, ...]
    out: tuple[str | Axis, ...]
    along: tuple[Along, ...]
    finish: Finish


def fourier_windows(match: Match, dtype: str) -> list[Window] | Refusal:
    """The spatial dimensions of a convolution that transforms are offered for."""
    if dtype not in DTYPES:
        return Refusal(f"{dtype} has no Fourier transform")
    if len(match.spatial) > len(_POSITIONS) or any(s.z is None for s in match.spatial):
        return Refusal("an index that is not summed over")
    extents = [
        e for s in match.spatial for e in _extents(s.t, s.relation.x_range.size, s.relation.k_range.size)
    ]
    if not all(isinstance(e, Const) for e in extents):
        return Refusal("extents depend on sizes")
    counts = [1, 1, 1]
    for n, extent in enumerate(extents):
        counts[n % 3] *= int(extent)
    if min(counts) < NARROW:
        return Refusal(f"fewer than {NARROW} positions")
    axes = [a.extent for own in match.outputs for a in own] + [a.extent for a in match.reduced]
    windows = match.windows
    if not all(isinstance(e, Const) for e in [*axes, *(w.c for w in windows)]):
        return Refusal("extents depend on sizes")
    return windows


def _extents(t: Axis, x: Expr, k: Expr) -> tuple[Expr, Expr, Expr]:
    return t.extent, x, k


def fourier_spec(
    match: Match,
    windows: Sequence[Window],
    axes: Sequence[Axis],
    dtype: str,
    outer: Sequence[Factor],
    guards: Sequence[Expr],
) -> FourierSpec:
    """How the convolution ``match`` is done by transforms; arguments as those of ``specify``."""
    letters = {w.spatial.t: letter for w, letter in zip(windows, _POSITIONS, strict=False)}
    # Reading both operands the other way round reads the result the other way round.
    turned = [replace(w, flip_x=w.flip_x ^ w.flip_t, flip_k=w.flip_k ^ (not w.flip_t)) for w in windows]
    operands: list[Array] = []
    roles: list[tuple[str | Axis, ...]] = []
    for side in (0, 1):
        positions, body = operand_body(match, side, turned, dtype)
        named = dict(zip(positions, letters.values(), strict=True))
        order = order_of_reads(body, positions)
        operands.append(array(order, body))
        roles.append(tuple(named.get(a, a) for a in order))
    out = [
        a for own in match.outputs for a in own if a in letters or a in match.lhs.axes or a in match.rhs.axes
    ]
    return FourierSpec(
        operands[0],
        operands[1],
        roles[0],
        roles[1],
        tuple(letters.get(a, a) for a in out),
        tuple(_along(w) for w in windows),
        end_of_lines(match, out, axes, outer, guards),
    )


def _along(w: Window) -> Along:
    r, count = w.spatial.relation, int(w.spatial.t.extent)
    x, k = w.alpha * (int(r.x_range.size) - 1) + 1, w.beta * (int(r.k_range.size) - 1) + 1
    start = int(w.c) + k - 1
    last = start + w.gamma * (count - 1)
    if w.flip_t:
        start, last = x + k - 2 - last, x + k - 2 - start
    before = max(0, -start)
    x, start, last = x + before, start + before, last + before
    least = max(x, k, last + 1, x + k - 1 - start)
    return Along(_smooth(least), before, w.alpha, w.beta, start, w.gamma, count)


def _smooth(least: int) -> int:
    """The least even number from ``least`` on without prime factors above 5."""
    number = least + least % 2
    while True:
        rest = number
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return number
        number += 2


def points_of(windows: Sequence[Window]) -> int:
    """How many points the transforms have."""
    total = 1
    for w in windows:
        total *= _along(w).points
    return total


def fourier_source(spec: FourierSpec, operands: Sequence[Node], assign: Callable[[Node], Node]) -> Node:
    """``spec`` on the nodes of ``spec.operands``; ``assign`` gives a node a name."""
    u, v, out = spec.lettered(operands, _POSITIONS)
    for letter, own in zip(_POSITIONS, spec.along, strict=False):
        if own.before or own.alpha > 1:
            u = u.spread(u.letters.index(letter), own.before, 0, own.alpha, spec.lhs.dtype)
        v = v.spread(v.letters.index(letter), 0, 0, own.beta, spec.rhs.dtype)
    kind = "fft" if spec.lhs.dtype.startswith("complex") else "rfft"
    first, second = (_transformed(own, spec, kind).named(assign) for own in (u, v))
    result = _transformed(einsum(first, second, out), spec, f"i{kind}")
    taken = apply_steps(result.node, [Index(_entries(result, spec))])
    return assign(spec.finished(taken, operands))


def _entries(result: Shaped, spec: FourierSpec) -> tuple[Range, ...]:
    """The slice of the result that is read."""
    entries = [ALL] * len(result.letters)
    for letter, own in zip(_POSITIONS, spec.along, strict=False):
        stop = own.start + own.gamma * (own.count - 1) + 1
        first = as_expr(own.start) if own.start else None
        entries[result.letters.index(letter)] = Range(first, as_expr(stop), own.gamma)
    return tuple(entries)


def _transformed(u: Shaped, spec: FourierSpec, function: str) -> Shaped:
    """A transform of ``u``; the last dimension of those of real numbers is the half that there is."""
    places = tuple(u.letters.index(letter) for letter, _ in zip(_POSITIONS, spec.along, strict=False))
    points = tuple(own.points for own in spec.along)
    extents = list(u.extents)
    for place, count in zip(places, points, strict=True):
        extents[place] = count
    return Shaped(Fourier(function, u.node, points, places), u.letters, tuple(extents))
