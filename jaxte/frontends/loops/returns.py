"""``return`` in the branches of an ``if``, as the values of names that are returned at the end of a function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T", bound=ast.AST)
_RETURNED = "returned"


def with_one_return(function: ast.FunctionDef) -> ast.FunctionDef:
    """``function`` with what is returned in branches of an ``if`` as the values of names, which are returned at its end."""
    values = _returned(function.body)
    if len(values) < 2 or None in values:
        return function
    lengths = {len(v.elts) if isinstance(v, ast.Tuple) else None for v in values}
    if len(lengths) > 1:
        return function
    (length,) = lengths
    names = [_RETURNED] if length is None else [f"{_RETURNED}_{n}" for n in range(length)]
    body = _settled(function.body, names)
    if body is None:
        return function
    last = function.body[-1]
    read: list[ast.expr] = [_at(last, ast.Name(n, ast.Load())) for n in names]
    found = read[0] if length is None else _at(last, ast.Tuple(read, ast.Load()))
    own = ast.FunctionDef(
        function.name, function.args, [*body, _at(last, ast.Return(found))], function.decorator_list
    )
    return _at(function, own)


def _returned(body: Sequence[ast.stmt]) -> list[ast.expr | None]:
    """What is returned in ``body`` and in the branches of it, loops left out."""
    found: list[ast.expr | None] = []
    for node in body:
        if isinstance(node, ast.Return):
            found.append(node.value)
        elif isinstance(node, ast.If):
            found += [*_returned(node.body), *_returned(node.orelse)]
    return found


def _settled(body: Sequence[ast.stmt], names: Sequence[str]) -> list[ast.stmt] | None:
    """``body`` with assignments of ``names`` in place of each return; None where it may end without one."""
    found: list[ast.stmt] = []
    for n, node in enumerate(body):
        rest = body[n + 1 :]
        if isinstance(node, ast.Return) and node.value is not None:
            values = node.value.elts if isinstance(node.value, ast.Tuple) and len(names) > 1 else [node.value]
            own = [
                _at(node, ast.Assign([_at(node, ast.Name(name, ast.Store()))], value))
                for name, value in zip(names, values, strict=True)
            ]
            return [*found, *own]
        if isinstance(node, ast.If) and _returned([node]):
            branches = [
                _settled([*own, *([] if _ends(own) else rest)], names) for own in (node.body, node.orelse)
            ]
            if branches[0] is None or branches[1] is None:
                return None
            return [*found, _at(node, ast.If(node.test, branches[0], branches[1]))]
        found.append(node)
    return None


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether ``body`` returns, whatever holds."""
    return any(
        isinstance(node, ast.Return) or (isinstance(node, ast.If) and _ends(node.body) and _ends(node.orelse))
        for node in body
    )


def _at(like: ast.AST, node: T) -> T:
    return ast.copy_location(node, like)
