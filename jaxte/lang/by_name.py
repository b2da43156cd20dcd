"""Objects that stand in a module under their own name, as decorated functions do, are pickled by that name, as functions are."""

from __future__ import annotations

import sys
from typing import Any


def found_under(module: str | None, path: str) -> Any:
    """What a module holds under a qualified name, None where it holds nothing."""
    found: Any = sys.modules.get(module or "")
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


class PickledByName:
    """Pickled by ``__qualname__`` where that is where it is found, else as any object, with its state."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        path = getattr(self, "__qualname__", "")
        if path and found_under(getattr(self, "__module__", None), path) is self:
            return path
        return super().__reduce_ex__(protocol)
