"""Walks over expressions: loops over an explicit stack, so that depth needs no recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, is_
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from jaxte.lang.expr import Axis, Call, Expr, Read, Reduce, Reducer, call
from jaxte.lang.graphs import ordered
from jaxte.lang.operators import SELECT

T = TypeVar("T")
Kind = TypeVar("Kind", bound=Expr)
_reduces = attrgetter("reduces")


def postorder(*roots: Expr) -> list[Expr]:
    """Every node below ``roots`` once, children before parents, in a fixed order."""
    return list(_below(roots[0])) if len(roots) == 1 else _postorder_below(roots, {})


@lru_cache(maxsize=2048)
def _below(root: Expr) -> tuple[Expr, ...]:
    """The nodes below one root: each of many questions about a body walks it."""
    return tuple(_postorder_below((root,), {}))


def all_of(kind: type[Kind], *roots: Expr) -> list[Kind]:
    """The nodes of one kind below ``roots``, each once, children before parents."""
    return [node for node in postorder(*roots) if isinstance(node, kind)]


def reductions(*roots: Expr) -> list[Reduce]:
    """The reductions below ``roots``, children before parents; what has none, as most bodies, is not walked."""
    if not any(map(_reduces, roots)):
        return []
    return all_of(Reduce, *roots)


def nodes_outside(root: Expr, inner: tuple[type[Expr], ...]) -> list[Expr]:
    """The nodes below ``root`` once, parents before children, without what those of the kinds ``inner`` are made of."""
    found: dict[Expr, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            if not isinstance(node, inner):
                stack.extend(node.children)
    return list(found)


def fold(root: Expr, rule: Callable[[Expr, list[Any]], Any]) -> Any:
    """``rule(node, results of its children)`` from the leaves to ``root``; its result there."""
    memo: dict[Expr, Any] = {}
    for node in _below(root):
        memo[node] = rule(node, [*map(memo.__getitem__, node.children)])
    return memo[root]


def rewrite(root: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """``root`` with ``rule`` applied to every node after its children were rewritten."""
    memo: dict[Expr, Expr] = {}
    for node in _below(root):
        memo[node] = rule(_over(node, memo) if node.children else node)
    return memo[root]


def rewrite_reads(root: Expr, rule: Callable[[Read, Read], Expr]) -> Expr:
    """``root`` with ``rule`` in place of every read: of the read itself, and of that at its rewritten indices, where reads within them are."""
    memo: dict[Expr, Expr] = {}
    for node in _below(root):
        over = _over(node, memo) if node.children else node
        memo[node] = rule(node, over) if isinstance(node, Read) and isinstance(over, Read) else over
    return memo[root]


def with_indices(root: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """``root`` with ``rule`` applied to the indices of each read."""

    def over(node: Expr) -> Expr:
        if not isinstance(node, Read):
            return node
        indices = [*map(rule, node.indices)]
        return node if all(map(is_, indices, node.indices)) else Read(node.tensor, indices)

    return rewrite(root, over)


def substitute(root: Expr, table: Mapping[Any, Expr]) -> Expr:
    """``root`` with the nodes that are keys of ``table`` replaced by its values."""
    if not table or _is_untouched(root, table):
        return root
    memo: dict[Expr, Expr] = dict(table)
    for node in _postorder_below((root,), table):
        memo[node] = _over(node, memo) if node.children else node
    return memo[root]


def at_positions(root: Expr, table: Mapping[Any, Expr]) -> Expr:
    """``root`` with positions in place of axes: as :func:`substitute`, with new axes where it reduces over some that the positions are made of."""
    met = {a for position in table.values() for a in free_axes(position)} if root.reduces else set()
    if not met or not any(a in met for node in reductions(root) for a in node.axes):
        return substitute(root, table)

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce) or met.isdisjoint(node.axes):
            return node
        own: dict[Any, Expr] = {
            a: Axis(a.name, a.lo, a.hi, reduction=True) if a in met else a for a in node.axes
        }
        *exprs, where = (substitute(child, own) for child in node.children)
        return node.changed(exprs=exprs, axes=[own[a] for a in node.axes], where=where)  # type: ignore[misc]

    return substitute(rewrite(root, rule), table)


def with_tensors(root: Expr, known: Mapping[Any, Any]) -> Expr:
    """``root`` with what stands for the tensors that are keys of ``known`` read in place of them, at the same indices, in these, too."""
    if not any(r.tensor in known for r in reads_of(root)):
        return root
    return rewrite_reads(
        root, lambda r, over: Read(known[r.tensor], over.indices) if r.tensor in known else over
    )


def _over(node: Expr, memo: Mapping[Expr, Expr]) -> Expr:
    """``node`` over what ``memo`` has in place of its children; itself where these are the same."""
    children = node.children
    for child in children:
        if memo[child] is not child:
            new = map(memo.__getitem__, children)
            return call(node.op, *new) if isinstance(node, Call) else node.rebuild([*new])
    return node


def _is_untouched(root: Expr, table: Mapping[Any, Expr]) -> bool:
    """Whether ``table`` is of axes that ``root`` does not depend on: most conditions of a domain have none of the variables that are solved for."""
    if root.reduces or not root.free.keys().isdisjoint(table):
        return False
    return all(isinstance(key, Axis) for key in table)


def _postorder_below(roots: Sequence[Expr], known: Mapping[Expr, Any]) -> list[Expr]:
    """Postorder that does not descend into nodes whose replacement is known."""
    found: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[Expr | None] = [*reversed(roots)]
    while stack:
        node = stack.pop()
        if node is None:  # the children of what lies below are done
            found.append(stack.pop())  # type: ignore[arg-type]
        elif node not in seen and node not in known:
            seen.add(node)
            if children := node.children:
                stack += (node, None)
                stack.extend(reversed(children))
            else:
                found.append(node)
    return found


class OfNodes(Generic[T]):
    """What ``rule(node, known)`` says of each node below a root, given what is ``known`` of its children.

    Answers are kept, since the expressions of a derivation share most of their nodes: of one that is new, what is new is looked at.
    """

    def __init__(self, rule: Callable[[Expr, Mapping[Expr, T]], T], most: int = 20_000) -> None:
        self._rule, self._most = rule, most
        self._known: dict[Expr, T] = {}

    def of(self, root: Expr) -> T:
        known = self._known
        if root in known:
            return known[root]
        if len(known) > self._most:
            known = self._known = {}
        for node in _postorder_below((root,), known):
            known[node] = self._rule(node, known)
        return known[root]


def combine(reducer: Reducer, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> tuple[Expr, ...]:
    """The expressions of ``reducer`` applied to two tuples of values."""
    table = dict(zip((*reducer.lhs, *reducer.rhs), (*lhs, *rhs), strict=True))
    return tuple(substitute(result, table) for result in reducer.results)


def reads_of(*roots: Expr) -> list[Read]:
    """The distinct reads below ``roots``, in order of appearance."""
    if len(roots) == 1:
        return list(_reads_below(roots[0]))
    return all_of(Read, *roots)


@lru_cache(maxsize=2048)
def _reads_below(root: Expr) -> tuple[Read, ...]:
    return tuple(node for node in _below(root) if isinstance(node, Read))


@lru_cache(maxsize=4096)
def reads_data(root: Expr) -> bool:
    """Whether ``root`` reads at a position that is data, which may be out of range."""
    return any(len(plain_indices(read)) < len(read.indices) for read in reads_of(root))


@lru_cache(maxsize=4096)
def plain_indices(read: Read) -> tuple[Expr, ...]:
    """The indices of ``read`` that are no data."""
    return tuple([index for index in read.indices if not reads_of(index)])


@lru_cache(maxsize=4096)
def free_axes(root: Expr) -> MappingProxyType[Axis, None]:
    """The axes that ``root`` depends on and does not reduce over, in order of appearance."""
    return MappingProxyType(root.free)


def depends_on(root: Expr, axes: Iterable[Axis]) -> bool:
    """Whether ``root`` depends on one of ``axes``."""
    return not free_axes(root).keys().isdisjoint(axes)


def outermost(body: Expr) -> list[Reduce]:
    """The reductions of ``body`` that are not part of others, each once."""
    if not body.reduces:
        return []
    nodes = ordered([body], lambda node: () if isinstance(node, Reduce) else node.children)
    return [node for node in nodes if isinstance(node, Reduce)]


def conditions_in(body: Expr) -> Iterator[Expr]:
    """What choices in ``body`` are made by, and what decides on the points of its reductions."""
    for node in postorder(body):
        if isinstance(node, Reduce):
            yield node.where
        elif isinstance(node, Call) and node.op is SELECT:
            yield node.args[0]
