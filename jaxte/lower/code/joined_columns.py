"""Sums whose last steps are alike, as one: those that a pass over columns leaves of the kernel of each of several convolutions, which is the same.

    jnp.sum(jnp.stack(a), axis=-1) + jnp.sum(jnp.stack(b), axis=-1)   is   jnp.sum(joined.reshape(9, -1), axis=-1)

with ``joined`` the columns of ``a`` and ``b`` for the first tap, for the second one, and so on. XLA on the CPU makes three kernels of each of the former, which take
longer to compile than the passes, and are one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import as_expr
from jaxte.lang.operators import ADD, SUBTRACT
from jaxte.lower.arrays.elementwise import Apply, Name
from jaxte.lower.arrays.loops import Items, JoinedItems, Stacked
from jaxte.lower.arrays.node import Node, same_shape
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.views import Reshape, Step, Transpose, View
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.joined_sums import added, terms_of
from jaxte.sets.intervals import plus


@dataclass(frozen=True)
class _Columns:
    """The term ``sign`` times the sum of ``items`` along their last dimension, side by side behind the others, with ``steps`` of a view."""

    name: str
    sign: int
    items: Items
    steps: tuple[Step, ...]

    def is_alike(self, other: _Columns) -> bool:
        own, others = self.items, other.items
        return (
            self.sign == other.sign
            and own.count == others.count
            and own.kind == others.kind
            and same_shape(own.shape[:-1], others.shape[:-1])
            and len(self.steps) == len(other.steps)
            and all(map(_is_same, self.steps, other.steps))
        )


def columns_as_one(node: Node, parts: Mapping[str, Node]) -> tuple[Node, list[str]] | None:
    """``node`` with most of the sums along columns that it adds as one, and the names that these had; None where there are no two of them.

    ``parts`` are what stands under a name that is read nowhere else.
    """
    totals = {
        name: own for name, own in parts.items() if isinstance(own, Apply) and own.op in (ADD, SUBTRACT)
    }
    terms = terms_of(node, totals)
    found = [own for sign, term in terms if (own := _columns(sign, term, parts)) is not None]
    joined = max(([b for b in found if b.is_alike(a)] for a in found), key=len, default=[])
    if len(joined) < 2:
        return None
    names = [own.name for own in joined]
    rest = [(s, t) for s, t in terms if not (isinstance(t, Name) and t.identifier in names)]
    return added([(joined[0].sign, _sum(joined)), *rest]), names


def _columns(sign: int, term: Node, parts: Mapping[str, Node]) -> _Columns | None:
    """What ``term`` sums, where it is the name of such a sum."""
    if not isinstance(term, Name) or term.identifier not in parts:
        return None
    steps: list[Step] = []
    node = parts[term.identifier]
    while isinstance(node, View):
        steps.append(node.step)
        node = node.array
    match node:
        case Reduced("sum", Stacked((Items() as items,), axis), (-1,)) if axis == len(items.shape) - 1:
            return _Columns(term.identifier, sign, items, tuple(reversed(steps)))
    return None


def _sum(joined: Sequence[_Columns]) -> Node:
    first = joined[0].items
    before, ends = first.shape[:-1], [own.items.shape[-1] for own in joined]
    count = as_expr(first.count)
    behind = plus(*(end for end in ends for _ in range(first.count)))
    values = JoinedItems(
        tuple(own.items.values for own in joined), len(before), (*before, behind), first.kind
    )
    apart = apply_steps(values, [Reshape((*before, count, plus(*ends)))])
    return apply_steps(Reduced("sum", apart, (-1,)), list(joined[0].steps))


def _is_same(a: Step, b: Step) -> bool:
    match a, b:
        case Reshape(own), Reshape(others):
            return same_shape(own, others)
        case Transpose(own), Transpose(others):
            return own == others
    return False
