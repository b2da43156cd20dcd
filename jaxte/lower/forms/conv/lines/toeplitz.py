"""Convolutions along one dimension as products of matrices that are constant along their diagonals.

Dimensions of the operands and of the result have roles: a letter for each position on a line, and the axis for every other.

A spatial dimension ties three positions by ``alpha * x == gamma * t + beta * k + c`` (see ``relation``): any two of them
determine the third. So the array that stands at the third may be laid out as a matrix over the other two, and the sum
is a matrix product:

    lhs:  out[t] = sum over k of L[t, k] * rhs[k]       with L[t, k] = lhs[(gamma t + beta k + c) / alpha]
    rhs:  out[t] = sum over x of lhs[x] * R[t, x]       with R[t, x] = rhs[(alpha x - gamma t - c) / beta]
    out:  M[x, k] = lhs[x] * rhs[k], and out[t] is the sum of M along the diagonal (alpha x - beta k - c) / gamma == t

The first is a convolution by columns of windows; the second holds a whole kernel in each row; the third is the adjoint of
both for what was laid out. Which of them is least depends on the three extents alone: a convolution with a kernel of a few taps
is best by the first, the gradient of a long kernel by the third. Further axes (batch, features, channels, groups) may stand
anywhere; which of them are summed and which are kept is the einsum's business.

A matrix ``u[a * r + b * q]`` is ``u`` repeated, padded and read as rows of another length; see ``toeplitz_source``. Elements
between those of a dilated operand, and those outside of it, are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from jaxte.algebra.product import Factor
from jaxte.lang.expr import Axis, Const, Expr
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, reads_of
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.lettered_array import Shaped, letters_of, shaped
from jaxte.lower.code.spec import Array, Finish, OfTwo, Refusal, array
from jaxte.lower.forms.conv.spec import Match, Window, finishing, operand_body, oriented

Roles = tuple[str | Axis, ...]


class OfLines(OfTwo):
    """A specification by roles."""

    __slots__ = ()
    lhs_roles: Roles
    rhs_roles: Roles
    out: Roles

    @property
    def axes(self) -> list[Axis]:
        """Those of the result, then those of the operands that are summed over."""
        return axes_in(self.out, self.lhs_roles, self.rhs_roles)

    @property
    def extents(self) -> dict[Axis, int]:
        return {a: int(a.extent) for a in self.axes}

    @property
    def groups(self) -> int:
        """How many products of matrices there are: the elements of the axes that are in both operands and the result."""
        every = (self.out, self.lhs_roles, self.rhs_roles)
        return prod(e for a, e in self.extents.items() if all(among(a, own) for own in every))

    def lettered(self, operands: Sequence[Node], reserved: str) -> tuple[Shaped, Shaped, str]:
        """The operands, and the letters of the result. Axes have no letter of those ``reserved``."""
        letters = letters_of(self.axes, reserved)
        out = "".join(letters[r] if isinstance(r, Axis) else r for r in self.out)
        lhs = shaped(self.lhs, self.lhs_roles, operands[0], letters)
        return lhs, shaped(self.rhs, self.rhs_roles, operands[1], letters), out

    def finished(self, result: Node, operands: Sequence[Node]) -> Node:
        return self.finish.of(result, operands[2:])


def axes_in(*roles: Roles) -> list[Axis]:
    return [r for r in dict.fromkeys(r for own in roles for r in own) if isinstance(r, Axis)]


LHS, RHS, OUT = "lhs", "rhs", "out"


@dataclass(frozen=True, slots=True)
class Line:
    """One of the two positions that a matrix is made over: its extent, factor, and whether it is counted backwards."""

    name: str
    extent: int
    factor: int
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class ToeplitzSpec(OfLines):
    """A convolution by a matrix.

    Attributes:
        kind: what is laid out as a matrix: "lhs", "rhs" or "out".
        lhs, rhs: the operands; ``lhs_roles``, ``rhs_roles``: "x" or "k" for the spatial dimension, else the axis.
        out: "t" or the axis of each dimension of the result.
        rows, columns: the two positions of the matrix.
        spread: how far apart the elements of what is laid out are on its line.
        before: how many zeros stand before them there (elements are cut off where negative).
        positions: how many of them are read from (or, of the result, written to).
        finish: what is done to the result in the end.
    """

    kind: str
    lhs: Array
    rhs: Array
    lhs_roles: tuple[str | Axis, ...]
    rhs_roles: tuple[str | Axis, ...]
    out: tuple[str | Axis, ...]
    rows: Line
    columns: Line
    spread: int
    before: int
    positions: int
    finish: Finish

    @property
    def laid_out(self) -> int:
        """The number of the operand that is read at several positions."""
        return 0 if self.kind == LHS else 1

    @property
    def span(self) -> int:
        """The length of the line that the matrix is read from: one more than its last position."""
        return sum(line.factor * (line.extent - 1) for line in (self.rows, self.columns)) + 1


def recognise_toeplitz(
    match: Match, axes: Sequence[Axis], dtype: str, outer: Sequence[Factor], guards: Sequence[Expr]
) -> list[ToeplitzSpec] | Refusal:
    """The three ways to do the convolution ``match``; arguments as those of ``specify``."""
    if len(match.spatial) != 1 or match.spatial[0].z is None:
        return Refusal("not one spatial dimension")
    extents = [a.extent for a in axes] + [a.extent for a in match.reduced]
    if not all(isinstance(e, Const) for e in extents):
        return Refusal("extents depend on sizes")
    window = oriented(match.spatial[0])
    if not isinstance(window.c, Const):
        return Refusal("extents depend on sizes")
    return [_specification(kind, match, window, axes, dtype, outer, guards) for kind in (LHS, RHS, OUT)]


def _specification(
    kind: str,
    match: Match,
    w: Window,
    axes: Sequence[Axis],
    dtype: str,
    outer: Sequence[Factor],
    guards: Sequence[Expr],
) -> ToeplitzSpec:
    t, x, k = _lines(w)
    c = int(w.c)
    flip = {"x": w.flip_x, "k": w.flip_k}
    if kind == LHS:
        first, second, spread, before, positions = t, k, w.alpha, -c, x.extent
        flip["k"] = False
        backwards = (w.flip_t, w.flip_k)
    elif kind == RHS:
        first, second, spread, positions = t, x, w.beta, k.extent
        before = c + w.gamma * (t.extent - 1)
        flip["x"] = False
        backwards = (not w.flip_t, w.flip_x)
    else:
        first, second, spread, positions = k, x, w.gamma, t.extent
        before = c + w.beta * (k.extent - 1)
        backwards = (False, False)
        flip["x" if w.flip_t else "k"] ^= True
    span = first.factor * (first.extent - 1) + second.factor * (second.extent - 1) + 1
    mirrored = all(backwards) if kind != OUT else w.flip_t
    if mirrored:  # counted from the other end, the line runs forwards again
        before = span - 1 - before - spread * (positions - 1)
        if kind != OUT:
            backwards = (False, False)
            flip["x" if kind == LHS else "k"] ^= True
    lines = [replace(line, backwards=b) for line, b in zip((first, second), backwards, strict=True)]
    if _better_rows(lines[1], lines[0], kind):
        lines.reverse()
    w = replace(w, flip_x=flip["x"], flip_k=flip["k"])
    own = kind, spread, before, positions
    return _with_operands(match, w, lines, own, axes, dtype, outer, guards)


def _better_rows(a: Line, b: Line, kind: str) -> bool:
    """Whether ``a`` is better for the rows than ``b``: rows may run backwards, and columns are best one apart."""
    if kind == OUT:
        return (a.factor != 1) > (b.factor != 1) or (a.factor == b.factor and a.extent < b.extent)
    return a.backwards > b.backwards


def _lines(w: Window) -> tuple[Line, Line, Line]:
    """The positions t, x and k with their factors in the equality."""
    r = w.spatial.relation
    return (
        Line("t", int(w.spatial.t.extent), w.gamma),
        Line("x", int(r.x_range.size), w.alpha),
        Line("k", int(r.k_range.size), w.beta),
    )


def _with_operands(
    match: Match,
    w: Window,
    lines: Sequence[Line],
    own: tuple[str, int, int, int],
    axes: Sequence[Axis],
    dtype: str,
    outer: Sequence[Factor],
    guards: Sequence[Expr],
) -> ToeplitzSpec:
    kind, spread, before, positions = own
    operands: list[Array] = []
    roles: list[tuple[str | Axis, ...]] = []
    for side, name in enumerate("xk"):
        (position,), body = operand_body(match, side, (w,), dtype)
        order = order_of_reads(body, (position,))
        if kind == (LHS, RHS)[side]:
            order = (*(a for a in order if a is not position), position)
        operands.append(array(order, body))
        roles.append(tuple(name if a is position else a for a in order))
    named: list[str | Axis] = [
        "t" if a is w.spatial.t else a
        for parts in match.outputs
        for a in parts
        if a is w.spatial.t or a in match.lhs.axes or a in match.rhs.axes
    ]
    dims = [w.spatial.t if isinstance(a, str) else a for a in named]
    rows, columns = lines
    return ToeplitzSpec(
        kind,
        operands[0],
        operands[1],
        roles[0],
        roles[1],
        tuple(named),
        rows,
        columns,
        spread,
        before,
        positions,
        end_of_lines(match, dims, axes, outer, guards),
    )


def end_of_lines(
    match: Match, dims: Sequence[Axis], axes: Sequence[Axis], outer: Sequence[Factor], guards: Sequence[Expr]
) -> Finish:
    """What is done in the end to a result over ``dims``, which are in the order of the output axes."""
    shape, _, finish = finishing(match, [(a,) for a in dims], axes, outer, guards)
    return replace(finish, shape=shape)


def order_of_reads(body: Expr, positions: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes of an operand in the order in which its largest read has them, and those ``positions`` that none has."""
    reads = sorted((r for r in reads_of(body) if free_axes(r)), key=lambda r: -len(free_axes(r)))
    seen = [a for r in reads for index in r.indices for a in free_axes(index)]
    return tuple(dict.fromkeys([*seen, *free_axes(body), *positions]))
