"""The letters of an einsum: the names of axes where they are letters, in the order in which the largest operand lies in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from string import ascii_letters

from jaxte.lang.expr import Axis
from jaxte.lang.identity import among
from jaxte.lower.code.vocabulary import Value
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
