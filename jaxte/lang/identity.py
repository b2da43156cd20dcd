"""Sequences: nodes in them, told apart by identity, and items that are put in place of others.

Equal nodes are one object, and ``==`` between nodes is a predicate of the language without a truth value. So what ``in``, ``==``
and ``.index`` are for other sequences, these functions are for sequences of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from operator import is_
from typing import Any, TypeVar

from jaxte.lang.operators import Operand

T = TypeVar("T")
Members = AbstractSet[T] | Mapping[T, Any]
"""What ``in`` is asked of as it stands: the nodes of a set, or the keys of a dict, are found by identity."""


def among(item: object, items: Iterable[object]) -> bool:
    """Whether ``item``, a node or a tuple or record of nodes, is one of ``items``.

    >>> i, j = te.reduce_axis((0, 2), "i"), te.reduce_axis((0, 2), "j")
    >>> among(i, [j, i]), among((i, 1), [(j, 1)])
    (True, False)
    """
    if isinstance(item, Operand):
        return any(map(is_, repeat(item), items))
    return any(identical(item, other) for other in items)


def identical(a: object, b: object) -> bool:
    """Whether two nodes are one, or two sequences or records hold the same nodes; what is no node is compared as ever."""
    if a is b:
        return True
    if isinstance(a, Operand) or isinstance(b, Operand):
        return False
    if isinstance(a, (tuple, list)):
        if type(a) is not type(b) or len(a) != len(b):  # type: ignore[arg-type]
            return False
        return all(map(is_, a, b)) or all(map(identical, a, b))  # type: ignore[arg-type]
    if is_dataclass(a):
        return type(a) is type(b) and all(
            identical(getattr(a, name), getattr(b, name)) for name in _names(a.__class__)
        )
    return bool(a == b)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def place_of(item: object, items: Sequence[object]) -> int:
    """The position of ``item`` in ``items``, the first one.

    Raises:
        ValueError: it is not there.
    """
    for position, other in enumerate(items):
        if item is other or identical(item, other):
            return position
    raise ValueError(f"{item!r} is not in the sequence")


def filled_in(items: Iterable[Any], places: Iterable[int], values: Iterable[Any]) -> list[Any]:
    """``items`` with ``values`` at ``places``."""
    found = list(items)
    for place, value in zip(places, values, strict=True):
        found[place] = value
    return found
