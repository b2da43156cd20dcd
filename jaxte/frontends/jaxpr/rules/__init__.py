"""One row for each primitive of ``jax.lax``, in files by family; importing this package fills the table."""

from __future__ import annotations

from jaxte.frontends.jaxpr.rules import (
    contraction,
    cumulative,
    elementwise,
    indexing,
    reduction,
    shape,
    window,
)

__all__ = ["contraction", "cumulative", "elementwise", "indexing", "reduction", "shape", "window"]
