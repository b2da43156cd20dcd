"""Seconds of a function that is raised, of whole programs, forward and backward: measured with regions taken and left, or estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Place = tuple[int, int]
"""An equation: the number of its jaxpr, in the order in which bodies are planned, and its number in it."""


@dataclass(frozen=True)
class Measured:
    """Least times in seconds, of a value and its gradient.

    Attributes:
        original: of the function as it stands.
        raised: of what is raised of it.
        without: of that without the regions of one kind, by the places of their equations.
        programs: how many were compiled.
    """

    original: float
    raised: float
    without: Mapping[frozenset[Place], float] = field(default_factory=dict)
    programs: int = 2

    @property
    def factor(self) -> float:
        """How many times as fast the function is with its regions."""
        return self.original / self.raised

    def factor_of(self, places: frozenset[Place]) -> float | None:
        """How many times as fast the function is with the regions of the kind at ``places``; None where they were not left."""
        found = next((seconds for key, seconds in self.without.items() if places <= key), None)
        return None if found is None else found / self.raised

    def __str__(self) -> str:
        return (
            f"measured: value and gradient in {1e3 * self.raised:.3g} ms, as it stands {1e3 * self.original:.3g} ms: "
            f"{self.factor:.2f} times as fast, the fastest of {self.programs} programs"
        )


@dataclass(frozen=True)
class Priced:
    """Seconds of a value and its gradient by the platform's estimate.

    Attributes:
        left: where only what gains by rules of structure is raised.
        raised: where all that has a rule is.
    """

    left: float
    raised: float

    def __str__(self) -> str:
        return (
            f"by estimate: value and gradient in {1e3 * self.raised:.2g} ms with all that has a rule raised, {1e3 * self.left:.2g} ms "
            "with what gains by itself alone"
        )
