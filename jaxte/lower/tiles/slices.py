"""What a tile is handed: windows of the tensors that it reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from jaxte.algebra.product import product_of
from jaxte.lang.expr import ZERO, Axis, Expr, Read
from jaxte.lang.operators import ADD, MULTIPLY, SUBTRACT
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.elementwise import Apply, Name, Number
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.spec import Array
from jaxte.sets.affine import normal
from jaxte.sets.index_forms import is_index
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Tensor


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


def begin(window: Window, before: int, start: Name) -> Node:
    """Where a slice begins."""
    offset = Number(abs(window.offset + before))
    step = abs(window.step)
    moving: Node = start if step == 1 else Apply(MULTIPLY, (Number(step), start))
    if window.step < 0:
        return Apply(SUBTRACT, (Number(window.offset + before), moving))
    if not offset.value:
        return moving
    return Apply(ADD if window.offset + before > 0 else SUBTRACT, (moving, offset))


def read_alone(product: Expr, at: Expr) -> tuple[Read, int] | None:
    """The smallest factor of ``product`` that is read at ``at`` along one of its axes, and nowhere else in it; None where there is none."""
    uses = Counter(child for node in postorder(product) for child in node.children)
    found: list[tuple[Read, int]] = []
    for factor in product_of(product).factors:
        read = factor.expr
        if isinstance(read, Read) and not factor.inverse and uses[read] <= 1:
            found += [(read, n) for n, index in enumerate(read.indices) if same_index(index, at)]
    return min(found, key=lambda f: f[0].tensor.ndim) if found else None


def same_index(index: Expr, other: Expr) -> bool:
    return is_index(index) and normal(index - other) is ZERO
