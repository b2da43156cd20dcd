"""Numbers, dtypes and tuples as Python writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from jaxte.lang.expr import Scalar
from jaxte.lang.scalars.rows import CALL, SIGN

Written = tuple[str, int]  # a text and how strongly it binds


def number_text(value: Scalar) -> Written:
    """A Python number."""
    if isinstance(value, bool):
        return str(value), CALL
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "jnp.nan", CALL
        return ("jnp.inf", CALL) if value > 0 else ("-jnp.inf", SIGN)
    if isinstance(value, complex):
        return f"complex({number_text(value.real)[0]}, {number_text(value.imag)[0]})", CALL
    return repr(value), SIGN if value < 0 or math.copysign(1, value) < 0 else CALL


def dtype_text(dtype: str) -> str:
    return "jnp.bool_" if dtype == "bool" else f"jnp.{dtype}"


def tuple_text(entries: Iterable[str]) -> str:
    """``(a, b)``, and ``(a,)`` of one."""
    listed = list(entries)
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"


def parenthesised(written: Written) -> str:
    """What can stand before a dot or a bracket."""
    return written[0] if written[1] == CALL else f"({written[0]})"
