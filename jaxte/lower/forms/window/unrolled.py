"""Reductions over a few positions of which each reads other slices: written out, one copy of the body for each position.

A window of one array is one array, sliced (see ``window``). Where the body mixes the positions of a window with the output in
another way, as in ``min over k of select(X[2*i + k] == M[i], k, none)``, it is written out: each copy is elementwise code on slices,
and XLA makes one loop of all of them.

A least number among those of the positions at which a condition holds is the number of the first such position, if the numbers
increase: ``where(c0, 0, where(c1, 1, none))`` instead of the minimum of ``where(c0, 0, none)`` and ``where(c1, 1, none)``; a
greatest number is that of the last. The position of the winner of a maximum is such a number.

Reductions over a few positions, written out: ``x[:, 0] * x[:, 0] + x[:, 1] * x[:, 1] + x[:, 2] * x[:, 2]``.

XLA on the CPU makes a loop of its own for a reduction, around or inside of the loops over its result. Where it has a few rounds,
most of the time goes into starting it, nothing in it is done in vectors, and a matrix product of a few terms spends its time on
laying out its operands. Written out, the terms are elementwise code in the one loop over the result: 2 to 20 times as fast for sums and
maxima over 2 to 8 positions, wherever the axis stands, and 2 to 6 times for products of narrow matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxte.algebra.sums import signed_terms
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW_POSITIONS, MOST_WRITTEN
from jaxte.lang.operators import AND, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.lower.arrays.products import OPS
from jaxte.lower.body.candidates import Candidate, Search, Wanted
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.general import is_contraction
from jaxte.lower.cost.work import Work, expensive_calls, is_expensive, points
from jaxte.lower.forms.window.recognise import UnrollSpec
from jaxte.lower.rewrites.short_axes import term_at, terms_of, together
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known


def unrolled(node: Reduce, spec: UnrollSpec) -> Expr | Refusal:
    """``node`` without its reduction, as one expression of the output axes."""
    if node.reducer.name not in OPS or node.is_sum:
        return Refusal(f"{node.reducer.label} is not written out position by position")
    if len(spec.axes) < len(node.axes):
        return Refusal(f"it runs over {next(a.name for a in node.axes if not among(a, spec.axes))} besides")
    tables = spec.tables()
    first = _first(node, tables)
    if first is not None:
        return first
    return together(node, [term_at(node, table) for table in tables])


def _first(node: Reduce, tables: Sequence[dict[Expr, Expr]]) -> Expr | None:
    """The number of the first position at which the condition holds, where that is the least number."""
    found = numbered_conditions(node, tables)
    if found is None:
        return None
    result: Expr = node.reducer.identity[0]
    for number, test in reversed(found):
        result = call(SELECT, test, Const(number, node.dtype), result)
    return result


def numbered_conditions(node: Reduce, tables: Sequence[dict[Expr, Expr]]) -> list[tuple[int, Expr]] | None:
    """The number of each position and when it counts, if ``node`` is the least or greatest number of those that count.

    The first of them that counts is the result, so they are in ascending order for the least, else in descending order.
    """
    match node.exprs[0]:
        case Call(op, (condition, number, Const() as none)) if op is SELECT:
            pass
        case _:
            return None
    if not node.is_extremum or none is not node.reducer.identity[0]:
        return None
    numbers = [_number(substitute(number, table)) for table in tables]
    known = [n for n in numbers if n is not None]
    if len(known) < len(numbers) or sorted(set(known)) != known:
        return None
    tests = [call(AND, substitute(node.where, t), substitute(condition, t)) for t in tables]
    found = list(zip(known, tests, strict=True))
    return found if node.reducer.name == "min" else found[::-1]


def _number(expr: Expr) -> int | None:
    """The whole number that an index expression, or a cast of one, is."""
    while isinstance(expr, Call) and expr.op.name == "cast":
        expr = expr.args[0]
    if not is_index(expr):
        return None
    form = linear(expr)
    return form.constant if form.is_constant else None


WRITTEN_OUT = "written out"
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
    if points(node.axes) * sum(isinstance(n, Call) for n in nodes) > MOST_WRITTEN:
        return Refusal("its terms are long")
    return terms_of(node, node.axes)


def _products(node: Reduce) -> int:
    """How many products of matrices ``node`` is the sum of: at eight positions two are 16 terms, which take twice the time of the products."""
    terms = [node.changed(exprs=(term,), where=TRUE) for term, _ in signed_terms(node.exprs[0])]
    return sum(map(is_contraction, terms)) if len(terms) > 1 else 1


def _is_everywhere(part: Expr, axes: Sequence[Axis], node: Reduce) -> bool:
    """Whether ``part`` has another value at each point of the result and each position, as far as its axes say."""
    return set(free_axes(part)) >= {*axes, *node.axes}
