"""What was estimated of a function that is raised: whole programs, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass


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
