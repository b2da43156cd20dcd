"""y[i,j] = x[i,j] / sqrt(max(sum_k x[i,k]^2, eps))"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "l2-normalize"
SIZES = {"full": dict(n=512, m=1024), "quick": dict(n=128, m=256), "tiny": dict(n=3, m=5)}
EPS = 1e-12


def inputs(n, m):
    return (normal(n, m),)


def expression(x):
    return te.ops.l2_normalize(x, eps=EPS)


def idiomatic(x):
    return x * lax.rsqrt(jnp.maximum(jnp.sum(x * x, -1, keepdims=True), EPS))


def torch(torch, x):
    return x * torch.rsqrt(torch.clamp((x * x).sum(-1, keepdim=True), min=EPS))
