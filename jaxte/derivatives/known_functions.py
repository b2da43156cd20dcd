"""Functions of elements that a tensor of the graph has already are read there: ``sin(a[i, j])`` of the slope of ``cos`` where ``sin`` is a tensor, too.

What several places compute is a tensor (:mod:`jaxte.planning.indices.shared_elements`), and kept. The slope of such a function is often another one of them,
which whoever writes the angle of a rotation by hand takes for granted.
"""

from __future__ import annotations

from collections.abc import Iterable

from jaxte.lang.expr import Axis, Call, Expr, Read, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.walk import postorder, reads_of, substitute
from jaxte.planning.indices.shared_elements import Shared
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import known, reach
from jaxte.tensors.tensor import Tensor


class KnownFunctions:
    """The functions of elements that tensors of one graph are."""

    def __init__(self, order: Iterable[Tensor]) -> None:
        self._by_operator: dict[object, list[Shared]] = {}
        for tensor in order:
            if isinstance(tensor, Shared) and isinstance(tensor.body, Call):
                self._by_operator.setdefault(tensor.body.op, []).append(tensor)

    def read_in(self, body: Expr) -> Expr:
        """``body`` with elements of these tensors in place of what is computed like them."""
        if not self._by_operator:
            return body
        table: dict[Expr, Expr] = {}
        for node in postorder(body):
            for tensor in self._by_operator.get(node.op, ()) if isinstance(node, Call) else ():
                found = _element(tensor, node)
                if found is not None:
                    table[node] = found
                    break
        return substitute(body, table) if table else body


def _element(tensor: Shared, node: Expr) -> Read | None:
    """The element of ``tensor`` that is ``node``, which it has wherever ``node`` stands."""
    at = _positions(tensor, node)
    if at is None or not all(axis in at for axis in tensor.axes):
        return None
    indices = [at[axis] for axis in tensor.axes]
    inside = all(_is_inside(i, a) for i, a in zip(indices, tensor.axes, strict=True))
    return Read(tensor, indices) if inside else None


def _positions(tensor: Shared, node: Expr) -> dict[Expr, Expr] | None:
    """The positions in ``node`` at which the axes of ``tensor`` stand in its body; None where they are not the same but for these."""
    at: dict[Expr, Expr] = {}
    stack = [(tensor.body, node)]
    while stack:
        own, there = stack.pop()
        if isinstance(own, Axis) and among(own, tensor.axes):
            if at.setdefault(own, there) is not there:
                return None
        elif own is there:
            continue
        elif isinstance(own, Call) and isinstance(there, Call) and own.op is there.op:
            if own.dtype != there.dtype or len(own.args) != len(there.args):
                return None
            stack += zip(own.args, there.args, strict=True)
        elif isinstance(own, Read) and isinstance(there, Read) and own.tensor is there.tensor:
            stack += zip(own.indices, there.indices, strict=True)
        else:
            return None
    return at


def _is_inside(index: Expr, axis: Axis) -> bool:
    form, most = linear_or_none(index), known(as_expr(axis.extent))
    if form is None or most is None or reads_of(index):
        return False
    bounds = reach(form)
    return bounds is not None and 0 <= bounds[0] and bounds[1] < most
