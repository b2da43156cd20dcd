"""y[i,o] = sum_c (x[i,c] w0 + S1 w1 + S2 w2 + S3 w3)[c,o] with the sums over the three neighbours of a face

S1[i,c] = sum_p x[adj[i,p],c], S2[i,c] = sum_p |x[adj[i,p],c] - x[adj[i,(p+1)%3],c]|, S3[i,c] = sum_p |x[adj[i,p],c] - x[i,c]|
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.inputs import given, normal

TITLE = "mesh convolution, 13 to 64 channels"
SIZES = {
    "full": dict(a=64, b=96, c=13, o=64),
    "quick": dict(a=32, b=32, c=13, o=64),
    "tiny": dict(a=3, b=3, c=2, o=3),
}
SPELLINGS = {
    "by hand": "backward by gathers: neighbours are mutual, so each face asks its neighbours for its share"
}


def inputs(a, b, c, o):
    adjacent = torus(a, b)
    return normal(2 * a * b, c), normal(4, c, o, scale=0.2), given(adjacent), given(slots(adjacent))


def slots(adjacent):
    """At which place each neighbour holds a face."""
    return np.argmax(adjacent[adjacent] == np.arange(len(adjacent))[:, None, None], -1)


def torus(a, b):
    """The neighbours of each face of a torus of a x b squares, each cut into two triangles; faces in random order."""
    i, j = np.meshgrid(np.arange(a), np.arange(b), indexing="ij")

    def face(i, j, half):
        return 2 * ((i % a) * b + j % b) + half

    low = np.stack([face(i, j, 1), face(i, j - 1, 1), face(i - 1, j, 1)], -1)
    high = np.stack([face(i, j, 0), face(i, j + 1, 0), face(i + 1, j, 0)], -1)
    adjacent = np.stack([low, high], 2).reshape(-1, 3)
    order = np.random.default_rng(0).permutation(len(adjacent))
    renamed = np.empty_like(adjacent)
    renamed[order] = order[adjacent]
    return renamed


def expression(x, w, adj, slot):
    te.assume(adj, te.facts.symmetric_adjacency(slot=slot))
    n, c = x.shape
    p, k = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, c), "c")
    near = te.compute((n, 3, c), lambda i, p, c: x[adj[i, p], c], "near")
    s1 = te.compute((n, c), lambda i, c: te.sum(near[i, p, c], axis=p), "S1")
    s2 = te.compute(
        (n, c), lambda i, c: te.sum(te.abs(near[i, p, c] - near[i, (p + 1) % 3, c]), axis=p), "S2"
    )
    s3 = te.compute((n, c), lambda i, c: te.sum(te.abs(near[i, p, c] - x[i, c]), axis=p), "S3")

    def body(i, o):
        parts = x[i, k] * w[0, k, o] + s1[i, k] * w[1, k, o] + s2[i, k] * w[2, k, o] + s3[i, k] * w[3, k, o]
        return te.sum(parts, axis=k)

    return te.compute((n, w.shape[2]), body, "y")


def idiomatic(x, w, adj, slot):
    near = x[adj]
    s1 = near.sum(1)
    s2 = jnp.abs(near - jnp.roll(near, -1, 1)).sum(1)
    s3 = jnp.abs(near - x[:, None]).sum(1)
    return x @ w[0] + s1 @ w[1] + s2 @ w[2] + s3 @ w[3]


@jax.custom_vjp
def neighbours(x, adj, slot):
    return x[adj]


def _backward(residuals, h):
    adj, slot = residuals
    return h[adj, slot].sum(1), None, None


neighbours.defvjp(lambda x, adj, slot: (x[adj], (adj, slot)), _backward)


def by_hand(x, w, adj, slot):
    near = neighbours(x, adj, slot)
    s1 = near.sum(1)
    s2 = sum(jnp.abs(near[:, p] - near[:, (p + 1) % 3]) for p in range(3))
    s3 = sum(jnp.abs(near[:, p] - x) for p in range(3))
    return jnp.concatenate([x, s1, s2, s3], 1) @ w.reshape(-1, w.shape[2])


def torch(torch, x, w, adj, slot):
    near = x[adj]
    s2 = (near - torch.roll(near, -1, 1)).abs().sum(1)
    s3 = (near - x[:, None]).abs().sum(1)
    return x @ w[0] + near.sum(1) @ w[1] + s2 @ w[2] + s3 @ w[3]
