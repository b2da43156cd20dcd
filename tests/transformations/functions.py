"""Twelve functions of te.function, each with plain JAX's form of the same and arguments: the rows of the grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te


@dataclass(frozen=True)
class Row:
    """A function, its reference, and the shapes of its float arguments, which come first.

    Attributes:
        integers: arrays that follow them.
        complex: whether it is defined for complex numbers (and its reference has the same derivative).
        smooth: whether its derivative is the one that finite differences see.
        batch: whether its first argument has a leading axis that its size does not matter of, for symbolic export.
    """

    name: str
    fn: Any
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    integers: tuple[np.ndarray, ...] = ()
    complex: bool = False
    batch: bool = True
    smooth: bool = True

    def arguments(self, dtype: Any = np.float32) -> tuple[Any, ...]:
        """Numbers of about 1, the same for each dtype, apart from each other so that no maximum is a tie in float16."""
        rng = np.random.default_rng(len(self.name))
        found = []
        for shape in self.shapes:
            numbers = np.linspace(-1.5, 1.5, int(np.prod(shape, dtype=int))) + 0.003
            values = rng.permutation(numbers).reshape(shape)
            if np.issubdtype(dtype, np.complexfloating):
                values = values + 1j * rng.permutation(numbers).reshape(shape)
            found.append(jnp.asarray(values, dtype))
        return (*found, *map(jnp.asarray, self.integers))


@te.function
def dense(x, w, b):
    k = te.reduce_axis((0, x.shape[1]), "k")
    y = te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")
    return te.compute(y.shape, lambda i, j: te.tanh(y[i, j] + b[j]), "z")


@te.function
def conv2d(x, w):
    return te.ops.conv2d(x, w, strides=2, padding=1)


def conv2d_jax(x, w):
    numbers = ("NCHW", "OIHW", "NCHW")
    return jax.lax.conv_general_dilated(x, w, (2, 2), ((1, 1), (1, 1)), dimension_numbers=numbers)


@te.function
def max_pool(x):
    p = te.reduce_axis((0, 2), "p")
    shape = x.shape[0], x.shape[1] // 2
    return te.compute(shape, lambda i, j: te.max(x[i, 2 * j + p], axis=p, ties="first"), "y")


def max_pool_jax(x):
    low = np.asarray(-np.inf, x.dtype)
    return jax.lax.reduce_window(x, low, jax.lax.max, (1, 2), (1, 2), "VALID")


@te.function
def stencil(x):
    n, m = x.shape

    def at(i, j):
        return te.select((j >= 0) & (j < m), x[i, j], 0.0)

    return te.compute((n, m), lambda i, j: at(i, j - 1) * at(i, j + 1) - 2 * x[i, j] ** 2, "y")


def stencil_jax(x):
    p = jnp.pad(x, ((0, 0), (1, 1)))
    return p[:, :-2] * p[:, 2:] - 2 * x**2


@te.function
def rolled(x):
    n = x.shape[1]
    return te.compute(x.shape, lambda i, j: x[i, (j + 1) % n] * x[i, (j - 2) % n] - x[i, j], "y")


def rolled_jax(x):
    return jnp.roll(x, -1, 1) * jnp.roll(x, 2, 1) - x


@te.function
def softmax(x):
    return te.ops.softmax(x)


@te.function
def layer_norm(x, scale, offset):
    return te.ops.layer_norm(x, scale, offset)


def layer_norm_jax(x, scale, offset):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + offset


@te.function
def embedding(table, scale, ids):
    return te.compute((ids.shape[0], table.shape[1]), lambda i, j: table[ids[i], j] * scale[j], "rows")


def embedding_jax(table, scale, ids):
    return table[ids] * scale


@te.function
def cumprod(x):
    return te.ops.cumprod(x, 1)


@te.function
def nearest(x, y):
    """The squared distance of each point to the nearest of some others: an extremum of elements that are computed."""
    k, c = te.reduce_axis((0, y.shape[0]), "k"), te.reduce_axis((0, x.shape[1]), "c")
    d = te.compute(
        (x.shape[0], y.shape[0]), lambda i, j: te.sum((x[i, c] - y[j, c]) ** 2, axis=c), "distance"
    )
    return te.compute((x.shape[0],), lambda i: te.min(d[i, k], axis=k), "nearest")


def nearest_jax(x, y):
    return ((x[:, None] - y[None]) ** 2).sum(-1).min(1)


@te.function
def network(x, w, v):
    """A pytree of results, one of them integers."""
    k, h = te.reduce_axis((0, x.shape[1]), "k"), te.reduce_axis((0, w.shape[1]), "h")
    a = te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "a")
    hidden = te.compute(a.shape, lambda i, j: te.sigmoid(a[i, j]) * a[i, j], "hidden")
    logits = te.compute(
        (x.shape[0], v.shape[1]), lambda i, j: te.sum(hidden[i, h] * v[h, j], axis=h), "logits"
    )
    c = te.reduce_axis((0, v.shape[1]), "c")
    return {
        "logits": logits,
        "hidden": hidden,
        "best": te.compute((x.shape[0],), lambda i: te.argmax(logits[i, c], axis=c), "best"),
    }


def network_jax(x, w, v):
    a = x @ w
    hidden = jax.nn.sigmoid(a) * a
    logits = hidden @ v
    return {"logits": logits, "hidden": hidden, "best": jnp.argmax(logits, -1).astype("int32")}


def _straight_through(result, x):
    (rounded,) = result.inputs
    return {rounded: ([x], lambda out, inputs, head: [head])}


@te.function(override=_straight_through)
def rounded(x):
    r = te.compute(x.shape, lambda i, j: te.round(4 * x[i, j]), "r")
    return te.compute(x.shape, lambda i, j: r[i, j] ** 3, "y")


@jax.custom_jvp
def _round(x):
    return jnp.round(4 * x)


_round.defjvp(lambda primals, tangents: (_round(*primals), tangents[0]))


def rounded_jax(x):
    return _round(x) ** 3


IDS = np.array([2, 0, 2, 4], "int32")
ROWS = (
    Row("dense", dense, lambda x, w, b: jnp.tanh(x @ w + b), ((3, 4), (4, 2), (2,)), complex=True),
    Row("conv2d", conv2d, conv2d_jax, ((2, 2, 5, 5), (3, 2, 3, 3)), complex=True),
    Row("max_pool", max_pool, max_pool_jax, ((3, 6),)),
    Row("stencil", stencil, stencil_jax, ((3, 6),), complex=True),
    Row("rolled", rolled, rolled_jax, ((3, 6),), complex=True),
    Row("softmax", softmax, jax.nn.softmax, ((3, 5),)),
    Row("layer_norm", layer_norm, layer_norm_jax, ((3, 4), (4,), (4,))),
    Row("embedding", embedding, embedding_jax, ((5, 3), (3,)), (IDS,), complex=True),
    Row("cumprod", cumprod, lambda x: jnp.cumprod(x, 1), ((2, 4),), complex=True),
    Row("nearest", nearest, nearest_jax, ((3, 2), (4, 2))),
    Row("network", network, network_jax, ((3, 4), (4, 3), (3, 2))),
    Row("rounded", rounded, rounded_jax, ((3, 4),), smooth=False),
)
