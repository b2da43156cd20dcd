"""A value and what flows back from it, for programs that are timed or priced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxte.lang.dtypes import is_float


def with_gradient(f: Callable[..., Any], moving: Sequence[int]) -> Callable[..., Any]:
    """The floats that ``f`` returns, and what flows back from ones at them to the arguments at ``moving``."""

    def both(*args: Any) -> Any:
        def of_moving(*own: Any) -> Any:
            filled = list(args)
            for n, array in zip(moving, own, strict=True):
                filled[n] = array
            return [r for r in jax.tree.leaves(f(*filled)) if is_float(str(r.dtype))]

        values, pull = jax.vjp(of_moving, *(args[n] for n in moving))
        return values, pull([jax.numpy.ones_like(v) for v in values])

    return both
