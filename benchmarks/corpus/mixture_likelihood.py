"""sum_i log sum_k exp(log w[k] - |x_i - m_k|^2 / (2 s_k^2) - d log s_k): a mixture of Gaussians"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "mixture of Gaussians"
SIZES = {
    "full": dict(n=4096, k=64, d=16),
    "quick": dict(n=64, k=6, d=4),
    "tiny": dict(n=3, k=2, d=2),
}


def inputs(n, k, d):
    return normal(n, d), normal(k, d), uniform(k, low=0.5, high=2.0), normal(k)


def expression(x, mean, s, logw):
    n, size = x.shape
    k, d, i = (
        te.reduce_axis((0, mean.shape[0]), "k"),
        te.reduce_axis((0, size), "d"),
        te.reduce_axis((0, n), "i"),
    )

    def term(i, k):
        square = te.sum((x[i, d] - mean[k, d]) ** 2, axis=d)
        return logw[k] - square / (2 * s[k] ** 2) - size * te.log(s[k])

    terms = te.compute((n, mean.shape[0]), term, "terms")
    most = te.compute((n,), lambda i: te.max(terms[i, k], axis=k), "most")
    total = te.compute((n,), lambda i: te.sum(te.exp(terms[i, k] - most[i]), axis=k), "total")
    return te.compute((), lambda: te.sum(te.log(total[i]) + most[i], axis=i), "likelihood")


def idiomatic(x, mean, s, logw):
    square = jnp.sum((x[:, None] - mean) ** 2, axis=-1)
    terms = logw - square / (2 * s**2) - x.shape[1] * jnp.log(s)
    return jnp.sum(jax.nn.logsumexp(terms, axis=1))
