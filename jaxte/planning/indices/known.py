"""What positions decide, as tensors of its own: matrices that are known before there is any data.

    y[b, f] = sum over k of x[b, k] * cos(2 * pi / n * (f * k))

is a product with a matrix of cosines. In place, its elements are computed in each pass of each call; as a tensor they are computed when the
function is traced, once (see ``program/emit.py``), and forms see a plain matrix. What is a function of one combination of positions,
``exp(-abs(i - j))``, is constant along lines and has forms of its own.

Small factors at positions that wrap, laid out: tensors over the axes of the sum, which are read as they lie.

    sum over k of w[p, (k + p) % 4] * x[b, q, k]   is   sum over k of w'[p, k] * x[b, q, k]   with   w'[p, k] = w[p, (k + p) % 4]

What is left is a product of matrices. The factor has few elements beside the points of the sum, or it stays where it is read, as does one beside
a factor at the number whose remainder it is read at, ``x[t + k] * w[(t + k) % 7]``: the two are one element of a window. So are kernels at positions that are reflected or held, ``w[abs(k - 3)]``,
of which a sum of windows is a convolution with both halves side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lcm, prod

import numpy as np

from jaxte.algebra.product import product_of
from jaxte.lang import dtypes
from jaxte.lang.divisions import Division, divisions
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import FAR_FEWER, FEW_ELEMENTS, MARGIN, MOST_HELD, MOST_LAID_OUT
from jaxte.lang.operators import ABS, ADD, DIVIDE, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.meaning.interpret import interpret
from jaxte.sets.index_forms import Term, linear_or_none, term_of
from jaxte.sets.intervals import dims_of, extent, extent_of, known
from jaxte.sets.linear import Linear
from jaxte.sets.piecewise_affine import piecewise_affine
from jaxte.sets.resolved import simplify
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.copies import extended
from jaxte.tensors.structure import Known, PartialSum
from jaxte.tensors.tensor import Compute

_PLAIN = (ADD, SUBTRACT, MULTIPLY, DIVIDE)


def with_known(tensor: Compute) -> Expr:
    """The body of ``tensor``, with functions of positions as reads of tensors."""
    table: dict[Expr, Expr] = {}
    for node in _functions_of_positions(tensor.body):
        name = f"{tensor.name}_known" + (f"_{len(table)}" if table else "")
        read = _read(name, node)
        if read is not None:
            table[node] = read
    body = substitute(tensor.body, table) if table else tensor.body
    same_kind = body.dtype == tensor.body.dtype and body.weak == tensor.body.weak
    return body if same_kind else tensor.body


def _functions_of_positions(root: Expr) -> Iterator[Expr]:
    """The outermost functions below ``root`` that read nothing, with the numbers that they are multiplied by or added to."""
    free: set[Expr] = set()  # of reads
    functions: dict[Expr, None] = {}
    for node in postorder(root):
        if isinstance(node, (Read, Reduce)) or not all(c in free for c in node.children):
            continue
        free.add(node)
        if isinstance(node, Call) and dtypes.is_float(node.dtype) and _is_function(node, functions):
            functions[node] = None
    inner = {c for node in functions for c in postorder(*node.children) if c in functions}
    yield from (node for node in functions if node not in inner and free_axes(node))


def _is_function(node: Call, functions: dict[Expr, None]) -> bool:
    """Whether ``node`` takes more than arithmetic; or is a function with a number beside it."""
    if node.op in _PLAIN:
        values = [a for a in node.args if not isinstance(a, Const)]
        return len(values) == 1 and values[0] in functions
    if node.op is NEGATIVE:
        return node.args[0] in functions
    return node.op.name in TABLE and not TABLE[node.op.name].cheap


def _read(name: str, node: Expr) -> Read | None:
    """A read of a tensor with the values of ``node``; None where that gains nothing."""
    axes = tuple(free_axes(node))
    extents = [known(a.extent) for a in axes]
    numbers = [e for e in extents if e is not None]
    size = prod(numbers)
    if len(numbers) < len(axes) or any(a.lo is not ZERO for a in axes) or size < FEW_ELEMENTS:
        return None
    if size * dtypes.width(node.dtype) > MOST_HELD or _places(node) < len(axes):
        return None
    own = {a: Axis(a.name, 0, a.hi) for a in axes}
    tensor = Known(name, tuple(own.values()), substitute(node, own))
    return Read(tensor, axes) if np.isfinite(interpret(tensor, {})).all() else None


def _places(node: Expr) -> int:
    """How many combinations of positions ``node`` is a function of: one of ``exp(i - j)``, two of ``cos(i * j)``."""
    found: dict[Term, None] = {}
    stack, seen = [node], {node}
    while stack:
        part = stack.pop()
        form = linear_or_none(part) if not dtypes.is_float(part.dtype) else None
        if form is None:
            fresh = [c for c in part.children if c not in seen]
            seen.update(fresh)
            stack += fresh
        elif form.terms:
            term, _ = term_of(form - Linear({}, form.constant), found)
            found[term] = None
    return len(found)


def with_turned_factors(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node``, a sum at the points of ``axes``, with such factors as reads of tensors of their own."""
    if not node.is_sum:
        return node
    product = product_of(node.exprs[0], [node.where])
    if len(product.factors) < 2:
        return node
    every = prod(map(extent, dict.fromkeys((*axes, *node.axes))))
    table: dict[Expr, Expr] = {}
    for factor in product.factors:
        read = factor.expr
        if not isinstance(read, Read) or factor.guard:
            continue
        others = [r for f in product.factors if f is not factor for r in reads_of(f.expr)]
        laid = _laid_out(read, every, name) if _turns(read, node, others) else None
        if laid is None and _bends(read, node):
            laid = _straight(read, every)
        table |= {} if laid is None else {read: laid}
    if not table:
        return node
    body = substitute(node.exprs[0], table)
    return node.changed(exprs=(body,))


def _turns(read: Read, node: Reduce, others: Sequence[Read]) -> bool:
    """Whether a remainder of several axes, around which the sum goes, is among the positions of ``read``, and not what ``others`` are read at.

    A sum that goes around a part of it has windows, which wrap: a convolution.
    """
    if any(reads_of(i) for i in read.indices):
        return False
    found = [d for index in read.indices for d in divisions(index) if _goes_around(d, node)]
    taken = [linear_or_none(index) for other in others for index in other.indices]
    forms = [linear_or_none(d.number) for d in found]
    return bool(found) and not any(a and b and a.terms == b.terms for a in forms for b in taken)


def _bends(read: Read, node: Reduce) -> bool:
    """Whether ``read`` stands at positions of the sum that are held, or reflected, as the halves of a symmetric kernel do: ``w[abs(k - 3), c]``."""
    bent = [i for i in read.indices if _is_bent(i)]
    of_sum = all(among(a, node.axes) for i in bent for a in free_axes(i))
    return bool(bent) and of_sum and not any(map(reads_of, read.indices))


def _is_bent(index: Expr) -> bool:
    return any(isinstance(n, Call) and n.op in (ABS, MAXIMUM, MINIMUM) for n in postorder(index))


def _goes_around(division: Division, node: Reduce) -> bool:
    dims = dims_of(division.node)
    summed = [a for a in node.axes if depends_on(division.node, (a,))]
    return len(dims) > 1 and bool(summed) and prod(map(extent, summed)) >= (division.base or 0)


def _straight(read: Read, every: int) -> Read | None:
    """``read`` of a copy that is as long as its positions are: the halves of the kernel side by side."""
    count, sizes = prod(map(extent, free_axes(read))), [extent_of(e) for e in read.tensor.shape]
    if count * FAR_FEWER > every or count > max(FEW_ELEMENTS, MOST_LAID_OUT * prod(sizes)):
        return None
    tensor, indices = read.tensor, list(read.indices)
    for place, (index, size) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        if not _is_bent(index):
            continue
        own = piecewise_affine(index, size, fewest=1) if isinstance(size, int) else None
        if own is None:
            return None
        tensor, indices[place], sizes[place] = extended(tensor, place, own), own.position, own.extent
    # not of a table, one row of which is read
    return Read(tensor, indices) if prod(sizes) <= MARGIN * count else None


def _laid_out(read: Read, every: int, name: str) -> Read | None:
    axes = free_axes(read)
    if any(a.lo is not ZERO for a in axes):
        return None
    periods = {a: _period(a, read) for a in axes}
    fresh = [Axis(a.name, 0, periods[a] or a.hi) for a in axes]
    count, own = prod(map(extent, fresh)), prod(map(extent_of, read.tensor.shape))
    if count * FAR_FEWER > every or count > max(FEW_ELEMENTS, MOST_LAID_OUT * own):
        return None
    body = substitute(read, dict(zip(axes, fresh, strict=True)))
    if not reads_inside(fresh, body):
        return None
    places = [a % period if (period := periods[a]) else a for a in axes]
    return Read(PartialSum(f"{name}_{read.tensor.name}", fresh, body), places)


def _period(axis: Axis, read: Read) -> int | None:
    """After how many positions of ``axis`` the same is read again; None where that is none of them."""
    bases = [d.base for d in divisions(*read.indices) if depends_on(d.node, (axis,))]
    period = lcm(*(b for b in bases if b))
    if not bases or None in bases or not 0 < period < extent(axis):
        return None
    place, turn = Axis(axis.name, 0, period), Axis("turn", 0, -(-extent(axis) // period))
    later = [simplify(i, {axis: place + period * turn}) for i in read.indices]
    return None if depends_on(Read(read.tensor, later), (turn,)) else period
