"""One row for each primitive of ``jax.lax``, in files by family; importing this package fills the table."""

from __future__ import annotations

from jaxte.frontends.jaxpr.rules import contraction, elementwise, indexing, reduction, shape

__all__ = ["contraction", "elementwise", "indexing", "reduction", "shape"]
