"""Nodes at positions that are data, slices whose places are known to the running program only, and Pallas kernels: the call of one, and what it reads from an array of which it is given more than it needs at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxte.lang.dtypes import Kind
from jaxte.lang.expr import Expr, as_expr
from jaxte.lower.arrays.kinds import Converted, LikeArray, OfArray, Stated
from jaxte.lower.arrays.node import ArrayError, Node, Shape, broadcast_shape

IN_BOUNDS, CLIP, FILL, DROP = "promise_in_bounds", "clip", "fill", "drop"


@dataclass(frozen=True, eq=False)
class Gather(OfArray):
    """``array`` at arrays of positions, one for each dimension from the first on; None takes all of a dimension.

    ``mode`` is what is read out of range; without one, positions are known to be inside and never negative. ``fill`` is what there is
    out of range in the mode "fill".
    """

    array: Node
    positions: tuple[Node | None, ...]
    mode: str = ""
    fill: Node | None = None

    @cached_property
    def shape(self) -> Shape:
        own = self.array.shape
        given = [n for n, p in enumerate(self.positions) if p is not None]
        block = broadcast_shape([p.shape for p in self.positions if p is not None])
        rest = [e for n, e in enumerate(own) if n not in given]
        before = given[0] if given[-1] - given[0] + 1 == len(given) else 0
        return (*rest[:before], *block, *rest[before:])


@dataclass(frozen=True, eq=False)
class Scatter(LikeArray):
    """``array`` with ``values`` at positions, by ``method`` ("set", "add", "multiply", "min", "max"), as :class:`Gather` has them.

    Positions out of range are left out. ``flags`` are facts about the positions.
    """

    array: Node
    positions: tuple[Node | None, ...]
    method: str
    values: Node
    mode: str = DROP
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class OneHot(Converted):
    """A row for each position: 1 there, 0 elsewhere."""

    positions: Node
    extent: Expr
    own_dtype: str

    @property
    def shape(self) -> Shape:
        return (*self.positions.shape, self.extent)


@dataclass(frozen=True, eq=False)
class IfFinite(LikeArray):
    """``array`` where no element of ``tested`` is infinite or NaN, else ``otherwise``, which is computed only then.

    The sum of ``tested`` is asked: it is not finite where an element is not. Where it overflows, ``otherwise`` is as right.
    """

    tested: Node
    array: Node
    otherwise: Node


@dataclass(frozen=True, eq=False)
class Updated(OfArray):
    """``array`` with ``part`` written into it from ``start`` on."""

    array: Node
    part: Node
    start: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        if len(self.part.shape) != len(self.start):
            raise ArrayError("a part is written at a position in each dimension")
        return self.array.shape


@dataclass(frozen=True, eq=False)
class Call(Stated):
    """The result of a function by name: an extern of the user, or one that the program defines."""

    function: str
    args: tuple[Node, ...]
    extents: Shape | None = None
    own_kind: Kind = ("", False)


@dataclass(frozen=True, eq=False)
class Output(Stated):
    """One of what an extern returns: the item at ``position`` of a tuple, or all of it."""

    outputs: Node
    position: int
    extents: Shape
    own_kind: Kind


@dataclass(frozen=True, eq=False)
class DynamicSlice(OfArray):
    """The part of ``sizes`` from a position on that is data; None where a dimension is taken in whole.

    ``typed`` says that the positions have the dtype int32 for good, which all of them have to have then.
    """

    array: Node
    starts: tuple[Node | None, ...]
    sizes: tuple[int, ...]
    typed: bool = False

    @property
    def shape(self) -> Shape:
        return tuple(map(as_expr, self.sizes))


@dataclass(frozen=True, eq=False)
class DynamicIndex(OfArray):
    """``array`` at one position along ``axis``, which is data; the nearest position inside where it is outside."""

    array: Node
    position: Node
    axis: int

    @property
    def shape(self) -> Shape:
        return (*self.array.shape[: self.axis], *self.array.shape[self.axis + 1 :])


@dataclass(frozen=True, eq=False)
class DynamicUpdate(LikeArray):
    """``array`` with ``part`` written into it along ``axis``, from ``start`` on, which is data."""

    array: Node
    part: Node
    start: Node
    axis: int


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
