"""Elementwise primitives: an operation of the language on the elements at one position."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from jax import lax

from jaxte.frontends.jaxpr.equations.table import Reads, Site, Unraised, raises
from jaxte.frontends.jaxpr.values.value import Kind, Value, typed
from jaxte.lang import operators as ops
from jaxte.lang.dtypes import is_complex, is_inexact, is_integer
from jaxte.lang.expr import Const, Expr, call
from jaxte.lang.scalars.table import TABLE

# primitive -> the operation of the language that it is
_SAME = {
    "neg": "negative",
    "max": "maximum",
    "min": "minimum",
    "is_finite": "isfinite",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "cbrt": "cbrt",
    "square": "square",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "atan2": "atan2",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "erf": "erf",
    "erfc": "erfc",
    "erf_inv": "erfinv",
    "lgamma": "lgamma",
    "digamma": "digamma",
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "igamma_grad_a": "igamma_grad_a",
    "regularized_incomplete_beta": "betainc",
    "logistic": "sigmoid",
    "pow": "power",
    "abs": "abs",
    "sign": "sign",
    "floor": "floor",
    "ceil": "ceil",
    "real": "real",
    "imag": "imag",
    "conj": "conj",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_LOGIC = {"and": (ops.AND, ops.BIT_AND), "or": (ops.OR, ops.BIT_OR), "xor": (ops.NOT_EQUAL, ops.BIT_XOR)}
# whose integer forms wrap or round in their own ways
_FLOATS_ONLY = frozenset({"sign", "square", "pow", "abs"})

# primitives that JAX has from 0.11 on
_COMPOSED: Mapping[str, Callable[[Expr], Expr]] = {
    "log2": lambda x: call(ops.DIVIDE, call(TABLE["log"].op, x), math.log(2)),
    "one_minus_square": lambda x: call(ops.SUBTRACT, 1, call(ops.MULTIPLY, x, x)),
}

# all that one position of the operands decides one position of the result of
ELEMENTWISE = (
    *_SAME,
    *_COMPOSED,
    *_LOGIC,
    *("add", "add_any", "sub", "mul", "div", "rem", "not", "round", "integer_pow", "convert_element_type"),
    *(
        "copy",
        "copy_p",
        "select_n",
        "clamp",
        "nextafter",
        "population_count",
        "polygamma",
    ),
    *("shift_left", "shift_right_logical", "shift_right_arithmetic"),
)


@raises(*_SAME, reads=Reads.POINTWISE, notation="`op(x[i], ...)`")
def _pointwise(site: Site, *operands: Value) -> Value:
    name = site.params["primitive"]
    if name in _FLOATS_ONLY and not is_inexact(operands[0].dtype):
        raise Unraised(f"{name} of integers")
    op = TABLE[_SAME[name]].op
    return site.define(lambda *i: call(op, *elements(operands, i)))


@raises(*_COMPOSED, reads=Reads.POINTWISE, notation="`op(x[i], ...)`")
def _composed(site: Site, x: Value) -> Value:
    made = _COMPOSED[site.params["primitive"]]
    return site.define(lambda *i: made(x[i]))


@raises("add", "add_any", "sub", reads=Reads.LINEAR, notation="`x[i] + y[i]`")
def _sum(site: Site, x: Value, y: Value) -> Value:
    op = ops.SUBTRACT if site.params["primitive"] == "sub" else ops.ADD
    if site.dtype == "bool":
        raise Unraised("sums of booleans")
    return site.define(lambda *i: call(op, *elements((x, y), i)))


@raises("mul", reads=Reads.LINEAR, notation="`x[i] * y[i]`")
def _product(site: Site, x: Value, y: Value) -> Value:
    if site.dtype == "bool":
        raise Unraised("products of booleans")
    return site.define(lambda *i: _scaled(*elements((x, y), i)))


def _scaled(a: Expr, b: Expr) -> Expr:
    """A product with its number first, as one writes it."""
    return (
        call(ops.MULTIPLY, b, a)
        if isinstance(b, Const) and not isinstance(a, Const)
        else call(ops.MULTIPLY, a, b)
    )


@raises("div", reads=Reads.LINEAR, notation="`x[i] / y[i]`")
def _quotient(site: Site, x: Value, y: Value) -> Value:
    if not is_inexact(site.dtype):
        raise Unraised("integers divided towards zero")
    if _is_one(y):
        return site.define(lambda *i: x[i])
    return site.define(lambda *i: call(ops.DIVIDE, *elements((x, y), i)))


@raises("rem", reads=Reads.POINTWISE, notation="`x[i] % y[i]` of absolute values, with the sign of `x[i]`")
def _rem(site: Site, x: Value, y: Value) -> Value:
    if not is_inexact(site.dtype):
        raise Unraised("remainders of integers towards zero")

    def element(*i: Any) -> Expr:
        of, by = (call(TABLE["abs"].op, e) for e in elements((x, y), i))
        left = call(TABLE["mod"].op, of, by)
        negative = call(ops.LESS, at(x, i), 0)
        return call(ops.SELECT, negative, call(ops.NEGATIVE, left), left)

    return site.define(element)


def _is_one(y: Value) -> bool:
    """Whether all elements are known to be 1, as the spacing of ``jnp.gradient`` is."""
    return y.known is not None and y.ndim == 0 and bool(y.known == 1)


@raises("and", "or", "xor", reads=Reads.POINTWISE, notation="`x[i] & y[i]`")
def _logic(site: Site, x: Value, y: Value) -> Value:
    logical, bitwise = _LOGIC[site.params["primitive"]]
    op = logical if site.dtype == "bool" else bitwise
    return site.define(lambda *i: call(op, *elements((x, y), i)))


@raises("not", reads=Reads.POINTWISE, notation="`~x[i]`")
def _not(site: Site, x: Value) -> Value:
    op = ops.NOT if site.dtype == "bool" else ops.BIT_NOT
    return site.define(lambda *i: call(op, x[i]))


@raises("round", reads=Reads.POINTWISE, notation="`round(x[i])`")
def _round(site: Site, x: Value) -> Value:
    if site.params["rounding_method"] != lax.RoundingMethod.TO_NEAREST_EVEN:
        raise Unraised("rounding away from zero")
    return site.define(lambda *i: call(TABLE["round"].op, x[i]))


@raises("integer_pow", reads=Reads.POINTWISE, notation="`x[i] ** n`")
def _integer_pow(site: Site, x: Value) -> Value:
    n = site.params["y"]
    if not is_inexact(site.dtype):
        raise Unraised("powers of integers, which wrap")
    if n == 2:
        return site.define(lambda *i: call(ops.MULTIPLY, x[i], x[i]))
    return site.define(lambda *i: call(ops.POWER, x[i], n))


@raises("convert_element_type", reads=Reads.LINEAR, notation="`cast(x[i])`")
def _convert(site: Site, x: Value) -> Value:
    if is_complex(x.dtype) and not is_complex(site.dtype):
        raise Unraised("complex numbers cast to real ones")
    if is_integer(site.dtype) and is_inexact(x.dtype) and x.known is None:
        raise Unraised("floats cast to integers, which saturate")
    if site.dtype == "bool" and x.dtype != "bool":
        return site.define(lambda *i: call(ops.NOT_EQUAL, x[i], 0))
    return site.define(lambda *i: typed(x[i], site.dtype))


@raises("copy", "copy_p", reads=Reads.VIEW, notation="`x[i]`")
def _copy(site: Site, x: Value) -> Value:
    return site.define(lambda *i: x[i])


@raises("select_n", reads=Reads.POINTWISE, notation="`select(c[i], y[i], x[i])`")
def _select_n(site: Site, which: Value, *cases: Value) -> Value:
    if len(cases) == 1:
        return site.define(lambda *i: cases[0][i])
    if which.dtype == "bool":
        return site.define(lambda *i: call(ops.SELECT, at(which, i), *elements(cases[::-1], i)))

    def element(*i: Any) -> Expr:
        *first, result = elements(cases, i)
        for number, case in reversed(list(enumerate(first))):
            result = call(ops.SELECT, call(ops.EQUAL, at(which, i), number), case, result)
        return result

    return site.define(element)


@raises("clamp", reads=Reads.POINTWISE, notation="`x[i]` between the bounds, slope 0 at them")
def _clamp(site: Site, low: Value, x: Value, high: Value) -> Value:
    if low.kind is not Kind.NUMBER or high.kind is not Kind.NUMBER:
        raise Unraised("a clamp between bounds that are data, which has slope 0 at ties")

    def element(*i: Any) -> Expr:
        lo, hi, element = _lower(at(low, i), at(high, i)), at(high, i), x[i]
        if not is_inexact(site.dtype):
            return call(ops.MINIMUM, call(ops.MAXIMUM, element, lo), hi)
        inside = call(ops.AND, call(ops.GREATER, element, lo), call(ops.LESS, element, hi))
        free = call(ops.OR, inside, call(ops.NOT_EQUAL, element, element))
        return call(ops.SELECT, free, element, call(ops.SELECT, call(ops.LESS_EQUAL, element, lo), lo, hi))

    return site.define(element)


def _lower(low: Expr, high: Expr) -> Expr:
    """The lower bound, which is the upper one where the bounds are crossed: that is what XLA's clamp takes then."""
    if isinstance(low, Const) and isinstance(high, Const):
        return high if low.value > high.value else low  # type: ignore[operator]
    return call(ops.MINIMUM, low, high)


def elements(operands: Any, i: Any) -> list[Expr]:
    """The elements of ``operands`` at one position; scalars have one."""
    return [at(x, i) for x in operands]


def at(x: Value, i: Any) -> Expr:
    return x[i] if x.ndim else x[()]
