"""The grid of every operator: the meaning, arrays, gradients, second order, jit, vmap, dtypes, zero-sized axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

from jaxte import ops
from jaxte.derivatives.reverse import vjp_graph
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import among
from jaxte.meaning.interpret import interpret
from jaxte.tensors.inputs import placeholder
from jaxte.tensors.structure import topological_order
from tests import ops_cases, ops_cases_images, ops_cases_more, ops_cases_networks
from tests.ops_registry import CASES, Case

# importing the cases registers them
assert ops_cases and ops_cases_images and ops_cases_more and ops_cases_networks
grid = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
# the part of the grid whose emitted code is compiled
FULL = settings.default is settings.get_profile("full")
COMPILED = [c for c in CASES.values() if FULL or not c.light]
compiled = pytest.mark.parametrize("case", COMPILED, ids=[c.name for c in COMPILED])


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Equal shapes and dtypes, and values up to ``tolerance`` times the largest."""
    found, expected = _listed(found), _listed(expected)
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        f, e = np.asarray(f), np.asarray(e)
        assert f.shape == e.shape and f.dtype == e.dtype, (f.shape, f.dtype, e.shape, e.dtype)
        if f.dtype == np.bool_:
            np.testing.assert_array_equal(f, e)
            continue
        f, e = f.astype(np.float64), e.astype(np.float64)
        scale = np.max(np.abs(e), initial=1.0, where=np.isfinite(e))
        np.testing.assert_allclose(f, e, rtol=0, atol=tolerance * scale)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def test_every_operator_is_in_the_grid() -> None:
    tested = {name.partition(".")[0] for name in CASES}
    constants = {"arange", "zeros", "ones"}
    assert set(ops.__all__) == tested | constants


@dataclass(frozen=True)
class Setting:
    """A case with arrays drawn, as functions of its floating arrays only."""

    case: Case
    arrays: list[np.ndarray]

    @property
    def wanted(self) -> list[int]:
        return [n for n, a in enumerate(self.arrays) if is_inexact(a.dtype.name)]

    @property
    def floats(self) -> list[np.ndarray]:
        return [self.arrays[n] for n in self.wanted]

    def smooth_part(self, fn: Callable[..., Any]) -> Callable[..., list[Any]]:
        """The floating results of ``fn`` as a function of the floating arrays."""

        def call(*floats: Any) -> list[Any]:
            full: list[Any] = list(self.arrays)
            for n, value in zip(self.wanted, floats, strict=True):
                full[n] = value
            return [r for r in _listed(fn(*full)) if is_inexact(r.dtype.name)]

        return call

    @property
    def tolerance(self) -> float:
        return 1e-2 if self.case.name == "cast" else 2e-5


@pytest.fixture
def setting(case: Case, rng: np.random.Generator) -> Setting:
    return Setting(case, case.arrays(rng))


@pytest.fixture
def differentiable(setting: Setting) -> Setting:
    """A setting that has floating arguments and results."""
    if not setting.wanted or not jax.eval_shape(setting.smooth_part(setting.case.reference), *setting.floats):
        pytest.skip("integers and booleans have no gradient")
    return setting


@grid
def test_meaning(setting: Setting) -> None:
    """The definition, by the interpreter."""
    case, arrays = setting.case, setting.arrays
    inputs = [placeholder(a.shape, a.dtype, f"X{n}") for n, a in enumerate(arrays)]
    built = case.run(*inputs)
    needed = topological_order(_listed(built))
    values = interpret(built, {x: a for x, a in zip(inputs, arrays, strict=True) if among(x, needed)})
    close(values, case.reference(*arrays), setting.tolerance)


@grid
def test_adjoints(differentiable: Setting, rng: np.random.Generator) -> None:
    """The derived adjoints, by the interpreter, beside ``jax.vjp`` of the reference."""
    case, arrays, wanted = differentiable.case, differentiable.arrays, differentiable.wanted
    inputs = [placeholder(a.shape, a.dtype, f"X{n}") for n, a in enumerate(arrays)]
    outputs = [t for t in _listed(case.run(*inputs)) if is_inexact(t.dtype)]
    heads = [placeholder(t.shape, t.dtype, f"H{n}") for n, t in enumerate(outputs)]
    cotangents = [rng.normal(size=t.shape).astype(t.dtype) for t in outputs]
    adjoints = vjp_graph(outputs, heads, [inputs[n] for n in wanted])
    needed = topological_order(adjoints)
    feeds = zip([*inputs, *heads], [*arrays, *cotangents], strict=True)
    found = interpret(adjoints, {x: a for x, a in feeds if among(x, needed)})
    reference = differentiable.smooth_part(case.reference)
    _, pull = jax.vjp(reference, *differentiable.floats)
    close(found, pull(cotangents), differentiable.tolerance)


@compiled
def test_arrays(setting: Setting) -> None:
    """On arrays: as it is, and under vmap and jit."""
    case, arrays = setting.case, setting.arrays
    close(case.run(*arrays), case.reference(*arrays), setting.tolerance)
    batches = [np.stack([a, a[..., ::-1] if a.ndim else a]) for a in arrays]
    sides = jax.jit(lambda *x: [jax.vmap(fn)(*x) for fn in (case.run, case.reference)])
    close(*sides(*batches), setting.tolerance)


@compiled
def test_gradients(differentiable: Setting, rng: np.random.Generator) -> None:
    """First and second derivatives of a random combination of the results, on arrays."""
    run = differentiable.smooth_part(differentiable.case.run)
    reference = differentiable.smooth_part(differentiable.case.reference)
    floats, tolerance = differentiable.floats, differentiable.tolerance
    weights = [rng.normal(size=r.shape).astype(r.dtype) for r in jax.eval_shape(reference, *floats)]
    directions = [rng.normal(size=a.shape).astype(a.dtype) for a in floats]
    everything = tuple(range(len(floats)))

    def combined(fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *x: sum(jnp.sum(r * w) for r, w in zip(fn(*x), weights, strict=True)).astype("float32")

    def along(fn: Callable[..., Any]) -> Callable[..., Any]:
        gradient = jax.grad(combined(fn), everything)
        return lambda *x: sum(jnp.sum(g * d) for g, d in zip(gradient(*x), directions, strict=True))

    def both(fn: Callable[..., Any]) -> Callable[..., Any]:
        second = jax.grad(along(fn), everything) if differentiable.case.smooth else lambda *x: ()
        return lambda *x: (jax.grad(combined(fn), everything)(*x), second(*x))

    sides = jax.jit(lambda *x: [both(fn)(*x) for fn in (run, reference)])
    (found, second), (expected, expected_second) = sides(*floats)
    close(found, expected, tolerance)
    close(second, expected_second, 5 * tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@grid
def test_dtypes(case: Case, rng: np.random.Generator, dtype: str) -> None:
    """The shape and dtype of the results are JAX's, whatever the floating dtype of the arguments."""
    with jax.enable_x64(dtype == "float64"):
        arrays = [
            jax.ShapeDtypeStruct(a.shape, dtype if is_inexact(a.dtype.name) else a.dtype)
            for a in case.arrays(rng)
        ]
        inputs = [placeholder(a.shape, a.dtype, f"X{n}") for n, a in enumerate(arrays)]
        found = [(t.shape, t.dtype) for t in _listed(case.run(*inputs))]
        expected = [(r.shape, r.dtype.name) for r in _listed(jax.eval_shape(case.reference, *arrays))]
    assert found == expected


TOLERANCES = {"float16": 2e-2, "bfloat16": 1e-1, "float64": 1e-10}
# each operator once in quick runs, the dtypes in turn
TYPED = [
    (c, d) for n, c in enumerate(CASES.values()) for k, d in enumerate(TOLERANCES) if FULL or n % 24 == 8 * k
]


@pytest.mark.parametrize(("case", "dtype"), TYPED, ids=[f"{c.name}-{d}" for c, d in TYPED])
def test_gradients_in_other_dtypes(case: Case, dtype: str, rng: np.random.Generator) -> None:
    with jax.enable_x64(dtype == "float64"):
        arrays = [a.astype(dtype) if is_inexact(a.dtype.name) else a for a in case.arrays(rng)]
        setting = Setting(case, arrays)
        run, reference = setting.smooth_part(case.run), setting.smooth_part(case.reference)
        floats = [jnp.asarray(a) for a in setting.floats]
        results = jax.eval_shape(reference, *floats) if floats else []
        if not results:
            pytest.skip("integers and booleans have no gradient")
        heads = [jnp.asarray(rng.normal(size=r.shape), r.dtype) for r in results]
        sides = jax.jit(lambda heads, *x: [jax.vjp(fn, *x)[1](heads) for fn in (run, reference)])
        close(*sides(heads, *floats), TOLERANCES[dtype])


EMPTY: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "exp": (ops.exp, jnp.exp, ((0, 3),)),
    "add": (ops.add, jnp.add, ((0, 3), (1, 3))),
    "sum": (lambda x: ops.sum(x, 0), lambda x: jnp.sum(x, 0), ((0, 3),)),
    "prod": (lambda x: ops.prod(x, 0), lambda x: jnp.prod(x, 0), ((0, 3),)),
    "cumsum": (lambda x: ops.cumsum(x, 0), lambda x: jnp.cumsum(x, 0), ((0, 3),)),
    "reshape": (lambda x: ops.reshape(x, (3, 0)), lambda x: jnp.reshape(x, (3, 0)), ((0, 2),)),
    "transpose": (ops.transpose, jnp.transpose, ((0, 3),)),
    "concatenate": (
        lambda x, y: ops.concatenate([x, y]),
        lambda x, y: jnp.concatenate([x, y]),
        ((0, 3), (2, 3)),
    ),
    "strided_slice": (lambda x: ops.strided_slice(x, [3], [1]), lambda x: x[3:1], ((5, 2),)),
    "matmul": (ops.matmul, jnp.matmul, ((2, 0), (0, 3))),
    "dense": (ops.dense, lambda x, w: x @ w.T, ((0, 4), (3, 4))),
    "softmax": (lambda x: ops.softmax(x, 1), lambda x: jax.nn.softmax(x, 1), ((0, 3),)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_zero_sized_axes(name: str, rng: np.random.Generator) -> None:
    run, reference, shapes = EMPTY[name]
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    inputs = [placeholder(s, name=f"X{n}") for n, s in enumerate(shapes)]
    close(interpret(run(*inputs), dict(zip(inputs, arrays, strict=True))), reference(*arrays))
    close(run(*arrays), reference(*arrays))
    found = jax.grad(lambda *x: jnp.sum(run(*x)), tuple(range(len(arrays))))(*arrays)
    close(found, jax.grad(lambda *x: jnp.sum(reference(*x)), tuple(range(len(arrays))))(*arrays))


def test_weakly_typed_floats_give_way_to_other_operands() -> None:
    x = jnp.ones(3, jnp.bfloat16)
    for ours, plain in (
        (lambda a: ops.multiply(a, x), lambda a: a * x),
        (
            lambda a: ops.concatenate([x, ops.where(x > 0, a, x)]),
            lambda a: jnp.concatenate([x, jnp.where(x > 0, a, x)]),
        ),
        (lambda a: ops.add(a, jnp.arange(3)), lambda a: a + jnp.arange(3)),
    ):
        found, meant = jax.jit(ours)(2.5), jax.jit(plain)(2.5)
        assert found.dtype == meant.dtype
        np.testing.assert_array_equal(np.float32(found), np.float32(meant))
