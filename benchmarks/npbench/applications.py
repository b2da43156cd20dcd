"""Kernels of applications and of dense algebra, blocks and loops mixed, each with arguments of a few elements."""

from __future__ import annotations

import numpy as np

from npbench.kernels import Kernel, normal


def gemm(alpha, beta, C, A, B):
    C[:] = alpha * A @ B + beta * C


def k2mm(alpha, beta, A, B, C, D):
    D[:] = alpha * A @ B @ C + beta * D


def k3mm(A, B, C, D):
    return A @ B @ C @ D


def atax(A, x):
    return (A @ x) @ A


def bicg(A, p, r):
    return r @ A, A @ p


def mvt(x1, x2, y1, y2, A):
    x1 += A @ y1
    x2 += y2 @ A


def gesummv(alpha, beta, A, B, x):
    return alpha * A @ x + beta * B @ x


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


def trisolv(L, x, b):
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def ludcmp(A, b):
    n = A.shape[0]
    x, y = np.zeros(n), np.zeros(n)
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return A, x, y


def softmax(x):
    largest = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - largest)
    return e / np.sum(e, axis=-1, keepdims=True)


def mlp(x, w1, b1, w2, b2):
    h = np.maximum(x @ w1 + b1, 0)
    out = h @ w2 + b2
    e = np.exp(out - np.max(out, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def conv2d(data, weights, bias):
    K = weights.shape[0]
    N, H, W = data.shape[0], data.shape[1] - K + 1, data.shape[2] - K + 1
    out = np.zeros((N, H, W, weights.shape[3]))
    for i in range(H):
        for j in range(W):
            for c in range(weights.shape[2]):
                for k in range(K):
                    for m in range(K):
                        for n in range(N):
                            out[n, i, j, :] += data[n, i + k, j + m, c] * weights[k, m, c, :]
    return out + bias


def lenet(image, conv, bias, dense):
    """One layer of each kind."""
    K = conv.shape[0]
    H, W, F = image.shape[0] - K + 1, image.shape[1] - K + 1, conv.shape[2]
    features = np.zeros((H, W, F))
    for i in range(H):
        for j in range(W):
            for k in range(K):
                for m in range(K):
                    features[i, j, :] += image[i + k, j + m] * conv[k, m, :]
    features = np.maximum(features + bias, 0)
    pooled = np.empty((H // 2, W // 2, F))
    for i in range(H // 2):
        for j in range(W // 2):
            for f in range(F):
                pooled[i, j, f] = np.max(features[2 * i : 2 * i + 2, 2 * j : 2 * j + 2, f])
    out = np.zeros(dense.shape[3])
    for i in range(H // 2):
        for j in range(W // 2):
            for f in range(F):
                out += pooled[i, j, f] * dense[i, j, f, :]
    return out


def arc_distance(theta_1, phi_1, theta_2, phi_2):
    temp = (
        np.sin((theta_2 - theta_1) / 2) ** 2
        + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    )
    return 2 * np.arctan2(np.sqrt(temp), np.sqrt(1 - temp))


def compute(first, second, a, b, c):
    return np.minimum(np.maximum(first, -0.5), 0.5) * a + second * b + c


def azimint_naive(data, radius, count):
    largest = np.max(radius)
    res = np.zeros(count)
    for i in range(count):
        r1, r2 = largest * i / count, largest * (i + 1) / count
        total, members = 0.0, 0.0
        for k in range(len(data)):
            if r1 <= radius[k] and radius[k] < r2:
                total += data[k]
                members += 1.0
        res[i] = total / max(members, 1.0)
    return res


def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def nbody(mass, pos, vel, steps, dt, G, softening):
    N = pos.shape[0]
    energy = np.zeros(steps)
    acc = np.zeros((N, 3))
    for t in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        for i in range(N):
            acc[i, :] = 0.0
            for j in range(N):
                d2 = softening**2
                for k in range(3):
                    d2 += (pos[j, k] - pos[i, k]) ** 2
                for k in range(3):
                    acc[i, k] += G * (pos[j, k] - pos[i, k]) * d2 ** (-1.5) * mass[j]
        vel += acc * dt / 2.0
        for i in range(N):
            for k in range(3):
                energy[t] += 0.5 * mass[i] * vel[i, k] ** 2
    return pos, vel, energy


def hdiff(field, coefficients):
    rows, columns = field.shape[0] - 4, field.shape[1] - 4
    lap = 4.0 * field[1 : rows + 3, 1 : columns + 3, :] - (
        field[2 : rows + 4, 1 : columns + 3, :] + field[0 : rows + 2, 1 : columns + 3, :] + field[1 : rows + 3, 2 : columns + 4, :] + field[1 : rows + 3, 0 : columns + 2, :]
    )  # fmt: skip
    res = lap[1:, 1 : columns + 1, :] - lap[:-1, 1 : columns + 1, :]
    along = np.where(
        res * (field[2 : rows + 3, 2 : columns + 2, :] - field[1 : rows + 2, 2 : columns + 2, :]) > 0,
        0.0,
        res,
    )
    res2 = lap[1 : rows + 1, 1:, :] - lap[1 : rows + 1, :-1, :]
    across = np.where(
        res2 * (field[2 : rows + 2, 2 : columns + 3, :] - field[2 : rows + 2, 1 : columns + 2, :]) > 0,
        0.0,
        res2,
    )
    return field[2 : rows + 2, 2 : columns + 2, :] - coefficients * (
        along[1:, :, :] - along[:-1, :, :] + across[:, 1:, :] - across[:, :-1, :]
    )


def vadv(u_stage, wcon, u_pos, utens, step):
    """Implicit vertical advection: a tridiagonal system in each column."""
    rows, columns, levels = u_pos.shape
    c, d, out = (
        np.zeros((rows, columns, levels)),
        np.zeros((rows, columns, levels)),
        np.zeros((rows, columns, levels)),
    )
    for k in range(levels):
        for i in range(rows):
            for j in range(columns):
                a, e, corr = 0.0, 0.0, 0.0
                if k > 0:
                    gav = -0.25 * (wcon[i + 1, j, k] + wcon[i, j, k])
                    a = gav * 0.5
                    corr -= gav * 0.5 * (u_stage[i, j, k - 1] - u_stage[i, j, k])
                if k < levels - 1:
                    gcv = 0.25 * (wcon[i + 1, j, k + 1] + wcon[i, j, k + 1])
                    e = gcv * 0.5
                    corr -= gcv * 0.5 * (u_stage[i, j, k + 1] - u_stage[i, j, k])
                b = step - a - e
                right = step * u_pos[i, j, k] + utens[i, j, k] + corr
                if k > 0:
                    divided = 1.0 / (b - c[i, j, k - 1] * a)
                    c[i, j, k] = e * divided
                    d[i, j, k] = (right - d[i, j, k - 1] * a) * divided
                else:
                    c[i, j, k] = e / b
                    d[i, j, k] = right / b
    for k in range(levels - 1, -1, -1):
        for i in range(rows):
            for j in range(columns):
                x = d[i, j, k]
                if k < levels - 1:
                    x = d[i, j, k] - c[i, j, k] * (out[i, j, k + 1] / step + u_pos[i, j, k + 1])
                out[i, j, k] = step * (x - u_pos[i, j, k])
    return out


def cavity_flow(steps, inner, u, v, dt, dx, dy, p, rho, nu):
    b = np.zeros(u.shape)
    for _n in range(steps):
        un, vn = u.copy(), v.copy()
        across = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
        down = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
        shear = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
        b[1:-1, 1:-1] = rho * ((across + down) / dt - across**2 - 2 * shear - down**2)
        for _q in range(inner):
            pn = p.copy()
            p[1:-1, 1:-1] = (
                (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2 - dx**2 * dy**2 * b[1:-1, 1:-1]
            ) / (2 * (dx**2 + dy**2))  # fmt: skip
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0.0
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1] - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1]) - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
        )  # fmt: skip
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
        )
        u[0, :], u[:, 0], u[:, -1], u[-1, :] = 0.0, 0.0, 0.0, 1.0
        v[0, :], v[-1, :], v[:, 0], v[:, -1] = 0.0, 0.0, 0.0, 0.0


def channel_flow(steps, u, p, dt, dx, force):
    """Periodic along the second axis."""
    n = u.shape[1]
    for _n in range(steps):
        un = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(n):
                left, right = (j - 1) % n, (j + 1) % n
                u[i, j] = (
                    un[i, j]
                    - dt / dx * un[i, j] * (un[i, j] - un[i, left])
                    - dt / (2 * dx) * (p[i, right] - p[i, left])
                )
                u[i, j] += (
                    dt / dx**2 * (un[i, right] - 2 * un[i, j] + un[i, left] + un[i + 1, j] + un[i - 1, j])
                    + force * dt
                )
        u[0, :] = 0.0
        u[-1, :] = 0.0


def _positive(*shapes):
    return lambda rng: [s if isinstance(s, (int, float)) else rng.uniform(0.5, 1.5, size=s) for s in shapes]


def _triangular(rng):
    return [rng.normal(size=(5, 5)) * 0.3 + 2 * np.eye(5), rng.normal(size=5), rng.normal(size=5)]


APPLICATIONS = {
    "gemm": Kernel(gemm, normal(1.5, 1.2, (3, 4), (3, 2), (2, 4))),
    "k2mm": Kernel(k2mm, normal(1.5, 1.2, (3, 2), (2, 4), (4, 3), (3, 3))),
    "k3mm": Kernel(k3mm, normal((3, 2), (2, 4), (4, 3), (3, 2))),
    "atax": Kernel(atax, normal((3, 4), (4,))),
    "bicg": Kernel(bicg, normal((3, 4), (4,), (3,))),
    "mvt": Kernel(mvt, normal((4,), (4,), (4,), (4,), (4, 4))),
    "gesummv": Kernel(gesummv, normal(1.5, 1.2, (3, 3), (3, 3), (3,))),
    "gemver": Kernel(gemver, normal(1.5, 1.2, (3, 3), *[(3,)] * 8)),
    "trisolv": Kernel(trisolv, _triangular),
    "ludcmp": Kernel(ludcmp, lambda rng: [rng.normal(size=(4, 4)) * 0.2 + 2 * np.eye(4), rng.normal(size=4)]),
    "softmax": Kernel(softmax, normal((2, 2, 3))),
    "mlp": Kernel(mlp, normal((3, 4), (4, 5), (5,), (5, 2), (2,))),
    "conv2d": Kernel(conv2d, normal((2, 4, 4, 2), (2, 2, 2, 3), (3,))),
    "lenet": Kernel(lenet, normal((6, 6), (3, 3, 2), (2,), (2, 2, 2, 3))),
    "arc_distance": Kernel(arc_distance, _positive((4,), (4,), (4,), (4,))),
    "compute": Kernel(compute, normal((3, 4), (3, 4), 1.5, 0.7, 0.2)),
    "azimint_naive": Kernel(azimint_naive, _positive((8,), (8,), 3)),
    "go_fast": Kernel(go_fast, normal((4, 4))),
    "nbody": Kernel(nbody, _positive((2,), (2, 3), (2, 3), 2, 0.1, 1.0, 0.3)),
    "hdiff": Kernel(hdiff, normal((6, 6, 2), (2, 2, 2))),
    "vadv": Kernel(vadv, _positive((2, 2, 4), (3, 2, 4), (2, 2, 4), (2, 2, 4), 3.0)),
    "cavity_flow": Kernel(cavity_flow, normal(2, 1, (4, 4), (4, 4), 0.01, 0.3, 0.3, (4, 4), 1.0, 0.1)),
    "channel_flow": Kernel(channel_flow, normal(2, (5, 4), (5, 4), 0.01, 0.3, 1.0)),
}  # fmt: skip
