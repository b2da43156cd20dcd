"""What the user asked for beside the definition: other gradients, and how forms are chosen.

Measured seconds of forms, for the whole process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import jax

from jaxte.derivatives.given_overrides import attach
from jaxte.derivatives.overrides import Fdiff, check_fdiff
from jaxte.lang.errors import DefinitionError, DifferentiationError
from jaxte.lang.rules import VERIFY
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.platforms import OTHER, is_known, platform_of
from jaxte.lower.cost.policy import AUTO, Policy, Save
from jaxte.lower.program.rows import check_rows
from jaxte.planning.asked import plans_outside
from jaxte.tensors.tensor import Tensor

_asked: ContextVar[str | None] = ContextVar("_asked", default=None)


@contextmanager
def made_for(platform: str | None) -> Iterator[None]:
    """Functions that are made within are for ``platform`` where their options name none; None for the one that JAX runs on."""
    token = _asked.set(platform)
    try:
        yield
    finally:
        _asked.reset(token)


@dataclass(frozen=True)
class Options:
    """The options of ``te.function``; see there."""

    override: Any = None
    fdiff: Fdiff | None = None
    platform: str | None = None
    max_memory: int | None = None
    forms: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    debug: bool = False
    save: Save = AUTO

    def __post_init__(self) -> None:
        """What is wrong with an option is said where it is given, before JAX is asked for its backend."""
        Policy(
            self.platform if self.platform is not None else "cpu", self.max_memory, self.forms, self.without
        )
        check_rows(self.without)
        check_fdiff(self.fdiff)
        if not (self.override is None or isinstance(self.override, Mapping) or callable(self.override)):
            raise DifferentiationError(
                f"override is {self.override!r}; give {{tensor: (dependencies, fn)}}, or over a builder a function "
                "override(result, *args) that returns such a dict"
            )

    def overrides_for(
        self, result: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Mapping[Tensor, Any] | None:
        """``override`` as a dict, of the tensors that a builder made of its arguments."""
        return self.override(result, *args, **kwargs) if callable(self.override) else self.override

    def travel_with(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        override: Mapping[Tensor, Any] | None,
        label: str,
    ) -> None:
        """Lets the derivatives go with the tensors of a larger graph, and refuses what cannot go with them.

        Raises:
            DefinitionError: an option about the code of a whole function.
        """
        about_code = {
            "platform": self.platform,
            "max_memory": self.max_memory,
            "forms": self.forms,
            "without": self.without,
            "debug": self.debug,
            "save": not self.save.is_default,
        }
        for name, value in about_code.items():
            if value:
                raise DefinitionError(
                    f"{label} is called with Tensors, so that its definitions become part of another function, but {name}= of "
                    f"{label} is about the code of a function of its own; give {name}= to the te.function around it, and call "
                    f"{label} without it here"
                )
        if override or self.fdiff is not None:
            attach(outputs, inputs, override, self.fdiff)

    def policy(self) -> Policy:
        """How forms are chosen from now on, with what was measured so far.

        A backend that no rates are known of is an accelerator of some kind: forms are those for a GPU, as ``te.explain`` says.
        """
        asked = self.platform if self.platform is not None else _asked.get()
        follows = asked is None
        debug = self.debug or VERIFY
        return Policy(
            _named(asked),
            self.max_memory,
            self.forms,
            self.without,
            measurements(),
            self.save,
            debug,
            follows,
        )


def planned_facts() -> Platform:
    """What is known of the platform that functions without options are planned for now."""
    return platform_of(_named(_asked.get()))


plans_outside(lambda: planned_facts().intermediates)


def _named(asked: str | None) -> str:
    """The platform that was asked for, or the one that JAX runs on."""
    backend = asked or jax.default_backend()
    return backend if is_known(backend) else OTHER


NO_OPTIONS = Options()
Measurements = Mapping[str, Mapping[str, float]]

_measured: dict[str, dict[str, float]] = {}


def measurements() -> Measurements:
    """Seconds of each form by the signature of the reduction."""
    return _measured


def remember(found: Measurements) -> None:
    """Adds ``found``; it guides the functions that are compiled from now on."""
    for key, seconds in found.items():
        _measured[key] = dict(seconds)
