"""Definitions that cost many times what they have to are told of, once each."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

from jaxte.bridge.price.programs import Beside
from jaxte.lang.errors import LoweringError, PerformanceWarning
from jaxte.lang.limits import FEWER
from jaxte.lower.apart.differences import APART
from jaxte.lower.body.candidates import GENERAL
from jaxte.lower.code.choice import LARGE, Choice, Verdict
from jaxte.lower.code.vocabulary import Program
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.program.remedies import IN_TILES, in_tiles_of
from jaxte.lower.program.rows import rows
from jaxte.lower.tiles.sizes import IN_STEPS, TILES

_MACHINERY = frozenset({"jaxte", "jax", "jaxlib", "functools", "contextlib", "threading"})
_EMITTED = "<jaxte "
_OTHER_WAYS = frozenset(
    name for kind, own in rows().items() if kind != "forms" for name, _ in own
) | frozenset((TILES, IN_STEPS, APART))
_told: set[Verdict] = set()

Within = Callable[[int], Program]


def told(
    label: str,
    program: Program,
    facts: Platform,
    within: Within | None = None,
    beside: Callable[[], Beside | None] = lambda: None,
) -> Program:
    """``program`` with advice that was tried, after a :class:`te.PerformanceWarning` for each tensor of it that is dense or large.

    The warning is of the line of the user that asked for the program, and of the tensors that the user named.

    Args:
        facts: of the platform.
        within: gives the same program within a budget of bytes; by it a budget is tried before it is advised.
        beside: the prices of it and of plain JAX: of a backward pass, JAX's transpose of the same forward pass, of others the definitions computed from
            whole arrays. Nothing is warned of where it is ahead by them, nor, where a platform has no prices, of what its rates chose among several forms.
    """
    choices = [_checked(choice, within) for choice in program.choices]
    for choice in choices:
        verdict = choice.verdict
        if verdict is not None and (verdict.is_dense or verdict.is_large) and verdict not in _told:
            _told.add(verdict)
            prices = beside()
            if prices.is_ahead if prices is not None else _is_weighed(choice, verdict, facts):
                continue
            warnings.warn(
                f"{label}: {choice.known_as} ({choice.form}) is {verdict}{_text(prices)}. te.explain shows what "
                'else was considered; warnings.filterwarnings("ignore", category=te.PerformanceWarning) turns this off',
                PerformanceWarning,
                stacklevel=_level_of_user(),
            )
    changed = any(new is not old for new, old in zip(choices, program.choices, strict=True))
    return replace(program, choices=tuple(choices)) if changed else program


def _is_weighed(choice: Choice, verdict: Verdict, facts: Platform) -> bool:
    """Whether a platform without prices weighed forms: dense products are the fastest of several on a TPU, however many points do not count."""
    return facts.paces is None and len(choice.estimates) > 1 and verdict.held <= LARGE


def _text(prices: Beside | None) -> str:
    return "" if prices is None else f"; {prices}"


def _checked(choice: Choice, within: Within | None) -> Choice:
    """``choice`` with the budget that was found to help in place of one in general, and without advice where none does."""
    verdict = choice.verdict
    if verdict is None or verdict.remedy != IN_TILES:
        return choice
    # Times less held, or a budget is no remedy.
    budget = 2 ** ((verdict.held // FEWER).bit_length() - 1)
    helps = within is not None and _is_in_tiles(choice, budget, within)
    return replace(choice, verdict=replace(verdict, remedy=in_tiles_of(budget) if helps else ""))


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
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in _MACHINERY and not frame.f_code.co_filename.startswith(_EMITTED):
            return level
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return 2


def from_whole_arrays(policy: Policy) -> Policy:
    """``policy`` for definitions that are computed from whole arrays, as plain JAX computes them."""
    return replace(policy, forms={ANY: GENERAL}, without=_OTHER_WAYS, max_memory=None, measured={})
