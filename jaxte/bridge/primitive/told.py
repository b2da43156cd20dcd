"""Definitions that cost many times what they have to are told of, once each."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

from jaxte.lang.errors import LoweringError, PerformanceWarning
from jaxte.lower.code.vocabulary import Choice, Program, Verdict
from jaxte.lower.program.remedies import IN_TILES, in_tiles_of

_MACHINERY = frozenset({"jaxte", "jax", "jaxlib", "functools", "contextlib", "threading"})
_EMITTED = "<jaxte "
_LEAST_GAIN = 4  # times less held, or a budget is no remedy
_told: set[Verdict] = set()

Within = Callable[[int], Program]


def told(label: str, program: Program, within: Within | None = None) -> Program:
    """``program``, after a :class:`te.PerformanceWarning` for each tensor of it that is dense or large.

    The warning is of the line of the user that asked for the program, and of the tensors that the user named.

    Args:
        within: gives the same program within a budget of bytes; by it a budget is tried before it is advised.
    """
    for choice in program.choices:
        verdict = choice.verdict
        if verdict is not None and (verdict.is_dense or verdict.is_large) and verdict not in _told:
            _told.add(verdict)
            warnings.warn(
                f"{label}: {choice.part_of or choice.tensor} ({choice.form}) is {_checked(choice, verdict, within)}. te.explain shows what "
                'else was considered; warnings.filterwarnings("ignore", category=te.PerformanceWarning) turns this off',
                PerformanceWarning,
                stacklevel=_level_of_user(),
            )
    return program


def _checked(choice: Choice, verdict: Verdict, within: Within | None) -> Verdict:
    """``verdict`` with the budget that was found to help in place of one in general, and without advice where none does."""
    if verdict.remedy != IN_TILES:
        return verdict
    budget = 2 ** ((verdict.held // _LEAST_GAIN).bit_length() - 1)
    helps = within is not None and _is_in_tiles(choice, budget, within)
    return replace(verdict, remedy=in_tiles_of(budget) if helps else "")


def _is_in_tiles(choice: Choice, budget: int, within: Within) -> bool:
    """Whether the tensor of ``choice`` is made in tiles within ``budget``."""
    try:
        made = within(budget)
    except LoweringError:
        return False
    return any(other.tensor == choice.tensor and other.tiles is not None for other in made.choices)


def _level_of_user() -> int:
    """How far up the stack, from the caller of this, the innermost line is that is neither jaxte's nor JAX's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None:
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in _MACHINERY and not frame.f_code.co_filename.startswith(_EMITTED):
            return level
        level, frame = level + 1, frame.f_back
    return 2
