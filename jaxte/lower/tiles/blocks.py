"""Tensors for a block of consecutive positions of an axis: what one tile computes.

``T[..., i, ...]`` for ``i = start + r``, with ``start`` known to the loop only and ``r`` in ``[0, R)``, is a tensor over ``r``. Its body
is that of ``T``, and its reads are taken over in three ways:

- ``P[..., i, ...]`` where ``P`` itself is computed in the tile: the block of ``P``, computed in the same place;
- ``X[..., c*i + g, ...]`` where ``g`` depends on other axes: the part of ``X`` that the block meets, its *halo* included, which is a
  slice that begins at ``c*start + min(c*r + g)``. As everywhere, positions outside of ``X`` are zeros behind a guard;
- ``X[I[i], ...]``, a position that is data: ``X`` as it is, at the positions of the block.

``i`` as a number is ``start + r``, data. Conditions on it that hold throughout, or that only keep a read in range where there
are zeros anyway, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jaxte.algebra.product import product_of
from jaxte.lang.expr import ZERO, Axis, Const, Expr, Read, Reduce, as_expr, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import Members, among
from jaxte.lang.limits import FEW
from jaxte.lang.operators import SELECT
from jaxte.lang.text import text
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.lower.code.spec import Array
from jaxte.lower.tiles.slices import NoBlock, Place, Slice, Window, read_alone, same_index
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.intervals import reach
from jaxte.sets.linear import Linear
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute, Tensor


class Blocks:
    """The blocks of tensors along axes of one extent.

    Attributes:
        inside: tensors of which a block may read the same block only.
        results: those of them that are put together from their blocks.
        extent: of these axes.
        size: positions of a block.
        start: the first position, as data.
        first: the first position that no earlier block has, as data; the last block begins before it where sizes do not divide.
        origin: stands for ``start`` in index expressions.
        slices: what a tile is handed.
        tensors: the blocks, each after those that it reads, by tensor and position of the axis.
        axes: those of the tile that stand for the axis.
        rows_of: the last axis of what single positions are added to: what has it side by side in another order is turned before the loop.
        fresh: parts and blocks that are zero at positions of an earlier block, by what they are made from and the dimension.
    """

    def __init__(
        self,
        inside: Members[Tensor],
        extent: int,
        size: int,
        results: Members[Tensor] = frozenset(),
        rows_of: Axis | None = None,
    ) -> None:
        self.inside = inside
        self.rows_of = rows_of
        self.results = results
        self.extent = extent
        self.size = size
        self.start = Placeholder("start", (), "int32")
        self.first = Placeholder("first", (), "int32")
        self.origin = Axis("start", 0, extent - size + 1)
        self.slices: dict[object, Slice] = {}
        self.tensors: dict[tuple[Compute, int], Compute] = {}
        self.axes: set[Axis] = set()
        self.fresh: dict[tuple[Tensor, int], Compute] = {}
        self._arrays: dict[object, Array] = {}

    @property
    def computed(self) -> list[Compute]:
        """All that a tile computes, each after what it reads."""
        return [*self.tensors.values(), *self.fresh.values()]

    @property
    def wholes(self) -> list[Tensor]:
        """The tensors from outside that rows of the tile read as they are."""
        own: set[Tensor] = {*self.computed, self.start, self.first}
        own |= {piece.part for piece in self.slices.values()}
        return list(dict.fromkeys(t for row in self.computed for t in row.inputs if t not in own))

    def block(self, tensor: Compute, position: int) -> Compute:
        """``tensor`` at a block of positions of its axis number ``position``.

        Raises:
            NoBlock: it reads more than the block of what is computed inside.
        """
        key = (tensor, position)
        if key not in self.tensors:
            axis = tensor.axes[position]
            own = self.axis(axis.name, self.size)
            body = self.local(tensor.body, Place(axis, self.origin + own, own))
            if body.dtype != tensor.dtype:
                body = cast(body, tensor.dtype)
            axes = _ordered([*tensor.axes[:position], own, *tensor.axes[position + 1 :]], self._order(key))
            self.tensors[key] = tensor.alike(f"{tensor.name}_{axis.name}", axes, body)
        return self.tensors[key]

    def _order(self, key: tuple[Compute, int]) -> list[int]:
        """The axes of a block, in the order in which it has them.

        A short last axis makes short vectors: where only the tile reads the block, the axis goes in front of a longer one.
        """
        tensor, position = key
        order = list(range(tensor.ndim))
        if position == 0 or position < tensor.ndim - 1 or tensor in self.results:
            return order
        before = tensor.axes[position - 1].extent
        if isinstance(before, Const) and int(before) <= self.size:
            return order
        return [position, *order[:-1]]

    def axis(self, name: str, extent: int, reduction: bool = False) -> Axis:
        """A new axis of the tile that stands for that of the pass."""
        own = Axis(name, 0, extent, reduction=reduction)
        self.axes.add(own)
        return own

    def local(self, expr: Expr, place: Place) -> Expr:
        """``expr`` in a tile."""
        table: dict[Expr, Expr] = {place.axis: self.number(place.meaning)}
        for node in postorder(expr):
            if isinstance(node, Read):
                table[node] = self._read(node, place, table)
            elif isinstance(node, Reduce) and depends_on(node.where, (place.axis,)):
                table[node] = self._reduce(node, place, table)
        return substitute(expr, table)

    def number(self, index: Expr) -> Expr:
        """An index expression with the origin as data."""
        return substitute(index, {self.origin: Read(self.start, ())})

    def reduce(self, node: Reduce, place: Place, axes: Sequence[Axis], where: Sequence[Expr] = ()) -> Reduce:
        """``node``, a reduction over ``place.axis`` too, in a tile over ``axes``, where ``where`` holds as well."""
        exprs = [self.local(e, place) for e in node.exprs]
        kept = self._conditions(node, place)
        conditions = conjunction([*(self.local(c, place) for c in kept), *where])
        return node.changed(exprs=exprs, axes=axes, where=conditions)

    def once(self, product: Expr, at: Expr) -> Expr | None:
        """``product`` with zeros at positions that an earlier block has; None where no factor is read at ``at`` alone."""
        found = read_alone(product, at)
        if found is None:
            return None
        read, dim = found
        key = (read.tensor, dim)
        if key not in self.fresh:
            axes = [Axis(f"a{n}", 0, e) for n, e in enumerate(read.tensor.shape)]
            value = Read(read.tensor, axes)
            held = self.number(self.origin + axes[dim]) >= Read(self.first, ())
            body = call(SELECT, held, value, cast(ZERO, read.dtype))
            self.fresh[key] = Compute(f"{read.tensor.name}_new", axes, body)
        return substitute(product, {read: Read(self.fresh[key], read.indices)})

    def _reduce(self, node: Reduce, place: Place, table: dict[Expr, Expr]) -> Reduce:
        exprs = [substitute(e, table) for e in node.exprs]
        where = conjunction([substitute(c, table) for c in self._conditions(node, place)])
        return node.changed(exprs=exprs, where=where)

    def _conditions(self, node: Reduce, place: Place) -> list[Expr]:
        """The conditions of ``node`` that a tile has to test; the range of the axis is one if the axis is reduced."""
        own = conjuncts(node.where)
        if among(place.axis, node.axes):
            own += [place.axis.lo <= place.axis, place.axis < place.axis.hi]
        outside = self._zeros_outside(node)
        kept = []
        for condition in own:
            forms = nonnegative_forms(condition) if depends_on(condition, (place.axis,)) else []
            if not forms or not all(self._holds(f, place) or f.key in outside for f in forms):
                kept.append(condition)
        return kept

    def _holds(self, form: Linear, place: Place) -> bool:
        """Whether ``form`` is at least 0 wherever the position of a tile is one of the axis."""
        moved = linear(substitute(from_linear(form), {place.axis: place.meaning}))
        position = linear(self.origin + place.at)
        times = moved.coefficient(self.origin)
        rest = moved - position * times
        bounds = reach(rest)
        return bounds is not None and bounds[0] + min(0, times * (self.extent - 1)) >= 0

    def _zeros_outside(self, node: Reduce) -> set[object]:
        """The conditions for a factor of a sum of products to be read in range; outside it is zero anyway."""
        factors = product_of(node.exprs[0]).factors if node.is_sum else ()
        if any(f.inverse or f.guard or not isinstance(f.expr, (Read, Const)) for f in factors):
            return set()
        found: set[object] = set()
        for read in (f.expr for f in factors if isinstance(f.expr, Read)):
            if read.tensor not in self.inside:
                for index, extent in zip(read.indices, read.tensor.shape, strict=True):
                    if is_index(index):
                        found |= {linear(index).key, linear(as_expr(extent) - 1 - index).key}
        return found

    # --- reads

    def _read(self, read: Read, place: Place, table: dict[Expr, Expr]) -> Expr:
        moving = [n for n, index in enumerate(read.indices) if depends_on(index, (place.axis,))]
        if read.tensor in self.inside:
            return self._inside(read, place, moving, table)
        data = any(reads_of(read.indices[n]) for n in moving)
        if not moving or data:
            return self._whole(Read(read.tensor, [substitute(index, table) for index in read.indices]))
        indices = [substitute(index, {place.axis: place.meaning}) for index in read.indices]
        windows: list[Window] = []
        for n in moving:
            form = linear(indices[n])
            step = form.coefficient(self.origin)
            rest = form - linear(self.origin + place.at) * step
            if self.origin in free_axes(from_linear(rest)):
                raise NoBlock(f"{text(read)} is no multiple of {place.axis.name}")
            ends = reach(rest)
            if ends is None:
                raise NoBlock(f"the part of {read.tensor.name} that {text(read)} reads is not known")
            indices[n] = from_linear(rest)
            if step:
                first = ends[0] + min(0, step * (self.size - 1))
                length = ends[1] - ends[0] + abs(step) * (self.size - 1) + 1
                windows.append(Window(n, step, first, length))
                indices[n] = normal(step * place.at + from_linear(rest) - first)
        own = [i if n in moving else substitute(i, table) for n, i in enumerate(indices)]
        if len(windows) == 1 and self._is_turned(read, windows[0]):
            return self._row(read.tensor, place.axis.name, windows[0], own)
        return Read(self._slice(read.tensor, place.axis.name, tuple(windows)), own)

    def _is_turned(self, read: Read, window: Window) -> bool:
        """Whether a slice of a single position has the last axis of the result in another place than last."""
        if self.rows_of is None or window.dim < len(read.indices) - 1:
            return False
        return any(i is self.rows_of for i in read.indices)

    def _row(self, tensor: Tensor, name: str, window: Window, indices: Sequence[Expr]) -> Read:
        """The read of a position of the last dimension, which comes first in a copy of ``tensor``."""
        order = [window.dim, *range(window.dim)]
        array = self._turned(tensor, [int(as_expr(e)) for e in tensor.shape], order)
        part = self._slice(array, name, (replace(window, dim=0),))
        return Read(part, _ordered(indices, order))

    def _whole(self, read: Read) -> Read:
        """A read of all of a tensor; transposed before the loop if a long dimension lies before a last one of few points."""
        shape, tensor = read.tensor.shape, read.tensor
        known = [e for e in shape if isinstance(e, int)]
        if len(known) < max(2, len(shape)) or reads_of(*read.indices):
            return read
        long = max(range(len(known)), key=known.__getitem__)
        if not 1 < known[-1] <= FEW < known[long]:
            return read
        order = [n for n in range(len(known)) if n != long] + [long]
        array = self._turned(tensor, known, order)
        if array not in self.slices:
            part = Placeholder(f"{tensor.name}_transposed", tuple(_ordered(known, order)), tensor.dtype)
            self.slices[array] = Slice(part, array, ())
        return Read(self.slices[array].part, _ordered(read.indices, order))

    def _turned(self, tensor: Tensor, shape: Sequence[int], order: Sequence[int]) -> Array:
        """``tensor`` with its dimensions in another order, copied before the loop."""
        if tensor not in self._arrays:
            axes = [Axis(f"{tensor.name}{n}", 0, e) for n, e in enumerate(shape)]
            self._arrays[tensor] = Array(tuple(_ordered(axes, order)), Read(tensor, axes))
        return self._arrays[tensor]

    def _inside(self, read: Read, place: Place, moving: list[int], table: dict[Expr, Expr]) -> Expr:
        if len(moving) != 1:
            raise NoBlock(f"{text(read)} is more than the block of {place.axis.name}")
        index = substitute(read.indices[moving[0]], {place.axis: place.meaning})
        if not same_index(index, self.origin + place.at):
            raise NoBlock(f"{text(read)} is more than the block of {place.axis.name}")
        if int(read.tensor.axes[moving[0]].hi) < self.extent:
            raise NoBlock(f"{text(read)} leaves {read.tensor.name} for some {place.axis.name}")
        own = self.block(read.tensor, moving[0])
        indices = [place.at if n in moving else substitute(i, table) for n, i in enumerate(read.indices)]
        return Read(own, _ordered(indices, self._order((read.tensor, moving[0]))))

    def _slice(self, source: Tensor | Array, name: str, windows: tuple[Window, ...]) -> Tensor:
        """The placeholder for a part of ``source``."""
        if not windows:
            assert isinstance(source, Tensor)
            return source
        key = (source, windows)
        if key not in self.slices:
            shape = list(source.shape)
            for window in windows:
                shape[window.dim] = window.length
            label = source.name if isinstance(source, Tensor) else reads_of(source.body)[0].tensor.name
            part = Placeholder(f"{label}_{name}", tuple(shape), source.dtype)
            self.slices[key] = Slice(part, source, windows)
        return self.slices[key].part


def _ordered(items: Sequence[Any], order: Sequence[int]) -> list[Any]:
    return [items[n] for n in order]
