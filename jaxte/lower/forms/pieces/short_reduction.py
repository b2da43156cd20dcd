"""Reductions over a few positions, written out: ``x[:, 0] * x[:, 0] + x[:, 1] * x[:, 1] + x[:, 2] * x[:, 2]``.

XLA on the CPU makes a loop of its own for a reduction, around or inside of the loops over its result. Where it has a few rounds,
most of the time goes into starting it, nothing in it is done in vectors, and a matrix product of a few terms spends its time on
laying out its operands. Written out, the terms are elementwise code in the one loop over the result: 2 to 20 times as fast for sums and
maxima over 2 to 8 positions, wherever the axis stands, and 2 to 6 times for products of narrow matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxte.algebra.sums import signed_terms
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce
from jaxte.lang.walk import free_axes, postorder, reads_of
from jaxte.lower.arrays.reductions import OPS
from jaxte.lower.body.candidates import Candidate, Search
from jaxte.lower.body.evaluator import Body
from jaxte.lower.body.wanted import Wanted
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.default_work import expensive_calls, is_contraction, is_expensive
from jaxte.lower.cost.work import Work, points
from jaxte.lower.limits import FEW_POSITIONS
from jaxte.lower.rewrites.short_axes import terms_of, together
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import known

WRITTEN_OUT = "written out"
_MOST_NODES = 200  # operations in all terms together
_TERM = 0.5  # kernels that a term counts as: small arrays keep the shorter text
_ROUNDED = ("float16", "bfloat16")  # sums of these are kept in float32


def short_candidates(body: Body, terms: Sequence[Expr], wanted: Wanted) -> Iterator[Candidate]:
    """One of ``terms`` for each position of a reduction that has no form of its own."""
    axes, node = wanted.axes, wanted.node
    written = together(node, terms)
    repeated = tuple(r.tensor for r in reads_of(node.exprs[0]) if not _is_everywhere(r, axes, node))

    def write() -> Search:
        body.report.note(WRITTEN_OUT)
        body.read_in_slices(repeated)
        body.survey(written)
        value = yield written, Scope(axes, hits=wanted.scope.hits)
        return body.typed(value, node.dtype)

    everywhere = float(points(axes)) * len(terms)
    calls = everywhere * expensive_calls(node.exprs)
    yield Candidate(
        WRITTEN_OUT, Work(tap=everywhere, transcendental=calls, kernel=1 + _TERM * len(terms)), write
    )


def written_out(axes: Sequence[Axis], node: Reduce) -> list[Expr] | Refusal:
    """The body of ``node`` at each of its positions."""
    if points(node.axes) > FEW_POSITIONS:
        return Refusal("")
    if node.reducer.name not in OPS:
        return Refusal(f"{node.reducer.label} is not written out position by position")
    if any(known(bound) is None for axis in node.axes for bound in (axis.lo, axis.hi)):
        return Refusal("the number of its positions is not known")
    if node.where is not TRUE:
        return Refusal("it has a condition")
    if node.dtype in _ROUNDED and node.reducer.name in ("sum", "prod"):
        return Refusal(f"each term would be rounded to {node.dtype}")
    nodes = list(postorder(node.exprs[0]))
    if any(isinstance(n, Reduce) or (isinstance(n, Read) and reads_of(*n.indices)) for n in nodes):
        return Refusal("what it reduces is a reduction, or read at positions that are data")
    if any(is_expensive(n) and not _is_everywhere(n, axes, node) for n in nodes):
        return Refusal("what it multiplies would be computed for each element of the result again")
    if points(node.axes) * _products(node) > FEW_POSITIONS:
        return Refusal("what it adds up is several products of matrices")
    if points(node.axes) * sum(isinstance(n, Call) for n in nodes) > _MOST_NODES:
        return Refusal("its terms are long")
    return terms_of(node, node.axes)


def _products(node: Reduce) -> int:
    """How many products of matrices ``node`` is the sum of: at eight positions two are 16 terms, which take twice the time of the products."""
    terms = [Reduce(node.reducer, (term,), node.axes, TRUE) for term, _ in signed_terms(node.exprs[0])]
    return sum(map(is_contraction, terms)) if len(terms) > 1 else 1


def _is_everywhere(part: Expr, axes: Sequence[Axis], node: Reduce) -> bool:
    """Whether ``part`` has another value at each point of the result and each position, as far as its axes say."""
    return set(free_axes(part)) >= {*axes, *node.axes}
