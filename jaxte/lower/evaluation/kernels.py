"""The values of kernels, block by block."""

from __future__ import annotations

import numpy as np

from jaxte.lower.arrays import kernels
from jaxte.lower.evaluation.frame import Frame, Rules, Value
from jaxte.lower.evaluation.loops import all_turns


def _loaded(node: kernels.Loaded, at: Frame) -> Value:
    array = at.value(node.array)
    begins = [0 if s is None else int(at.value(s)) for s in node.starts]
    return array[tuple(slice(b, b + size) for b, size in zip(begins, node.sizes, strict=True))]


def _kernel(node: kernels.Kernel, at: Frame) -> Value:
    function, size = at.functions[node.function], node.size
    blocks, given = at.values(node.blocks), at.values((*node.wholes, *node.windows))
    turns = []
    for n in range(node.count):
        own = [b[n * size : (n + 1) * size] for b in blocks]
        turns.append(function(np.asarray(n * size, "int32"), *own, *given))
    return all_turns(turns)


RULES: Rules = {kernels.Loaded: _loaded, kernels.Kernel: _kernel}
