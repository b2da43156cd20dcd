"""Losses in the spelling that comes first, written to see whether te.grad's estimate is right for what it was not made for."""

# ruff: noqa: E731, E741
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LOSSES: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {}


def normal(*shape: int, scale: float = 1.0) -> Callable[..., Any]:
    return lambda rng: (scale * rng.normal(size=shape)).astype("float32")


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Callable[..., Any]:
    return lambda rng: rng.uniform(low, high, shape).astype("float32")


def integers(high: int, *shape: int) -> Callable[..., Any]:
    return lambda rng: rng.integers(0, high, shape).astype("int32")


def case(*makes: Callable[..., Any]) -> Callable[..., Any]:
    """Enters a loss with its arguments, each made by a generator of random numbers."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        def made() -> tuple[Callable[..., Any], tuple[Any, ...]]:
            rng = np.random.default_rng(0)
            return f, tuple(jnp.asarray(make(rng)) for make in makes)

        LOSSES[f.__name__] = made
        return f

    return enter


@case(normal(8, 200, 256))
def overlap_add(frames):
    hop = 64
    n = frames.shape[1]
    out = jnp.zeros((8, hop * (n - 1) + 256))
    idx = jnp.arange(n)[:, None] * hop + jnp.arange(256)[None]
    win = jnp.hanning(256).astype("float32")
    return jnp.sum(out.at[:, idx].add(frames * win) ** 2)


@case(normal(4, 200, 256))
def overlap_add_loop(frames):
    hop = 128
    n = frames.shape[1]
    out = jnp.zeros((4, hop * (n - 1) + 256))
    for k in range(16):
        out = out.at[:, k * hop : k * hop + 256].add(frames[:, k])
    return jnp.sum(jnp.abs(out))


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


@case(normal(128, 128), normal(128, 128))
def census(a, b):
    p = jnp.pad(a, 2, mode="edge")
    q = jnp.pad(b, 2, mode="edge")
    t = 0.0
    for dy in range(5):
        for dx in range(5):
            u = jax.nn.sigmoid(8 * (lax.dynamic_slice(p, (dy, dx), (128, 128)) - a))
            v = jax.nn.sigmoid(8 * (q[dy : dy + 128, dx : dx + 128] - b))
            t = t + (u - v) ** 2
    return jnp.mean(jnp.sqrt(t + 1e-4))


@case(normal(64, 3, 3), normal(64, 3), normal(300, 3), normal(64, 3, 3), normal(64, 3), normal(300, 3))
def frame_aligned(Rp, tp, xp, Rt, tt, xt):
    a = jnp.einsum("fji,fpj->fpi", Rp, xp[None] - tp[:, None])
    b = jnp.einsum("fji,fpj->fpi", Rt, xt[None] - tt[:, None])
    d = jnp.sqrt(jnp.sum((a - b) ** 2, -1) + 1e-4)
    return jnp.mean(jnp.minimum(d, 10.0))


@case(normal(20, 512, 3))
def rotation_chain(w):
    def rot(v):
        t = jnp.sqrt(jnp.sum(v**2, -1) + 1e-8)[..., None, None]
        z = jnp.zeros_like(v[..., 0])
        K = jnp.stack(
            [
                jnp.stack([z, -v[..., 2], v[..., 1]], -1),
                jnp.stack([v[..., 2], z, -v[..., 0]], -1),
                jnp.stack([-v[..., 1], v[..., 0], z], -1),
            ],
            -2,
        )
        return jnp.eye(3) + jnp.sin(t) / t * K + (1 - jnp.cos(t)) / t**2 * (K @ K)

    A = jnp.broadcast_to(jnp.eye(3), (512, 3, 3))
    out = []
    for k in range(20):
        A = A @ rot(w[k])
        out.append(A[..., 0])
    return jnp.sum(jnp.stack(out) ** 3)


@case(normal(128, 128))
def rolls_in_loop(u):
    g = jax.grad(
        lambda v: jnp.sum(jnp.sqrt((v - jnp.roll(v, 1, 0)) ** 2 + (v - jnp.roll(v, 1, 1)) ** 2 + 1e-3))
    )
    return jnp.sum(lax.fori_loop(0, 10, lambda i, v: v - 0.05 * g(v), u) ** 2)


@case(uniform(4096), normal(24, 8))
def de_boor(x, c):
    t = jnp.linspace(-0.2, 1.2, 28)
    B = ((x[:, None] >= t[:-1]) & (x[:, None] < t[1:])).astype("float32")
    for k in range(1, 4):
        B = (x[:, None] - t[: -k - 1]) / (t[k:-1] - t[: -k - 1]) * B[:, :-1] + (t[k + 1 :] - x[:, None]) / (
            t[k + 1 :] - t[1:-k]
        ) * B[:, 1:]
    return jnp.sum((B @ c) ** 2)


@case(normal(16, 6, scale=0.1), normal(500, 3), integers(16, 4000), integers(500, 4000), normal(4000, 2))
def bundle(cams, pts, ci, pi, obs):
    w, t = cams[ci, :3], cams[ci, 3:]
    X = pts[pi]
    P = X + jnp.cross(w, X) + t + jnp.array([0, 0, 5.0])
    uv = P[:, :2] / P[:, 2:]
    return jnp.sum((uv - obs) ** 2)


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


@case(normal(64, 64, 64))
def flow_3d(u):
    d = [jnp.gradient(u, axis=a) for a in range(3)]
    return jnp.sum(jnp.sqrt(sum(g**2 for g in d) + 1e-3))


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


@case(normal(1024, 2))
def pair_repulsion(x):
    d = x[:, None] - x[None]
    r2 = jnp.sum(d**2, -1) + jnp.eye(1024)
    return jnp.sum(jnp.triu(jnp.exp(-r2), 1))


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


@case(normal(512, 512))
def poisson_residual(u):
    r = u[1:-1, 1:-1] * 4 - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]
    return jnp.sum(r**2)


@case(normal(256, 256), normal(256, 256))
def navier_step(u, v):
    dx = lambda f: (jnp.roll(f, -1, 0) - jnp.roll(f, 1, 0)) / 2
    dy = lambda f: (jnp.roll(f, -1, 1) - jnp.roll(f, 1, 1)) / 2
    lap = lambda f: jnp.roll(f, 1, 0) + jnp.roll(f, -1, 0) + jnp.roll(f, 1, 1) + jnp.roll(f, -1, 1) - 4 * f
    for _ in range(3):
        u, v = (
            u - 0.1 * (u * dx(u) + v * dy(u)) + 0.05 * lap(u),
            v - 0.1 * (u * dx(v) + v * dy(v)) + 0.05 * lap(v),
        )
    return jnp.sum(u**2 + v**2)


@case(normal(64, 500), normal(12))
def fir_lfilter(x, h):
    return jnp.sum(jax.vmap(lambda r: jnp.convolve(r, h, mode="same"))(x) ** 2)


@case(normal(16, 2048))
def log_spec(x):
    f = x.reshape(16, 32, 64) * jnp.hanning(64).astype("float32")
    s = jnp.abs(jnp.fft.rfft(f)) ** 2
    return jnp.sum(jnp.log(s + 1e-3))


@case(normal(2000), normal(2000))
def rank_pairs(s, y):
    return jnp.mean(jax.nn.relu(1 - (s[:, None] - s) * jnp.sign(y[:, None] - y)))


@case(normal(5000, 4), normal(5000, 4))
def quaternion_mul(p, q):
    a, b, c, d = [p[:, i] for i in range(4)]
    e, f, g, h = [q[:, i] for i in range(4)]
    r = jnp.stack(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ],
        -1,
    )
    return jnp.sum(r**2 * jnp.arange(4))


@case(
    normal(40, 40, 3),
)
def cloth_energy(x):
    a = x[1:] - x[:-1]
    b = x[:, 1:] - x[:, :-1]
    l = lambda d: jnp.sqrt(jnp.sum(d**2, -1) + 1e-6)
    return jnp.sum((l(a) - 1) ** 2) + jnp.sum((l(b) - 1) ** 2)


@case(normal(512, 128), normal(128, 256, scale=0.1), normal(256), normal(256, 10, scale=0.1))
def two_layers(x, w, b, v):
    return jnp.mean(jax.nn.logsumexp(jax.nn.relu(x @ w + b) @ v, -1))


@case(normal(2048, 32), normal(32, 32, scale=0.1))
def rows_products(x, w):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


@case(normal(8, 64, 64), uniform(8, 64, 64, 2, low=0, high=62))
def bilinear_warp(img, p):
    f = jnp.floor(p)
    w = p - f
    i = f.astype(int)
    g = jax.vmap(lambda im, yy, xx: im[yy, xx])
    y, x = i[..., 0], i[..., 1]
    return jnp.sum(
        (
            g(img, y, x) * (1 - w[..., 0]) * (1 - w[..., 1])
            + g(img, y + 1, x) * w[..., 0] * (1 - w[..., 1])
            + g(img, y, x + 1) * (1 - w[..., 0]) * w[..., 1]
            + g(img, y + 1, x + 1) * w[..., 0] * w[..., 1]
        )
        ** 2
    )


@case(normal(100, 12), uniform(12))
def ar_likelihood(x, a):
    w = jnp.stack([x[:, i : i + 4] for i in range(8)], 1)
    return jnp.sum(w.std(-1)) + jnp.sum((x[:, 4:] - sum(a[k] * x[:, 3 - k : -1 - k] for k in range(4))) ** 2)


@case(normal(32, 4000))
def cum_drawdown(x):
    c = jnp.cumsum(x, 1)
    m = lax.cummax(c, axis=1)
    return jnp.mean(m - c)


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
