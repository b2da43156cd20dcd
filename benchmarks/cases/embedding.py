"""y[i,j] = table[ids[i],j]"""

import jaxte as te
from harness.inputs import integers, normal

TITLE = "embedding"
SIZES = {
    "full": dict(n=4096, rows=1000, d=64),
    "quick": dict(n=1024, rows=1000, d=64),
    "tiny": dict(n=5, rows=4, d=3),
}


def inputs(n, rows, d):
    return integers(n, below=rows), normal(rows, d)


def expression(ids, table):
    return te.ops.embedding(ids, table)


def idiomatic(ids, table):
    return table[ids]


def torch(torch, ids, table):
    return torch.nn.functional.embedding(ids, table)
