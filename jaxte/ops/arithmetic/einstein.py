"""Sums of products in Einstein's notation."""

from __future__ import annotations

import functools
import operator as arithmetic
from collections.abc import Sequence
from typing import Any, overload

import jax
from jax.typing import ArrayLike

from jaxte.lang.checks import counted, described, wants_arguments
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import operator
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, same_extent, shape_text
from jaxte.tensors.tensor import Tensor


@overload
def einsum(subscripts: str, *operands: Tensor) -> Tensor: ...
@overload
def einsum(subscripts: str, *operands: ArrayLike) -> jax.Array: ...
@wants_arguments
def einsum(subscripts: str, *operands: Any) -> Any:
    """The sum of products over all indices that the result does not have.

    Args:
        subscripts: "ij,jk->ik": a letter for each axis of each operand, then those of the result; without "->" the letters
            that stand once, in alphabetical order. "..." are further axes, which broadcast. A letter twice in one operand
            is its diagonal.
        operands: Tensors or arrays.

    Formula: ``y[i, k] = sum over j of a[i, j] * b[j, k]`` for "ij,jk->ik"

    Raises:
        ArgumentError: text that is not of this form.
        ShapeError: numbers of operands, axes or extents that do not fit.

    Source: ``jnp.einsum``.

    Example:
        >>> te.ops.einsum("ij,j->i", np.float32([[1, 2], [3, 4]]), np.float32([1, 10])).tolist()
        [21.0, 43.0]
    """
    return _einsum(list(operands), subscripts)


def _built(operands: Sequence[Tensor], subscripts: str) -> Tensor:
    terms, result = _parsed(subscripts, operands)
    sizes = _sizes(terms, operands, subscripts)
    for letter in result:
        if letter not in sizes or result.count(letter) > 1:
            raise ArgumentError(
                f"te.ops.einsum: subscripts={subscripts!r}: the result has {_shown(letter)}, which must stand in an operand, "
                "and once in the result"
            )
    summed = {
        a: r.reduce_axis((0, e), a if a.isalpha() else None) for a, e in sizes.items() if a not in result
    }

    def body(*i: Expr) -> Expr:
        at = dict(zip(result, i, strict=True)) | summed
        factors = []
        for letters, x in zip(terms, operands, strict=True):
            repeated = [
                same_extent(e, 1) and not same_extent(sizes[a], 1)
                for a, e in zip(letters, x.shape, strict=True)
            ]
            factors.append(x[tuple(0 if one else at[a] for a, one in zip(letters, repeated, strict=True))])
        product = functools.reduce(arithmetic.mul, factors)
        return r.sum(product, axis=list(summed.values())) if summed else product

    return compute([sizes[a] for a in result], body, "einsum")


_built.__name__ = "einsum"
_einsum = operator(_built)


def _parsed(subscripts: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand and of the result; "..." as numbers, counted from the last axis on."""
    if not isinstance(subscripts, str):
        raise ArgumentError(
            f"te.ops.einsum: subscripts is {described(subscripts)}; give a string such as 'ij,jk->ik'"
        )
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        raise ShapeError(
            f"te.ops.einsum: subscripts={subscripts!r} has {len(texts)} operands, but {len(operands)} are given"
        )
    terms = [_letters(t, x.ndim, x, subscripts) for t, x in zip(texts, operands, strict=True)]
    dots = sorted({a for term in terms for a in term if not a.isalpha()}, key=int, reverse=True)
    if not arrow:
        every = [a for term in terms for a in term if a.isalpha()]
        return terms, [*dots, *sorted(a for a in set(every) if every.count(a) == 1)]
    before, ellipsis, after = right.partition("...")
    if not (before + after).isalpha() and before + after:
        raise ArgumentError(f"te.ops.einsum: subscripts={subscripts!r}; give letters, commas, '...' and '->'")
    return terms, [*before, *(dots if ellipsis else ()), *after]


def _letters(text: str, ndim: int, x: Tensor, subscripts: str) -> list[str]:
    before, ellipsis, after = text.partition("...")
    if (before + after) and not (before + after).isalpha():
        raise ArgumentError(f"te.ops.einsum: subscripts={subscripts!r}; give letters, commas, '...' and '->'")
    more = ndim - len(before) - len(after)
    if more < 0 or (more and not ellipsis):
        raise ShapeError(
            f"te.ops.einsum: {text!r} in subscripts={subscripts!r} names {len(before + after)} axes, but {x.name} "
            f"{shape_text(x.shape)} has {ndim}"
        )
    return [*before, *(str(n) for n in reversed(range(more))), *after]


def _sizes(terms: list[list[str]], operands: Sequence[Tensor], subscripts: str) -> dict[str, Extent]:
    """The extent of each letter; those of "..." may be 1 in some operands."""
    sizes: dict[str, Extent] = {}
    for letters, x in zip(terms, operands, strict=True):
        for a, extent in zip(letters, x.shape, strict=True):
            known = sizes.get(a, extent)
            if same_extent(known, 1) and not a.isalpha():
                known = extent
            if not same_extent(known, extent) and (a.isalpha() or not same_extent(extent, 1)):
                raise ShapeError(
                    f"te.ops.einsum: {_shown(a)} of subscripts={subscripts!r} has {counted(extent, 'element', 'elements')} in {x.name} "
                    f"{shape_text(x.shape)} and {sizes[a]} elsewhere; must be equal"
                )
            sizes[a] = known
    return sizes


def _shown(letter: str) -> str:
    return repr(letter) if letter.isalpha() else "an axis of '...'"
