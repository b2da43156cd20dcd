"""What a tile is handed: windows of the tensors that it reads."""

from __future__ import annotations

from dataclasses import dataclass

from jaxte.lang.expr import Axis, Expr
from jaxte.lower.code.spec import Array
from jaxte.tensors.tensor import Placeholder, Tensor


class NoBlock(Exception):
    """Why a tensor has no blocks along an axis."""


@dataclass(frozen=True)
class Window:
    """The positions ``step * start + offset``, and on, ``length`` of them, of dimension ``dim``."""

    dim: int
    step: int
    offset: int
    length: int


@dataclass(frozen=True)
class Slice:
    """What a tile is handed: ``part`` is the placeholder for the positions ``windows`` of ``source``."""

    part: Placeholder
    source: Tensor | Array
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Place:
    """What an axis is in a tile.

    Attributes:
        axis: of a body.
        meaning: the axis in terms of ``Blocks.origin`` and axes of the tile.
        at: the position within the block, in axes of the tile.
    """

    axis: Axis
    meaning: Expr
    at: Expr
