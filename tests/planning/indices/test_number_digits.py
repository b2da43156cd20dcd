"""Flat indices, as programs with loops have them: what reads digits of numbers is computed over the digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.planning.indices.shaped import Shaped
from jaxte.tensors.structure import topological_order
from tests.agreement import interpreted

NHWC = ("NHWC", "HWIO", "NHWC")


def conv(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """3 x 3 of 4 channels to 8 on 7 x 6 positions, everything flat."""
    k = te.reduce_axis((0, 36), "k")
    at = lambda f: f // 336 * 288 + (f // 48 % 7 + k // 12) * 32 + (f // 8 % 6 + k // 4 % 3) * 4 + k % 4  # noqa: E731
    return te.compute((2 * 336,), lambda f: te.sum(x[at(f)] * w[k * 8 + f % 8], axis=k), "y")


def plain_conv(x: jax.Array, w: jax.Array) -> jax.Array:
    x, w = x.reshape(2, 9, 8, 4), w.reshape(3, 3, 4, 8)
    return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=NHWC).ravel()


def matmul(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    """Five products of 4 x 6 and 6 x 7 matrices."""
    k = te.reduce_axis((0, 6), "k")
    left = lambda f: f // 28 * 24 + f // 7 % 4 * 6 + k  # noqa: E731
    return te.compute((140,), lambda f: te.sum(a[left(f)] * b[f // 28 * 42 + k * 7 + f % 7], axis=k), "y")


def plain_matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    return (a.reshape(5, 4, 6) @ b.reshape(5, 6, 7)).ravel()


def gate(psi: te.Tensor, u: te.Tensor) -> te.Tensor:
    """A gate on the second and the last but one of seven qubits."""
    g, h = te.reduce_axis((0, 2), "g"), te.reduce_axis((0, 2), "h")
    source = lambda i: i // 64 * 64 + 32 * g + i // 4 % 8 * 4 + 2 * h + i % 2  # noqa: E731
    turn = lambda i: u[2 * (i // 32 % 2) + i // 2 % 2, 2 * g + h]  # noqa: E731
    return te.compute((3, 128), lambda b, i: te.sum(turn(i) * psi[b, source(i)], axis=(g, h)), "y")


def plain_gate(psi: jax.Array, u: jax.Array) -> jax.Array:
    psi = psi.reshape(3, 2, 2, 8, 2, 2)
    return jnp.einsum("pqgh,bigmhl->bipmql", u.reshape(2, 2, 2, 2), psi).reshape(3, 128)


def heads(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Features by heads: batch, head, position and feature in one number."""
    k = te.reduce_axis((0, 12), "k")
    feature = lambda f: f // 30 % 4 * 6 + f % 6  # noqa: E731
    return te.compute((240,), lambda f: te.sum(x[f // 120, f // 6 % 5, k] * w[k, feature(f)], axis=k), "y")


def plain_heads(x: jax.Array, w: jax.Array) -> jax.Array:
    return (x @ w).reshape(2, 5, 4, 6).transpose(0, 2, 1, 3).ravel()


def pool(x: te.Tensor) -> te.Tensor:
    """Maxima of 2 x 2 positions of a flat image."""
    u, v = te.reduce_axis((0, 3), "u"), te.reduce_axis((0, 3), "v")
    at = lambda b, i, j, c: b * 270 + (2 * i + u) * 30 + (2 * j + v) * 3 + c  # noqa: E731
    return te.compute((2, 4, 4, 3), lambda *i: te.max(x[at(*i)], axis=(u, v)), "y")


def plain_pool(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x.reshape(2, 9, 10, 3), -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID")


def padded(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """3 x 3 positions of a flat image, with zeros around it."""
    u, v, c = (te.reduce_axis((0, n), name) for n, name in ((3, "u"), (3, "v"), (4, "c")))

    def at(b: te.Axis, i: te.Axis, j: te.Axis, o: te.Axis) -> te.Expr:
        inside = te.logical_and(te.logical_and(i + u >= 1, i + u < 8), te.logical_and(j + v >= 1, j + v < 7))
        read = x[((b * 7 + i + u - 1) * 6 + j + v - 1) * 4 + c]
        return te.sum(te.select(inside, read, 0.0) * w[u, v, c, o], axis=(u, v, c))

    return te.compute((2, 7, 6, 8), at, "y")


def plain_padded(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x.reshape(2, 7, 6, 4), w, (1, 1), "SAME", dimension_numbers=NHWC)


CASES: dict[
    str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...], dict[str, int]]
] = {
    "conv": (conv, plain_conv, ((576,), (288,)), {"conv_general_dilated(": 3}),
    "padded": (padded, plain_padded, ((336,), (3, 3, 4, 8)), {"conv_general_dilated(": 3}),
    "matmul": (matmul, plain_matmul, ((120,), (210,)), {"einsum(": 3}),
    "gate": (gate, plain_gate, ((3, 128), (4, 4)), {"einsum(": 3}),
    "heads": (heads, plain_heads, ((2, 5, 12), (12, 24)), {"einsum(": 3}),
    "pool": (pool, plain_pool, ((540,),), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_flat_indices_are_what_their_digits_are(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes, counts = CASES[name]
    arrays = [rng.normal(size=s).astype("float32") for s in shapes]
    function = te.function(build)
    value, pull = jax.vjp(function, *arrays)
    expected, plain_pull = jax.vjp(plain, *arrays)
    head = rng.normal(size=expected.shape).astype("float32")
    for a, b in zip((value, *pull(head)), (expected, *plain_pull(head)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    text = str(te.source(function, *arrays))
    assert {call: text.count(call) for call in counts} == counts
    for costly in (".at[", "scatter", "gather", "take("):
        assert costly not in text


@pytest.mark.parametrize("name", CASES)
def test_adjoints_are_those_of_the_interpreter(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes, _ = CASES[name]
    inputs = [te.placeholder(s, name=f"a{n}") for n, s in enumerate(shapes)]
    y = build(*inputs)
    arrays = [rng.normal(size=s).astype("float32") for s in shapes]
    head = te.placeholder(y.shape, name="head")
    feeds = dict(zip([*inputs, head], [*arrays, rng.normal(size=y.shape).astype("float32")], strict=True))
    expected, pull = jax.vjp(plain, *arrays)
    found = [interpreted(t, feeds) for t in (y, *te.differentiate(y, inputs, head))]
    for a, b in zip(found, (expected, *pull(feeds[head])), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def reads_shapes(tensor: te.Tensor) -> bool:
    return any(isinstance(t, Shaped) for t in topological_order(planned([tensor])))


@pytest.mark.parametrize(
    "index",
    [
        lambda i, u: 4 * i + u,  # a window that leaves its digit
        lambda i, u: 3 * i + 2 * u,  # no digits
        lambda i, u: i + u,  # one number
    ],
)
def test_left_alone(index: Callable[..., Any]) -> None:
    x = te.placeholder((36,), name="x")
    u = te.reduce_axis((0, 6), "u")
    assert not reads_shapes(te.compute((6,), lambda i: te.sum(x[index(i, u)], axis=u), "y"))


def test_rows_of_which_the_last_is_short_stay_as_they_are(rng: np.random.Generator) -> None:
    """A number whose greatest digit is not always there has no shape."""
    x, k = te.placeholder((60,), name="x"), te.reduce_axis((0, 2), "k")
    y = te.compute((50,), lambda f: te.sum(x[f // 12 * 12 + f // 3 % 4 * 3 + k] * (f % 3), axis=k), "y")
    given, f = rng.normal(size=60).astype("float32"), np.arange(50)
    expected = sum(given[f // 3 * 3 + n] * (f % 3) for n in range(2))
    np.testing.assert_allclose(te.evaluate(y, {x: given}), expected, rtol=1e-6)
    assert not reads_shapes(y)


def test_products_by_blocks_are_over_quotients_and_remainders(rng: np.random.Generator) -> None:
    """A transform of blocks of an image, back along its rows: no block is copied."""
    u = te.reduce_axis((0, 8), "u")

    def back(c: te.Tensor, d: te.Tensor) -> te.Tensor:
        read = lambda n, i, j: c[n, i // 8, j // 8, u, j % 8] * d[u, i % 8]  # noqa: E731
        return te.compute((32, 64, 64), lambda n, i, j: te.sum(read(n, i, j), axis=u), "x")

    c, d = rng.normal(size=(32, 8, 8, 8, 8)), rng.normal(size=(8, 8))
    own = te.function(back)
    text = str(te.source(own, c, d))
    assert "jnp.repeat" not in text and "jnp.tile" not in text
    expected = np.einsum("nijuq,up->nipjq", c, d).reshape(32, 64, 64)
    np.testing.assert_allclose(own(c, d), expected, rtol=1e-4, atol=1e-4)


# --- digits that shift what is read, and digits around which positions wrap


def displaced(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    """How alike two images are, at each displacement of one of them."""
    c = te.reduce_axis((0, a.shape[0]), "c")
    at = lambda s, i, j: a[c, i, j] * b[c, i + s // 5, j + s % 5]  # noqa: E731
    return te.compute((25, *a.shape[1:]), lambda *i: te.sum(at(*i), axis=c), "y")


def displaced_by_two(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    """The same with an axis for each direction."""
    c = te.reduce_axis((0, a.shape[0]), "c")
    at = lambda p, q, i, j: a[c, i, j] * b[c, i + p, j + q]  # noqa: E731
    return te.compute((5, 5, *a.shape[1:]), lambda *i: te.sum(at(*i), axis=c), "y")


def shifted_windows(x: te.Tensor) -> te.Tensor:
    """Products of the pixels of windows of 3 x 3, which are shifted by one and wrap."""
    c, (h, w) = te.reduce_axis((0, x.shape[2]), "c"), x.shape[:2]
    at = lambda n, i: x[(n // (w // 3) * 3 + i // 3 + 1) % h, (n % (w // 3) * 3 + i % 3 + 1) % w, c]  # noqa: E731
    product = lambda n, i, j: te.sum(at(n, i) * at(n, j), axis=c)  # noqa: E731
    return te.compute((h // 3 * (w // 3), 9, 9), lambda n, i, j: te.relu(product(n, i, j)), "y")


def floats(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype("float32") for s in shapes]


def test_displacements_by_a_digit_are_those_by_an_axis() -> None:
    arrays = floats((4, 6, 7), (4, 10, 11))
    by_digit, by_axis = (te.function(f) for f in (displaced, displaced_by_two))
    assert "tile" not in te.source(by_digit, *arrays)
    found, expected = by_digit(*arrays), by_axis(*arrays)
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), rtol=1e-5, atol=1e-5)


def test_windows_that_wrap_are_rolled_once() -> None:
    (x,) = floats((9, 12, 4))
    source = te.source(te.function(shifted_windows), x)
    assert "tile" not in source and "stack" not in source
    rolled = np.roll(x, (-1, -1), (0, 1)).reshape(3, 3, 4, 3, 4).transpose(0, 2, 1, 3, 4).reshape(12, 9, 4)
    expected = np.maximum(np.einsum("nic,njc->nij", rolled, rolled), 0)
    np.testing.assert_allclose(te.function(shifted_windows)(x), expected, rtol=1e-5, atol=1e-5)


def test_a_group_of_features_is_no_shift() -> None:
    x, w = te.placeholder((2, 8, 9), name="x"), te.placeholder((6, 4, 3), name="w")
    c, k = te.reduce_axis((0, 4), "c"), te.reduce_axis((0, 3), "k")
    read = lambda o, i: x[0, 4 * (o // 3) + c, i + k] * w[o, c, k]  # noqa: E731
    y = te.compute((6, 7), lambda o, i: te.sum(read(o, i), axis=[c, k]), "y")
    assert not any("digits" in t.name for t in topological_order(planned([y])))
