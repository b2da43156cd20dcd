"""Formulas as ``te.formula`` writes them, put into the syntax of Python: ``sum over k where c of e`` as ``sum[k](e, where=(c))``.

Each character remembers where it stood, so that errors point into the text of the user.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.frontends.text.tree import TOO_DEEP, Source, Span
from jaxte.frontends.text.vocabulary import REDUCERS
from jaxte.lang.errors import DefinitionError

_TOKENS = re.compile(
    r"[^\W\d]\w*'*|\d[\w.]*(?:(?<=[eE])[+-]\d+)?|#[^\n]*|\n|[^\S\n]+|<=|>=|==|!=|//|\*\*|<<|>>|->|:=|."
)
_PRIME = "\N{MODIFIER LETTER PRIME}"  # a letter to Python, and as long as the apostrophe that it stands for
_OPENING, _CLOSING = "([{", ")]}"
SIGNS = {
    "→": "->",
    "−": "-",
    "–": "-",
    "·": "*",
    "×": "*",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "∧": " and ",
    "∨": " or ",
    "∑": "sum",
    "Σ": "sum",
    "∏": "prod",
}
_OPEN_ENDED = (
    "+", "-", "*", "/", "//", "%", "**", "=", ",", "<", "<=", ">", ">=", "==", "!=", "and", "or", "not",
    "of",
)  # fmt: skip


@dataclass(frozen=True)
class Token:
    text: str
    start: int
    length: int = 1  # of what stands in the source

    @property
    def is_name(self) -> bool:
        return self.text[0].isalpha() or self.text[0] == "_"

    @property
    def is_space(self) -> bool:
        return self.text.isspace() and self.text != "\n"


@dataclass(frozen=True)
class Line:
    """One statement: its tokens, and those of the ranges behind it, ``(b < 8, k < 3)``."""

    tokens: tuple[Token, ...]
    ranges: tuple[Token, ...]


@dataclass(frozen=True)
class Python:
    """Python's text of a piece of ``source``, with the place of each of its characters."""

    source: Source
    text: str
    places: tuple[int, ...]

    def span(self, start: int, stop: int) -> Span:
        """The characters of the source that ``text[start:stop]`` was made of."""
        if not self.places:
            return Span(self.source, 0, 1)
        first = self.places[min(start, len(self.places) - 1)]
        last = self.places[min(max(stop - 1, start), len(self.places) - 1)]
        return Span(self.source, first, last + 1)


def tokens_of(source: Source) -> list[Token]:
    """The words and signs of a text; those of mathematics, ``∑`` or ``≤``, as formulas write them."""
    return [
        Token(SIGNS.get(t.group(), t.group()), t.start(), len(t.group()))
        for t in _TOKENS.finditer(source.text)
    ]


def lines_of(source: Source) -> list[Line]:
    """The statements of a text; within brackets, and behind an operator, a line goes on."""
    lines: list[Line] = []
    current: list[Token] = []
    depth = 0
    for token in tokens_of(source):
        if token.text.startswith("#"):
            continue
        if token.text in "'\"":
            raise _quoted(source, token, current)
        if token.text in _OPENING:
            depth += 1
        elif token.text in _CLOSING:
            depth -= 1
        if token.text == "\n" and depth <= 0 and not _goes_on(current):
            lines.append(_without_ranges(current))
            current = []
        else:
            current.append(Token(" ", token.start) if token.text == "\n" else token)
    lines.append(_without_ranges(current))
    return [line for line in lines if line.tokens]


def _quoted(source: Source, quote: Token, before: Sequence[Token]) -> DefinitionError:
    """What is said of a text in quotes, and of a call that it is the argument of."""
    here = Span(source, quote.start, quote.start + 1)
    if len(before) > 1 and before[-1].text == "(" and before[-2].is_name:
        name = before[-2]
        here = Span(source, name.start, name.start + name.length)
        return here.fault(
            f"{name.text} is not called with a text: formulas have numbers and names, are parsed and never evaluated, and call functions of te alone"
        )
    return here.fault(
        "a formula has numbers and names, and no text in quotes; a rule for ties is written ties=first"
    )


def _goes_on(tokens: Sequence[Token]) -> bool:
    """Whether a line cannot end here."""
    written = [token.text for token in tokens if not token.is_space]
    return bool(written) and written[-1] in _OPEN_ENDED


def _without_ranges(tokens: Sequence[Token]) -> Line:
    """A line without the parentheses at its end that stand behind an operand and a space."""
    kept = _stripped(tokens)
    if not kept or kept[-1].text != ")":
        return Line(tuple(kept), ())
    depth, n = 0, len(kept)
    while n:
        n -= 1
        depth += (kept[n].text in _CLOSING) - (kept[n].text in _OPENING)
        if not depth:
            break
    if n < 2 or not kept[n - 1].is_space:
        return Line(tuple(kept), ())
    before = kept[n - 2]
    if before.text in _WORDS or not (
        before.text in ")]…" or before.text[-1].isalnum() or before.text[-1] in "_'"
    ):
        return Line(tuple(kept), ())
    return Line(tuple(_stripped(kept[:n])), tuple(kept[n + 1 : -1]))


_WORDS = ("of", "over", "where", "and", "or", "not", "if", "else")


def _stripped(tokens: Sequence[Token]) -> list[Token]:
    kept = list(tokens)
    while kept and kept[-1].is_space:
        kept.pop()
    while kept and kept[0].is_space:
        kept.pop(0)
    return kept


def in_python(source: Source, tokens: Sequence[Token]) -> Python:
    """``tokens`` in the syntax of Python."""
    rest = list(tokens)
    for n in reversed([n for n, t in enumerate(rest) if t.text == "over"]):
        rest = _reduction(source, rest, n)  # what stands further right is within, and is Python already
    text, places = "", []
    for n, token in enumerate(rest):
        if token.text == "]" and n and rest[n - 1].text == "[":  # an element of a tensor without axes
            rest[n] = token = Token("()]", token.start)
        text += token.text.replace("'", _PRIME) if token.is_name else token.text
        places += [token.start + min(n, token.length - 1) for n in range(len(token.text))]
    return Python(source, text, tuple(places))


def as_written(name: str) -> str:
    """A name of :func:`in_python` as it stands in the source."""
    return name.replace(_PRIME, "'")


def _reduction(source: Source, tokens: list[Token], over: int) -> list[Token]:
    """``tokens`` with the reduction whose ``over`` stands at a position in the syntax of Python."""
    here = Span(source, tokens[over].start, tokens[over].start + 4)
    name = over - 1
    while name >= 0 and tokens[name].is_space:
        name -= 1
    if name < 0 or not tokens[name].is_name:
        raise here.fault("over stands behind the name of a reduction, as in sum over k of X[k]")
    of = _next(tokens, over + 1, ("of",))
    if of is None:
        raise here.fault(
            "the expression that is reduced is missing; write sum over k of X[k], or sum[k](X[k])"
        )
    where = _next(tokens[:of], over + 1, ("where",))
    stop = _next(tokens, of + 1, (",",))
    stop = len(tokens) if stop is None else stop
    start = tokens[over].start
    axes = tokens[over + 1 : of if where is None else where]
    condition = (
        []
        if where is None
        else [Token(",where=(", tokens[where].start), *tokens[where + 1 : of], Token(")", start)]
    )
    body = [Token("(", start), *tokens[of + 1 : stop], *condition, Token(")", start)]
    return [*tokens[: name + 1], Token("[", start), *axes, Token("]", start), *body, *tokens[stop:]]


def _next(tokens: Sequence[Token], start: int, wanted: Sequence[str]) -> int | None:
    """The position of one of ``wanted`` from ``start`` on, before the bracket that holds it closes; the bracket itself for ","."""
    depth = 0
    for n in range(start, len(tokens)):
        written = tokens[n].text
        if not depth and (written in wanted or ("," in wanted and written in _CLOSING)):
            return n
        depth += (written in _OPENING) - (written in _CLOSING)
    return None


# how other languages write what a formula writes otherwise: Y[i] = sum_k x[i, k], x[i] > 0 ? x[i] : 0, ...
_SPELLINGS = [
    (
        re.compile(r"\\\w|\w_\{|\^\{"),
        "formulas are not in LaTeX; one is written Y[i] = sum[k](A[i, k] * x[k])",
    ),
    (re.compile(r"\b\d+(?![eEjJ])[^\W\d]"), "a product is written with *, as in 2 * x"),
    (
        re.compile(rf"\b({'|'.join(REDUCERS)})\[[^]]*\]\s*[^\s(]"),
        "what is reduced stands in parentheses, sum[k](...)",
    ),
    (re.compile(r"(?<!\|)\|(?!\|)[^|]+\|(?!\|)"), "an absolute value is written abs(...)"),
    (re.compile(r"[²³⁴]"), "a power is written **, as in x[i]**2"),
    (
        re.compile("…"),
        "… stands for what te.formula and te.definitions leave out, subexpressions of more than 8,000 characters and definitions before the last 40; "
        "use the Tensors themselves, te.function(inputs, outputs), or pickle them",
    ),
    (re.compile(r"&&|\|\||!(?!=)"), "conditions are joined by and, or, not"),
    (re.compile(r"\?|\bthen\b"), "a choice is written a if c else b"),
    (re.compile(rf"\b({'|'.join(REDUCERS)})(_\w|\s*\()"), "a reduction is written sum[k](...)"),
    (re.compile(r"\][ \t]+[^\W\d]\w*\["), "a product is written with *"),
    (re.compile(r"^let\b"), "a formula is Y[i] = ..., without a word before it"),
]

# what Python says of a statement, in words of formulas
_REASONS = {
    "invalid syntax": "an operator, or the end of the formula, is expected",
    "invalid decimal literal": "an operator is expected between a number and a name",
    "invalid character": "this character is no part of formulas",
    "unmatched": "this bracket closes nothing",
    "too many nested parentheses": "parentheses stand in each other too deeply",
    "cannot assign to": "the left side of a formula is a name with its axes, as in Y[i, j] = ...",
}


def parsed(python: Python, mode: str) -> Any:
    """Python's tree of a piece of text, or an error that points at where it ends to be one."""
    try:
        return ast.parse(python.text, mode=mode)
    except SyntaxError as error:
        lines = python.text.split("\n")
        line = min(error.lineno or 1, len(lines))
        at = sum(len(own) + 1 for own in lines[: line - 1]) + max((error.offset or 1) - 1, 0)
        reason = next((said for begin, said in _REASONS.items() if error.msg.startswith(begin)), error.msg)
        reason += next((f"; {hint}" for pattern, hint in _SPELLINGS if pattern.search(python.text)), "")
        word = re.match(r"\w*", python.text[at:])
        raise python.span(at, at + max(1, word.end() if word else 1)).fault(reason) from None
    except (RecursionError, MemoryError):
        raise python.span(0, 1).fault(TOO_DEEP) from None
    except ValueError as error:
        raise python.span(0, 1).fault(f"the text cannot be read: {error}") from None
