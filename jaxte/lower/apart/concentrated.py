"""Whether the weights of a difference may be large where its two sides (nearly) coincide, as ``1 / d`` is.

    sum over j of w[i, j] * (x[i, c] - y[j, c])

Apart, ``w * x`` and ``w * y`` are rounded by themselves. Where ``w`` is of about one size for points near and far, this is no more than the points
themselves are rounded; where it grows as they come close, what is left of two large products is rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxte.algebra.value_ranges import value_range
from jaxte.lang import operators as ops
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.limits import BEHIND
from jaxte.lang.walk import depends_on, postorder, reads_of
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

_FLAT = 2**-7  # of what is divided by: weights grow by the inverse of it at most

Pairs = tuple[Sequence[Axis], Sequence[Axis]]
"""The axes that one side of a difference has alone, and those of the other side."""


def may_be_concentrated(weights: Sequence[Expr], sides: Sequence[Expr], pairs: Pairs) -> str:
    """Why ``weights`` may be largest where the two ``sides`` of a difference coincide; empty where they are not.

    Args:
        weights: what a difference is multiplied by.
        sides: what it is a difference of.
        pairs: the axes of one side alone, and of the other.
    """
    sources = frozenset(r.tensor for r in reads_of(*sides))
    known: dict[Tensor, bool] = {}
    for node in _behind(weights):
        if node is None:
            return "too much is behind the weights to see whether they are large where both sides coincide"
        if _picks_an_extremum(node, sources, known):
            return "the weights are those of a nearest point, and its two sides may coincide"
        divisor = _divisor(node)
        if divisor is None or not _is_of_pairs(divisor, pairs) or not _comes_from(divisor, sources, known):
            continue
        if value_range(divisor)[0] < _FLAT:
            return "the weights divide by what may be zero where both sides coincide"
    return ""


def reads_unknown_pairs(weights: Sequence[Expr], pairs: Pairs) -> bool:
    """Whether an input has a value for each pair of both sides, as what flows back into a matrix of distances has."""
    return any(
        isinstance(n, Read) and not isinstance(n.tensor, Compute) and _is_of_pairs(n, pairs)
        for n in _behind(weights)
    )


def _behind(exprs: Sequence[Expr]) -> Iterator[Expr | None]:
    """The nodes that ``exprs`` are made of, over their axes, those of the tensors that they read too; None at the end where these are too many."""
    seen: set[Expr] = set()
    stack = list(exprs)
    count = 0
    while stack:
        for node in postorder(stack.pop()):
            if node in seen:
                continue
            seen.add(node)
            yield node
            if isinstance(node, Read) and isinstance(node.tensor, Compute):
                count += 1
                if count > BEHIND:
                    yield None
                    return
                stack.append(_element(node))


def _element(read: Read) -> Expr:
    assert isinstance(read.tensor, Compute)
    return read.tensor.element(read.indices)


def _divisor(node: Expr) -> Expr | None:
    """What ``node`` divides by."""
    match node:
        case Call(op, (_, divisor)) if op is ops.DIVIDE and not isinstance(divisor, Const):
            return divisor
        case Call(op, (base, exponent)) if op is ops.POWER:
            value = exponent.value if isinstance(exponent, Const) else None
            return None if isinstance(value, (int, float)) and value >= 0 else base
        case Call(op, (arg,)) if op.name in ("rsqrt", "reciprocal"):
            return arg
    return None


def _picks_an_extremum(node: Expr, sources: frozenset[Tensor], known: dict[Tensor, bool]) -> bool:
    """Whether ``node`` compares with what an extremum over one of ``sources`` gave: the mask of its place, as the gradient of a least distance has."""
    if not isinstance(node, Call) or node.op not in ops.COMPARISONS:
        return False
    behind = (n for n in _behind(node.args) if isinstance(n, Reduce))
    return any(n.reducer.name not in ("sum", "prod") and _comes_from(n, sources, known) for n in behind)


def _is_of_pairs(expr: Expr, pairs: Pairs) -> bool:
    return all(depends_on(expr, own) for own in pairs)


def _comes_from(expr: Expr, sources: frozenset[Tensor], known: dict[Tensor, bool]) -> bool:
    """Whether one of ``sources`` is behind ``expr``."""
    for read in reads_of(expr):
        for tensor in topological_order([read.tensor], lambda t: () if t in known else t.inputs):
            own = tensor in sources or any(known.get(t, False) for t in tensor.inputs)
            known[tensor] = known.get(tensor, False) or own
        if known[read.tensor]:
            return True
    return False
