"""y[n,c,i,j] = (x[n,c,i,j] - m[n,G]) / sqrt(v[n,G] + eps) g[c] + b[c], G = c // (C / 8), mean and variance of the group"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "group norm, 8 groups"
SIZES = {"full": dict(n=8, c=64, h=28), "quick": dict(n=2, c=32, h=14), "tiny": dict(n=1, c=16, h=3)}
HOLDS_BACK = "forward, sums over rows of 28 one after the other; rows and columns as one dimension gain up to a third, and hold one more array backward"
GROUPS, EPS = 8, 1e-5


def inputs(n, c, h):
    return normal(n, c, h, h), normal(c), normal(c)


def expression(x, g, b):
    n, channels, h, w = x.shape
    size = channels // GROUPS
    count = size * h * w
    shape = (n, GROUPS)

    def over_group():
        return [te.reduce_axis((0, e), name) for e, name in ((size, "k"), (h, "p"), (w, "q"))]

    axes = over_group()
    k, p, q = axes
    m = te.compute(shape, lambda n, G: te.sum(x[n, size * G + k, p, q], axis=axes) / count, "m")
    z = te.compute(x.shape, lambda n, c, i, j: x[n, c, i, j] - m[n, c // size], "z")
    others = over_group()
    k, p, q = others
    v = te.compute(shape, lambda n, G: te.sum(z[n, size * G + k, p, q] ** 2, axis=others) / count, "v")
    return te.compute(
        x.shape, lambda n, c, i, j: z[n, c, i, j] * te.rsqrt(v[n, c // size] + EPS) * g[c] + b[c], "y"
    )


def idiomatic(x, g, b):
    z = x.reshape(x.shape[0], GROUPS, -1)
    m, v = jnp.mean(z, -1, keepdims=True), jnp.var(z, -1, keepdims=True)
    return ((z - m) * lax.rsqrt(v + EPS)).reshape(x.shape) * g[:, None, None] + b[:, None, None]


def indexed(x, g, b):
    size = x.shape[1] // GROUPS
    members = size * jnp.arange(GROUPS)[:, None] + jnp.arange(size)
    group = jnp.arange(x.shape[1]) // size
    z = x - jnp.mean(x[:, members], (2, 3, 4))[:, group, None, None]
    v = jnp.mean(z[:, members] ** 2, (2, 3, 4))
    return z * lax.rsqrt(v + EPS)[:, group, None, None] * g[:, None, None] + b[:, None, None]


def torch(torch, x, g, b):
    return torch.nn.functional.group_norm(x, GROUPS, g, b, EPS)
