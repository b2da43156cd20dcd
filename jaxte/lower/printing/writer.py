"""Numbers, dtypes and tuples as Python writes them.

How nodes and extents become text, each with how strongly it binds; what a node is written as is for the rules.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Axis, Call, Const, Expr, Scalar, Var
from jaxte.lang.scalars.rows import CALL, SIGN
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.text import text as shown
from jaxte.lang.walk import all_of, postorder
from jaxte.lower.arrays import elementwise
from jaxte.lower.arrays.node import Node, extents_in, nodes_below
from jaxte.sets.index_forms import written_size

Written = tuple[str, int]  # a text and how strongly it binds


def number_text(value: Scalar) -> Written:
    """A Python number."""
    if isinstance(value, bool):
        return str(value), CALL
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "jnp.nan", CALL
        return ("jnp.inf", CALL) if value > 0 else ("-jnp.inf", SIGN)
    if isinstance(value, complex):
        return f"complex({number_text(value.real)[0]}, {number_text(value.imag)[0]})", CALL
    return repr(value), SIGN if value < 0 or math.copysign(1, value) < 0 else CALL


def dtype_text(dtype: str) -> str:
    return "jnp.bool_" if dtype == "bool" else f"jnp.{dtype}"


def tuple_text(entries: Iterable[str]) -> str:
    """``(a, b)``, and ``(a,)`` of one."""
    listed = list(entries)
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"


_RESERVED = {*keyword.kwlist, "functools", "jax", "jnp", "lax", "range", "reversed", "sum", "zip"}
_LETTERS = "ijklmnpqrstuvwxyzabcdefgh"


class Writer:
    """Writes nodes by ``rules``, and extents, with symbolic sizes under the identifiers that the function gives them."""

    def __init__(self, names: Mapping[Var, str], rules: Rules) -> None:
        self._names = names
        self._rules = rules
        self._written: dict[Node, Written] = {}
        self._variables: dict[Axis, str] = {}  # of the loops around what is written now

    def text(self, item: Node | Expr) -> str:
        """The text of a node, or of an extent."""
        return (self.write(item) if isinstance(item, Node) else self.size(item))[0]

    def write(self, node: Node) -> Written:
        """The text of a node, and how strongly it binds."""
        if self._variables:  # what is in a loop is written with its variables
            return self._rules[type(node)](node, self)
        if node not in self._written:
            self._written[node] = self._rules[type(node)](node, self)
        return self._written[node]

    def atom(self, node: Node) -> str:
        """The text of a node as it can stand before a dot or a bracket."""
        text, strength = self.write(node)
        return text if strength == CALL else f"({text})"

    def one_or_all(self, nodes: Sequence[Node]) -> str:
        """The text of one node, or of a tuple."""
        return self.text(nodes[0]) if len(nodes) == 1 else tuple_text(map(self.text, nodes))

    # --- extents

    def shape(self, extents: Sequence[Expr]) -> str:
        return tuple_text([self.text(e) for e in extents])

    def size(self, extent: Expr) -> Written:
        extent = written_size(extent)
        memo: dict[Expr, Written] = {}
        for node in postorder(extent):
            match node:
                case Const(value):
                    memo[node] = str(value), CALL if int(value) >= 0 else SIGN  # type: ignore[arg-type]
                case Var():
                    memo[node] = self._size_name(node), CALL
                case Axis():
                    memo[node] = self._variables[node], CALL
                case Call(op, args) if op.name in ("maximum", "minimum"):
                    memo[node] = f"{op.name[:3]}({', '.join(memo[a][0] for a in args)})", CALL
                case Call(op, args):
                    memo[node] = TABLE[op.name].code.write(*(memo[a] for a in args))
                case _:
                    raise LoweringError(
                        f"`{shown(extent)}` is no size: it must be made of integers and te.var sizes"
                    )
        return memo[extent]

    def _size_name(self, size: Var) -> str:
        if size not in self._names:
            raise LoweringError(
                f"the size {size.name} is the extent of no input, so that no array tells it; "
                f"give an input an axis of extent {size.name}"
            )
        return self._names[size]

    # --- loops

    @contextmanager
    def variables(self, axes: Sequence[Axis], node: Node) -> Iterator[None]:
        """Names the variables of loops while ``node`` is written, by names that it does not mention."""
        before, taken = self._variables, self._names_in(node)
        for axis in axes:
            self._variables = {**self._variables, axis: _free_name(axis.name, taken)}
            taken.add(self._variables[axis])
        yield
        self._variables = before

    def _names_in(self, node: Node) -> set[str]:
        """The names that the text of ``node`` mentions, but for variables of loops."""
        found = set(self._variables.values())
        for below in nodes_below(node):
            if isinstance(below, elementwise.Name):
                found.add(below.identifier)
            found |= {self._size_name(n) for e in extents_in(below) for n in all_of(Var, e)}
        return found


Rule = Callable[[Any, Writer], Written]
Rules = Mapping[type[Node], Rule]
"""What the nodes of each class are written as."""


def call(function: str, *arguments: str, **named: str) -> Written:
    """A call; arguments by name are left out where they are empty."""
    listed = [*arguments, *(f"{name}={value}" for name, value in named.items() if value)]
    return f"{function}({', '.join(listed)})", CALL


def _free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or the first letter that is not taken."""
    return next(name for name in (wanted, *_LETTERS) if name not in taken and name not in _RESERVED)
