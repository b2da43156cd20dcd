"""A key for each definition that does not depend on the names in it, under which measurements are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.tensors.tensor import Tensor


def signature(axes: Sequence[Axis], node: Expr, guards: Sequence[Expr] = (), kind: str = "") -> str:
    """Sixteen hexadecimal digits for ``node`` at each point of ``axes`` where ``guards`` hold.

    ``kind`` tells apart what is chosen for the same definition, where that is more than the form of a reduction.

    Equal definitions have equal keys in every process, whatever their axes and tensors are called.
    """
    reducers = {n.reducer: None for n in postorder(node, *guards) if isinstance(n, Reduce)}
    roots = [node, *guards, *(e for r in reducers for e in (*r.results, *r.identity))]
    naming = _Naming()
    written = [kind] * bool(kind) + [naming.axis(axis) for axis in axes]
    numbers: dict[Expr, int] = {}
    for entry in postorder(*roots):
        children = [numbers[child] for child in entry.children]
        written.append(f"{naming.label(entry)}{children}")
        numbers[entry] = len(numbers)
    return hashlib.sha1("\n".join(written).encode(), usedforsecurity=False).hexdigest()[:16]


class _Naming:
    """Numbers for axes and tensors, in order of appearance."""

    def __init__(self) -> None:
        self.axes: dict[Axis, int] = {}
        self.tensors: dict[Tensor, int] = {}

    def axis(self, axis: Axis) -> str:
        number = self.axes.setdefault(axis, len(self.axes))
        return f"a{number}:{text(axis.lo)}:{text(axis.hi)}"

    def label(self, node: Expr) -> str:
        match node:
            case Const(value):
                return f"{value!r}:{node.dtype}"
            case Axis():
                return self.axis(node)
            case Call(op):
                return f"{op.name}:{node.dtype}"
            case Read(tensor):
                number = self.tensors.setdefault(tensor, len(self.tensors))
                return f"T{number}:{tensor.dtype}{tuple(map(str, tensor.shape))}"
            case Reduce(reducer):
                own = [self.axis(a) for a in node.axes]
                return f"{reducer.name}:{reducer.ties}:{node.position}{own}"
        return f"{type(node).__name__}:{text(node)}"
