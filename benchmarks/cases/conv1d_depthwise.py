"""y[b,t,c] = sum_k x[b,t+k,c] w[k,c]"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "windows of 9 along a sequence"
SIZES = {"full": dict(b=8, t=2048, c=64), "quick": dict(b=4, t=512, c=32), "tiny": dict(b=2, t=11, c=2)}
HOLDS_BACK = "the operand with zeros around it, once, where lax.reduce_window tests positions"
SPELLINGS = {"indexed": "x[:, i + k]", "by hand": "shifted slices, forward and backward"}
TAPS = 9


def inputs(b, t, c):
    return normal(b, t, c), normal(TAPS, c)


def expression(x, w):
    k = te.reduce_axis((0, TAPS), "k")
    shape = (x.shape[0], x.shape[1] - TAPS + 1, x.shape[2])
    return te.compute(shape, lambda b, t, c: te.sum(x[b, t + k, c] * w[k, c], axis=k), "y")


def idiomatic(x, w):
    c = x.shape[2]
    return lax.conv_general_dilated(
        x, w[:, None], (1,), "VALID", feature_group_count=c, dimension_numbers=("NWC", "WIO", "NWC")
    )


def indexed(x, w):
    at = jnp.arange(x.shape[1] - TAPS + 1)[:, None] + jnp.arange(TAPS)
    return jnp.einsum("btkc,kc->btc", x[:, at], w)


def taps(x):
    length = x.shape[1] - TAPS + 1
    return [x[:, k : k + length] for k in range(TAPS)]


@jax.custom_vjp
def by_hand(x, w):
    return sum(tap * w[k] for k, tap in enumerate(taps(x)))


def _backward(saved, h):
    x, w = saved
    padded = jnp.pad(h, ((0, 0), (TAPS - 1, TAPS - 1), (0, 0)))
    dx = sum(tap * w[TAPS - 1 - k] for k, tap in enumerate(taps(padded)))
    return dx, jnp.stack([jnp.sum(h * tap, (0, 1)) for tap in taps(x)])


by_hand.defvjp(lambda x, w: (by_hand(x, w), (x, w)), _backward)


def torch(torch, x, w):
    y = torch.nn.functional.conv1d(x.transpose(1, 2), w.T[:, None], groups=x.shape[2])
    return y.transpose(1, 2)
