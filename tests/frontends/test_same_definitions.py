"""Functions of jax.numpy come out as the definitions that one writes by index: the same cost, the same operations."""

from collections import Counter
from collections.abc import Callable, Sequence
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


def convolved(U: te.Tensor, K: te.Tensor) -> te.Tensor:
    k, n = te.reduce_axis((0, 3), "k"), U.shape[0]

    def element(i: Any) -> Any:
        return te.sum(U[i + k - 1] * K[2 - k], axis=k, where=(i + k - 1 >= 0) & (i + k - 1 < n))

    return te.compute((n,), element)


def correlated(U: te.Tensor, K: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 3), "k")
    return te.compute((U.shape[0] - 2,), lambda i: te.sum(U[i + k] * K[k], axis=k))


def stacked(U: te.Tensor) -> te.Tensor:
    return te.compute((3, N - 2, M), lambda s, i, j: U[i + s, j])


def stacked_rolls(U: te.Tensor) -> te.Tensor:
    return te.compute((N, 3, M), lambda i, s, j: U[(i - 2 * s + 1) % N, j])


def corners(U: te.Tensor) -> te.Tensor:
    return te.compute((N - 1, M - 1, 4), lambda i, j, s: U[i + s // 2, j + s % 2])


def windows(U: te.Tensor) -> te.Tensor:
    return te.compute((N - 2, 3, M), lambda i, k, j: U[i + k, j])


def patches(U: te.Tensor) -> te.Tensor:
    return te.compute((4, N - 1, M - 1), lambda o, i, j: U[i + o // 2, j + o % 2])


def pairs_of_rows(U: te.Tensor) -> te.Tensor:
    first = te.compute((N, M), lambda i, j: U[i, j] * U[i, j])
    k = te.reduce_axis((0, 2), "k")
    return te.compute((N // 2, M), lambda i, j: te.sum(first[2 * i + k, j], axis=k))


# functions of arrays, their definitions by index, and the shapes where these are not one matrix
PAIRS: dict[str, tuple[Any, ...]] = {
    "roll": (lambda u: jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - 2 * u, rolled),
    "slices": (lambda u: u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1], inner),
    "pad": (lambda u: jnp.pad(u, ((1, 0), (0, 0)))[:-1] + jnp.pad(u, ((0, 1), (0, 0)))[1:], padded),
    "at set": (lambda u: u.at[0].set(2.0), written),
    "at add": (lambda u: u.at[1:-1].add(0.5 * u[2:]), added),
    "at multiply": (
        lambda u: u.at[2:5].multiply(3.0),
        lambda U: te.compute((N, M), lambda i, j: te.select((i >= 2) & (i < 5), U[i, j] * 3.0, U[i, j])),
    ),
    "diff": (lambda u: jnp.diff(u, axis=1), differences),
    "diff twice": (lambda u: jnp.diff(u, 2, axis=1), second_differences),
    "take_along_axis": (lambda u: jnp.take_along_axis(u, jnp.broadcast_to(ORDER, (N, M)), 1), reversed_rows),
    "take": (lambda u: jnp.take(u, ORDER, axis=1), reversed_rows),
    "gradient": (lambda u: jnp.gradient(u, axis=0), gradient),
    "repeat": (lambda u: jnp.repeat(u, 2, 0), repeated),
    "convolve": (lambda u, k: jnp.convolve(u, k, mode="same"), convolved, (40,), (3,)),
    "correlate": (lambda u, k: jnp.correlate(u, k, mode="valid"), correlated, (40,), (3,)),
    "stack of shifts": (lambda u: jnp.stack([u[:-2], u[1:-1], u[2:]]), stacked),
    "stack of rolls": (lambda u: jnp.stack([jnp.roll(u, s, 0) for s in (-1, 1, 3)], 1), stacked_rolls),
    "stack of corners": (
        lambda u: jnp.stack([u[a : N - 1 + a, b : M - 1 + b] for a in (0, 1) for b in (0, 1)], -1),
        corners,
    ),
    "rows side by side": (
        lambda u: jnp.concatenate([u[None, :-2], u[None, 1:-1], u[None, 2:]]),
        stacked,
    ),
    "one-hot times x": (
        lambda u: jax.nn.one_hot((jnp.arange(N) + 1) % N, N) @ u,
        lambda U: te.compute((N, M), lambda i, j: U[(i + 1) % N, j]),
    ),
    "one-hot summed": (
        lambda u: jnp.sum(jax.nn.one_hot(3, N)[:, None] * u, 0),
        lambda U: te.compute((M,), lambda j: U[3, j]),
    ),
    "permutation matrix": (lambda u: u @ jnp.eye(M)[::-1], reversed_rows),
    "where with iota": (
        lambda u: jnp.where(jnp.arange(N)[:, None] < 3, u, 0.0),
        lambda U: te.compute((N, M), lambda i, j: te.select(i < 3, U[i, j], 0.0)),
    ),
    "blocks": (
        lambda u: u.reshape(3, 4, 3, 3).transpose(0, 2, 1, 3),
        lambda U: te.compute((3, 3, 4, 3), lambda a, b, i, j: U[4 * a + i, 3 * b + j]),
    ),
    "strided slices": (
        lambda u: u[::2, 1::2] - u[1::2, :-1:2],
        lambda U: te.compute((N // 2, M // 2), lambda i, j: U[2 * i, 2 * j + 1] - U[2 * i + 1, 2 * j]),
    ),
    "flip": (lambda u: jnp.flip(u, 1), reversed_rows),
    "rot90": (lambda u: jnp.rot90(u), lambda U: te.compute((M, N), lambda i, j: U[j, M - 1 - i])),
    "tile": (
        lambda u: jnp.tile(u, (2, 1)),
        lambda U: te.compute((2 * N, M), lambda i, j: U[i % N, j]),
    ),
    "outer": (
        lambda u, v: jnp.outer(u, v),
        lambda U, V: te.compute((12, 9), lambda i, j: U[i] * V[j]),
        (12,),
        (9,),
    ),
    "trace": (
        lambda u: jnp.trace(u),
        lambda U: te.compute((), lambda: te.sum(U[(k := te.reduce_axis((0, M), "k")), k], axis=k)),
    ),
    "diagonal": (lambda u: jnp.diagonal(u), lambda U: te.compute((M,), lambda i: U[i, i])),
    "tril": (
        lambda u: jnp.tril(u),
        lambda U: te.compute((N, M), lambda i, j: te.select(i >= j, U[i, j], 0.0)),
    ),
    "tril product": (
        lambda u: jnp.tril(jnp.ones((N, N))) @ u,
        lambda U: te.compute(
            (N, M), lambda i, j: te.sum(U[(k := te.reduce_axis((0, N), "k")), j], axis=k, where=i >= k)
        ),
    ),
    "windows by vmap": (
        lambda u: jax.vmap(lambda s: jax.lax.dynamic_slice(u, (s, 0), (3, M)))(jnp.arange(N - 2)),
        windows,
    ),
    "windows by positions": (lambda u: u[jnp.arange(N - 2)[:, None] + jnp.arange(3)], windows),
    "windows by a convolution": (
        lambda u: jax.lax.conv_general_dilated_patches(u[None, None], (2, 2), (1, 1), "VALID")[0],
        patches,
    ),
    "sums of blocks": (lambda u: (u * u).reshape(N // 2, 2, M).sum(1), pairs_of_rows),
    "wrapped": (
        lambda u: jnp.pad(u, ((1, 1), (0, 0)), mode="wrap"),
        lambda U: te.compute((N + 2, M), lambda i, j: U[(i + N - 1) % N, j]),
    ),
    "held": (
        lambda u: jnp.pad(u, ((1, 1), (0, 0)), mode="edge"),
        lambda U: te.compute((N + 2, M), lambda i, j: U[te.minimum(te.maximum(i - 1, 0), N - 1), j]),
    ),
}


def shapes_of(name: str) -> tuple[tuple[int, ...], ...]:
    return PAIRS[name][2:] or ((N, M),)


def raised_region(f: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> Any:
    raised = te.adjoint(f, everything=True)
    structs = tuple(jax.ShapeDtypeStruct(s, "float32") for s in shapes)
    plan = raised.plan(raised.traced(structs, {}))
    (region,) = plan.regions
    assert not plan.kept, plan.kept
    return region


def operations(run: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> Counter[str]:
    """The primitives of a value and what flows back, those of calls included."""

    def both(*u: Any) -> Any:
        value, pull = jax.vjp(run, *u)
        return pull(jnp.ones_like(value))

    found: Counter[str] = Counter()
    text = jax.jit(both).lower(*(jax.ShapeDtypeStruct(s, "float32") for s in shapes)).as_text()
    for line in text.splitlines():
        _, equals, rest = line.partition(" = stablehlo.")
        if equals:
            found[rest.partition("(")[0].split()[0]] += 1
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_the_same_definitions(name: str) -> None:
    f, builder, shapes = *PAIRS[name][:2], shapes_of(name)
    region = raised_region(f, shapes)
    order = [r.number for r in region.inputs]
    graph = region.code.graph
    own_inputs = [te.placeholder(s, name=f"U{n}") for n, s in enumerate(shapes)]
    own, (tensor,) = builder(*own_inputs), graph.outputs
    sources = [graph.inputs[order.index(n)] for n in range(len(shapes))]
    assert te.cost(tensor) == te.cost(own)
    assert te.cost(te.gradient(tensor, sources)) == te.cost(te.gradient(own, own_inputs))
    run = lambda *u: region.code.run(*(u[n] for n in order))  # noqa: E731
    assert operations(run, shapes) == operations(te.function(own_inputs, own), shapes)


@pytest.mark.parametrize("name", PAIRS)
def test_they_mean_the_same(name: str, rng: np.random.Generator) -> None:
    f, builder, shapes = *PAIRS[name][:2], shapes_of(name)
    inputs = [te.placeholder(s, name=f"U{n}") for n, s in enumerate(shapes)]
    arrays = [rng.normal(size=s).astype("float32") for s in shapes]
    meant = te.interpret(builder(*inputs), dict(zip(inputs, arrays, strict=True)))
    np.testing.assert_allclose(meant, f(*map(jnp.asarray, arrays)), rtol=1e-5, atol=1e-6)
