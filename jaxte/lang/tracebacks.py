"""Tracebacks with the lines of a user alone, as JAX shows its own: in Python the message stands last, in a notebook first."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

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
