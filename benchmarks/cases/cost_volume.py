"""y[n,p,q,i,j] = sum_c a[n,c,i,j] b[n,c,i+p-4,j+q-4], p and q below 9, zero outside"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "correlation cost volume, 9x9"
SIZES = {"full": dict(n=2, c=32, h=48), "quick": dict(n=1, c=16, h=16), "tiny": dict(n=1, c=2, h=4)}
SIZE, BEFORE = 9, 4
SPELLINGS = {"idiomatic": "a slice of the padded image for each shift, stacked"}


def inputs(n, c, h):
    return normal(n, c, h, h), normal(n, c, h, h)


def expression(a, b):
    n, channels, h, w = a.shape
    c = te.reduce_axis((0, channels), "c")

    def body(n, p, q, i, j):
        y, z = i + p - BEFORE, j + q - BEFORE
        inside = (y >= 0) & (y < h) & (z >= 0) & (z < w)
        return te.select(inside, te.sum(a[n, c, i, j] * b[n, c, y, z], axis=c), 0.0)

    return te.compute((n, SIZE, SIZE, h, w), body, "y")


def padded(b):
    return jnp.pad(b, ((0, 0), (0, 0), (BEFORE, BEFORE), (BEFORE, BEFORE)))


def idiomatic(a, b):
    n, _, h, w = a.shape
    b = padded(b)
    shifts = [(p, q) for p in range(SIZE) for q in range(SIZE)]
    found = [jnp.sum(a * b[:, :, p : p + h, q : q + w], 1) for p, q in shifts]
    return jnp.stack(found, 1).reshape(n, SIZE, SIZE, h, w)


def indexed(a, b):
    h, w = a.shape[2:]
    rows, columns = (jnp.arange(SIZE)[:, None] + jnp.arange(e) for e in (h, w))
    windows = padded(b)[:, :, rows[:, None, :, None], columns[:, None]]
    return jnp.einsum("ncij,ncpqij->npqij", a, windows)


def by_hand(a, b):
    """Rows of one image against padded rows of the other as dense products, then the band of each by a skew."""
    n, _c, h, w = a.shape
    wide = w + SIZE - 1
    b = padded(b)
    rows = jnp.stack([b[:, :, p : p + h] for p in range(SIZE)], 2)
    dense = jnp.einsum("ncij,ncpik->npijk", a, rows)
    flat = jnp.pad(dense.reshape(n, SIZE, h, w * wide), ((0, 0), (0, 0), (0, 0), (0, w)))
    bands = flat.reshape(n, SIZE, h, w, wide + 1)[..., :SIZE]
    return jnp.moveaxis(bands, 4, 2)
