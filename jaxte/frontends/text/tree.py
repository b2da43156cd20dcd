"""What patterns and formulas are read into: numbers, names, elements, operations and reductions, each with its place in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from jaxte.lang.errors import DefinitionError, JaxteError

E = TypeVar("E", bound=JaxteError)
_WIDEST = 160  # characters of a line that a message shows


@dataclass(frozen=True)
class Source:
    """A text that a user gave to the function called ``who``."""

    who: str
    text: str


@dataclass(frozen=True)
class Span:
    """The characters of ``source`` from ``start`` to before ``stop``."""

    source: Source
    start: int
    stop: int

    @overload
    def fault(self, message: str) -> DefinitionError: ...
    @overload
    def fault(self, message: str, kind: type[E]) -> E: ...
    def fault(self, message: str, kind: type[JaxteError] = DefinitionError) -> JaxteError:
        """An error with a caret under these characters."""
        text = self.source.text
        first = text.rfind("\n", 0, self.start) + 1
        line = text[first:].split("\n", 1)[0]
        width = max(1, min(self.stop, first + len(line)) - self.start)
        at = self.start - first
        if len(line) > _WIDEST:  # the part around the place
            cut = max(at - _WIDEST // 2, 0)
            line = (
                f"{'…' if cut else ''}{line[cut : cut + _WIDEST]}{'…' if cut + _WIDEST < len(line) else ''}"
            )
            at, width = at - cut + bool(cut), min(width, _WIDEST)
        return kind(f"{self.source.who}: {message}\n  {line}\n  {' ' * at}{'^' * width}")

    def to(self, other: Span) -> Span:
        return Span(self.source, self.start, other.stop)


TOO_DEEP = "this formula is too long, or too deep; give parts of it names in formulas of their own"


@contextmanager
def read_within_the_stack(source: Source) -> Iterator[None]:
    """A text whose tree is too deep to be walked is refused."""
    try:
        yield
    except RecursionError:
        raise Span(source, 0, 1).fault(TOO_DEEP) from None


@dataclass(frozen=True, eq=False)
class Node:
    span: Span

    @property
    def children(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Number(Node):
    value: bool | int | float | complex


@dataclass(frozen=True, eq=False)
class Name(Node):
    """An axis, a size, or a tensor without axes."""

    name: str


@dataclass(frozen=True, eq=False)
class Element(Node):
    """An element of the tensor called ``tensor``."""

    tensor: str
    indices: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.indices


@dataclass(frozen=True, eq=False)
class Operation(Node):
    """A function of the language by its name."""

    function: str
    args: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.args


@dataclass(frozen=True, eq=False)
class Reduced:
    """An axis of a reduction with the bounds that stand beside it: at least ``lo``, less than ``hi``."""

    span: Span
    name: Name
    lo: Node | None = None
    hi: Node | None = None


@dataclass(frozen=True, eq=False)
class Reduction(Node):
    """``reducer[axes](*values, where=where)``; of several results the one at ``part``."""

    reducer: str
    axes: tuple[Reduced, ...]
    values: tuple[Node, ...]
    where: Node | None = None
    part: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def children(self) -> tuple[Node, ...]:
        bounds = [b for own in self.axes for b in (own.lo, own.hi)]
        return tuple(n for n in (*bounds, *self.values, self.where) if n is not None)


def nodes_of(root: Node) -> Iterator[Node]:
    """``root`` and everything below it, in the order of the text."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


@dataclass(frozen=True, eq=False)
class Dots(Node):
    """``...``: axes without names."""


@dataclass(frozen=True, eq=False)
class Composed(Node):
    """``(h w)``: several axes that are one axis of the array, the last one fastest."""

    factors: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.factors


@dataclass(frozen=True, eq=False)
class Pattern:
    """A pattern as it is written.

    Attributes:
        operands: the elements in ``body``, in order, called "0", "1", ...
        result: None where there is no ``->``.
    """

    source: Source
    body: Node
    operands: tuple[Element, ...]
    result: tuple[Node, ...] | None
    arrow: Span
