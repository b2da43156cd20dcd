"""y[n,c,i,j] = sum_pq x[n,c,i+p-2,j+q-2] / 25, p and q below 5, zero outside"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import windows
from harness.inputs import normal

TITLE = "box blur 5x5"
SIZES = {"full": dict(n=8, c=3, h=256), "quick": dict(n=2, c=3, h=64), "tiny": dict(n=1, c=1, h=7)}
SPELLINGS = {
    "by hand": "slices along one axis after the other, its own adjoint",
    "idiomatic": "lax.reduce_window",
}
HOLDS_BACK = "lax.reduce_window holds nothing; passes along one axis after the other hold what is between them, and are 2 to 80 times faster; 2 to 6.5 here from run to run, as all sides that hold images take three times as long in some"
SIZE, BEFORE = 5, 2


def inputs(n, c, h):
    return (normal(n, c, h, h),)


def expression(x):
    p, q = te.reduce_axis((0, SIZE), "p"), te.reduce_axis((0, SIZE), "q")
    h, w = x.shape[2:]

    def body(n, c, i, j):
        y, z = i + p - BEFORE, j + q - BEFORE
        inside = (y >= 0) & (y < h) & (z >= 0) & (z < w)
        return te.sum(x[n, c, y, z], axis=[p, q], where=inside) / SIZE**2

    return te.compute(x.shape, body, "y")


def idiomatic(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, SIZE, SIZE), (1, 1, 1, 1), "SAME") / SIZE**2


def indexed(x):
    return jnp.mean(windows(x, SIZE, padding=BEFORE), (4, 5))


def sums(x, axis):
    """Sums over five neighbours along ``axis``."""
    n = x.shape[axis]
    x = jnp.pad(x, [(BEFORE, BEFORE) if a == axis else (0, 0) for a in range(4)])
    return sum(lax.slice_in_dim(x, k, k + n, axis=axis) for k in range(SIZE))


@jax.custom_vjp
def by_hand(x):
    return sums(sums(x, 3), 2) / SIZE**2


# the window is symmetric, so the blur is its own adjoint
by_hand.defvjp(lambda x: (by_hand(x), None), lambda _, h: (by_hand(h),))


def torch(torch, x):
    return torch.nn.functional.avg_pool2d(x, SIZE, 1, BEFORE)
