"""The syntax of ``te.einsum``: ``"b (t+k) c, k c o -> b t o"``, read into factors, terms and a result.

Names stand for axes, parentheses hold arithmetic of them (or several axes that are one in the array), commas multiply, ``+`` and ``-`` outside of
parentheses add, and functions are written around what they are taken of.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from jaxte.frontends.text.convert import Converter, parsed
from jaxte.frontends.text.tree import (
    Element,
    Name,
    Node,
    Number,
    Operation,
    Reduced,
    Reduction,
    Source,
    Span,
    nearest,
)
from jaxte.frontends.text.vocabulary import FUNCTIONS, REDUCERS
from jaxte.frontends.text.words import Python

_TOKENS = re.compile(r"\s+|[^\W\d]\w*|\d+|\.\.\.|->|.")
_ARITHMETIC = set("+-*/%<>=!&|^~,.")


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


@dataclass(frozen=True)
class _Token:
    text: str
    span: Span
    spaced: bool  # whether white space stands before it


class _Reader:
    """Tokens from left to right."""

    def __init__(self, source: Source, reducers: Collection[str]) -> None:
        self.source, self.reducers = source, {*REDUCERS, *reducers}
        self.tokens: list[_Token] = []
        spaced = False
        for found in _TOKENS.finditer(source.text):
            if found.group().isspace():
                spaced = True
                continue
            self.tokens.append(_Token(found.group(), Span(source, *found.span()), spaced))
            spaced = False
        self.end = Span(source, len(source.text), len(source.text) + 1)
        self.at = 0
        self.operands: list[Element] = []

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].text if at < len(self.tokens) else ""

    @property
    def here(self) -> Span:
        return self.tokens[self.at].span if self.at < len(self.tokens) else self.end

    def take(self, wanted: str = "") -> _Token:
        if self.at >= len(self.tokens) or (wanted and self.peek() != wanted):
            found = f"not {self.peek()!r}" if self.peek() else "and the text ends"
            raise self.here.fault(f"{wanted!r} is expected here, {found}")
        self.at += 1
        return self.tokens[self.at - 1]

    def sum(self, term: Callable[[_Reader], Node] | None = None) -> Node:
        """Terms, added or subtracted: products, where they are no other ``term``."""
        own = term or _Reader.product
        first = self.here
        if self.peek() == "-":
            self.take()
            left: Node = Operation(first, "negative", (own(self),))
        else:
            left = own(self)
        while self.peek() in ("+", "-"):
            word = "add" if self.take().text == "+" else "subtract"
            right = own(self)
            left = Operation(left.span.to(right.span), word, (left, right))
        return left

    def product(self) -> Node:
        """Factors between commas."""
        left = self.factor()
        while self.peek() == ",":
            self.take()
            right = self.factor()
            left = Operation(left.span.to(right.span), "multiply", (left, right))
        return left

    def factor(self) -> Node:
        glued = self.at + 1 < len(self.tokens) and not self.tokens[self.at + 1].spaced
        if self.here is not self.end and self.peek()[0].isalpha() and glued and self.peek(1) in ("(", "["):
            return self.call() if self.peek(1) == "(" else self.reduction()
        return self.element()

    def call(self) -> Node:
        name = self.take()
        if name.text not in FUNCTIONS:
            raise name.span.fault(
                f"{name.text} is no function{nearest(name.text, FUNCTIONS) or '; between an axis and arithmetic in parentheses stands a space'}"
            )
        self.take("(")
        values = [self.sum()] if _arity(name.text) == 1 else self.arguments()
        close = self.take(")")
        return Operation(name.span.to(close.span), name.text, tuple(values))

    def arguments(self) -> list[Node]:
        """What stands between the commas of a function of several scalars: operands, sums of them, and whole numbers."""
        found: list[Node] = []
        while not found or self.peek() == ",":
            if found:
                self.take(",")
            if self.peek().isdigit() and self.peek(1) in (",", ")"):
                number = self.take()
                found.append(Number(number.span, int(number.text)))
            else:
                found.append(self.sum(_Reader.factor))
        return found

    def reduction(self) -> Node:
        name = self.take()
        if name.text not in self.reducers:
            raise name.span.fault(
                f"{name.text} is no reduction{nearest(name.text, self.reducers) or '; those are ' + ', '.join(REDUCERS)}"
            )
        self.take("[")
        axes = []
        while self.peek() != "]":
            if self.peek() == ",":
                self.take()
                continue
            own = self.name()
            axes.append(Reduced(own.span, own))
        self.take("]")
        self.take("(")
        value = self.sum()
        close = self.take(")")
        return Reduction(name.span.to(close.span), name.text, tuple(axes), (value,))

    def name(self) -> Name:
        if not self.peek().isidentifier() or self.peek().startswith("__"):
            found = f", not {self.peek()!r}" if self.peek() else ""
            raise self.here.fault(f"the name of an axis is expected here{found}")
        token = self.take()
        return Name(token.span, token.text)

    def element(self) -> Element:
        """The indices of one operand."""
        first = self.here
        items = self.items()
        own = Element(first.to(items[-1].span) if items else first, str(len(self.operands)), tuple(items))
        self.operands.append(own)
        return own

    def items(self) -> list[Node]:
        found: list[Node] = []
        while self.peek() not in ("", ",", "+", "-", "->", ")"):
            found.append(self.item())
        return found

    def item(self) -> Node:
        token = self.tokens[self.at]
        if token.text == "(":
            return self.parentheses()
        if token.text == "...":
            return Dots(self.take().span)
        if token.text.isdigit():
            return Number(self.take().span, int(token.text))
        if token.text in _ARITHMETIC:
            raise token.span.fault(
                f"arithmetic of indices stands in parentheses, as in (2*t+k), and operands between commas, not {token.text!r}"
            )
        if token.text in ("[", "]", "{", "}"):
            raise token.span.fault(
                "axes stand side by side, and what is reduced is what the result has not; brackets belong to reductions, max[k](...)"
            )
        return self.name()

    def parentheses(self) -> Node:
        """``(h w)``, several axes, or ``(2*t + k)``, arithmetic."""
        start, depth, stop = self.at, 0, self.at
        while stop < len(self.tokens):
            depth += (self.tokens[stop].text == "(") - (self.tokens[stop].text == ")")
            if not depth:
                break
            stop += 1
        if depth:
            raise self.here.fault("this parenthesis is not closed")
        span = self.here.to(self.tokens[stop].span)
        inner = self.tokens[start + 1 : stop]
        if any(t.text in _ARITHMETIC or t.text == "->" for t in inner):
            self.at = stop + 1
            return _arithmetic(self.source, span)
        self.take("(")
        factors = self.items()
        self.take(")")
        return factors[0] if len(factors) == 1 else Composed(span, tuple(factors))


def _arity(function: str) -> int:
    """How many scalars a function takes at least."""
    parameters = inspect.signature(FUNCTIONS[function]).parameters.values()
    return len([p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL])


def _arithmetic(source: Source, span: Span) -> Node:
    python = Python(source, source.text[span.start : span.stop], tuple(range(span.start, span.stop)))
    return Converter(python).expression(parsed(python, "eval").body)


def pattern(source: Source, reducers: Collection[str] = ()) -> Pattern:
    """The pattern that a text is."""
    reader = _Reader(source, reducers)
    body = reader.sum()
    arrow = reader.here
    result = None
    if reader.peek() == "->":
        reader.take()
        result = tuple(reader.items())
    if reader.peek():
        what = (
            "the result has axes only, side by side"
            if result is not None
            else "a comma, + or -> is expected here"
        )
        raise reader.here.fault(f"{what}, not {reader.peek()!r}")
    return Pattern(source, body, tuple(reader.operands), result, arrow)
