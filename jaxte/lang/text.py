"""Plain text of expressions and definitions, as error messages and reprs show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, Symbol, Var, show_with
from jaxte.lang.operators import MAXIMUM, NEGATIVE
from jaxte.lang.walk import postorder

# Binding strength of the infix operators, as in Python.
_INFIX = {
    "logical_or": ("or", 4),
    "logical_and": ("and", 5),
    "equal": ("==", 6),
    "not_equal": ("!=", 6),
    "nonzero": ("!=", 6),
    "less": ("<", 6),
    "less_equal": ("<=", 6),
    "greater": (">", 6),
    "greater_equal": (">=", 6),
    "bitwise_or": ("|", 7),
    "bitwise_xor": ("^", 8),
    "bitwise_and": ("&", 9),
    "left_shift": ("<<", 10),
    "right_shift": (">>", 10),
    "add": ("+", 11),
    "subtract": ("-", 11),
    "multiply": ("*", 12),
    "divide": ("/", 12),
    "floor_divide": ("//", 12),
    "mod": ("%", 12),
    "power": ("**", 14),
}
_COMPARISON, _SIGN, _POWER, _ATOM = 6, 13, 14, 20
_LONGEST = 1200  # a longer text is cut: shared subexpressions would otherwise make it exponential

Piece = tuple[str, int]


def text(expr: Expr, called: Mapping[Any, str] | None = None) -> str:
    """``expr`` as one line of text, cut where it is very long.

    Args:
        called: what tensors are called in place of their labels.
    """
    nodes = postorder(expr) if expr.children else [expr]
    names = _axis_names(nodes)
    memo: dict[Expr, Piece] = {}
    for node in nodes:
        if isinstance(node, Read) and called and node.tensor in called:
            written, strength = _element(called[node.tensor], node, lambda child: memo[child])
        else:
            written, strength = _piece(node, lambda child: memo[child], names)
        memo[node] = (written if len(written) <= _LONGEST else written[:_LONGEST] + " …", strength)
    return memo[expr][0]


def _axis_names(nodes: Sequence[Expr]) -> dict[Axis, str]:
    """A name for each axis among ``nodes``; axes of the same name are told apart by primes."""
    names: dict[Axis, str] = {}
    for node in nodes:
        axes = node.axes if isinstance(node, Reduce) else (node,) if isinstance(node, Axis) else ()
        for axis in axes:
            if axis not in names:
                name = axis.name
                while name in names.values():
                    name += "'"
                names[axis] = name
    return names


def _piece(node: Expr, of: Callable[[Expr], Piece], names: dict[Axis, str]) -> Piece:
    match node:
        case Const(value):
            written = str(value)
            return written, _SIGN if written.startswith("-") else _ATOM
        case Axis():
            return names[node], _ATOM
        case Var(name):
            return name, _ATOM
        case Symbol():
            return node.name, _ATOM
        case Read(tensor, _):
            return _element(tensor.name, node, of)
        case Call(op, (a, Call(inner, (b,)))) if op is MAXIMUM and inner is NEGATIVE and a is b and node.weak:
            return f"abs({of(a)[0]})", _ATOM  # as it was written: an index has no other maximum of itself
        case Call(op, args):
            return _call_piece(op.name, [of(a) for a in args])
        case Reduce():
            return _reduce_piece(node, of, names)
    raise AssertionError(type(node))


def _element(name: str, read: Read, of: Callable[[Expr], Piece]) -> Piece:
    return f"{name}[{', '.join(of(i)[0] for i in read.indices)}]", _ATOM


def _call_piece(name: str, args: Sequence[Piece]) -> Piece:
    if name in _INFIX:
        sign, strength = _INFIX[name]
        left, right = (_wrap(a, least) for a, least in zip(args, _least(strength), strict=True))
        return f"{left} {sign} {right}", strength
    if name == "negative":
        return f"-{_wrap(args[0], _SIGN)}", _SIGN
    if name == "logical_not":
        return f"not {_wrap(args[0], _COMPARISON)}", 5
    return f"{name}({', '.join(a[0] for a in args)})", _ATOM


def _least(strength: int) -> tuple[int, int]:
    """How strongly the operands of an infix operator must bind to stand without parentheses."""
    if strength == _COMPARISON:  # a < b < c is a chain, not (a < b) < c
        return strength + 1, strength + 1
    if strength == _POWER:  # groups to the right, and a sign may follow it
        return strength + 1, _SIGN
    return strength, strength + 1  # a - (b - c) keeps its parentheses


def _wrap(piece: Piece, strength: int) -> str:
    written, own = piece
    return written if own >= strength else f"({written})"


def _reduce_piece(node: Reduce, of: Callable[[Expr], Piece], names: dict[Axis, str]) -> Piece:
    ranges = ("" if a.is_open else f" in [{text(a.lo)}, {text(a.hi)})" for a in node.axes)
    axes = ", ".join(f"{names[a]}{own}" for a, own in zip(node.axes, ranges, strict=True))
    body = ", ".join(of(e)[0] for e in node.exprs)
    condition = "" if bool_true(node.where) else f" where {of(node.where)[0]}"
    suffix = f"[{node.position}]" if node.reducer.arity > 1 else ""
    return f"{node.reducer.label}({body} for {axes}{condition}){suffix}", _ATOM


show_with(text)


def bool_true(condition: Expr) -> bool:
    return isinstance(condition, Const) and condition.value is True
