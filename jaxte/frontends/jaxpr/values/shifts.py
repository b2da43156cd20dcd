"""What is asked of the expression of an element, to decide whether it is composed further."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang import operators as ops
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr
from jaxte.lang.walk import postorder
from jaxte.sets.affine import linear

_FEW = 2  # shifted reads, a product with which is as well computed again at each of them
_OVERLAPPING = 4  # times as many elements as the tensor has that parts of it hold together


def is_shifted(body: Expr) -> bool:
    """Whether an element reads a float tensor at other positions than its own."""
    for node in postorder(body):
        if isinstance(node, Read) and not all(isinstance(i, (Axis, Const)) for i in node.indices):
            return True
        if isinstance(node, Call) and node.op is ops.SELECT and not _reads(node.args[0]):
            return True
    return False


def _reads(body: Expr) -> bool:
    return any(isinstance(n, Read) for n in postorder(body))


def chooses_between_reads(body: Expr) -> bool:
    """Whether a view is made of several arrays; one array with numbers around it is composed further."""
    return sum(isinstance(n, Read) for n in postorder(body)) > 1


def is_held(body: Expr) -> bool:
    """Whether a view repeats the ends of an array: composed with shifts, its adjoint has a part for each of them at each end."""
    return any(isinstance(n, Call) and n.op in (ops.MINIMUM, ops.MAXIMUM) for n in postorder(body))


def divides(read: Read) -> bool:
    return any(isinstance(n, Call) and n.op in (ops.FLOOR_DIVIDE, ops.MOD) for n in postorder(*read.indices))


def is_repeat(read: Read) -> bool:
    """Whether an array is read at affine indices, and quotients of axes that stand nowhere else: elements repeated."""
    found = [
        n for n in postorder(*read.indices) if isinstance(n, Call) and n.op in (ops.FLOOR_DIVIDE, ops.MOD)
    ]
    divided = [n.args[0] for n in found]
    if any(n.op is ops.MOD for n in found) or not all(isinstance(a, Axis) for a in divided):
        return False
    bare = [n for i in read.indices for n in postorder(i) if isinstance(n, Axis)]
    return all(sum(a is b for b in bare) == 1 for a in divided)


def size_of(body: Expr) -> int:
    return sum(1 for _ in postorder(body))


def is_framed(body: Expr, shape: Sequence[int]) -> bool:
    """Whether an array of ``shape`` is overlapping parts of a tensor, zeros around it: composed, a product with it is a banded one."""
    match body:
        case Call(op, (condition, Read() as read, Const(0 | 0.0))) if op is ops.SELECT and not _reads(
            condition
        ):
            return is_framed(read, shape)
        case Read(tensor):
            whole = all(isinstance(e, int) for e in tensor.shape)
            affine = all(isinstance(a, Axis) for i in body.indices for a in linear(i).terms)
            return whole and affine and prod(shape) >= _OVERLAPPING * prod(tensor.shape)
    return False


def is_turned(body: Expr) -> bool:
    """Whether an array is a whole tensor, some dimensions of it counted from the other end."""
    if not isinstance(body, Read):
        return False
    return all(_is_line(i, e) for i, e in zip(body.indices, body.tensor.shape, strict=True))


def _is_line(index: Expr, extent: object) -> bool:
    """Whether ``index`` is an axis over the whole of ``extent``, from either end."""
    form = linear(index)
    if len(form.terms) != 1 or not isinstance(extent, int):
        return False
    ((axis, factor),) = form.terms.items()
    whole = isinstance(axis, Axis) and axis.extent is as_expr(extent)
    return whole and (factor, form.constant) in ((1, 0), (-1, extent - 1))


def steepens_itself(left: Expr, right: Expr) -> bool:
    """Whether a difference of neighbours is multiplied by an element of the same tensor, as in ``u * (u[i + 1] - u[i - 1])``.

    Composed, it is one more term of the stencil around it: its slopes read no array that the stencil does not read.
    """
    shifted, other = (left, right) if is_shifted(left) else (right, left)
    if is_shifted(other) or not is_shifted(shifted):
        return False
    reads, own = ([n for n in postorder(e) if isinstance(n, Read)] for e in (shifted, other))
    return len(reads) <= _FEW and len(own) == 1 and {r.tensor for r in reads} == {own[0].tensor}
