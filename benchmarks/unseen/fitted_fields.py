"""Fields, signals and geometry, whose programs the paces were fitted to."""

# ruff: noqa: E731, E741
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from unseen.registry import case, integers, normal, uniform


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


@case(normal(64, 64, 64))
def flow_3d(u):
    d = [jnp.gradient(u, axis=a) for a in range(3)]
    return jnp.sum(jnp.sqrt(sum(g**2 for g in d) + 1e-3))


@case(normal(1024, 2))
def pair_repulsion(x):
    d = x[:, None] - x[None]
    r2 = jnp.sum(d**2, -1) + jnp.eye(1024)
    return jnp.sum(jnp.triu(jnp.exp(-r2), 1))


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
