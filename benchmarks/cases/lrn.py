"""y[n,c,i,j] = x[n,c,i,j] / (2 + alpha/5 sum_k x[n,c+k-2,i,j]^2) ** 0.75, k below 5"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import places
from harness.inputs import normal

TITLE = "LRN across 5 channels"
SIZES = {"full": dict(n=8, c=64, h=28), "quick": dict(n=2, c=32, h=14), "tiny": dict(n=1, c=6, h=2)}
HOLDS_BACK = "the operand with zeros around it, once, where lax.reduce_window tests positions"
SPELLINGS = {
    "by hand": "slices of a producer computed once, powers by roots, adjoint as a window of the same kind"
}
ALPHA = 0.05 / 5


def inputs(n, c, h):
    return (normal(n, c, h, h),)


def expression(x):
    return te.ops.lrn(x, 5, 2.0, 5 * ALPHA, 0.75)


def idiomatic(x):
    s = lax.reduce_window(x * x, 0.0, lax.add, (1, 5, 1, 1), (1, 1, 1, 1), "SAME")
    return x * (2.0 + ALPHA * s) ** -0.75


def indexed(x):
    squares = jnp.pad(x * x, ((0, 0), (2, 2), (0, 0), (0, 0)))
    s = jnp.sum(squares[:, places(squares.shape[1], 5)], 2)
    return x * (2.0 + ALPHA * s) ** -0.75


def windows(x):
    """Sums over five neighbouring channels; what is summed is computed once, not in each of the five slices."""
    x = lax.optimization_barrier(jnp.pad(x, ((0, 0), (2, 2), (0, 0), (0, 0))))
    return sum(x[:, k : k + x.shape[1] - 4] for k in range(5))


@jax.custom_vjp
def by_hand(x):
    return _forward(x)[0]


def _forward(x):
    s = 2.0 + ALPHA * windows(x * x)
    r = lax.rsqrt(s)
    power = r * jnp.sqrt(r)
    return x * power, (x, r, power)


def _backward(saved, h):
    x, r, power = saved
    return (h * power - 1.5 * ALPHA * x * windows(h * x * power * r * r),)


by_hand.defvjp(_forward, _backward)


def torch(torch, x):
    return torch.nn.functional.local_response_norm(x, 5, 5 * ALPHA, 0.75, 2.0)
