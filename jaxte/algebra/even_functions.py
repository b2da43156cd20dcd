"""Even functions of differences, each of one of both signs: ``(a - b)**2`` is ``(b - a)**2`` to the last bit, and so is ``cos(a - b)``.

An adjoint reads the difference of two neighbours from both sides. With the same squares, the weights that are made of them are the same, and
are computed once: ``exp(-(x[i] - x[i + 1])**2)`` for the edge to the right, and for that to the left of the next element.
"""

from __future__ import annotations

from operator import is_

from jaxte.lang.expr import Call, Expr, Read
from jaxte.lang.operators import DIVIDE, MULTIPLY, SUBTRACT
from jaxte.lang.text import text
from jaxte.lang.walk import postorder, reads_of
from jaxte.tensors.parts import Rows

_EVEN = frozenset(["abs", "square", "cos", "cosh"])


def with_even_functions(body: Expr) -> Expr:
    """``body`` with even functions of differences of two elements as functions of the one that comes first as text."""
    plain: dict[Expr, Expr] = {}
    turned: dict[Expr, Expr] = {}  # what is the negative of a node
    for node in postorder(body):
        children = [plain[child] for child in node.children]
        same = all(map(is_, children, node.children))
        plain[node] = node if same else node.rebuild(children)
        if isinstance(node, Call):
            _turn(node, plain, turned)
    return plain[body]


def _turn(node: Call, plain: dict[Expr, Expr], turned: dict[Expr, Expr]) -> None:
    """Adds ``node`` by the negatives of what it is made of to ``plain``, where they cancel, or to ``turned``."""
    if node.op is SUBTRACT and all(map(_is_neighbour, node.args)):
        first, second = node.args
        if text(second) < text(first):
            turned[node] = node.rebuild([second, first])
    elif not turned.keys().isdisjoint(node.args):
        if node.op is MULTIPLY or node.op is DIVIDE:
            found = node.rebuild([turned.get(a, plain[a]) for a in node.args])
            (plain if all(a in turned for a in node.args) else turned)[node] = found
        elif node.op.name in _EVEN:
            plain[node] = node.rebuild([turned[a] for a in node.args])


def _is_neighbour(node: Expr) -> bool:
    """Whether ``node`` is an element at a known position: of rows that data choose, no other difference is the same from the other side."""
    return isinstance(node, Read) and not isinstance(node.tensor, Rows) and not reads_of(*node.indices)
