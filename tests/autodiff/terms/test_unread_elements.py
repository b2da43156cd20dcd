"""Elements that nothing reads, and sums without points: their gradient is zero, whatever stands beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order

K = te.reduce_axis((0, 4), "k")


def reads_window(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((3,), lambda i: te.sum(x[i + K] / z[i + K], axis=K), "y")


def product_of_window(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((3,), lambda i: te.prod(x[i + K] / z[i + K], axis=K), "y")


def guarded_maximum(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((4,), lambda i: te.max(te.tanh(te.select(K > i, 0.5, x[i + 2])), axis=K), "y")


def periodic_maximum(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((3,), lambda i: te.max(x[(2 * i + K) % 5], axis=K), "y")


def periodic_quotient(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((3,), lambda i: te.sum(x[(2 * i + K) % 5] / (z[i] + 1), axis=K), "y")


def equal_terms(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((3,), lambda i: te.sum(x[i + 2] / (z[i] + 1), axis=K), "y")


def norm(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((3,), lambda i: te.sqrt(te.sum(x[i + K] ** 2, axis=K)) / (z[i] + 1), "y")


def chosen_quotient(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((3,), lambda i: te.sum(te.select(m[i] > K, x[i + K] / z[i + 6], 0.0), axis=K), "y")


def where_quotient(x: Any, z: Any, m: Any) -> te.Tensor:
    return te.compute((3,), lambda i: te.sum(x[i] / z[i + 6], axis=K, where=m[i] > K), "y")


CASES: list[Callable[..., te.Tensor]] = [
    reads_window, product_of_window, guarded_maximum, periodic_maximum, periodic_quotient, equal_terms, norm,
]  # fmt: skip


def built(build: Callable[..., te.Tensor]) -> tuple[te.Tensor, ...]:
    """The inputs x, z and m, what is made of them, and its head."""
    x, z = te.placeholder((9,), name="x"), te.placeholder((9,), name="z")
    m = te.placeholder((3,), "int32", "m")
    y = build(x, z, m)
    return x, z, m, y, te.placeholder(y.shape, name="H")


@pytest.mark.parametrize("build", CASES)
def test_nothing_but_zero_where_nothing_reads(build: Callable[..., te.Tensor]) -> None:
    """The divisors end in zeros, which are read where the elements in question are not."""
    x, z, _, y, head = built(build)
    feeds = {
        x: np.arange(1, 10, dtype="float32"),
        z: np.float32([1, 1, 1, 1, 1, 1, 0, 0, 0]),
        head: np.ones(y.shape, "float32"),
    }
    (dx,) = te.differentiate(y, [x], head)
    needed = {t: a for t, a in feeds.items() if t in _inputs(dx)}
    read = np.zeros(9, bool)
    for n in range(9):
        moved = feeds[x].copy()
        moved[n] = np.nan
        values = {t: a for t, a in {**feeds, x: moved}.items() if t in _inputs(y)}
        read[n] = np.isnan(te.interpret(y, values)).any()
    for found in (te.interpret(dx, needed), np.asarray(te.evaluate(dx, needed))):
        assert np.isfinite(found).all(), found
        assert not found[~read].any(), found


@pytest.mark.parametrize("build", [chosen_quotient, where_quotient])
def test_a_divisor_of_zero_where_data_leaves_no_point(build: Callable[..., te.Tensor]) -> None:
    x, z, m, y, head = built(build)
    feeds = {
        x: np.arange(1, 10, dtype="float32"),
        z: np.float32([1, 1, 1, 1, 1, 1, 2, 0, 4]),
        m: np.int32([2, 0, 1]),
        head: np.ones(3, "float32"),
    }
    for adjoint in te.differentiate(y, [x, z], head):
        needed = {t: a for t, a in feeds.items() if t in _inputs(adjoint)}
        for found in (te.interpret(adjoint, needed), np.asarray(te.evaluate(adjoint, needed))):
            assert np.isfinite(found).all(), te.definitions(adjoint)
    (dz,) = te.differentiate(y, [z], head)
    (found,) = [np.asarray(te.evaluate(dz, {t: a for t, a in feeds.items() if t in _inputs(dz)}))]
    assert found[7] == 0 and found[6] and found[8]


def _inputs(tensor: te.Tensor) -> set[te.Tensor]:
    return {t for t in topological_order([tensor]) if isinstance(t, Placeholder)}


def strided(q: Any) -> te.Tensor:
    return te.compute((4,), lambda i: q[2 * i + 1], "y")


def windows(q: Any) -> te.Tensor:
    k = te.reduce_axis((0, 2), "k")
    return te.compute((3,), lambda i: te.sum(q[3 * i + k], axis=k), "y")


def slices(q: Any) -> te.Tensor:
    return te.compute((2,), lambda i: q[i + 1] * 3.0 - q[i + 5], "y")


def two_steps(q: Any) -> te.Tensor:
    first = te.compute((8,), lambda i: 2.0 * q[i], "first")
    return te.compute((4,), lambda i: te.tanh(first[2 * i]), "y")


UNREAD = [
    (strided, [0, 2, 4, 6, 8]),
    (windows, [2, 5, 8]),
    (slices, [0, 3, 4, 7, 8]),
    (two_steps, [1, 3, 5, 7, 8]),
]


@pytest.mark.parametrize(("build", "unread"), UNREAD)
@pytest.mark.parametrize("of", [lambda x, z: x / z, lambda x, z: te.sqrt(x * z), lambda x, z: te.log(z) * x])
def test_infinite_elements_that_nothing_reads(
    build: Callable[..., te.Tensor], unread: list[int], of: Callable[..., Any], rng: np.random.Generator
) -> None:
    """``x / 0`` where the reader of the quotient does not look: its adjoint is zero there, not 0 times infinity."""
    X, Z = te.placeholder((9,), name="X"), te.placeholder((9,), name="Z")
    q = te.compute((9,), lambda i: of(X[i], Z[i]), "q")
    own = te.function([X, Z], build(q))

    def fn(x: Any, z: Any) -> Any:
        return own(x, z).sum()

    x, z = ((rng.random(9) + 1).astype("float32") for _ in range(2))
    whole = jax.grad(fn, (0, 1))(x, z)
    z[unread] = 0.0
    for gradient, before in zip(jax.grad(fn, (0, 1))(x, z), whole, strict=True):
        assert not np.any(gradient[np.array(unread)])
        np.testing.assert_allclose(gradient, before, rtol=1e-6)


def test_second_derivatives_of_a_product_that_is_left_out(rng: np.random.Generator) -> None:
    """The tangent of the adjoint of ``log(r)`` is infinite where nothing reads it: times a sum of the adjoint without points it is nothing."""
    shapes = {"m": (3, 4), "x": (4,), "r": (3,), "q": (2,)}
    m, x, r, q = (te.placeholder(shape, "float64", name) for name, shape in shapes.items())
    other, two = te.reduce_axis((0, 4), "other"), te.reduce_axis((0, 2), "two")
    product = te.compute((3, 4, 2, 4, 4), lambda i, c, n, j, _: x[j] * (te.log(r[i]) * (1 / q[n])), "product")
    y = te.compute(
        (3, 4, 2),
        lambda i, c, n: te.sum(
            te.select((i >= 1) & (m[i, c] > 0), product[i, c, n, K, other], 0.0), axis=[K, other]
        ),
        "y",
    )
    z = te.compute((3, 4), lambda i, c: te.sum(y[i, c, two] * te.exp(-y[i, c, two]), axis=two), "z")
    own = te.function([m, x, r, q], z)
    mask, given = np.ones((3, 4)), rng.random(4) + 1
    mask[2] = -1.0

    def along(x: Any, r: Any) -> Any:
        dx, dr = jax.grad(lambda x, r: own(mask, x, r, np.ones(2)).sum(), (0, 1))(x, r)
        return dx.sum() + dr.sum()

    with jax.enable_x64(True):
        usual, spoilt = (
            jax.grad(along, (0, 1))(given, np.array(r)) for r in ([2.0, 3.0, 4.0], [-1.0, 3.0, 0.0])
        )
    for found, meant in zip(spoilt, usual, strict=True):
        np.testing.assert_allclose(found, meant, rtol=1e-12)
    assert np.any(spoilt[0])
