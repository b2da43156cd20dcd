"""Every row of the table of scalar functions against JAX: values, dtypes, derivatives, also at kinks."""

import functools
import inspect
import itertools
import math
import operator
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from jaxte.autodiff.terms.scalar import contributions
from jaxte.bridge.functions.evaluate import evaluate
from jaxte.lang import dtypes
from jaxte.lang import functions as te
from jaxte.lang.errors import DefinitionError, DifferentiationError, DtypeError
from jaxte.lang.expr import Call, Const, Expr, Symbol, apply
from jaxte.lang.functions import TABLE
from jaxte.lang.graphs import among
from jaxte.lang.scalars.rows import CALL, OPS, SIGN
from jaxte.lang.scalars.special import SPECIAL
from jaxte.meaning.interpret import interpret
from jaxte.tensors.compute import compute
from jaxte.tensors.inputs import placeholder

TOLERANCE = {"bfloat16": 2e-2, "float16": 3e-3, "float32": 1e-5, "float64": 1e-10}
TOLERANCE |= {"complex64": 1e-5, "complex128": 1e-10}
# Kinks, poles, ends of domains, values where naive forms overflow.
POINTS = [
    0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    6.0,
    1e-3,
    50.0,
    -50.0,
    math.inf,
    -math.inf,
    math.nan,
]
COMPLEX_POINTS = [0.3 + 0.4j, -1.2 + 0.7j, 0.5 - 0.3j, -0.2 - 0.9j, 2 + 0j, -3 + 0j, 2j]

BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift"}
LOGIC = {"logical_and", "logical_or", "logical_not"}
NUMERIC = sorted(
    TABLE.keys() - BITS - LOGIC - {row.op.name for row in SPECIAL} - {"select", "cast", "polygamma"}
)
# JAX refuses these on complex numbers, or jaxte does
REAL = {"floor_divide", "mod", "floor", "ceil", "trunc", "logaddexp", "cbrt", "hypot", "atan2", "relu"}
REAL |= {"erf", "erfc", "erfinv", "lgamma", "digamma", "log_sigmoid", "softplus"}


def in_jax(name: str) -> Callable[..., Any]:
    """The function that the row's template stands for in emitted code."""
    names = "abc"[: TABLE[name].op.arity]
    return eval(
        f"lambda {', '.join(names)}: {TABLE[name].jnp.format(*names)}", {"jnp": jnp, "jax": jax, "lax": lax}
    )


def at(fn: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """``fn`` of scalar expressions, at the elements of ``arrays``; None stands for a derivative that is zero."""
    inputs = [placeholder(a.shape, a.dtype) for a in arrays]

    def body(i: Expr) -> Expr:
        value = fn(*(x[i] for x in inputs))
        return te.const(0.0, arrays[0].dtype) if value is None else value

    tensor = compute(arrays[0].shape, body)
    return interpret(tensor, {x: a for x, a in zip(inputs, arrays, strict=True) if among(x, tensor.inputs)})


def adjoints(y: Call, g: Expr) -> list[Expr | None]:
    """What the row of ``y`` says of its operands for the adjoint ``g``."""
    row = TABLE[y.op.name]
    found = row.vjp(g, y, *y.args) if row.vjp else [d if d is None else g * d for d in partials(y)]
    return [None if a is None else te.cast(a, x.dtype) for a, x in zip(found, y.args, strict=True)]


def partials(y: Call) -> list[Expr | None]:
    rules = TABLE[y.op.name].partials or (None,) * len(y.args)
    found = [rule(y, *y.args) if rule else None for rule in rules]
    return [None if d is None else te.cast(d, y.dtype) for d in found]


def gradient(y: Expr | None, x: Expr) -> Expr | None:
    """The derivative of the expression ``y`` with respect to the read ``x``."""
    if y is None:
        return None
    found = contributions(y, (), te.const(1.0, y.dtype), None, lambda node: node is x)
    return functools.reduce(operator.add, [te.cast(c.value, x.dtype) for c in found]) if found else None


def compiled_vjp(fn: Callable[..., Any], points: list[np.ndarray]) -> tuple[Any, Callable[[Any], Any]]:
    """As ``jax.vjp``, in one compilation for the value and one for the derivative: NumPy has no rows for half precision and complex numbers."""
    pulled = jax.jit(lambda head, *at: jax.vjp(fn, *at)[1](head))
    return jax.jit(fn)(*points), lambda head: pulled(head, *points)


def grid(points: list[Any], arity: int, dtype: str) -> list[np.ndarray]:
    return [np.array(column, dtype) for column in zip(*itertools.product(points, repeat=arity), strict=True)]


def assert_close(actual: np.ndarray, expected: Any, dtype: str, points: list[np.ndarray]) -> None:
    assert actual.dtype == expected.dtype
    actual, expected = (np.asarray(v).astype("complex128") for v in (actual, expected))
    close = np.isclose(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], equal_nan=True)
    wrong = np.flatnonzero(~close)[:5]
    assert close.all(), [([p[i].item() for p in points], actual[i], "not", expected[i]) for i in wrong]


def usual(name: str, points: list[np.ndarray]) -> list[np.ndarray]:
    """Without the points at which jaxte and JAX are known to differ."""
    keep = np.full(points[0].shape, True)
    # where an operand is infinite, JAX has derivatives of 1 and e (logaddexp), NaN (hypot), or one off (mod)
    if name in ("logaddexp", "hypot", "mod"):
        keep = ~np.any(np.isinf(points), axis=0)
    if name == "mod":  # a / b may round up to an integer
        keep &= np.abs(points[1]) != points[0].dtype.type(1e-3)
    if name in ("lgamma", "digamma", "acosh"):  # outside of their domain, and JAX's trigamma(inf) is NaN
        keep = np.isfinite(points[0]) & (points[0] != -1)
    return [p[keep] for p in points]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NUMERIC)
def test_real_values_and_derivatives(name: str, dtype: str) -> None:
    op = TABLE[name].op
    points = usual(name, grid(POINTS, op.arity, dtype))
    expected, vjp = jax.vjp(in_jax(name), *map(jnp.asarray, points))
    assert_close(at(lambda *xs: apply(op, *xs), *points), expected, dtype, points)
    if expected.dtype == bool:
        return
    head = np.ones(len(points[0]), dtype)
    for n, adjoint in enumerate(vjp(jnp.asarray(head))):
        by_vjp = at(lambda g, *xs, n=n: adjoints(apply(op, *xs), g)[n], head, *points)
        by_partial = at(lambda *xs, n=n: partials(apply(op, *xs))[n], *points)
        assert_close(by_vjp, adjoint, dtype, points)
        assert_close(by_partial, adjoint, dtype, points)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", sorted(set(NUMERIC) - REAL))
def test_complex_values_and_adjoints(name: str, dtype: str, rng: np.random.Generator) -> None:
    op = TABLE[name].op
    points = grid(COMPLEX_POINTS, op.arity, dtype)
    expected, vjp = compiled_vjp(in_jax(name), points)
    assert_close(at(lambda *xs: apply(op, *xs), *points), expected, dtype, points)
    if expected.dtype == bool:
        return
    head = rng.normal(size=(2, len(points[0])))
    head = (head[0] if expected.dtype.kind == "f" else head[0] + 1j * head[1]).astype(expected.dtype)
    for n, adjoint in enumerate(vjp(jnp.asarray(head))):
        found = at(lambda g, *xs, n=n: adjoints(apply(op, *xs), g)[n], head, *points)
        assert_close(found.astype(dtype), adjoint, dtype, points)


def test_abs_of_complex_zero_has_derivative_zero() -> None:
    zero, head = np.zeros(1, "complex64"), np.ones(1, "float32")
    assert at(lambda g, x: adjoints(abs(x), g)[0], head, zero) == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NUMERIC)
def test_half_precision_stays_half_precision(name: str, dtype: str, rng: np.random.Generator) -> None:
    op = TABLE[name].op
    points = [rng.uniform(0.1, 0.9, 20).astype(jnp.dtype(dtype)) for _ in range(op.arity)]
    points = [p + 1 for p in points] if name == "acosh" else points
    expected, vjp = compiled_vjp(in_jax(name), points)
    assert_close(at(lambda *xs: apply(op, *xs), *points), expected, dtype, points)
    if expected.dtype != bool:
        head = np.ones(20, dtype)
        for n, adjoint in enumerate(vjp(jnp.asarray(head))):
            found = at(lambda g, *xs, n=n: adjoints(apply(op, *xs), g)[n], head, *points)
            assert_close(found, adjoint, dtype, points)


DOMAINS = {"acosh": (1.1, 3), "lgamma": (0.5, 4), "digamma": (0.5, 4)}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", sorted(set(NUMERIC) - {"imag"}))
def test_second_and_third_derivatives(name: str, rng: np.random.Generator) -> None:
    """Derivatives are made of functions of the table, so they have derivatives."""
    op = TABLE[name].op
    if op.result == "bool":
        return
    points = [rng.uniform(*DOMAINS.get(name, (0.1, 0.9)), 10) for _ in range(op.arity)]
    derive = in_jax(name)
    for order in range(1, 4):
        derive = jax.grad(derive)

        def body(x: Expr, *others: Expr, order: int = order) -> Expr | None:
            y = apply(op, x, *others)
            for _ in range(order):
                y = gradient(y, x)
            return y

        tolerance = 1e-6 if name in ("lgamma", "digamma") else 1e-9
        found, expected = at(body, *points), jax.vmap(derive)(*map(jnp.asarray, points))
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", NUMERIC)
def test_dtype_of_the_result(name: str) -> None:
    op, function = TABLE[name].op, in_jax(name)
    accepted = 0
    for kinds in itertools.product(dtypes.DTYPES, repeat=op.arity):
        if "bool" in kinds:  # jaxte takes booleans for int32 in more places
            continue
        if name == "relu6" and dtypes.is_integer(kinds[0]):  # JAX compares them with a float of 64 bits here
            continue
        try:
            expected = jax.eval_shape(function, *(jax.ShapeDtypeStruct((), k) for k in kinds))
        except (TypeError, ValueError):
            continue  # JAX does not define it
        accepted += 1
        node = apply(op, *(Symbol("x", k) for k in kinds))
        if not node.weak:
            assert node.dtype == str(expected.dtype), kinds
        assert node.weak == (expected.weak_type and node.dtype != "bool"), kinds
    assert accepted


@pytest.mark.parametrize("name", sorted(BITS))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_bits(name: str, dtype: str) -> None:
    op, info = TABLE[name].op, np.iinfo(dtype)
    points = grid([0, 1, 2, 7, 31, 33, 100, int(info.max), int(info.min)], op.arity, dtype)
    expected = in_jax(name)(*map(jnp.asarray, points))
    np.testing.assert_array_equal(at(lambda *xs: apply(op, *xs), *points), expected)


def test_bits_of_floats_are_refused() -> None:
    with pytest.raises(DtypeError, match="bitwise_and takes integers, not float32"):
        te.bitwise_and(Symbol("x", "float32"), 1)


def test_logic() -> None:
    a, b, c = grid([False, True], 3, "bool")
    np.testing.assert_array_equal(at(te.logical_and, a, b, c), a & b & c)
    np.testing.assert_array_equal(at(te.logical_or, a, b, c), a | b | c)
    np.testing.assert_array_equal(at(te.logical_xor, a, b), a ^ b)
    np.testing.assert_array_equal(at(te.logical_not, a), ~a)
    x = np.float32([0, 1, 2])
    np.testing.assert_array_equal(at(lambda x: te.logical_and(x, x < 2, True), x), [False, True, False])
    np.testing.assert_array_equal(at(lambda x: te.select(x, 1, 2), x), [2, 1, 1])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 1.0, 2.0, 1.5, -0.5])
def test_constant_exponents(exponent: float) -> None:
    x = np.array([0.0, 1.0, -2.0, 3.0, 0.25])
    power = lambda x: x**exponent  # noqa: E731
    assert_close(at(power, x), power(jnp.asarray(x)), "float64", [x])
    for derive, order in ((jax.grad(power), 1), (jax.grad(jax.grad(power)), 2)):
        found = at(lambda x, order=order: nth(power(x), x, order), x)
        expected = jax.vmap(derive)(jnp.asarray(x))
        ends = (exponent in (1.0, 2.0, 1.5)) & (x == 0) & (order == 2)  # 0 * x**-1 is NaN in JAX
        assert_close(found[~ends], expected[~ends], "float64", [x[~ends]])
    y = Symbol("x", "float64") ** exponent
    assert partials(y)[1] is None


def nth(y: Expr | None, x: Expr, order: int) -> Expr | None:
    for _ in range(order):
        y = gradient(y, x)
    return y


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("base", [2, 2.5, 0.0, -2.0])
def test_constant_bases(base: float) -> None:
    x = np.array([0.0, 1.0, -1.5, 3.0]) if base else np.array([0.0, 1.0, 3.0])
    power = lambda x: base**x  # noqa: E731
    assert_close(at(power, x), power(jnp.asarray(x)), "float64", [x])
    found = at(lambda x: gradient(base**x, x), x)
    assert_close(found, jax.vmap(jax.grad(power))(jnp.asarray(x)), "float64", [x])


def test_integer_exponents() -> None:
    x, n = np.float32([0, 0, 0, 2, 2, 2, -3]), np.int32([0, 1, 2, 0, 1, -1, 3])
    found = at(lambda x, n: gradient(x**n, x), x, n)
    expected = jax.vmap(jax.grad(lambda x, n: x**n))(jnp.asarray(x), jnp.asarray(n))
    assert_close(found, expected, "float32", [x, n])
    assert partials(Symbol("x", "float32") ** Symbol("n", "int32"))[1] is None


@pytest.mark.usefixtures("x64")
def test_polygamma() -> None:
    x = np.array([0.5, 1.5, 3.0, 10.0])
    for n in (1, 2, 3):
        expected = jax.scipy.special.polygamma(n, jnp.asarray(x))
        np.testing.assert_allclose(at(lambda x, n=n: te.polygamma(n, x), x), expected, rtol=1e-10)


COMPOSED = {
    "clip": (lambda x: te.clip(x, -1, 2.0), lambda x: jnp.clip(x, -1, 2.0)),
    "relu6": (te.relu6, jax.nn.relu6),
    "leaky_relu": (te.leaky_relu, jax.nn.leaky_relu),
    "leaky_relu 0.2": (lambda x: te.leaky_relu(x, 0.2), lambda x: jax.nn.leaky_relu(x, 0.2)),
    "elu": (te.elu, jax.nn.elu),
    "elu 0.5": (lambda x: te.elu(x, 0.5), lambda x: jax.nn.elu(x, 0.5)),
    "heaviside": (lambda x: te.heaviside(x, 0.5), lambda x: jnp.heaviside(x, 0.5)),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions(name: str) -> None:
    ours, theirs = COMPOSED[name]
    x = np.float32(POINTS)
    assert_close(at(ours, x), theirs(jnp.asarray(x)), "float32", [x])
    x = x[~np.isnan(x)]
    expected = jax.vmap(jax.grad(theirs))(jnp.asarray(x))
    assert_close(at(lambda x: gradient(ours(x), x), x), expected, "float32", [x])


def test_the_branch_not_taken_contributes_nothing() -> None:
    x, inf = np.float32([-1, 0, 4]), np.float32([np.inf] * 3)
    found = at(lambda x: gradient(te.select(x > 0, te.log(x) * te.sqrt(x), 0.0), x), x)
    np.testing.assert_allclose(found, [0, 0, np.log(4) / 4 + 0.5], rtol=1e-6)
    for choose in (te.relu, lambda x: te.maximum(x, 0), lambda x: te.select(x > 0, x, 0)):
        adjoint = at(lambda g, x, c=choose: adjoints(c(x), g)[-1 if c(x).op.name == "select" else 0], inf, x)
        assert not np.isnan(adjoint).any()


def test_casts() -> None:
    x, n = Symbol("x", "float16"), Symbol("n", "int32")
    assert te.cast(x, "float16") is x
    assert te.cast(x, np.float32).dtype == "float32"
    assert te.cast(3, float) is te.const(3.0, "float32")
    (adjoint,) = adjoints(te.cast(x, "float32"), Symbol("g", "float32"))
    assert adjoint is te.cast(Symbol("g", "float32"), "float16")
    assert adjoints(te.cast(n, "float32"), Symbol("g", "float32")) == [None]
    assert adjoints(te.cast(x, "int32"), Symbol("g", "int32")) == [None]
    assert partials(te.cast(n, "float32")) == partials(te.cast(x, "int32")) == [None]
    with pytest.raises(DtypeError, match="unknown dtype 'float8'"):
        te.cast(x, "float8")


@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "uint32", "bool", "float16", "complex64"])
def test_cast_values_are_those_of_xla(target: str) -> None:
    x = np.float32([np.nan, np.inf, -np.inf, 1e20, -1e20, -1.5, -300, 300, 2.7, 0, -0.5])
    np.testing.assert_array_equal(at(lambda x: te.cast(x, target), x), jnp.asarray(x).astype(target))


def test_constants() -> None:
    assert te.const(2) is Const(2) and te.const(2).weak
    assert te.const(2, "float64") is Const(2.0, "float64")
    assert te.const(np.float32(0.5)) is Const(0.5)
    assert te.const(np.float32(0.5), np.float32) is Const(0.5, "float32")
    assert te.const(1, bool) is Const(True, "bool")
    with pytest.raises(DefinitionError, match=r"te\.const takes a number, not list"):
        te.const([1])
    with pytest.raises(DefinitionError, match="a complex number needs a complex dtype"):
        te.const(1j, "float32")


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_complex_number_that_is_cast_is_its_real_part(dtype: str) -> None:
    y = compute((2,), lambda i: te.cast(te.const(2 + 3j), dtype) * 2, "y")
    for run in (interpret, evaluate):
        np.testing.assert_array_equal(run(y, {}), [4, 4])


def test_real_functions_refuse_complex_numbers() -> None:
    z = Symbol("z", "complex64")
    with pytest.raises(DtypeError, match=r"te\.floor takes real values; take te\.real"):
        te.floor(1.5 + 1j)
    with pytest.raises(DtypeError, match=r"te\.erf takes real values; take te\.real"):
        te.erf(z)
    for node in (abs(z), te.real(z), te.imag(z), te.conj(z), te.cast(z, "float32")):
        with pytest.raises(
            DifferentiationError, match="have no complex derivative; differentiate with a head"
        ):
            partials(node)


def test_every_row_has_a_documented_function() -> None:
    for name in TABLE.keys() - {"cast", "nonzero"}:  # the guard of a head is written by derivation alone
        front = getattr(te, name)
        assert name in te.__all__ and front.__name__ == name
        assert len(inspect.getdoc(front) or "") > 60, name
    for name in te.__all__:
        assert hasattr(te, name) and getattr(te, name).__doc__
    assert TABLE.keys() == OPS.keys()


@pytest.mark.parametrize("alias", ["arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh", "arctanh"])
def test_aliases_are_jax_names(alias: str) -> None:
    x = np.float32([1.25])
    others = [x] if alias == "arctan2" else []
    assert_close(at(getattr(te, alias), x, *others), getattr(jnp, alias)(x, *others), "float32", [x])


def test_whole_tensors_and_index_expressions() -> None:
    X, Y = placeholder((2, 3), name="X"), placeholder((3,), name="Y")
    x, y = np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([2, 2, 5])
    np.testing.assert_array_equal(interpret(te.maximum(X, Y), {X: x, Y: y}), np.maximum(x, y))
    np.testing.assert_allclose(interpret(te.exp(X), {X: x}), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(interpret(te.select(X > 2, X, 0.0), {X: x}), np.where(x > 2, x, 0))
    reads = compute((3,), lambda i: Y[te.minimum(i + 1, 2)])
    np.testing.assert_array_equal(interpret(reads, {Y: y}), [2, 5, 5])


# --- written forms

_LEAVES = st.integers(0, 5).map(lambda n: (str(n), CALL, n))


def _join(parts: tuple[str, Any, Any]) -> tuple[str, int, Any]:
    name, a, b = parts
    arity = TABLE[name].op.arity
    text, strength = TABLE[name].code.write(*[(p[0], p[1]) for p in (a, b)[:arity]])
    meaning = {"add": int.__add__, "subtract": int.__sub__, "multiply": int.__mul__, "negative": int.__neg__}
    meaning |= {"bitwise_and": int.__and__, "bitwise_or": int.__or__, "bitwise_xor": int.__xor__}
    meaning |= {"less": int.__lt__, "equal": int.__eq__, "left_shift": lambda a, b: a << (b & 3)}
    meaning |= {"mod": lambda a, b: a % (abs(b) + 1), "power": lambda a, b: int(a) ** (b & 1)}
    if name in ("left_shift", "mod", "power"):
        fixed = {"left_shift": "{0} & 3", "mod": "abs({0}) + 1", "power": "{0} & 1"}[name].format(f"({b[0]})")
        text, strength = TABLE[name].code.write((a[0], a[1]), (f"({fixed})", CALL))
    return text, strength, int(meaning[name](*[int(p[2]) for p in (a, b)[:arity]]))


_OPERATORS = ["add", "subtract", "multiply", "negative", "bitwise_and", "bitwise_or", "bitwise_xor"]
_OPERATORS += ["less", "equal", "left_shift", "mod", "power"]


@given(st.recursive(_LEAVES, lambda inner: st.tuples(st.sampled_from(_OPERATORS), inner, inner).map(_join)))
def test_parentheses_keep_the_meaning(tree: tuple[str, int, int]) -> None:
    assert int(eval(tree[0])) == tree[2]


def test_needless_parentheses_are_left_out() -> None:
    add, times, power = TABLE["add"].code, TABLE["multiply"].code, TABLE["power"].code
    total = add.write(("a", CALL), ("b", CALL))
    assert add.write(total, ("c", CALL))[0] == "a + b + c"
    assert add.write(("c", CALL), total)[0] == "c + (a + b)"
    assert times.write(total, ("c", CALL))[0] == "(a + b) * c"
    assert power.write(("-a", SIGN), ("-b", SIGN))[0] == "(-a) ** -b"
    assert power.write(power.write(("a", CALL), ("b", CALL)), ("c", CALL))[0] == "(a ** b) ** c"
    assert power.write(("a", CALL), power.write(("b", CALL), ("c", CALL)))[0] == "a ** b ** c"
    assert TABLE["cast"].code.write(total, dtype="jnp.float32")[0] == "(a + b).astype(jnp.float32)"


def test_latex_forms_have_their_braces_matched() -> None:
    for row in TABLE.values():
        text, _ = row.math.write(*[("x", CALL)] * row.op.arity, brackets=(r"\left(", r"\right)"))
        assert text.count("{") == text.count("}") and text.count(r"\left") == text.count(r"\right")


def test_scipy_is_imported_only_when_it_is_needed() -> None:
    code = "import sys, jaxte.meaning.interpret; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
