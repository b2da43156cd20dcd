"""Buffers that change places: names that exchange their arrays within a loop, or take the array that another name hands over."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from jaxte.frontends.loops.calls import Calls
from jaxte.frontends.loops.idioms import is_handed_over
from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.values import Block


class Buffers(Calls):
    """Reads what is said of arrays by their names alone."""

    @abstractmethod
    def put_block(self, place: Block, value: Any, node: ast.AST, op: str | None = None) -> None:
        """``place[...] = value``."""

    @abstractmethod
    def put_name(self, target: ast.Name, value: Any, node: ast.expr) -> None:
        """``target = value``."""

    @abstractmethod
    def stored(self, key: tuple[object, ...], name: str, value: Any, node: ast.AST) -> Variable:
        """``value`` in a variable."""

    def exchanged(self, targets: Sequence[ast.expr], values: Sequence[Any], node: ast.expr) -> bool:
        """Whether names change arrays among them, and take those that others hand over, within a loop or an ``if``: then the arrays change contents, which is the same to all that is read later."""
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        owned, arrays = (
            [v for v in side if isinstance(v, Variable) and v.shape]
            for side in (map(self.frame.names.get, names), values)
        )
        if len(arrays) < len(targets) or len(owned) < len(targets) or self.recorder.depth <= self.frame.base:
            return False
        handed = [name for name in self._handed_over(node) if name not in names]
        known = {id(v) for v in (*owned, *map(self.frame.names.get, handed))}
        if not known.issuperset(map(id, arrays)) or any(
            len(set(map(id, s))) < len(s) for s in (arrays, owned)
        ):
            return False
        others = [v for name, v in self.frame.names.items() if name not in (*names, *handed)]
        every = [*arrays, *owned]
        given = [v for v in every if v.initial is not None]
        if any(v is other for v in every for other in others) or len({(v.shape, v.dtype) for v in every}) > 1:
            return False
        if any(has_views(others, v) for v in every):
            return False
        if given and not self.frame.text.has_result:
            raise self.fault(
                node,
                f"{given[0].name} is an argument, and stands for another array from here on, so that the function does not write its result into it; return it",
            )
        held = []
        for n, own in enumerate(arrays):
            key = (self.frame.number, "exchanged", n, node.lineno, node.col_offset, self.recorder.loops)
            held.append(self.block(self.stored(key, f"{own.name}_held", self.block(own, node), node), node))
        for array, value in zip(owned, held, strict=True):
            self.put_block(self.block(array, node), value, node)
        return True

    def _handed_over(self, node: ast.expr) -> list[str]:
        """The names on the other side of an assignment whose arrays no statement means by them any more."""
        around = self.frame.around[-1:]
        own = next((s for r in around for s in r.body if isinstance(s, ast.Assign) and s.value is node), None)
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        return [n for n in names if own is not None and self.is_handed_over(n, own)]

    def is_handed_over(self, name: str, node: ast.stmt) -> bool:
        """Whether what takes the array of ``name`` in ``node``, within a loop, is the only one to have it: the name is given another one next."""
        own, names = self.frame.names.get(name), self.frame.names.values()
        if not isinstance(own, Variable) or not own.shape or sum(v is own for v in names) > 1:
            return False
        text = self.frame.text.tree
        return is_handed_over(name, self.frame.around, node, text) and not has_views(names, own)

    def hand_over(self, name: str, value: ast.Name, node: ast.Assign) -> None:
        """``name`` takes the elements of an array that its own name does not mean any more."""
        array = self.frame.names[value.id]
        self.put_name(
            ast.copy_location(ast.Name(name, ast.Store()), node.targets[0]),
            self._elements(array, value),
            value,
        )

    def _elements(self, array: Variable, node: ast.AST) -> Block:
        return Block(self.block(array, node).shape, self.block(array, node).element)


def has_views(names: Iterable[Any], variable: Variable) -> bool:
    """Whether a name stands for a part of ``variable``."""
    return any(isinstance(own, Block) and own.of is variable for own in names)
