"""What every operator is made with: one decorator, so that builders on Tensors also take arrays.

To add an operator, write a function from Tensors to Tensors in the file of its group, annotate the operands with
``Tensor``, and put ``@operator`` above it:

    @operator
    def double(x: Tensor) -> Tensor:
        \"\"\"``2 * x``.\"\"\"
        return compute(x.shape, lambda *i: 2 * x[i], "double")

Then export it in ``jaxte/ops/__init__.py`` and register a case in ``tests/ops_cases.py``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax
import numpy as np

from jaxte.bridge.calls.lifted import Lifted
from jaxte.bridge.functions.function import function
from jaxte.lang.checks import counted, described, for_users, misfit
from jaxte.lang.errors import ArgumentError, DefinitionError, ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, broadcast_shapes, same_extent, shape_text
from jaxte.tensors.tensor import Compute, Tensor

PerAxis: TypeAlias = int | Sequence[int]  # one number for all axes of a window, or one for each
Padding: TypeAlias = int | str | Sequence[int | Sequence[int]]
Widths: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]]
PairedAxes: TypeAlias = int | Sequence[int | Sequence[int]]
ShapeLike: TypeAlias = Extent | Sequence[Extent]
P = ParamSpec("P")
R = TypeVar("R")


def operator(build: Callable[P, R]) -> Lifted[P, R]:
    """``build`` for Tensors, and for arrays (scalars of NumPy too) by running what it builds.

    Parameters of ``build`` annotated with ``Tensor`` (or sequences of them) are the operands; the others are
    static.

    Raises:
        ArgumentError: arguments that do not fit the signature of ``build``.
    """
    signature = inspect.signature(build)
    operands = [name for name, p in signature.parameters.items() if "Tensor" in str(p.annotation)]
    checked = [n for n in operands if "Any" not in str(signature.parameters[n].annotation)]
    makes_shape = next(iter(signature.parameters)) == "shape"  # of what shape the result is needs no operand
    run: Callable[..., Any] = function(build)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    shown = inspect.Signature(bare)

    @for_users
    @functools.wraps(build)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(
                f"te.ops.{build.__name__}{shown}: {misfit(error, signature, kwargs)}"
            ) from None
        given = [leaf for n in operands for leaf in _leaves(bound.arguments.get(n))]
        for n, value in bound.arguments.items():
            if n not in operands:
                _check_static(f"te.ops.{build.__name__}", n, value, str(signature.parameters[n].annotation))
        if not makes_shape:
            _check_not_numbers(build.__name__, given)
        for n in checked:
            _check_operand(f"te.ops.{build.__name__}", n, bound.arguments.get(n), signature.parameters[n])
        arrays = [leaf for leaf in given if isinstance(leaf, (np.ndarray, jax.Array))]
        tensors = [leaf for leaf in given if isinstance(leaf, Tensor)]
        if tensors and not arrays:
            return build(*args, **kwargs)
        if not arrays and not any(isinstance(leaf, np.generic) for leaf in given):
            return build(*args, **kwargs)
        if tensors:
            raise DefinitionError(
                f"te.ops.{build.__name__} of the Tensor {tensors[0].name} and an array of shape {arrays[0].shape}: give "
                "Tensors only or arrays only; an array enters a definition as te.placeholder(array.shape, array.dtype)"
            )
        kind = _kind_of_weak(leaf for leaf in given if isinstance(leaf, (np.ndarray, np.generic, jax.Array)))
        return run(
            **{n: _strong(v, kind) if n in operands else _static(v) for n, v in bound.arguments.items()}
        )

    return call  # type: ignore[return-value]


def _kind_of_weak(arrays: Iterable[Any]) -> Any:
    """The dtype of a weakly typed float among ``arrays``, which gives way to the other operands as it does in JAX; None without one."""
    found = list(arrays)
    return jax.numpy.result_type(*found) if any(map(_is_weak, found)) else None


def _is_weak(value: Any) -> bool:
    return isinstance(value, jax.Array) and value.weak_type and jax.numpy.issubdtype(value.dtype, np.inexact)


def _strong(value: Any, kind: Any) -> Any:
    """An operand whose weakly typed floats have the dtype ``kind``."""
    if isinstance(value, (list, tuple)):
        return type(value)([_strong(v, kind) for v in value])
    return jax.lax.convert_element_type(value, kind) if kind is not None and _is_weak(value) else value


def _check_static(what: str, name: str, value: Any, annotation: str) -> None:
    """That a parameter has the type that it is annotated with, where that is integers or text."""
    if value is None and "None" in annotation:
        return
    kind = annotation.split(" | ")[0]
    if kind == "int" and "Sequence" not in annotation and not _is_integer(value):
        raise ArgumentError(f"{what}: {name} is {described(value)}; give an integer")
    if kind == "str" and not isinstance(value, str):
        raise ArgumentError(f"{what}: {name} is {described(value)}; give a string")
    if "Sequence[int" in annotation and not (kind == "int" and _is_integer(value)):
        entries = value if isinstance(value, (list, tuple, range, np.ndarray)) else None
        if entries is None or not all(
            _is_integer(e) or (e is None and "None" in annotation) for e in entries
        ):
            raise ArgumentError(f"{what}: {name} is {described(value)}; give a tuple of integers")


def _is_integer(value: Any) -> bool:
    return (
        hasattr(value, "__index__")
        and not isinstance(value, (type, Expr))
        and not getattr(value, "ndim", None)
    )


def _check_operand(what: str, name: str, value: Any, parameter: inspect.Parameter) -> None:
    """That a parameter is given Tensors or arrays, or numbers where it is annotated with them too."""
    annotation = str(parameter.annotation)
    if value is None and "None" in annotation:
        return
    sequence, numbers = "Sequence" in annotation, "float" in annotation or "int" in annotation
    if sequence and not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{what}: {name} is {described(value)}; give a list of Tensors or arrays")
    for leaf in _leaves(value) if sequence else [value]:
        if isinstance(leaf, (Tensor, np.ndarray, np.generic, jax.Array)):
            continue
        if not (numbers and isinstance(leaf, (bool, int, float, complex, Expr))):
            remedy = "a Tensor, an array or a number" if numbers else "a Tensor or an array"
            raise ArgumentError(f"{what}: {name} is {described(leaf)}; give {remedy}")


def _check_not_numbers(name: str, given: Sequence[Any]) -> None:
    if given and all(
        isinstance(leaf, (bool, int, float, complex, Expr)) for leaf in given if leaf is not None
    ):
        raise DefinitionError(f"te.ops.{name} of numbers only; give at least one Tensor or array")


def _leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _static(value: Any) -> Any:
    """A static argument as immutable Python values; NumPy's arrays and integers are taken as numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _static(value.tolist())
    if isinstance(value, (list, tuple)):
        return tuple(_static(v) for v in value)
    return value


def element(x: Any, index: Sequence[Any]) -> Expr:
    """The element of ``x`` (a Tensor or a number) that ``index`` meets when ``x`` is broadcast."""
    if not isinstance(x, Tensor):
        return as_expr(x)
    own = index[len(index) - x.ndim :]
    return x[tuple(0 if same_extent(e, 1) else i for i, e in zip(own, x.shape, strict=True))]


def pointwise(name: str, fn: Callable[..., Any], *operands: Any) -> Compute:
    """``fn`` of the elements of Tensors and numbers, broadcast as NumPy does, in one tensor."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    shape = broadcast_shapes([t.shape for t in tensors], f"{name} of {' and '.join(t.name for t in tensors)}")
    return compute(shape, lambda *i: fn(*(element(x, i) for x in operands)), name)


def normal_axis(axis: Any, ndim: int, name: str) -> int:
    """An axis number from 0 on, for one that may be negative."""
    if isinstance(axis, bool) or not _is_integer(axis):
        raise ShapeError(f"te.ops.{name}: axis={axis!r} is no axis number; give an integer")
    number = int(axis)
    if not -ndim <= number < ndim:
        remedy = f"give {-ndim} to {ndim - 1}" if ndim else "give a tensor with at least one"
        raise ShapeError(
            f"te.ops.{name}: axis={number}, but there are {counted(ndim, 'axis', 'axes')}; {remedy}"
        )
    return number % ndim


def normal_axes(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """Axis numbers in increasing order; all of them for None."""
    if axis is None:
        return tuple(range(ndim))
    listed = axis if isinstance(axis, (list, tuple)) else (axis,)
    numbers = [normal_axis(a, ndim, name) for a in listed]
    if len(set(numbers)) != len(numbers):
        raise ShapeError(f"te.ops.{name}: axis={axis!r} names an axis twice")
    return tuple(sorted(numbers))


def check_channels_of(v: Tensor | None, x: Tensor, axis: int, name: str) -> None:
    """Raises unless ``v``, if it is given, has one number for each channel of ``x``, which are on ``axis``."""
    if v is not None and (v.ndim != 1 or not same_extent(v.shape[0], x.shape[axis])):
        raise ShapeError(
            f"te.ops.{name}: {v.name} {shape_text(v.shape)} beside {x.name} {shape_text(x.shape)} with its channels on axis "
            f"{axis}; give one number for each channel, {shape_text((x.shape[axis],))}"
        )


def static_int(value: Any, what: str, least: int = 0) -> int:
    """``value`` as a Python integer of at least ``least``."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or isinstance(value, Expr):
        raise ShapeError(f"{what}={value!r}: give a Python integer")
    if int(value) < least:
        raise ShapeError(f"{what}={int(value)}: give at least {least}")
    return int(value)
