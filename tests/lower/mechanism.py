"""What a rule that looks special is shown by: three functions that it was not made for, and how it is switched off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from jaxte.tensors.tensor import Tensor

Shape = tuple[int, ...]


def as_named(_: pytest.MonkeyPatch) -> None:
    """What ``without=`` switches off by name."""


@dataclass(frozen=True)
class Positions:
    """An argument of positions below a number."""

    shape: Shape
    below: int


@dataclass(frozen=True)
class Sample:
    """A function with its arguments.

    Attributes:
        gain: how many times as much is counted without the rule, at least.
        forms: as te.function takes them.
    """

    function: Callable[..., Tensor]
    arguments: tuple[Shape | Positions, ...]
    gain: float
    forms: dict[str, str] | None = None


@dataclass(frozen=True)
class Mechanism:
    """A rule.

    Attributes:
        counts: what it gains: "flops", "transcendentals", "bytes", "temporaries" of both passes as XLA counts them, an operation of StableHLO, "reductions of several arrays", "steps of
            loops", "functions in steps", or "values that are not finite".
        without: does without it.
        small: lets it serve arrays of any size.
        platform: for which the program is written; its counts are those of the CPU's compiler all the same.
    """

    name: str
    counts: str
    without: Callable[[pytest.MonkeyPatch], None]
    samples: tuple[Sample, ...]
    small: Callable[[pytest.MonkeyPatch], None] = as_named
    platform: str = "cpu"


def replaced(module: Any, name: str, by: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(module, name, by)
