"""The operations of the language and the operators that index expressions, scalars and Tensors share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Self, TypeVar

from jaxte.lang.dtypes import Kind, is_complex, is_inexact, promote, real_dtype, to_inexact
from jaxte.lang.errors import DefinitionError, DtypeError


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """A scalar operation: its name and the rule for the dtype of its result.

    ``result`` is "promote" (what the operands meet at), "inexact" (the same, integers become floats),
    "bool", "real" (the real type of the operand), "integer" (integers only) or a dtype to cast to.
    """

    name: str
    result: str
    arity: int

    def __post_init__(self) -> None:
        _ops.setdefault((self.name, self.result, self.arity), self)

    def __reduce__(self) -> Any:
        return _op, (self.name, self.result, self.arity)


_ops: dict[tuple[str, str, int], Op] = {}  # operations are told apart by identity, in pickles too


def _op(name: str, result: str, arity: int) -> Op:
    return _ops.get((name, result, arity)) or Op(name, result, arity)


ADD = Op("add", "promote", 2)
SUBTRACT = Op("subtract", "promote", 2)
MULTIPLY = Op("multiply", "promote", 2)
DIVIDE = Op("divide", "inexact", 2)
FLOOR_DIVIDE = Op("floor_divide", "promote", 2)
MOD = Op("mod", "promote", 2)
_OF_REAL_VALUES = frozenset({FLOOR_DIVIDE, MOD})
POWER = Op("power", "promote", 2)
NEGATIVE = Op("negative", "promote", 1)
ABS = Op("abs", "real", 1)
MAXIMUM = Op("maximum", "promote", 2)
MINIMUM = Op("minimum", "promote", 2)
EQUAL = Op("equal", "bool", 2)
NOT_EQUAL = Op("not_equal", "bool", 2)
# head != 0, which an adjoint is guarded by: the same for its slope, nothing for the head
NONZERO = Op("nonzero", "bool", 2)
LESS = Op("less", "bool", 2)
LESS_EQUAL = Op("less_equal", "bool", 2)
GREATER = Op("greater", "bool", 2)
GREATER_EQUAL = Op("greater_equal", "bool", 2)
AND = Op("logical_and", "bool", 2)
OR = Op("logical_or", "bool", 2)
NOT = Op("logical_not", "bool", 1)
BIT_AND = Op("bitwise_and", "integer", 2)
BIT_OR = Op("bitwise_or", "integer", 2)
BIT_XOR = Op("bitwise_xor", "integer", 2)
BIT_NOT = Op("bitwise_not", "integer", 1)
LEFT_SHIFT = Op("left_shift", "integer", 2)
RIGHT_SHIFT = Op("right_shift", "integer", 2)
SELECT = Op("select", "promote", 3)
COMPARISONS = (EQUAL, NOT_EQUAL, NONZERO, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL)
TURNED = {  # the comparison of the operands the other way round
    EQUAL: EQUAL,
    NOT_EQUAL: NOT_EQUAL,
    NONZERO: NONZERO,
    LESS: GREATER,
    LESS_EQUAL: GREATER_EQUAL,
    GREATER: LESS,
    GREATER_EQUAL: LESS_EQUAL,
}

_ARITHMETIC = (ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, POWER, LEFT_SHIFT, RIGHT_SHIFT, *COMPARISONS)
_UFUNCS = {op.name: op for op in _ARITHMETIC} | {"remainder": MOD}
_BITWISE_UFUNCS = {
    "bitwise_and": (AND, BIT_AND),
    "bitwise_or": (OR, BIT_OR),
    "bitwise_xor": (NOT_EQUAL, BIT_XOR),
}


@lru_cache(maxsize=1024)
def result_kind(op: Op, kinds: tuple[Kind, ...]) -> Kind:
    """The kind of the result of ``op`` on operands of ``kinds``."""
    if op.result == "bool":
        return "bool", False
    kind = promote(kinds[1:] if op is SELECT else kinds)
    match op.result:
        case "promote":
            if kind[0] == "bool" and op not in (SELECT, MAXIMUM, MINIMUM, MULTIPLY, ADD):
                return ("int32", False)
            if op in _OF_REAL_VALUES and is_complex(kind[0]):
                raise DtypeError(
                    f"{op.name} takes real values, not {kind[0]}; take te.real, te.imag or te.abs of the operand first"
                )
            return kind
        case "inexact":
            return to_inexact(kind)
        case "real":
            return real_dtype(kind[0]), kind[1]
        case "integer":
            if is_inexact(kind[0]):
                power = ", and a power is written **" if op is BIT_XOR else ""
                raise DtypeError(f"{op.name} takes integers, not {kind[0]}; cast with te.cast first{power}")
            # JAX shifts truths as the integers that they are
            return ("int32", False) if kind[0] == "bool" and op in (LEFT_SHIFT, RIGHT_SHIFT) else kind
    return op.result, False


Other = TypeVar("Other", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Operand(Generic[Other, Result_co]):
    """The operators that index expressions, scalars and whole Tensors share: what they meet, and what they give."""

    __slots__ = ()

    def _apply(self, op: Op, args: tuple[Any, ...]) -> Any:
        raise NotImplementedError

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        """The operators with a scalar of NumPy on the left; NumPy's functions are of arrays."""
        name = ufunc.__name__
        if method == "__call__" and not options and name in _UFUNCS:
            return self._apply(_UFUNCS[name], args)
        if method == "__call__" and not options and name in _BITWISE_UFUNCS:
            return self._apply(_logic_or_bits(*_BITWISE_UFUNCS[name], *args), args)
        raise _of_arrays(name)

    def __array_function__(self, func: Any, types: Any, args: Any, options: Any) -> Any:
        if func.__name__ in ("shape", "ndim"):  # which ask, and compute nothing
            return func.__wrapped__(*args, **options)
        if func.__name__ == "result_type":  # what jnp.asarray and jnp.zeros_like ask first
            raise has_no_value("an array of JAX")
        raise _of_arrays(func.__name__)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise has_no_value("an array of NumPy")

    def __float__(self) -> float:
        raise has_no_value("a number of Python")

    def __complex__(self) -> complex:
        raise has_no_value("a number of Python")

    def __add__(self, other: Other) -> Result_co:
        return self._apply(ADD, (self, other))

    def __radd__(self, other: Other) -> Result_co:
        return self._apply(ADD, (other, self))

    def __sub__(self, other: Other) -> Result_co:
        return self._apply(SUBTRACT, (self, other))

    def __rsub__(self, other: Other) -> Result_co:
        return self._apply(SUBTRACT, (other, self))

    def __mul__(self, other: Other) -> Result_co:
        return self._apply(MULTIPLY, (self, other))

    def __rmul__(self, other: Other) -> Result_co:
        return self._apply(MULTIPLY, (other, self))

    def __truediv__(self, other: Other) -> Result_co:
        return self._apply(DIVIDE, (self, other))

    def __rtruediv__(self, other: Other) -> Result_co:
        return self._apply(DIVIDE, (other, self))

    def __floordiv__(self, other: Other) -> Result_co:
        return self._apply(FLOOR_DIVIDE, (self, other))

    def __rfloordiv__(self, other: Other) -> Result_co:
        return self._apply(FLOOR_DIVIDE, (other, self))

    def __mod__(self, other: Other) -> Result_co:
        return self._apply(MOD, (self, other))

    def __rmod__(self, other: Other) -> Result_co:
        return self._apply(MOD, (other, self))

    def __divmod__(self, other: Other) -> tuple[Result_co, Result_co]:
        return self // other, self % other

    def __rdivmod__(self, other: Other) -> tuple[Result_co, Result_co]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Any:
        raise _NO_MATMUL

    __rmatmul__ = __matmul__

    def __round__(self, ndigits: Any = None) -> Any:
        raise has_no_value("a number of Python")

    def __pow__(self, other: Other) -> Result_co:
        return self._apply(POWER, (self, other))

    def __rpow__(self, other: Other) -> Result_co:
        return self._apply(POWER, (other, self))

    def __neg__(self) -> Result_co:
        return self._apply(NEGATIVE, (self,))

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Result_co:
        return self._apply(ABS, (self,))

    def __eq__(self, other: object) -> Result_co:  # type: ignore[override]
        return self._apply(EQUAL, (self, other)) if is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Result_co:  # type: ignore[override]
        return self._apply(NOT_EQUAL, (self, other)) if is_operand(other) else NotImplemented

    __hash__ = object.__hash__

    def __lt__(self, other: Other) -> Result_co:
        return self._apply(LESS, (self, other))

    def __le__(self, other: Other) -> Result_co:
        return self._apply(LESS_EQUAL, (self, other))

    def __gt__(self, other: Other) -> Result_co:
        return self._apply(GREATER, (self, other))

    def __ge__(self, other: Other) -> Result_co:
        return self._apply(GREATER_EQUAL, (self, other))

    def __and__(self, other: Other) -> Result_co:
        return self._apply(_logic_or_bits(AND, BIT_AND, self, other), (self, other))

    __rand__ = __and__

    def __or__(self, other: Other) -> Result_co:
        return self._apply(_logic_or_bits(OR, BIT_OR, self, other), (self, other))

    __ror__ = __or__

    def __xor__(self, other: Other) -> Result_co:
        return self._apply(_logic_or_bits(NOT_EQUAL, BIT_XOR, self, other), (self, other))

    __rxor__ = __xor__

    def __invert__(self) -> Result_co:
        return self._apply(_logic_or_bits(NOT, BIT_NOT, self), (self,))

    def __lshift__(self, other: Other) -> Result_co:
        return self._apply(LEFT_SHIFT, (self, other))

    def __rlshift__(self, other: Other) -> Result_co:
        return self._apply(LEFT_SHIFT, (other, self))

    def __rshift__(self, other: Other) -> Result_co:
        return self._apply(RIGHT_SHIFT, (self, other))

    def __rrshift__(self, other: Other) -> Result_co:
        return self._apply(RIGHT_SHIFT, (other, self))


def is_operand(value: object) -> bool:
    """Whether ``==`` is about elements: with a number, an expression, a Tensor or an array, not with other objects."""
    return isinstance(value, (Operand, bool, int, float, complex)) or hasattr(value, "dtype")


def _of_arrays(name: str) -> DefinitionError:
    return DefinitionError(
        f"np.{name} is a function of arrays; a definition is written with the functions of te: te.{name} where there is one, "
        "te.select for np.where, te.sum over a te.reduce_axis, te.ops for whole tensors"
    )


_NO_MATMUL = DefinitionError(
    "@ is a product of whole matrices; write what one element is, te.sum(A[i, k] * B[k, j], axis=k), or te.ops.matmul(A, B)"
)


def has_no_value(wanted: str) -> DefinitionError:
    return DefinitionError(
        f"an element of a definition has a value only when the code runs, and {wanted} is asked for; functions of Python's math and "
        "of arrays are written te.exp, te.sqrt, ... there, te.cast changes a dtype, and an array of numbers G is indexed as te.constant(G)[i]"
    )


def _logic_or_bits(logic: Op, bits: Op, *args: Any) -> Op:
    """``&``, ``|``, ``~`` are logic on predicates and bitwise on integers."""
    return logic if all(isinstance(a, bool) or getattr(a, "dtype", "") == "bool" for a in args) else bits
