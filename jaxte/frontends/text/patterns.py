"""The syntax of ``te.einsum``: ``"b (t+k) c, k c o -> b t o"``, read into factors, terms and a result.

Names stand for axes, parentheses hold arithmetic of them (or several axes that are one in the array), commas and ``*`` multiply, ``+`` and ``-`` outside
of parentheses add, and functions are written around what they are taken of. Parentheses around whole operands, ``(i d - j d)**2``, group them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from jaxte.frontends.text.convert import expression_of
from jaxte.frontends.text.tree import (
    Composed,
    Dots,
    Element,
    Name,
    Node,
    Number,
    Operation,
    Pattern,
    Reduced,
    Reduction,
    Source,
    Span,
)
from jaxte.frontends.text.vocabulary import FUNCTIONS, REDUCERS, least_arity
from jaxte.frontends.text.words import SIGNS
from jaxte.lang.errors import nearest

_TOKENS = re.compile(r"\s+|[^\W\d]\w*|\d+\.(?!\.)\d*(?:[eE][+-]?\d+)?|\d+|\.\.\.|->|=>|\*\*|//|.", re.DOTALL)
_ARITHMETIC = {*"+-*/%<>=!&|^~,.", "**", "//", "=>"}
_BETWEEN = {",": "multiply", "*": "multiply", "/": "divide"}  # what stands between factors
_ENDS = {"", *_BETWEEN, "+", "-", "**", "->", ")"}  # what may stand behind an operand


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
            text = SIGNS.get(found.group(), found.group())
            if not text.isspace():
                self.tokens.append(_Token(text, Span(source, *found.span()), spaced))
            spaced = text.isspace()
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
        """Factors between commas, ``*`` and ``/``."""
        return self.joined(_BETWEEN)

    def scalar(self) -> Node:
        """The same within a function of several scalars, between which commas stand."""
        return self.joined({sign: word for sign, word in _BETWEEN.items() if sign != ","})

    def joined(self, between: Mapping[str, str]) -> Node:
        left = self.power()
        while self.peek() in between:
            word = between[self.take().text]
            right = self.power()
            left = Operation(left.span.to(right.span), word, (left, right))
        return left

    def power(self) -> Node:
        """A factor, and the number that it is raised to."""
        base = self.factor()
        if self.peek() != "**":
            return base
        self.take()
        first = self.here
        minus = self.take() if self.peek() == "-" else None
        if not _is_number(self.peek()):
            raise first.fault("an exponent is a number, as in (i d - j d)**2; another power is power(i j, j)")
        value = self.number()
        exponent = value if minus is None else Operation(first.to(value.span), "negative", (value,))
        return Operation(base.span.to(exponent.span), "power", (base, exponent))

    def factor(self) -> Node:
        glued = self.at + 1 < len(self.tokens) and not self.tokens[self.at + 1].spaced
        if self.here is not self.end and self.peek()[0].isalpha() and glued and self.peek(1) in ("(", "["):
            return self.call() if self.peek(1) == "(" else self.reduction()
        if self.peek() == "(" and self.is_group():
            first = self.take("(")
            inner = self.sum()
            return replace(inner, span=first.span.to(self.take(")").span))
        return self.number() if self.is_scalar() else self.element()

    def is_scalar(self) -> bool:
        """Whether a number is a factor or a term: a fraction is, and a whole number that does not stand between commas, where it is a position."""
        if not _is_number(self.peek()) or self.peek(1) not in _ENDS:
            return False
        before = self.tokens[self.at - 1].text if self.at else ""
        whole = self.peek().isdigit()
        return not whole or (before in "+-*/(" and before != "") or self.peek(1) in ("*", "/", "+", "-", "**")

    def number(self) -> Number:
        token = self.take()
        return Number(token.span, int(token.text) if token.text.isdigit() else float(token.text))

    def is_group(self) -> bool:
        """Whether a parenthesis holds whole operands: arithmetic of these, with several axes side by side, or something to be raised."""
        stop = self.closing()
        if stop is None:
            return False
        inner = self.tokens[self.at + 1 : stop]
        if stop + 1 < len(self.tokens) and self.tokens[stop + 1].text == "**":
            return True
        beside = any(
            _is_word(a.text) and (_is_word(b.text) or b.text == "(") and b.spaced
            for a, b in itertools.pairwise(inner)
        )
        return beside and any(t.text in _ARITHMETIC for t in inner)

    def closing(self) -> int | None:
        """The position of the parenthesis that closes the one here."""
        depth = 0
        for at in range(self.at, len(self.tokens)):
            depth += (self.tokens[at].text == "(") - (self.tokens[at].text == ")")
            if not depth:
                return at
        return None

    def call(self) -> Node:
        name = self.take()
        if name.text not in FUNCTIONS:
            meant = nearest(name.text, FUNCTIONS)
            if name.text in REDUCERS:
                meant = f"; a reduction is written {name.text}[k](...) with its axis, or reduce={name.text!r}{meant}"
            raise name.span.fault(
                f"{name.text} is no function{meant or '; between an axis and arithmetic in parentheses stands a space'}"
            )
        self.take("(")
        values = [self.sum()] if least_arity(name.text) == 1 else self.arguments()
        close = self.take(")")
        return Operation(name.span.to(close.span), name.text, tuple(values))

    def arguments(self) -> list[Node]:
        """What stands between the commas of a function of several scalars: operands, sums of them, and whole numbers."""
        found: list[Node] = []
        while not found or self.peek() == ",":
            if found:
                self.take(",")
            if _is_number(self.peek()) and self.peek(1) in (",", ")"):
                found.append(self.number())
            else:
                found.append(self.sum(_Reader.scalar))
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
        while self.peek() not in _ENDS:
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
        if token.text == "=>":
            raise token.span.fault("the result stands behind ->")
        if _is_number(token.text):
            raise token.span.fault(f"a factor is written with *, as in {token.text} * i j")
        if token.text in _ARITHMETIC:
            raise token.span.fault(
                f"arithmetic of indices stands in parentheses, as in (2*t+k), and operands between commas, not {token.text!r}"
            )
        if token.text in ("[", "]", "{", "}"):
            raise token.span.fault(
                "axes stand side by side, and what is reduced is what the result has not; brackets belong to reductions, max[k](...), "
                "and positions that are data to formulas, te.define('Y[b, d] = table[ids[b], d]')"
            )
        return self.name()

    def parentheses(self) -> Node:
        """``(h w)``, several axes, or ``(2*t + k)``, arithmetic."""
        stop = self.closing()
        if stop is None:
            raise self.here.fault("this parenthesis is not closed")
        span = self.here.to(self.tokens[stop].span)
        inner = self.tokens[self.at + 1 : stop]
        if any(t.text in _ARITHMETIC or t.text == "->" for t in inner):
            self.at = stop + 1
            return expression_of(self.source, span)
        self.take("(")
        factors = self.items()
        self.take(")")
        return factors[0] if len(factors) == 1 else Composed(span, tuple(factors))


def _is_number(text: str) -> bool:
    return text[:1].isdigit()


def _is_word(text: str) -> bool:
    return text.isidentifier() or text.isdigit() or text in ("...", ")")


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
