"""What runs in place of a jaxpr, as a jaxpr of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Instead:
    """A jaxpr with the results of another one.

    Attributes:
        closed: the jaxpr.
        parts: equations of the function as it was of which a part is computed, and what part.
        guarded: equations of the function as it was whose slopes are kept finite, and how.
        loops: loops of the function as it was that are written anew, or not, and why.
    """

    closed: Any
    parts: tuple[tuple[Any, str], ...] = ()
    guarded: tuple[tuple[Any, str], ...] = ()
    loops: tuple[tuple[Any, str], ...] = ()

    def after(self, earlier: Instead | None) -> Instead:
        """This one, made of ``earlier``, with what is told of both."""
        if earlier is None:
            return self
        return Instead(
            self.closed,
            earlier.parts + self.parts,
            earlier.guarded + self.guarded,
            earlier.loops + self.loops,
        )
