"""y[n,o,i,j] = sum_cpq w[o,c,p,q] x[n,c] at (i+p-1+dy[n,p,q,i,j], j+q-1+dx[n,p,q,i,j]), bilinear, zero outside"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "deformable convolution 3x3"
SIZES = {"full": dict(n=2, c=16, h=32), "quick": dict(n=1, c=8, h=16), "tiny": dict(n=1, c=2, h=4)}
HOLDS_BACK = "the samples are laid out once for each of the two products that read them, as by hand"


def inputs(n, c, h):
    # offsets within a pixel and a half
    offsets = uniform(n, 3, 3, h, h, low=-1.5, high=1.5), uniform(n, 3, 3, h, h, low=-1.5, high=1.5)
    return normal(n, c, h, h), *offsets, normal(c, c, 3, 3, scale=0.1)


def expression(x, dy, dx, w):
    n, channels, h, width = x.shape
    taps = dy.shape

    def whole(name, offset, place):
        return te.compute(
            taps,
            lambda n, p, q, i, j: te.cast(te.floor(offset[n, p, q, i, j]), "int32") + place(p, q, i, j),
            name,
        )

    top = whole("top", dy, lambda p, q, i, j: i + p - 1)
    left = whole("left", dx, lambda p, q, i, j: j + q - 1)

    def corner(n, c, p, q, i, j, a, b):
        at = (n, p, q, i, j)
        y, z = top[at] + a, left[at] + b
        inside = (y >= 0) & (y < h) & (z >= 0) & (z < width)
        fy, fx = dy[at] - te.floor(dy[at]), dx[at] - te.floor(dx[at])
        return te.select(inside, x[n, c, y, z], 0.0) * (fy if a else 1 - fy) * (fx if b else 1 - fx)

    def sample(n, c, p, q, i, j):
        return sum(corner(n, c, p, q, i, j, a, b) for a in range(2) for b in range(2))

    s = te.compute((n, channels, 3, 3, h, width), sample, "sampled")
    c, p, q = (te.reduce_axis((0, e), name) for e, name in ((channels, "c"), (3, "p"), (3, "q")))
    return te.compute(
        (n, w.shape[0], h, width),
        lambda n, o, i, j: te.sum(w[o, c, p, q] * s[n, c, p, q, i, j], axis=[c, p, q]),
        "y",
    )


def idiomatic(x, dy, dx, w):
    y, z = positions(dy, dx)

    def image(x, y, z):
        return jax.vmap(lambda x: jax.scipy.ndimage.map_coordinates(x, [y, z], 1, "constant"))(x)

    return jnp.einsum("ocpq,ncpqij->noij", w, jax.vmap(image)(x, y, z))


def positions(dy, dx):
    h, width = dy.shape[3:]
    p, q = jnp.arange(3)[:, None, None, None], jnp.arange(3)[:, None, None]
    i, j = jnp.arange(h)[:, None], jnp.arange(width)
    return i + p - 1 + dy, j + q - 1 + dx


def indexed(x, dy, dx, w):
    y, z = positions(dy, dx)
    n, c, h, width = x.shape
    images, channels = jnp.arange(n).reshape(-1, 1, 1, 1, 1, 1), jnp.arange(c).reshape(-1, 1, 1, 1, 1)
    top, left = jnp.floor(y), jnp.floor(z)
    total = 0.0
    for a in range(2):
        for b in range(2):
            i, j = (top + a).astype("int32"), (left + b).astype("int32")
            inside = (i >= 0) & (i < h) & (j >= 0) & (j < width)
            share = (y - top if a else 1 + top - y) * (z - left if b else 1 + left - z)
            corner = x[images, channels, jnp.clip(i, 0, h - 1)[:, None], jnp.clip(j, 0, width - 1)[:, None]]
            total = total + jnp.where(inside, share, 0.0)[:, None] * corner
    return jnp.einsum("ocpq,ncpqij->noij", w, total)


def by_hand(x, dy, dx, w):
    """Corners gathered with the channels last, one row of memory for each; the product is one matmul."""
    y, z = positions(dy, dx)
    n, c, h, width = x.shape
    rows = x.transpose(0, 2, 3, 1).reshape(n, h * width, c)
    top, left = jnp.floor(y), jnp.floor(z)
    total = 0.0
    for a in range(2):
        for b in range(2):
            i, j = (top + a).astype("int32"), (left + b).astype("int32")
            share = (y - top if a else 1 + top - y) * (z - left if b else 1 + left - z)
            share = jnp.where((i >= 0) & (i < h) & (j >= 0) & (j < width), share, 0.0)
            at = jnp.clip(i, 0, h - 1) * width + jnp.clip(j, 0, width - 1)
            total = total + share[..., None] * jax.vmap(lambda rows, at: rows[at])(rows, at)
    return jnp.einsum("ocpq,npqijc->noij", w, total)
