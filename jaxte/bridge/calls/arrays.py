"""What counts as an array among the arguments of a function, and the dtypes that may pass."""

from __future__ import annotations

import functools
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import jax
import numpy as np

from jaxte.lang.dtypes import DTYPES
from jaxte.lang.errors import FeedError

_STATIC_TYPES = (
    *(bool, int, float, complex, str, bytes, type(None), type, np.dtype, slice, range),
    *(Enum, FunctionType, MethodType, BuiltinFunctionType, functools.partial, np.ufunc),
    *(jax.custom_jvp, jax.custom_vjp, type(jax.jit(abs))),  # what activations of jax.nn are
)
_WIDE = {"float64": "float32", "complex128": "complex64"}
_WIDE_INTEGERS = {"int64": "int32", "uint64": "uint32"}


def is_array(value: Any) -> bool:
    """Arrays of JAX and NumPy, NumPy scalars, tracers and shape-dtype structs."""
    return isinstance(value, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))


def is_static(value: Any) -> bool:
    """Python scalars, strings, functions and the like: part of the definition, not of the data."""
    return isinstance(value, _STATIC_TYPES)


def plain_array(value: Any) -> Any:
    """``value``; of typed keys of ``jax.random`` their data, which a definition can hold."""
    if isinstance(value.dtype, np.dtype):
        return value
    if isinstance(value, jax.ShapeDtypeStruct):
        return jax.eval_shape(jax.random.key_data, value)
    return jax.random.key_data(value)


def x64_enabled() -> bool:
    return bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]


def canonical_dtype(value: Any, label: str) -> str:
    """The dtype that ``value`` has inside JAX, which has float32 for NumPy's float64, or an error that says why it cannot be used."""
    name = value.dtype.name
    refuse_masked(value, label)
    if not getattr(value.dtype, "isnative", True):
        raise FeedError(
            f"{label} has dtype {value.dtype.str}, whose bytes are not in the order of this machine, which JAX does not take; "
            f'convert it with .astype("{name}")'
        )
    if name not in DTYPES:
        raise FeedError(
            f"{label} has dtype {value.dtype}; jaxte takes arrays of {', '.join(DTYPES)}. Convert it with .astype(...)"
        )
    if x64_enabled():
        return name
    if name in _WIDE_INTEGERS:
        _check_integers(value, name, label)
    return _WIDE.get(name) or _WIDE_INTEGERS.get(name, name)


def stated_dtype(value: Any, label: str) -> str:
    """The same where the definition states the dtype: no number of an array is rounded to it."""
    found, name = canonical_dtype(value, label), value.dtype.name
    if name in _WIDE and found != name and not isinstance(value, np.generic):
        raise FeedError(
            f"{label} has dtype {name}, but 64-bit types are off in JAX, which would round it to {found}; "
            f'convert it with .astype("{found}"), or call jax.config.update("jax_enable_x64", True) at start'
        )
    return found


def refuse_masked(value: Any, label: str) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise FeedError(f"{label} is a masked array, whose mask would be lost; fill it with .filled(...)")


def needs_look(value: Any) -> bool:
    """Whether the values of an array, not its dtype alone, say if it may pass."""
    return (
        not x64_enabled()
        and value.dtype.name in _WIDE_INTEGERS
        and isinstance(value, (np.ndarray, np.generic))
    )


def _check_integers(value: Any, name: str, label: str) -> None:
    """JAX narrows 64-bit integers silently; values that do not fit are an error here."""
    if not isinstance(value, (np.ndarray, np.generic)) or not value.size:
        return
    limits = np.iinfo(_WIDE_INTEGERS[name])
    if int(value.max()) > limits.max or int(value.min()) < limits.min:
        raise FeedError(
            f"{label} has dtype {name} and values that do not fit {limits.dtype}, to which JAX narrows it while 64-bit "
            'types are off; call jax.config.update("jax_enable_x64", True) at start'
        )
