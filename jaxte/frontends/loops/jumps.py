"""``break``, ``continue`` and ``while`` as loops over ranges with an ``if``: what may be left out stands in the branch that is executed else."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", bound=ast.AST)
_FLIPPED: dict[type, type] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


def jumps_in(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The ``break`` and ``continue`` of the loop that has this ``body``, those of loops within left out."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, (ast.Break, ast.Continue)):
            found.append(node)
        elif isinstance(node, ast.If):
            found += [*jumps_in(node.body), *jumps_in(node.orelse)]
    return found


def without_jumps(body: Sequence[ast.stmt], flag: str) -> list[ast.stmt]:
    """``body`` with what follows a jump in the branch that does not jump; ``flag`` is set where the loop ends."""
    found: list[ast.stmt] = []
    for n, node in enumerate(body):
        rest = body[n + 1 :]
        if isinstance(node, ast.Continue):
            return [*found, _at(node, ast.Pass())]
        if isinstance(node, ast.Break):
            return [*found, assignment(flag, True, node)]
        if isinstance(node, ast.If) and jumps_in([node]):
            taken, other = (
                without_jumps([*node.body, *rest], flag),
                without_jumps([*node.orelse, *rest], flag),
            )
            return [*found, _at(node, ast.If(node.test, taken, other))]
        found.append(node)
    return found


def unless(flag: str, body: Sequence[ast.stmt], like: ast.stmt) -> ast.stmt:
    """``if not flag: body``."""
    test = _at(like, ast.UnaryOp(ast.Not(), _at(like, ast.Name(flag, ast.Load()))))
    return _at(like, ast.If(test, list(body), []))


def assignment(name: str, value: bool, like: ast.AST) -> ast.stmt:
    """``name = value``."""
    return _at(like, ast.Assign([_at(like, ast.Name(name, ast.Store()))], _at(like, ast.Constant(value))))


def stop_unless(test: ast.expr) -> ast.stmt:
    """``if test: pass else: break``."""
    return _at(test, ast.If(test, [_at(test, ast.Pass())], [_at(test, ast.Break())]))


@dataclass(frozen=True)
class Counted:
    """A ``while`` that counts: ``for name in range(first, bound, step)``, of which ``others`` is tested before each iteration.

    Attributes:
        is_inclusive: whether the bound itself is taken, too.
    """

    name: str
    first: ast.expr
    bound: ast.expr
    step: int
    is_inclusive: bool
    others: list[ast.expr]
    body: list[ast.stmt]


def counted(node: ast.While, function: ast.FunctionDef) -> Counted | None:
    """What ``node`` counts, if one of its conditions compares a name that is increased by a number at the end of its body, and set once before."""
    tests = (
        node.test.values
        if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        else [node.test]
    )
    *body, last = node.body
    if not isinstance(last, ast.AugAssign) or not isinstance(last.target, ast.Name) or not body:
        return None
    name, step = last.target.id, _number(last)
    stores = [
        n for n in ast.walk(function)
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
    ]  # fmt: skip
    every = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    if not step or len(stores) != 1 or len(every) != 2 or stores[0].lineno > node.lineno:
        return None
    if any(isinstance(n, ast.Continue) for n in jumps_in(body)):
        return None
    for n, test in enumerate(tests):
        found = _bound(test, name, step)
        if found is not None:
            others = [t for k, t in enumerate(tests) if k != n]
            return Counted(name, stores[0].value, found, step, _is_inclusive(test), others, body)
    return None


def _number(node: ast.AugAssign) -> int:
    """By how much a name is increased; 0 where that is no number."""
    value = node.value.value if isinstance(node.value, ast.Constant) else 0
    if not isinstance(value, int) or not isinstance(node.op, (ast.Add, ast.Sub)):
        return 0
    return value if isinstance(node.op, ast.Add) else -value


def _bound(test: ast.expr, name: str, step: int) -> ast.expr | None:
    """What ``test`` says that ``name`` stays below, or above where it is decreased."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, kind, right = test.left, type(test.ops[0]), test.comparators[0]
    if isinstance(right, ast.Name) and right.id == name and kind in _FLIPPED:
        left, kind, right = right, _FLIPPED[kind], left
    if not isinstance(left, ast.Name) or left.id != name:
        return None
    wanted = (ast.Lt, ast.LtE) if step > 0 else (ast.Gt, ast.GtE)
    return right if issubclass(kind, wanted) else None


def _is_inclusive(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.LtE, ast.GtE))


def _at(like: ast.AST, node: T) -> T:
    return ast.copy_location(node, like)
