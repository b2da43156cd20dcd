"""``while`` loops of a program: those that count, as loops over ranges, and those over known numbers, written out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jaxte.frontends.loops.reading.frames import truth
from jaxte.frontends.loops.reading.idioms import assignment, jumps_in, located, stop_unless
from jaxte.frontends.loops.reading.ranges import Ranges
from jaxte.frontends.loops.reading.values import is_static
from jaxte.lang.expr import Expr
from jaxte.lang.limits import MOST_PARTS

NO_BOUND = "a while loop has no bound that is known; write for t in range(most): if not (...): break, or count in it, as in while t < most and ...: ...; t += 1"


class Whiles(Ranges):
    """Reads loops that go on as long as a test holds."""

    def counted(self, node: ast.While, own: Counted) -> None:
        """A ``while`` that counts, as a loop over a range that may end earlier."""
        if node.orelse:
            raise self.fault(node.orelse[0], "else of a loop is no part of te.loops; write an if behind it")
        first, bound = self.number(own.first), self.number(own.bound)
        if not is_static(first) or not is_static(bound):
            self.as_known(own.first)
            self.as_known(own.bound)
            raise self.fault(node.test, f"what {own.name} counts from and to depends on data; {NO_BOUND}")
        end = bound + (1 if own.step > 0 else -1) if own.is_inclusive else bound
        body = [*(stop_unless(t) for t in own.others), *own.body]
        if (self.frame.number, own.name) not in self.forced:
            self.over_range(node, own.name, (first, end, own.step), body, None)
            self.frame.end(own.name, self.frame.ends(own.name))
            return
        # what it counts to is read behind it: a number that each iteration sets
        reached = f"te.loops: reached by {own.name}"
        self.statement(assignment(reached, own.first, node))
        body.append(assignment(reached, own.next(node), node))
        self.over_range(node, own.name, (first, end, own.step), body, None)
        self.statement(assignment(own.name, ast.copy_location(ast.Name(reached, ast.Load()), node), node))

    def repeated(self, node: ast.While) -> None:
        """A ``while`` over numbers that are known, as ``while n > 1: ...; n //= 2``, written out."""
        if node.orelse or jumps_in(node.body):
            raise self.fault(node, NO_BOUND)
        for _ in range(MOST_PARTS + 1):
            test = truth(self.number(node.test))
            if isinstance(test, Expr):
                self.as_known(node.test)
                raise self.fault(node, NO_BOUND)
            if not test:
                return
            self.block_of(node.body)
        raise self.fault(
            node,
            f"a while loop over known numbers is written out, and this one has more than {MOST_PARTS} iterations",
        )


_FLIPPED: dict[type, type] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


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

    def next(self, like: ast.AST) -> ast.expr:
        """What it counts in the next iteration."""
        now, step = located(like, ast.Name(self.name, ast.Load())), located(like, ast.Constant(self.step))
        return located(like, ast.BinOp(now, ast.Add(), step))


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
    stores = [v for n in ast.walk(function) if isinstance(n, ast.Assign) for v in _given(n, name)]
    every = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    if not step or len(stores) != 1 or len(every) != 2 or stores[0].lineno > node.lineno:
        return None
    if any(isinstance(n, ast.Continue) for n in jumps_in(body)):
        return None
    before = [n for n in ast.walk(function) if stores[0].lineno <= getattr(n, "lineno", 0) < node.lineno]
    if _named(stores[0]) & (_changed(before) - {name}) or not _is_begun_with(node, stores[0], function):
        return None
    for n, test in enumerate(tests):
        found = _bound(test, name, step)
        if found is not None and not _named(found) & _changed(n for own in node.body for n in ast.walk(own)):
            others = [t for k, t in enumerate(tests) if k != n]
            return Counted(name, stores[0], found, step, _is_inclusive(test), others, body)
    return None


def _named(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _changed(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements among ``nodes`` give values, or whose elements they do."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found |= _named(node.value)
    return found


def _is_begun_with(node: ast.While, first: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether ``first`` is given anew each time that ``node`` begins: every loop around the one is around the other."""
    loops = [n for n in ast.walk(function) if isinstance(n, (ast.For, ast.While)) and n is not node]
    return all(first in ast.walk(own) for own in loops if node in ast.walk(own))


def _given(node: ast.Assign, name: str) -> Iterator[ast.expr]:
    """What ``node`` gives ``name``, by itself or among several."""
    for target in node.targets:
        match target, node.value:
            case ast.Name(id=own), value if own == name:
                yield value
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                yield from (
                    v for t, v in zip(names, values, strict=True) if isinstance(t, ast.Name) and t.id == name
                )


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
