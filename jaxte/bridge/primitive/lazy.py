"""Attributes that are made when they are first asked for, by one thread at a time."""

from __future__ import annotations

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
