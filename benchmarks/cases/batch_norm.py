"""y[n,c,i,j] = (x[n,c,i,j] - m[c]) / sqrt(v[c] + eps) g[c] + b[c], with m and v of the batch, which are results too"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "batch norm, training"
SIZES = {"full": dict(n=16, c=64, h=28), "quick": dict(n=4, c=32, h=14), "tiny": dict(n=2, c=2, h=3)}
EPS = 1e-5


def inputs(n, c, h):
    return normal(n, c, h, h), normal(c), normal(c)


def expression(x, g, b):
    return te.ops.batch_norm(x, g, b, eps=EPS, training=True)


def idiomatic(x, g, b):
    m, v = jnp.mean(x, (0, 2, 3)), jnp.var(x, (0, 2, 3))
    scale = lax.rsqrt(v + EPS) * g
    return (x - m[:, None, None]) * scale[:, None, None] + b[:, None, None], m, v


def torch(torch, x, g, b):
    y = torch.nn.functional.batch_norm(x, None, None, g, b, training=True, eps=EPS)
    return y, x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
