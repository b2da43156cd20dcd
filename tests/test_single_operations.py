"""Single operations of JAX in NumPy: each row beside XLA, and what is compiled nevertheless."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src import compiler
from jax.extend.core import primitives

from tests.conftest import IS_QUICK
from tests.numpy_evaluation import evaluated
from tests.numpy_operations import RULES
from tests.single_operations import IS_KNOWN, OFTEN, run_by_xla

ARRAYS = (
    np.linspace(-2.3, 2.6, 24, dtype="float32").reshape(2, 3, 4),
    np.cos(np.arange(24, dtype="float32") * 2).reshape(2, 3, 4),
    np.arange(-12, 12, dtype="int32").reshape(2, 3, 4),
    (np.arange(24, dtype="int32") % 5 - 7).reshape(2, 3, 4),
    np.array([[np.nan, 1e20, -1e20], [2.7, -2.7, 3e9]], "float32"),
)
"""Numbers of both signs, within -1 and 1, integers, integers below 0, and what has no integer."""
AT = np.array([[0, 3], [-9, 2], [7, 1]], "int32")
DTYPES = ("int32", "int8", "bool", "float32")
EVERYWHERE = (
    "asinh",
    "atan",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "logistic",
    "neg",
    "sign",
    "sin",
)
POSITIVE = ("digamma", "lgamma", "log", "log1p", "rsqrt", "sqrt")
COMPARED = ("add", "atan2", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "nextafter", "sub")
Operation = Callable[..., Any]


def _of_one(name: str) -> Operation:
    return lambda a, b, i, j, m: getattr(lax, name)(a)


def _of_positive(name: str) -> Operation:
    return lambda a, b, i, j, m: getattr(lax, name)(lax.abs(a))


def _of_two(name: str) -> Operation:
    return lambda a, b, i, j, m: (getattr(lax, name)(a, b), getattr(lax, name)(b, b))


OPERATIONS: dict[str, Operation] = {
    **{name: _of_one(name) for name in (*EVERYWHERE, "sinh", "square", "tan", "tanh")},
    **{name: _of_positive(name) for name in POSITIVE},
    **{name: _of_two(name) for name in COMPARED},
    "abs": lambda a, b, i, j, m: (lax.abs(i), lax.abs(m)),
    "acos": lambda a, b, i, j, m: primitives.acos_p.bind(b * 0.9, accuracy=None),
    "acosh": lambda a, b, i, j, m: lax.acosh(lax.abs(a) + 1),
    "add_any": lambda a, b, i, j, m: jax.vjp(lambda a: (a, a), a)[1]((a, b)),
    "and": lambda a, b, i, j, m: (lax.bitwise_and(i, j), lax.bitwise_and(a > b, b > 0)),
    "argmax": lambda a, b, i, j, m: (lax.argmax(b, 1, "int32"), lax.argmax(m, 0, "int32")),
    "argmin": lambda a, b, i, j, m: lax.argmin(b, 2, "int32"),
    "asin": lambda a, b, i, j, m: primitives.asin_p.bind(b * 0.9, accuracy=None),
    "atanh": lambda a, b, i, j, m: lax.atanh(b * 0.9),
    "broadcast_in_dim": lambda a, b, i, j, m: (lax.broadcast_in_dim(b[0, 0], (3, 4, 2), (1,)), lax.broadcast_in_dim(a, (5, 2, 3, 4), (1, 2, 3))),
    "clamp": lambda a, b, i, j, m: lax.clamp(-lax.abs(b), a, lax.abs(b)),
    "concatenate": lambda a, b, i, j, m: lax.concatenate([a, b], 1),
    "convert_element_type": lambda a, b, i, j, m: [
        *(lax.convert_element_type(x, t) for x in (a, i) for t in DTYPES), lax.convert_element_type(lax.abs(a) * 200, "uint8"),
        lax.convert_element_type(i, "uint8"), lax.convert_element_type(m, "int32"), lax.convert_element_type(m, "bool"),
    ],
    "copy": lambda a, b, i, j, m: jnp.array(a, copy=True),
    "conv_general_dilated": lambda a, b, i, j, m: (
        lax.conv_general_dilated(a, b[:, :, :3], (1,), [(1, 2)]),
        lax.conv_general_dilated(a, b[:1, :2, :2], (2,), [(3, -1)], (2,), (3,), ("CNW", "OIW", "NWC")),
        lax.conv_general_dilated(a, jnp.concatenate([b[:, :1], a[:1, :1]]), (1,), [(0, 2)], feature_group_count=3),
        lax.conv_general_dilated(a, b[:, :, :2], (1,), [(0, 0)], batch_group_count=2),
        lax.conv_general_dilated(a[None], b[:, None, :2, :3], (1, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NHWC"), feature_group_count=2),
    ),
    "cummax": lambda a, b, i, j, m: lax.cummax(b, 1),
    "cummin": lambda a, b, i, j, m: lax.cummin(b, 2, reverse=True),
    "cumprod": lambda a, b, i, j, m: (lax.cumprod(b, 2), lax.cumprod(j.astype("int8"), 0)),
    "cumsum": lambda a, b, i, j, m: (lax.cumsum(b, 2, reverse=True), lax.cumsum(i.astype("int8"), 0)),
    "div": lambda a, b, i, j, m: (lax.div(a, b), lax.div(i, j), lax.div(j, 3 + 0 * j)),
    "dot_general": lambda a, b, i, j, m: (
        jnp.vdot(a, b),
        lax.dot_general(a, b, (((2, 1), (2, 1)), ((0,), (0,)))),
        lax.dot_general(a, b, (((1,), (1,)), ((), ()))),
        lax.dot_general(i, j, (((1,), (1,)), ((2,), (2,)))),
    ),
    "dynamic_slice": lambda a, b, i, j, m: lax.dynamic_slice(a, (-3, 1, 9), (1, 2, 3)),
    "dynamic_update_slice": lambda a, b, i, j, m: lax.dynamic_update_slice(a, b[:1, :2, :3], (-3, 1, 9)),
    "erf_inv": lambda a, b, i, j, m: lax.erf_inv(b * 0.9),
    "gather": lambda a, b, i, j, m: [
        *(a[0].at[AT[:, 0], AT[:, 1]].get(mode=mode) for mode in ("clip", "fill")), i.at[:, AT].get(mode="fill"),
        jax.vmap(lambda x, at: x[1, at])(a, jnp.asarray(AT[:2])), a[0, jnp.asarray(AT[:2]), 1:3], a[j[0] % 2], a[j[0, 0, 0] % 2, 1],
    ],
    "integer_pow": lambda a, b, i, j, m: (lax.integer_pow(a, 3), lax.integer_pow(a, -2), lax.integer_pow(i, 3)),
    "iota": lambda a, b, i, j, m: lax.broadcasted_iota("int32", (2, 3, 4), 1),
    "is_finite": lambda a, b, i, j, m: lax.is_finite(m),
    "not": lambda a, b, i, j, m: (lax.bitwise_not(i), lax.bitwise_not(a > 0)),
    "optimization_barrier": lambda a, b, i, j, m: lax.optimization_barrier((a, b)),
    "or": lambda a, b, i, j, m: lax.bitwise_or(i, j),
    "pad": lambda a, b, i, j, m: (
        lax.pad(a, np.float32(7), ((1, 2, 0), (-1, 0, 3), (0, -2, 1))), lax.pad(i, np.int32(7), ((0, 0, 0), (2, -3, 2), (-1, -1, 0))),
    ),
    "pow": lambda a, b, i, j, m: (lax.pow(lax.abs(a), b), lax.pow(a, lax.abs(i))),
    "reduce_and": lambda a, b, i, j, m: jnp.all(a > b, (0, 2)),
    "reduce_max": lambda a, b, i, j, m: (jnp.max(a * b, (0, 2)), jnp.max(m, 0)),
    "reduce_min": lambda a, b, i, j, m: (jnp.min(a * b, 1), jnp.min(m, 0)),
    "reduce_or": lambda a, b, i, j, m: jnp.any(a > b, 1),
    "reduce_precision": lambda a, b, i, j, m: lax.reduce_precision(a, 8, 23),
    "reduce_prod": lambda a, b, i, j, m: jnp.prod(b, (0, 1)),
    "reduce_sum": lambda a, b, i, j, m: (jnp.sum(b, (0, 1)), jnp.sum(i.astype("int8"), dtype="int8")),
    **{
        f"reduce_window_{name}": lambda a, b, i, j, m, fn=fn, first=first: (
            lax.reduce_window(a * b, first, fn, (1, 2, 3), (1, 1, 2), [(0, 0), (1, 0), (2, 1)]),
            lax.reduce_window(b, first, fn, (2, 2, 1), (1, 1, 1), "VALID", (1, 2, 1), (1, 2, 1)),
        ) for name, fn, first in (("max", lax.max, -np.inf), ("min", lax.min, np.inf), ("sum", lax.add, 0.0))
    },
    "rem": lambda a, b, i, j, m: (lax.rem(a, b), lax.rem(i, j)),
    "reshape": lambda a, b, i, j, m: (lax.reshape(a, (4, 6)), lax.reshape(a, (2, 12), (2, 0, 1))),
    "rev": lambda a, b, i, j, m: lax.rev(a, (0, 2)),
    "round": lambda a, b, i, j, m: lax.round(a * 2, lax.RoundingMethod.TO_NEAREST_EVEN),
    "scatter": lambda a, b, i, j, m: [
        *(a.at[:, AT[1:, 0]].set(9.0, mode=mode) for mode in ("clip", "drop")), a.at[1].set(b[0]),
        jax.vmap(lambda x, at: x.at[1, at].set(5.0))(a, jnp.asarray(AT[:2])),
    ],
    "scatter-add": lambda a, b, i, j, m: (a.at[:, AT[:, 1] % 3].add(b[:, :, :3][:, [0, 1, 1], :1]), a.at[0, AT[:2], 1:3].add(2.0)),
    "scatter-max": lambda a, b, i, j, m: a.at[0, AT[:2]].max(b[1, 1]),
    "scatter-min": lambda a, b, i, j, m: a.at[0, AT[:2]].min(b[1, 1]),
    "scatter-mul": lambda a, b, i, j, m: a.at[0, AT[:2]].multiply(b[1, 1]),
    "select_n": lambda a, b, i, j, m: (lax.select_n(i % 3, a, b, a * b), lax.select_n(a > b, a, b)),
    "shift_left": lambda a, b, i, j, m: lax.shift_left(i, i % 5 + 4),
    "shift_right_arithmetic": lambda a, b, i, j, m: (lax.shift_right_arithmetic(i, abs(j)), lax.shift_right_arithmetic(i.astype("uint8"), abs(j).astype("uint8"))),
    "shift_right_logical": lambda a, b, i, j, m: (lax.shift_right_logical(i, abs(j)), lax.shift_right_logical(i.astype("int8"), abs(j).astype("int8") % 8)),
    "slice": lambda a, b, i, j, m: (lax.slice(a, (0, 1, 0), (2, 3, 4), (1, 1, 3)), lax.slice(a, (1, 0, 2), (2, 3, 3))),
    "sort": lambda a, b, i, j, m: (lax.sort(b, 1), lax.sort((b, i), 2, num_keys=1), lax.sort(m, 1)),
    "split": lambda a, b, i, j, m: lax.split(a, (1, 3), 2),
    "squeeze": lambda a, b, i, j, m: lax.squeeze(a[:1], (0,)),
    "stack": lambda a, b, i, j, m: jnp.stack([a, b], 1),
    "stop_gradient": lambda a, b, i, j, m: lax.stop_gradient(a),
    "tile": lambda a, b, i, j, m: jnp.tile(a, (2, 1, 3)),
    "unstack": lambda a, b, i, j, m: jnp.unstack(a, axis=1),
    "transpose": lambda a, b, i, j, m: lax.transpose(a, (2, 0, 1)),
    "xor": lambda a, b, i, j, m: lax.bitwise_xor(i, j),
}  # fmt: skip


@pytest.fixture(scope="module")
def by_xla() -> dict[str, Any]:
    return jax.tree.map(
        np.asarray, jax.jit(lambda *a: {name: run(*a) for name, run in OPERATIONS.items()})(*ARRAYS)
    )


def test_each_row_is_asked() -> None:
    assert sorted(OPERATIONS) == sorted(RULES)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_row_beside_xla(name: str, by_xla: dict[str, Any]) -> None:
    program = jax.make_jaxpr(OPERATIONS[name])(*ARRAYS)
    assert f" {name}" in str(program)
    with np.errstate(all="ignore"):
        found = evaluated(program, ARRAYS)
    for own, expected in zip(found, jax.tree.leaves(by_xla[name]), strict=True):
        assert own.dtype == expected.dtype
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-6)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that XLA gets, also where it has them in its cache."""
    if not (IS_QUICK and IS_KNOWN):
        pytest.skip("everything is compiled in full runs, and by other releases of JAX")
    monkeypatch.delenv("JAXTE_VALUES", raising=False)
    made: list[str] = []
    original = compiler.compile_or_get_cached

    def counted(backend: Any, module: Any, *args: Any, **options: Any) -> Any:
        made.append(ir_name(module))
        return original(backend, module, *args, **options)

    monkeypatch.setattr(compiler, "compile_or_get_cached", counted)
    return made


def ir_name(module: Any) -> str:
    return str(module.operation.attributes["sym_name"]).strip('"')


def unusual(x: Any) -> Any:
    """In sizes of this file alone, so that nothing was compiled for them before."""
    return jnp.sum(jnp.roll(jnp.tanh(x) * x[::-1], 1)[2:])


X = np.linspace(0, 1, 137, dtype="float32")


def test_a_reference_compiles_nothing(compiled: list[str]) -> None:
    value, slope = jax.value_and_grad(unusual)(jnp.asarray(X))
    assert not compiled
    assert isinstance(slope, jax.Array) and not slope.committed and slope.dtype == "float32"
    expected, by_xla = jax.jit(jax.value_and_grad(unusual))(X)
    assert compiled == ["jit_unusual"]
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(slope, by_xla, rtol=1e-5, atol=1e-6)


def test_what_xla_does_nevertheless(compiled: list[str]) -> None:
    on_a_device = jax.device_put(X[:135], jax.devices()[0])
    assert (on_a_device + on_a_device).committed
    lax.div(np.arange(131), np.arange(131))  # by 0
    lax.population_count(np.arange(133))  # no row
    jnp.asarray(X[:134], "bfloat16") * 2
    lax.conv_general_dilated(X[None, None, :130], X[None, None, :3], (1,), "VALID")
    jnp.asarray(X[:136]).at[1:3].apply(jnp.sin)  # a scatter with a function of its own
    assert [name.removeprefix("jit_") for name in compiled] == [
        "add",
        "div",
        "population_count",
        "convert_element_type",
        "multiply",
        "conv_general_dilated",
        "scatter",
    ]


def test_what_is_asked_often_is_compiled(compiled: list[str]) -> None:
    x = jnp.asarray(X[:129])
    for _ in range(OFTEN):
        lax.sin(x)
    assert not compiled
    for _ in range(3):
        lax.sin(x)
    assert compiled == ["jit_sin"]


def test_what_is_asked_by_tests_of_the_last_digits(compiled: list[str]) -> None:
    x = jnp.asarray(X[:128])
    with run_by_xla():
        lax.sin(x)
    assert compiled == ["jit_sin"]


def test_results_are_no_views_of_what_was_given() -> None:
    given = np.zeros(3, "float32")
    taken = lax.reshape(given, (1, 3))
    given[:] = 1
    assert not np.any(taken)
    assert jnp.asarray(1.0).weak_type and (jnp.asarray(X) * 2).weak_type is False
