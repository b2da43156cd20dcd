"""Functions of positions alone as tensors of their own: matrices that are known before there is any data.

    y[b, f] = sum over k of x[b, k] * cos(2 * pi / n * (f * k))

is a product with a matrix of cosines. In place, its elements are computed in each pass of each call; as a tensor they are computed when the
function is traced, once (see ``program/emit.py``), and forms see a plain matrix. What is a function of one combination of positions,
``exp(-abs(i - j))``, is constant along lines and has forms of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import free_axes, postorder, substitute
from jaxte.meaning.interpret import interpret
from jaxte.sets.affine import Linear
from jaxte.sets.index_forms import Term, linear_or_none, term_of
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute

_FEWEST = 4096  # elements: fewer are computed faster than read
_MOST_BYTES = 2**22  # what a program may hold as a constant
_PLAIN = (ADD, SUBTRACT, MULTIPLY, DIVIDE)


class Known(Compute):
    """A function of positions alone, which is computed when the function that reads it is traced."""

    __slots__ = ()


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
    if len(numbers) < len(axes) or any(a.lo is not ZERO for a in axes) or size < _FEWEST:
        return None
    if size * dtypes.width(node.dtype) > _MOST_BYTES or _places(node) < len(axes):
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
