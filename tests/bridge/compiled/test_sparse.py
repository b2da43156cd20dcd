"""Structured Jacobians and Hessians: the pattern of the definition, and the values of the dense ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

import jaxte as te
from banded import laplacian, rosenbrock, tridiagonal
from tests.xla_counts import Fused

matplotlib.use("agg")
RNG = np.random.default_rng(0)


def two_steps(x: te.Tensor) -> te.Tensor:
    y = tridiagonal(x)
    k = te.reduce_axis((0, 3), "k")
    n = x.shape[0]
    return te.compute((n - 4,), lambda i: te.sum(y[i + 2 * k], axis=k) * y[i] + te.sin(x[i + 1]), "z")


def pooled(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 3), "k")
    return te.compute((3,), lambda i: te.max(x[2 * i + k] * x[2 * i + k], axis=k), "pooled")


def downsampled(x: te.Tensor) -> te.Tensor:
    return te.compute((4,), lambda i: x[(2 * i + 1) % 7] * x[i // 2] + te.select(x[i] > 0, x[i], 0.0), "down")


def repeated(x: te.Tensor) -> te.Tensor:
    """Every place is held, some of them twice."""
    p = te.reduce_axis((0, 2), "p")
    return te.compute((4,), lambda i: te.max(x[2 * i + p], axis=p) * te.relu(x[2 * i]), "repeated")


def reflected(x: te.Tensor) -> te.Tensor:
    n = x.shape[0]

    def at(i):
        return x[te.select(i < 0, -i, te.select(i >= n, 2 * n - 2 - i, i))]

    return te.compute((n,), lambda i: at(i - 2) * at(i + 1) - at(i + 2), "reflected")


def beam(x: te.Tensor) -> te.Tensor:
    """Bending, and a force between neighbours but one: the ends are guarded term by term."""
    k = te.reduce_axis((0, x.shape[0] - 2), "k")
    bend = lambda k: (x[k + 2] - 2 * x[k + 1] + x[k]) ** 2  # noqa: E731
    return te.compute((), lambda: te.sum(bend(k) + te.cos(x[k] * x[k + 2]), axis=k), "energy")


FUNCTIONS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "tridiagonal": (tridiagonal, (9,)),
    "laplacian": (laplacian, (4, 5)),
    "two steps": (two_steps, (9,)),
    "pooled": (pooled, (7,)),
    "downsampled": (downsampled, (7,)),
    "repeated": (repeated, (8,)),
    "reflected": (reflected, (8,)),
    "dense": (lambda x: te.ops.softmax(x), (5,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_the_dense_jacobian(name: str) -> None:
    builder, shape = FUNCTIONS[name]
    fn = te.function(builder)
    x = RNG.standard_normal(shape).astype("f")
    found = fn.sparse_jacobian(x)
    assert found.indices_sorted and found.unique_indices
    places = np.asarray(found.indices)
    key = np.ravel_multi_index(tuple(places.T), found.shape)
    assert np.all(np.diff(key) > 0)
    dense = jax.jacrev(fn)(x)
    np.testing.assert_allclose(found.todense(), dense, rtol=1e-4, atol=1e-5)
    flat = fn.sparse_jacobian(x, flat=True)
    np.testing.assert_allclose(flat.todense(), np.reshape(dense, flat.shape), rtol=1e-4, atol=1e-5)
    under_jit = jax.jit(lambda x: fn.sparse_jacobian(x).data * 2)(x)
    np.testing.assert_allclose(under_jit, 2 * found.data, rtol=1e-6)


def test_the_pattern_is_exact() -> None:
    x = te.placeholder((6,), name="X")
    j = te.jacobian(tridiagonal(x), x, sparse=True)
    expected = [(i, k) for i in range(6) for k in range(6) if abs(i - k) <= 1]
    assert [tuple(p) for p in j.indices] == expected and j.nnz == 16
    u = te.placeholder((3, 4), name="U")
    pattern = {tuple(p) for p in te.jacobian(laplacian(u), u, sparse=True).indices}
    near = {
        (a, b, c, d)
        for a in range(3)
        for b in range(4)
        for c in range(3)
        for d in range(4)
        if abs(a - c) + abs(b - d) <= 1
    }
    assert pattern == near


def test_diagonals_of_a_banded_jacobian() -> None:
    x = te.placeholder((6,), name="X")
    diagonals = te.jacobian(tridiagonal(x), x, sparse=True).diagonals
    v = RNG.standard_normal(6).astype("f")
    assert [offset for offset, _ in diagonals] == [-1, 0, 1]
    dense = np.asarray(jax.jacrev(te.function(tridiagonal))(v))
    for offset, tensor in diagonals:
        order = te.interpret(tensor, {x: v} if x in tensor.inputs else {})
        own = np.array([dense[i, i + offset] if 0 <= i + offset < 6 else 0 for i in range(6)])
        np.testing.assert_allclose(order, own, rtol=1e-5)
    assert te.jacobian(pooled(te.placeholder((7,))), te.placeholder((7,)), sparse=True).nnz == 0


def test_hessians() -> None:
    v = RNG.standard_normal(6).astype("f")
    fn = te.function(rosenbrock)
    found = fn.sparse_hessian(v)
    np.testing.assert_allclose(found.todense(), jax.hessian(fn)(v), rtol=1e-3, atol=1e-3)
    assert found.nse == 16
    x = te.placeholder((6,), name="X")
    assert te.hessian(rosenbrock(x), x, sparse=True).nnz == 16
    v = RNG.standard_normal(9).astype("f")
    fn = te.function(beam)
    found = fn.sparse_hessian(v)
    np.testing.assert_allclose(found.todense(), jax.hessian(fn)(v), rtol=1e-3, atol=1e-3)
    assert found.nse == 39  # five diagonals


def test_chosen_inputs_and_outputs() -> None:
    def pair(a, b):
        return [te.compute((3,), lambda i: a[i] * b[i + 1], "y"), te.compute((2,), lambda i: b[2 * i], "z")]

    a, b = np.float32([1, 2, 3]), np.float32([4, 5, 6, 7])
    fn = te.function(pair)
    rows = fn.sparse_jacobian(a, b, argnums=(0, 1))
    dense = jax.jacrev(lambda a, b: [a * b[1:], b[::2]], (0, 1))(a, b)
    for row, own in zip(rows, dense, strict=True):
        for one, other in zip(row, own, strict=True):
            np.testing.assert_allclose(one.todense(), other)
    x, y = te.placeholder((3,), name="A"), te.placeholder((4,), name="B")
    blocks = te.jacobian(pair(x, y), [x, y], sparse=True)
    assert [[block.nnz for block in row] for row in blocks] == [[3, 3], [0, 2]]


def test_trees_of_inputs() -> None:
    def energy(state, c):
        x, v = state["x"], state["v"]
        k = te.reduce_axis((0, x.shape[0] - 1), "k")
        return te.compute((), lambda: te.sum(c[k] * x[k] * x[k + 1] ** 2 + v[k] ** 3 * x[k], axis=k), "E")

    def forces(state, c):
        x, v = state["x"], state["v"]
        return te.compute((4,), lambda i: c[i] * x[i + 1] * v[i], "F")

    def same(found, expected) -> None:
        dense = jax.tree.map(lambda m: m.todense(), found, is_leaf=lambda m: hasattr(m, "todense"))
        assert jax.tree.structure(dense) == jax.tree.structure(expected)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-5), dense, expected)

    x = np.arange(5, dtype="f")
    args = {"x": x, "v": x}, x[:4] + 1  # one array at two places
    fn, gradient_of = te.function(energy), te.function(forces)
    same(fn.sparse_hessian(*args), jax.hessian(fn)(*args))
    same(fn.sparse_hessian(*args, argnums=(1, 0)), jax.hessian(fn, (1, 0))(*args))
    same(gradient_of.sparse_jacobian(*args), jax.jacrev(gradient_of)(*args))
    same(gradient_of.sparse_jacobian(*args, argnums=(0, 1)), jax.jacrev(gradient_of, (0, 1))(*args))


def test_memory_is_linear_in_the_elements() -> None:
    fn = te.function(tridiagonal)
    x = jnp.ones(10_000)
    memory = Fused(jax.jit(lambda x: fn.sparse_jacobian(x).data).lower(x)).memory_analysis()
    assert memory.temp_size_in_bytes < 40 * 30_000


def test_pictures_of_patterns() -> None:
    u = te.placeholder((3, 4), name="U")
    matrix = te.jacobian(laplacian(u), u, sparse=True)
    ax = te.draw.spy(matrix)
    assert ax.get_title() == "12 x 12, 46 elements"
    fn = te.function(tridiagonal)
    assert te.draw.spy(fn.sparse_jacobian(np.ones(5, "f"))).get_title() == "5 x 5, 13 elements"
    with pytest.raises(te.ArgumentError, match=r"te.draw.spy of"):
        te.draw.spy(3)


def test_what_has_no_structure_says_so() -> None:
    x, i = te.placeholder((4,), name="X"), te.placeholder((4,), "int32", "I")
    n = te.var("n")
    k = te.reduce_axis((0, 4), "k")
    for tensor, words in [
        (te.compute((4,), lambda a: x[i[a]], "taken"), "taken reads at positions that are data"),
        (te.compute((4,), lambda a: te.prod(x[k], axis=k, where=k <= a), "c"), "c is a cumulative reduction"),
        (te.straight_through(te.round(x), x), "through_round has a derivative of its own"),
        (te.extern((4,), jnp.cumsum, [x], "other"), "other is a function of arrays"),
    ]:
        with pytest.raises(te.DifferentiationError, match=words):
            te.jacobian(tensor, x, sparse=True)
    s = te.placeholder((n,), name="S")
    with pytest.raises(te.ShapeError, match=r"needs known sizes"):
        te.jacobian(te.compute((n,), lambda a: s[a] * 2, "Y"), s, sparse=True)
    with pytest.raises(te.ShapeError, match=r"sparse Hessian is of a scalar"):
        te.hessian(tridiagonal(x), x, sparse=True)
    with pytest.raises(te.ArgumentError, match=r"argument 1 of tridiagonal"):
        te.function(tridiagonal).sparse_jacobian(np.ones(4, "f"), argnums=1)
