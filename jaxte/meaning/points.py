"""The points that tensors are computed at, beside which plans and adjoints are judged.

They are the iterations of ``te.cost``, but a reduction counts at the positions at which choices by position ask for it, as far as a sample tells, and
once for all positions along axes that it does not depend on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from jaxte.lang.expr import Axis, Call, Expr, Reduce, call, conjuncts
from jaxte.lang.operators import NOT, SELECT
from jaxte.lang.walk import free_axes
from jaxte.meaning.cost import told_by_data
from jaxte.meaning.density import share
from jaxte.sets.intervals import extent
from jaxte.tensors.tensor import Compute

_MOST = 2000  # nodes and guards that are told apart: choices within choices are many


def points(tensor: Compute) -> float:
    """The points at which ``tensor`` alone is computed; sizes that are not known are guessed."""
    return max(prod(map(extent, tensor.axes)), sum(_reductions(tensor.body, tensor.axes)))


def _reductions(body: Expr, axes: Sequence[Axis]) -> Iterator[float]:
    """For each reduction in ``body``, the positions of ``axes`` that it is asked for at, times its own points."""
    seen: set[tuple[object, ...]] = set()
    stack: list[tuple[Expr, tuple[Expr, ...]]] = [(body, ())]
    while stack:
        node, guards = stack.pop()
        guards = guards if len(seen) < _MOST else ()
        # the results of a tuple reduction are found in one pass
        key = (node.reducer, node.exprs, node.axes, node.where) if isinstance(node, Reduce) else (node,)
        if (*key, guards) in seen:
            continue
        seen.add((*key, guards))
        if isinstance(node, Call) and node.op is SELECT:
            test, taken, other = node.args
            stack += [(test, guards), (taken, (*guards, *conjuncts(test)))]
            stack.append((other, (*guards, call(NOT, test))))
        elif isinstance(node, Reduce):
            outer = set(axes).intersection(free_axes(node)).difference(told_by_data(node, axes))
            asked = [g for g in guards if outer.issuperset(free_axes(g))]
            own = prod(map(extent, node.axes))
            inner = sum(_reductions(node.exprs[0], node.axes)) / max(own, 1)
            yield prod(map(extent, outer)) * share(asked) * own * max(inner, 1)
        else:
            stack += [(child, guards) for child in node.children]
