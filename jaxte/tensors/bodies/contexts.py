"""Where nodes stand: the axes in scope, and the conditions under which they are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, alternatives, call, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import PLACES
from jaxte.lang.operators import AND, NOT, OR, SELECT
from jaxte.lang.walk import nodes_outside, postorder, reads_of

Context = tuple[Read, tuple[Axis, ...], tuple[Expr, ...]]
_LOGICAL = (AND, OR, NOT)


def contexts(axes: Sequence[Axis], body: Expr, targets: set[Read]) -> list[Context]:
    """Each of ``targets`` with the axes in scope and the conditions under which it is evaluated, as far as they say anything of positions.

    Choices within each other lead to a read in as many ways as there are paths; of more than :data:`PLACES`, each read has one context, what all its
    places have in common.
    """
    leads: set[Expr] = set()
    for node in postorder(body):
        if node in targets or any(child in leads for child in node.children):
            leads.add(node)
    chosen = any(isinstance(n, Call) and n.op is SELECT and n.dtype == "bool" for n in postorder(body))
    found: dict[Context, None] = {}
    seen: set[tuple[Expr, tuple[Axis, ...], tuple[Expr, ...]]] = set()
    stack: list[tuple[Expr, tuple[Axis, ...], tuple[Expr, ...]]] = [(body, tuple(axes), ())]
    while stack:
        node, scope, conditions = stack.pop()
        if node not in leads or (node, scope, conditions) in seen:
            continue
        seen.add((node, scope, conditions))
        if len(seen) > PLACES:
            known = _common(axes, body, _below_and_beside, lambda held: filter(_says_of_positions, held))
            return [(r, tuple(known[r][0]), tuple(known[r][1])) for r in targets if r in known]
        if isinstance(node, Read) and node in targets:
            found[node, scope, conditions] = None
        for child, own, held in _below_and_beside(node):
            told = [c for c in held if chosen or _says_of_positions(c)]
            stack.append((child, (*scope, *own), _extended(conditions, told)))
    return list(found)


_Below = tuple[Expr, tuple[Axis, ...], tuple[Expr, ...]]


def _below(node: Expr) -> list[_Below]:
    """The children of ``node``, each with the axes that it is in the scope of there, and the conditions under which it is evaluated."""
    match node:
        case Call(op, (test, taken, other)) if op is SELECT:
            return [(test, (), ()), (taken, (), (test,)), (other, (), (call(NOT, test),))]
        case Reduce(_, exprs, own, where):
            return [(where, own, tuple([a.condition for a in own])), *[(e, own, (where,)) for e in exprs]]
    return [(child, (), ()) for child in node.children]


def _below_and_beside(node: Expr) -> list[_Below]:
    """As :func:`_below`, and an operand of ``&`` where those beside it that are on positions alone hold, one of ``|`` where they do not.

    Whatever is read elsewhere, they decide. Nothing may be simplified by such conditions: two operands would each leave out the other.
    """
    if not (isinstance(node, Call) and node.op in (AND, OR)):
        return _below(node)
    parts = conjuncts(node) if node.op is AND else alternatives(node)
    plain = [part for part in parts if not reads_of(part)]
    told = plain if node.op is AND else [call(NOT, part) for part in plain]
    return [(child, (), tuple(told) if reads_of(child) else ()) for child in node.children]


def _says_of_positions(condition: Expr) -> bool:
    """Whether a part of ``condition`` compares no data, and may fail."""
    if condition is TRUE:
        return False
    if isinstance(condition, Call) and condition.op in _LOGICAL:
        return any(_says_of_positions(a) for a in condition.args)
    return not any(isinstance(n, Read) for n in nodes_outside(condition, (Read,)))


def _extended(conditions: tuple[Expr, ...], more: Iterable[Expr]) -> tuple[Expr, ...]:
    new = [c for c in more if c is not TRUE and not among(c, conditions)]
    return (*conditions, *new) if new else conditions


def _common(
    axes: Sequence[Axis],
    body: Expr,
    below: Callable[[Expr], list[_Below]],
    told: Callable[[Iterable[Expr]], Iterable[Expr]],
) -> dict[Expr, tuple[dict[Axis, None], dict[Expr, None]]]:
    """The axes and what is ``told`` of the conditions that all places have where a node stands.

    Each node is visited once, after all that it stands in: there are many more paths to it than nodes.
    """
    known: dict[Expr, tuple[dict[Axis, None], dict[Expr, None]]] = {body: (dict.fromkeys(axes), {})}
    for node in reversed(postorder(body)):
        if node not in known:
            continue
        scope, conditions = known[node]
        for child, own, held in below(node):
            inner, more = scope | dict.fromkeys(own), conditions | dict.fromkeys(told(held))
            if child in known:
                before, others = known[child]
                inner, more = ({k: None for k in a if k in b} for a, b in ((before, inner), (others, more)))
            known[child] = inner, more
    return known


def guards_of(body: Expr, nodes: set[Expr]) -> dict[Expr, list[Expr]]:
    """The conditions common to every place where each of ``nodes`` stands."""
    if not nodes:
        return {}
    known = _common((), body, _below, lambda held: [part for c in held for part in conjuncts(c)])
    return {node: list(conditions) for node, (_, conditions) in known.items() if node in nodes}
