"""Derivatives by finite differences of the interpreter, in float64: independent of everything that derives them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jaxte.meaning.interpret import interpret
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Tensor


def numeric_adjoint(
    output: Tensor, wrt: Placeholder, feeds: Mapping[Tensor, np.ndarray], head: np.ndarray, step: float = 1e-6
) -> np.ndarray:
    """``sum over o of head[o] * d output[o] / d wrt`` by central differences."""
    base = np.array(feeds[wrt], dtype=np.float64)
    result = np.zeros_like(base)
    for at in np.ndindex(base.shape):
        ends = []
        for sign in (1, -1):
            moved = base.copy()
            moved[at] += sign * step
            ends.append(np.asarray(interpret(output, {**feeds, wrt: moved}), dtype=np.float64))
        result[at] = np.sum(head * (ends[0] - ends[1])) / (2 * step)
    return result
