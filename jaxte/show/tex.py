"""Formulas in LaTeX, for math mode of MathJax, KaTeX and LaTeX with amsmath; wide ones over several lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxte.lang.expr import Call, Expr, Reduce, Scalar
from jaxte.lang.graphs import among
from jaxte.lang.scalars.rows import CALL, PRODUCT, SIGN
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import free_axes
from jaxte.show.notation import SUMMATION, Notation, Piece, Range, Writer, inclusive_end

_BRACKETS = (r"\left(", r"\right)")
_COMMA = r",\,"
_ESCAPES = {
    **{c: f"\\{c}" for c in "{}$&#%_"},
    "\\": r"\backslash ",
    "^": r"\wedge ",
    "~": r"\sim ",
    "<": r"\lt ",
    ">": r"\gt ",
    " ": r"\ ",
}
_SIGNS = {"sum": r"\sum", "prod": r"\prod", "any": r"\bigvee", "all": r"\bigwedge"}
_WORDS = {"max": r"\max", "min": r"\min", "argmax": r"\arg\max", "argmin": r"\arg\min"}


class Latex(Notation):
    ellipsis = r"\cdots"

    def name(self, label: str) -> str:
        base = label.rstrip("'")
        primes = label[len(base) :]
        written = "".join(_ESCAPES.get(c, c) if c.isprintable() else r"\ " for c in base)
        return (written if len(base) == 1 else rf"\mathrm{{{written}}}") + primes

    def number(self, value: Scalar) -> Piece:
        if isinstance(value, bool):
            return rf"\mathrm{{{str(value).lower()}}}", CALL
        if isinstance(value, complex):
            return str(value).replace("j", r"\mathrm{i}"), CALL
        written = f"{value:.0f}" if value in (float("inf"), float("-inf")) or value != value else repr(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            written = f"{value:.0f}"
        written = written.replace("inf", r"\infty").replace("nan", r"\mathrm{NaN}")
        if "e" in written:
            mantissa, _, exponent = written.partition("e")
            return rf"{mantissa} \cdot 10^{{{int(exponent)}}}", PRODUCT
        return written, SIGN if written.startswith("-") else CALL

    def element(self, tensor: str, indices: Sequence[str]) -> str:
        subscript = _COMMA.join(indices)
        return f"{tensor}_{{{subscript}}}" if indices else tensor

    def operation(self, node: Call, args: Sequence[Piece]) -> Piece:
        if node.op.name == "cast":  # a change of type is no mathematics
            return args[0]
        return TABLE[node.op.name].math.write(*args, brackets=_BRACKETS)

    def reduction(
        self,
        node: Reduce,
        exprs: Sequence[Piece],
        ranges: Sequence[Range],
        guards: Sequence[Expr],
        of: Writer,
    ) -> Piece:
        shown = [e[0] if e[1] >= PRODUCT else e[0].join(_BRACKETS) for e in exprs]
        body = shown[0]
        name = node.reducer.name
        if name in ("argmax", "argmin"):
            body = shown[1]
            name = (name, name[3:])[node.position]
        elif len(shown) > 1:
            inner = _COMMA.join(e[0] for e in exprs)
            body = rf"\left({inner}\right)_{{[{node.position}]}}"
        if name in _SIGNS:
            return f"{_stacked(_SIGNS[name], ranges, guards, of)} {body}", SUMMATION
        word = _WORDS.get(name) or rf"\operatorname*{{{self.name(node.reducer.label)}}}"
        return f"{word}_{{{_below(ranges, guards, of)}}} {body}", SUMMATION


def _stacked(sign: str, ranges: Sequence[Range], guards: Sequence[Expr], of: Writer) -> str:
    """One sign for each axis, with its bounds below and above; a condition below the last of those that it is about."""
    conditions: dict[int, list[str]] = {}
    for guard in (*_uncovered(ranges), *guards):
        own = [n for n, range in enumerate(ranges) if among(range.axis, free_axes(guard))]
        conditions.setdefault(own[-1] if own else len(ranges) - 1, []).append(of.text(guard))
    signs = []
    for n, range in enumerate(ranges):
        lower, upper = _ends(range, of)
        below = f"{of.axis(range.axis)}={lower}"
        if n in conditions:
            lines = r" \\ ".join([below, *conditions[n]])
            below = rf"\substack{{{lines}}}"
        signs.append(f"{sign}_{{{below}}}^{{{upper}}}")
    return " ".join(signs)


def _below(ranges: Sequence[Range], guards: Sequence[Expr], of: Writer) -> str:
    """The ranges and conditions, side by side."""
    parts = []
    for range in ranges:
        lower, upper = _ends(range, of)
        parts.append(rf"{lower} \leq {of.axis(range.axis)} \leq {upper}")
    parts += [of.text(g) for g in (*_uncovered(ranges), *guards)]
    return _COMMA.join(parts)


def _ends(range: Range, of: Writer) -> tuple[str, str]:
    """First and last value of an axis."""
    lower, upper = range.lower, range.upper
    first = lower.value if lower is not None and lower.covers else range.axis.lo
    last = upper.value if upper is not None and upper.covers else inclusive_end(range.axis)
    return of.text(first), of.text(last)


def _uncovered(ranges: Sequence[Range]) -> list[Expr]:
    """The bounds that hold beside the constant range, as conditions."""
    bounds = [b for range in ranges for b in (range.lower, range.upper)]
    return [b.condition for b in bounds if b is not None and not b.covers]


WIDEST = 90  # signs on a line
_OPENING = re.compile(r"\\left\b|\\begin\{\w+\}|(?<!\\)\{")
_CLOSING = re.compile(r"\\right\b|\\end\{\w+\}|(?<!\\)\}")
_BREAKS = ((" + ", " - "), (r" \sum", r" \prod", r" \max", r" \min"), (r" \cdot ",))
_COMMAND = re.compile(
    r"\\(?:left|right|begin\{\w+\}|end\{\w+\}|mathrm|text|substack|operatorname\*?)|[{}_^]|\\,"
)
_SIGN = re.compile(r"\\[a-zA-Z]+")


def width(latex: str) -> int:
    """About how many signs are printed."""
    return len(_SIGN.sub("x", _COMMAND.sub("", latex)).replace(" ", ""))


def broken(latex: str, widest: int = WIDEST) -> list[str]:
    """The lines of an expression, one where it is short enough or has no place to break."""
    if width(latex) <= widest:
        return [latex]
    for signs in _BREAKS:
        parts = _split(latex, signs)
        if len(parts) > 1:
            return [line for packed in _packed(parts, widest) for line in _within(packed, latex, widest)]
    return [latex]


def _within(part: str, whole: str, widest: int) -> list[str]:
    """A line, broken again by what binds more, if that is needed."""
    return broken(part, widest) if part != whole else [part]


def _split(latex: str, signs: Sequence[str]) -> list[str]:
    """The parts between ``signs``, each of which begins with its sign."""
    depth, start, at, parts = 0, 0, 0, []
    while at < len(latex):
        if opening := _OPENING.match(latex, at):
            depth, at = depth + 1, opening.end()
        elif closing := _CLOSING.match(latex, at):
            depth, at = depth - 1, closing.end()
        elif depth == 0 and at > start and any(latex.startswith(sign, at) for sign in signs):
            parts.append(latex[start:at])
            start, at = at, at + 1
        else:
            at += 1
    return [*parts, latex[start:]]


def _packed(parts: Sequence[str], widest: int) -> list[str]:
    """As many parts on a line as it has room for."""
    lines = [parts[0]]
    for part in parts[1:]:
        if width(lines[-1] + part) <= widest:
            lines[-1] += part
        else:
            lines.append(part)
    return lines
