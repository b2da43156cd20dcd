"""Ordinary JAX functions as their authors write them, none with jaxte in mind: te.grad beside jax.grad."""

from __future__ import annotations

from raised import filters, images, learning, library, models, networks, pde, physics, sequences
from raised.registry import EXAMPLES, Example

# fmt: off
__all__ = [
    "EXAMPLES", "Example", "filters", "images", "learning", "library", "models", "networks", "pde", "physics", "sequences",
]
# fmt: on
