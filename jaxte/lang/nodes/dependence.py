"""What a node depends on is told when it is made, from what its children depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NOTHING: Mapping[Any, None] = {}


def free_in(children: Iterable[Any], bound: Iterable[Any] = ()) -> Mapping[Any, None]:
    """The axes that one of ``children`` depends on, less those that are ``bound``, in order of appearance.

    A mapping that has them all already is taken as it is, so that a thousand nodes over the same axes hold one.
    """
    found = NOTHING
    for child in children:
        own = child.free
        if own is not found and not own.keys() <= found.keys():
            found = {**found, **own} if found else own
    gone = found.keys() & set(bound)
    return {axis: None for axis in found if axis not in gone} if gone else found
