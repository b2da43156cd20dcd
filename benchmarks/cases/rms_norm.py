"""y[i,j] = x[i,j] / sqrt(sum_k x[i,k]^2 / m + eps) g[j]"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "rms norm"
SIZES = {"full": dict(n=512, m=1024), "quick": dict(n=128, m=256), "tiny": dict(n=3, m=5)}
EPS = 1e-6
HOLDS_BACK = "the same operations in another order, in which XLA writes over no buffer"


def inputs(n, m):
    return normal(n, m), normal(m)


def expression(x, g):
    return te.ops.rms_norm(x, g, eps=EPS)


def idiomatic(x, g):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPS) * g


def torch(torch, x, g):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * g
