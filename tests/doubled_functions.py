"""Short definitions of many fields whose sizes grow with one number: what ``test_doubled_sizes.py`` looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jaxte as te

Shapes = Callable[[int], Sequence[tuple[int, ...]]]
FUNCTIONS: dict[str, tuple[Callable[..., Any], Shapes]] = {}


def of(*shapes: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Takes a builder into the table; each shape is a text in ``n``, as in ``"n, 3"``."""

    def taken(build: Callable[..., Any]) -> Callable[..., Any]:
        def at(n: int) -> list[tuple[int, ...]]:
            return [tuple(eval(part, {"n": n}) for part in shape.split(",")) for shape in shapes]

        FUNCTIONS[build.__name__] = build, at
        return build

    return taken


def axis(extent: Any, name: str = "k", low: Any = 0) -> Any:
    return te.reduce_axis((low, extent), name)


# --- sums in windows


def _window(
    name: str, taps: int, index: Callable[[Any, Any, int], Any], extent: Callable[[int], int]
) -> None:
    def build(x: Any, w: Any) -> Any:
        n, k = x.shape[0], axis(taps)
        return te.compute((extent(n),), lambda i: te.sum(x[index(i, k, n)] * w[k], axis=k), "y")

    build.__name__ = name
    of("n", str(taps))(build)


_window("convolution", 5, lambda i, k, n: i + k, lambda n: n - 4)
_window("strided_convolution", 5, lambda i, k, n: 2 * i + k, lambda n: (n - 4) // 2)
_window("dilated_convolution", 3, lambda i, k, n: i + 4 * k, lambda n: n - 8)
_window("periodic_convolution", 5, lambda i, k, n: (i + k) % n, lambda n: n)
_window("clamped_convolution", 5, lambda i, k, n: te.clip(i + k - 2, 0, n - 1), lambda n: n)
_window("reflected_convolution", 5, lambda i, k, n: te.abs(i - k), lambda n: n)
_window("mirrored_taps", 5, lambda i, k, n: i + 4 - k, lambda n: n - 4)
_window("upsampled", 4, lambda i, k, n: i // 2 + k, lambda n: 2 * (n - 4))
_window("phases", 4, lambda i, k, n: (i // 4) * 4 + (i + k) % 4, lambda n: n - n % 4)
_window("backwards", 3, lambda i, k, n: n - 1 - i - k, lambda n: n - 2)


def _pool(name: str, reduction: str, window: Callable[[int], int], stride: int) -> None:
    def build(x: Any) -> Any:
        n = x.shape[0]
        k = axis(window(n))
        return te.compute(((n - window(n)) // stride + 1,), lambda i: getattr(te, reduction)(x[stride * i + k], axis=k), "y")  # fmt: skip

    build.__name__ = name
    of("n")(build)


_pool("max_pool", "max", lambda n: 2, 2)
_pool("overlapping_max_pool", "max", lambda n: 3, 2)
_pool("sliding_maximum", "max", lambda n: n // 8, 1)
_pool("sliding_minimum", "min", lambda n: 16, 1)
_pool("sliding_sum", "sum", lambda n: n // 8, 1)
_pool("sliding_product", "prod", lambda n: 4, 1)
_pool("blocks_of_sums", "sum", lambda n: 8, 8)


@of("n, n", "3, 3")
def images(x: Any, w: Any) -> Any:
    n, k, l = x.shape[0], axis(3), axis(3, "l")  # noqa: E741
    return te.compute((n - 2, n - 2), lambda i, j: te.sum(x[i + k, j + l] * w[k, l], axis=(k, l)), "y")


@of("4, n", "6, 4, 3")
def channels(x: Any, w: Any) -> Any:
    n, k, c = x.shape[1], axis(3), axis(4, "c")
    return te.compute((6, n - 2), lambda o, i: te.sum(x[c, i + k] * w[o, c, k], axis=(c, k)), "y")


@of("n, n")
def laplacian(u: Any) -> Any:
    n = u.shape[0]
    near = lambda i: te.clip(i, 0, n - 1)  # noqa: E731
    return te.compute((n, n), lambda i, j: u[near(i + 1), j] + u[near(i - 1), j] + u[i, near(j + 1)] + u[i, near(j - 1)] - 4 * u[i, j] ** 2, "y")  # fmt: skip


@of("n, n")
def periodic_laplacian(u: Any) -> Any:
    n = u.shape[0]
    return te.compute((n, n), lambda i, j: te.sin(u[(i + 1) % n, j] + u[i, (j + 1) % n] - 2 * u[i, j]), "y")


@of("n, n")
def total_variation(u: Any) -> Any:
    n = u.shape[0]
    return te.compute((n - 1, n - 1), lambda i, j: te.sqrt((u[i + 1, j] - u[i, j]) ** 2 + (u[i, j + 1] - u[i, j]) ** 2 + 1e-3), "y")  # fmt: skip


# --- products of matrices


@of("n, 16", "16, n")
def product(a: Any, b: Any) -> Any:
    k = axis(16)
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "y")


@of("n, n", "n")
def triangular(a: Any, x: Any) -> Any:
    k = axis(x.shape[0])
    return te.compute(x.shape, lambda i: te.sum(a[i, k] * x[k], axis=k, where=k <= i), "y")


@of("n, n", "n")
def banded(a: Any, x: Any) -> Any:
    k = axis(x.shape[0])
    return te.compute(
        x.shape, lambda i: te.sum(a[i, k] * x[k], axis=k, where=(k >= i - 2) & (k <= i + 2)), "y"
    )


@of("n", "n")
def circulant(c: Any, x: Any) -> Any:
    n, k = x.shape[0], axis(x.shape[0])
    return te.compute((n,), lambda i: te.sum(c[(i - k) % n] * x[k], axis=k), "y")


@of("2 * n - 1", "n")
def toeplitz(c: Any, x: Any) -> Any:
    n, k = x.shape[0], axis(x.shape[0])
    return te.compute((n,), lambda i: te.sum(c[i - k + n - 1] * x[k], axis=k), "y")


@of("n, 4", "4, 4, 4")
def bilinear(x: Any, w: Any) -> Any:
    a, b = axis(4, "a"), axis(4, "b")
    return te.compute((x.shape[0], 4), lambda i, o: te.sum(x[i, a] * x[i, b] * w[o, a, b], axis=(a, b)), "y")


@of("n, 8")
def gram(x: Any) -> Any:
    k = axis(8)
    return te.compute((x.shape[0],) * 2, lambda i, j: te.sum(x[i, k] * x[j, k], axis=k), "y")


@of("n, n")
def trace_of_square(a: Any) -> Any:
    i, j = axis(a.shape[0], "i"), axis(a.shape[0], "j")
    return te.compute((1,), lambda o: te.sum(a[i, j] * a[j, i], axis=(i, j)), "y")


@of("n, n", "n, n")
def kronecker_with_four(a: Any, b: Any) -> Any:
    return te.compute(
        (2 * a.shape[0], a.shape[0]), lambda i, j: a[i // 2, j] * b[i // 2, j] * (i % 2 + 1), "y"
    )


# --- pairs


@of("n, 3")
def squared_distances(x: Any) -> Any:
    c = axis(3, "c")
    return te.compute((x.shape[0],) * 2, lambda i, j: te.sum((x[i, c] - x[j, c]) ** 2, axis=c), "y")


@of("n, 3")
def energies(x: Any) -> Any:
    j = axis(x.shape[0], "j")
    square = lambda i: sum((x[i, c] - x[j, c]) ** 2 for c in range(3))  # noqa: E731
    return te.compute((x.shape[0],), lambda i: te.sum(1.0 / (1.0 + square(i)), axis=j), "y")


@of("n", "n")
def soft_ranks(x: Any, w: Any) -> Any:
    j = axis(x.shape[0], "j")
    return te.compute(x.shape, lambda i: te.sum(te.sigmoid(x[i] - x[j]) * w[j], axis=j), "y")


@of("n", "8")
def soft_histogram(x: Any, centres: Any) -> Any:
    i = axis(x.shape[0], "i")
    return te.compute((8,), lambda b: te.sum(te.exp(-((x[i] - centres[b]) ** 2)), axis=i), "y")


@of("n", "9")
def hat_functions(x: Any, values: Any) -> Any:
    b = axis(9, "b")
    return te.compute(
        x.shape, lambda i: te.sum(te.maximum(1.0 - te.abs(x[i] - b), 0.0) * values[b], axis=b), "y"
    )


@of("n")
def decayed(x: Any) -> Any:
    j = axis(x.shape[0], "j")
    return te.compute(
        x.shape, lambda i: te.sum(x[j] * te.exp(-0.1 * te.abs(i - j)), axis=j, where=j <= i), "y"
    )


@of("n")
def autocorrelation(x: Any) -> Any:
    n, k = x.shape[0], axis(x.shape[0] - 16)
    return te.compute((16,), lambda lag: te.sum(x[k] * x[k + lag], axis=k), "y") if n > 16 else x


@of("n", "n - 8 + 1")
def lagged_products(x: Any, y: Any) -> Any:
    k = axis(8)
    return te.compute(y.shape, lambda i: te.sum(x[i + k] * y[i] * (k + 1.0), axis=k), "z")


# --- rows


@of("n, 32")
def softmax(x: Any) -> Any:
    return te.ops.softmax(x)


@of("8, n")
def layer_norm(x: Any) -> Any:
    n, k, l = x.shape[1], axis(x.shape[1]), axis(x.shape[1], "l")  # noqa: E741
    mean = te.compute((8,), lambda b: te.sum(x[b, k], axis=k) / n, "mean")
    var = te.compute((8,), lambda b: te.sum((x[b, l] - mean[b]) ** 2, axis=l) / n, "var")
    return te.compute(x.shape, lambda b, i: (x[b, i] - mean[b]) / te.sqrt(var[b] + 1e-5), "y")


@of("n")
def running_sum(x: Any) -> Any:
    k = axis(x.shape[0])
    return te.compute(x.shape, lambda i: te.sum(x[k], axis=k, where=k <= i), "y")


@of("n", "n")
def sums_after(x: Any, w: Any) -> Any:
    k = axis(x.shape[0])
    return te.compute(x.shape, lambda i: w[i] * te.sum(te.exp(-x[k]), axis=k, where=k > i), "y")


@of("n")
def running_maximum(x: Any) -> Any:
    k = axis(x.shape[0])
    return te.compute(x.shape, lambda i: te.max(x[k], axis=k, where=k <= i), "y")


@of("n, n")
def column_norms(x: Any) -> Any:
    k = axis(x.shape[0])
    return te.compute((x.shape[1],), lambda j: te.sqrt(te.sum(x[k, j] ** 2, axis=k) + 1.0), "y")


@of("n, 8")
def log_sum_exp(x: Any) -> Any:
    k = axis(8)
    return te.compute((x.shape[0],), lambda i: te.log(te.sum(te.exp(x[i, k]), axis=k)), "y")


# --- positions


def _moved(name: str, index: Callable[[Any, int], Any], extent: Callable[[int], int] = lambda n: n) -> None:
    def build(x: Any) -> Any:
        n = x.shape[0]
        return te.compute((extent(n),), lambda i: te.sin(x[index(i, n)]) * x[i % n], "y")

    build.__name__ = name
    of("n")(build)


_moved("reversed_positions", lambda i, n: n - 1 - i)
_moved("rolled", lambda i, n: (i + 5) % n)
_moved("transposed_blocks", lambda i, n: (i % 8) * (n // 8) + i // 8)
_moved("shuffled_pixels", lambda i, n: i // 4 * 4 + 3 - i % 4)
_moved("every_second", lambda i, n: 2 * i, lambda n: n // 2)
_moved("repeated", lambda i, n: i // 3, lambda n: n)
_moved("tiled", lambda i, n: i % 8, lambda n: n)
_moved("clamped_ends", lambda i, n: te.clip(i - 3, 0, n - 8))
_moved("reflected_ends", lambda i, n: te.abs(i - 4), lambda n: n)
_moved("one_bit_turned", lambda i, n: i ^ 4)
_moved("gray_code", lambda i, n: i ^ (i >> 1))
_moved("choice_of_halves", lambda i, n: te.select(i < n // 2, i + n // 2, i - n // 2))


@of("n", "n")
def taken_by_parity(x: Any, y: Any) -> Any:
    return te.compute((2 * x.shape[0],), lambda i: te.select(i % 2 == 0, x[i // 2], y[i // 2] ** 2), "z")


@of("n, n")
def diagonals(x: Any) -> Any:
    n, k = x.shape[0], axis(x.shape[0])
    return te.compute((n,), lambda d: te.sum(x[k, (k + d) % n], axis=k), "y")


@of("n, n")
def symmetric_part(x: Any) -> Any:
    return te.compute(x.shape, lambda i, j: te.sin(x[i, j] + x[j, i]), "y")


@of("n, n")
def upper_triangle(x: Any) -> Any:
    return te.compute(x.shape, lambda i, j: te.select(j >= i, te.exp(x[i, j]), 0.0), "y")
