"""Whether arrays have the facts that were stated of their tensors: the debug mode of ``jaxte.tensors.facts``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxte.lang.checks import counted, described
from jaxte.lang.errors import FeedError
from jaxte.lang.expr import Expr, Var
from jaxte.lang.walk import all_of
from jaxte.meaning.feeds import bind_sizes, size_value
from jaxte.tensors.facts import Finite, Permutation, Sorted, SymmetricAdjacency, Unique, Within
from jaxte.tensors.tensor import Tensor

Place = tuple[int, ...]


def check_facts(feeds: Mapping[Tensor, ArrayLike]) -> None:
    """Tests every fact of the tensors in ``feeds`` on their arrays.

    A fact that refers to another tensor is tested against its array too, where ``feeds`` has it.

    Args:
        feeds: ``{tensor: array}``.

    Raises:
        FeedError: a fact that is false, with the first element that shows it; or arrays that do not fit their tensors.

    Example:
        >>> te.check_facts({P: np.array([2, 0, 1]), Q: np.array([1, 2, 0])})
    """
    if not isinstance(feeds, Mapping):
        raise FeedError(f"te.check_facts is given {described(feeds)}; give {{tensor: array}}")
    for tensor in feeds:
        if not isinstance(tensor, Tensor):
            raise FeedError(f"te.check_facts: the key {tensor!r} is no tensor; give {{tensor: array}}")
    arrays = {tensor: np.asarray(array) for tensor, array in feeds.items()}
    for tensor, array in arrays.items():
        if array.ndim != tensor.ndim:
            raise FeedError(
                f"{tensor!r} is given an array of shape {array.shape}; it has {counted(tensor.ndim, 'axis', 'axes')}"
            )
    for tensor, array in arrays.items():
        for fact in tensor.facts:
            for complaint in _complaints(tensor, array, _with_sizes(fact, arrays), arrays):
                raise FeedError(f"{complaint}; correct the array of {tensor.name}, or leave the fact out")


def _with_sizes(fact: Any, arrays: Mapping[Tensor, np.ndarray]) -> Any:
    """``fact`` with the value of a symbolic size in it, where the shapes of ``arrays`` tell it."""
    if not (isinstance(fact, Within) and isinstance(fact.stop, Expr)):
        return fact
    sizes = bind_sizes(arrays)
    known = all(node in sizes for node in all_of(Var, fact.stop))
    return Within(size_value(fact.stop, sizes)) if known else fact


def _complaints(
    tensor: Tensor, array: np.ndarray, fact: Any, arrays: Mapping[Tensor, np.ndarray]
) -> Iterator[str]:
    name = tensor.name
    match fact:
        case Permutation(inverse):
            yield from _outside(name, array, array.shape[-1], "a permutation")
            yield from _repeated(name, array, "a permutation")
            if inverse in arrays and inverse is not None:
                yield from _not_inverse(name, array, inverse.name, arrays[inverse])
        case Unique():
            yield from _repeated(name, array, "unique")
        case Sorted():
            for at in _first(array[..., 1:] < array[..., :-1]):
                after = (*at[:-1], at[-1] + 1)
                yield f"{name} is stated to be sorted, but {_at(name, after, array)} is below {_at(name, at, array)}"
        case Finite():
            for at in _first(~np.isfinite(array)):
                yield f"{name} is stated to be finite, but {_at(name, at, array)} is not"
        case Within(Integral() as stop):
            yield from _outside(name, array, int(stop), f"within {stop}")
        case SymmetricAdjacency(slot):
            yield from _outside(name, array, array.shape[0], "an adjacency")
            yield from _asymmetric(name, array)
            if slot in arrays and slot is not None:
                yield from _wrong_slot(name, array, slot.name, arrays[slot])


def _outside(name: str, array: np.ndarray, stop: int, what: str) -> Iterator[str]:
    for at in _first((array < 0) | (array >= stop)):
        yield f"{name} is stated to be {what}, but {_at(name, at, array)} is not in [0, {stop})"


def _repeated(name: str, array: np.ndarray, what: str) -> Iterator[str]:
    order = np.argsort(array, axis=-1, kind="stable")
    ranked = np.take_along_axis(array, order, -1)
    for at in _first(ranked[..., 1:] == ranked[..., :-1]):
        first, second = ((*at[:-1], int(order[(*at[:-1], at[-1] + n)])) for n in (0, 1))
        yield f"{name} is stated to be {what}, but {_at(name, first, array)} and {_at(name, second, array)} are alike"


def _not_inverse(name: str, array: np.ndarray, other: str, inverse: np.ndarray) -> Iterator[str]:
    back = np.take_along_axis(inverse, array, -1)
    for at in _first(back != np.arange(array.shape[-1])):
        yield (
            f"{other} is stated to be the inverse of {name}, but {_at(name, at, array)} and "
            f"{other}[{', '.join(map(str, (*at[:-1], int(array[at]))))}] = {back[at]}"
        )


def _asymmetric(name: str, array: np.ndarray) -> Iterator[str]:
    rows = np.broadcast_to(np.arange(array.shape[0])[:, None], array.shape)
    pairs = np.stack([rows.ravel(), array.ravel()], axis=1)
    there, count = np.unique(pairs, axis=0, return_counts=True)
    counts = dict(zip(map(tuple, there.tolist()), count.tolist(), strict=True))
    for (row, neighbour), times in counts.items():
        back = counts.get((neighbour, row), 0)
        if back != times:
            yield (
                f"{name} is stated to be a symmetric adjacency, but row {row} lists {neighbour} {times} times and "
                f"row {neighbour} lists {row} {back} times"
            )


def _wrong_slot(name: str, array: np.ndarray, other: str, slot: np.ndarray) -> Iterator[str]:
    yield from _outside(other, slot, array.shape[1], f"the slot of {name}")
    for at in _first(array[array, slot] != np.arange(array.shape[0])[:, None]):
        yield (
            f"{other} is stated to be the slot of {name}, but {name}[{name}[{at[0]}, {at[1]}], "
            f"{other}[{at[0]}, {at[1]}]] is {array[array[at], slot[at]]} and not {at[0]}"
        )


def _first(wrong: np.ndarray) -> Iterator[Place]:
    """The first place that is true, if there is one."""
    places = np.argwhere(wrong)
    if len(places):
        yield tuple(map(int, places[0]))


def _at(name: str, at: Place, array: np.ndarray) -> str:
    return f"{name}[{', '.join(map(str, at))}] = {array[at]}"
