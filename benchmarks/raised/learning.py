"""Statistics, graphs, transport."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from raised.registry import example


def _edges(rng):
    return rng.integers(0, 1024, (2, 8192)).astype("int32")


@example("learning", (1024, 32), (32, 32), _edges, scale=0.3)
def graph_convolution(x, w, edges):
    messages = (x @ w)[edges[0]]
    total = jax.ops.segment_sum(messages, edges[1], 1024)
    degree = jax.ops.segment_sum(jnp.ones(8192), edges[1], 1024)
    return jax.nn.relu(total / (degree[:, None] + 1))


@example("learning", (128, 128), scale=0.3)
def sinkhorn(c):
    f, g = jnp.zeros(128), jnp.zeros(128)
    for _ in range(5):
        f = -jax.nn.logsumexp(g[None] - c, axis=1)
        g = -jax.nn.logsumexp(f[:, None] - c, axis=0)
    return (jnp.exp(f[:, None] + g[None] - c) * c).sum()


@example("learning", (4096, 8), (16, 8))
def k_means(x, centres):
    d = ((x[:, None] - centres[None]) ** 2).sum(-1)
    return d.min(1)


@example("learning", (1024, 32))
def covariance(x):
    return jnp.cov(x, rowvar=False)


@example("learning", (64, 1000))
def cross_entropy(logits):
    labels = jnp.asarray(np.arange(64) * 7 % 1000)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)


@example("learning", (64, 1000))
def label_smoothing(logits):
    labels = jnp.asarray(np.arange(64) * 7 % 1000)
    target = 0.9 * jax.nn.one_hot(labels, 1000) + 0.1 / 1000
    return -(target * jax.nn.log_softmax(logits)).sum(-1)


@example("learning", (256, 64), [(64, 128), (128,), (128, 10), (10,)], scale=0.2)
def mlp(x, p):
    return jax.nn.softmax(jnp.tanh(x @ p[0] + p[1]) @ p[2] + p[3])


@example("learning", (4096,), positive=True)
def interpolation(x):
    xp = jnp.linspace(0.0, 5.0, 64)
    return jnp.interp(x, xp, jnp.sin(xp))


@example("learning", (256, 4096))
def phase_unwrap(x):
    return jnp.unwrap(x, axis=1)
