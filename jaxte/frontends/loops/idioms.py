"""Idioms of Python as the statements that they stand for: loops over the elements of an array, and names that change arrays.

``for x in a`` is a loop over positions. Where ``u, v = v, u`` within a loop makes names change arrays, the arrays change contents; and where ``u = d`` gives
``u`` an array that ``d`` does not mean any more, since the next that is said of ``d`` is another array, ``u`` has its elements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T", bound=ast.AST)
_ITERATION = "te.loops: position"


def over_positions(node: ast.For) -> ast.For | None:
    """A loop over arrays, ``enumerate`` of one, or ``zip`` of several, as one over positions; None for any other loop."""
    names, arrays, counter = _iterated(node)
    if not arrays or len(names) != len(arrays) or not all(isinstance(n, ast.Name) for n in names):
        return None
    position = counter.id if counter is not None else f"{_ITERATION} {node.lineno}.{node.col_offset}"
    like = node.iter
    lengths = [_call("len", [a], like) for a in arrays]
    bound = lengths[0] if len(lengths) == 1 else _call("min", lengths, like)
    taken = [
        _at(name, ast.Assign([name], _element(array, position, like)))
        for name, array in zip(names, arrays, strict=True)
    ]
    target = _at(node.target, ast.Name(position, ast.Store()))
    return _at(node, ast.For(target, _call("range", [bound], like), [*taken, *node.body], node.orelse))


def counters_of(node: ast.For) -> list[ast.AST]:
    """The names that count the iterations of a loop; its others are given elements."""
    _, arrays, counter = _iterated(node)
    return list(ast.walk(node.target)) if not arrays else [] if counter is None else [counter]


def _iterated(node: ast.For) -> tuple[list[ast.expr], list[ast.expr], ast.Name | None]:
    """The names that a loop gives elements, the arrays that these are of, and the name of the position, if it has one."""
    match node.iter, node.target:
        case ast.Name() | ast.Subscript() as array, ast.Name() as name:
            return [name], [array], None
        case (
            ast.Call(func=ast.Name("enumerate"), args=[ast.Name() | ast.Subscript() as array], keywords=[]),
            ast.Tuple(elts=[ast.Name() as counter, name]),
        ):
            return [name], [array], counter
        case ast.Call(func=ast.Name("zip"), args=arrays, keywords=[]), ast.Tuple(elts=names) if all(
            isinstance(a, (ast.Name, ast.Subscript)) for a in arrays
        ):
            return list(names), list(arrays), None
    return [], [], None


def exchanges(body: Sequence[ast.stmt], function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """``body`` with ``t = u; u = v; v = t`` as ``u, v = v, u``, where nothing else mentions ``t``."""
    rest = list(body)
    while rest:
        names = [_renamed(own) for own in rest[:3]]
        if len(names) == 3 and None not in names:
            (t, u), (u1, v), (v1, t1) = (n for n in names if n is not None)
            if (t, u, v) == (t1, u1, v1) and len({t, u, v}) == 3 and _mentions(function, t) == 2:
                yield _exchange(u, v, rest[1])
                del rest[:3]
                continue
        yield rest.pop(0)


def _exchange(u: str, v: str, like: ast.stmt) -> ast.stmt:
    """``u, v = v, u``."""
    left = ast.Tuple([_at(like, ast.Name(n, ast.Store())) for n in (u, v)], ast.Store())
    right = ast.Tuple([_at(like, ast.Name(n, ast.Load())) for n in (v, u)], ast.Load())
    return _at(like, ast.Assign([_at(like, left)], _at(like, right)))


def is_handed_over(
    name: str, loops: Sequence[ast.For | ast.While], node: ast.stmt, function: ast.FunctionDef
) -> bool:
    """Whether ``node``, in the innermost of ``loops``, is the last statement of an iteration to mention the array ``name``, which the first one makes, and no other
    statement of ``function`` mentions it.
    """
    if not loops or node not in loops[-1].body:
        return False
    said = [own for own in loops[-1].body if _mentions(own, name)]
    within = sum(_mentions(own, name) for own in said)
    first, last = said[0], said[-1]
    return (
        last is node
        and first is not node
        and isinstance(first, ast.Assign)
        and _is_new(first, name)
        and within == _mentions(function, name)
    )


def _is_new(node: ast.Assign, name: str) -> bool:
    """Whether ``node`` gives ``name`` an array that is made there."""
    (target, *others) = node.targets
    is_name = isinstance(target, ast.Name) and target.id == name and not others
    return (
        is_name
        and not isinstance(node.value, (ast.Name, ast.IfExp, ast.Tuple))
        and not _mentions(node.value, name)
    )


def _renamed(node: ast.stmt) -> tuple[str, str] | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=source)):
            return target, source
    return None


def _mentions(node: ast.AST, name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _element(array: ast.expr, position: str, like: ast.AST) -> ast.expr:
    return _at(like, ast.Subscript(array, _at(like, ast.Name(position, ast.Load())), ast.Load()))


def _call(name: str, args: Sequence[ast.expr], like: ast.AST) -> ast.expr:
    return _at(like, ast.Call(_at(like, ast.Name(name, ast.Load())), list(args), []))


def _at(like: ast.AST, node: T) -> T:
    return ast.copy_location(node, like)
