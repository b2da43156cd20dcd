"""Programs whose adjoints need values that are overwritten later: what a tape is for elsewhere, here elements of tensors.

The names are those of the situations that FreeTensor tests its automatic differentiation with (its folder ``21.autograd``), rebuilt from their descriptions.
"""

from __future__ import annotations

import numpy as np

from npbench.kernels import Kernel, normal


def no_deps(x):
    """An input that nothing depends on."""
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = 3.0
    return y


def dependent_iterations(x):
    s = 0.0
    for i in range(x.shape[0]):
        s = s * x[i] + 1.0
    return s


def nested_loops(A, x):
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        t = 1.0
        for j in range(A.shape[1]):
            t = t * A[i, j] + x[j] * t
        y[i] = t * t
    return y


def atypical_loop(x):
    """From a number above 0, in steps of more than one, and backwards."""
    y = np.zeros(10)
    for i in range(1, 10, 3):
        y[i] = x[i] * x[i - 1]
    for i in range(8, 0, -2):
        y[i] = y[i + 1] + x[i] * x[i]
    return y


def dynamic_loop_range(x, n):
    """As many rows as each entry of ``n`` says."""
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        t = 1.0
        for j in range(min(n[i], 4)):
            t = t * np.sin(x[j]) + x[i]
        y[i] = t
    return y


def multi_versions_in_recomp(x):
    y = np.zeros(x.shape[0])
    z = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        t = x[i] * 2.0
        t = t * t
        y[i] = np.sin(t)
        t = t + x[i]
        z[i] = t * y[i]
    return y, z


def use_forward_value_when_taped(x):
    t = 0.0
    out = 0.0
    for i in range(x.shape[0]):
        t = t + x[i]
        out += np.exp(t) * t
    return out, t


def tape_of_a_scalar(x, y):
    """One that each iteration writes twice."""
    z = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        t = x[i] * y[i]
        z[i] = t * t
        t = z[i] + 1.0
        z[i] = z[i] * t
    return z


def tape_of_an_array(A):
    out = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        row = np.zeros(A.shape[1])
        for j in range(A.shape[1]):
            row[j] = A[i, j] ** 2
        for j in range(A.shape[1]):
            out[i] += row[j] * row[A.shape[1] - 1 - j]
    return out


def tape_across_loops(A):
    """One array that the iterations of an outer loop overwrite, read in loops of other order."""
    t = np.ones(A.shape[1])
    out = np.zeros(A.shape)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            t[j] = t[j] * A[i, j]
        for j in range(A.shape[1]):
            out[i, j] = t[j] * t[A.shape[1] - 1 - j]
    return out


def tape_of_a_sum(A):
    """Sums that a later loop divides by, as in a softmax."""
    out = np.zeros(A.shape)
    for i in range(A.shape[0]):
        s = 0.0
        for j in range(A.shape[1]):
            s += np.exp(A[i, j])
        for j in range(A.shape[1]):
            out[i, j] = np.exp(A[i, j]) / s
    return out


def use_tape_in_cond(x, y):
    out = np.zeros(x.shape[0])
    t = 0.0
    for i in range(x.shape[0]):
        t = t + x[i]
        if t > 0.0:
            out[i] = y[i] * t
        else:
            out[i] = y[i] * y[i]
    return out


def use_a_taped_var_to_recompute(x):
    out = np.zeros(x.shape[0])
    t = 1.0
    for i in range(x.shape[0]):
        t = t * x[i]
        u = t * 2.0
        out[i] = u * u * x[i]
    return out


def use_tape_in_index(x, k):
    """An index that is computed in the loop, and overwritten."""
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        n = k[i] * 2 % x.shape[0]
        out[i] = x[n] * x[n]
        n = k[i]
        out[i] += x[n]
    return out


def single_version_tape(x):
    t = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        t[i] = np.exp(x[i])
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = t[i] * t[x.shape[0] - 1 - i]
    return out


def inout_tape(x, y):
    """An argument that is overwritten, and what it held is needed."""
    for i in range(x.shape[0]):
        x[i] = x[i] * y[i]
        x[i] = x[i] * x[i]


def no_unused_tape(x):
    """Overwritten values that only linear terms read."""
    t = 0.0
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        t = 2.0 * t + x[i]
        out[i] = 3.0 * t
    return out


def free_from_recomp(x):
    """A value that needs nothing but the input, in a loop that overwrites it."""
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        t = np.sin(x[i])
        for _j in range(3):
            out[i] += t * x[i]
    return out


def reduce_mul(x):
    p = 1.0
    for i in range(x.shape[0]):
        p *= x[i]
    return p


def reduce_mul_then_used(A):
    out = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        p = 2.0
        for j in range(A.shape[1]):
            p *= A[i, j]
        out[i] = np.sin(p) * p
    return out


def reduce_max_and_min(A):
    out = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        least, most = A[i, 0], A[i, 0]
        for j in range(1, A.shape[1]):
            least = min(least, A[i, j])
            most = max(most, A[i, j])
        out[i] = least * most
    return out


def reuse_over_stmt_seq(x):
    a = x[0] * x[1]
    b = a * a
    a = b * x[2]
    b = a * b
    a = b * a
    return a, b


def circular_reuse(x):
    """Two names that take turns."""
    a, b, c = x[0], x[1], x[2]
    for _t in range(5):
        a, b, c = b * c, np.sin(c), a + b
    return a, b, c


def partial_accumulation(A, x):
    """Half of a sum before a statement that reads it, half behind it."""
    s = 0.0
    out = np.zeros(2)
    for i in range(A.shape[0]):
        for j in range(2):
            s += A[i, j] * x[j]
        out[0] += s * s
        for j in range(2, A.shape[1]):
            s += A[i, j] * x[j]
        out[1] += np.sin(s)
    return out


def several_outputs_of_one_loop(x):
    """A jacrev of several."""
    y, z = np.zeros(x.shape[0]), np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = x[i] * x[0]
        z[i] = y[i] * y[i]
    return y, z


def longformer(Q, K, V, dilation):
    """Windows of two on each side, with a dilation of its own for each head."""
    heads, n, feats = Q.shape
    out = np.zeros((heads, n, feats))
    for h in range(heads):
        for j in range(n):
            dot = np.zeros(5)
            for k in range(-2, 3):
                if j + k * dilation[h] >= 0 and j + k * dilation[h] < n:
                    for p in range(feats):
                        dot[k + 2] += Q[h, j, p] * K[h, j + k * dilation[h], p]
            s = 0.0
            for k in range(5):
                s += np.exp(dot[k])
            for k in range(-2, 3):
                if j + k * dilation[h] >= 0 and j + k * dilation[h] < n:
                    for p in range(feats):
                        out[h, j, p] += np.exp(dot[k + 2]) / s * V[h, j + k * dilation[h], p]
    return out


def subdivnet(adj, x, w):
    """A convolution over the three neighbours of each face, and differences of those next to each other."""
    faces, channels = x.shape
    y = np.zeros((faces, w.shape[2]))
    for i in range(faces):
        for p in range(3):
            for c in range(channels):
                for o in range(w.shape[2]):
                    near = x[adj[i, p], c]
                    y[i, o] += (
                        near * w[0, c, o]
                        + abs(near - x[adj[i, (p + 1) % 3], c]) * w[1, c, o]
                        + abs(near - x[i, c]) * w[2, c, o]
                    )
    return y


def softras(points, pixels, sigma):
    """How near each pixel is to each edge, one minus the product of the others."""
    out = np.zeros(pixels.shape[0])
    for i in range(pixels.shape[0]):
        rest = 1.0
        for f in range(points.shape[0]):
            least = 1e3
            for e in range(3):
                d = 0.0
                for k in range(2):
                    d += (pixels[i, k] - 0.5 * (points[f, e, k] + points[f, (e + 1) % 3, k])) ** 2
                least = min(least, d)
            rest *= 1.0 - 1.0 / (1.0 + np.exp(least / sigma[0]))
        out[i] = 1.0 - rest
    return out


def gat(ptr, idx, x, left, right):
    """Attention of each node over its neighbours, in rows of at most three."""
    n, feats = x.shape
    out = np.zeros((n, feats))
    for i in range(n):
        s = 0.0
        for k in range(min(ptr[i + 1] - ptr[i], 3)):
            s += np.exp(
                np.maximum(left[i] + right[idx[ptr[i] + k]], 0.1 * (left[i] + right[idx[ptr[i] + k]]))
            )
        for k in range(min(ptr[i + 1] - ptr[i], 3)):
            j = idx[ptr[i] + k]
            e = np.exp(np.maximum(left[i] + right[j], 0.1 * (left[i] + right[j])))
            for p in range(feats):
                out[i, p] += e / s * x[j, p]
    return out


def up_to_the_first(x):
    """A sum that ends at the first number above one."""
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 1.0:
            break
        s += np.exp(x[i])
    return s


def without_some(x):
    """Some iterations do less, by position and by data."""
    y = np.zeros(x.shape[0])
    s = 1.0
    for i in range(x.shape[0]):
        if i == 1:
            continue
        s = s * x[i]
        if s > 0.0:
            y[i] = s
            continue
        y[i] = 2.0 * s * s
    return y, s


def newton(a):
    """Square roots, as many steps as each takes."""
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        x = a[i]
        for _n in range(8):
            if abs(x * x - a[i]) < 1e-3:
                break
            x = 0.5 * (x + a[i] / x)
        out[i] = x
    return out


def counting(x):
    """A while loop that counts, and may end earlier."""
    s = 0.5
    t = 0
    while t < x.shape[0] and s < 3.0:
        s = s + x[t] * x[t]
        t += 1
    k = x.shape[0] - 1
    while k >= 1:
        s = s * np.cos(x[k])
        k -= 2
    return s


def _ints(*rows):
    return np.array(rows, "int32")


def _with(integers, *shapes):
    return lambda rng: [rng.normal(size=s) if isinstance(s, tuple) else s for s in (*shapes, *integers)]


TAPES = {
    f.__name__: Kernel(f, make)
    for f, make in (
        (no_deps, normal((3,))),
        (dependent_iterations, normal((4,))),
        (nested_loops, normal((2, 3), (3,))),
        (atypical_loop, normal((10,))),
        (dynamic_loop_range, _with([_ints(2, 0, 4, 1)], (4,))),
        (multi_versions_in_recomp, normal((3,))),
        (use_forward_value_when_taped, normal((3,))),
        (tape_of_a_scalar, normal((3,), (3,))),
        (tape_of_an_array, normal((2, 3))),
        (tape_across_loops, normal((3, 2))),
        (tape_of_a_sum, normal((2, 3))),
        (use_tape_in_cond, normal((4,), (4,))),
        (use_a_taped_var_to_recompute, normal((3,))),
        (use_tape_in_index, _with([_ints(1, 0, 2)], (3,))),
        (single_version_tape, normal((3,))),
        (inout_tape, normal((3,), (3,))),
        (no_unused_tape, normal((4,))),
        (free_from_recomp, normal((3,))),
        (reduce_mul, normal((4,))),
        (reduce_mul_then_used, normal((2, 3))),
        (reduce_max_and_min, normal((2, 3))),
        (reuse_over_stmt_seq, normal((3,))),
        (circular_reuse, normal((3,))),
        (partial_accumulation, normal((2, 4), (4,))),
        (several_outputs_of_one_loop, normal((3,))),
        (up_to_the_first, lambda rng: [np.array([0.3, -0.5, 0.7, 1.5, 0.2])]),
        (without_some, normal((5,))),
        (newton, lambda rng: [rng.uniform(1.5, 4.0, size=3)]),
        (counting, normal((5,))),
        (longformer, _with([_ints(1, 2)], (2, 6, 2), (2, 6, 2), (2, 6, 2))),
        (subdivnet, lambda rng: [_ints([1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]), rng.normal(size=(4, 2)), rng.normal(size=(3, 2, 2))]),
        (softras, lambda rng: [rng.normal(size=(2, 3, 2)), rng.normal(size=(3, 2)), np.array([0.7])]),
        (gat, lambda rng: [_ints(0, 2, 3, 6), _ints(1, 2, 0, 0, 1, 2), rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=3)]),
    )
}  # fmt: skip
