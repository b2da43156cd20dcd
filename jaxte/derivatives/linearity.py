"""An adjoint is linear in its heads, always: each term of its definition has one head as a factor, and nothing is decided by a head's value.

Said by degrees. A head has degree 1, what the definition is made of 0; a product has the sum of its factors' degrees, the terms of a sum have
all the same. The only condition that may ask a head is the guard ``head != 0`` (``NONZERO``), which derivatives for that head do without.
What adjoints are differentiated for again, tangents among it, relies on that: Each derivation of a test is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jaxte.lang.errors import DifferentiationError
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, Symbol
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, NONZERO, SELECT, SUBTRACT
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

_LINEAR = ("cast", "real", "imag", "conj")  # over the real numbers
Degree = int | None  # None is zero, which is of every degree


def verify_linear(adjoints: Iterable[Tensor], heads: Sequence[Tensor], forward: Sequence[Tensor]) -> None:
    """Checks that each of ``adjoints`` is linear in ``heads``, all together.

    Args:
        heads: placeholders; others may have been put in place of their elements, and nothing is checked.
        forward: the tensors that are differentiated. Where one of them depends on a head, nothing is checked.

    Raises:
        DifferentiationError: one is not; the message names the tensor, and what in it is of two degrees.
    """
    given = set(heads)
    if not all(isinstance(h, Placeholder) for h in heads) or not given.isdisjoint(forward):
        return
    degrees: dict[Tensor, Degree] = {**dict.fromkeys(forward, 0), **dict.fromkeys(heads, 1)}
    asked = list(adjoints)
    for tensor in topological_order(asked, lambda t: () if t in degrees else t.inputs):
        if tensor not in degrees:
            degrees[tensor] = _of_tensor(tensor, degrees)
    for tensor in asked:
        if degrees[tensor] == 0:
            raise DifferentiationError(f"{tensor.name} is no adjoint: it has terms without a head")


def _of_tensor(tensor: Tensor, degrees: Mapping[Tensor, Degree]) -> Degree:
    if not isinstance(tensor, Compute):
        return max((d for t in tensor.inputs if (d := degrees[t]) is not None), default=0)
    found: dict[Expr, Degree] = {}
    try:
        for node in postorder(tensor.body):
            found[node] = _of_node(node, found, degrees)
    except _Mixed as error:
        raise DifferentiationError(
            f"{tensor.name} is not linear in the heads that it is derived with: `{error}` is of two degrees; this is a defect of jaxte"
        ) from None
    return found[tensor.body]


class _Mixed(Exception):
    """An expression whose terms are of different degrees in the heads, or that is no polynomial in them."""

    def __init__(self, node: Expr) -> None:
        super().__init__(text(node))


def _of_node(node: Expr, found: Mapping[Expr, Degree], tensors: Mapping[Tensor, Degree]) -> Degree:
    match node:
        case Const(value):
            return None if value == 0 and node.dtype != "bool" else 0
        case Read(tensor):
            return tensors[tensor]
        case Reduce():
            return _of_reduction(node, found)
        case Call():
            return _of_call(node, [found[a] for a in node.args])
    return 0


def _of_call(node: Call, degrees: Sequence[Degree]) -> Degree:
    op = node.op
    if op is NONZERO:
        return 0
    if op in (ADD, SUBTRACT):
        return _same(node, degrees)
    if op is MULTIPLY:
        return None if None in degrees else _at_most_one(node, sum(d for d in degrees if d is not None))
    if op is SELECT and not degrees[0]:
        return _same(node, degrees[1:])
    if (op is DIVIDE and not degrees[1]) or op is NEGATIVE or op.name in _LINEAR:
        return degrees[0]
    if any(degrees):
        raise _Mixed(node)
    return 0


def _same(node: Expr, degrees: Sequence[Degree]) -> Degree:
    """The one degree of all terms that are not zero."""
    found = {d for d in degrees if d is not None}
    if len(found) > 1:
        raise _Mixed(node)
    return found.pop() if found else None


def _at_most_one(node: Expr, degree: int) -> int:
    if degree > 1:
        raise _Mixed(node)
    return degree


def _of_reduction(node: Reduce, found: Mapping[Expr, Degree]) -> Degree:
    """A sum has the degree of its terms; values that a combiner carries have the degrees of their elements, which it keeps."""
    degrees = [found[e] for e in node.exprs]
    if found[node.where] or (any(degrees) and node.reducer.name not in ("sum", "custom")):
        raise _Mixed(node)
    if not any(degrees) and not (node.reducer.name == "custom" and None in degrees):
        return degrees[0] if node.is_sum else 0
    if node.is_sum:
        return degrees[0]
    for _ in degrees:  # a value that starts as zero takes on what it is combined with
        results = _combined(node, degrees)
        degrees = [_same(node, pair) for pair in zip(degrees, results, strict=True)]
    return degrees[node.position]


def _combined(node: Reduce, degrees: Sequence[Degree]) -> list[Degree]:
    reducer = node.reducer
    inside: dict[Expr, Degree] = {
        s: d for side in (reducer.lhs, reducer.rhs) for s, d in zip(side, degrees, strict=True)
    }
    for part in postorder(*reducer.results):
        if not isinstance(part, Symbol):
            inside[part] = _of_node(part, inside, {})
    return [inside[r] for r in reducer.results]
