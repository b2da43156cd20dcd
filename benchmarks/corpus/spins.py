"""e[i,j] = -t[i,j] (t[i+1,j] + t[i,j+1]), t = tanh(s), on a torus: bonds of soft spins"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "soft spins on a torus"
SIZES = {
    "full": dict(n=512, m=480),
    "quick": dict(n=32, m=30),
    "tiny": dict(n=4, m=5),
}


def inputs(n, m):
    return (normal(n, m),)


def expression(s):
    n, m = s.shape

    def element(i, j):
        below, right = te.tanh(s[(i + 1) % n, j]), te.tanh(s[i, (j + 1) % m])
        return -te.tanh(s[i, j]) * (below + right)

    return te.compute((n, m), element, "e")


def idiomatic(s):
    t = jnp.tanh(s)
    return -t * (jnp.roll(t, -1, axis=0) + jnp.roll(t, -1, axis=1))


def by_hand(s):
    t = jnp.tanh(s)
    below = jnp.concatenate([t[1:], t[:1]], axis=0)
    right = jnp.concatenate([t[:, 1:], t[:, :1]], axis=1)
    return -t * (below + right)
