"""Nodes of expressions, and numbers as such: immutable and interned. What operations make of them is :mod:`jaxte.lang.arithmetic`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.dtypes import number_of, plain_number
from jaxte.lang.errors import DefinitionError, TruthValueError
from jaxte.lang.graphs import NOTHING
from jaxte.lang.interning import Scalar, intern
from jaxte.lang.operators import Op, Operand, has_no_value


class AnnotatedArray(Protocol):
    """What type checkers take ``x`` and ``x[i]`` for where a builder annotates its parameter ``x`` as ``jax.Array``, or with jaxtyping: an array.

    The builder is given a Tensor, whose elements are expressions; so what takes an expression in a body takes this, too.
    """

    @property
    def weak_type(self) -> bool: ...
    @property
    def at(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


class Expr(Operand["ScalarLike", "Expr"]):
    """A scalar or index expression.

    Attributes:
        dtype: name of the element type.
        weak: True for values of Python scalars and axes, which take the dtype of what they meet.
        children: the expressions that this node is made of, in order.
        free: the axes that it depends on and does not reduce over, in order of appearance.
        reduces: whether there is a reduction in it.
    """

    __slots__ = ("__weakref__", "dtype", "weak")
    __match_args__: tuple[str, ...] = ()
    dtype: str
    weak: bool
    children: tuple[Expr, ...] = ()  # no property: walks ask for it more than for anything else
    free: Mapping[Any, None] = NOTHING
    reduces: bool = False

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def _apply(self, op: Op, args: tuple[Any, ...]) -> Any:
        return _operate(op, *args)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        """The same node over other children."""
        return self

    @property
    def kind(self) -> dtypes.Kind:
        return self.dtype, self.weak

    def __bool__(self) -> bool:
        if isinstance(self, Const):
            return bool(self.value)
        raise TruthValueError(f"`{self!r}`")

    def __index__(self) -> int:
        if isinstance(self, Const) and isinstance(self.value, int):
            return int(self.value)
        raise has_no_value("an integer of Python")

    def __float__(self) -> float:
        if isinstance(self, Const) and isinstance(self.value, (int, float)):
            return float(self.value)
        return super().__float__()

    if not TYPE_CHECKING:  # to which every attribute that is not above is an error

        def __getattr__(self, name: str) -> Any:
            """Methods of arrays, which a scalar has not."""
            kind = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = _METHODS.get(name, "")
            if not hint and callable(getattr(np, name, None)):
                hint = f"functions are called by their names, te.{name}(...) where te has it"
            raise AttributeError(f"{kind}: `{self!r}` is a scalar of a definition; {hint}" if hint else kind)

    def __iter__(self) -> Iterator[Any]:
        raise DefinitionError(
            "a scalar expression cannot be iterated over; te.sum(x, over=k) adds what it is along an axis k"
        )

    def __repr__(self) -> str:
        return _write(self)

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self


ScalarLike: TypeAlias = Expr | bool | int | float | complex | np.generic | AnnotatedArray
"""What a body returns and the functions of a body take: expressions and numbers, and, for type checkers, elements of parameters annotated as arrays."""


_METHODS = {
    "astype": 'write te.cast(x, "float32")',
    "T": "read the tensor at the indices in another order, X[j, i]",
    **{
        name: f"write te.{name}(x, over=k), which reduces over an axis k"
        for name in ("sum", "mean", "max", "min", "prod")
    },
    **{name: f"write te.{name}(x)" for name in ("round", "conj", "real", "imag")},
    "item": "te.evaluate gives numbers",
}
_write: Callable[[Expr], str] = object.__repr__
_operate: Callable[..., Any]


def operate_with(apply: Callable[..., Any]) -> None:
    """Lets the operators of expressions make what ``apply`` does, which knows how operands meet."""
    global _operate
    _operate = apply


def show_with(write: Callable[[Expr], str]) -> None:
    """Lets expressions show themselves as ``write`` says, which knows their kinds."""
    global _write
    _write = write


class Const(Expr):
    """A literal."""

    __slots__ = ("value",)
    __match_args__ = ("value",)
    value: Scalar

    def __new__(cls, value: Scalar, dtype: str | None = None) -> Const:
        kind = dtypes.scalar_kind(value) if dtype is None else (dtype, False)
        return intern(
            cls, (repr(value), type(value), *kind), {"value": value, "dtype": kind[0], "weak": kind[1]}
        )

    def __reduce__(self) -> Any:
        return Const, (self.value, None if self.weak else self.dtype)


def as_expr(value: Any) -> Expr:
    """A Python scalar as a node; nodes as they are."""
    if isinstance(value, Expr):
        return value
    if type(value) is int:
        return integer(value)
    if type(value) is bool:
        return TRUE if value else FALSE
    if isinstance(value, Operand):
        raise DefinitionError(
            f"{value!r} is a whole tensor where one element is needed; index it, as in X[i, j] "
            "(X[()] if it has no axes)"
        )
    if type(value) is float:
        return Const(value)
    if isinstance(value, (bool, int, float, complex)):
        return Const(plain_number(value))
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _typed_number(value)
    if isinstance(value, str):
        raise DefinitionError(
            f"{value!r} is text, no scalar expression; an axis of this name is te.axis({value!r})"
        )
    raise DefinitionError(
        f"{type(value).__name__} {value!r} is not a scalar expression; "
        "arrays enter a definition as te.placeholder or te.constant"
    )


def _typed_number(value: Any) -> Const:
    """A scalar of NumPy or JAX. The 64-bit types are what NumPy makes of numbers of Python, and count as those."""
    name = dtypes.dtype_name(value.dtype)
    weak = name in ("int64", "float64", "complex128") or getattr(value, "weak_type", False)
    number = number_of(value)
    return Const(number) if weak else Const(number, name)


@lru_cache(maxsize=1024)
def integer(value: int) -> Const:
    """An integer as a node, made once."""
    return Const(value)


TRUE = Const(True)
FALSE = Const(False)
ZERO = Const(0)
ONE = Const(1)
