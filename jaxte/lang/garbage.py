"""Python's collector of reference cycles, which waits while something is derived.

A derivation makes hundreds of thousands of small objects that stay until it ends. The collector takes them for a reason to walk through all objects of
the process, JAX's own among them, again and again: a fifth of the time that a chain of a hundred definitions took.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept() -> Iterator[None]:
    """Within it no cycles are collected; what is not part of one is freed as ever. What the process had set holds again at the end.

    Example:
        >>> with kept():
        ...     gc.isenabled()
        False
        >>> gc.isenabled()
        True
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
