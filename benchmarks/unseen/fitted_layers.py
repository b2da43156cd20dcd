"""Layers, kernels and scores, whose programs the paces were fitted to."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from unseen.registry import case, normal, uniform


@case(normal(2000, 32), normal(2000, 9), normal(32, 9, 16, scale=0.1))
def gate_square(x, y, w):
    z = jnp.einsum("ni,nj,ijk->nk", x, y, w)
    s = z[:, :8] * jax.nn.sigmoid(z[:, 8:])
    return jnp.sum(s**2)


@case(normal(4000, 3, 3), normal(4000, 3, 3))
def tensor_square_gate(a, b):
    sq = jnp.einsum("nij,nkl->nijkl", a, b)
    tr = jnp.einsum("nijij->n", sq)
    an = jnp.einsum("nijjk->nik", sq)
    return jnp.sum(jax.nn.silu(tr)[:, None, None] * an)


@case(normal(12, 14), normal(14, 16), normal(16, 18), normal(18, 20), normal(20, 22), normal(22, 12))
def einsum_six(a, b, c, d, e, f):
    return jnp.sum(jnp.einsum("ij,jk,kl->ikl", a, b, c)[..., None] * d) ** 2 + jnp.sum(e @ f)


@case(normal(8, 64, 64), normal(8, 127))
def rel_bias(s, b):
    i = jnp.arange(64)
    return jnp.sum(jax.nn.softmax(s + b[:, i[:, None] - i[None] + 63], -1)[..., 0] ** 2)


@case(normal(8, 256, 256), normal(32, 8))
def rel_buckets(s, table):
    bk = np.minimum(np.log2(np.abs(np.arange(256)[:, None] - np.arange(256)[None]) + 1) * 4, 31).astype(
        "int32"
    )
    return jnp.sum(jax.nn.softmax(s + table[bk].transpose(2, 0, 1), -1) ** 2)


@case(normal(4, 32, 32, 48))
def shifted_windows(x):
    y = jnp.roll(x, (-4, -4), (1, 2))
    w = y.reshape(4, 4, 8, 4, 8, 48).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 64, 48)
    a = jax.nn.softmax(jnp.einsum("bik,bjk->bij", w, w) / 7, -1)
    o = jnp.einsum("bij,bjk->bik", a, w)
    o = o.reshape(4, 4, 4, 8, 8, 48).transpose(0, 1, 3, 2, 4, 5).reshape(4, 32, 32, 48)
    return jnp.sum(jnp.roll(o, (4, 4), (1, 2)) ** 2)


@case(normal(3000), uniform(3000))
def soft_histogram(x, w):
    c = jnp.linspace(-3, 3, 64)
    return jnp.sum((w[:, None] * jnp.exp(-(((x[:, None] - c) / 0.1) ** 2))).sum(0) ** 2)


@case(uniform(3000, low=0.0, high=1.0), uniform(3000))
def copula(u, v):
    th = 2.0
    a = u**-th + v**-th - 1
    return jnp.sum(
        jnp.log(1 + th)
        + (-th - 1) * (jnp.log(u + 1e-2) + jnp.log(v + 1e-2))
        + (-2 - 1 / th) * jnp.log(jnp.abs(a) + 1e-3)
    )


@case(normal(64, 16))
def all_triplets(x):
    d = jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, -1) + 1e-6)
    return jnp.mean(jax.nn.relu(d[:, :, None] - d[:, None, :] + 0.2))


@case(normal(2000, 3), uniform(2000, 8), normal(8, 3, 4))
def skinning(v, w, T):
    M = jnp.einsum("nb,bij->nij", w, T)
    h = jnp.concatenate([v, jnp.ones((2000, 1))], -1)
    return jnp.sum(jnp.einsum("nij,nj->ni", M, h) ** 2)


@case(normal(256, 256), normal(9, 256, 256, scale=0.1))
def blind_kernel(x, k):
    p = jnp.pad(x, 1)
    w = jnp.stack([p[i : i + 256, j : j + 256] for i in range(3) for j in range(3)])
    return jnp.sum((w * k).sum(0) ** 2)


@case(normal(16, 1024, 64), normal(4, 64))
def short_conv_silu(x, w):
    p = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    return jnp.sum(jax.nn.silu(sum(p[:, k : k + 1024] * w[k] for k in range(4))) ** 2)


@case(normal(64, 512), normal(64, 512), uniform(64, 512, low=0.8, high=0.99))
def scan_gate(x, y, a):
    def st(h, z):
        h = z[0] * h + z[1] * z[2]
        return h, h

    return jnp.sum(lax.scan(st, jnp.zeros(64), (a.T, x.T, y.T))[1] ** 2)


@case(normal(256, 64), normal(300, 64))
def transport(x, y):
    C = jnp.sum((x[:, None] - y[None]) ** 2, -1)
    f = jnp.zeros(256)
    g = jnp.zeros(300)
    for _ in range(5):
        f = -jax.nn.logsumexp((g[None] - C) / 20, 1) * 20
        g = -jax.nn.logsumexp((f[:, None] - C) / 20, 0) * 20
    return jnp.sum(f) + jnp.sum(g)


@case(normal(4, 3, 128, 128), normal(8, 3, 3, 3, scale=0.2), normal(8))
def conv_norm_pool(x, w, b):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None]
    y = (y - y.mean((2, 3), keepdims=True)) / jnp.sqrt(y.var((2, 3), keepdims=True) + 1e-5)
    y = jax.nn.relu(y)
    return jnp.sum(lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") ** 2)


@case(normal(2, 1, 24, 24, 24), normal(1, 1, 5, 5, 5, scale=0.1))
def conv3d_one(x, k):
    return jnp.sum(
        lax.conv_general_dilated(x, k, (1, 1, 1), "SAME", dimension_numbers=("NCDHW", "OIDHW", "NCDHW")) ** 2
    )


@case(normal(2, 8, 32, 32, 32))
def pool3d(x):
    return jnp.sum(lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3, 3), (1, 1, 1, 1, 1), "SAME") ** 2)


@case(normal(8, 128, 64), normal(64, 64, scale=0.1), normal(64, 64, scale=0.1), normal(64, 64, scale=0.1))
def causal_attention(x, q, k, v):
    s = jnp.einsum("btd,bsd->bts", x @ q, x @ k) / 8
    s = jnp.where(jnp.tril(jnp.ones((128, 128), bool)), s, -1e9)
    return jnp.sum((jax.nn.softmax(s, -1) @ (x @ v)) ** 2)


@case(normal(8, 256, 32), normal(8, 256, 32), normal(8, 256, 32))
def band_attention(q, k, v):
    i = jnp.arange(256)
    m = jnp.abs(i[:, None] - i) < 8
    s = jnp.where(m, jnp.einsum("btd,bsd->bts", q, k) / 6, -1e9)
    return jnp.sum((jax.nn.softmax(s, -1) @ v) ** 2)


@case(normal(2000), normal(2000))
def rank_pairs(s, y):
    return jnp.mean(jax.nn.relu(1 - (s[:, None] - s) * jnp.sign(y[:, None] - y)))


@case(normal(512, 128), normal(128, 256, scale=0.1), normal(256), normal(256, 10, scale=0.1))
def two_layers(x, w, b, v):
    return jnp.mean(jax.nn.logsumexp(jax.nn.relu(x @ w + b) @ v, -1))


@case(normal(2048, 32), normal(32, 32, scale=0.1))
def rows_products(x, w):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


@case(normal(16, 64, 16), normal(16, 64, 16))
def dtw_costs(a, b):
    return jnp.sum(jnp.min(jnp.sum(jnp.abs(a[:, :, None] - b[:, None]), -1), -1))


@case(normal(2, 16, 16, 16, 16), normal(16, 16, 3, 3))
def group_rot(x, w):
    y = 0.0
    for k in range(4):
        y = y + lax.conv_general_dilated(
            x.transpose(0, 2, 1, 3, 4)[:, k], jnp.rot90(w, k, (2, 3)), (1, 1), "SAME"
        )
    return jnp.sum(jax.nn.relu(y) ** 2)
