"""Exceptions of jaxte.

Each message says what is wrong, where (in the user's own names) and how to mend it. Every class also
derives from the built-in exception that a numpy or JAX user would expect, so ``except ValueError`` works.

Tracebacks with the lines of a user alone, as JAX shows its own: in Python the message stands last, in a notebook first.
"""

from __future__ import annotations

import os
import traceback
from types import TracebackType


class JaxteError(Exception):
    """Base class of every error that jaxte raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows."""
        return rendered(self)

    def append(self, line: str) -> None:
        """Puts a line behind the message."""
        self.args = (f"{self}\n{line}",)


class DefinitionError(JaxteError, ValueError):
    """A tensor, a body or a reduction that does not mean anything."""


class ShapeError(DefinitionError):
    """Shapes, ranks or extents that do not fit together."""


class ArgumentError(DefinitionError, TypeError):
    """Arguments that are missing, or that an operator does not take."""


class TruthValueError(DefinitionError):
    """The truth value of an expression or a Tensor (``what`` names it) was asked for, which exists only when the code runs."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} has no truth value while a tensor is being defined, and `if`, `and`, `or`, `not`, `in`, `assert`, min, max, "
            "sorted and chains like 0 <= i < n ask for one; use te.select(cond, a, b) for a choice, &, |, ~ instead of and, or, "
            "not, (0 <= i) & (i < n) for a chain, where= for the points of a reduction, te.minimum and te.maximum; `is` tells "
            "nodes apart"
        )


class RangeError(DefinitionError, IndexError):
    """A read that can leave its tensor."""


class IndexExpressionError(DefinitionError):
    """Index arithmetic that is not affine (or quasi-affine) where it has to be."""


class DtypeError(JaxteError, TypeError):
    """Element types that do not fit together."""


class DifferentiationError(JaxteError, ValueError):
    """A derivative that does not exist in the way in which it was asked for."""


class FeedError(JaxteError, ValueError):
    """Arrays given to a graph that do not fit its placeholders."""


class LoweringError(JaxteError, ValueError):
    """A tensor that cannot be turned into code."""


class TooLargeError(LoweringError, MemoryError):
    """A tensor, or something on the way to it, of more bytes than any machine has."""


class PerformanceWarning(UserWarning):
    """A definition that costs many times what it has to in every form that jaxte found."""


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def shorten(error: BaseException) -> None:
    """Takes the frames of jaxte out of ``error``; with JAXTE_TRACEBACKS=full in the environment they stay.

    A bare ``raise`` after it adds no frame of its own, as ``raise error`` would.
    """
    if os.environ.get("JAXTE_TRACEBACKS") == "full":
        return
    result: TracebackType | None = None
    for own in reversed(_frames(error)):
        if not own.tb_frame.f_code.co_filename.startswith(_OWN):
            result = TracebackType(result, own.tb_frame, own.tb_lasti, own.tb_lineno)
    error.__traceback__ = result


def rendered(error: BaseException) -> list[str]:
    """What a notebook prints of ``error``: the message, then the lines of its cells and modules, the last call first."""
    shorten(error)
    lines = [f"{type(error).__name__}: {error}"]
    for own in reversed(_frames(error)):
        code = own.tb_frame.f_code
        if f"{os.sep}IPython{os.sep}" in code.co_filename:
            break  # what is before it runs the cell
        (summary,) = traceback.StackSummary.extract([(own.tb_frame, own.tb_lineno)])
        # a cell is a file that is not there
        place = f"{summary.filename}, line" if os.path.exists(summary.filename) else "cell, line"
        scope = "" if code.co_name == "<module>" else f", in {code.co_name}"
        lines.append(f"  {place} {summary.lineno}{scope}\n    {summary.line}")
    return lines


def _frames(error: BaseException) -> list[TracebackType]:
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append(at)
        at = at.tb_next
    return frames
