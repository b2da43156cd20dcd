"""Tensors over two positions that are read near a diagonal alone: over one position and the distance to the other.

    d2[i, j] = sum over c of (x[i, c] - x[j, c])**2,     e[i] = sum over j of f(d2[i, j]) where 3 <= j - i and j - i <= 12   is
    d2[i, j] = sum over c of (x[i, c] - x[i + j + 3, c])**2 where that is inside, j in [0, 10),   e[i] = sum over j of f(d2[i, j - i - 3]) where ...

What is left out is never read, so that no element of it is computed. A reduction within an expression, which is a tensor of its own, is one of
them, and so is whatever else was written over two positions and is reduced over a window of one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from jaxte.algebra.product import product_of
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import FEWER
from jaxte.lang.operators import AND, GREATER_EQUAL, LESS, SELECT
from jaxte.lang.walk import depends_on, free_axes, reads_of, reductions, rewrite, substitute
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.conditions import halves, positive, prune
from jaxte.sets.digits import straightened
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.intervals import known, reach
from jaxte.sets.linear import Linear
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.structure import structure_of, topological_order
from jaxte.tensors.tensor import Compute, Tensor

_FEWER_OF_PRODUCTS = 5  # the same where a matrix is a product of two: its elements take a fraction of what sums by themselves take

Pair = tuple[int, int]


@dataclass(frozen=True)
class Near:
    """A tensor over distances in place of one over positions.

    Attributes:
        tensor: the new one; its definition reads what that of the old one does.
        first, second: the axes of the old one; the second of them is the distance from the first here.
        least: the distance that position 0 of that axis stands for.
    """

    tensor: Compute
    first: int
    second: int
    least: int

    def read(self, indices: Sequence[Expr]) -> Read:
        """The element that stands at ``indices`` of the old tensor."""
        distance = linear(indices[self.second]) - linear(indices[self.first])
        own = list(indices)
        own[self.second] = from_linear(distance.plus(Linear({}), 1, -self.least))
        return Read(self.tensor, own)


def with_distances(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """``outputs`` with what they need over distances where no more is read; the same tuple where nothing is."""
    order = topological_order(outputs)
    near = _near(order, outputs)
    if not near:
        return outputs
    new: dict[Tensor, Compute] = {}
    for tensor in order:
        if not isinstance(tensor, Compute):
            continue
        own = near[tensor].tensor if tensor in near else tensor
        body = _reading(own.body, new, near)
        if own is not tensor or body is not own.body:
            new[tensor] = own.renewed(body)
            new[tensor].with_override(tensor.override)
    return tuple(new.get(t, t) for t in outputs)


def _reading(body: Expr, new: Mapping[Tensor, Compute], near: Mapping[Tensor, Near]) -> Expr:
    """``body`` with reads of the ``new`` tensors."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor not in new:
            return node
        found = near[node.tensor].read(node.indices).indices if node.tensor in near else node.indices
        return Read(new[node.tensor], found)

    return rewrite(body, rule)


def _near(order: Sequence[Tensor], outputs: Sequence[Tensor]) -> dict[Tensor, Near]:
    """What takes the place of tensors among ``order``: readers first, whose own axes may be distances then."""
    found: dict[Tensor, Near] = {}
    readers: dict[Tensor, list[Compute]] = {}
    # of what is read so, another one was found to be read at many distances
    everywhere: set[Hashable] = set()
    for tensor in reversed(order):
        if not isinstance(tensor, Compute):
            continue
        if not among(tensor, outputs) and _may_change(tensor):
            own = readers.get(tensor, ())
            kind = _kind(tensor, own)
            near = None if kind in everywhere else _over_distances(tensor, own)
            if near is not None:
                found[tensor] = near
            elif kind is not None:
                everywhere.add(kind)
        new = found[tensor].tensor if tensor in found else tensor
        for source in new.inputs:
            readers.setdefault(source, []).append(new)
    return found


def _kind(tensor: Compute, readers: Sequence[Compute]) -> Hashable:
    """What ``tensor`` and what ``readers`` read of it are up to names; None where more is known of them."""
    structures = list(map(structure_of, (tensor, *readers)))
    if None in structures:
        return None
    return tuple(structures), tuple(place_of(tensor, reader.inputs) for reader in readers)


def _may_change(tensor: Compute) -> bool:
    """Whether ``tensor`` is one that the user defined over several long axes, and did not say how it is differentiated."""
    long = [a for a in tensor.axes if (known(a.hi) or 0) >= 2 * FEWER]
    return type(tensor) is Compute and tensor.override is None and not tensor.facts and len(long) > 1


def _over_distances(tensor: Compute, readers: Sequence[Compute]) -> Near | None:
    """``tensor`` over the distances at which ``readers`` read it; None where these are many, or one, at which it is computed where it is read."""
    found = list(_places(tensor, readers))
    pairs = permutations(range(tensor.ndim), 2)
    best: tuple[tuple[int, int], Pair, tuple[int, int]] | None = None
    for pair in pairs:
        extents = [known(tensor.axes[n].hi) for n in pair]
        if None in extents:
            continue
        ends = _ends(found, pair)
        fewer = _FEWER_OF_PRODUCTS if _multiplies(tensor, pair) else FEWER
        if ends is None or ends[0] == ends[1] or (ends[1] - ends[0] + 1) * fewer > (extents[1] or 0):
            continue
        reduced = sum(any(a.reduction for a in free_axes(r.indices[pair[0]])) for r, _ in found)
        rank = (reduced, (extents[0] or 0) * (ends[1] - ends[0] + 1))
        if best is None or rank < best[0]:
            best = rank, pair, ends
    return None if best is None else _made(tensor, best[1], best[2])


def _multiplies(tensor: Compute, pair: Pair) -> bool:
    """Whether it holds a product of matrices: a sum over products of what depends on one axis of ``pair`` alone with what depends on the other."""
    first, second = (tensor.axes[n] for n in pair)
    for node in reductions(tensor.body):
        if node.is_sum:
            own = [f.expr for f in product_of(node.exprs[0]).factors if depends_on(f.expr, node.axes)]
            sides = {(depends_on(e, (first,)), depends_on(e, (second,))) for e in own}
            if {(True, False), (False, True)} <= sides and (True, True) not in sides:
                return True
    return False


def _places(tensor: Tensor, readers: Iterable[Compute]) -> Iterator[tuple[Read, list[Linear]]]:
    """The reads of ``tensor``, each with forms that are at least 0 where it is taken."""
    for reader in readers:
        own = {r for r in reads_of(reader.body) if r.tensor is tensor}
        for read, _, conditions in contexts(reader.axes, reader.body, own):
            parts = [half for c in conditions for p in conjuncts(c) for half in halves(positive(p))]
            yield read, [form for part in parts for form in nonnegative_forms(part)]


def _ends(places: Sequence[tuple[Read, list[Linear]]], pair: Pair) -> tuple[int, int] | None:
    """The least and the greatest distance at which an element is read."""
    lows, highs = [], []
    for read, forms in places:
        if not all(is_index(read.indices[n]) for n in pair):
            return None
        gap = linear(read.indices[pair[1]]) - linear(read.indices[pair[0]])
        ends = _ends_of(gap, forms)
        if ends is None:
            return None
        lows.append(ends[0])
        highs.append(ends[1])
    return (min(lows), max(highs)) if lows else None


def _ends_of(gap: Linear, forms: Sequence[Linear]) -> tuple[int, int] | None:
    """The least and the greatest value of ``gap`` where ``forms`` are at least 0, as far as each of them says so by itself."""
    whole = reach(gap)
    least, most = whole if whole is not None else (None, None)
    for form in forms:
        above, below = form - gap, form + gap
        if above.is_constant:  # gap + constant >= 0
            least = -above.constant if least is None else max(least, -above.constant)
        if below.is_constant:  # constant - gap >= 0
            most = below.constant if most is None else min(most, below.constant)
    return None if least is None or most is None or least > most else (least, most)


def _made(tensor: Compute, pair: Pair, ends: tuple[int, int]) -> Near:
    """``tensor`` over the distances between ``ends``."""
    first, second = (tensor.axes[n] for n in pair)
    distance = Axis(second.name, 0, ends[1] - ends[0] + 1)
    at = from_linear(Linear({first: 1, distance: 1}, ends[0]))
    axes = [distance if a is second else a for a in tensor.axes]
    inside = prune([call(GREATER_EQUAL, at, 0), call(LESS, at, second.hi)], axes)
    body = _without_known(straightened(substitute(tensor.body, {second: at})), axes)
    return Near(tensor.renewed(_where(conjunction(inside), body), axes), *pair, ends[0])


def _where(inside: Expr, body: Expr) -> Expr:
    """``body`` at the positions that there are, and what nobody reads elsewhere."""
    if inside is TRUE:
        return body
    if isinstance(body, Reduce) and not body.is_sum:
        where = call(AND, inside, body.where)
        return body.changed(where=where)
    zero = False if body.dtype == "bool" else cast(0, body.dtype)
    return call(SELECT, inside, body, zero)


def _without_known(body: Expr, axes: Sequence[Axis]) -> Expr:
    """``body`` without the conditions that hold at all distances."""

    def kept(condition: Expr, own: Sequence[Axis]) -> Expr:
        parts = [half for part in conjuncts(condition) for half in halves(part)]
        left = prune(parts, own)
        return condition if len(left) == len(parts) else conjunction(left)

    def rule(node: Expr) -> Expr:
        match node:
            case Reduce(reducer, exprs, own, where) if where is not TRUE:
                left = kept(where, [*axes, *own])
                return node if left is where else Reduce(reducer, exprs, own, left, node.position)
            case Call(op, (test, taken, _)) if op is SELECT and not reads_of(test):
                inner = [a for a in free_axes(test) if not among(a, axes)]
                return taken if kept(test, [*axes, *inner]) is TRUE else node
        return node

    return rewrite(body, rule)
