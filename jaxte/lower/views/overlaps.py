"""Overlaps: two dimensions on one index that are not digits of one number, as in ``X[i + k]``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW_POSITIONS, LONGEST_UNROLLED, MOST_PARTS
from jaxte.lang.walk import plain_indices, reads_of
from jaxte.lower.arrays.steps import Pad, Reshape, Tile
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.digits import are_digits
from jaxte.sets.intervals import dims_of, known


def overlapping(exprs: Sequence[Expr], reduced: Sequence[Axis], scope: Scope, budget: int) -> Axis | None:
    """The shortest reduced dimension among those that overlap with another one in an index."""
    found = overlaps(exprs, reduced, scope, budget)
    return min(found, key=lambda d: found[d]) if found else None


def beside(exprs: Sequence[Expr], dim: Axis, scope: Scope) -> list[Axis]:
    """The dimensions that ``dim`` overlaps with; none where it is in an index with several."""
    forms = [scope.index(i) for e in exprs for read in reads_of(e) for i in plain_indices(read)]
    found = [
        [d for d in dims_of(f) if d is not dim] for f in forms if among(dim, dims_of(f)) and not _is_digits(f)
    ]
    return [own[0] for own in found] if all(len(own) == 1 for own in found) else []


def overlaps(exprs: Sequence[Expr], reduced: Sequence[Axis], scope: Scope, budget: int) -> dict[Axis, int]:
    """The reduced dimensions that overlap with another one in an index, each with its extent."""
    found: dict[Axis, int] = {}
    for expr in exprs:
        for read in reads_of(expr):
            for index in plain_indices(read):
                form = scope.index(index)
                if _is_digits(form):
                    continue
                view = _view(read, scope)
                if view is not None and not _is_askew(view):
                    break
                askew = (
                    MOST_PARTS if len(exprs) == 1 else FEW_POSITIONS
                )  # of one array a loop of slices holds nothing
                most = min(LONGEST_UNROLLED if view is None else askew, budget)
                for dim in dims_of(form):
                    count = known(dim.hi)
                    if among(dim, reduced) and count is not None and 0 < count <= most:
                        found[dim] = count
    return found


def _view(read: Read, scope: Scope) -> View | None:
    """What the indices of a read, which together are digits as those of a reshape are, come to; None where they are not."""
    if len(plain_indices(read)) < len(read.indices) or _is_laid_out([scope.index(i) for i in read.indices]):
        return None
    found = scope.view(read)
    if not isinstance(found, View) or any(isinstance(step, Tile) for step in found.steps):
        return None
    return found


def _is_laid_out(indices: Sequence[Expr]) -> bool:
    """Whether plain sums of axes, each axis in one of them, overlap: only a copy of each row, shifted, has them all."""
    forms = [linear(index) for index in indices]
    terms = [atom for form in forms for atom in form.terms]
    plain = all(isinstance(atom, Axis) for atom in terms) and len(set(terms)) == len(terms)
    return plain and not all(map(_is_digits, indices))


def _is_askew(view: View) -> bool:
    """Whether rows are made longer so that they lie askew, which is a copy: a few slices that are added take one loop."""
    flat = [n for n, step in enumerate(view.steps) if isinstance(step, Reshape)]
    return any(isinstance(step, Pad) for step in view.steps[min(flat, default=len(view.steps)) :])


@lru_cache(maxsize=4096)
def _is_digits(index: Expr) -> bool:
    """Whether the dimensions of an index do not overlap."""
    form = linear(index)
    if any(dims_of(a) and not isinstance(a, Axis) for a in form.terms):
        return len(dims_of(index)) < 2
    return are_digits(form)
