"""Plain text of expressions and definitions, as error messages and reprs show them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, Symbol, Var, show_with
from jaxte.lang.operators import MAXIMUM, NEGATIVE
from jaxte.lang.scalars.rows import AND, CALL, COMPARE, OR, SIGN, Form
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import free_axes, postorder

_WORDS = {
    "logical_or": Form("{0} or {1}", OR, (OR, AND)),
    "logical_and": Form("{0} and {1}", AND, (AND, COMPARE)),
    "logical_not": Form("not {0}", AND, (COMPARE,)),
}
_CALLED = ("cast", "bitwise_not")
_LONGEST = 1200  # characters; a longer text is cut: shared subexpressions would otherwise make it exponential

Piece = tuple[str, int]


def text(expr: Expr, called: Mapping[Any, str] | None = None) -> str:
    """``expr`` as one line of text, cut where it is very long.

    Args:
        called: what tensors are called in place of their labels.
    """
    return _text(expr, called, _axis_names(list(free_axes(expr)), expr))


def definition_text(
    name: str, axes: Sequence[Axis], body: Expr, called: Mapping[Any, str] | None = None
) -> str:
    """``name[axes] = body``: the axes of the tensor keep their names, what is reduced over gets primes where it has one of them."""
    names = _axis_names(axes, body)
    return f"{name}[{', '.join(names[a] for a in axes)}] = {_text(body, called, names)}"


def _text(expr: Expr, called: Mapping[Any, str] | None, names: Mapping[Axis, str]) -> str:
    nodes = postorder(expr) if expr.children else [expr]
    memo: dict[Expr, Piece] = {}
    for node in nodes:
        if isinstance(node, Read) and called and node.tensor in called:
            written, strength = _element(called[node.tensor], node, memo.__getitem__)
        else:
            written, strength = _piece(node, memo.__getitem__, names)
        memo[node] = (written if len(written) <= _LONGEST else written[:_LONGEST] + " …", strength)
    return memo[expr][0]


def _axis_names(first: Sequence[Axis], expr: Expr) -> dict[Axis, str]:
    """A name for each axis of ``first`` and of ``expr``; axes of one name that meet are told apart by primes, those of sums beside each other are not."""
    names: dict[Axis, str] = {}
    for axis in first:
        names[axis] = _free_name(axis.name, names.values())
    for axis, others in _meetings(expr).items():
        if axis not in names:
            names[axis] = _free_name(axis.name, [names[a] for a in (*first, *others) if a in names])
    return names


def _meetings(expr: Expr) -> dict[Axis, set[Axis]]:
    """The axes in ``expr``, those of outer reductions first, each with those that are reduced over around it or with it."""
    found: dict[Axis, set[Axis]] = {}
    around: dict[Expr, set[Axis]] = {}
    for node in reversed(postorder(expr)):  # what stands around a node comes before it
        inside = around.get(node, set())
        if isinstance(node, Axis):
            found.setdefault(node, set())
        elif isinstance(node, Reduce):
            inside = inside.union(node.axes)
            for axis in node.axes:
                found.setdefault(axis, set()).update(inside)
            for axis in inside:
                found.setdefault(axis, set()).update(node.axes)
        if inside:
            for child in node.children:
                around.setdefault(child, set()).update(inside)
    return found


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _piece(node: Expr, of: Callable[[Expr], Piece], names: Mapping[Axis, str]) -> Piece:
    match node:
        case Const(value):
            written = str(value)
            return written, SIGN if written.startswith("-") else CALL
        case Axis():
            return names[node], CALL
        case Var(name):
            return name, CALL
        case Symbol():
            return node.name, CALL
        case Read(tensor, _):
            return _element(tensor.name, node, of)
        case Call(op, (a, Call(inner, (b,)))) if op is MAXIMUM and inner is NEGATIVE and a is b and node.weak:
            return f"abs({of(a)[0]})", CALL  # as it was written: an index has no other maximum of itself
        case Call(op, args):
            return _call_piece(op.name, [of(a) for a in args])
        case Reduce():
            return _reduce_piece(node, of, names)
    raise AssertionError(type(node))


def _element(name: str, read: Read, of: Callable[[Expr], Piece]) -> Piece:
    return f"{name}[{', '.join(of(i)[0] for i in read.indices)}]", CALL


def _call_piece(name: str, args: Sequence[Piece]) -> Piece:
    """As the row of the operation writes it in code where that is an operator, else as a call."""
    form = _WORDS.get(name) or TABLE[name].code
    if form.slots and name not in _CALLED:
        return form.write(*args)
    return f"{name}({', '.join(a[0] for a in args)})", CALL


def _reduce_piece(node: Reduce, of: Callable[[Expr], Piece], names: Mapping[Axis, str]) -> Piece:
    ranges = ("" if a.is_open else f" in [{text(a.lo)}, {text(a.hi)})" for a in node.axes)
    axes = ", ".join(f"{names[a]}{own}" for a, own in zip(node.axes, ranges, strict=True))
    body = ", ".join(of(e)[0] for e in node.exprs)
    always = isinstance(node.where, Const) and node.where.value is True
    condition = "" if always else f" where {of(node.where)[0]}"
    suffix = f"[{node.position}]" if node.reducer.arity > 1 else ""
    return f"{node.reducer.label}({body} for {axes}{condition}){suffix}", CALL


show_with(text)


def index_text(index: Any) -> str:
    """An index as it is written."""
    if isinstance(index, slice):
        ends = ["" if end is None else index_text(end) for end in (index.start, index.stop)]
        return ":".join(ends if index.step is None else [*ends, index_text(index.step)])
    return "..." if index is Ellipsis else str(text(index) if isinstance(index, Expr) else index)
