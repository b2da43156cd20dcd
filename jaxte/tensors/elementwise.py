"""Operations on whole tensors, element by element, broadcast as NumPy broadcasts; arrays beside them are constants, which choices by position hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.checks import described
from jaxte.lang.errors import DefinitionError, DtypeError
from jaxte.lang.expr import Axis, Const, Expr, Read, as_expr, call
from jaxte.lang.functions import choose
from jaxte.lang.limits import MOST_PARTS
from jaxte.lang.operators import Op
from jaxte.tensors.shapes import broadcast_shapes, same_extent, shape_text
from jaxte.tensors.tensor import Compute, Extern, Tensor, new_axes, operate_with


def elementwise(op: Op, args: Sequence[Any]) -> Compute | Expr:
    """``op`` on whole Tensors and scalars, broadcast as NumPy broadcasts; beside elements of a body, on what Tensors without axes hold."""
    elements = [a for a in args if isinstance(a, Expr) and a.free]
    if elements:
        return call(op, *(_element(a, elements[0]) for a in args))
    beside = next(a for a in args if isinstance(a, Tensor))
    operands = [_operand(a, beside) for a in args]
    shapes = [a.shape for a in operands if isinstance(a, Tensor)]
    names = " and ".join(a.name for a in operands if isinstance(a, Tensor))
    shape = broadcast_shapes(shapes, f"{op.name} of {names}")
    axes = new_axes(shape)
    elements = [_broadcast_read(a, axes) if isinstance(a, Tensor) else a for a in operands]
    return Compute(op.name, axes, call(op, *elements))


operate_with(elementwise)


def _element(value: Any, beside: Expr) -> Any:
    """An operand of an operation with the element ``beside``."""
    if isinstance(value, Tensor) and value.shape:
        axes = ", ".join("ijklmnop"[: value.ndim])
        raise DefinitionError(
            f"`{beside!r}` is one element, and {value.name} {shape_text(value.shape)} a whole tensor; read an element of it too, as in {value.name}[{axes}]"
        )
    return value[()] if isinstance(value, Tensor) else value


def _operand(value: Any, beside: Tensor) -> Tensor | Expr:
    """An operand of an operation with ``beside``: arrays are constants, which promote as in JAX; lists do as their numbers would."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (list, tuple)) and not getattr(value, "shape", ()):
        return as_expr(value)
    values = values_of(value, "constant")
    kind = dtypes.dtype_name(values.dtype)
    if isinstance(value, (list, tuple)):
        own = (DEFAULTS.get(kind, kind), kind in DEFAULTS)
        return of_array(values, "constant", dtypes.promote([(beside.dtype, False), own])[0])
    return of_array(values, "constant", kind if beside.dtype in DEFAULTS else None)


def of_array(array: Any, name: str, dtype: Any = None) -> Tensor:
    """See :func:`jaxte.tensors.inputs.constant`."""
    values = values_of(array, name)
    own = dtypes.dtype_name(values.dtype)
    kind = default_dtype(own) if dtype is None else dtypes.dtype_name(dtype)
    values = of_dtype(values, kind, name)
    # Elements that the emitted code writes out.
    if values.size > MOST_PARTS:
        held = _Held(_Array(values))
        return Extern(name, values.shape, kind, held.fn, (), 0, held)
    axes = new_axes(values.shape)
    return Compute(name, axes, chosen(values, axes, kind))


@dataclass(frozen=True, eq=False)
class _Array:
    """A function of nothing, which returns the array."""

    values: np.ndarray

    def __call__(self) -> tuple[np.ndarray]:
        return (self.values,)


@dataclass(frozen=True, eq=False)
class _Held:
    """The call of that function: the same for every element of a batch, with nothing to differentiate."""

    fn: _Array
    in_forward_pass: bool = False

    def moved(self, mapped: Sequence[int | None] | None, extent: Any) -> _Held:
        return self

    def adjoint(self, output: Extern, head: Tensor) -> list[Extern | None]:
        return []


def held_values(tensor: Tensor) -> np.ndarray | None:
    """The numbers of an array that is handed to the emitted code; None where ``tensor`` is something else."""
    group = tensor.group if isinstance(tensor, Extern) else None
    return group.fn.values if isinstance(group, _Held) else None


def _broadcast_read(tensor: Tensor, axes: Sequence[Axis]) -> Read:
    trailing = axes[len(axes) - tensor.ndim :]
    own: list[Expr] = []
    for axis, extent in zip(trailing, tensor.shape, strict=True):
        own.append(as_expr(0) if same_extent(extent, 1) and axis.hi is not as_expr(1) else axis)
    return Read(tensor, own)


def copy_of(tensor: Tensor, name: str) -> Compute:
    """A definition with the elements of ``tensor``."""
    axes = new_axes(tensor.shape)
    return Compute(name, axes, Read(tensor, axes))


DEFAULTS = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
_keeps_wide: list[Callable[[], bool]] = []  # asked of JAX, which definitions do without


def keep_wide_where(asked: Callable[[], bool]) -> None:
    """Arrays of 64-bit numbers stay what they are where ``asked`` is true, as in JAX with ``jax_enable_x64``."""
    _keeps_wide[:] = [asked]


def default_dtype(kind: str) -> str:
    """The dtype of an array of ``kind`` for which none is given."""
    return kind if any(asked() for asked in _keeps_wide) else DEFAULTS.get(kind, kind)


def values_of(array: Any, name: str) -> np.ndarray:
    try:
        values = np.asarray(array)
        dtypes.dtype_name(values.dtype)
    except ValueError as error:
        raise DefinitionError(f"te.constant {name}: {error}; give rows of equal lengths") from None
    except DtypeError as error:
        raise DtypeError(f"te.constant {name}: {error}; give an array of numbers") from None
    except TypeError:  # what JAX raises for arrays that are traced, and NumPy for what it cannot take
        raise DefinitionError(
            f"te.constant {name}: {described(array)} has no values yet; make it an argument of the function"
        ) from None
    return values


def of_dtype(values: np.ndarray, kind: str, name: str) -> np.ndarray:
    """``values`` as ``kind``, which has to hold them."""
    if values.dtype.kind == "c" and not dtypes.is_complex(kind):
        raise DtypeError(
            f"te.constant {name}: complex numbers need a complex dtype, not {kind}; give np.real(...) of them"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        own = values.astype(kind)
    # overflow at 65504 is what float16 is chosen with
    if kind == "float16" or values.dtype.kind not in "iuf":
        return own
    if kind in dtypes.INTEGER_LIMITS:
        lo, hi = dtypes.INTEGER_LIMITS[kind]
        lost, wide = ~((values >= lo) & (values <= hi)), "int64"
    else:
        lost, wide = np.isinf(own) & np.isfinite(values), "float64"
    if lost.any():
        first = values[lost][0]
        remedy = "or smaller numbers" if np.isfinite(first) else "or finite numbers"
        wide = wide if np.isfinite(first) else "float32"
        raise DtypeError(
            f'te.constant {name}: the element {first} is beyond the numbers of {kind}; give te.constant(..., dtype="{wide}"), {remedy}'
        )
    return own


def chosen(values: np.ndarray, at: Sequence[Expr], dtype: str) -> Expr:
    """The element at positions, by one choice among rows after the other."""
    if not values.size:
        return Const(0, dtype)
    if not at:
        number = values.item()
        return Const(float(str(values[()])) if dtypes.is_float(dtype) else number, dtype)
    return as_expr(choose(at[0], [chosen(row, at[1:], dtype) for row in values]))
