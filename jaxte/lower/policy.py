"""What guides the choice among forms: the platform, a memory budget, measurements, and the user's word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxte.errors import LoweringError
from jaxte.lower.rates import Rates, rates_of

ANY = "*"  # stands for every tensor in ``forms``


@dataclass(frozen=True)
class Policy:
    """How forms are chosen.

    Attributes:
        platform: "cpu", "gpu" or "tpu".
        max_memory: bytes that a single intermediate may take; None for as many as are fastest.
        forms: form to take by the name of a tensor, or by "*" for every tensor that offers it.
        without: forms never to take where there is another one.
        measured: seconds of each form by the signature of a definition, as ``te.autotune`` finds them.
    """

    platform: str = "cpu"
    max_memory: int | None = None
    forms: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rates_of(self.platform)  # an unknown platform is an error before anything is derived
        if self.max_memory is not None and self.max_memory <= 0:
            raise LoweringError(f"max_memory is {self.max_memory}; give a positive number of bytes, or None")

    @property
    def rates(self) -> Rates:
        return rates_of(self.platform)


DEFAULT = Policy()
