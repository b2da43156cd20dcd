"""Recurrences of signals, statistics, sequences and solvers as ordinary loops, each with arguments of a few elements."""

from __future__ import annotations

import numpy as np

from npbench.kernels import Kernel, normal


def ctc(logits, target):
    """Minus the log probability of all alignments; 0 is the blank, ``target`` has blanks between its labels."""
    T, S = logits.shape[0], target.shape[0]
    alpha = np.zeros((T, S))
    alpha[0, 0] = np.exp(logits[0, target[0]])
    alpha[0, 1] = np.exp(logits[0, target[1]])
    for t in range(1, T):
        for s in range(S):
            total = alpha[t - 1, s]
            if s >= 1:
                total += alpha[t - 1, s - 1]
            if s >= 2 and target[s] != 0 and target[s] != target[s - 2]:
                total += alpha[t - 1, s - 2]
            alpha[t, s] = total * np.exp(logits[t, target[s]])
    return -np.log(alpha[T - 1, S - 1] + alpha[T - 1, S - 2])


def crf(emit, move, tags):
    """The log likelihood of a sequence of tags."""
    T, K = emit.shape
    score = emit[0, tags[0]]
    alpha = emit[0, :].copy()
    for t in range(1, T):
        score += move[tags[t - 1], tags[t]] + emit[t, tags[t]]
        new = np.zeros(K)
        for j in range(K):
            most = alpha[0] + move[0, j]
            for i in range(1, K):
                most = max(most, alpha[i] + move[i, j])
            s = 0.0
            for i in range(K):
                s += np.exp(alpha[i] + move[i, j] - most)
            new[j] = most + np.log(s) + emit[t, j]
        alpha[:] = new
    return score - np.log(np.sum(np.exp(alpha)))


def hmm_scaled(B, A, start):
    """Log likelihood by probabilities that each step scales to one."""
    alpha = start * B[0, :]
    total = np.log(np.sum(alpha))
    alpha = alpha / np.sum(alpha)
    for t in range(1, B.shape[0]):
        alpha = (alpha @ A) * B[t, :]
        s = np.sum(alpha)
        total += np.log(s)
        alpha = alpha / s
    return total


def kalman(y, A, Q, r):
    """Minus twice the log likelihood of measurements of the first of two states, but for a constant."""
    m, P = np.zeros(2), np.zeros((2, 2))
    total = 0.0
    for i in range(2):
        P[i, i] = 1.0
    for t in range(y.shape[0]):
        m = A @ m
        P = A @ P @ A.T + Q
        s = P[0, 0] + r[0]
        e = y[t] - m[0]
        total += e * e / s + np.log(s)
        gain = P[:, 0] / s
        m = m + gain * e
        P = P - s * np.outer(gain, gain)
    return total


def viterbi(e, A):
    T, K = e.shape
    s = e[0, :].copy()
    for t in range(1, T):
        new = np.zeros(K)
        for i in range(K):
            best = s[0] + A[0, i]
            for j in range(1, K):
                best = max(best, s[j] + A[j, i])
            new[i] = best + e[t, i]
        s[:] = new
    return np.max(s)


def s4(u, A, B, C):
    """A state space model whose state is diagonal, one for each channel."""
    T, D = u.shape
    h = np.zeros(A.shape)
    y = np.zeros((T, D))
    for t in range(T):
        for d in range(D):
            for n in range(A.shape[1]):
                h[d, n] = A[d, n] * h[d, n] + B[d, n] * u[t, d]
                y[t, d] += C[d, n] * h[d, n]
    return y


def mamba(u, delta, A, B, C):
    """The same with steps and matrices that the input chooses."""
    T, D = u.shape
    N = A.shape[1]
    h = np.zeros((D, N))
    y = np.zeros((T, D))
    for t in range(T):
        for d in range(D):
            step = np.log(1.0 + np.exp(delta[t, d]))
            for n in range(N):
                h[d, n] = np.exp(step * A[d, n]) * h[d, n] + step * B[t, n] * u[t, d]
                y[t, d] += C[t, n] * h[d, n]
    return y


def gru(x, U, W):
    h = np.zeros(W.shape[1])
    for t in range(x.shape[0]):
        z = 1.0 / (1.0 + np.exp(-(U[0, :, :] @ x[t, :] + W[0, :, :] @ h)))
        r = 1.0 / (1.0 + np.exp(-(U[1, :, :] @ x[t, :] + W[1, :, :] @ h)))
        new = np.tanh(U[2, :, :] @ x[t, :] + W[2, :, :] @ (r * h))
        h = (1.0 - z) * h + z * new
    return h


def lstm(x, U, W):
    h = np.zeros(W.shape[1])
    c = np.zeros(W.shape[1])
    for t in range(x.shape[0]):
        a = U[0, :, :] @ x[t, :] + W[0, :, :] @ h
        g = np.tanh(U[1, :, :] @ x[t, :] + W[1, :, :] @ h)
        o = U[2, :, :] @ x[t, :] + W[2, :, :] @ h
        c = c / (1.0 + np.exp(-a)) + g
        h = np.tanh(c) / (1.0 + np.exp(-o))
    return h


def garch(r, p):
    v = 0.3
    total = 0.0
    for t in range(1, r.shape[0]):
        v = p[0] + p[1] * r[t - 1] ** 2 + p[2] * v
        total += np.log(v) + r[t] ** 2 / v
    return total


def biquads(x, b, a):
    """Two sections of a filter, one behind the other, each with two numbers of its own past."""
    y = np.zeros(x.shape[0])
    first, second = np.zeros(2), np.zeros(2)
    for t in range(x.shape[0]):
        value = x[t]
        for s in range(2):
            out = b[s, 0] * value + first[s]
            first[s] = b[s, 1] * value - a[s, 0] * out + second[s]
            second[s] = b[s, 2] * value - a[s, 1] * out
            value = out
        y[t] = value
    return y


def compressor(x, attack, release, threshold, ratio):
    y = np.zeros(x.shape[0])
    level = 0.1
    for t in range(x.shape[0]):
        if abs(x[t]) > level:
            level = attack[0] * level + (1.0 - attack[0]) * abs(x[t])
        else:
            level = release[0] * level + (1.0 - release[0]) * abs(x[t])
        if level > threshold[0]:
            y[t] = x[t] * (threshold[0] + (level - threshold[0]) / ratio[0]) / level
        else:
            y[t] = x[t]
    return y


def leapfrog(q, p, w):
    for _t in range(6):
        q += 0.1 * p
        p -= 0.1 * w * np.sin(q)


def runge_kutta(y, c):
    """Lotka and Volterra's equations."""
    h = 0.05
    for _t in range(5):
        k1 = np.zeros(2)
        k2 = np.zeros(2)
        k1[0] = c[0] * y[0] - c[1] * y[0] * y[1]
        k1[1] = -c[2] * y[1] + c[3] * y[0] * y[1]
        a, b = y[0] + h * k1[0], y[1] + h * k1[1]
        k2[0] = c[0] * a - c[1] * a * b
        k2[1] = -c[2] * b + c[3] * a * b
        for n in range(2):
            y[n] += 0.5 * h * (k1[n] + k2[n])


def smith_waterman(score, gap):
    """A soft maximum of all local alignments of two sequences."""
    n, m = score.shape
    H = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            H[i, j] = np.log(
                1.0
                + np.exp(H[i - 1, j - 1] + score[i - 1, j - 1])
                + np.exp(H[i - 1, j] - gap[0])
                + np.exp(H[i, j - 1] - gap[0])
            )
    return np.max(H)


def soft_time_warping(D):
    n, m = D.shape
    R = np.full((n + 1, m + 1), 1e3)
    R[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            least = min(R[i - 1, j - 1], R[i - 1, j], R[i, j - 1])
            near = np.exp(least - R[i - 1, j - 1]) + np.exp(least - R[i - 1, j]) + np.exp(least - R[i, j - 1])
            R[i, j] = D[i - 1, j - 1] + least - np.log(near)
    return R[n, m]


def thomas(low, diagonal, up, b):
    n = b.shape[0]
    c, d, x = np.zeros(n), np.zeros(n), np.zeros(n)
    c[0] = up[0] / diagonal[0]
    d[0] = b[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - low[i] * c[i - 1]
        c[i] = up[i] / pivot
        d[i] = (b[i] - low[i] * d[i - 1]) / pivot
    x[n - 1] = d[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def online_softmax(q, K, V):
    """Attention in one pass over the keys."""
    most, total = -1e3, 0.0
    out = np.zeros(V.shape[1])
    for j in range(K.shape[0]):
        s = q @ K[j, :]
        new = max(most, s)
        total = total * np.exp(most - new) + np.exp(s - new)
        out = out * np.exp(most - new) + np.exp(s - new) * V[j, :]
        most = new
    return out / total


def gauss_seidel(A, b, x):
    for _t in range(3):
        for i in range(x.shape[0]):
            s = b[i]
            for j in range(x.shape[0]):
                if j != i:
                    s -= A[i, j] * x[j]
            x[i] = s / A[i, i]


def returns(r, done, gamma):
    g = 0.0
    out = np.zeros(r.shape[0])
    for t in reversed(range(r.shape[0])):
        if done[t] > 0:
            g = 0.0
        g = r[t] + gamma[0] * g
        out[t] = g
    return out


def _ints(*values):
    return np.array(values, "int32")


def _chances(rng, *shape):
    raw = rng.uniform(0.2, 1.0, size=shape)
    return raw / raw.sum(-1, keepdims=True)


MODELS = {
    f.__name__: Kernel(f, make)
    for f, make in (
        (ctc, lambda rng: [np.log(_chances(rng, 4, 3)), _ints(0, 1, 0, 2, 0)]),
        (crf, lambda rng: [rng.normal(size=(3, 2)), rng.normal(size=(2, 2)), _ints(1, 0, 1)]),
        (hmm_scaled, lambda rng: [_chances(rng, 4, 3), _chances(rng, 3, 3), _chances(rng, 3)]),
        (kalman, lambda rng: [rng.normal(size=3), rng.normal(size=(2, 2)) * 0.3 + np.eye(2), 0.1 * np.eye(2), np.array([0.2])]),
        (viterbi, normal((4, 3), (3, 3))),
        (s4, normal((4, 2), (2, 3), (2, 3), (2, 3))),
        (mamba, normal((4, 2), (4, 2), (2, 2), (4, 2), (4, 2))),
        (gru, normal((3, 2), (3, 2, 2), (3, 2, 2))),
        (lstm, normal((3, 2), (3, 2, 2), (3, 2, 2))),
        (garch, lambda rng: [rng.normal(size=5), np.array([0.1, 0.2, 0.6])]),
        (biquads, normal((5,), (2, 3), (2, 2))),
        (compressor, lambda rng: [rng.normal(size=5), np.array([0.5]), np.array([0.9]), np.array([0.3]), np.array([3.0])]),
        (leapfrog, normal((3,), (3,), (3,))),
        (runge_kutta, lambda rng: [rng.uniform(1, 2, size=2), rng.uniform(0.5, 1.5, size=4)]),
        (smith_waterman, normal((3, 4), (1,))),
        (soft_time_warping, normal((3, 4))),
        (thomas, lambda rng: [rng.normal(size=4), rng.uniform(3, 4, size=4), rng.normal(size=4), rng.normal(size=4)]),
        (online_softmax, normal((2,), (4, 2), (4, 3))),
        (gauss_seidel, lambda rng: [rng.normal(size=(3, 3)) * 0.3 + 2 * np.eye(3), rng.normal(size=3), rng.normal(size=3)]),
        (returns, lambda rng: [rng.normal(size=5), _ints(0, 1, 0, 0, 1), np.array([0.9])]),
    )
}  # fmt: skip
