"""Bands that exist in tiles only, as blocks of the matrix that they are a band of: ``s[i, k]`` is ``S[i, i + k]``.

The scores of attention over a window, and all that is computed from them, are over rows ``i`` and diagonals ``k``. A tile of few rows and
many diagonals meets not many more columns ``j = i + k`` than diagonals, so all of it is one dense product, skewed into rows of diagonals
and back for the next product. Neither skew is needed if the tensors of the tile are over ``i`` and ``j`` throughout:

    s[i, k] = sum over e of q[i, e] * x[i + k, e]         S[i, j] = sum over e of q[i, e] * x[j, e]
    m[i] = max over k of s[i, k]                          m[i] = max over j of S[i, j] where 0 <= j - i < W
    p[i, k] = exp(s[i, k] - m[i])                         P[i, j] = exp(S[i, j] - m[i]) where 0 <= j - i < W, else 0
    o[i, d] = sum over k of p[i, k] * y[i + k, d]         o[i, d] = sum over j of P[i, j] * y[j, d]
    dy[j, d] = sum over k of p[j - k, k] * h[j - k, d]    dy[j, d] = sum over i of P[i, j] * h[i, d]

XLA on the CPU makes a loop of each skew that divides the position of every element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxte.algebra.product import may_be_infinite, product_of
from jaxte.algebra.sums import signed_terms
from jaxte.lang.expr import ZERO, Axis, Const, Expr, Read, Reduce, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import Members, among, identical, place_of
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import depends_on, free_axes, reads_of, reductions, rewrite, substitute
from jaxte.lower.forms.band.recognise import recognise_band
from jaxte.lower.forms.band.spec import DIAGONAL, ROW, SCORES, BandSpec, Part
from jaxte.lower.forms.band.write_blocks import blocks_of
from jaxte.lower.match.index_terms import with_normal_indices
from jaxte.lower.rewrites.short_axes import at_unit_axes
from jaxte.lower.tiles.tiling import Tiling
from jaxte.sets.affine import normal
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute, Tensor

BLOCKS = "bands as blocks of matrices"
_WIDEST = 1.5  # how many columns a tile may meet for each diagonal
_REDUCERS = ("sum", "max", "min")


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A tensor over rows and columns in place of one over rows and diagonals.

    Attributes:
        tensor: the new one.
        row, diagonal: which axes are the rows and the diagonals, now the columns.
        window: the number of diagonals.
        is_zero_outside: whether it is 0 at columns that have no diagonal.
    """

    tensor: Compute
    row: int
    diagonal: int
    window: int
    is_zero_outside: bool

    @property
    def rows(self) -> int:
        return int(self.tensor.axes[self.row].hi)

    @property
    def columns(self) -> int:
        return int(self.tensor.axes[self.diagonal].hi)

    def place(self, read: Read) -> tuple[Expr, Expr]:
        """The row and the diagonal at which the tensor is read."""
        return read.indices[self.row], read.indices[self.diagonal]


class _NoMatrix(Exception):
    """Something reads a band in another way."""


def with_matrices(tile: Tiling, results: Members[Tensor]) -> Tiling:
    """``tile``, what a block of rows consists of, with its bands as blocks of matrices.

    Args:
        tile: the tensors of the block.
        results: those of them that are handed on as they are.
    """
    found = _Matrices(results)
    new: dict[Tensor, Compute] = {}
    try:
        for tensor in tile.order:
            if not isinstance(tensor, Compute):
                return tile
            new[tensor] = found.renewed(tensor)
    except _NoMatrix:
        return tile
    if not found.known:
        return tile
    stand_ins = {t: n for t, n in new.items() if n is not t and t not in found.known}
    return replace(tile, order=tuple(new.values()), stand_ins=stand_ins)


class _Matrices:
    def __init__(self, results: Members[Tensor]) -> None:
        self.results = results
        self.known: dict[Tensor, _Matrix] = {}

    def renewed(self, tensor: Compute) -> Compute:
        """``tensor``, or what stands for it.

        Raises:
            _NoMatrix: it reads a band in a way in which a matrix is not read.
        """
        places = {self.known[r.tensor].place(r) for r in self._bands_read(tensor.body)}
        own = {axis: axis for axis in tensor.axes}
        pairs = [(own[i], own[k]) for i, k in places if i in own and k in own]  # type: ignore[index]
        seed = None if places or tensor in self.results else _scores(tensor)
        if seed is not None:
            self.known[tensor] = seed
            return seed.tensor
        if not places:
            return tensor
        if len(pairs) > 1 or (pairs and tensor in self.results):
            raise _NoMatrix
        if not pairs:
            return Compute(tensor.name, tensor.axes, self.over(tensor.body))
        return self._over_columns(tensor, *pairs[0])

    def _bands_read(self, *exprs: Expr) -> list[Read]:
        return [r for r in reads_of(*exprs) if r.tensor in self.known]

    def _over_columns(self, tensor: Compute, row: Axis, diagonal: Axis) -> Compute:
        """``tensor``, which has rows and diagonals as axes, over columns; 0 at columns without a diagonal."""
        read = self._bands_read(tensor.body)
        like = next(band for r in read if identical((band := self.known[r.tensor]).place(r), (row, diagonal)))
        column = Axis("j", 0, like.columns)
        body = substitute(tensor.body, {diagonal: column - row})
        is_zero = self._stays_zero(body, (row, column))
        self.known[tensor] = _over(tensor, (row, diagonal, column), self.over(body), like.window, is_zero)
        return self.known[tensor].tensor

    def _stays_zero(self, body: Expr, place: tuple[Expr, Expr]) -> bool:
        """Whether all terms of ``body`` are multiples of matrices that are 0 outside, by nothing that finite numbers make infinite."""
        factors = [f for term, _ in signed_terms(body) for f in product_of(term).factors]
        zeros = (self._is_zero_outside(term, place) for term, _ in signed_terms(body))
        return not any(map(may_be_infinite, factors)) and all(zeros)

    def over(self, body: Expr) -> Expr:
        """``body`` with reads of matrices."""
        return rewrite(rewrite(body, self._reduction), self._read)

    def _reduction(self, node: Expr) -> Expr:
        """A reduction over diagonals as one over columns, or over rows where columns are what is left."""
        if not isinstance(node, Reduce):
            return node
        reads = self._bands_read(*node.exprs, node.where)
        found = {self.known[r.tensor].place(r): self.known[r.tensor] for r in reads}
        found = {place: band for place, band in found.items() if any(depends_on(i, node.axes) for i in place)}
        if not found:
            return node
        if len(found) > 1 or node.reducer.name not in _REDUCERS:
            raise _NoMatrix
        (((row, diagonal), band),) = found.items()
        line = normal(row + diagonal)
        new = None
        if among(diagonal, node.axes) and isinstance(row, Axis) and not among(row, node.axes):
            new = column = Axis("j", 0, band.columns, reduction=True)
        elif among(diagonal, node.axes) and isinstance(line, Axis) and not among(line, node.axes):
            row = new = Axis("i", 0, band.rows, reduction=True)
            column = line
        elif among(row, node.axes) and isinstance(line, Axis) and not among(line, node.axes):
            column = line
        else:
            raise _NoMatrix
        table = {} if new is None else {diagonal: column - row}
        expr, where = (with_normal_indices(substitute(e, table)) for e in (node.exprs[0], node.where))
        inside = _inside(row, column, band.window)
        if node.is_sum and self._is_zero_outside(expr, (row, column)):
            where = conjunction([c for c in conjuncts(where) if not _follows(c, inside)])
        else:
            where = conjunction([where, *inside])
        axes = [new if new is not None and a is diagonal else a for a in node.axes]
        return node.changed(exprs=(expr,), axes=axes, where=where)

    def _is_zero_outside(self, expr: Expr, place: tuple[Expr, Expr]) -> bool:
        """Whether ``expr``, at a row and a column, is 0 without a condition: a product of a matrix with what is finite there."""
        found = False
        for factor in product_of(expr).factors:
            own = factor.expr
            if isinstance(own, (Read, Const)) and not factor.inverse:
                found |= (
                    isinstance(own, Read)
                    and own.tensor in self.known
                    and self.known[own.tensor].is_zero_outside
                )
            elif free_axes(own).keys() >= set(place):
                return False
        return found

    def _read(self, node: Expr) -> Expr:
        """A read of a band as one of the matrix; other tensors are read at rows or at columns."""
        node = with_normal_indices(node)
        if not isinstance(node, Read):
            return node
        indices, own = list(node.indices), self.known.get(node.tensor)
        if own is not None:
            indices[own.diagonal] = normal(indices[own.row] + indices[own.diagonal])
        if any(is_index(i) and len(free_axes(i)) > 1 for i in indices):
            raise _NoMatrix
        return Read(node.tensor if own is None else own.tensor, indices)


def _scores(tensor: Compute) -> _Matrix | None:
    """The matrix of which ``tensor`` is a band, if it is made of a sum of products at the rows and columns of one."""
    axes = [a for a in tensor.axes if known(a.hi) != 1]
    sums = reductions(at_unit_axes(tensor.body, tensor.axes))
    spec = recognise_band(axes, sums[0]) if len(sums) == 1 else None
    if not isinstance(spec, BandSpec) or spec.kind != SCORES or len(spec.bands) > 1:
        return None
    (band,) = spec.bands
    if (band.stride, band.step) != (1, 1) or band.reach > _WIDEST * band.window or blocks_of(band).count > 1:
        return None
    row, diagonal = (axes[place_of(Part(role, 0), spec.out)] for role in (ROW, DIAGONAL))
    column = Axis("j", 0, band.reach)
    body = _Matrices(frozenset()).over(substitute(tensor.body, {diagonal: column - row}))
    return _over(tensor, (row, diagonal, column), body, band.window)


def _over(
    tensor: Compute, axes: tuple[Axis, Axis, Axis], body: Expr, window: int, is_zero: bool = False
) -> _Matrix:
    """``tensor`` with ``body`` and columns in place of diagonals; ``axes`` are its rows, its diagonals and the columns.

    A sum of products is left as it is outside of the window: where it counts, so does a condition, or another matrix. So is what
    ``is_zero`` there without a condition.
    """
    row, diagonal, column = axes
    is_sum = isinstance(body, Reduce)
    if not (is_sum or is_zero):
        inside = conjunction(_inside(row, column, window))
        body = call(SELECT, inside, body, cast(ZERO, tensor.dtype))
    new = Compute(tensor.name, [column if a is diagonal else a for a in tensor.axes], body)
    at, z = (place_of(axis, tensor.axes) for axis in (row, diagonal))
    return _Matrix(new, at, z, window, not is_sum)


def _follows(condition: Expr, given: Sequence[Expr]) -> bool:
    """Whether ``condition`` holds where one of ``given`` does, as ``i <= j + 1`` does where ``i <= j``."""
    known = [form for other in given for form in nonnegative_forms(other)]
    wanted = nonnegative_forms(condition)
    rests = [[form - other for other in known] for form in wanted]
    return bool(wanted) and all(any(r.is_constant and r.constant >= 0 for r in own) for own in rests)


def _inside(row: Expr, column: Expr, window: int) -> list[Expr]:
    """Where a column has a diagonal."""
    return [column - row >= 0, column - row < window]
