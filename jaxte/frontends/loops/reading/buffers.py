"""Buffers that change places: names that exchange their arrays within a loop, or take the array that another name hands over."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.reading.calls import Calls
from jaxte.frontends.loops.reading.idioms import is_handed_over
from jaxte.frontends.loops.reading.values import Block


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
        if any(is_meant(v, others) for v in every) or len({(v.shape, v.dtype) for v in every}) > 1:
            return False
        if not all(map(self.is_ours, every)):
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
            array.lies(all(v.is_laid_out for v in arrays))
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
        if not isinstance(own, Variable) or not own.shape or sum(is_meant(own, [v]) for v in names) > 1:
            return False
        if not self.is_ours(own):
            return False
        return is_handed_over(name, self.frame.around, node, self.frame.text.tree)

    def is_ours(self, variable: Variable) -> bool:
        """Whether no name of a function that calls this one stands for ``variable``."""
        return not self.frame.is_called or self.is_made_here(variable)

    def is_made_here(self, variable: Variable) -> bool:
        """Whether statements of this function make ``variable``, and nobody hands it over."""
        keys = [key for key, own in self.recorder.variables.items() if own is variable]
        return all(
            isinstance(k, tuple) and isinstance(k[0], tuple) and k[0][0] == self.frame.number for k in keys
        )

    def hand_over(self, name: str, value: ast.Name, node: ast.Assign) -> None:
        """``name`` takes the elements of an array that its own name does not mean any more."""
        array = self.frame.names[value.id]
        self.put_name(
            ast.copy_location(ast.Name(name, ast.Store()), node.targets[0]),
            self.elements(array, value),
            value,
        )

    def elements(self, array: Variable, node: ast.AST) -> Block:
        """The elements of ``array``, which no name stands for any more, as those of a new one."""
        return replace(self.block(array, node), of=None)


def is_meant(variable: Variable, values: Iterable[Any]) -> bool:
    """Whether one of ``values``, or of what they hold, is ``variable`` or a part of it."""
    for own in values:
        if own is variable or (isinstance(own, Block) and own.of is variable):
            return True
        if isinstance(own, (tuple, list)) and is_meant(variable, own):
            return True
    return False
