"""What guides the choice among forms: the platform, a memory budget, measurements, and the user's word."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from jaxte.lang.errors import LoweringError
from jaxte.lang.rules import VERIFY
from jaxte.lower.cost.platforms import Platform, Rates, platform_of
from jaxte.lower.cost.saving import AUTO, Save

ANY = "*"  # stands for every tensor in ``forms``


@dataclass(frozen=True)
class Policy:
    """How forms are chosen.

    Attributes:
        platform: "cpu", "gpu" or "tpu".
        max_memory: bytes that a single intermediate may take; None for as many as are fastest.
        forms: form to take by the name of a tensor, or by "*" for every tensor that offers it.
        without: forms and rewrites never to use where there is another way.
        measured: seconds of each form by the signature of a definition, as ``te.autotune`` finds them.
        save: which forward tensors the backward pass gets.
        debug: whether what is lowered is verified (see ``lower.code.verify_program``), as it is in all tests.
        follows: whether code that JAX lowers for another platform takes the forms of that one; not where the user chose the platform.
    """

    platform: str = "cpu"
    max_memory: int | None = None
    forms: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    save: Save = AUTO
    debug: bool = VERIFY
    follows: bool = False

    def __post_init__(self) -> None:
        platform_of(self.platform)  # an unknown platform is an error before anything is derived
        budget_bytes(self.max_memory)
        _check_forms(self.forms)

    @property
    def facts(self) -> Platform:
        return platform_of(self.platform)

    @property
    def rates(self) -> Rates:
        return self.facts.rates

    def on(self, platform: str) -> Policy:
        """The same for code that is lowered for ``platform``; what was measured here says nothing of another one."""
        if not self.follows or platform_of(platform) is self.facts:
            return self
        return replace(self, platform=platform, measured={})

    def for_parts(self, owners: Mapping[str, str]) -> Policy:
        """The same with forms that are named for a tensor named for its parts, too: ``owners`` has the tensor of each by their names."""
        forms = {
            part: self.forms[owner]
            for part, owner in owners.items()
            if owner in self.forms and part not in self.forms
        }
        return replace(self, forms={**self.forms, **forms}) if forms else self


def budget_bytes(budget: Any) -> int | None:
    """A memory budget as an integer; ``1e9`` is one too.

    Raises:
        LoweringError: it is no positive number of bytes.
    """
    if budget is None:
        return None
    is_number = isinstance(budget, Real) and not isinstance(budget, bool)
    if not is_number or not 0 < budget < math.inf or budget != int(budget):
        raise LoweringError(
            f"max_memory is {budget!r}; give a positive number of bytes, as 64 * 2**20, or None"
        )
    return int(budget)


def unwanted(names: Any) -> frozenset[str]:
    """The names of forms and rewrites that are not to be used; a single name is one too.

    Raises:
        LoweringError: they are no names.
    """
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, Collection) or not all(isinstance(name, str) for name in listed):
        raise LoweringError(
            f'without is {names!r}; give names of forms and rewrites as te.explain shows them, as ("stacked terms",)'
        )
    return frozenset(listed)


def _check_forms(forms: Any) -> None:
    remedy = 'give the name of a form by the name of a tensor, as {"y": "general"}, or by "*" for all'
    if not isinstance(forms, Mapping):
        raise LoweringError(f"forms is {forms!r}; {remedy}")
    for tensor, form in forms.items():
        if not isinstance(tensor, str) or not isinstance(form, str):
            raise LoweringError(f"forms has the entry {tensor!r}: {form!r}; {remedy}")


DEFAULT = Policy()
