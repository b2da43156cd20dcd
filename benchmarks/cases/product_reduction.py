"""y[i] = prod_j x[i,j]"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "product reduction"
SIZES = {"full": dict(n=4096, m=128), "quick": dict(n=512, m=64), "tiny": dict(n=3, m=5)}
SPELLINGS = {"by hand": "the adjoint from products before and after each element, right at zeros too"}


def inputs(n, m):
    return (uniform(n, m, low=0.9, high=1.1),)


def expression(x):
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute((x.shape[0],), lambda i: te.prod(x[i, j], axis=j), "y")


def idiomatic(x):
    return jnp.prod(x, 1)


@jax.custom_vjp
def by_hand(x):
    return jnp.prod(x, 1)


def _backward(x, h):
    one = jnp.ones_like(x[:, :1])
    before = jnp.concatenate([one, jnp.cumprod(x[:, :-1], 1)], 1)
    after = jnp.concatenate([jnp.cumprod(x[:, :0:-1], 1)[:, ::-1], one], 1)
    return (h[:, None] * before * after,)


by_hand.defvjp(lambda x: (jnp.prod(x, 1), x), _backward)


def torch(torch, x):
    return torch.prod(x, 1)
