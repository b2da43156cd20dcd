"""y[i,j] = (x[i,j] - m[i]) / sqrt(v[i] + eps) g[j] + b[j], m and v mean and variance of row i"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "layer norm"
SIZES = {"full": dict(n=512, m=1024), "quick": dict(n=128, m=256), "tiny": dict(n=3, m=5)}
EPS = 1e-5


def inputs(n, m):
    return normal(n, m), normal(m), normal(m)


def expression(x, g, b):
    return te.ops.layer_norm(x, g, b, eps=EPS)


def idiomatic(x, g, b):
    m = jnp.mean(x, -1, keepdims=True)
    v = jnp.var(x, -1, keepdims=True)
    return (x - m) * lax.rsqrt(v + EPS) * g + b


@jax.custom_vjp
def by_hand(x, g, b):
    return _forward(x, g, b)[0]


def _forward(x, g, b):
    m = jnp.mean(x, -1, keepdims=True)
    r = lax.rsqrt(jnp.mean((x - m) ** 2, -1, keepdims=True) + EPS)
    return (x - m) * r * g + b, (x, m, r, g)


def _backward(saved, h):
    x, m, r, g = saved
    z, hg = (x - m) * r, h * g
    mean, slope = jnp.mean(hg, -1, keepdims=True), jnp.mean(hg * z, -1, keepdims=True)
    return (hg - mean - z * slope) * r, jnp.sum(h * z, 0), jnp.sum(h, 0)


by_hand.defvjp(_forward, _backward)


def torch(torch, x, g, b):
    return torch.nn.functional.layer_norm(x, x.shape[1:], g, b, EPS)
