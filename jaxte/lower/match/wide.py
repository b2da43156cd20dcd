"""Sums and products of 16-bit numbers are added up in float32, and rounded once: one rounding for each term would lose what they have."""

from __future__ import annotations

from jaxte.lang.expr import Reduce, cast
from jaxte.tensors.reductions import builtin_reducer

NARROW = ("float16", "bfloat16")
_WIDE = dict.fromkeys(NARROW, "float32")


def wide_dtype(node: Reduce) -> str:
    """What ``node`` is computed in: its own dtype, or a wider one."""
    return _WIDE.get(node.dtype, node.dtype) if node.reducer.name in ("sum", "prod") else node.dtype


def in_wide(node: Reduce) -> Reduce:
    """``node`` in the dtype of :func:`wide_dtype`."""
    wide = wide_dtype(node)
    if wide == node.dtype:
        return node
    return Reduce(
        builtin_reducer(node.reducer.name, wide), (cast(node.exprs[0], wide),), node.axes, node.where
    )
