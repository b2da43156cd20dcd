"""An extension of griffe for the site: the section "Example" of a docstring is code, as "Examples" is, and names stand without roles, which help() shows."""

from __future__ import annotations

import re
from typing import Any

import griffe

_TITLE = re.compile(r"^( *)Example:$", re.MULTILINE)
_ROLE = re.compile(r":(?:func|class|meth|mod|attr):(?=`)")


class Docstrings(griffe.Extension):
    """Changes the text of a docstring before it is parsed, where the colon of a role would end a type."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for each object that was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub("", _TITLE.sub(r"\1Examples:", obj.docstring.value))
