"""Functions in three spellings each, as different people write them first: one sum or several, choices or guards, remainders or pieces,
digits of one axis or axes of their own, loops of Python or reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jaxte as te

Spelling = Callable[..., te.Tensor]


def axes(**extents: int) -> list[te.Axis]:
    return [te.reduce_axis((0, n), name) for name, n in extents.items()]


def causal() -> list[Spelling]:
    def guarded(x: Any, w: Any) -> te.Tensor:
        k, c = axes(k=4, c=8)
        return te.compute(
            (2, 64, 16),
            lambda b, i, o: te.sum(x[b, i + k - 3, c] * w[k, c, o], axis=[k, c], where=i + k >= 3),
            "y",
        )

    def chosen(x: Any, w: Any) -> te.Tensor:
        k, c = axes(k=4, c=8)
        return te.compute(
            (2, 64, 16),
            lambda b, i, o: te.sum(te.select(i + k < 3, 0.0, x[b, i + k - 3, c]) * w[k, c, o], axis=[k, c]),
            "y",
        )

    def padded(x: Any, w: Any) -> te.Tensor:
        k, c = axes(k=4, c=8)
        before = te.compute((2, 67, 8), lambda b, i, c: te.select(i >= 3, x[b, i - 3, c], 0.0), "before")
        return te.compute(
            (2, 64, 16), lambda b, i, o: te.sum(before[b, i + k, c] * w[k, c, o], axis=[k, c]), "y"
        )

    return [guarded, chosen, padded]


def separable() -> list[Spelling]:
    def one(x: Any, g: Any) -> te.Tensor:
        k, m = axes(k=7, m=7)
        return te.compute((26, 26), lambda i, j: te.sum(g[k] * g[m] * x[i + k, j + m], axis=[k, m]), "y")

    def two(x: Any, g: Any) -> te.Tensor:
        k, m = axes(k=7, m=7)
        rows = te.compute((26, 32), lambda i, j: te.sum(g[k] * x[i + k, j], axis=k), "rows")
        return te.compute((26, 26), lambda i, j: te.sum(g[m] * rows[i, j + m], axis=m), "y")

    def nested(x: Any, g: Any) -> te.Tensor:
        k, m = axes(k=7, m=7)
        return te.compute(
            (26, 26), lambda i, j: te.sum(g[k] * te.sum(x[i + k, j + m] * g[m], axis=m), axis=k), "y"
        )

    return [one, two, nested]


def periodic() -> list[Spelling]:
    def remainders(x: Any) -> te.Tensor:
        return te.compute((32, 40), lambda i, j: x[(i + 1) % 32, j] + x[(i - 1) % 32, j] - 2 * x[i, j], "y")

    def pieces(x: Any) -> te.Tensor:
        def element(i: Any, j: Any) -> te.Expr:
            after = te.select(i < 31, x[i + 1, j], x[i - 31, j])
            before = te.select(i > 0, x[i - 1, j], x[i + 31, j])
            return after + before - 2 * x[i, j]

        return te.compute((32, 40), element, "y")

    def rolled(x: Any) -> te.Tensor:
        after = te.compute((32, 40), lambda i, j: x[(i + 1) % 32, j], "after")
        before = te.compute((32, 40), lambda i, j: x[(i + 31) % 32, j], "before")
        return te.compute((32, 40), lambda i, j: after[i, j] + before[i, j] - 2 * x[i, j], "y")

    return [remainders, pieces, rolled]


def kronecker() -> list[Spelling]:
    def digits(a: Any, b: Any, x: Any) -> te.Tensor:
        p, q = axes(p=12, q=10)
        return te.compute(
            (8, 120),
            lambda r, i: te.sum(a[i // 10, p] * b[i % 10, q] * x[r, 10 * p + q], axis=[p, q]),
            "y",
        )

    def own_axes(a: Any, b: Any, x: Any) -> te.Tensor:
        p, q = axes(p=12, q=10)
        first = te.compute((8, 12, 10), lambda r, i, q: te.sum(a[i, p] * x[r, 10 * p + q], axis=p), "first")
        second = te.compute((8, 12, 10), lambda r, i, j: te.sum(b[j, q] * first[r, i, q], axis=q), "second")
        return te.compute((8, 120), lambda r, i: second[r, i // 10, i % 10], "y")

    def nested(a: Any, b: Any, x: Any) -> te.Tensor:
        p, q = axes(p=12, q=10)
        return te.compute(
            (8, 120),
            lambda r, i: te.sum(b[i % 10, q] * te.sum(x[r, p * 10 + q] * a[i // 10, p], axis=p), axis=q),
            "y",
        )

    return [digits, own_axes, nested]


def chain() -> list[Spelling]:
    def one(a: Any, b: Any, c: Any) -> te.Tensor:
        k, m = axes(k=24, m=28)
        return te.compute((20, 16), lambda i, j: te.sum(a[i, k] * b[k, m] * c[m, j], axis=[k, m]), "y")

    def two(a: Any, b: Any, c: Any) -> te.Tensor:
        k, m = axes(k=24, m=28)
        right = te.compute((24, 16), lambda k, j: te.sum(b[k, m] * c[m, j], axis=m), "right")
        return te.compute((20, 16), lambda i, j: te.sum(a[i, k] * right[k, j], axis=k), "y")

    def nested(a: Any, b: Any, c: Any) -> te.Tensor:
        k, m = axes(k=24, m=28)
        return te.compute(
            (20, 16), lambda i, j: te.sum(c[m, j] * te.sum(b[k, m] * a[i, k], axis=k), axis=m), "y"
        )

    return [one, two, nested]


def average_pool() -> list[Spelling]:
    def reduced(x: Any) -> te.Tensor:
        k, m = axes(k=2, m=2)
        return te.compute(
            (2, 16, 16), lambda b, i, j: te.sum(x[b, 2 * i + k, 2 * j + m], axis=[k, m]) / 4, "y"
        )

    def written_out(x: Any) -> te.Tensor:
        def element(b: Any, i: Any, j: Any) -> te.Expr:
            return 0.25 * sum(x[b, 2 * i + k, 2 * j + m] for k in range(2) for m in range(2))

        return te.compute((2, 16, 16), element, "y")

    def conditions(x: Any) -> te.Tensor:
        u, v = axes(u=32, v=32)
        return te.compute(
            (2, 16, 16),
            lambda b, i, j: te.sum(x[b, u, v], axis=[u, v], where=(u // 2 == i) & (v // 2 == j)) / 4,
            "y",
        )

    return [reduced, written_out, conditions]


def shuffle() -> list[Spelling]:
    def digits(x: Any) -> te.Tensor:
        return te.compute((4, 24, 24), lambda c, i, j: x[4 * c + 2 * (i % 2) + j % 2, i // 2, j // 2], "y")

    def remainders(x: Any) -> te.Tensor:
        def element(c: Any, i: Any, j: Any) -> te.Expr:
            return x[4 * c + 2 * (i - i // 2 * 2) + (j - j // 2 * 2), i // 2, j // 2]

        return te.compute((4, 24, 24), element, "y")

    def own_axes(x: Any) -> te.Tensor:
        apart = te.compute((4, 12, 2, 12, 2), lambda c, i, p, j, q: x[4 * c + 2 * p + q, i, j], "apart")
        return te.compute((4, 24, 24), lambda c, i, j: apart[c, i // 2, i % 2, j // 2, j % 2], "y")

    return [digits, remainders, own_axes]


def relative() -> list[Spelling]:
    def factored(q: Any, k: Any, r: Any) -> te.Tensor:
        (d,) = axes(d=16)
        return te.compute((24, 24), lambda i, j: te.sum(q[i, d] * (k[j, d] + r[i - j + 23, d]), axis=d), "s")

    def two_sums(q: Any, k: Any, r: Any) -> te.Tensor:
        d, e = axes(d=16, e=16)
        return te.compute(
            (24, 24),
            lambda i, j: te.sum(q[i, d] * k[j, d], axis=d) + te.sum(q[i, e] * r[i - j + 23, e], axis=e),
            "s",
        )

    def one_sum(q: Any, k: Any, r: Any) -> te.Tensor:
        (d,) = axes(d=16)
        return te.compute((24, 24), lambda i, j: te.sum((r[i - j + 23, d] + k[j, d]) * q[i, d], axis=d), "s")

    return [factored, two_sums, one_sum]


def blocks() -> list[Spelling]:
    def digits(c: Any, x: Any) -> te.Tensor:
        p, q = axes(p=4, q=4)
        return te.compute(
            (32, 32),
            lambda i, j: te.sum(c[i % 4, p] * c[j % 4, q] * x[i // 4 * 4 + p, j // 4 * 4 + q], axis=[p, q]),
            "y",
        )

    def less_remainder(c: Any, x: Any) -> te.Tensor:
        p, q = axes(p=4, q=4)
        return te.compute(
            (32, 32),
            lambda i, j: te.sum(c[i % 4, p] * c[j % 4, q] * x[i - i % 4 + p, j - j % 4 + q], axis=[p, q]),
            "y",
        )

    def own_axes(c: Any, x: Any) -> te.Tensor:
        p, q = axes(p=4, q=4)
        rows = te.compute(
            (8, 4, 8, 4), lambda i, u, j, q: te.sum(c[u, p] * x[4 * i + p, 4 * j + q], axis=p), "rows"
        )
        both = te.compute((8, 4, 8, 4), lambda i, u, j, v: te.sum(c[v, q] * rows[i, u, j, q], axis=q), "both")
        return te.compute((32, 32), lambda i, j: both[i // 4, i % 4, j // 4, j % 4], "y")

    return [digits, less_remainder, own_axes]


def reflected() -> list[Spelling]:
    def absolute(x: Any, g: Any) -> te.Tensor:
        (k,) = axes(k=5)
        return te.compute(
            (4, 48), lambda b, i: te.sum(g[k] * x[b, 47 - te.abs(47 - te.abs(i + k - 2))], axis=k), "y"
        )

    def choices(x: Any, g: Any) -> te.Tensor:
        (k,) = axes(k=5)

        def element(b: Any, i: Any) -> te.Expr:
            at = i + k - 2
            inside = te.select(at > 47, x[b, 94 - at], x[b, at])
            return te.sum(g[k] * te.select(at < 0, x[b, -at], inside), axis=k)

        return te.compute((4, 48), element, "y")

    def extended(x: Any, g: Any) -> te.Tensor:
        (k,) = axes(k=5)

        def padded(b: Any, i: Any) -> te.Expr:
            return te.select(i < 2, x[b, 2 - i], te.select(i > 49, x[b, 96 - i], x[b, i - 2]))

        wide = te.compute((4, 52), padded, "wide")
        return te.compute((4, 48), lambda b, i: te.sum(g[k] * wide[b, i + k], axis=k), "y")

    return [absolute, choices, extended]


def running() -> list[Spelling]:
    def until(x: Any) -> te.Tensor:
        (j,) = axes(j=64)
        return te.compute((8, 64), lambda b, i: te.sum(x[b, j], axis=j, where=j <= i), "y")

    def chosen(x: Any) -> te.Tensor:
        (j,) = axes(j=64)
        return te.compute((8, 64), lambda b, i: te.sum(te.select(j > i, 0.0, x[b, j]), axis=j), "y")

    def backwards(x: Any) -> te.Tensor:
        (k,) = axes(k=64)
        return te.compute((8, 64), lambda b, i: te.sum(x[b, i - k], axis=k, where=i - k >= 0), "y")

    return [until, chosen, backwards]


def max_pool() -> list[Spelling]:
    def reduced(x: Any) -> te.Tensor:
        k, m = axes(k=3, m=3)
        return te.compute((2, 20, 20), lambda b, i, j: te.max(x[b, i + k, j + m], axis=[k, m]), "y")

    def nested(x: Any) -> te.Tensor:
        k, m = axes(k=3, m=3)
        return te.compute(
            (2, 20, 20), lambda b, i, j: te.max(te.max(x[b, i + k, j + m], axis=m), axis=k), "y"
        )

    def two(x: Any) -> te.Tensor:
        k, m = axes(k=3, m=3)
        rows = te.compute((2, 20, 22), lambda b, i, j: te.max(x[b, i + k, j], axis=k), "rows")
        return te.compute((2, 20, 20), lambda b, i, j: te.max(rows[b, i, j + m], axis=m), "y")

    return [reduced, nested, two]


def dense() -> list[Spelling]:
    def layer(name: str, act: Callable[[te.Expr], te.Expr]) -> Spelling:
        def build(x: Any, w: Any, b: Any) -> te.Tensor:
            (c,) = axes(c=24)
            return te.compute((16, 20), lambda i, o: act(te.sum(x[i, c] * w[c, o], axis=c) + b[o]), "y")

        build.__name__ = name
        return build

    def apart(x: Any, w: Any, b: Any) -> te.Tensor:
        (c,) = axes(c=24)
        z = te.compute((16, 20), lambda i, o: te.sum(x[i, c] * w[c, o], axis=c), "z")
        return te.compute((16, 20), lambda i, o: te.silu(z[i, o] + b[o]), "y")

    return [layer("silu", te.silu), layer("sigmoid", lambda v: v * te.sigmoid(v)), apart]


def distances() -> list[Spelling]:
    def of(name: str, square: Callable[[te.Expr], te.Expr]) -> Spelling:
        def build(x: Any, y: Any) -> te.Tensor:
            (d,) = axes(d=3)
            return te.compute((40, 30), lambda i, j: te.sum(square(x[i, d] - y[j, d]), axis=d), "r")

        build.__name__ = name
        return build

    def written_out(x: Any, y: Any) -> te.Tensor:
        return te.compute((40, 30), lambda i, j: sum((x[i, d] - y[j, d]) ** 2 for d in range(3)), "r")

    return [of("power", lambda v: v**2), of("product", lambda v: v * v), written_out]


def upsampled() -> list[Spelling]:
    def remainders(x: Any) -> te.Tensor:
        return te.compute((4, 64), lambda b, i: te.select(i % 2 == 0, x[b, i // 2], 0.0), "y")

    def halves(x: Any) -> te.Tensor:
        return te.compute((4, 64), lambda b, i: te.select(i // 2 * 2 == i, x[b, i // 2], 0.0), "y")

    def summed(x: Any) -> te.Tensor:
        (p,) = axes(p=32)
        return te.compute((4, 64), lambda b, i: te.sum(x[b, p], axis=p, where=2 * p == i), "y")

    return [remainders, halves, summed]


def laplacian() -> list[Spelling]:
    def once(x: Any) -> te.Tensor:
        def element(i: Any, j: Any) -> te.Expr:
            around = x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]
            return around - 4 * x[i + 1, j + 1]

        return te.compute((30, 30), element, "y")

    def each_axis(x: Any) -> te.Tensor:
        def element(i: Any, j: Any) -> te.Expr:
            down = x[i, j + 1] - 2 * x[i + 1, j + 1] + x[i + 2, j + 1]
            return down + (x[i + 1, j] - 2 * x[i + 1, j + 1] + x[i + 1, j + 2])

        return te.compute((30, 30), element, "y")

    def differences(x: Any) -> te.Tensor:
        down = te.compute((31, 30), lambda i, j: x[i + 1, j + 1] - x[i, j + 1], "down")
        right = te.compute((30, 31), lambda i, j: x[i + 1, j + 1] - x[i + 1, j], "right")
        return te.compute(
            (30, 30), lambda i, j: down[i + 1, j] - down[i, j] + right[i, j + 1] - right[i, j], "y"
        )

    return [once, each_axis, differences]


def frames() -> list[Spelling]:
    def one(x: Any, c: Any) -> te.Tensor:
        (t,) = axes(t=32)
        return te.compute((2, 13, 20), lambda b, i, f: te.sum(x[b, 16 * i + t] * c[t, f], axis=t), "y")

    def apart(x: Any, c: Any) -> te.Tensor:
        (t,) = axes(t=32)
        rows = te.compute((2, 13, 32), lambda b, i, t: x[b, 16 * i + t], "rows")
        return te.compute((2, 13, 20), lambda b, i, f: te.sum(rows[b, i, t] * c[t, f], axis=t), "y")

    def halves(x: Any, c: Any) -> te.Tensor:
        u, r = axes(u=2, r=16)
        return te.compute(
            (2, 13, 20),
            lambda b, i, f: te.sum(x[b, 16 * i + 16 * u + r] * c[16 * u + r, f], axis=[u, r]),
            "y",
        )

    return [one, apart, halves]


def rotary() -> list[Spelling]:
    def halves(x: Any, s: Any) -> te.Tensor:
        def element(t: Any, e: Any) -> te.Expr:
            return x[t, e] + te.select(e < 8, -x[t, e + 8], x[t, e - 8]) * s[t, e]

        return te.compute((32, 16), element, "y")

    def remainder(x: Any, s: Any) -> te.Tensor:
        def element(t: Any, e: Any) -> te.Expr:
            return x[t, e] + te.select(e < 8, -1.0, 1.0) * x[t, (e + 8) % 16] * s[t, e]

        return te.compute((32, 16), element, "y")

    def apart(x: Any, s: Any) -> te.Tensor:
        turned = te.compute((32, 16), lambda t, e: te.select(e >= 8, x[t, e - 8], -x[t, e + 8]), "turned")
        return te.compute((32, 16), lambda t, e: x[t, e] + turned[t, e] * s[t, e], "y")

    return [halves, remainder, apart]


def normalised() -> list[Spelling]:
    def scaled(name: str, power: Callable[[te.Expr], te.Expr]) -> Spelling:
        def build(x: Any) -> te.Tensor:
            (k,) = axes(k=32)
            size = te.compute((16,), lambda i: te.sum(x[i, k] * x[i, k], axis=k) / 32 + 1e-3, "size")
            return te.compute((16, 32), lambda i, j: x[i, j] * power(size[i]), "y")

        build.__name__ = name
        return build

    def nested(x: Any) -> te.Tensor:
        (k,) = axes(k=32)
        return te.compute(
            (16, 32), lambda i, j: x[i, j] / te.sqrt(te.sum(x[i, k] ** 2, axis=k) / 32 + 1e-3), "y"
        )

    return [scaled("rsqrt", te.rsqrt), scaled("quotient", lambda v: 1 / te.sqrt(v)), nested]


def depthwise() -> list[Spelling]:
    def reduced(x: Any, w: Any) -> te.Tensor:
        (k,) = axes(k=3)
        return te.compute((2, 62, 16), lambda b, t, c: te.sum(x[b, t + k, c] * w[k, c], axis=k), "y")

    def written_out(x: Any, w: Any) -> te.Tensor:
        return te.compute((2, 62, 16), lambda b, t, c: sum(x[b, t + k, c] * w[k, c] for k in range(3)), "y")

    def positions(x: Any, w: Any) -> te.Tensor:
        (s,) = axes(s=64)
        return te.compute(
            (2, 62, 16),
            lambda b, t, c: te.sum(x[b, s, c] * w[s - t, c], axis=s, where=(s >= t) & (s < t + 3)),
            "y",
        )

    return [reduced, written_out, positions]


Shapes = Sequence[tuple[int, ...]]
FUNCTIONS: dict[str, tuple[list[Spelling], Shapes]] = {
    "causal convolution": (causal(), [(2, 64, 8), (4, 8, 16)]),
    "separable window": (separable(), [(32, 32), (7,)]),
    "periodic differences": (periodic(), [(32, 40)]),
    "Kronecker product": (kronecker(), [(12, 12), (10, 10), (8, 120)]),
    "chain of matrices": (chain(), [(20, 24), (24, 28), (28, 16)]),
    "average pool": (average_pool(), [(2, 32, 32)]),
    "pixel shuffle": (shuffle(), [(16, 12, 12)]),
    "relative positions": (relative(), [(24, 16), (24, 16), (47, 16)]),
    "transform of blocks": (blocks(), [(4, 4), (32, 32)]),
    "reflected window": (reflected(), [(4, 48), (5,)]),
    "running sum": (running(), [(8, 64)]),
    "max-pool": (max_pool(), [(2, 22, 22)]),
    "dense layer": (dense(), [(16, 24), (24, 20), (20,)]),
    "distances": (distances(), [(40, 3), (30, 3)]),
    "zeros in between": (upsampled(), [(4, 32)]),
    "Laplacian": (laplacian(), [(32, 32)]),
    "frames": (frames(), [(2, 224), (32, 20)]),
    "rotary positions": (rotary(), [(32, 16), (32, 16)]),
    "root mean square": (normalised(), [(16, 32)]),
    "depthwise convolution": (depthwise(), [(2, 64, 16), (3, 16)]),
}
