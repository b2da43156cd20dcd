"""What the user asked for beside the definition: other gradients, and how forms are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from jaxte.autodiff.overrides import check_fdiff
from jaxte.bridge.measured import measurements
from jaxte.errors import DifferentiationError
from jaxte.lower.policy import Policy
from jaxte.lower.rates import is_known
from jaxte.tensor import Tensor

Fdiff = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Options:
    """The options of ``te.function``; see there."""

    override: Any = None
    fdiff: Fdiff | None = None
    platform: str | None = None
    max_memory: int | None = None
    forms: Mapping[str, str] = field(default_factory=dict)
    debug: bool = False

    def __post_init__(self) -> None:
        """What is wrong with an option is said where it is given, before JAX is asked for its backend."""
        Policy(self.platform if self.platform is not None else "cpu", self.max_memory, self.forms)
        check_fdiff(self.fdiff)
        if not (self.override is None or isinstance(self.override, Mapping) or callable(self.override)):
            raise DifferentiationError(
                f"override is {self.override!r}; give {{tensor: (dependencies, fn)}}, or over a builder a function "
                "override(result, *args) that returns such a dict"
            )

    def policy(self) -> Policy:
        """How forms are chosen from now on, with what was measured so far.

        A backend that no rates are known of is an accelerator of some kind: forms are those for a GPU, as ``te.explain`` says.
        """
        backend = jax.default_backend()
        platform = self.platform
        if platform is None:
            platform = backend if is_known(backend) else "gpu"
        return Policy(platform, self.max_memory, self.forms, measured=measurements())


NO_OPTIONS = Options()
