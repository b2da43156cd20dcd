"""Log densities, distances of samples and scores of forecasts."""

# ruff: noqa: E741
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from unseen.registry import case, integers, normal, uniform


@case(normal(200, 5), normal(200), uniform(5, low=0.5, high=2.0), uniform(2, low=0.2, high=0.5))
def evidence(x, y, scales, noise):
    z = x / scales
    k = noise[0] * jnp.exp(-0.5 * jnp.sum((z[:, None] - z[None]) ** 2, -1)) + noise[1] * jnp.eye(200)
    l = jnp.linalg.cholesky(k)
    a = jax.scipy.linalg.solve_triangular(l, y, lower=True)
    return 0.5 * jnp.sum(a**2) + jnp.sum(jnp.log(jnp.diag(l)))


@case(normal(2000, 4), normal(8, 4), normal(8, 4, 4, scale=0.3), normal(8))
def full_mixture(x, means, factors, logits):
    l = jnp.tril(factors, -1) + jax.vmap(jnp.diag)(jnp.exp(jnp.diagonal(factors, axis1=1, axis2=2)))
    d = x[:, None] - means
    y = jnp.einsum("kij,nkj->nki", l, d)
    det = jnp.sum(jnp.diagonal(factors, axis1=1, axis2=2), -1)
    return -jnp.mean(jax.nn.logsumexp(jax.nn.log_softmax(logits) + det - 0.5 * jnp.sum(y**2, -1), 1))


@case(normal(500, 8), normal(500, 8))
def mean_discrepancy(x, y):
    def k(a, b):
        d = jnp.sum((a[:, None] - b[None]) ** 2, -1)
        return sum(jnp.mean(jnp.exp(-d / s)) for s in (1.0, 4.0, 16.0))

    return k(x, x) + k(y, y) - 2 * k(x, y)


@case(normal(256, 50), normal(256))
def ensemble_score(forecast, truth):
    miss = jnp.mean(jnp.abs(forecast - truth[:, None]), 1)
    spread = jnp.mean(jnp.abs(forecast[:, :, None] - forecast[:, None, :]), (1, 2))
    return jnp.mean(miss - 0.5 * spread)


@case(normal(64, 1000), uniform(3, low=0.1, high=0.3))
def volatility_model(r, p):
    def step(v, x):
        v = p[0] + p[1] * x**2 + p[2] * v
        return v, jnp.log(v) + x**2 / v

    return jnp.mean(lax.scan(step, jnp.ones(64), r.T)[1])


@case(normal(32, 200, 12), normal(12, 12), normal(12))
def hidden_chain(emissions, transition, start):
    t = jax.nn.log_softmax(transition)

    def step(a, e):
        a = jax.nn.logsumexp(a[:, :, None] + t, 1) + e
        return a, None

    a = jax.nn.log_softmax(start) + emissions[:, 0]
    a, _ = lax.scan(step, a, jnp.swapaxes(emissions[:, 1:], 0, 1))
    return -jnp.mean(jax.nn.logsumexp(a, 1))


@case(uniform(400, 30, low=0.1, high=3.0), integers(20, 400, 30))
def count_compounds(alpha, counts):
    n, a = jnp.sum(counts, 1), jnp.sum(alpha, 1)
    g = jax.scipy.special.gammaln
    return -jnp.mean(g(a) - g(a + n) + jnp.sum(g(alpha + counts) - g(alpha), 1))


@case(normal(1000, 9), normal(1000), uniform(9))
def quantile_forecasts(q, y, levels):
    e = y[:, None] - jnp.cumsum(jax.nn.softplus(q), 1)
    crossing = jax.nn.relu(q[:, :-1] - q[:, 1:])
    return jnp.mean(jnp.maximum(levels * e, (levels - 1) * e)) + jnp.mean(crossing)


@case(normal(4000), normal(300), uniform(1, low=0.1, high=0.3))
def density_of_kernels(x, centers, width):
    z = (x[:, None] - centers) / width
    return -jnp.mean(jax.nn.logsumexp(-0.5 * z**2 - jnp.log(width), 1))


@case(normal(300, 6), normal(300, 4))
def distance_covariance(x, y):
    def centered(a):
        d = jnp.sqrt(jnp.sum((a[:, None] - a[None]) ** 2, -1) + 1e-9)
        return d - d.mean(0) - d.mean(1)[:, None] + d.mean()

    a, b = centered(x), centered(y)
    return jnp.sum(a * b) / jnp.sqrt(jnp.sum(a * a) * jnp.sum(b * b))


@case(normal(32, 100, 4), normal(4, 4, scale=0.3), normal(2, 4))
def filtered_states(z, a, c):
    def step(s, obs):
        m, p = s
        m, p = a @ m, a @ p @ a.T + 0.1 * jnp.eye(4)
        y = obs[:2] - c @ m
        v = c @ p @ c.T + 0.2 * jnp.eye(2)
        k = jnp.linalg.solve(v, c @ p).T
        ll = y @ jnp.linalg.solve(v, y) + jnp.linalg.slogdet(v)[1]
        return (m + k @ y, p - k @ c @ p), ll

    def one(series):
        return jnp.sum(lax.scan(step, (jnp.zeros(4), jnp.eye(4)), series)[1])

    return jnp.mean(jax.vmap(one)(z))


@case(normal(20000), uniform(64, low=-0.1, high=0.1))
def piecewise_linear_flow(x, heights):
    knots = jnp.linspace(-3, 3, 65)
    slopes = jnp.exp(heights)
    values = jnp.concatenate([jnp.zeros(1), jnp.cumsum(slopes * 6 / 64)])
    k = jnp.clip(jnp.searchsorted(knots, x) - 1, 0, 63)
    y = values[k] + slopes[k] * (x - knots[k])
    return jnp.mean(0.5 * (y - 3) ** 2 - jnp.log(slopes[k]))
