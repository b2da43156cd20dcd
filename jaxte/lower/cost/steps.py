"""Reductions one position after the other: ``acc = acc + f(x[:, k], y[k, :])`` for each ``k``, and what that takes.

    d[i, j] = sum over c of (x[i, c] - y[j, c])**2        g[i, c] = sum over j of h[i, j] * (x[i, c] - y[j, c])
    m[i, j] = max over k of a[i, k] + b[k, j]             y[b, t] = sum over k of w[k] * x[b, t - k]

No such reduction is a product of matrices: what is reduced has a value at each point of the whole, computed or read in a window. XLA on the CPU reduces it along rows, element by element,
or writes it to memory. A step for one position is a loop over all of the result, whose elements lie side by side, so that it is one of vectors; of a few steps
XLA makes one loop, which reads and writes the result once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.algebra.product import product_of
from jaxte.algebra.sums import signed_terms
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, cast
from jaxte.lang.functions import select
from jaxte.lang.limits import FEW_POSITIONS, LONGEST_UNROLLED, MOST_DIAGONALS, VECTOR
from jaxte.lang.operators import COMPARISONS, SELECT
from jaxte.lang.walk import all_of, depends_on, free_axes, postorder, reads_of
from jaxte.lower.cost.general import general_work
from jaxte.lower.cost.paces import SIZES, Paces
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.shifted_axes import shifted_axes
from jaxte.lower.cost.work import is_expensive
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known

TOGETHER = 4  # steps that are one loop: of eight, XLA on the CPU makes slower ones
_REDUCERS = ("sum", "max", "min", "prod")


def is_in_steps(node: Reduce) -> bool:
    """Whether ``node`` reduces over one axis what is computed, or read in windows, for each point of it and of the result."""
    if node.reducer.name not in _REDUCERS or node.reducer.arity > 1 or len(node.axes) != 1:
        return False
    if node.dtype not in ("float32", "float64") or node.exprs[0].dtype != node.dtype:
        return False
    kept = list(free_axes(node))
    extents = [known(a.extent) for a in (*kept, *node.axes)]
    if not kept or None in extents or node.exprs[0].reduces:
        return False
    if len(kept) < 2 and not is_chosen(node):
        return False  # XLA on the CPU fuses it with what reduces it
    reads = reads_of(node.exprs[0])
    sliding = [r for r in reads if _slides(r, node)]
    if (node.where is not TRUE and not sliding) or (known(node.axes[0].extent) or 0) <= _fewest(
        sliding, node
    ):
        return False
    return all(_is_sliced(r, node) for r in reads) and _is_computed_everywhere(node)


def is_chosen(node: Reduce) -> bool:
    """Whether numbers that vary are compared, or chosen among, in what ``node`` reduces: XLA on the CPU fuses nothing with a comparison in it."""
    return any(compares(e) for e in (*node.exprs, node.where))


def is_in_long_rows(node: Reduce) -> bool:
    """Whether ``node`` adds up rows of what is computed, each of so many numbers that a routine adds them in vectors if they exist.

    A loop that computes what it adds goes from one to the next: 64 rows of 65,536 take XLA on the CPU 3.3 to 4.8 ms, and 0.6 to 1.9 where each is written to the cache before.
    """
    (expr, *others), (axis, *more) = node.exprs, node.axes
    if others or more or not node.is_sum or node.dtype not in ("float32", "float64"):
        return False
    is_computed = node.where is TRUE and isinstance(expr, Call) and not expr.reduces
    return is_computed and (known(axis.extent) or 0) >= SIZES.reduced


def compares(expr: Expr) -> bool:
    """Whether numbers or positions that vary are compared, or chosen among, in ``expr``."""
    return any(
        isinstance(n, Call) and (n.op is SELECT or n.op in COMPARISONS) and free_axes(n)
        for n in postorder(expr)
    )


def with_choice(node: Reduce) -> Reduce:
    """``node`` with a condition on data as a choice between what is reduced and what changes nothing."""
    if node.reducer.arity > 1 or not reads_of(node.where):
        return node
    (value,), (nothing,) = node.exprs, node.reducer.identity
    chosen = select(node.where, value, cast(nothing, value.dtype))
    return node.changed(exprs=(chosen,), where=TRUE)


def _fewest(sliding: Sequence[Read], node: Reduce) -> int:
    """How many positions are written out, as slices where they are those of windows."""
    if not sliding:
        return FEW_POSITIONS
    (own,) = node.axes
    product = all(isinstance(f.expr, (Read, Const)) for f in product_of(node.exprs[0]).factors)
    line = product and (
        len(sliding) > 1 or all(sum(depends_on(i, (own,)) for i in r.indices) == 1 for r in sliding)
    )
    return MOST_DIAGONALS if line else LONGEST_UNROLLED


def _slides(read: Read, node: Reduce) -> bool:
    """Whether an index moves with the reduced axis and with another one."""
    return any(depends_on(i, node.axes) and len(free_axes(i)) > 1 for i in read.indices)


def _is_sliced(read: Read, node: Reduce) -> bool:
    """Whether ``read`` is a slice for each position that is reduced, and not one of an array of all points."""
    if any(reads_of(i) or not is_index(i) for i in read.indices):
        return False
    (own,) = node.axes
    for form in map(linear, read.indices):
        kept = [a for a in form.terms if a is not own]
        if len(kept) > 1 or any(not isinstance(a, Axis) or abs(form.coefficient(a)) != 1 for a in kept):
            return False
        if not kept and form.coefficient(own) not in (0, 1):
            return False
    return _slides(read, node) or not _is_whole(read, node)


def _is_whole(expr: Expr, node: Reduce) -> bool:
    return all(depends_on(expr, (a,)) for a in (*free_axes(node), *node.axes))


def _is_computed_everywhere(node: Reduce) -> bool:
    if node.is_sum:  # a term without such a factor is a product of matrices by itself
        terms = [
            term for branch in _branches(node.exprs[0], node) for term, _ in signed_terms(branch, mixed=True)
        ]
        return all(any(_is_whole(f.expr, node) for f in product_of(term).factors) for term in terms)
    return _is_whole(node.exprs[0], node)


def _branches(expr: Expr, node: Reduce) -> list[Expr]:
    """What is summed, for each answer of conditions that hold for all that is reduced or for nothing of it."""
    match expr:
        case Call(op, (condition, *branches)) if op is SELECT and not depends_on(condition, node.axes):
            return [own for branch in branches for own in _branches(branch, node)]
    return [expr]


def seconds_in_steps(node: Reduce, facts: Platform) -> float:
    """The time that the steps of ``node`` take, infinite where they are no loops over many elements of the result."""
    paces = facts.paces
    kept = list(free_axes(node))
    if paces is None or max(_extents(kept)) < VECTOR:
        return float("inf")
    size = dtypes.width(node.dtype) * prod(_extents(kept))
    turns = -(-prod(_extents(node.axes)) // TOGETHER)
    moved = 2 * size * turns / (paces.moved if size <= facts.rates.cache else facts.rates.spill)
    return _computed(node, paces) + moved + turns / paces.start


def _computed(node: Reduce, paces: Paces) -> float:
    """The time that it takes to compute what is reduced, at all points."""
    points = prod(_extents([*free_axes(node), *node.axes]))
    calls = [n for n in all_of(Call, node.exprs[0]) if not n.weak and _is_whole(n, node)]
    dear = sum(map(is_expensive, calls))
    return points * ((1 + len(calls) - dear) / paces.cheap + dear / paces.exponential)


def seconds_otherwise(node: Reduce, facts: Platform, laid_out: bool) -> float:
    """The time that ``node`` takes as one reduction: what is reduced is written to memory where it is ``laid_out``, or read in windows."""
    width, points = dtypes.width(node.dtype), prod(_extents([*free_axes(node), *node.axes]))
    if shifted_axes(node):
        return general_work(tuple(free_axes(node)), node).seconds(facts.rates)
    if facts.paces is None:
        return 2 * width * points / facts.rates.stream
    reduced = 2 * width * points / facts.rates.stream if laid_out else points / facts.paces.summed
    return _computed(node, facts.paces) + reduced


def _extents(axes: list[Axis] | tuple[Axis, ...]) -> list[int]:
    return [known(a.extent) or 1 for a in axes]
