"""Uses of axes without a range: the indices that they stand in, and how errors show these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from weakref import ref

from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import ZERO, Axis, Const, Expr, Read, Var, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.interning import new_node
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.affine import normal
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.shapes import shape_text

_numbers = count()

_REMEDIES = {
    True: "give it a range, as te.reduce_axis((0, n), {name!r}) does",
    False: "give te.compute a shape",
}


class OpenAxis(Axis):
    """An axis from 0 to an end that is not known yet, for which a size of its own stands.

    Attributes:
        stated: expressions that have as many parts along the axis as stand beside them, which the axis does not keep alive.
    """

    __slots__ = ("stated",)
    stated: list[tuple[ref[Expr], Expr]]
    is_open = True

    def __new__(cls, name: str, reduction: bool = True) -> OpenAxis:
        like = Axis(name, ZERO, Var(f"the extent of {name}, {next(_numbers)}"), reduction)
        fields = {own: getattr(like, own) for own in (*Axis.__slots__, "dtype", "weak")}
        made: OpenAxis = new_node(cls, {**fields, "stated": []})
        return made

    def __reduce__(self) -> Any:
        return OpenAxis, (self.name, self.reduction)

    def state(self, joined: Expr, extent: Expr) -> None:
        """That ``joined`` has ``extent`` elements along the axis."""
        self.stated[:] = [*((at, n) for at, n in self.stated if at() is not None), (ref(joined), extent)]


class OpenRangeError(ShapeError):
    """An axis whose range the reads do not determine.

    Attributes:
        axis: which one.
        places: the indices that it stands in, each as the read and the position in it.
        reason: the message without its remedy.
        remedy: how to go on, None where a range has to be given.
    """

    def __init__(
        self, axis: Axis, places: Sequence[tuple[Read, int]], reason: str, remedy: str | None = None
    ) -> None:
        own = _REMEDIES[axis.reduction].format(name=axis.name) if remedy is None else remedy
        super().__init__("\n".join([reason, *(_marked(*place) for place in places), own]))
        self.axis, self.places, self.reason, self.remedy = axis, tuple(places), reason, remedy


def _marked(read: Read, position: int) -> str:
    """A read with a caret under one of its indices."""
    before = text(read).index("[") + 1 + sum(len(text(i)) + 2 for i in read.indices[:position])
    return f"  … {text(read)} …\n    {' ' * before}{'^' * len(text(read.indices[position]))}"


@dataclass(frozen=True, eq=False)
class Use:
    """An index of a read in which open axes stand."""

    read: Read
    position: int
    index: Expr
    scope: tuple[Axis, ...]
    conditions: tuple[Expr, ...]
    axes: tuple[OpenAxis, ...]

    @property
    def extent(self) -> Expr:
        return as_expr(self.read.tensor.shape[self.position])

    @property
    def is_plain(self) -> bool:
        """Whether it says that the axis has as many values as the tensor has elements."""
        return isinstance(self.index, OpenAxis) and not self.conditions


def uses_of(axes: Sequence[Axis], body: Expr, unknown: Sequence[OpenAxis]) -> list[Use]:
    found = []
    targets = {read for read in reads_of(body) if any(among(a, free_axes(read)) for a in unknown)}
    for read, scope, conditions in contexts(axes, body, targets):
        for position, index in enumerate(read.indices):
            own = tuple(a for a in free_axes(index) if isinstance(a, OpenAxis))
            if own and not reads_of(index):
                found.append(Use(read, position, index, tuple(dict.fromkeys(scope)), conditions, own))
    return found


def towards_zero(own: OpenAxis, use: Use) -> str:
    """How to go on where the first position is outside of the tensor."""
    first, second = (normal(substitute(use.index, {own: as_expr(n)})) for n in (0, 1))
    if isinstance(first, Const) and first.value == -1 and isinstance(second, Const) and second.value == -2:
        return f"positions are counted from 0; in reverse they are {text(use.extent - 1 - own)}"
    return "shift the index, make the tensor longer, or say what lies outside: pad= of te.einsum, or te.select around the read"


def falls_from_zero(own: OpenAxis, use: Use) -> bool:
    """Whether an index is ``-i``, which Python's lists count from their end."""
    first, second = (normal(substitute(use.index, {own: as_expr(n)})) for n in (0, 1))
    return first is ZERO and isinstance(second, Const) and isinstance(second.value, int) and second.value < 0


def contradiction(own: OpenAxis, a: Use, b: Use) -> OpenRangeError:
    listed = " and ".join(
        f"{text(u.extent)} values in `{text(u.read)}` (axis {u.position} of {u.read.tensor.name} {shape_text(u.read.tensor.shape)})"
        for u in (a, b)
    )
    return OpenRangeError(
        own,
        [(a.read, a.position), (b.read, b.position)],
        f"{own.name} has {listed}, and cannot have both",
        "make these extents equal, or use two axes",
    )


def joined_otherwise(own: OpenAxis, extent: Expr, use: Use) -> OpenRangeError:
    return OpenRangeError(
        own,
        [(use.read, use.position)],
        f"what is joined along {own.name} has {text(extent)} elements, and `{text(use.read)}` has {text(use.extent)} of them",
        "make these extents equal, or use two axes",
    )


def undetermined(unknown: Sequence[OpenAxis], uses: Sequence[Use]) -> OpenRangeError:
    own = next((a for a in unknown if a.reduction), unknown[0])
    places = [u for u in uses if among(own, u.axes)]
    if not places:
        return OpenRangeError(own, [], f"the range of {own.name} is open: no read has it in an index")
    others = [b.name for b in unknown if b is not own and among(b, places[0].axes)]
    beside = f" beside {' and '.join(others)}, of which the range is open too" if others else ""
    why = f"{own.name} stands in `{text(places[0].read)}`{beside}"
    if not others:
        why += ", which stays inside for any value of it"
    return OpenRangeError(
        own, [(u.read, u.position) for u in places], f"the range of {own.name} is open: {why}"
    )
