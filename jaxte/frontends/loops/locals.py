"""Names that live within a branch of a choice by data: no value of theirs comes in or goes out."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence


def names_of_its_own(body: Sequence[ast.stmt], function: ast.FunctionDef) -> list[str]:
    """The names that the first statement of ``body`` to mention them gives a value, and whose values nothing else in ``function`` reads.

    So does the first of each iteration of a loop, where no statement outside of that mentions them. Where other statements mention the name,
    they stand in other blocks that give it a value first, too, and that ``body`` is no part of.
    """
    inside = _nodes(body)
    first = _set_first(body)
    others: dict[str, set[int]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in first and id(node) not in inside:
            others.setdefault(node.id, set()).add(id(node))
    apart = [(set(_set_first(own)), _nodes(own)) for own in _blocks(function)] if others else []
    found = []
    for name in first:
        left = others.get(name, set())
        for names, nodes in apart:
            if name in names and id(body[0]) not in nodes:
                left = left - nodes
        if not left:
            found.append(name)
    return found


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """The bodies of choices and loops in ``function``."""
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.For, ast.While)):
            yield node.body
        if isinstance(node, ast.If) and node.orelse:
            yield node.orelse


def _nodes(body: Iterable[ast.AST]) -> set[int]:
    return {id(n) for own in body for n in ast.walk(own)}


def _set_first(body: Sequence[ast.AST]) -> list[str]:
    """The names that the first of ``body`` to mention them gives a value."""
    mentioned = [[n for n in ast.walk(own) if isinstance(n, ast.Name)] for own in body]
    count = Counter(name for names in mentioned for name in {n.id for n in names})
    seen: set[str] = set()
    found: list[str] = []
    for own, names in zip(body, mentioned, strict=True):
        if isinstance(own, ast.Assign):
            once = Counter(n.id for n in names)
            here = [n.id for n in names if isinstance(n.ctx, ast.Store) and once[n.id] == 1]
        elif isinstance(own, (ast.For, ast.While)):
            head = own.test if isinstance(own, ast.While) else own.iter
            here = [name for name in _set_first([head, *own.body]) if count[name] == 1]
        else:
            here = []
        found += [name for name in here if name not in seen]
        seen.update(n.id for n in names)
    return found
