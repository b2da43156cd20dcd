"""y = -sum_ij t[i,j] log softmax(x)[i,j] / n, differentiated with respect to x"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, one_hot

TITLE = "cross-entropy"
SIZES = {"full": dict(n=512, m=1000), "quick": dict(n=128, m=512), "tiny": dict(n=3, m=5)}
WITH_RESPECT_TO = (0,)


def inputs(n, m):
    return normal(n, m), one_hot(n, m)


def expression(x, t):
    return te.ops.cross_entropy_with_logits(x, t)


def idiomatic(x, t):
    return -jnp.mean(jnp.sum(t * jax.nn.log_softmax(x), -1))


@jax.custom_vjp
def by_hand(x, t):
    return idiomatic(x, t)


def _forward(x, t):
    y = jax.nn.log_softmax(x)
    return -jnp.sum(t * y) / len(x), (y, t)


def _backward(saved, h):
    y, t = saved
    return h / len(y) * (jnp.exp(y) * jnp.sum(t, -1, keepdims=True) - t), -h / len(y) * y


by_hand.defvjp(_forward, _backward)


def torch(torch, x, t):
    return -(t * torch.log_softmax(x, -1)).sum(-1).mean()
