"""What a sum over pairs is a function of, as a tensor of its own: ``f(x[i] - y[j])`` is ``f(d[i, j])`` with ``d[i, j] = x[i] - y[j]``.

    l[b] = sum over i, j of log1p(exp(-(s[b, i] - s[b, j])))

passes something on to ``s[b, i]`` and to ``s[b, j]``. Both are sums of the slope at each pair, over one side and over the other, and each of them
would compute the slope again, its exponentials too, over a box of its own. The adjoint of ``d`` is that slope, computed once at all pairs; the
adjoints of both sides add it up.

So it is of a definition that is no sum, ``y[i, j] = exp(-l) + (1 - exp(-l)) / l`` with ``l = t[j] / b[i]``, where what flows back to an element is a sum over
many: over ``j`` for ``b[i]`` and over ``i`` for ``t[j]``, both of what flows back to ``l``. Functions of one element may stand in it, ``x[i, j] * exp(-q[i % 8, j % 8])``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from math import prod

from jaxte.algebra.exponential_sums import exponential_sum
from jaxte.algebra.sums import weight
from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce, as_expr
from jaxte.lang.limits import FEW, FUNCTION, MOST_HELD, WORTH_MULTIPLYING
from jaxte.lang.operators import ADD, COMPARISONS, DIVIDE, MULTIPLY, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.walk import all_of, free_axes, postorder, reads_data, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.indices.shared_places import computed_always
from jaxte.sets.intervals import extent, known
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute

_FEWEST = 20  # pairs for each element of a side: a sum over fewer is one loop that holds nothing
_PLAIN = frozenset((ADD, SUBTRACT, MULTIPLY, NEGATIVE))  # what sums take apart by themselves


class Pairs(Compute):
    """What is computed of each pair of elements."""

    __slots__ = ()


def with_pairs(tensor: Compute) -> Expr:
    """The body of ``tensor``, with sums and products of elements on two sides that it is a function of as tensors of their own."""
    body = tensor.body
    if not dtypes.is_float(body.dtype):
        return body
    if isinstance(body, Reduce) and body.is_sum:
        table = {} if _is_one_pass(tensor, body) else _summed(tensor, body)
    else:
        table = {} if body.reduces or type(tensor) is not Compute else _of_each(tensor)
    return substitute(body, table) if table else body


def _is_one_pass(tensor: Compute, body: Reduce) -> bool:
    """Whether ``body`` is carried on from position to position, so that no pair is met."""
    points = prod(map(extent, (*tensor.axes, *body.axes)))
    return points >= WORTH_MULTIPLYING and exponential_sum(body, tensor.axes) is not None


def _summed(tensor: Compute, body: Reduce) -> dict[Expr, Expr]:
    """What stands in place of what the terms of a sum are functions of."""
    table: dict[Expr, Expr] = {}
    orders: dict[frozenset[Axis], tuple[Axis, ...]] = {}
    for node in _arguments(body.exprs[0], _is_plain):
        own = _pair_of(node)
        # What is computed of several pairs at once would read some of them turned, s[j] - s[i] beside t[i] - t[j], if each were laid out as it is written.
        axes = orders.setdefault(frozenset(own), own)
        if axes and _is_worth(body.exprs[0], node, axes):
            table[node] = _element(f"{tensor.name}_pairs" + (f"_{len(table)}" if table else ""), axes, node)
    return table


def _of_each(tensor: Compute) -> dict[Expr, Expr]:
    """What stands in place of what the elements of a tensor, which is no sum, are functions of."""
    body, axes = tensor.body, tensor.axes
    if tensor.override is not None or any(a.lo is not ZERO or known(a.extent) is None for a in axes):
        return {}
    found = dict.fromkeys(_unscaled(node) for node in _arguments(body, _is_of_elements))
    # what is left out passes nothing on, not zero times an infinite slope
    always = computed_always(body, list(found))
    table: dict[Expr, Expr] = {}
    for node in sorted(found, key=lambda n: len(postorder(n))):
        if node in always and _flows_into_sums(body, node, axes):
            name = f"{tensor.name}_of" + (f"_{len(table)}" if table else "")
            table[node] = _element(name, axes, substitute(node, table))
    return table


def _unscaled(node: Expr) -> Expr:
    """``node`` without signs and numbers that it is multiplied by."""
    while isinstance(node, Call) and not node.weak:
        if node.op is NEGATIVE or (node.op is DIVIDE and isinstance(node.args[1], Const)):
            node = node.args[0]
        elif node.op is MULTIPLY and len(others := [a for a in node.args if not isinstance(a, Const)]) == 1:
            (node,) = others
        else:
            break
    return node


def _is_of_elements(node: Expr, plain: Collection[Expr]) -> bool:
    """Whether ``node`` is a number, of a single element, or a sum, a product or a quotient of those in ``plain``."""
    if not dtypes.is_float(node.dtype) and not isinstance(node, Const):
        return False
    if len(reads_of(node)) < 2:
        return not reads_data(node)
    return (
        isinstance(node, Call)
        and (node.op in _PLAIN or node.op is DIVIDE)
        and all(a in plain for a in node.args)
    )


def _flows_into_sums(root: Expr, node: Expr, axes: Sequence[Axis]) -> bool:
    """Whether what flows back to ``node`` takes functions to compute, is summed for some of its elements, and fits into memory that is near."""
    if not isinstance(node, Call) or set(free_axes(node)) != set(axes):
        return False
    points = prod(map(extent, axes))
    reads = [r for r in reads_of(node) if isinstance(r.tensor, Placeholder) or r.tensor.inputs]
    few = [r for r in reads if _FEWEST * _elements(r) <= points]
    dear = sum(weight(n) for n in _above(root, node) if n is not root and not _is_by_parts(n))
    fits = 0 < points * dtypes.width(node.dtype) <= MOST_HELD
    return fits and len(reads) > 1 and bool(few) and dear >= max(FUNCTION, intermediates().element)


def _is_by_parts(node: Call) -> bool:
    """Whether the slope of ``node`` takes no operation, or is none."""
    return node.op in _PLAIN or node.op is SELECT or node.op in COMPARISONS


def _elements(read: Read) -> int:
    """How many elements of its tensor ``read`` is at most."""
    shape = [known(as_expr(e)) or 1 for e in read.tensor.shape]
    return min(prod(shape), prod(map(extent, free_axes(read))))


def _arguments(root: Expr, is_plain: Callable[[Expr, Collection[Expr]], bool]) -> Iterator[Expr]:
    """The sums and products of elements below ``root`` that a function, a choice or a quotient is of."""
    plain: set[Expr] = set()
    found: dict[Expr, None] = {}
    for node in postorder(root):
        if is_plain(node, plain):
            plain.add(node)
        elif isinstance(node, Call):
            found |= {a: None for a in node.args if a in plain and isinstance(a, Call) and not a.weak}
    yield from found


def _is_plain(node: Expr, plain: Collection[Expr]) -> bool:
    """Whether ``node`` is a number, an element at axes of its own, or a sum or a product of those in ``plain``."""
    match node:
        case Const():
            return True
        case Read():
            at_axes = all(isinstance(index, Axis) and index.lo is ZERO for index in node.indices)
            return at_axes and dtypes.is_float(node.dtype)
        case Call():
            by_number = node.op is DIVIDE and isinstance(node.args[1], Const)
            return (node.op in _PLAIN or by_number) and all(a in plain for a in node.args)
    return False


def _pair_of(node: Expr) -> tuple[Axis, ...]:
    """The axes of ``node``; none where it is not of two sides that have a derivative, each of which lacks an axis of the other."""
    reads = reads_of(node)
    axes = {a for read in reads for a in free_axes(read)}
    sides = {frozenset(free_axes(r)) for r in reads if isinstance(r.tensor, Placeholder) or r.tensor.inputs}
    numbers = all(known(a.extent) is not None for a in axes)
    return _in_order(reads) if len(sides) > 1 and numbers and frozenset(axes) not in sides else ()


def _in_order(reads: Sequence[Read]) -> tuple[Axis, ...]:
    """The axes of ``reads``, those of each in its own order where that can be: i, j, d of ``q[i, d]`` and ``k[j, d]``."""
    left = dict.fromkeys(a for read in reads for a in free_axes(read))
    found: list[Axis] = []
    while left:
        behind = {a for read in reads for a in [n for n in read.indices if n in left][1:]}
        axis = next((a for a in left if a not in behind), next(iter(left)))
        found.append(axis)
        del left[axis]
    return tuple(found)


def _is_worth(root: Expr, node: Expr, axes: Sequence[Axis]) -> bool:
    """Whether the slope at ``node`` takes more than a few operations, there are many for each element, and all fit into memory that is near."""
    pairs = prod(map(extent, axes))
    sides = max(prod(map(extent, free_axes(read))) for read in reads_of(node))
    fits = 0 < pairs * dtypes.width(node.dtype) <= MOST_HELD
    # Operations on a pair for which its slope is computed once.
    return fits and pairs >= _FEWEST * sides and sum(_weight_of(n, axes) for n in _above(root, node)) >= FEW


def _weight_of(node: Call, axes: Sequence[Axis]) -> int:
    """What ``node`` counts for; a quotient by what has not all of ``axes`` as a product, since a sum may be divided by it in place of its terms."""
    divides = node.op is DIVIDE and len(free_axes(node.args[1])) < len(axes)
    return 1 if divides and not reads_data(node.args[1]) else weight(node)


def _above(root: Expr, node: Expr) -> list[Call]:
    """The operations between ``root`` and ``node``."""
    reached: dict[Expr, None] = {node: None}
    for n in all_of(Call, root):
        if any(child in reached for child in n.children):
            reached[n] = None
    return [n for n in reached if isinstance(n, Call) and n is not node]


def _element(name: str, axes: Sequence[Axis], node: Expr) -> Expr:
    own = {a: Axis(a.name, 0, a.hi) for a in axes}
    return Read(Pairs(name, tuple(own.values()), substitute(node, own)), axes)
