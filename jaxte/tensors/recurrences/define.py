"""``recurrence``: from functions of the tensors themselves and of axes to tensors that read themselves at earlier positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from jaxte.lang.checks import wants_arguments
from jaxte.lang.dtypes import DtypeLike
from jaxte.lang.errors import DtypeError
from jaxte.lang.expr import Axis, ScalarLike
from jaxte.lang.nodes import AnnotatedArray
from jaxte.tensors.compute import Several, Sizes
from jaxte.tensors.recurrences.given import Body, given_from
from jaxte.tensors.recurrences.inner import Inner, around_of
from jaxte.tensors.tensor import Tensor

if TYPE_CHECKING:

    class TensorOrIndex(Axis, Tensor):  # type: ignore[misc]
        """A parameter of a body of several tensors: the first are the tensors, the others indices."""

else:
    TensorOrIndex = Tensor | Axis

Init: TypeAlias = "ScalarLike | Tensor | AnnotatedArray | np.ndarray | Callable[..., ScalarLike]"  # what stands before the first position
Inits: TypeAlias = "Init | Sequence[Init] | None"
Names: TypeAlias = "Sequence[str] | None"
Dtypes: TypeAlias = "DtypeLike | Sequence[DtypeLike] | None"
E: TypeAlias = TensorOrIndex


# fmt: off
@overload
def recurrence(shape: Sizes, fn: Body, init: Init | None = None, axis: int = 0, reverse: bool = False, dtype: DtypeLike | None = None, name: str | None = None) -> Tensor: ...
@overload
def recurrence(shape: Sizes, fn: Callable[[E, E, E], Several], init: Inits = None, axis: int = 0, reverse: bool = False, dtype: Dtypes = None, name: Names = None) -> tuple[Tensor, ...]: ...
@overload
def recurrence(shape: Sizes, fn: Callable[[E, E, E, E], Several], init: Inits = None, axis: int = 0, reverse: bool = False, dtype: Dtypes = None, name: Names = None) -> tuple[Tensor, ...]: ...
@overload
def recurrence(shape: Sizes, fn: Callable[[E, E, E, E, E], Several], init: Inits = None, axis: int = 0, reverse: bool = False, dtype: Dtypes = None, name: Names = None) -> tuple[Tensor, ...]: ...
@overload
def recurrence(shape: Sizes, fn: Callable[[E, E, E, E, E, E], Several], init: Inits = None, axis: int = 0, reverse: bool = False, dtype: Dtypes = None, name: Names = None) -> tuple[Tensor, ...]: ...
@overload
def recurrence(shape: Sequence[Sizes], fn: Sequence[Body], init: Inits = None, axis: int = 0, reverse: bool = False, dtype: Dtypes = None, name: Names = None) -> tuple[Tensor, ...]: ...
# fmt: on
@wants_arguments
def recurrence(
    shape: Sizes | Sequence[Sizes],
    fn: Callable[..., ScalarLike | Several] | Sequence[Body],
    init: Init | Sequence[Init] | None = None,
    axis: int = 0,
    reverse: bool = False,
    dtype: DtypeLike | Sequence[DtypeLike] | None = None,
    name: str | Sequence[str] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """A tensor whose elements are computed from its own earlier elements, or several tensors that read each other in this way.

    ``h[t, i]`` may read ``h[t - 1, ..]``, ``h[t - 2, ..]`` and so on, at any positions of the other axes, and anything else that is
    computed before. Of several tensors, each may read the others at the same position too, as long as none is reached again. Its adjoint is a
    recurrence from the other end, of no more than what depends on later positions; gradients of what is not carried, weights
    among it, are sums over all positions at once.

    Args:
        shape: extents of the tensor; of several tensors of different shapes a list of shapes.
        fn: takes the tensor itself, or each of them, then one index per axis; returns the scalar expression of the element, or a tuple of
            expressions for several tensors over the same axes. Of a list of shapes a list of functions.
        init: the values before the first position: a number, a function of the other axes, or a Tensor or an array of the other axes; one that has
            the axis too holds as many values as the recurrence looks back, the last of them right before the first position. Of several tensors a tuple.
            Without it, reads before the first position stand under a ``te.select``.
        axis: the one along which the tensor reads itself.
        reverse: begin at the last position: ``h[t, i]`` reads ``h[t + 1, ..]``, and ``init`` is behind the end.
        dtype: of the tensor; by default what the body makes of that of ``init``, of float32 where this is a number or is not there.
        name: label in printed formulas and emitted code, by default what ``fn`` calls the tensor; of several a tuple.

    Returns:
        A Tensor, or a tuple of them.

    Raises:
        DefinitionError: a read of what is not known at its position: the same element, a later one, or one that is not a fixed number of
            positions before.
        RangeError: a read before the first position, without ``init``.

    Example:
        >>> x, W = te.placeholder((100, 8), name="x"), te.placeholder((8, 8), name="W")
        >>> j = te.reduce_axis((0, 8), "j")
        >>> h = te.recurrence((100, 8), lambda h, t, i: te.tanh(x[t, i] + te.sum(W[i, j] * h[t - 1, j], axis=j)), init=0.0)
        >>> h.shape
        (100, 8)
    """
    given = given_from(shape, fn, init, axis, reverse, dtype, name)
    kinds = given.first_kinds()
    for _ in range(3):
        states, results = given.evaluated(kinds)
        found = [kind if kind is not None else r.dtype for kind, r in zip(given.kinds, results, strict=True)]
        if found == kinds:
            break
        kinds = found
    else:
        raise DtypeError(
            f"{given.label}: the dtype of the body depends on that of the tensor itself; give dtype="
        )
    around = around_of([*results, *given.begins], given.axes)
    if around is None:
        tensors: tuple[Any, ...] = given.group(states, results).tensors[: len(states)]
    else:
        table = {s: around.state(s) for s in states}
        bodies = [around.over(r, table, around.own) for r in results]
        group = given.within(around).group(tuple(table.values()), bodies)
        tensors = tuple(Inner(t, around.axes) for t in group.tensors[: len(states)])
    return tensors[0] if given.is_one else tensors
