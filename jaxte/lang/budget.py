"""Work that is counted: how much a question of derivation may take before it is left open, and the plain form is written.

What is counted are steps of our own (nodes visited, operations of isl), never time: the same definition gives the same text on every machine. A question
has a budget of its own, and the questions of one derivation share another. An answer that is remembered takes from it what it took when it was
found, so that it does not matter what was asked before.
"""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from threading import Lock
from typing import Generic, ParamSpec, TypeVar

SOLVING = 120_000  # nodes of conditions that solving one set of equations may visit
CHOICES = 16  # of variables to solve for and to pin, that one set of equations is solved by
OPERATIONS = 400_000  # of isl, for one question: a fifth of a second
FLOW = 20_000_000  # of isl, for the dataflow of a whole program: ten seconds
FEW_OPERATIONS = (
    20_000  # with which nearly every question is answered; the others are asked again with twice as many
)
UNANSWERED = 2  # questions that isl may leave open while one set of equations is solved
VISITS = (
    1_000  # of nodes while one body is lowered, each in each piece of the result that it is evaluated for
)
VISITS_OF_A_NODE = 4  # and as many more for each node

# A step is a node visited, some ten microseconds.
OPERATIONS_OF_A_STEP = 20
QUESTION = 20  # steps that one with few operations counts for
DERIVATION = 600_000  # steps that the questions of one derivation may take
EACH = 2_000  # and as many more for each tensor
_ANY = sys.maxsize  # outside of a derivation

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Exhausted(Exception):
    """A budget is spent."""


class Budget:
    """What is left of the work that one question, or all questions of a derivation, may take.

    Args:
        limit: how much that is.

    Example:
        >>> budget = Budget(10)
        >>> budget.spend(8)
        >>> budget.left
        2
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit
        self.short = False  # whether a question was left open that had been answered with more
        self.open = 0  # questions that were left open after all that one of them may take

    def left_open(self, questions: int) -> None:
        """Counts ``questions`` that were left open after all that each may take."""
        self.open += questions

    def count(self, amount: int, short: bool = False) -> None:
        """Takes ``amount`` off, more than there is too; ``short``: after which a question was left open."""
        self.left -= amount
        self.short = self.short or short

    def swap_short(self, short: bool) -> bool:
        """What :attr:`short` was, which is ``short`` now: for a question within others, of which it is asked by itself."""
        self.short, was = short, self.short
        return was

    def spend(self, amount: int) -> None:
        """Takes ``amount`` off.

        Raises:
            Exhausted: there is not as much left.
        """
        self.left -= amount
        if self.left < 0:
            raise Exhausted

    @property
    def spent(self) -> int:
        """How much of the limit is gone."""
        return self.limit - max(0, self.left)


_derivation: ContextVar[Budget | None] = ContextVar("derivation", default=None)


@contextmanager
def bounded(tensors: int) -> Iterator[Budget]:
    """Within it, all questions together may take what ``tensors`` tensors are worth.

    A derivation that another one starts has a budget of its own: what it finds may be kept, whoever asked for it first.
    """
    budget = Budget(DERIVATION + EACH * tensors)
    token = _derivation.set(budget)
    try:
        with kept():
            yield budget
    finally:
        _derivation.reset(token)


@contextmanager
def unbounded() -> Iterator[None]:
    """Within it, each question has its own budget alone: its answer decides whether a definition is one, not how it is derived."""
    token = _derivation.set(None)
    try:
        yield
    finally:
        _derivation.reset(token)


def charge(steps: int) -> None:
    """Counts ``steps`` for the derivation that is under way, if one is."""
    budget = _derivation.get()
    if budget is not None:
        budget.count(steps)


def allowed(steps: int) -> int:
    """How many of ``steps`` a question may take, by what is left of the derivation."""
    budget = _derivation.get()
    return steps if budget is None else min(steps, max(0, budget.left))


def allowed_to_solve(steps: int) -> int:
    """How many of ``steps`` one set of equations may take: of each that was left open, the next ones have half as much.

    Reads that are spelled alike are as hard to solve, and where one of them is added up at positions that are data, so may the others.
    """
    budget = _derivation.get()
    return allowed(steps if budget is None else steps >> budget.open)


def left_unsolved() -> None:
    """Counts a set of equations that was left open."""
    budget = _derivation.get()
    if budget is not None:
        budget.left_open(1)


def ran_short(steps: int) -> None:
    """Counts the ``steps`` after which a question was left open, fewer than it may take by itself: what comes of it is not remembered."""
    budget = _derivation.get()
    if budget is not None:
        budget.count(steps, short=True)


@dataclass(frozen=True)
class _Answer(Generic[_T]):
    """An answer, the steps that it took, how many questions it left open, and whether it had been another one with more steps."""

    value: _T
    steps: int
    unsolved: int
    short: bool

    def is_of(self, steps: float, one: bool) -> bool:
        """Whether it is the answer with ``steps`` as well; ``one``: what is left open after some steps is left open after fewer, and nothing else is."""
        if one and self.unsolved:
            return 0 < steps and (not self.short or steps <= self.steps)
        return not self.short and self.steps <= steps


def remembered(most: int, one: bool = False) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """``lru_cache(most)`` for a function that asks questions: each answer counts for what it took to find, whoever found it.

    An answer that the derivation under way could not have paid for is looked for again, with what is left; not so that of a function which asks
    ``one`` question, if it was left open.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        known: OrderedDict[Hashable, _Answer[_T]] = OrderedDict()
        lock = Lock()

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            assert not kwargs  # the key of an answer are its arguments, by position
            own = _derivation.get()
            with lock:
                found = known.get(args)
            steps = _ANY if own is None else min(own.left, SOLVING >> own.open if own.open else _ANY)
            if found is not None and found.is_of(steps, one):
                if own is not None:
                    own.count(min(found.steps, steps), short=found.short)
                    own.left_open(found.unsolved)
                return found.value
            counted = Budget(_ANY) if own is None else own
            before, unsolved, token = counted.left, counted.open, _derivation.set(counted)
            was_short = counted.swap_short(False)
            try:
                value = function(*args, **kwargs)
            finally:
                _derivation.reset(token)
                short = counted.swap_short(was_short)
                counted.count(0, short)
            answer = _Answer(value, before - counted.left, counted.open - unsolved, short)
            if not short or (one and answer.unsolved):
                with lock:
                    known[args] = answer
                    if len(known) > most:
                        known.popitem(last=False)
            return value

        call.cache_clear = known.clear  # type: ignore[attr-defined]
        return call

    return decorate


@contextmanager
def kept() -> Iterator[None]:
    """Within it no cycles are collected; what is not part of one is freed as ever. What the process had set holds again at the end.

    Example:
        >>> with kept():
        ...     gc.isenabled()
        False
        >>> gc.isenabled()
        True
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
