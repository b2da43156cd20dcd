"""``te.stack`` and ``te.concatenate``: of whole tensors, and of the expressions of elements inside of a body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from jaxte import ops
from jaxte.bridge.calls.outputs import is_array
from jaxte.bridge.functions.builder_function import Array
from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.lang.expr import Axis, Const, Expr, ScalarLike, as_expr
from jaxte.lang.functions import choose, select
from jaxte.lang.text import text
from jaxte.sets.affine import normal
from jaxte.tensors.bodies.open_uses import OpenAxis
from jaxte.tensors.tensor import Tensor


@overload
def stack(parts: Sequence[Tensor], axis: int = 0) -> Tensor: ...
@overload
def stack(parts: Sequence[Array | np.ndarray], axis: int = 0) -> Array: ...
@overload
def stack(parts: Sequence[ScalarLike], axis: Expr) -> Expr: ...
@wants_arguments
def stack(parts: Any, axis: Any = 0) -> Any:
    """Joins Tensors or arrays along a new axis; inside of a body, chooses one of several expressions by an index.

    Args:
        parts: Tensors or arrays of one shape; or scalar expressions and numbers.
        axis: the number of the new axis; or the index expression that says which of ``parts`` an element is.

    Returns:
        A Tensor, an array, or an expression: that of ``te.choose(axis, parts)``.

    Example:
        >>> te.stack([np.float32([1, 2]), np.float32([3, 4])], axis=1).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        >>> polar = te.compute((8, 2), lambda i, c: te.stack([r[i] * te.cos(a[i]), r[i] * te.sin(a[i])], axis=c))
    """
    listed = _listed(parts, "stack")
    if all(_is_whole(part) for part in listed):
        return ops.stack(listed, axis)
    _check_index(axis, "stack", listed)
    remedy = (
        f"te.stack joins {len(listed)} expressions, and {{axis}} values; give one expression for each of them"
    )
    return _along(axis, len(listed), lambda: choose(axis, listed), remedy)


@overload
def concatenate(parts: Sequence[Tensor], axis: int = 0) -> Tensor: ...
@overload
def concatenate(parts: Sequence[Array | np.ndarray], axis: int = 0) -> Array: ...
@overload
def concatenate(parts: Sequence[tuple[int | Expr, Callable[[Expr], ScalarLike]]], axis: Expr) -> Expr: ...
@wants_arguments
def concatenate(parts: Any, axis: Any = 0) -> Any:
    """Joins Tensors or arrays along an axis that they have; inside of a body, joins expressions along an index.

    Args:
        parts: Tensors or arrays; or pairs ``(extent, fn)``, where ``fn`` takes the position within its part, from 0, and returns an expression.
        axis: the number of the axis; or the index expression that the parts divide among them.

    Example:
        >>> te.concatenate([np.float32([1]), np.float32([2, 3])]).tolist()
        [1.0, 2.0, 3.0]
        >>> both = te.compute((7,), lambda i: te.concatenate([(3, lambda j: x[j]), (4, lambda j: 2 * y[j])], axis=i))
    """
    listed = _listed(parts, "concatenate")
    if all(_is_whole(part) for part in listed):
        return ops.concatenate(listed, axis)
    _check_index(axis, "concatenate", listed)
    index, starts = as_expr(axis), [as_expr(0)]
    pairs = [_pair(part) for part in listed]
    for extent, _ in pairs[:-1]:
        starts.append(starts[-1] + extent)
    total = normal(starts[-1] + pairs[-1][0])
    values = [as_expr(fn(index - start)) for (_, fn), start in zip(pairs, starts, strict=True)]
    result = values[-1]
    for value, end in zip(values[-2::-1], starts[:0:-1], strict=True):
        result = select(index < end, value, result)
    remedy = (
        f"te.concatenate joins parts of {text(total)} elements, and {{axis}} values; make these extents equal"
    )
    return _along(axis, total, lambda: result, remedy)


def _along(axis: Any, extent: Expr | int, join: Callable[[], Expr], remedy: str) -> Expr:
    """What ``join`` makes, along an axis that has the ``extent`` of its parts, or gets it where its range is open."""
    is_open = isinstance(axis, OpenAxis)
    if isinstance(axis, Axis) and not is_open:
        differs = normal(axis.hi - extent)
        if isinstance(differs, Const) and differs.value:
            raise DefinitionError(remedy.format(axis=f"{axis.name} has {text(axis.hi)}"))
    joined = join()
    if is_open:
        axis.state(joined, as_expr(extent))
    return joined


def _listed(parts: Any, name: str) -> list[Any]:
    if not isinstance(parts, (list, tuple)) or not parts:
        raise ArgumentError(f"te.{name} of {described(parts)}; give a list of at least one part")
    return list(parts)


def _is_whole(part: Any) -> bool:
    return isinstance(part, Tensor) or (is_array(part) and bool(part.shape))


def _check_index(axis: Any, name: str, parts: Sequence[Any]) -> None:
    """That expressions are put together along an index expression, and that nothing among them is a whole tensor."""
    whole = [part for part in parts if _is_whole(part)]
    if whole:
        raise DefinitionError(
            f"te.{name} of {described(whole[0])} and of expressions of elements; give whole tensors only, or read an element of each"
        )
    if not isinstance(axis, Expr):
        raise DefinitionError(
            f"te.{name} of expressions along {described(axis)}: axis is the index that says which of them an element is, as in "
            f"te.compute((n, {len(parts)}), lambda i, c: te.{name}([...], axis=c))"
        )


def _pair(part: Any) -> tuple[Any, Callable[[Expr], Any]]:
    if isinstance(part, tuple) and len(part) == 2 and callable(part[1]):
        return part[0], part[1]
    raise DefinitionError(
        f"te.concatenate: a part is {described(part)}; give a Tensor, or a pair (extent, lambda j: expression at j) in a body"
    )
