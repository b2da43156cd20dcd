"""Losses in the spelling that comes first, written to see whether te.grad's estimate is right for what it was not made for.

The paces of the price of whole programs were fitted to those of ``fitted_fields`` and ``fitted_layers``; the other modules were written afterwards.
"""

from unseen import (
    densities,
    fitted_fields,
    fitted_layers,
    geometry,
    graphs,
    physics,
    rankings,
    sequences,
    signals,
    vision,
)
from unseen.registry import LOSSES

__all__ = [
    "LOSSES",
    "densities",
    "fitted_fields",
    "fitted_layers",
    "geometry",
    "graphs",
    "physics",
    "rankings",
    "sequences",
    "signals",
    "vision",
]
