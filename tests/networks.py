"""Networks in index notation and in plain JAX, side by side, for the tests of the bridge."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te


def dense(x, w):
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")


def dense_jax(x, w):
    return x @ w


def mlp(params, x):
    """Two dense layers with tanh between; ``params`` is a list of dicts."""
    h = x
    for n, layer in enumerate(params):
        y = dense(h, layer["w"])
        biased = te.compute(y.shape, lambda i, j, y=y, b=layer["b"]: y[i, j] + b[j], f"z{n}")
        h = te.compute(y.shape, lambda i, j, z=biased: te.tanh(z[i, j]), f"h{n}") if n == 0 else biased
    return h


def mlp_jax(params, x):
    first, second = params
    return jnp.tanh(x @ first["w"] + first["b"]) @ second["w"] + second["b"]


def mlp_params(rng: np.random.Generator, sizes=(5, 4, 3), dtype="float32"):
    return [
        {"w": rng.standard_normal((a, b)).astype(dtype), "b": rng.standard_normal(b).astype(dtype)}
        for a, b in itertools.pairwise(sizes)
    ]


def softmax(x):
    """Softmax over the last axis of a matrix, by way of a running maximum."""
    j, k = te.reduce_axis((0, x.shape[1]), "j"), te.reduce_axis((0, x.shape[1]), "k")
    m = te.compute((x.shape[0],), lambda i: te.max(x[i, j], axis=j), "m")
    e = te.compute(x.shape, lambda i, c: te.exp(x[i, c] - m[i]), "e")
    s = te.compute((x.shape[0],), lambda i: te.sum(e[i, k], axis=k), "s")
    return te.compute(x.shape, lambda i, c: e[i, c] / s[i], "p")


def cross_entropy(logits, labels):
    """The mean of -log softmax(logits)[label], a scalar."""
    p = softmax(logits)
    n = te.reduce_axis((0, logits.shape[0]), "n")
    losses = te.compute((logits.shape[0],), lambda i: -te.log(p[i, labels[i]]), "losses")
    return te.compute((), lambda: te.sum(losses[n], axis=n) / logits.shape[0], "loss")


def cross_entropy_jax(logits, labels):
    rows = jnp.arange(logits.shape[0])
    return -jnp.mean(jax.nn.log_softmax(logits)[rows, labels])


def conv(x, w, stride=1):
    """A convolution without padding, NCHW and OIHW."""
    n, ch, h, wd = x.shape
    o, _, kh, kw = w.shape
    c, p, q = te.reduce_axis((0, ch), "c"), te.reduce_axis((0, kh), "p"), te.reduce_axis((0, kw), "q")
    return te.compute(
        (n, o, (h - kh) // stride + 1, (wd - kw) // stride + 1),
        lambda b, f, i, j: te.sum(x[b, c, stride * i + p, stride * j + q] * w[f, c, p, q], axis=[c, p, q]),
        "conv",
    )


def conv_jax(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "VALID")


def normal(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)
