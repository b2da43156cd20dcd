"""Nodes of Pallas kernels: the call of one, and what it reads from an array of which it is given more than it needs at once."""

from __future__ import annotations

from dataclasses import dataclass

from jaxte.lang.dtypes import Kind
from jaxte.lang.expr import as_expr
from jaxte.lower.arrays.kinds import OfArray
from jaxte.lower.arrays.node import Node, Shape

# what runs a kernel: Pallas's interpreter, or its compilers for a GPU and a TPU
INTERPRETER, TRITON, MOSAIC = "interpreter", "triton", "mosaic"


@dataclass(frozen=True, eq=False)
class Loaded(OfArray):
    """The part of ``sizes`` of an array in memory that begins at ``starts``; None where a dimension is taken in whole."""

    array: Node
    starts: tuple[Node | None, ...]
    sizes: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        return tuple(map(as_expr, self.sizes))


@dataclass(frozen=True, eq=False)
class Kernel(Node):
    """``function``, which the program defines, of each of ``count`` blocks of ``size`` positions, as one kernel.

    Attributes:
        function: takes where the block begins, and the arrays in the order of the fields.
        blocks: arrays of which it gets the block along the first dimension.
        wholes: arrays that it gets in whole.
        windows: arrays of which it loads what it needs.
        results: shape and dtype of each array that it returns.
        by: what compiles it, or interprets it (``Platform.kernels``).
    """

    function: str
    size: int
    count: int
    blocks: tuple[Node, ...]
    wholes: tuple[Node, ...]
    windows: tuple[Node, ...]
    results: tuple[tuple[Shape, str], ...]
    by: str

    @property
    def shape(self) -> Shape:
        return as_expr(self.count), *self.results[0][0]

    @property
    def kind(self) -> Kind:
        return self.results[0][1], False
