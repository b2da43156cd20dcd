"""Attributes that are made when they are first asked for, by one thread at a time.

Objects that stand in a module under their own name, as decorated functions do, are pickled by that name, as functions are.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

# Building graphs uses islpy, whose contexts are not thread safe: all of it happens under this one lock.
BUILDING = threading.RLock()


class lazy(Generic[T]):
    """``functools.cached_property`` under the lock :data:`BUILDING`."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        with BUILDING:
            known = instance.__dict__
            if self.name not in known:
                known[self.name] = self.make(instance)
            return known[self.name]


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
