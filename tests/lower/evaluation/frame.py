"""Where nodes are evaluated: the arrays that have names, functions, sizes and variables of loops; what each node is asked of its rule.

What a node says of itself is checked on the way: its value has the shape and the dtype that were inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxte.lang.expr import Axis, Call, Const, Expr, Var
from jaxte.lang.graphs import ordered
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.loops import Each, Parts
from jaxte.lower.arrays.node import ArrayError, Node
from jaxte.meaning.rounding import storage

Value = Any
"""An array; a list of what a loop makes; a tuple of values; None."""


class Frame:
    """Evaluates nodes by ``rules``.

    Args:
        rules: what a node of each class is.
        names: the values that have names.
        functions: the functions that have names.
        positions: what sizes and variables of loops are.
        is_checked: whether values are compared with the shapes that nodes say; not in functions of arrays of any extents.
    """

    def __init__(
        self,
        rules: Rules,
        names: Mapping[str, Value],
        functions: Mapping[str, Callable[..., Value]],
        positions: Mapping[Expr, int],
        is_checked: bool = True,
    ) -> None:
        self.rules = rules
        self.names = names
        self.functions = functions
        self.positions = positions
        self.is_checked = is_checked
        self._values: dict[Node, Value] = {}

    def inside(self, names: Mapping[str, Value], positions: Mapping[Expr, int] | None = None) -> Frame:
        """A frame with further names, or with variables of a loop."""
        named, at = {**self.names, **names}, {**self.positions, **(positions or {})}
        return Frame(self.rules, named, self.functions, at, self.is_checked)

    def value(self, root: Node) -> Value:
        """The value of ``root``.

        Raises:
            ArrayError: a node has another shape or dtype than it says, or reads what is not there.
        """
        for node in ordered([root], lambda node: () if node in self._values else _operands(node)):
            if node not in self._values:
                self._values[node] = self._evaluated(node)
        return self._values[root]

    def values(self, nodes: Sequence[Node]) -> list[Value]:
        return [self.value(node) for node in nodes]

    def size(self, extent: Expr | int) -> int:
        """The integer that an extent, or a position, is."""
        if isinstance(extent, int):
            return extent
        memo: dict[Expr, int] = {}
        for node in postorder(extent):
            match node:
                case Const(value):
                    memo[node] = int(value)  # type: ignore[arg-type]
                case Var() | Axis():
                    if node not in self.positions:
                        raise ArrayError(f"{node!r} has no value here")
                    memo[node] = self.positions[node]
                case Call(op, args):
                    memo[node] = int(TABLE[op.name].numpy(*(memo[a] for a in args)))
        return memo[extent]

    def shape(self, extents: Sequence[Expr]) -> tuple[int, ...]:
        return tuple(map(self.size, extents))

    def _evaluated(self, node: Node) -> Value:
        try:
            value = self.rules[type(node)](node, self)
            if self.is_checked and isinstance(value, np.ndarray) and not node.is_tuple:
                self._check(node, value)
        except ArrayError as error:
            raise ArrayError(f"{type(node).__name__}: {error}") from None
        return value

    def _check(self, node: Node, value: np.ndarray) -> None:
        # a slice that begins behind its end, x[n:] of m < n elements, has none
        if value.shape != tuple(max(e, 0) for e in self.shape(node.shape)):
            raise ArrayError(f"its shape is {value.shape}, and it says {self.shape(node.shape)}")
        if not node.kind[1] and value.dtype != storage(node.kind):
            raise ArrayError(f"its dtype is {value.dtype}, and it says {node.dtype}")


def _operands(node: Node) -> tuple[Node, ...]:
    """What is evaluated before ``node``: not the element of a loop, which has another value in each turn."""
    if isinstance(node, Each):
        return tuple(a for own in node.loops if isinstance(own, Parts) for a in own.arrays)
    return node.operands


Rule = Callable[[Any, Frame], Value]
Rules = Mapping[type[Node], Rule]
"""What the nodes of each class are."""
