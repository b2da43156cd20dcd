"""Tensors that adjoints need beside one of the graph, as the places of its maxima: all adjoints of it read the same.

They are found again as long as a graph holds them. Neither tensor keeps the other one alive through this module.

Elements that are computed once, so that all who compare them find the same bits; where memory allows it.

An extremum of computed elements is asked for the places that equal it. XLA computes a producer again in each fusion that reads it, and may round
it in another way each time, unless a barrier holds it (docs/design/places-of-maxima.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from types import MappingProxyType
from weakref import WeakValueDictionary

from jaxte.autodiff.terms.places import ENDS
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW, MOST_HELD
from jaxte.sets.intervals import known
from jaxte.tensors.shapes import Shape
from jaxte.tensors.tensor import Compute, Tensor

KINDS = ("winner", "ties", "places", "elements", "held", "whole", "best", *ENDS.kinds)
_made: WeakValueDictionary[tuple[Tensor, str], Compute] = WeakValueDictionary()
_SAME = "same"
_better: ContextVar[Callable[[Compute], Compute]] = ContextVar("_better", default=lambda made: made)


@contextmanager
def made_better(better: Callable[[Compute], Compute]) -> Iterator[None]:
    """Tensors that are made here are what ``better`` makes of them: planned as adjoints are."""
    token = _better.set(better)
    try:
        yield
    finally:
        _better.reset(token)


def same_elements(tensor: Compute, known: Compute) -> None:
    """Says that ``tensor`` has the elements of ``known``, whose tensors beside it are its own."""
    _made[tensor, _SAME] = known


def beside(tensor: Tensor, kind: str, make: Callable[[], Compute], numbering: str = "") -> Compute:
    """The tensor ``kind`` beside ``tensor``; the first one asked for is made.

    One whose elements are numbers of points says by ``numbering`` how they are counted: the same reduction over fewer axes counts its points otherwise.
    """
    tensor = _made.get((tensor, _SAME), tensor)
    if numbering:
        return _numbered(tensor, kind, make, numbering)
    found = _made.get((tensor, kind))
    if found is None:
        found = _made[tensor, kind] = _better.get()(make())
    return found


def _numbered(tensor: Tensor, kind: str, make: Callable[[], Compute], numbering: str) -> Compute:
    """The tensor ``kind`` that counts by ``numbering``: the first one, unless that counts by another."""
    counted, first = f"{kind} by {numbering}", f"{kind} by some numbering"
    found = _made.get((tensor, counted))
    if found is None:
        is_other = _made.get((tensor, first)) is not None
        found = _made[tensor, counted] = beside(tensor, counted if is_other else kind, make)
        if not is_other:
            _made[tensor, first] = found
    return found


def owners() -> dict[Compute, Tensor]:
    """The tensors that there are beside others, and those: an adjoint of an adjoint has some beside what is beside a tensor of the user's."""
    return {made: owner for (owner, kind), made in _made.items() if kind != _SAME}


def all_beside(tensor: Compute) -> dict[str, Compute]:
    """The tensors beside ``tensor`` that there are, by their kinds."""
    return {kind: found for kind in KINDS if (found := _made.get((tensor, kind))) is not None}


_clocks: ContextVar[Mapping[Tensor, int]] = ContextVar("_clocks", default=MappingProxyType({}))


@contextmanager
def within_steps(places: Mapping[Tensor, int]) -> Iterator[None]:
    """Derivations of what a loop computes step by step: which axis of each state the steps are counted along."""
    token = _clocks.set({**_clocks.get(), **places})
    try:
        yield
    finally:
        _clocks.reset(token)


def is_of_before(read: Read, axes: Sequence[Axis]) -> bool:
    """Whether ``read``, in a definition over ``axes``, is of what an earlier step has left in memory, where no loop computes it again.

    A few steps are no loop: they are written one after the other, and fused.
    """
    place = _clocks.get().get(read.tensor)
    if place is None or among(read.indices[place], axes):
        return False
    steps = known(as_expr(read.tensor.shape[place]))
    return steps is None or steps > FEW


_budget: ContextVar[int | None] = ContextVar("_budget", default=None)
_windows_again: ContextVar[bool] = ContextVar("_windows_again", default=True)
_many_loops: ContextVar[bool] = ContextVar("_many_loops", default=True)


@contextmanager
def within(budget: int | None, windows_again: bool, many_loops: bool) -> Iterator[None]:
    """Derivations that hold nothing above ``budget`` bytes, which the user gave for all tensors.

    ``windows_again`` says whether overlapping windows may be read once more for each question about them, which takes as long as the first time on
    some platforms; ``many_loops`` whether these start for nothing, so that several times as many short ones are no loss.
    """
    tokens = _budget.set(budget), _windows_again.set(windows_again), _many_loops.set(many_loops)
    try:
        yield
    finally:
        _budget.reset(tokens[0])
        _windows_again.reset(tokens[1])
        _many_loops.reset(tokens[2])


def may_have_many_loops() -> bool:
    """Whether a loop over few elements takes no longer than these take."""
    return _many_loops.get()


def may_read_windows_again() -> bool:
    """Whether elements of windows that are computed may be compared in several loops, and not in the one that computes them."""
    return _windows_again.get()


def may_be_held(axes: Sequence[Axis], dtype: str) -> bool:
    """Whether elements over ``axes`` are few enough to be computed once, and kept until all that is asked of them is answered."""
    size = _bytes(tuple(axis.extent for axis in axes), dtype)
    most = _budget.get()
    return size is not None and size <= (MOST_HELD if most is None else min(most, MOST_HELD))


def may_exist(tensor: Tensor) -> bool:
    """Whether ``tensor``, an input or one of the definition, is within what the user gave for all tensors."""
    return fits(tensor.shape, tensor.dtype)


def fits(shape: Shape, dtype: str) -> bool:
    """Whether an array of ``shape`` is within what the user gave for all tensors."""
    most, size = _budget.get(), _bytes(shape, dtype)
    return most is None or (size is not None and size <= most)


def _bytes(shape: Shape, dtype: str) -> int | None:
    """What an array of ``shape`` takes; None where an extent is not known yet."""
    extents = [known(as_expr(extent)) for extent in shape]
    return None if None in extents else dtypes.width(dtype) * prod(e for e in extents if e is not None)


class Held(Compute):
    """Elements that are computed once, and in whole: all that reads them finds the same bits."""

    __slots__ = ()

    def alike(self, name: str, axes: Sequence[Axis], body: Expr) -> Compute:
        return Held(name, axes, body)
