"""Arrays of numbers as what definitions hold: of a dtype that has them, and as choices by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.checks import described
from jaxte.lang.errors import DefinitionError, DtypeError
from jaxte.lang.expr import Const, Expr, as_expr
from jaxte.lang.functions import choose

DEFAULTS = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
_keeps_wide: list[Callable[[], bool]] = []  # asked of JAX, which definitions do without


def keep_wide_where(asked: Callable[[], bool]) -> None:
    """Arrays of 64-bit numbers stay what they are where ``asked`` is true, as in JAX with ``jax_enable_x64``."""
    _keeps_wide[:] = [asked]


def default_dtype(kind: str) -> str:
    """The dtype of an array of ``kind`` for which none is given."""
    return kind if any(asked() for asked in _keeps_wide) else DEFAULTS.get(kind, kind)


def values_of(array: Any, name: str) -> np.ndarray:
    try:
        values = np.asarray(array)
        dtypes.dtype_name(values.dtype)
    except ValueError as error:
        raise DefinitionError(f"te.constant {name}: {error}; give rows of equal lengths") from None
    except DtypeError as error:
        raise DtypeError(f"te.constant {name}: {error}; give an array of numbers") from None
    except TypeError:  # what JAX raises for arrays that are traced, and NumPy for what it cannot take
        raise DefinitionError(
            f"te.constant {name}: {described(array)} has no values yet; make it an argument of the function"
        ) from None
    return values


def of_dtype(values: np.ndarray, kind: str, name: str) -> np.ndarray:
    """``values`` as ``kind``, which has to hold them."""
    if values.dtype.kind == "c" and not dtypes.is_complex(kind):
        raise DtypeError(
            f"te.constant {name}: complex numbers need a complex dtype, not {kind}; give np.real(...) of them"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        own = values.astype(kind)
    if (
        kind == "float16" or values.dtype.kind not in "iuf"
    ):  # overflow at 65504 is what float16 is chosen with
        return own
    if kind in dtypes.INTEGER_LIMITS:
        lo, hi = dtypes.INTEGER_LIMITS[kind]
        lost, wide = ~((values >= lo) & (values <= hi)), "int64"
    else:
        lost, wide = np.isinf(own) & np.isfinite(values), "float64"
    if lost.any():
        first = values[lost][0]
        remedy = "or smaller numbers" if np.isfinite(first) else "or finite numbers"
        wide = wide if np.isfinite(first) else "float32"
        raise DtypeError(
            f'te.constant {name}: the element {first} is beyond the numbers of {kind}; give te.constant(..., dtype="{wide}"), {remedy}'
        )
    return own


def chosen(values: np.ndarray, at: Sequence[Expr], dtype: str) -> Expr:
    """The element at positions, by one choice among rows after the other."""
    if not values.size:
        return Const(0, dtype)
    if not at:
        number = values.item()
        return Const(float(str(values[()])) if dtypes.is_float(dtype) else number, dtype)
    return as_expr(choose(at[0], [chosen(row, at[1:], dtype) for row in values]))
