"""Derivatives that other code takes: ``jax.grad``, ``jax.value_and_grad`` and ``jax.vjp`` of its own functions, with these raised.

JAX has no hook for what is differentiated, so its three functions are replaced as long as somebody asks for it. Whether a call is raised is asked
for each thread, and when the call is traced, so that what was made within and is called later is what it was without.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax

from jaxte.bridge.functions.evaluate import Explained

Raising = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From a function to the same function with raised derivatives."""

_NAMES = ("grad", "value_and_grad", "vjp")
_RAISING: ContextVar[Raising | None] = ContextVar("raising", default=None)
_LOCK = threading.Lock()


class _Places:
    """The functions of JAX that are replaced, and by how many blocks."""

    def __init__(self) -> None:
        self._blocks = 0
        self._originals: dict[str, Any] = {}

    def enter(self) -> None:
        with _LOCK:
            if not self._blocks:
                self._originals = {name: getattr(jax, name) for name in _NAMES}
                for name, original in self._originals.items():
                    setattr(jax, name, _asking(original))
            self._blocks += 1

    def leave(self) -> None:
        with _LOCK:
            self._blocks -= 1
            if not self._blocks:
                for name, original in self._originals.items():
                    if (
                        getattr(getattr(jax, name), "original", None) is original
                    ):  # else somebody replaced it in turn
                        setattr(jax, name, original)


_PLACES = _Places()


@contextmanager
def taken_by(raising: Raising | None) -> Iterator[None]:
    """Within, functions that are given to ``jax.grad`` and its kin in this thread go through ``raising``; through nothing where it is None."""
    _PLACES.enter()
    token = _RAISING.set(raising)
    try:
        yield
    finally:
        _RAISING.reset(token)
        _PLACES.leave()


@contextmanager
def as_it_is() -> Iterator[None]:
    """Within, nothing is raised: what is traced is raised as a whole."""
    token = _RAISING.set(None)
    try:
        yield
    finally:
        _RAISING.reset(token)


def _asking(original: Callable[..., Any]) -> Callable[..., Any]:
    """``original`` of functions that are raised when they are called within a block."""

    @functools.wraps(original)
    def of(fun: Any, *args: Any, **kwargs: Any) -> Any:
        raising = _RAISING.get()
        if raising is None or not callable(fun) or isinstance(fun, Explained):
            return original(fun, *args, **kwargs)
        return original(_within(fun, raising(fun)), *args, **kwargs)

    setattr(of, "original", original)  # noqa: B010
    return of


def _within(fun: Callable[..., Any], raised: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (fun if _RAISING.get() is None else raised)(*args, **kwargs)

    return functools.update_wrapper(
        chosen, fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=()
    )
