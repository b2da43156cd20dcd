"""y[i,j] = x[i,j] - log sum_k exp x[i,k]"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "log-softmax"
SIZES = {"full": dict(n=512, m=1000), "quick": dict(n=128, m=512), "tiny": dict(n=3, m=5)}


def inputs(n, m):
    return (normal(n, m),)


def expression(x):
    return te.ops.log_softmax(x)


def idiomatic(x):
    return jax.nn.log_softmax(x)


@jax.custom_vjp
def by_hand(x):
    return jax.nn.log_softmax(x)


def _forward(x):
    y = jax.nn.log_softmax(x)
    return y, y


by_hand.defvjp(_forward, lambda y, h: (h - jnp.exp(y) * jnp.sum(h, -1, keepdims=True),))


def torch(torch, x):
    return torch.log_softmax(x, -1)
