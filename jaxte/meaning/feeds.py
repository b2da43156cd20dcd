"""Arrays given to a graph: whether they fit its placeholders, and the sizes that they determine.

Which symbolic sizes the extents of arrays tell, and how: ``n`` by an axis of ``2 * n + 1`` elements, not by one of ``n // 2``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte.lang.checks import described
from jaxte.lang.dtypes import dtype_name, promote
from jaxte.lang.errors import DtypeError, FeedError, IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Var, as_expr
from jaxte.lang.functions import TABLE
from jaxte.lang.graphs import among
from jaxte.lang.text import text
from jaxte.lang.walk import all_of, fold, postorder
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.linear import Linear
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.shapes import Extent, Shape, shape_text
from jaxte.tensors.tensor import Tensor

Sizes = dict[Var, int]


def check_feeds(order: Iterable[Tensor], feeds: Mapping[Any, Any]) -> dict[Tensor, Any]:
    """The array of each placeholder in ``order``, with the rank and the dtype that it should have.

    Arrays are returned as they are; Python numbers and lists become NumPy arrays of the placeholder's dtype.
    """
    needed = [tensor for tensor in order if isinstance(tensor, Placeholder)]
    names = ", ".join(p.name for p in needed) or "none"
    if not isinstance(feeds, Mapping):
        raise FeedError(f"feeds is {described(feeds)}; give {{placeholder: array}} (inputs: {names})")
    for key in feeds:
        if not isinstance(key, Tensor):
            raise FeedError(
                f"the key {key!r} of feeds is a {type(key).__name__}; give {{placeholder: array}}"
            )
        if not among(key, needed):
            raise FeedError(
                f"feeds has {key!r}, which is no input of these tensors (inputs: {names}); leave it out"
            )
    missing = [repr(p) for p in needed if p not in feeds]
    if missing:
        raise FeedError(
            f"no array for {', '.join(missing)}; give feeds an array for each input (inputs: {names})"
        )
    return {p: _check_array(p, feeds[p]) for p in needed}


def _check_array(placeholder: Placeholder, value: Any) -> Any:
    array = value if hasattr(value, "dtype") and hasattr(value, "shape") else _from_python(placeholder, value)
    try:
        dtype = dtype_name(array.dtype)
    except DtypeError:
        dtype = str(array.dtype)
    if dtype != placeholder.dtype:
        raise FeedError(
            f"{placeholder!r} is fed an array of dtype {dtype}; convert it with .astype({placeholder.dtype!r}), "
            f"or declare te.placeholder(..., dtype={dtype!r})"
        )
    if len(array.shape) != placeholder.ndim:
        raise FeedError(
            f"{placeholder!r} has {placeholder.ndim} axes, but is fed an array of shape {tuple(array.shape)} "
            f"with {len(array.shape)}; reshape it"
        )
    return array


def _from_python(placeholder: Placeholder, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
        fits = promote([(dtype_name(array.dtype), True), (placeholder.dtype, False)])[0] == placeholder.dtype
    except (ValueError, DtypeError):
        raise FeedError(f"{placeholder!r} is fed {value!r}, which is no array of numbers") from None
    if not fits and array.size:
        raise FeedError(f"{placeholder!r} is fed {array.dtype} values; convert them to {placeholder.dtype}")
    return array.astype(placeholder.dtype)


def bind_sizes(arrays: Mapping[Tensor, Any]) -> Sizes:
    """The value of each symbolic size, from the shapes of the arrays; every extent is checked."""
    tensors = list(arrays)
    sizes: Sizes = {}
    for told in told_sizes([tensor.shape for tensor in tensors]):
        tensor = tensors[told.array]
        actual = int(arrays[tensor].shape[told.axis])
        size = (actual - size_value(from_linear(told.rest), sizes)) // told.factor
        if size < told.size.least:
            known = "sizes are" if told.size.least == 1 else "it is"
            raise FeedError(
                f"axis {told.axis} of {tensor!r} is fed {actual} elements, which makes {told.size.name} = {size}; "
                f"{known} at least {told.size.least}"
            )
        sizes[told.size] = size
    for tensor, array in arrays.items():
        for axis, extent in enumerate(tensor.shape):
            _check_extent((tensor, axis, extent, int(array.shape[axis])), sizes)
    return sizes


Entry = tuple[Tensor, int, Any, int]


def _check_extent(entry: Entry, sizes: Sizes) -> None:
    tensor, axis, extent, actual = entry
    unknown = [size.name for size in sizes_in([extent]) if size not in sizes]
    if unknown:
        several = "has several sizes that no other extent determines" if len(unknown) > 1 else ""
        raise FeedError(
            f"axis {axis} of {tensor!r}: `{text(as_expr(extent))}` {several or f'does not tell {unknown[0]}, and no other extent does'}; "
            f"add an input whose extent is {'one of these sizes' if several else unknown[0]} alone"
        )
    expected = size_value(extent, sizes)
    if actual != expected:
        known = ", ".join(f"{v.name} = {sizes[v]}" for v in sizes_in([extent]))
        because = f" (with {known} from the other arrays)" if known else ""
        raise FeedError(
            f"axis {axis} of {tensor.name}{shape_text(tensor.shape)} has {expected} elements{because}, "
            f"but the array fed to it has {actual}"
        )


def size_value(extent: Expr | int, sizes: Mapping[Var, int]) -> int:
    """The integer that an expression of sizes is."""

    def rule(node: Expr, below: list[int]) -> int:
        match node:
            case Const(value):
                return int(value)  # type: ignore[arg-type]
            case Var(name):
                if node not in sizes:
                    raise FeedError(f"the size {name} is in the shape of no input, so no array determines it")
                return sizes[node]
            case Call(op, _):
                return int(TABLE[op.name].numpy(*below))
        kind = "axis" if isinstance(node, Axis) else "value"
        raise FeedError(f"`{text(node)}` is a {kind}, but an extent is made of integers and sizes only")

    return extent if isinstance(extent, int) else fold(extent, rule)


def result_shape(label: str, shape: Shape, sizes: Mapping[Var, int]) -> tuple[int, ...]:
    """The extents of a result; one below 0 is an error, which says for which sizes."""
    found = tuple(size_value(extent, sizes) for extent in shape)
    for extent, actual in zip(shape, found, strict=True):
        if actual < 0:
            known = ", ".join(f"{v.name} = {sizes[v]}" for v in sizes_in([extent]))
            raise FeedError(
                f"{label} has an axis of `{text(as_expr(extent))}` elements, which is {actual} with {known}; feed larger arrays, and state "
                "the least size where it is made: te.var(..., at_least=...)"
            )
    return found


@dataclass(frozen=True)
class Told:
    """``factor * size + rest`` is the extent of ``axis`` of the array at ``array``; ``rest`` is made of sizes told before."""

    size: Var
    array: int
    axis: int
    factor: int
    rest: Linear


def told_sizes(shapes: Iterable[Shape]) -> list[Told]:
    """How each size is told by arrays of ``shapes``: by an extent that it is, else by one that is linear in it."""
    extents = [
        (n, axis, extent)
        for n, shape in enumerate(shapes)
        for axis, extent in enumerate(shape)
        if isinstance(extent, Expr)
    ]
    found: dict[Expr, Told] = {}
    for n, axis, extent in extents:
        if isinstance(extent, Var):
            found.setdefault(extent, Told(extent, n, axis, 1, Linear({})))
    while True:
        before = len(found)
        for n, axis, extent in extents:
            solved = _solved(extent, found)
            if solved is not None:
                size, factor, rest = solved
                found[size] = Told(size, n, axis, factor, rest)
        if len(found) == before:
            return list(found.values())  # type: ignore[return-value]


def _solved(extent: Expr, known: dict[Expr, Told]) -> tuple[Var, int, Linear] | None:
    """The one size that is not known in ``extent``, its factor and what is added to it; None where it is no such form."""
    unknown = [n for n in all_of(Var, extent) if n not in known]
    if len(unknown) != 1:
        return None
    try:
        form = linear(extent)
    except IndexExpressionError:
        return None
    (size,) = unknown
    factor, rest = form.coefficient(size), form.without(size)
    if not factor or any(node is size for node in postorder(*rest.terms)):
        return None
    return size, factor, rest


def sizes_in(extents: Sequence[Extent]) -> list[Var]:
    """The sizes that ``extents`` are made of."""
    return all_of(Var, *(e for e in extents if isinstance(e, Expr) and not isinstance(e, Const)))
