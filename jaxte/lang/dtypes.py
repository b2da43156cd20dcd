"""Element types and their promotion, as JAX does it, in plain Python.

A *kind* is a pair ``(dtype, weak)``: ``weak`` marks values of Python scalars (and of axes), which take the
type of what they meet. The lattice is JAX's type promotion lattice
(https://docs.jax.dev/en/latest/jep/9407-type-promotion.html); a test compares every pair with ``jnp``.

Numbers that are known now have a kind as well: what an array of one element holds, and what of arithmetic with numbers is decided before any dtype is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import cache
from string import ascii_lowercase
from typing import Any, Protocol, TypeAlias

import numpy as np

from jaxte.lang.errors import DefinitionError, DtypeError
from jaxte.lang.interning import Scalar

Kind = tuple[str, bool]


class HasDtype(Protocol):
    """What ``jnp.float32`` is, and every array."""

    @property
    def dtype(self) -> np.dtype: ...


DtypeLike: TypeAlias = str | type[object] | np.dtype | HasDtype

# Each key promotes to each of its values; "i*", "f*", "c*" are the weak types of Python scalars.
_ABOVE: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": ("c*", "bfloat16", "float16"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}
_WEAK = {"i*": "int32", "f*": "float32", "c*": "complex64"}

DTYPES = tuple(name for name in _ABOVE if not name.endswith("*"))
NARROW = ("float16", "bfloat16")  # in which sums, products and recurrences are rounded at the end only
FLOATS = ("bfloat16", "float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
INTEGER_LIMITS = {  # the least and the greatest of each
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
INT32_BITS = INTEGER_LIMITS["int32"][1].bit_length()  # besides its sign
SHORT_INTEGERS = {name: ends for name, ends in INTEGER_LIMITS.items() if not name.endswith(("32", "64"))}
UNSIGNED = ("uint32", "uint64")  # in which no position below 0 can be computed
ROUNDED = (
    1e-12  # what is left of coefficients that cancel, for each unit of theirs: 0, but for rounding in float64
)
EXACT_UP_TO = {  # the greatest number up to which each holds every integer
    **{"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53},
    **{"complex64": 2**24, "complex128": 2**53},
}
_ALIASES = {"int": "int32", "float": "float32", "complex": "complex64", "bool_": "bool"}


def dtype_name(dtype: object) -> str:
    """The canonical name of a dtype given as text, a NumPy dtype, a scalar type or a Python type."""
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type):
        name = dtype.__name__
    else:
        name = str(getattr(dtype, "name", None) or getattr(dtype, "dtype", dtype))
    name = _ALIASES.get(name, name)
    if name not in _ABOVE or name.endswith("*"):
        close = get_close_matches(name, DTYPES, n=1, cutoff=0.8)
        hint = f"; did you mean {close[0]}?" if close else f"; the dtypes of jaxte are {', '.join(DTYPES)}"
        if name.isdigit():
            hint += f"; the extents of a shape are one argument, as in (4, {name})"
        raise DtypeError(f"unknown dtype {dtype!r}{hint}")
    return name


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def is_complex(dtype: str) -> bool:
    return dtype in COMPLEX


def is_inexact(dtype: str) -> bool:
    return dtype in FLOATS or dtype in COMPLEX


def is_integer(dtype: str) -> bool:
    return dtype in INTEGERS


def largest(dtype: str) -> float:
    """The largest number of a floating dtype."""
    return 255 * 2.0**120 if dtype == "bfloat16" else float(np.finfo(dtype).max)


def real_dtype(dtype: str) -> str:
    """The dtype of the real part."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def complex_dtype(dtype: str) -> str:
    """The complex dtype whose parts are of ``dtype``."""
    return "complex128" if dtype in ("float64", "complex128") else "complex64"


def _node(kind: Kind) -> str:
    dtype, weak = kind
    if not weak or dtype == "bool":
        return dtype
    return "i*" if is_integer(dtype) else "f*" if is_float(dtype) else "c*"


@cache
def _upper(node: str) -> frozenset[str]:
    found = {node}
    for above in _ABOVE[node]:
        found |= _upper(above)
    return frozenset(found)


@cache
def _join(a: Kind, b: Kind) -> Kind:
    if a == b:
        return a
    first, second = _node(a), _node(b)
    common = _upper(first) & _upper(second)
    least = [node for node in common if common <= _upper(node)]
    if not least:
        raise DtypeError(f"no common dtype for {a[0]} and {b[0]}; use te.cast on one of them")
    node = least[0]
    if node not in _WEAK:
        return node, False
    widest = [k[0] for k in (a, b) if _node(k) == node]
    return (max(widest, key=DTYPES.index) if widest else _WEAK[node]), True


def promote(kinds: Iterable[Kind]) -> Kind:
    """The kind that operands of these kinds meet at."""
    result: Kind | None = None
    for kind in kinds:
        result = kind if result is None else _join(result, kind)
    assert result is not None
    return result


def to_inexact(kind: Kind) -> Kind:
    """The kind of a function such as ``exp`` of a value of ``kind``."""
    dtype, weak = kind
    if is_inexact(dtype):
        return kind
    return ("float64" if dtype in ("int64", "uint64") else "float32"), weak


def sum_dtype(dtype: str) -> str:
    """The dtype of a sum or product reduction: small integers widen as ``jnp.sum`` widens them."""
    if dtype in ("bool", "int8", "int16"):
        return "int32"
    if dtype in ("uint8", "uint16"):
        return "uint32"
    return dtype


def scalar_kind(value: object) -> Kind:
    """The kind of a Python scalar."""
    if isinstance(value, bool):
        return "bool", False
    if isinstance(value, int):
        return "int32", True
    if isinstance(value, float):
        return "float32", True
    if isinstance(value, complex):
        return "complex64", True
    raise DtypeError(f"{value!r} is not a scalar; index a tensor, or use te.const")


def width(dtype: str) -> int:
    """The bytes of one element."""
    return 1 if dtype == "bool" else int(dtype.strip(ascii_lowercase)) // 8


_ROUNDING = 0.02  # of the larger of two numbers, which bfloat16 may round by 0.004 each
LEAST = 1e-4  # from which on, up to its inverse, float16 has numbers in full precision, too

# on indices, which are integers of any size
INTEGER_FOLDS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "maximum": max,
    "minimum": min,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "nonzero": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def plain_number(value: Scalar) -> Scalar:
    """A number of Python that is no instance of a class of its own, as ``np.float64`` and the members of an IntEnum are."""
    return next(
        kind(value)  # type: ignore[arg-type]
        for kind in (bool, int, float, complex)
        if isinstance(value, kind)
    )


def number_of(value: Any) -> Any:
    """The number that an array of one element holds.

    Raises:
        DefinitionError: JAX traces it. Under ``jax.grad`` alone it has a value all the same, whose derivative would be lost.
    """
    try:
        np.asarray(value)  # which tracers of every kind refuse
        return value.item()
    except TypeError:
        raise DefinitionError(
            f"{value!r} has no value yet: it is traced by jax.jit, jax.grad or another transformation; give it to the "
            "te.function as an argument, an array of shape (), and read it as s[()]"
        ) from None


def compared(name: str, left: float, right: float) -> bool | None:
    """A comparison of two numbers that no rounding to a dtype brings together; None where one might."""
    if abs(left - right) <= _ROUNDING * max(abs(left), abs(right)):
        return None
    return bool(INTEGER_FOLDS[name](left, right))


def in_every_dtype(value: Scalar) -> float | None:
    """``value`` where every dtype of real numbers has it up to rounding, else None."""
    if isinstance(value, (bool, complex)):
        return None
    return float(value) if value == 0 or LEAST < abs(value) < 1 / LEAST else None


def fits(dtype: str, value: Any) -> bool:
    """Whether an integer ``dtype`` has ``value``."""
    low, high = INTEGER_LIMITS[dtype]
    return bool(low <= value <= high)
