"""Functions of jax.numpy come out as the definitions that one writes by index: the same cost, the same operations."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N, M = 12, 9
ORDER = np.arange(M)[::-1].copy()


def rolled(U: te.Tensor) -> te.Tensor:
    return te.compute((N, M), lambda i, j: U[(i - 1) % N, j] + U[(i + 1) % N, j] - 2 * U[i, j])


def inner(U: te.Tensor) -> te.Tensor:
    return te.compute((N - 2, M - 2), lambda i, j: U[i + 2, j + 1] + U[i, j + 1] - 4 * U[i + 1, j + 1])


def padded(U: te.Tensor) -> te.Tensor:
    left = lambda i, j: te.select(i >= 1, U[i - 1, j], 0.0)  # noqa: E731
    right = lambda i, j: te.select(i < N - 1, U[i + 1, j], 0.0)  # noqa: E731
    return te.compute((N, M), lambda i, j: left(i, j) + right(i, j))


def written(U: te.Tensor) -> te.Tensor:
    return te.compute((N, M), lambda i, j: te.select(i < 1, 2.0, U[i, j]))


def added(U: te.Tensor) -> te.Tensor:
    half = te.compute((N - 2, M), lambda i, j: 0.5 * U[i + 2, j])

    def element(i: Any, j: Any) -> Any:
        return te.select((1 <= i) & (i < N - 1), U[i, j] + half[i - 1, j], U[i, j])

    return te.compute((N, M), element)


def differences(U: te.Tensor) -> te.Tensor:
    return te.compute((N, M - 1), lambda i, j: U[i, j + 1] - U[i, j])


def second_differences(U: te.Tensor) -> te.Tensor:
    first = te.compute((N, M - 1), lambda i, j: U[i, j + 1] - U[i, j])
    return te.compute((N, M - 2), lambda i, j: first[i, j + 1] - first[i, j])


def reversed_rows(U: te.Tensor) -> te.Tensor:
    return te.compute((N, M), lambda i, j: U[i, M - 1 - j])


def gradient(U: te.Tensor) -> te.Tensor:
    first = te.compute((1, M), lambda i, j: U[1, j] - U[0, j])
    inner = te.compute((N - 2, M), lambda i, j: 0.5 * (U[i + 2, j] - U[i, j]))
    last = te.compute((1, M), lambda i, j: U[N - 1, j] - U[N - 2, j])

    def element(i: Any, j: Any) -> Any:
        return te.select(i < 1, first[0, j], te.select(i < N - 1, inner[i - 1, j], last[0, j]))

    return te.compute((N, M), element)


def repeated(U: te.Tensor) -> te.Tensor:
    return te.compute((2 * N, M), lambda i, j: U[i // 2, j])


PAIRS: dict[str, tuple[Callable[[Any], Any], Callable[[te.Tensor], te.Tensor]]] = {
    "roll": (lambda u: jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - 2 * u, rolled),
    "slices": (lambda u: u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1], inner),
    "pad": (lambda u: jnp.pad(u, ((1, 0), (0, 0)))[:-1] + jnp.pad(u, ((0, 1), (0, 0)))[1:], padded),
    "at set": (lambda u: u.at[0].set(2.0), written),
    "at add": (lambda u: u.at[1:-1].add(0.5 * u[2:]), added),
    "diff": (lambda u: jnp.diff(u, axis=1), differences),
    "diff twice": (lambda u: jnp.diff(u, 2, axis=1), second_differences),
    "take_along_axis": (lambda u: jnp.take_along_axis(u, jnp.broadcast_to(ORDER, (N, M)), 1), reversed_rows),
    "take": (lambda u: jnp.take(u, ORDER, axis=1), reversed_rows),
    "gradient": (lambda u: jnp.gradient(u, axis=0), gradient),
    "repeat": (lambda u: jnp.repeat(u, 2, 0), repeated),
}


def raised_region(f: Callable[[Any], Any]) -> Any:
    raised = te.adjoint(f, everything=True)
    closed = jax.make_jaxpr(lambda u: f(u))(jax.ShapeDtypeStruct((N, M), "float32"))
    plan = raised.plan(closed)
    (region,) = plan.regions
    assert not plan.kept, plan.kept
    return region.code


def operations(run: Callable[..., Any]) -> Counter[str]:
    """The primitives of a value and what flows back, those of calls included."""

    def both(u: Any) -> Any:
        value, pull = jax.vjp(run, u)
        return pull(jnp.ones_like(value))

    found: Counter[str] = Counter()
    u = jax.ShapeDtypeStruct((N, M), "float32")
    text = jax.jit(both).lower(u).as_text()
    for line in text.splitlines():
        _, equals, rest = line.partition(" = stablehlo.")
        if equals:
            found[rest.split()[0]] += 1
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_the_same_definitions(name: str) -> None:
    f, builder = PAIRS[name]
    code = raised_region(f)
    U = te.placeholder((N, M), name="U")
    own, (tensor,) = builder(U), code.graph.outputs
    (source,) = [t for t in code.graph.inputs if t.shape == (N, M)]
    assert te.cost(tensor) == te.cost(own)
    assert te.cost(te.gradient(tensor, [source])) == te.cost(te.gradient(own, [U]))
    assert operations(lambda u: code.run(u)) == operations(te.function([U], own))


@pytest.mark.parametrize("name", PAIRS)
def test_they_mean_the_same(name: str, rng: np.random.Generator) -> None:
    f, builder = PAIRS[name]
    U = te.placeholder((N, M), name="U")
    u = rng.normal(size=(N, M)).astype("float32")
    np.testing.assert_allclose(te.interpret(builder(U), {U: u}), f(jnp.asarray(u)), rtol=1e-5, atol=1e-6)
