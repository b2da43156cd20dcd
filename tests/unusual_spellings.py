"""Functions of the corpus as somebody else would write them: guards in another place, pads as tensors of their own, flat positions,
axes from their end, sums in parts, ``where=`` beside choices, held positions by minima, loops of Python over taps.

Each takes what the corpus' spelling takes (``benchmarks/corpus``, of the same name) and is the same function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import jaxte as te

Spelling = Callable[..., Any]


def axis(extent: Any, name: str) -> te.Axis:
    return te.reduce_axis(extent if isinstance(extent, tuple) else (0, extent), name)


def alibi_attention(q: Any, k: Any, v: Any, slope: Any) -> te.Tensor:
    """Positions ahead have a score of minus infinity; how far behind the others are is ``r``, from the end."""
    h, n, size = q.shape
    d, r, s = axis(size, "d"), axis(n, "r"), axis(n, "s")
    scores = te.compute(
        (h, n, n),
        lambda h, i, j: te.select(
            j > i, -float("inf"), te.sum(q[h, i, d] * k[h, j, d], axis=d) / size**0.5 - slope[h] * (i - j)
        ),
        "scores",
    )
    most = te.compute((h, n), lambda h, i: te.max(scores[h, i, n - 1 - r], axis=r), "most")
    weights = te.compute(
        (h, n, n), lambda h, i, j: te.exp(scores[h, i, j] - te.stop_gradient(most)[h, i]), "weights"
    )
    total = te.compute((h, n), lambda h, i: te.sum(weights[h, i, s], axis=s), "total")
    share = te.compute((h, n, n), lambda h, i, j: weights[h, i, j] / total[h, i], "share")
    return te.compute(v.shape, lambda h, i, d: te.sum(share[h, i, s] * v[h, s, d], axis=s), "y")


def bayer(x: Any) -> te.Tensor:
    """A weighted sum over the four elements of a block, with weights by choices of the channel."""
    b, n, m = x.shape
    p, q = axis(2, "p"), axis(2, "q")

    def element(b: Any, i: Any, j: Any, c: Any) -> te.Expr:
        return te.sum(
            te.select(p + q == c, te.select(c == 1, 0.5, 1.0), 0.0) * x[b, 2 * i + p, 2 * j + q], (p, q)
        )

    return te.compute((b, n // 2, m // 2, 3), element, "rgb")


def block_matching(x: Any, y: Any, like: Any) -> te.Tensor:
    """The differences at each shift as a tensor of their own; sixteen positions of a block as one number."""
    b, n, width = x.shape
    s = like.shape[0]
    t = axis(16, "t")
    off = te.compute(
        (s, s, b, n, width), lambda k, m, b, r, c: te.abs(x[b, r, c] - y[b, r + k, c + m]), "off"
    )
    return te.compute(
        (b, n // 4, width // 4, s, s),
        lambda b, i, j, k, m: te.sum(off[k, m, b, 4 * i + t // 4, 4 * j + t % 4], axis=t),
        "cost",
    )


def chamfer(x: Any, y: Any) -> te.Tensor:
    """Squares multiplied by hand, one coordinate after the other, and minima inside of the sums."""
    b, n, _ = x.shape
    i, j = axis(n, "i"), axis(n, "j")

    def far(b: Any, i: Any, j: Any) -> te.Expr:
        return reduce(add, ((x[b, i, c] - y[b, j, c]) * (x[b, i, c] - y[b, j, c]) for c in range(3)))

    to_y = te.compute((b, n), lambda b, i: te.min(far(b, i, j), axis=j), "to_y")
    to_x = te.compute((b, n), lambda b, j: te.min(far(b, i, j), axis=i), "to_x")
    return te.compute(
        (b,), lambda b: te.sum(to_y[b, i] / n, axis=i) + te.sum(to_x[b, j] / n, axis=j), "distance"
    )


def conv1d_short_causal(x: Any, w: Any, bias: Any) -> te.Tensor:
    """A pad as a tensor of its own, and a loop of Python over taps from the last."""
    b, n, c = x.shape
    before = te.compute(
        (b, n + 3, c), lambda b, t, c: te.select(t < 3, 0.0, x[b, te.maximum(t - 3, 0), c]), "before"
    )

    def element(b: Any, t: Any, c: Any) -> te.Expr:
        return te.silu(reduce(add, (w[3 - k, c] * before[b, t + 3 - k, c] for k in range(4))) + bias[c])

    return te.compute(x.shape, element, "y")


def dct_blocks(x: Any, basis: Any) -> te.Tensor:
    """Blocks as a tensor, both transforms in one sum over flat positions, and the image put together again."""
    b, n, m = x.shape
    t = axis(64, "t")
    blocks = te.compute(
        (b, n // 8, m // 8, 64), lambda b, i, j, f: x[b, 8 * i + f // 8, 8 * j + f % 8], "blocks"
    )
    turned = te.compute(
        blocks.shape,
        lambda b, i, j, f: te.sum(basis[f // 8, t // 8] * basis[f % 8, t % 8] * blocks[b, i, j, t], axis=t),
        "turned",
    )
    return te.compute(x.shape, lambda b, i, j: turned[b, i // 8, j // 8, i % 8 * 8 + j % 8], "y")


def fractional_pool(x: Any, like: Any) -> te.Tensor:
    """Rows before columns, each with what is outside at minus infinity."""
    b, n, m, c = x.shape
    h = like.shape[0]
    y, z = axis(n, "y"), axis(m, "z")
    least = -float("inf")
    rows = te.compute(
        (b, h, m, c),
        lambda b, i, z, c: te.max(
            te.select(y < i * n // h, least, te.select(y >= (i + 1) * n // h, least, x[b, y, z, c])), y
        ),
        "rows",
    )
    return te.compute(
        (b, h, h, c),
        lambda b, i, j, c: te.max(rows[b, i, z, c], axis=z, where=(z >= j * m // h) & (z < (j + 1) * m // h)),
        "pool",
    )


def gray_scott(u: Any, v: Any) -> te.Tensor:
    """Neighbours by choices at the ends, with indices that are kept in range twice."""
    n, m = u.shape

    def laplacian(a: Any, i: Any, j: Any) -> te.Expr:
        north = te.select(i == 0, a[n - 1, j], a[te.maximum(i - 1, 0), j])
        south = te.select(i == n - 1, a[0, j], a[te.minimum(i + 1, n - 1), j])
        west = te.select(j == 0, a[i, m - 1], a[i, te.maximum(j - 1, 0)])
        east = te.select(j == m - 1, a[i, 0], a[i, te.minimum(j + 1, m - 1)])
        return north + south + west + east - 4.0 * a[i, j]

    def new_u(i: Any, j: Any) -> te.Expr:
        return u[i, j] * (1 - 0.035 - v[i, j] ** 2) + 0.16 * laplacian(u, i, j) + 0.035

    def new_v(i: Any, j: Any) -> te.Expr:
        return v[i, j] * (u[i, j] * v[i, j] + 1 - 0.095) + 0.08 * laplacian(v, i, j)

    return te.compute((2, n, m), lambda c, i, j: te.select(c == 0, new_u(i, j), new_v(i, j)), "uv")


def harris_corners(x: Any) -> te.Tensor:
    """The three products as one tensor with a channel, summed by rows and then by columns."""
    b, n, m = x.shape
    k = axis(5, "k")
    dx = te.compute((b, n - 2, m - 2), lambda b, i, j: 0.5 * x[b, i + 2, j + 1] - 0.5 * x[b, i, j + 1], "dx")
    dy = te.compute((b, n - 2, m - 2), lambda b, i, j: 0.5 * x[b, i + 1, j + 2] - 0.5 * x[b, i + 1, j], "dy")

    def product(c: Any, b: Any, i: Any, j: Any) -> te.Expr:
        return te.select(c < 2, dx[b, i, j], dy[b, i, j]) * te.select(c < 1, dx[b, i, j], dy[b, i, j])

    products = te.compute((3, b, n - 2, m - 2), product, "products")
    rows = te.compute(
        (3, b, n - 6, m - 2), lambda c, b, i, j: te.sum(products[c, b, i + k, j], axis=k), "rows"
    )
    s = te.compute((3, b, n - 6, m - 6), lambda c, b, i, j: te.sum(rows[c, b, i, j + k], axis=k), "s")

    def response(b: Any, i: Any, j: Any) -> te.Expr:
        xx, xy, yy = (s[c, b, i, j] for c in range(3))
        return xx * yy - xy**2 - 0.05 * (xx + yy) ** 2

    return te.compute((b, n - 6, m - 6), response, "r")


def local_contrast(x: Any) -> te.Tensor:
    """Windows as all positions that are near, by ``abs``."""
    b, n, m = x.shape
    y, z = axis(n, "y"), axis(m, "z")

    def windowed(value: Callable[[te.Expr], te.Expr], name: str) -> te.Tensor:
        def element(b: Any, i: Any, j: Any) -> te.Expr:
            near = te.logical_and(te.abs(y - i) <= 4, te.abs(j - z) < 5)
            return te.sum(value(x[b, y, z]), axis=(y, z), where=near) / 81

        return te.compute((b, n, m), element, name)

    mean, square = windowed(lambda v: v, "mean"), windowed(lambda v: v**2, "square")

    def contrast(b: Any, i: Any, j: Any) -> te.Expr:
        variance = te.maximum(square[b, i, j] - mean[b, i, j] * mean[b, i, j], 0.0)
        return (x[b, i, j] - mean[b, i, j]) / te.sqrt(variance + 0.01)

    return te.compute((b, n, m), contrast, "y")


def morphology(x: Any, s: Any) -> te.Tensor:
    """A maximum over 25 taps as one number, from the last."""
    b, n, m = x.shape
    t = axis(25, "t")

    def element(b: Any, i: Any, j: Any) -> te.Expr:
        k, q = (24 - t) // 5, (24 - t) % 5
        return te.max(x[b, i + k, j + q] + s[k, q], axis=t)

    return te.compute((b, n - 4, m - 4), element, "y")


def non_local_means(x: Any) -> te.Tensor:
    """Near elements as a tensor with 49 channels, and weights that are normalised before the sum."""
    n, m = x.shape
    t = axis(49, "t")
    near = te.compute((n, m, 49), lambda i, j, t: x[(i + t // 7 - 3) % n, (j + t % 7 - 3) % m], "near")
    weight = te.compute((n, m, 49), lambda i, j, t: te.exp(-((near[i, j, t] - x[i, j]) ** 2)), "weight")
    total = te.compute((n, m), lambda i, j: te.sum(weight[i, j, t], axis=t), "total")
    return te.compute((n, m), lambda i, j: te.sum(weight[i, j, t] / total[i, j] * near[i, j, t], axis=t), "y")


def pair_energies(x: Any) -> te.Tensor:
    """Differences as a tensor, and each pair once: ``i < j``."""
    n = x.shape[0]
    i, j = axis(n, "i"), axis(n, "j")

    def image(i: Any, j: Any, c: int) -> te.Expr:
        d = 10.0 * (x[i, c] - x[j, c])
        return d - 10.0 * te.round(d / 10.0)

    r2 = te.compute((n, n), lambda i, j: reduce(add, (image(i, j, c) ** 2 for c in range(3))), "r2")

    def potential(r2: te.Expr) -> te.Expr:
        s = (r2 + 0.1) ** -1
        return 4.0 * (s**6 - s**3)

    return te.compute((), lambda: te.sum(potential(r2[i, j]), axis=(i, j), where=i < j), "energy")


def perona_malik(u: Any) -> te.Tensor:
    """Fluxes across faces as tensors, none at the ends, and their differences."""
    b, n, m = u.shape

    def flux(d: te.Expr) -> te.Expr:
        return d / (1.0 + d * d / 0.5)

    down = te.compute(
        (b, n + 1, m),
        lambda b, i, j: te.select(
            (i == 0) | (i == n), 0.0, flux(u[b, te.minimum(i, n - 1), j] - u[b, te.maximum(i - 1, 0), j])
        ),
        "down",
    )
    right = te.compute(
        (b, n, m + 1),
        lambda b, i, j: te.select(
            (j == 0) | (j == m), 0.0, flux(u[b, i, te.minimum(j, m - 1)] - u[b, i, te.maximum(j - 1, 0)])
        ),
        "right",
    )
    return te.compute(
        u.shape,
        lambda b, i, j: (
            u[b, i, j] + 0.2 * (down[b, i + 1, j] - down[b, i, j] + right[b, i, j + 1] - right[b, i, j])
        ),
        "v",
    )


def polyphase_decimation(x: Any, w: Any) -> te.Tensor:
    """The filter at each sample, then every fourth."""
    b, n = x.shape
    k = axis(32, "k")
    whole = te.compute((b, n - 31), lambda b, i: te.sum(x[b, i + 31 - k] * w[31 - k], axis=k), "whole")
    return te.compute((b, (n - 32) // 4 + 1), lambda b, i: whole[b, 4 * i], "y")


def relative_positions(q: Any, k: Any, r: Any) -> te.Tensor:
    """Rows at each distance as a tensor, and two sums."""
    h, n, size = q.shape
    d = axis(size, "d")
    at = te.compute((n, n, size), lambda i, j, d: r[i - j + n - 1, d], "at")
    return te.compute(
        (h, n, n),
        lambda h, i, j: te.sum(q[h, i, d] * k[h, j, d], axis=d) + te.sum(q[h, i, d] * at[i, j, d], axis=d),
        "s",
    )


def rotary_positions(x: Any, cos: Any, sin: Any) -> te.Tensor:
    """The other half by a remainder, its sign as a number."""
    d = x.shape[3]

    def element(b: Any, t: Any, h: Any, e: Any) -> te.Expr:
        sign = 1.0 - 2.0 * te.cast(e < d // 2, "float32")
        return x[b, t, h, e] * cos[t, e] + sign * x[b, t, h, (e + d // 2) % d] * sin[t, e]

    return te.compute(x.shape, element, "y")


def savitzky_golay(x: Any, w: Any) -> te.Tensor:
    """Ends that are repeated by choices of what is read, in a tensor of its own."""
    b, n = x.shape
    width = w.shape[0]
    half = width // 2
    k = axis(width, "k")

    def element(b: Any, i: Any) -> te.Expr:
        inside = (i >= half) & (i < n + half)
        return te.select(inside, x[b, i - half], te.select(i < half, x[b, 0], x[b, n - 1]))

    held = te.compute((b, n + width - 1), element, "held")
    return te.compute((b, n), lambda b, i: te.sum(held[b, i + k] * w[k], axis=k), "y")


def sobel(x: Any, s: Any, d: Any) -> te.Tensor:
    """Both filters as one matrix of nine taps that is computed first."""
    b, n, m = x.shape
    t = axis(9, "t")
    kernels = te.compute(
        (2, 9), lambda c, t: te.select(c == 0, s[t // 3] * d[t % 3], d[t // 3] * s[t % 3]), "kernels"
    )
    g = te.compute(
        (2, b, n - 2, m - 2),
        lambda c, b, i, j: te.sum(kernels[c, t] * x[b, i + t // 3, j + t % 3], axis=t),
        "g",
    )
    c = axis(2, "c")
    return te.compute((b, n - 2, m - 2), lambda *at: te.sqrt(te.sum(g[(c, *at)] ** 2, axis=c) + 1e-3), "y")


def total_variation(x: Any) -> te.Tensor:
    """One sum over all elements but the last of each axis, by ``where=``."""
    b, n, m = x.shape
    i, j = axis(n, "i"), axis(m, "j")

    def element(b: Any) -> te.Expr:
        down, right = x[b, i + 1, j] - x[b, i, j], x[b, i, j + 1] - x[b, i, j]
        return te.sum(
            te.sqrt(down * down + right * right + 1e-3), axis=(i, j), where=(i + 1 < n) & (j + 1 < m)
        )

    return te.compute((b,), element, "energy")


def unsharp_mask(x: Any, g: Any) -> te.Tensor:
    """A reflected copy by choices, blurred along columns and then rows, taps by a loop of Python."""
    b, n, m = x.shape

    def mirrored(i: te.Expr, n: int) -> te.Expr:
        return te.select(i < 0, -i, te.select(i >= n, 2 * n - 2 - i, i))

    wide = te.compute((b, n + 6, m + 6), lambda b, i, j: x[b, mirrored(i - 3, n), mirrored(j - 3, m)], "wide")
    columns = te.compute(
        (b, n + 6, m), lambda b, i, j: reduce(add, (g[q] * wide[b, i, j + q] for q in range(7))), "columns"
    )
    blur = te.compute(
        (b, n, m), lambda b, i, j: reduce(add, (g[k] * columns[b, i + k, j] for k in range(7))), "blur"
    )
    return te.compute((b, n, m), lambda b, i, j: 1.5 * x[b, i, j] - 0.5 * blur[b, i, j], "y")


def wavelet_db4(x: Any, f: Any) -> te.Tensor:
    """A wrapped copy of the samples, even and odd ones apart."""
    b, n = x.shape
    k = axis(2, "k")
    wrapped = te.compute((b, n + 4), lambda b, i: te.select(i < n, x[b, i % n], x[b, (i - n) % n]), "wrapped")
    even = te.compute((b, n // 2 + 2), lambda b, i: wrapped[b, 2 * i], "even")
    odd = te.compute((b, n // 2 + 2), lambda b, i: wrapped[b, 2 * i + 1], "odd")
    return te.compute(
        (b, 2, n // 2),
        lambda b, s, i: te.sum(f[s, 2 * k] * even[b, i + k] + f[s, 2 * k + 1] * odd[b, i + k], axis=k),
        "y",
    )


def strided_dilated_conv2d(x: Any, w: Any) -> te.Tensor:
    """A pad as a tensor of its own, and taps as one number."""
    n, height, width, channels = x.shape
    t, c = axis(9, "t"), axis(channels, "c")

    def padded(b: Any, i: Any, j: Any, c: Any) -> te.Expr:
        inside = (i >= 3) & (i < height + 3) & (j >= 3) & (j < width + 3)
        return te.select(inside, x[b, i - 3, j - 3, c], 0.0)

    wide = te.compute((n, height + 6, width + 6, channels), padded, "wide")

    def element(b: Any, i: Any, j: Any, o: Any) -> te.Expr:
        return te.sum(
            wide[b, 2 * i + 3 * (t // 3), 2 * j + 3 * (t % 3), c] * w[t // 3, t % 3, c, o], axis=[c, t]
        )

    return te.compute((n, (height - 1) // 2 + 1, (width - 1) // 2 + 1, w.shape[3]), element, "y")


def advection_upwind(q: Any, a: Any, b: Any) -> te.Tensor:
    """Positive and negative parts of the velocities, and differences as tensors."""
    n, m = q.shape
    across = te.compute((n, m), lambda i, j: q[i, j] - q[te.select(i > 0, i - 1, n - 1), j], "across")
    along = te.compute((n, m), lambda i, j: q[i, j] - q[i, te.select(j > 0, j - 1, m - 1)], "along")

    def step(i: Any, j: Any) -> te.Expr:
        down, right = across[(i + 1) % n, j], along[i, (j + 1) % m]
        first = te.maximum(a[i, j], 0.0) * across[i, j] + te.minimum(a[i, j], 0.0) * down
        return q[i, j] - 0.1 * (
            first + te.maximum(b[i, j], 0.0) * along[i, j] + te.minimum(b[i, j], 0.0) * right
        )

    return te.compute((n, m), step, "q1")


FUNCTIONS: tuple[Spelling, ...] = (
    *(alibi_attention, bayer, block_matching, chamfer, conv1d_short_causal, dct_blocks, fractional_pool),
    *(gray_scott, harris_corners, local_contrast, morphology, non_local_means, pair_energies, perona_malik),
    *(polyphase_decimation, relative_positions, rotary_positions, savitzky_golay, sobel, total_variation),
    *(unsharp_mask, wavelet_db4, strided_dilated_conv2d, advection_upwind),
)
