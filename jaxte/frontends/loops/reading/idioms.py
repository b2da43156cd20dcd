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
    if (
        not arrays
        or len(names) != len(arrays)
        or not all(isinstance(n, (ast.Name, ast.Tuple)) for n in names)
    ):
        return None
    like, start = node.iter, _first_count(node.iter)
    counts = counter is not None and start is None
    position = counter.id if counts and counter else f"{_ITERATION} {node.lineno}.{node.col_offset}"
    lengths = [_call("len", [a], like) for a in arrays]
    bound = lengths[0] if len(lengths) == 1 else _call("min", lengths, like)
    taken = [
        located(name, ast.Assign([name], _element(array, position, like)))
        for name, array in zip(names, arrays, strict=True)
    ]
    if counter is not None and start is not None:
        taken.insert(0, located(counter, ast.Assign([counter], _sum(start, position, like))))
    target = located(node.target, ast.Name(position, ast.Store()))
    return located(node, ast.For(target, _call("range", [bound], like), [*taken, *node.body], node.orelse))


def counters_of(node: ast.For) -> list[ast.AST]:
    """The names that count the iterations of a loop; its others are given elements."""
    _, arrays, counter = _iterated(node)
    if not arrays:
        return list(ast.walk(node.target))
    return [counter] if counter is not None and _first_count(node.iter) is None else []


def _iterated(node: ast.For) -> tuple[list[ast.expr], list[ast.expr], ast.Name | None]:
    """The names that a loop gives elements, the arrays that these are of, and the name of the position, if it has one."""
    match node.iter, node.target:
        case ast.Name() | ast.Subscript() as array, ast.Name() | ast.Tuple() as name:
            return [name], [array], None
        case ast.Call(func=ast.Name("zip"), args=arrays, keywords=[]), ast.Tuple(elts=names) if _are_arrays(
            arrays
        ):
            return list(names), list(arrays), None
        case ast.Call(func=ast.Name("enumerate"), args=[own, *_]) as call, ast.Tuple(
            elts=[ast.Name() as counter, name]
        ) if _counts(call):
            match own, name:
                case ast.Name() | ast.Subscript() as array, _:
                    return [name], [array], counter
                case ast.Call(func=ast.Name("zip"), args=arrays, keywords=[]), ast.Tuple(elts=names) if (
                    _are_arrays(arrays)
                ):
                    return list(names), list(arrays), counter
    return [], [], None


def _counts(call: ast.Call) -> bool:
    """Whether ``enumerate`` counts from 0, or from a number that is written out."""
    return (not call.keywords and len(call.args) == 1) or _first_count(call) is not None


def _first_count(call: ast.expr) -> ast.Constant | None:
    """The number that ``enumerate(x, 1)`` and ``enumerate(x, start=1)`` count from."""
    match call:
        case (
            ast.Call(func=ast.Name("enumerate"), args=[_, ast.Constant(value=int()) as start], keywords=[])
            | ast.Call(
                func=ast.Name("enumerate"),
                args=[_],
                keywords=[ast.keyword(arg="start", value=ast.Constant(value=int()) as start)],
            )
        ):
            return start
    return None


def _sum(start: ast.expr, position: str, like: ast.AST) -> ast.expr:
    return located(like, ast.BinOp(located(like, ast.Name(position, ast.Load())), ast.Add(), start))


def _are_arrays(nodes: Sequence[ast.expr]) -> bool:
    return all(isinstance(n, (ast.Name, ast.Subscript)) for n in nodes)


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
    left = ast.Tuple([located(like, ast.Name(n, ast.Store())) for n in (u, v)], ast.Store())
    right = ast.Tuple([located(like, ast.Name(n, ast.Load())) for n in (v, u)], ast.Load())
    return located(like, ast.Assign([located(like, left)], located(like, right)))


def is_handed_over(
    name: str, loops: Sequence[ast.For | ast.While], node: ast.stmt, function: ast.FunctionDef
) -> bool:
    """Whether ``node``, in the innermost of ``loops``, is the last statement to mention the array ``name`` before that is given another one: the next of the
    iteration that does, or the first, where no other statement of ``function`` mentions it.
    """
    if not loops or node not in loops[-1].body:
        return False
    behind = loops[-1].body[loops[-1].body.index(node) + 1 :]
    later = next((own for own in behind if _mentions(own, name)), None)
    if isinstance(later, ast.Assign):
        return _is_set(later, name)
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
    return _is_set(node, name) and not isinstance(node.value, (ast.Name, ast.IfExp, ast.Tuple))


def _is_set(node: ast.Assign, name: str) -> bool:
    """Whether ``node`` gives ``name`` alone a value, which is not made of the one before."""
    (target, *others) = node.targets
    is_name = isinstance(target, ast.Name) and target.id == name and not others
    return is_name and not _mentions(node.value, name)


def _renamed(node: ast.stmt) -> tuple[str, str] | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=source)):
            return target, source
    return None


def _mentions(node: ast.AST, name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _element(array: ast.expr, position: str, like: ast.AST) -> ast.expr:
    return located(like, ast.Subscript(array, located(like, ast.Name(position, ast.Load())), ast.Load()))


def _call(name: str, args: Sequence[ast.expr], like: ast.AST) -> ast.expr:
    return located(like, ast.Call(located(like, ast.Name(name, ast.Load())), list(args), []))


def located(like: ast.AST, node: T) -> T:
    """``node`` where ``like`` stands in the text."""
    return ast.copy_location(node, like)


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
            return [*found, located(node, ast.Pass())]
        if isinstance(node, ast.Break):
            return [*found, assignment(flag, True, node)]
        if isinstance(node, ast.If) and jumps_in([node]):
            taken, other = (
                without_jumps([*node.body, *rest], flag),
                without_jumps([*node.orelse, *rest], flag),
            )
            return [*found, located(node, ast.If(node.test, taken, other))]
        found.append(node)
    return found


def unless(flag: str, body: Sequence[ast.stmt], like: ast.stmt) -> ast.stmt:
    """``if not flag: body``."""
    test = located(like, ast.UnaryOp(ast.Not(), located(like, ast.Name(flag, ast.Load()))))
    return located(like, ast.If(test, list(body), []))


def assignment(name: str, value: ast.expr | bool, like: ast.AST) -> ast.stmt:
    """``name = value``."""
    own = value if isinstance(value, ast.expr) else located(like, ast.Constant(value))
    return located(like, ast.Assign([located(like, ast.Name(name, ast.Store()))], own))


def stop_unless(test: ast.expr) -> ast.stmt:
    """``if test: pass else: break``."""
    return located(test, ast.If(test, [located(test, ast.Pass())], [located(test, ast.Break())]))
