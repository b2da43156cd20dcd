"""Choices among elements of one tensor by where a number lies, as one read at a piecewise affine index.

    select(at < 0, x[-at], select(at > n - 1, x[2*n - 2 - at], x[at]))    is   x[n - 1 - abs(n - 1 - abs(at))]
    select(at < 0, x[0], select(at > n - 1, x[n - 1], x[at]))             is   x[minimum(maximum(at, 0), n - 1)]
    select(at >= n, x[at - n], x[at])                                     is   x[at % n]

It is how a boundary is written without an operator for it. A read at a piecewise affine index has forms of its own (:mod:`jaxte.sets.piecewise_affine`,
:mod:`jaxte.tensors.copies`). Which function it is, the positions tell: whatever agrees at all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxte.lang.expr import Axis, Call, Expr, Read, as_expr, call
from jaxte.lang.limits import MOST_TERMS, ORDERED, TABLE
from jaxte.lang.operators import MAXIMUM, MINIMUM, MOD, SELECT
from jaxte.lang.walk import substitute
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import highest, known, lowest
from jaxte.sets.linear import Linear
from jaxte.sets.piecewise_affine import of_number
from jaxte.sets.tabulate import values_along


def with_piecewise_reads(body: Expr) -> Expr:
    """``body`` with choices of that kind as reads at piecewise affine indices, one axis after the other."""
    # Each axis has its own edges.
    for _ in range(ORDERED):
        table = dict(_outermost(body))
        if not table:
            break
        body = substitute(body, table)
    return body


def _outermost(body: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The choices that are such reads, with these; what a choice chooses among is asked where the whole of it is none."""
    seen: set[Expr] = set()
    stack = [body]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        found = _piecewise(node)
        if found is not None:
            yield node, found
        else:
            stack.extend(node.children)


def _piecewise(node: Expr) -> Expr | None:
    leaves = _leaves(node)
    if leaves is None:
        return None
    first = leaves[0]
    differing = [d for d in range(len(first.indices)) if len({leaf.indices[d] for leaf in leaves}) > 1]
    if len(differing) != 1:
        return None
    (d,) = differing
    size = known(as_expr(first.tensor.shape[d]))
    if size is None or not all(is_index(leaf.indices[d]) for leaf in leaves):
        return None
    forms = {leaf.indices[d]: linear(leaf.indices[d]) for leaf in leaves}
    chosen = substitute(node, {leaf: leaf.indices[d] for leaf in leaves})
    # forwards first
    for base in sorted(forms.values(), key=lambda f: (-sum(f.terms.values()), abs(f.constant))):
        index = _index(chosen, base, size)
        if index is not None:
            return Read(first.tensor, [index if n == d else i for n, i in enumerate(first.indices)])
    return None


def _index(chosen: Expr, base: Linear, size: int) -> Expr | None:
    """The ``chosen`` index as a piecewise affine function of ``base``; None where it is none that has forms."""
    ends = lowest(base), highest(base)
    if any(e is None or not e.is_constant for e in ends):
        return None
    low, high = (e.constant for e in ends if e is not None)
    if not 0 < high - low < TABLE or (len(base.terms) < 2 and high - low + 1 != size):
        return None  # along one axis it is a shift of the tensor, or a tensor that is made of pieces
    at = Axis("at", low, high + 1)
    own = of_number(chosen, base, at)
    values = None if own is None else values_along(own, at)
    if values is None:
        return None
    for function in (_wrapped, _held, _reflected):
        if np.array_equal(values_along(function(at, size), at), values):  # type: ignore[arg-type]
            return function(from_linear(base), size)
    return None


def _wrapped(at: Expr, size: int) -> Expr:
    return call(MOD, at, size)


def _held(at: Expr, size: int) -> Expr:
    return call(MINIMUM, call(MAXIMUM, at, 0), size - 1)


def _reflected(at: Expr, size: int) -> Expr:
    inner = size - 1 - call(MAXIMUM, at, -at)
    return size - 1 - call(MAXIMUM, inner, -inner)


def _leaves(node: Expr) -> list[Read] | None:
    """The reads of one tensor that ``node`` chooses among; None where it is no choice, or one among other things."""
    if not (isinstance(node, Call) and node.op is SELECT):
        return None
    found: list[Read] = []
    stack: list[Expr] = [node]
    while stack:
        own = stack.pop()
        if isinstance(own, Call) and own.op is SELECT:
            stack += [own.args[2], own.args[1]]
        elif (
            isinstance(own, Read) and len(found) < MOST_TERMS and (not found or own.tensor is found[0].tensor)
        ):
            found.append(own)
        else:
            return None
    return found
