"""An extension of griffe for the site: the section "Example" of a docstring is code, as "Examples" is."""

from __future__ import annotations

import re
from typing import Any

import griffe

_TITLE = re.compile(r"^( *)Example:$", re.MULTILINE)


class ExamplesAreCode(griffe.Extension):
    """Renames the section before it is parsed."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for each object that was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = _TITLE.sub(r"\1Examples:", obj.docstring.value)
