"""Products of tensors, and sums of products in Einstein's notation."""

from __future__ import annotations

import functools
import operator as arithmetic
from collections.abc import Sequence
from typing import Any, overload

import jax
from jax.typing import ArrayLike

from jaxte.lang.checks import counted, described, wants_arguments
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.ops._operator import PairedAxes, element, normal_axis, operator
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, broadcast_shapes, same_extent, shape_text
from jaxte.tensors.tensor import Tensor


def check_equal(a: Extent, b: Extent, what: str) -> None:
    """Raises unless two extents are the same."""
    if as_expr(a) is not as_expr(b):
        raise ShapeError(
            f"te.ops.{what}: {shape_text((a,))[1:-2]} and {shape_text((b,))[1:-2]} elements; must be equal"
        )


@operator
def tensordot(a: Tensor, b: Tensor, axes: PairedAxes = 2) -> Tensor:
    """The sum of products over axes of both: the last ``axes`` of ``a`` with the first of ``b``, or lists of each.

    Formula: ``y[i, j] = sum over k of a[i, k] * b[k, j]``

    Raises:
        ShapeError: numbers of axes or extents that differ.

    Source: ``jnp.tensordot``.

    Example:
        >>> te.ops.tensordot(np.float32([[1, 2]]), np.float32([3, 4]), 1).tolist()
        [11.0]
    """
    first, second = _paired_axes(a, b, axes)
    own = []
    for left, right in zip(first, second, strict=True):
        check_equal(
            a.shape[left], b.shape[right], f"tensordot: axis {left} of {a.name} and axis {right} of {b.name}"
        )
        own.append(r.reduce_axis((0, a.shape[left]), f"k{left}"))
    kept_a = [n for n in range(a.ndim) if n not in first]
    kept_b = [n for n in range(b.ndim) if n not in second]

    def body(*i: Expr) -> Expr:
        at_a = dict(zip(first, own, strict=True)) | dict(zip(kept_a, i[: len(kept_a)], strict=True))
        at_b = dict(zip(second, own, strict=True)) | dict(zip(kept_b, i[len(kept_a) :], strict=True))
        product = a[tuple(at_a[n] for n in range(a.ndim))] * b[tuple(at_b[n] for n in range(b.ndim))]
        return r.sum(product, axis=own) if own else product

    return compute([a.shape[n] for n in kept_a] + [b.shape[n] for n in kept_b], body, "tensordot")


def _paired_axes(a: Tensor, b: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    if hasattr(axes, "__index__"):
        count = int(axes)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"te.ops.tensordot: axes={count}, but {a.name} has {counted(a.ndim, 'axis', 'axes')} and {b.name} {b.ndim}"
            )
        return list(range(a.ndim - count, a.ndim)), list(range(count))
    first, second = ([n] if hasattr(n, "__index__") else list(n) for n in axes)
    if len(first) != len(second) or len(set(first)) != len(first) or len(set(second)) != len(second):
        raise ShapeError(
            f"te.ops.tensordot: axes={axes!r}; give as many different axes of {a.name} as of {b.name}"
        )
    return (
        [normal_axis(n, a.ndim, "tensordot") for n in first],
        [normal_axis(n, b.ndim, "tensordot") for n in second],
    )


@operator
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product over the last two axes, as ``jnp.matmul``: vectors allowed, other axes broadcast.

    Formula: ``y[i, j] = sum over k of a[i, k] * b[k, j]``

    Raises:
        ShapeError: scalars, extents that differ.

    Source: ``jnp.matmul``.

    Example:
        >>> te.ops.matmul(np.float32([[1, 2]]), np.float32([[3], [4]])).tolist()
        [[11.0]]
    """
    if not a.ndim or not b.ndim:
        raise ShapeError(
            f"te.ops.matmul of {a.name} and {b.name}: a scalar is no matrix; use te.ops.multiply"
        )
    column = b.ndim - 2 if b.ndim > 1 else 0
    check_equal(a.shape[-1], b.shape[column], f"matmul: last axis of {a.name} and axis {column} of {b.name}")
    k = r.reduce_axis((0, a.shape[-1]), "k")
    batch = broadcast_shapes([a.shape[:-2], b.shape[:-2]], f"matmul of {a.name} and {b.name}")
    rows, columns = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()

    def body(*i: Expr) -> Expr:
        lead = i[: len(batch)]
        row, col = i[len(batch) : len(batch) + len(rows)], i[len(batch) + len(rows) :]
        return r.sum(element(a, (*lead, *row, k)) * element(b, (*lead, k, *col)), axis=k)

    return compute((*batch, *rows, *columns), body, "matmul")


@operator
def batch_matmul(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """One matrix product for each index of the first axis, of matrices that may be transposed.

    Formula: ``y[n, i, j] = sum over k of a[n, i, k] * b[n, k, j]``

    Raises:
        ShapeError: other ranks than three, extents that differ.

    Source: relay ``batch_matmul``.

    Example:
        >>> te.ops.batch_matmul(np.float32([[[1, 2]]]), np.float32([[[3, 4]]]), transpose_b=True).tolist()
        [[[11.0]]]
    """
    for x in (a, b):
        if x.ndim != 3:
            raise ShapeError(
                f"te.ops.batch_matmul: {x.name} has {counted(x.ndim, 'axis', 'axes')}; give three: batch, rows, columns"
            )
    check_equal(a.shape[0], b.shape[0], f"batch_matmul: axis 0 of {a.name} and {b.name}")
    inner_a, inner_b = (1 if transpose_a else 2), (2 if transpose_b else 1)
    check_equal(a.shape[inner_a], b.shape[inner_b], f"batch_matmul: inner axes of {a.name} and {b.name}")
    k = r.reduce_axis((0, a.shape[inner_a]), "k")

    def body(n: Axis, i: Axis, j: Axis) -> Expr:
        left = a[n, k, i] if transpose_a else a[n, i, k]
        right = b[n, j, k] if transpose_b else b[n, k, j]
        return r.sum(left * right, axis=k)

    return compute((a.shape[0], a.shape[3 - inner_a], b.shape[3 - inner_b]), body, "batch_matmul")


@operator
def dense(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """``x @ w.T + b`` over the last axis of ``x``; ``w`` has the shape (outputs, inputs).

    Formula: ``y[n, o] = sum over k of x[n, k] * w[o, k] + b[o]``

    Raises:
        ShapeError: ranks or extents that do not fit.

    Source: relay ``dense``; ``torch.nn.Linear``.

    Example:
        >>> te.ops.dense(np.float32([[1, 2]]), np.float32([[3, 4]]), np.float32([1])).tolist()
        [[12.0]]
    """
    if not x.ndim or w.ndim != 2:
        raise ShapeError(
            f"te.ops.dense: {x.name} has {counted(x.ndim, 'axis', 'axes')} and {w.name} {w.ndim}; give (..., inputs) and (outputs, inputs)"
        )
    check_equal(x.shape[-1], w.shape[1], f"dense: last axis of {x.name} and axis 1 of {w.name}")
    k = r.reduce_axis((0, w.shape[1]), "k")

    def body(*i: Expr) -> Expr:
        return r.sum(x[(*i[:-1], k)] * w[i[-1], k], axis=k)

    y = compute((*x.shape[:-1], w.shape[0]), body, "dense")
    if b is None:
        return y
    check_equal(b.shape[0] if b.ndim == 1 else b.ndim, w.shape[0], f"dense: {b.name} and axis 0 of {w.name}")
    return compute(y.shape, lambda *i: y[i] + b[i[-1]], "dense_bias")


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
