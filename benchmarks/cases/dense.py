"""y[i,o] = sum_k x[i,k] w[o,k] + b[o]"""

import jaxte as te
from harness.inputs import normal

TITLE = "dense"
SIZES = {"full": dict(n=512, k=1024, o=1024), "quick": dict(n=256, k=256, o=256), "tiny": dict(n=3, k=4, o=5)}


def inputs(n, k, o):
    return normal(n, k), normal(o, k, scale=0.05), normal(o)


def expression(x, w, b):
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0], w.shape[0]), lambda i, o: te.sum(x[i, k] * w[o, k], axis=k) + b[o], "y")


def idiomatic(x, w, b):
    return x @ w.T + b


def torch(torch, x, w, b):
    return torch.nn.functional.linear(x, w, b)
