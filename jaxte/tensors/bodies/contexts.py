"""Where a read stands: the axes in scope, and the conditions under which it is taken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from jaxte.lang.budget import PLACES
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, call
from jaxte.lang.identity import among
from jaxte.lang.operators import AND, NOT, OR, SELECT
from jaxte.lang.walk import nodes_outside, postorder

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
            return _common(axes, body, targets)
        if isinstance(node, Read) and node in targets:
            found[node, scope, conditions] = None
        for child, own, held in _below(node):
            told = [c for c in held if chosen or _says_of_positions(c)]
            stack.append((child, (*scope, *own), _extended(conditions, told)))
    return list(found)


def _below(node: Expr) -> Iterator[tuple[Expr, tuple[Axis, ...], tuple[Expr, ...]]]:
    """The children of ``node``, each with the axes that it is in the scope of there, and the conditions under which it is evaluated."""
    match node:
        case Call(op, (test, taken, other)) if op is SELECT:
            yield test, (), ()
            yield taken, (), (test,)
            yield other, (), (call(NOT, test),)
        case Reduce(_, exprs, own, where):
            yield where, own, tuple(a.condition for a in own)
            yield from ((e, own, (where,)) for e in exprs)
        case _:
            yield from ((child, (), ()) for child in node.children)


def _says_of_positions(condition: Expr) -> bool:
    """Whether a part of ``condition`` compares no data."""
    if isinstance(condition, Call) and condition.op in _LOGICAL:
        return any(_says_of_positions(a) for a in condition.args)
    return not any(isinstance(n, Read) for n in nodes_outside(condition, (Read,)))


def _extended(conditions: tuple[Expr, ...], more: Iterable[Expr]) -> tuple[Expr, ...]:
    new = [c for c in more if c is not TRUE and not among(c, conditions)]
    return (*conditions, *new) if new else conditions


def _common(axes: Sequence[Axis], body: Expr, targets: Collection[Read]) -> list[Context]:
    """Each of ``targets`` with the axes and conditions that all places have where it stands, in one pass over the nodes."""
    known: dict[Expr, tuple[dict[Axis, None], dict[Expr, None]]] = {body: (dict.fromkeys(axes), {})}
    for node in reversed(postorder(body)):
        if node not in known:
            continue
        scope, conditions = known[node]
        for child, own, held in _below(node):
            inner = scope | dict.fromkeys(own)
            more = conditions | {c: None for c in held if c is not TRUE and _says_of_positions(c)}
            if child in known:
                before, others = known[child]
                inner, more = ({k: None for k in a if k in b} for a, b in ((before, inner), (others, more)))
            known[child] = inner, more
    return [(read, tuple(known[read][0]), tuple(known[read][1])) for read in targets if read in known]
