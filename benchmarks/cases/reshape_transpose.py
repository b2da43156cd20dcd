"""y[n,c,i,j] = x[n,4c+2(i%2)+j%2,i//2,j//2], channels to pixels"""

import numpy as np

import jaxte as te
from harness.inputs import normal

TITLE = "reshape and transpose: channels to pixels"
SIZES = {"full": dict(n=8, c=32, h=56), "quick": dict(n=2, c=8, h=28), "tiny": dict(n=1, c=2, h=3)}


def inputs(n, c, h):
    return (normal(n, 4 * c, h, h),)


def expression(x):
    n, c, h, w = x.shape
    shape = (n, c // 4, 2 * h, 2 * w)
    return te.compute(shape, lambda n, c, i, j: x[n, 4 * c + 2 * (i % 2) + j % 2, i // 2, j // 2], "y")


def idiomatic(x):
    n, c, h, w = x.shape
    return x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // 4, 2 * h, 2 * w)


def indexed(x):
    i, j = np.arange(2 * x.shape[2])[:, None], np.arange(2 * x.shape[3])
    c = np.arange(x.shape[1] // 4)[:, None, None]
    return x[:, 4 * c + 2 * (i % 2) + j % 2, i // 2, j // 2]


def torch(torch, x):
    return torch.nn.functional.pixel_shuffle(x, 2)
