"""The benchmark cases with their gradients at full size, lowered and compiled once for all that is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax

from harness.case import load
from harness.inputs import draw
from harness.sides import function, with_gradients
from tests.xla_counts import Fused


@cache
def structs(name: str) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in draw(load(name).inputs_at("full"))]


@cache
def lowered(name: str, side: str) -> Any:
    """The function with its gradients, at full size."""
    case, arrays = load(name), structs(name)
    fn = function(case, side)
    found = jax.eval_shape(fn, *arrays)
    outputs: Sequence[Any] = found if isinstance(found, (tuple, list)) else [found]
    heads = [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in outputs]
    return jax.jit(with_gradients(fn, case.differentiated(arrays))).lower(heads, *arrays)  # type: ignore[arg-type]


@cache
def compiled(name: str, side: str) -> Any:
    """The program as XLA counts it: its buffers are assigned before LLVM, which takes most of the time, sees the loops."""
    return Fused(lowered(name, side))
