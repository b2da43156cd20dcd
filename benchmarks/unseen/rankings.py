"""Losses of ranks, pairs and triples, and contrastive ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from unseen.registry import case, integers, normal, uniform


@case(normal(16, 120), integers(5, 16, 120))
def lambda_loss(scores, grades):
    rank = jnp.argsort(jnp.argsort(-scores, 1), 1) + 1
    gain = 2.0**grades - 1
    discount = 1 / jnp.log2(1.0 + rank)
    delta = jnp.abs((gain[:, :, None] - gain[:, None]) * (discount[:, :, None] - discount[:, None]))
    margin = scores[:, :, None] - scores[:, None]
    worse = grades[:, :, None] > grades[:, None]
    return jnp.sum(jnp.where(worse, delta * jnp.log1p(jnp.exp(-margin)), 0.0)) / 16


@case(normal(32, 100), integers(4, 32, 100))
def approximate_ndcg(scores, grades):
    ranks = 0.5 + jnp.sum(jax.nn.sigmoid((scores[:, None, :] - scores[:, :, None]) / 0.1), -1)
    gain = 2.0**grades - 1
    best = jnp.sum(-jnp.sort(-gain, 1) / jnp.log2(jnp.arange(100) + 2.0), 1)
    return -jnp.mean(jnp.sum(gain / jnp.log2(1 + ranks), 1) / (best + 1e-6))


@case(normal(64, 500), normal(64, 500))
def list_likelihood(scores, relevance):
    order = jnp.argsort(-relevance, 1)
    s = jnp.take_along_axis(scores, order, 1)
    tail = jnp.log(jnp.cumsum(jnp.exp(s - s.max(1, keepdims=True))[:, ::-1], 1)[:, ::-1])
    return jnp.mean(tail + s.max(1, keepdims=True) - s)


@case(
    normal(5000, 32, scale=0.1),
    normal(2000, 32, scale=0.1),
    integers(5000, 8192),
    integers(2000, 8192),
    integers(2000, 8192),
)
def personalized_pairs(users, items, u, i, j):
    x = jnp.sum(users[u] * (items[i] - items[j]), -1)
    return -jnp.mean(jax.nn.log_sigmoid(x)) + 1e-4 * (jnp.sum(users[u] ** 2) + jnp.sum(items[i] ** 2))


@case(normal(256, 64), normal(256, 64))
def contrastive_views(a, b):
    z = jnp.concatenate([a, b])
    z = z / jnp.linalg.norm(z, axis=1, keepdims=True)
    s = z @ z.T / 0.2 - 1e9 * jnp.eye(512)
    target = jnp.concatenate([jnp.arange(256, 512), jnp.arange(256)])
    return jnp.mean(jax.nn.logsumexp(s, 1) - s[jnp.arange(512), target])


@case(normal(96, 48), integers(8, 96))
def hardest_triplets(x, labels):
    d = jnp.sqrt(jnp.maximum(jnp.sum((x[:, None] - x[None]) ** 2, -1), 1e-6))
    same = labels[:, None] == labels[None]
    far = jnp.max(jnp.where(same, d, 0.0), 1)
    near = jnp.min(jnp.where(same, jnp.inf, d), 1)
    return jnp.mean(jax.nn.softplus(far - near + 0.2))


@case(normal(800), normal(800))
def concordance(risk, time):
    earlier = time[:, None] < time[None]
    return jnp.sum(jnp.where(earlier, jax.nn.sigmoid(risk[None] - risk[:, None]), 0.0)) / jnp.sum(earlier)


@case(normal(1500), uniform(1500), integers(2, 1500))
def partial_likelihood(risk, time, event):
    at_risk = time[None] >= time[:, None]
    s = jnp.where(at_risk, risk[None], -jnp.inf)
    return -jnp.sum(event * (risk - jax.nn.logsumexp(s, 1))) / jnp.sum(event)


@case(normal(64, 40))
def soft_permutation(x):
    p = -jnp.abs(jnp.sort(x, 1)[:, :, None] - x[:, None]) / 0.5
    for _ in range(8):
        p = p - jax.nn.logsumexp(p, 2, keepdims=True)
        p = p - jax.nn.logsumexp(p, 1, keepdims=True)
    y = jnp.einsum("bij,bj->bi", jnp.exp(p), x)
    return jnp.sum((y[:, 1:] - y[:, :-1]) ** 2)


@case(normal(128, 32), normal(1000, 32), integers(1000, 128))
def angular_margin(features, centers, labels):
    f = features / jnp.linalg.norm(features, axis=1, keepdims=True)
    c = centers / jnp.linalg.norm(centers, axis=1, keepdims=True)
    cos = jnp.clip(f @ c.T, -0.999, 0.999)
    hot = jax.nn.one_hot(labels, 1000)
    logits = 16 * jnp.where(hot > 0, jnp.cos(jnp.arccos(cos) + 0.3), cos)
    return -jnp.mean(jnp.sum(hot * jax.nn.log_softmax(logits), 1))
