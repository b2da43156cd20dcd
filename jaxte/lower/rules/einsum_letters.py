"""The letters of an einsum: the names of axes where they are letters, in the order in which the largest operand lies in memory; the order of operands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from string import ascii_letters

from jaxte.lang.expr import Axis
from jaxte.lang.identity import among, identical
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.default_work import NARROW
from jaxte.sets.intervals import extent_of


def letters_of(values: Sequence[Value], out: Sequence[Axis]) -> dict[Axis, str]:
    """One letter for each dimension of ``values``, whose product is over ``out``."""
    return _in_memory_order(_letters([d for v in values for d in v.dims]), values, out)


def _letters(dims: Sequence[Axis]) -> dict[Axis, str]:
    """One letter for each dimension: the axis's own name where that is a letter, each letter once."""
    found: dict[Axis, str] = {}
    distinct = list(dict.fromkeys(dims))
    for dim in distinct:
        first = dim.name[:1]
        if len(dim.name) == 1 and first.isascii() and first.isalpha() and first not in found.values():
            found[dim] = first
    spare = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for dim in distinct:
        if dim in found:
            continue
        first = dim.name[:1]
        if first.isascii() and first.isalpha() and first not in found.values():
            found[dim] = first
        else:
            found[dim] = next(letter for letter in spare if letter not in found.values())
    return found


def _in_memory_order(
    letters: dict[Axis, str], values: Sequence[Value], out: Sequence[Axis]
) -> dict[Axis, str]:
    """``letters`` with those of what is summed over in the order in which the largest operand has them.

    ``jnp.einsum`` contracts dimensions in the order of the alphabet: by other letters XLA transposes operands that lie as they should.
    """
    largest = max(values, key=lambda v: prod(extent_of(d.hi) for d in v.dims))
    summed = [d for d in dict.fromkeys((*largest.dims, *letters)) if not among(d, out)]
    found = dict(letters)
    for before, dim in pairwise(summed):
        if found[dim] < found[before]:
            free = (c for c in ascii_letters if c > found[before] and c not in found.values())
            found[dim] = next(free, found[dim])
    return found


def in_good_order(values: Sequence[Value], out: Sequence[Axis]) -> Sequence[Value]:
    """``values``, whose product is over ``out``, in the order in which XLA copies least of two operands."""
    if len(values) != 2:
        return values
    for vector, other in (values, values[::-1]):
        at_first = _summed_first(vector, other, out)
        if at_first is not None:
            return [vector, other] if at_first else [other, vector]
    return _small_first(values, out)


def _summed_first(vector: Value, other: Value, out: Sequence[Axis]) -> bool | None:
    """Whether ``other`` has the dimensions that are summed over in front of those that only it has, or behind them.

    None where they stand otherwise, where ``vector`` is a matrix, or ``other`` has two dimensions. The first operand of a product of matrices has what is
    summed behind, the second one in front. XLA on the CPU copies what has it in the other place, matrices excepted. A vector may be either.
    """
    summed = [d for d in vector.dims if not among(d, out)]
    left = [d for d in other.dims if not (among(d, out) and among(d, vector.dims))]
    if not summed or len(left) < 3 or any(among(d, out) and not among(d, other.dims) for d in vector.dims):
        return None
    if set(left[: len(summed)]) == set(summed):
        return True
    return False if set(left[-len(summed) :]) == set(summed) else None


def _small_first(values: Sequence[Value], out: Sequence[Axis]) -> Sequence[Value]:
    """Two ``values``, the one of fewer elements first, where the product of matrices has its dimensions in another order than ``out``.

    The dimensions of the larger operand are those that change fastest in that product then, and the copy that brings it into order moves rows. (A layer in
    tensor-train form takes half of the time, forward and backward.)
    """
    dims = [set(v.dims) for v in values]
    both = [d for d in out if all(d in own for own in dims)]
    alone = [[d for d in v.dims if among(d, out) and not among(d, both)] for v in values]
    given = [(*both, *alone[0], *alone[1]), (*both, *alone[1], *alone[0])]
    summed = prod(extent_of(d.hi) for d in dims[0] & dims[1] if not among(d, out))
    if summed < NARROW or not all(alone) or any(identical(order, tuple(out)) for order in given):
        return values
    sizes = [prod(extent_of(d.hi) for d in v.dims) for v in values]
    return [values[1], values[0]] if sizes[1] < sizes[0] else values
