"""The points at which a definition is evaluated.

These are te.cost's iterations, but a reduction counts at the positions that choices by position ask for it at, and once for all positions
along axes that it does not depend on or that data choose positions of; cumulative reductions are one pass, and so are the tensors of what the reads of
one definition receive in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.autodiff.rules.prefixes import as_prefix
from jaxte.autodiff.terms.shared import Shared
from jaxte.lang.expr import Axis, Call, Expr, Reduce, call, conjuncts
from jaxte.lang.operators import EQUAL, NOT, SELECT
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.domain import IntegerSet
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


def points_of(tensors: Sequence[Tensor]) -> int:
    """Points of everything that ``tensors`` need; extents are numbers."""
    computed = [t for t in topological_order(tensors) if isinstance(t, Compute)]
    shared: dict[str, int] = {}  # by the definition, after which they are called, with a number
    for tensor in computed:
        if isinstance(tensor, Shared):
            label = tensor.name.rpartition("_")[0]
            shared[label] = max(shared.get(label, 0), _of(tensor))
    return sum(shared.values()) + sum(_of(t) for t in computed if not isinstance(t, Shared))


def excess(output: Tensor, adjoints: Sequence[Tensor], derived_from: Sequence[Tensor] = ()) -> float:
    """The points of the largest adjoint for each five points of the definition, elements of inputs and output among these.

    An ``output`` that is an adjoint has the points of what it is ``derived_from``, too: that is its own derivative for its head.
    """
    inputs = [t for t in topological_order([output]) if not isinstance(t, Compute)]
    sizes = sum(prod(map(int, t.shape)) for t in (output, *inputs))
    return max((points_of([a]) for a in adjoints), default=0) / (
        5 * (points_of([output, *derived_from]) + sizes)
    )


def _of(tensor: Compute) -> int:
    elements = prod(map(int, tensor.shape))
    if isinstance(tensor.body, Reduce) and as_prefix(tensor) is not None:
        return elements  # one more step each
    return max(elements, sum(_reductions(tensor.body, tensor.axes)))


def _reductions(body: Expr, axes: Sequence[Axis]) -> list[int]:
    """For each reduction in ``body``, the positions of ``axes`` that it is asked for at, times its own points."""
    found: dict[tuple[object, ...], int] = {}
    stack: list[tuple[Expr, tuple[Expr, ...]]] = [(body, ())]
    seen = set()
    while stack:
        node, guards = stack.pop()
        if (node, guards) in seen:
            continue
        seen.add((node, guards))
        if isinstance(node, Call) and node.op is SELECT:
            test, taken, other = node.args
            stack += [
                (test, guards),
                (taken, (*guards, *conjuncts(test))),
                (other, (*guards, call(NOT, test))),
            ]
        elif isinstance(node, Reduce):
            key = (node.reducer, node.exprs, node.axes, node.where, guards)
            own = prod(int(a.extent) for a in node.axes)
            inner = max(1, sum(_reductions(node.exprs[0], node.axes)) // max(own, 1))
            depends = tuple(a for a in axes if a in free_axes(node) and not _is_scattered(node, a))
            found[key] = _positions(depends, guards) * own * inner
        else:
            stack += [(child, guards) for child in node.children]
    return list(found.values())


def _is_scattered(node: Reduce, axis: Axis) -> bool:
    """Whether each term is added at the one position of ``axis`` that data say: ``I[k] == axis``."""
    sides = [c.args for c in conjuncts(node.where) if isinstance(c, Call) and c.op is EQUAL]
    return any((a is axis and bool(reads_of(b))) or (b is axis and bool(reads_of(a))) for a, b in sides)


def _positions(axes: Sequence[Axis], guards: Sequence[Expr]) -> int:
    known = [g for g in guards if is_decidable(g) and all(any(a is b for b in axes) for a in free_axes(g))]
    if not known:
        return prod(int(a.extent) for a in axes)
    inside = tuple(dict.fromkeys(a for g in known for a in free_axes(g)))
    rest = prod(int(a.extent) for a in axes if not any(a is b for b in inside))
    return rest * sum(1 for _ in IntegerSet(inside, known).points())
