"""Identifiers for emitted code, from names that users chose freely."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping

_TAKEN = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))
_MODULES = frozenset({"jax", "jnp", "lax", "functools", "pl", "triton"})
_LONGEST = 40  # characters that are kept of a name
APART, FIRST, KEPT, REPLAYED = (
    "_apart",
    "_first",
    "_kept",
    "_replayed",
)  # functions of emitted modules; no identifier begins with an underscore


class Names:
    """Hands out identifiers, each once, in the order in which they are asked for."""

    def __init__(self, taken: Iterable[str] = (), following: Mapping[str, int] | None = None) -> None:
        self._used = set(taken)
        self._next = dict(following or {})

    def new(self, wanted: str) -> str:
        """An identifier like ``wanted`` that is not taken yet."""
        base = identifier(wanted)
        if base in self._used or base in _TAKEN or base in _MODULES:
            return self.numbered(base)
        self._used.add(base)
        return base

    def numbered(self, base: str) -> str:
        """``base_1``, ``base_2``, ...: the next one that is not taken yet."""
        number = self._next.get(base, 1)
        while f"{base}_{number}" in self._used:
            number += 1
        self._next[base] = number + 1
        self._used.add(f"{base}_{number}")
        return f"{base}_{number}"

    def copied(self) -> Names:
        """Another one that has given the same identifiers so far."""
        return Names(self._used, self._next)

    def become(self, other: Names) -> None:
        """This one has given what ``other`` has."""
        self._used, self._next = other._used, other._next


def identifier(name: str) -> str:
    """The ASCII identifier nearest to ``name``; it may still be a keyword."""
    cleaned = re.sub(r"[^A-Za-z0-9_]+", "_", name)[:_LONGEST].strip("_")
    if not cleaned:
        return "t"
    return cleaned if not cleaned[0].isdigit() else f"t{cleaned}"


def docstring_text(text: str) -> str:
    """``text`` as it may stand inside a docstring: one line, nothing that ends the string or escapes."""
    shown = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return shown.replace("\\", "/").replace('"', "'")
