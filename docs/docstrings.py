"""An extension of griffe for the site.

The section "Example" of a docstring is code, as "Examples" is, and names stand without roles, which help() shows. Functions with overloads have their
types, as ``inspect.signature`` shows them.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

from jaxte.lang.checks import union_of

_TITLE = re.compile(r"^( *)Example:$", re.MULTILINE)
_ROLE = re.compile(r":(?:func|class|meth|mod|attr):(?=`)")


class Docstrings(griffe.Extension):
    """Changes the text of a docstring before it is parsed, where the colon of a role would end a type, and types."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for each object that was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub("", _TITLE.sub(r"\1Examples:", obj.docstring.value))
        if obj.is_function and obj.overloads:
            _typed(obj)


def _typed(fn: griffe.Function) -> None:
    """The types of its overloads for what the implementation leaves open."""
    for own in fn.parameters:
        if str(own.annotation) == "Any":
            own.annotation = union_of(
                each.parameters[own.name].annotation
                for each in fn.overloads or ()
                if own.name in each.parameters
            )
    if str(fn.returns) == "Any":
        fn.returns = union_of(each.returns for each in fn.overloads or ())
