"""Extrema, and their elements as they are compared: where they are read, or held once computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from jaxte.autodiff.rules.prefixes import first_along_others, own_axes
from jaxte.autodiff.terms.beside import Held, beside, is_of_before, may_exist, may_read_windows_again
from jaxte.autodiff.terms.places import ENDS, fresh, has_same_bits, is_rounded, points_of
from jaxte.lang.expr import Axis, Expr, Read, Reduce, call, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.operators import GREATER, LESS, SELECT
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, reads_of, substitute, with_tensors
from jaxte.sets.affine import normal
from jaxte.sets.domain import IntegerSet
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.solving.elimination import mentions
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.reductions import position_of
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor

_NUMBERED = ("winner", "places", *ENDS.kinds)  # kinds of tensors that hold numbers of points


@dataclass(frozen=True)
class Extremum:
    """The maximum or minimum ``tensor``, its reduction ``node``, the element that is compared, and with what, if not with the ``tensor``."""

    tensor: Compute
    node: Reduce
    element: Expr
    found: Expr | None = None

    @property
    def axes(self) -> list[Axis]:
        """Those of the tensor's axes that its elements differ along."""
        return own_axes(self.tensor)

    @property
    def value(self) -> Expr:
        return first_along_others(self.tensor) if self.found is None else self.found

    def is_behind(self, value: Expr) -> Expr:
        """Whether the element is less than a maximum ``value``, or greater than a minimum."""
        return call(LESS if self.node.reducer.name == "max" else GREATER, self.element, value)

    @property
    def ties(self) -> str:
        return self.node.reducer.ties

    @property
    def may_be_empty(self) -> bool:
        """Whether conditions may leave no point to the reduction: the ties that are divided by are one there, not zero."""
        conditions = conjuncts(self.node.where)
        if not all(is_decidable(c) for c in conditions):
            return True
        outer = [a for a in self.axes if mentions(self.node.where, [a])]
        return not IntegerSet((*outer, *self.node.axes), conditions).covers(outer)

    @property
    def position(self) -> Expr:
        return position_of(self.node.axes)

    @property
    def numbering(self) -> str:
        """How :attr:`position` counts, which another spelling of the reduction may do otherwise."""
        return ", ".join(f"{a.name} from {text(a.lo)} to {text(a.hi)}" for a in self.node.axes)

    @property
    def points(self) -> Expr:
        """How many points the reduction has."""
        return points_of(self.node.axes)

    def read(self, kind: str, body: Callable[[], Expr]) -> Expr:
        """An element of the tensor ``kind``, with the ``body`` in terms of the extremum's own axes.

        What the adjoints of all that the extremum reads have in common is one tensor, made for the first of them.
        """

        def made() -> Compute:
            axes, table = fresh(self.axes)
            return Compute(f"{kind}_{self.tensor.name}", axes, substitute(body(), table))

        numbering = self.numbering if kind in _NUMBERED else ""
        return Read(beside(self.tensor, kind, made, numbering), self.axes)


def as_read(extremum: Extremum) -> Extremum | None:
    """The same where all elements are read from memory, or have the same bits in every loop; None where some may not.

    What is read and computed is computed once, before all elements: that tensor is held, and the extremum found again. Inputs are held for elements
    that are computed: the caller may compute them in the loops that read them.
    """
    node, of_inputs = extremum.node, is_rounded(extremum.element)
    axes = [*extremum.axes, *node.axes]
    read = [
        r
        for r in reads_of(extremum.element)
        if not is_of_before(r, extremum.axes) and _may_differ(r.tensor, of_inputs)
    ]
    if not has_same_bits(extremum.element) or not all(_is_read_again(r, axes) for r in read):
        return None
    if not read:
        return extremum
    tensors = dict.fromkeys(r.tensor for r in read)
    if any(isinstance(t, State) for t in topological_order(list(tensors))) or not all(
        map(may_exist, tensors)
    ):
        return None
    if of_inputs and not may_read_windows_again() and any(map(_is_window, read)):
        return None
    whole = {t: beside(t, "whole", partial(_held_whole, t)) for t in tensors}
    return found_again(extremum, with_tensors(extremum.element, whole))


def _may_differ(tensor: Tensor, of_inputs: bool) -> bool:
    """Whether a loop may compute ``tensor`` again, and round it in another way; ``of_inputs``: whether inputs count among these."""
    return any(
        is_rounded(t.body) if isinstance(t, Compute) else of_inputs and isinstance(t, (Placeholder, Extern))
        for t in topological_order([tensor])
    )


def _held_whole(tensor: Tensor) -> Compute:
    axes = tuple(Axis(f"i{n}", 0, extent) for n, extent in enumerate(tensor.shape))
    if isinstance(tensor, Compute):
        axes, _ = fresh(tensor.axes)
    return Held(f"whole_{tensor.name}", axes, Read(tensor, axes))


def found_again(extremum: Extremum, element: Expr) -> Extremum:
    """The same of ``element``, which is held, and of the extremum of that: the one of the definition may have been rounded otherwise."""
    node = extremum.node
    best = extremum.read("best", lambda: node.changed(exprs=(element,)))
    return replace(extremum, element=element, found=best)


def of_one_tensor(extremum: Extremum, kind: type[Compute] = Compute) -> Expr:
    """The element as one of a tensor: what all passes over the elements compute, in tiles where it is large."""
    tensor, node, outside = extremum.tensor, extremum.node, extremum.axes
    if isinstance(extremum.element, Read) and kind is Compute:
        return extremum.element

    def made() -> Compute:
        own = [Axis(a.name, 0, a.extent) for a in node.axes]
        outer, table = fresh(outside)
        table |= {old: normal(new + old.lo) for old, new in zip(node.axes, own, strict=True)}
        element = substitute(extremum.element, table)
        body = call(SELECT, substitute(node.where, table), element, node.reducer.identity[0])
        return kind(f"elements_{tensor.name}", (*outer, *own), body)

    at = (*outside, *(normal(a - a.lo) for a in node.axes))
    return Read(beside(tensor, "held" if kind is Held else "elements", made), at)


def _is_read_again(read: Read, axes: Sequence[Axis]) -> bool:
    """Whether several elements over ``axes`` read the same element: in overlapping windows, or because some of the axes are not asked."""
    own = [free_axes(index) for index in read.indices]
    return _is_window(read) or not all(any(among(axis, a) for a in own) for axis in axes)


def _is_window(read: Read) -> bool:
    return any(len(free_axes(index)) > 1 for index in read.indices)
