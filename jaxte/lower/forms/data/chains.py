"""Sums of several terms at positions that are data: ``dX[a, c] = sum(U[i, c] where I[i] == a) + sum(V[i, c] where J[i] == a)``.

Each term is added to what the terms before it came to, ``zeros.at[I].add(U).at[J].add(V)``, so that there is one array of
zeros, and no other that is added. Adjoints of reads between elements (bilinear ones have four neighbours) are such sums. Terms at
the same positions, as those of a row that several tensors read, are summed before: ``zeros.at[I].add(U + V)``.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from jaxte.algebra.sums import Signed, signed_terms
from jaxte.lang.expr import Axis, Call, Const, Expr, Reduce, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import MOST_PARTS
from jaxte.lang.operators import ADD, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.candidates import Search, Wanted, chosen, noted
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Array
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.policy import signature
from jaxte.lower.forms.data.recognise import SCATTER, recognise_scatter
from jaxte.lower.forms.data.scatter_spec import ScatterSpec
from jaxte.lower.forms.data.scatters import accumulated, in_order, scatter_candidates, scatter_operands
from jaxte.lower.views.scope import Scope

Link = tuple[Signed, Reduce, ScatterSpec]


def chained(body: Body, node: Expr, scope: Scope) -> Search:
    """The sum ``node`` with its terms at positions that are data added to one array; None where fewer than two are."""
    terms = signed_terms(node)
    axes = tuple(scope.order)
    links = [link for term in terms if (link := _link(body, term, axes, scope)) is not None]
    links = [link for link in links if _alike(link[2], links[0][2])]
    if not 1 < len(links) or len(terms) > MOST_PARTS:
        return None
    links = [link for link in links if _is_added(body, link, axes, scope)]
    if not links:
        return None
    array = yield from _array(body, links, scope)
    total = Value(in_order(links[0][2], array), axes, (node.dtype, False))
    taken = [term for term, *_ in links]
    for expr, sign in [term for term in terms if not among(term, taken)]:
        value = yield expr, scope
        operands, op = ([value, total], ADD) if sign > 0 else ([total, value], SUBTRACT)
        total = body.combine(op, operands, (node.dtype, False), scope)
    return total


def _link(body: Body, term: Signed, axes: tuple[Axis, ...], scope: Scope) -> Link | None:
    """A term that may be added to others: a sum over all of ``axes`` that nothing but numbers is multiplied to."""
    expr, sign, numbers = _taken_apart(term)
    if not isinstance(expr, Reduce) or not expr.is_sum:
        return None
    if not any(reads_of(c) for c in conjuncts(expr.where)):
        return None
    current = substitute(expr, dict(scope.table))
    assert isinstance(current, Reduce)
    spec = recognise_scatter(axes, current, body.policy.facts.pads_rows)
    if not isinstance(spec, ScatterSpec) or spec.finish.scale is not None or spec.guard is not None:
        return None
    values = spec.values.body if sign > 0 else -spec.values.body
    for factor in numbers:
        values = values * factor
    if values.dtype != spec.dtype:
        return None
    return term, current, replace(spec, values=Array(spec.values.axes, values))


def _taken_apart(term: Signed) -> tuple[Expr, int, list[Const]]:
    """What a term is but for its sign, and the numbers that it is multiplied by."""
    expr, sign = term
    numbers: list[Const] = []
    while True:
        match expr:
            case Call(op, (inner,)) if op is NEGATIVE:
                expr, sign = inner, -sign
            case Call(op, (inner, Const() as number)) if op is MULTIPLY and inner.dtype == expr.dtype:
                expr, numbers = inner, [*numbers, number]
            case Call(op, (Const() as number, inner)) if op is MULTIPLY and inner.dtype == expr.dtype:
                expr, numbers = inner, [*numbers, number]
            case _:
                return expr, sign, numbers


def _alike(one: ScatterSpec, other: ScatterSpec) -> bool:
    return identical(
        (one.shape, one.order, one.dtype, one.flat), (other.shape, other.order, other.dtype, other.flat)
    )


def _is_added(body: Body, link: Link, axes: tuple[Axis, ...], scope: Scope) -> bool:
    """Whether the form of a term is to add its rows one by one."""
    _, node, spec = link
    offers = list(scatter_candidates(body, spec, Wanted(node, axes, (), scope)))
    found = chosen(body.policy, body.name, offers, signature(axes, node))
    added = found.candidate.form == SCATTER
    if added:  # others are chosen once more where the term is evaluated by itself
        noted(body, found)
    return added


def _array(body: Body, links: Sequence[Link], scope: Scope) -> Generator[tuple[Expr, Scope], Value, Node]:
    """The name of the array that all of ``links`` are added to, its dimensions as they are accumulated."""
    array: Node | None = None
    for spec in _together([spec for _, _, spec in links]):
        operands = yield from scatter_operands(body, spec, scope)
        array = body.shared(accumulated(spec, operands, spec.flags, array))
        body.report.note(SCATTER)
        body.report.because(spec.reason)
    assert array is not None
    return array


def _together(specs: Sequence[ScatterSpec]) -> list[ScatterSpec]:
    """Those of ``specs`` that add at the same positions as one of the sum of their values, so that each position is visited once."""
    found: list[ScatterSpec] = []
    for spec in specs:
        for n, known in enumerate(found):
            if (both := _both(known, spec)) is not None:
                found[n] = both
                break
        else:
            found.append(spec)
    return found


def _both(one: ScatterSpec, other: ScatterSpec) -> ScatterSpec | None:
    """What adds the values of both; None where they are added at other positions."""
    axes, moved = one.values.axes, _moved(other.values, one.values)
    if moved is None or len(one.indices) != len(other.indices):
        return None
    if not identical((one.positions, one.block, one.flags), (other.positions, other.block, other.flags)):
        return None
    if not all(map(_is_same, one.indices, other.indices)):
        return None
    if not identical(one.hits, tuple(substitute(c, moved) for c in other.hits)):
        return None  # what falls outside of the output is not read for one of them
    return replace(one, values=Array(axes, one.values.body + substitute(other.values.body, moved)))


def _is_same(one: Array, other: Array) -> bool:
    moved = _moved(other, one)
    return moved is not None and substitute(other.body, moved) is one.body


def _moved(array: Array, onto: Array) -> dict[Expr, Expr] | None:
    """The axes of ``onto`` for those of ``array``; None where their extents differ."""
    if not identical(array.shape, onto.shape):
        return None
    return dict(zip(array.axes, onto.axes, strict=True))
