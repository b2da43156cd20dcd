"""One row per scalar operation: the interpreter, the emitter, the printer and the derivative read ``TABLE``.

In the derivatives ``y`` is the value itself and ``x``, ``a``, ``b`` are operands. Numbers in them are plain Python
numbers, which take the dtype of what they meet. Derivatives at kinks are those of JAX.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from jaxte.lang import operators as ops
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import Call, Const, Expr
from jaxte.lang.scalars import rules
from jaxte.lang.scalars.rows import (
    AND,
    ANYTHING,
    BITAND,
    BITOR,
    BITXOR,
    CALL,
    COMPARE,
    OR,
    POWER,
    PRODUCT,
    SHIFT,
    SUM,
    Form,
    Function,
    function,
    infix,
    prefix,
)
from jaxte.lang.scalars.rules import f, minus_one, of_real, one
from jaxte.lang.scalars.special import SPECIAL
from jaxte.lang.walk import postorder

_LOG2, _LOG10, _SQRT_PI = math.log(2), math.log(10), math.sqrt(math.pi)
_CASES = r"\begin{{cases}}{1} & \text{{if }} {0} \\ {2} & \text{{otherwise}}\end{{cases}}"
_MAXIMUM, _MAXIMUM_VJP = rules.choice(lambda a, b: a > b)
_MINIMUM, _MINIMUM_VJP = rules.choice(lambda a, b: a < b)
_SPECIAL = "jax.scipy.special."

# fmt: off
_ARITHMETIC = (
    infix(ops.ADD, "+", SUM, "``a + b``.", one, one),
    infix(ops.SUBTRACT, "-", SUM, "``a - b``.", one, minus_one),
    infix(ops.MULTIPLY, "*", PRODUCT, "``a * b``. Derivatives: b, a.",
          lambda y, a, b: b, lambda y, a, b: a, latex=r"\cdot"),
    infix(ops.DIVIDE, "/", PRODUCT, "``a / b``; integers give a float. Derivatives: ``1 / b``, ``-a / b**2``.",
          lambda y, a, b: 1 / b, lambda y, a, b: -y / b,
          latex=Form(r"\frac{{{0}}}{{{1}}}", PRODUCT), vjp=lambda g, y, a, b: (g / b, -g * y / b)),
    infix(ops.FLOOR_DIVIDE, "//", PRODUCT, "The floor of ``a / b``. Derivatives: zero.",
          latex=Form(r"\left\lfloor\frac{{{0}}}{{{1}}}\right\rfloor")),
    infix(ops.MOD, "%", PRODUCT, "``a - a // b * b``, with the sign of b. Derivatives: 1, ``-floor(a / b)``.",
          one, rules.mod_divisor, latex=r"\bmod"),
    infix(ops.POWER, "**", POWER, "``a**b``. Derivatives: ``b * a**(b - 1)``, ``a**b * log(a)``; an exponent that "
          "is a constant has none.", rules.power_base, rules.power_exponent, numpy=rules.numpy_power,
          latex=Form("{{{0}}}^{{{1}}}", POWER, (POWER + 1, ANYTHING))),
    prefix(ops.NEGATIVE, "-", "-", "``-x``.", minus_one),
)

_PREDICATES = (
    infix(ops.EQUAL, "==", COMPARE, "Whether a equals b.", latex="="),
    infix(ops.NOT_EQUAL, "!=", COMPARE, "Whether a differs from b.", latex=r"\neq"),
    infix(ops.NONZERO, "!=", COMPARE, "Whether the element of a head differs from 0: where it does not, it passes nothing on.",
          latex=r"\neq", numpy=np.not_equal),
    infix(ops.LESS, "<", COMPARE, "Whether a is below b."),
    infix(ops.LESS_EQUAL, "<=", COMPARE, "Whether a is at most b.", latex=r"\leq"),
    infix(ops.GREATER, ">", COMPARE, "Whether a is above b."),
    infix(ops.GREATER_EQUAL, ">=", COMPARE, "Whether a is at least b.", latex=r"\geq"),
    # predicates combine with &, |, ~, which bind more than comparisons; ∧ and ∨ bind less
    infix(ops.AND, "&", BITAND, "Whether all hold.", latex=Form(r"{0} \land {1}", AND, (AND, AND + 1))),
    infix(ops.OR, "|", BITOR, "Whether one of them holds.", latex=Form(r"{0} \lor {1}", OR, (OR, OR + 1))),
    prefix(ops.NOT, "~", r"\lnot ", "Whether it does not hold."),
    function("isnan", "Whether x is NaN."),
    function("isinf", "Whether x is infinite."),
    function("isfinite", "Whether x is neither infinite nor NaN."),
)

_BITS = (
    infix(ops.BIT_AND, "&", BITAND, "The bits that both integers have.", latex=r"\mathbin{{\&}}"),
    infix(ops.BIT_OR, "|", BITOR, "The bits that one of the integers has.", latex=r"\mathbin{{|}}"),
    infix(ops.BIT_XOR, "^", BITXOR, "The bits in which the integers differ.", latex=r"\oplus"),
    prefix(ops.BIT_NOT, "~", r"\mathord{{\sim}}", "The bits that an integer does not have."),
    infix(ops.LEFT_SHIFT, "<<", SHIFT, "``a * 2**b`` on integers.", latex=r"\ll"),
    infix(ops.RIGHT_SHIFT, ">>", SHIFT, "``a // 2**b`` on integers.", latex=r"\gg"),
)

_CHOICES = (
    function("select", "a where cond holds, else b; the other one contributes nothing, also to derivatives.",
             None, lambda y, c, a, b: f.select(c, 1, 0), lambda y, c, a, b: f.select(c, 0, 1),
             jnp="jnp.where", latex=Form(_CASES, PRODUCT),
             vjp=lambda g, y, c, a, b: (None, f.select(c, g, 0), f.select(c, 0, g))),
    function("maximum", "The larger of a and b, NaN if one is NaN. Derivatives: 1 to the larger one; a tie gives "
             "1/2 to each.", *_MAXIMUM, latex=r"\max", vjp=_MAXIMUM_VJP),
    function("minimum", "The smaller of a and b, NaN if one is NaN. Derivatives: 1 to the smaller one; a tie "
             "gives 1/2 to each.", *_MINIMUM, latex=r"\min", vjp=_MINIMUM_VJP),
    function("relu", "The larger of x and 0. Derivative: 1 for ``x > 0``, else 0.",
             lambda y, x: f.select(x > 0, 1, 0), jnp="jax.nn.relu", numpy=lambda x: np.maximum(x, 0),
             vjp=lambda g, y, x: (f.select(x > 0, g, 0),)),
    function("relu6", "x clipped to 0 to 6. Derivative: 1 between, 0 at the bounds and beyond.",
             lambda y, x: f.select((x > 0) & (x < 6), 1, 0), jnp="jax.nn.relu6",
             numpy=lambda x: np.minimum(np.maximum(x, 0), 6),
             vjp=lambda g, y, x: (f.select((x > 0) & (x < 6), g, 0),)),
    function("abs", "``|x|``. Derivative: 1 for ``x >= 0``, else -1; for complex x, 0 at 0.",
             of_real(lambda y, x: f.select(x >= 0, 1, -1)), latex=r"\left|{0}\right|", vjp=rules.abs_vjp),
    function("sign", "-1, 0 or 1; ``x / abs(x)`` for complex x. Derivative: zero."),
    function("floor", "The largest integer not above x. Derivative: zero.", latex=r"\left\lfloor {0}\right\rfloor"),
    function("ceil", "The smallest integer not below x. Derivative: zero.", latex=r"\left\lceil {0}\right\rceil"),
    function("trunc", "x without its fraction. Derivative: zero."),
    function("round", "The nearest integer, of two the even one. Derivative: zero."),
)

_POWERS = (
    function("exp", "eˣ. Derivative: itself.", lambda y, x: y, latex=Form("e^{{{0}}}", POWER)),
    function("exp2", "2ˣ. Derivative: ``log(2) * exp2(x)``.", lambda y, x: _LOG2 * y, latex=Form("2^{{{0}}}", POWER)),
    function("expm1", "eˣ - 1, exact near 0. Derivative: ``expm1(x) + 1``.", lambda y, x: y + 1),
    function("log", "Natural logarithm. Derivative: ``1 / x``.", lambda y, x: 1 / x, latex=r"\log"),
    function("log2", "Logarithm to base 2. Derivative: ``1 / (log(2) * x)``.",
             lambda y, x: 1 / (_LOG2 * x), latex=r"\log_{{2}}"),
    function("log10", "Logarithm to base 10. Derivative: ``1 / (log(10) * x)``.",
             lambda y, x: 1 / (_LOG10 * x), latex=r"\log_{{10}}"),
    function("log1p", "``log(1 + x)``, exact near 0. Derivative: ``1 / (1 + x)``.", lambda y, x: 1 / (1 + x)),
    function("logaddexp", "``log(exp(a) + exp(b))``, without overflow. Derivatives: ``sigmoid(a - b)``, "
             "``sigmoid(b - a)``.", lambda y, a, b: f.sigmoid(a - b), lambda y, a, b: f.sigmoid(b - a)),
    function("sqrt", "Square root. Derivative: ``0.5 / sqrt(x)``.", lambda y, x: 0.5 / y, latex=r"\sqrt{{{0}}}"),
    function("rsqrt", "``1 / sqrt(x)``. Derivative: ``-0.5 * rsqrt(x) / x``.", lambda y, x: -0.5 * y / x,
             jnp="lax.rsqrt", latex=Form(r"\frac{{1}}{{\sqrt{{{0}}}}}", PRODUCT), numpy=lambda x: 1 / np.sqrt(x)),
    function("cbrt", "Cube root. Derivative: ``1 / (3 * cbrt(x)**2)``.",
             lambda y, x: 1 / (3 * y**2), latex=r"\sqrt[3]{{{0}}}"),
    function("square", "``x * x``. Derivative: ``2 * x``.",
             lambda y, x: 2 * x, latex=Form("{{{0}}}^{{2}}", POWER, (POWER + 1,))),
    function("reciprocal", "``1 / x``. Derivative: ``-1 / x**2``.",
             lambda y, x: -y * y, latex=Form(r"\frac{{1}}{{{0}}}", PRODUCT)),
    function("hypot", "``sqrt(a**2 + b**2)``. Derivatives: ``a / hypot(a, b)``, ``b / hypot(a, b)``; at 0 1/2 each.",
             lambda y, a, b: f.select(y == 0, 0.5, a / y), lambda y, a, b: f.select(y == 0, 0.5, b / y)),
)

_TRIGONOMETRIC = (
    function("sin", "Sine. Derivative: ``cos(x)``.", lambda y, x: f.cos(x), latex=r"\sin"),
    function("cos", "Cosine. Derivative: ``-sin(x)``.", lambda y, x: -f.sin(x), latex=r"\cos"),
    function("tan", "Tangent. Derivative: ``1 + tan(x)**2``.", lambda y, x: 1 + y * y, latex=r"\tan"),
    function("asin", "Inverse sine. Derivative: ``1 / sqrt(1 - x**2)``.",
             lambda y, x: f.rsqrt(1 - x * x), jnp="jnp.arcsin", latex=r"\arcsin"),
    function("acos", "Inverse cosine. Derivative: ``-1 / sqrt(1 - x**2)``.",
             lambda y, x: -f.rsqrt(1 - x * x), jnp="jnp.arccos", latex=r"\arccos"),
    function("atan", "Inverse tangent. Derivative: ``1 / (1 + x**2)``.",
             lambda y, x: 1 / (1 + x * x), jnp="jnp.arctan", latex=r"\arctan"),
    function("atan2", "Angle of the point (b, a). Derivatives: ``b / (a**2 + b**2)``, ``-a / (a**2 + b**2)``.",
             lambda y, a, b: b / (a * a + b * b), lambda y, a, b: -a / (a * a + b * b), jnp="jnp.arctan2"),
    function("sinh", "Hyperbolic sine. Derivative: ``cosh(x)``.", lambda y, x: f.cosh(x), latex=r"\sinh"),
    function("cosh", "Hyperbolic cosine. Derivative: ``sinh(x)``.", lambda y, x: f.sinh(x), latex=r"\cosh"),
    function("tanh", "Hyperbolic tangent. Derivative: ``1 - tanh(x)**2``.", lambda y, x: 1 - y * y, latex=r"\tanh"),
    function("asinh", "Inverse hyperbolic sine. Derivative: ``1 / sqrt(x**2 + 1)``.",
             lambda y, x: f.rsqrt(x * x + 1), jnp="jnp.arcsinh"),
    function("acosh", "Inverse hyperbolic cosine. Derivative: ``1 / sqrt(x**2 - 1)``.",
             lambda y, x: f.rsqrt((x - 1) * (x + 1)), jnp="jnp.arccosh"),
    function("atanh", "Inverse hyperbolic tangent. Derivative: ``1 / (1 - x**2)``.",
             lambda y, x: 1 / ((1 - x) * (1 + x)), jnp="jnp.arctanh"),
)

_STATISTICAL = (
    function("erf", "Error function. Derivative: ``2 / sqrt(pi) * exp(-x**2)``.",
             lambda y, x: 2 / _SQRT_PI * f.exp(-x * x), jnp=_SPECIAL + "erf"),
    function("erfc", "``1 - erf(x)``. Derivative: ``-2 / sqrt(pi) * exp(-x**2)``.",
             lambda y, x: -2 / _SQRT_PI * f.exp(-x * x), jnp=_SPECIAL + "erfc"),
    function("erfinv", "Inverse of erf. Derivative: ``sqrt(pi) / 2 * exp(erfinv(x)**2)``.",
             lambda y, x: _SQRT_PI / 2 * f.exp(y * y), jnp=_SPECIAL + "erfinv"),
    function("lgamma", "``log(|gamma(x)|)``. Derivative: ``digamma(x)``.",
             lambda y, x: f.digamma(x), jnp=_SPECIAL + "gammaln", latex=r"\log\left|\Gamma\left({0}\right)\right|"),
    function("digamma", "Derivative of lgamma. Derivative: ``polygamma(1, x)``.",
             lambda y, x: f.polygamma(1, x), jnp=_SPECIAL + "digamma", latex=r"\psi", numpy=rules.numpy_digamma),
    function("polygamma", "The a-th derivative of digamma at b. Derivative: ``polygamma(a + 1, b)``; none to a.",
             None, lambda y, n, x: f.polygamma(n + 1, x), jnp=_SPECIAL + "polygamma",
             latex=r"\psi^{{\left({0}\right)}}\left({1}\right)", numpy=rules.numpy_polygamma),
    function("sigmoid", "``1 / (1 + exp(-x))``. Derivative: ``sigmoid(x) * (1 - sigmoid(x))``.",
             lambda y, x: y * (1 - y), jnp="jax.nn.sigmoid", latex=r"\sigma", numpy=rules.numpy_sigmoid),
    function("log_sigmoid", "``log(sigmoid(x))``, without overflow. Derivative: ``sigmoid(-x)``.",
             lambda y, x: f.sigmoid(-x), jnp="jax.nn.log_sigmoid", latex=r"\log\sigma",
             numpy=lambda x: -np.logaddexp(-x, 0)),
    function("softplus", "``log(1 + exp(x))``, without overflow. Derivative: ``sigmoid(x)``.",
             lambda y, x: f.sigmoid(x), jnp="jax.nn.softplus", numpy=lambda x: np.logaddexp(x, 0)),
    function("gelu", "x times the normal distribution function of x, as JAX approximates it with tanh.",
             rules.gelu_partial, jnp="jax.nn.gelu", numpy=rules.numpy_gelu),
    function("silu", "``x * sigmoid(x)``. Derivative: ``s * (1 + x * (1 - s))`` with ``s = sigmoid(x)``.",
             rules.silu_partial, jnp="jax.nn.silu", numpy=lambda x: x * rules.numpy_sigmoid(x)),
)

_COMPLEX = (
    function("real", "Real part. Its adjoint is the real adjoint, as a complex number.", of_real(one),
             latex=r"\operatorname{{Re}}", vjp=lambda g, y, x: (g,)),
    function("imag", "Imaginary part. Its adjoint is -i times the real adjoint.", of_real(lambda y, x: None),
             latex=r"\operatorname{{Im}}", vjp=rules.imag_vjp),
    function("conj", "Complex conjugate. Its adjoint is the conjugate of the adjoint.", of_real(one),
             latex=r"\overline{{{0}}}", vjp=lambda g, y, x: (f.conj(g) if y.dtype.startswith("c") else g,)),
    function("stop_gradient", "x, which derivatives of every order take for a constant. Derivative: zero.",
             jnp="lax.stop_gradient", numpy=lambda x: x),
    function("cast", "x as another dtype. Derivative: 1 between floating dtypes, else zero.", rules.cast_partial,
             jnp=Form("{0}.astype({dtype})", CALL, (CALL,)), latex="{0}", numpy=lambda x: x, vjp=rules.cast_vjp),
)
# fmt: on

# What is finite wherever the operands are; of the functions that stand in neither, the value is.
_FINITE_WITH_DERIVATIVES = (
    "add subtract multiply negative select maximum minimum relu relu6 sigmoid log_sigmoid tanh sin cos abs sign "
    "floor ceil trunc round cast stop_gradient softplus erf erfc silu gelu square real imag conj equal not_equal nonzero less "
    "less_equal greater greater_equal logical_and logical_or logical_not atan isnan isinf isfinite "
)
_NOT_FINITE = (
    "divide floor_divide mod power log log2 log10 log1p sqrt rsqrt reciprocal tan asin acos acosh atanh "
    "erfinv lgamma digamma polygamma ndtri expi exp1 gammainc gammaincc igamma_grad_a betainc "
)
_FINITE = dict.fromkeys(_FINITE_WITH_DERIVATIVES.split(), "all") | dict.fromkeys(
    _NOT_FINITE.split(), "nothing"
)

_CHEAP = frozenset(
    [
        "add", "subtract", "multiply", "divide", "negative", "square", "sqrt", "rsqrt", "maximum",
        "minimum", "relu", "abs", "sign", "floor", "ceil", "select", "cast", "equal", "not_equal",
        "nonzero", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
        "logical_not",
    ]
)  # fmt: skip
_EXACT = frozenset(
    [
        "select", "negative", "abs", "maximum", "minimum", "relu", "sign", "floor", "ceil", "real", "imag",
        "conj",
    ]
)  # fmt: skip

_GROUPS = (
    _ARITHMETIC,
    _PREDICATES,
    _BITS,
    _CHOICES,
    _POWERS,
    _TRIGONOMETRIC,
    _STATISTICAL,
    SPECIAL,
    _COMPLEX,
)
TABLE: dict[str, Function] = {
    row.op.name: replace(
        row,
        finite=_FINITE.get(row.op.name, "value"),
        cheap=row.op.name in _CHEAP,
        exact=row.op.name in _EXACT,
    )
    for group in _GROUPS
    for row in group
}
"""The row of each operation, by the operation's name."""


def has_slope(op: ops.Op) -> bool:
    """Whether a derivative flows through an operation at all: none does through comparisons, what rounds to integers, and ``stop_gradient``."""
    row = TABLE[op.name]
    return row.vjp is not None or row.partials is not None


def is_finite(expr: Expr) -> bool:
    """Whether ``expr`` is finite wherever what it reads is, overflow aside; integers, as the positions of what it reads are, always are."""
    return not any(
        isinstance(node, Call) and is_inexact(node.dtype) and may_blow_up(node) for node in postorder(expr)
    )


def may_blow_up(node: Call) -> bool:
    """Whether an operation may be infinite or NaN at finite operands."""
    if node.op is ops.DIVIDE:
        divisor = node.args[1]
        return not (isinstance(divisor, Const) and divisor.value)
    if node.op is ops.POWER and isinstance(exponent := node.args[1], Const):
        return not (
            isinstance(exponent.value, (int, float))
            and exponent.value >= 0
            and exponent.value == int(exponent.value)
        )
    return TABLE[node.op.name].finite == "nothing"
