"""Operations of NumPy arrays as XLA does them: computed widely, rounded once to the dtype of their result."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes  # noqa: F401  (makes bfloat16 known to NumPy)
import numpy as np

from jaxte.lang.dtypes import Kind, is_complex, is_float, is_inexact, is_integer, promote
from jaxte.lang.operators import Op
from jaxte.lang.scalars.table import TABLE


def operated(op: Op, below: Sequence[np.ndarray], kinds: Sequence[Kind], kind: Kind) -> np.ndarray:
    """``op`` on arrays of ``kinds``, as an array of ``kind``."""
    meet: list[Kind]
    match op.result:
        case "promote" | "inexact" | "integer":
            meet = [kind] * len(kinds)
        case "bool" if all(is_integer(dtype) for dtype, _ in kinds):
            meet = list(kinds)  # integers are compared as the numbers that they are
        case "bool":
            meet = [promote(kinds)] * len(kinds)
        case _:
            meet = list(kinds)
    if op.name == "select":
        meet[0] = kinds[0]
    operands = [widened(converted(array, own)) for array, own in zip(below, meet, strict=True)]
    if op.name == "select":
        return converted(np.where(*operands), kind)
    return converted(TABLE[op.name].numpy(*operands), kind)


def storage(kind: Kind) -> np.dtype:
    """The NumPy dtype that holds values of ``kind``; weak values are wide until they meet another dtype."""
    dtype, weak = kind
    if not weak:
        return np.dtype(dtype)
    return np.dtype("int64" if is_integer(dtype) else "float64" if is_float(dtype) else "complex128")


def widened(array: np.ndarray) -> np.ndarray:
    """Floats as float64, complex numbers as complex128."""
    name = array.dtype.name
    return array.astype(
        "float64" if is_float(name) else "complex128" if is_complex(name) else name, copy=False
    )


def converted(array: np.ndarray, kind: Kind) -> np.ndarray:
    """``array`` as ``kind``, as XLA converts: a float that is no integer's value becomes the nearest, NaN 0."""
    target = storage(kind)
    if array.dtype == target:
        return array
    if target == np.dtype(bool):
        return array != 0
    if is_complex(array.dtype.name) and not is_complex(target.name):
        array = array.real
    if is_inexact(array.dtype.name) and is_integer(target.name):
        return _float_to_integer(widened(array), target)
    return array.astype(target)


def _float_to_integer(array: np.ndarray, target: np.dtype) -> np.ndarray:
    limits = np.iinfo(target)
    whole = np.trunc(np.where(np.isnan(array), 0, array))
    inside = (whole > limits.min) & (whole < limits.max)
    bounded = np.where(whole <= limits.min, target.type(limits.min), target.type(limits.max))
    return np.where(inside, np.where(inside, whole, 0).astype(target), bounded)
