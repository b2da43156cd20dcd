"""Losses of points, meshes, curves and poses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from unseen.registry import case, integers, normal, uniform


@case(normal(500, 3), normal(600, 3))
def chamfer_with_normals(a, b):
    d = jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1)[None] - 2 * a @ b.T
    return jnp.mean(jnp.min(d, 1)) + jnp.mean(jnp.min(d, 0))


@case(normal(2000, 3), integers(2000, 4000, 3))
def mesh_energy(v, faces):
    a, b, c = v[faces[:, 0]], v[faces[:, 1]], v[faces[:, 2]]
    n = jnp.cross(b - a, c - a)
    area = jnp.linalg.norm(n, axis=1) / 2 + 1e-6
    center = (a + b + c) / 3
    smooth = jnp.zeros((2000, 3)).at[faces].add(center[:, None] - jnp.stack([a, b, c], 1))
    return jnp.sum(area) + jnp.sum(smooth**2) + jnp.var(area)


@case(normal(64, 24, 3, scale=0.5))
def forward_kinematics(angles):
    def rotation(w):
        t = jnp.sqrt(jnp.sum(w**2, -1) + 1e-8)[..., None, None]
        z = jnp.zeros_like(w[..., 0])
        k = jnp.stack(
            [
                jnp.stack([z, -w[..., 2], w[..., 1]], -1),
                jnp.stack([w[..., 2], z, -w[..., 0]], -1),
                jnp.stack([-w[..., 1], w[..., 0], z], -1),
            ],
            -2,
        )
        return jnp.eye(3) + jnp.sin(t) / t * k + (1 - jnp.cos(t)) / t**2 * (k @ k)

    r = rotation(angles)

    def step(s, own):
        pose, p = s
        pose = pose @ own
        p = p + pose @ jnp.array([0.0, 0.0, 1.0])
        return (pose, p), p

    start = jnp.broadcast_to(jnp.eye(3), (64, 3, 3)), jnp.zeros((64, 3))
    _, points = lax.scan(step, start, jnp.swapaxes(r, 0, 1))
    return jnp.sum((points[-1] - 3.0) ** 2)


@case(normal(12, 4), normal(12))
def traced_spheres(balls, colors):
    n = 48
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, n), jnp.linspace(-1, 1, n), indexing="ij")
    rays = jnp.stack([x, y, jnp.full_like(x, 1.5)], -1)
    rays = rays / jnp.linalg.norm(rays, axis=-1, keepdims=True)

    def distances(p):
        return jnp.sqrt(jnp.sum((p[..., None, :] - balls[:, :3]) ** 2, -1) + 1e-6) - 0.3 - 0.1 * balls[:, 3]

    p = jnp.broadcast_to(jnp.array([0.0, 0.0, -4.0]), rays.shape)
    for _ in range(8):
        d = -jax.nn.logsumexp(-8 * distances(p), -1) / 8
        p = p + d[..., None] * rays
    shade = jnp.sum(jax.nn.softmax(-8 * distances(p), -1) * colors, -1)
    return jnp.mean(shade**2)


@case(normal(300, 8, 2), uniform(64))
def bezier_curves(control, t):
    p = jnp.broadcast_to(control[:, None], (300, 64, 8, 2))
    s = t[None, :, None, None]
    for _ in range(7):
        p = (1 - s) * p[:, :, :-1] + s * p[:, :, 1:]
    curve = p[:, :, 0]
    return jnp.mean(jnp.sqrt(jnp.sum((curve[:, 1:] - curve[:, :-1]) ** 2, -1) + 1e-6))


@case(normal(64, 200, 3), normal(64, 200, 3))
def aligned_clouds(a, b):
    a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
    h = jnp.einsum("bni,bnj->bij", a, b)
    r = jnp.eye(3) + 0.01 * (h - jnp.swapaxes(h, 1, 2))
    for _ in range(5):
        r = 1.5 * r - 0.5 * r @ jnp.swapaxes(r, 1, 2) @ r
    return jnp.mean((jnp.einsum("bij,bnj->bni", r, b) - a) ** 2)


@case(normal(128, 128, scale=0.2))
def surface_curvature(z):
    gy, gx = jnp.gradient(z)
    gyy, gyx = jnp.gradient(gy)
    _, gxx = jnp.gradient(gx)
    h = (1 + gx**2) * gyy - 2 * gx * gy * gyx + (1 + gy**2) * gxx
    h = h / (2 * (1 + gx**2 + gy**2) ** 1.5)
    return jnp.mean(h**2) + jnp.mean(jnp.sqrt(1 + gx**2 + gy**2))


@case(normal(1024, 4), normal(1024, 3), uniform(3))
def quaternion_rotations(q, p, target):
    q = q / jnp.linalg.norm(q, axis=-1, keepdims=True)
    w, v = q[:, :1], q[:, 1:]
    t = 2 * jnp.cross(v, p)
    y = p + w * t + jnp.cross(v, t)
    d = jnp.sum((y[:, None] - y[None]) ** 2, -1)
    return jnp.mean(jnp.exp(-d)) + jnp.mean((y - target) ** 2)


@case(uniform(8, 24, 24, 24), uniform(4000, 3, low=1.0, high=22.0))
def trilinear_features(grid, p):
    i = jnp.floor(p).astype(int)
    f = p - i
    out = 0.0
    for dx in (0, 1):
        for dy in (0, 1):
            for dz in (0, 1):
                w = (
                    jnp.where(dx, f[:, 0], 1 - f[:, 0])
                    * jnp.where(dy, f[:, 1], 1 - f[:, 1])
                    * jnp.where(dz, f[:, 2], 1 - f[:, 2])
                )
                out = out + w * grid[:, i[:, 0] + dx, i[:, 1] + dy, i[:, 2] + dz]
    return jnp.sum(out**2)
