"""Wide formulas of LaTeX over several lines: broken where an operator binds least, outside of brackets, fractions and cases."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
