"""One node for each meaning: equal nodes are one object, made without a constructor since nodes are immutable."""

from __future__ import annotations

import threading
from _weakref import _remove_dead_weakref  # type: ignore[attr-defined]  # what WeakValueDictionary is made with: one step, in whatever thread
from typing import Any, Generic, TypeVar
from weakref import ref

Scalar = bool | int | float | complex
Key = tuple[Any, ...]
T = TypeVar("T")


class ByKey(Generic[T]):
    """What was made of each key, as long as something else holds it: a WeakValueDictionary that takes no calls of Python, which half of its time went to.

    Attributes:
        references: by key, some of which may be dead; who asks often looks into it.
        forget: what is called with a reference that is dead.
    """

    def __init__(self) -> None:
        references: dict[Key, _Reference[T]] = {}

        def forget(dead: _Reference[T]) -> None:
            _remove_dead_weakref(references, dead.key)

        self.references, self.forget = references, forget

    def add(self, key: Key, made: T) -> None:
        """Makes ``made`` what is found under ``key``."""
        self.references[key] = reference = _Reference(made, self.forget)
        reference.key = key


class _Reference(ref[T]):
    """A reference that knows under which key it stands."""

    __slots__ = ("key",)
    key: Key


# by class and what they are made of; `call` looks into `references` itself, which is most of its work
_nodes: ByKey[Any] = ByKey()
references, _forget = _nodes.references, _nodes.forget
_lock = threading.RLock()


def intern(cls: type, key: Key, fields: dict[str, Any]) -> Any:
    """The one node of class ``cls`` under ``key``; made from ``fields`` if it does not exist yet."""
    key = (cls, *key)
    with _lock:
        there = references.get(key)
        node = None if there is None else there()
        if node is None:
            node = object.__new__(cls)
            for name, value in fields.items():
                object.__setattr__(node, name, value)
            references[key] = reference = _Reference(node, _forget)
            reference.key = key
    return node


def new_node(cls: type, fields: dict[str, Any]) -> Any:
    """A node of class ``cls``, whose constructor is left out since nodes are immutable."""
    node: Any = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(node, name, value)
    return node
