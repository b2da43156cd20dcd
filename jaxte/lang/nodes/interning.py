"""One node for each meaning: equal nodes are one object, made without a constructor since nodes are immutable."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakValueDictionary

Scalar = bool | int | float | complex

# by class and what they are made of; `call` looks into `references` itself, which is most of its work
nodes: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
references: dict[tuple[Any, ...], Any] = nodes.data  # type: ignore[attr-defined]  # asked without a call of Python
_lock = threading.RLock()


def intern(cls: type, key: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    """The one node of class ``cls`` under ``key``; made from ``fields`` if it does not exist yet."""
    key = (cls, *key)
    with _lock:
        node = nodes.get(key)
        if node is None:
            node = new_node(cls, fields)
            nodes[key] = node
    return node


def new_node(cls: type, fields: dict[str, Any]) -> Any:
    """A node of class ``cls``, whose constructor is left out since nodes are immutable."""
    node: Any = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(node, name, value)
    return node
