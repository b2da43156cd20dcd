"""Arrays of numbers in definitions: filters, tables, weights, masks. They have no gradient and are no argument of anything.

A short one is the choice of its numbers by position, which the emitted code holds as a literal; a long one is handed to the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.dtypes import DtypeLike
from jaxte.tensors.tensor import Tensor, of_array


class AsArray(Protocol):
    """What NumPy makes an array of: those of JAX, NumPy and others."""

    def __array__(self) -> np.ndarray: ...


Numbers: TypeAlias = AsArray | bool | int | float | complex | Sequence["Numbers"]


@wants_arguments
def constant(array: Numbers, name: str = "constant", dtype: DtypeLike | None = None) -> Tensor:
    """An array of numbers as a Tensor, to be indexed in bodies and mixed with Tensors; without gradient.

    Args:
        array: NumPy or JAX array, or nested lists of numbers.
        name: label used in printed formulas and in the emitted code.
        dtype: element type; by default that of ``array``, with NumPy's 64-bit defaults as JAX's 32-bit ones.

    Returns:
        A Tensor of the shape of ``array``. Up to 64 elements are written into the emitted module, ``jnp.array([...])``; longer
        ones are handed to it.

    Raises:
        DefinitionError: lists of unequal lengths, or an array that is traced and has no values yet: make that an argument.
        DtypeError: elements that are no numbers.

    Example:
        >>> G = te.constant([0.25, 0.5, 0.25], "G")
        >>> X, k = te.placeholder((8,), name="X"), te.reduce_axis((0, 3), "k")
        >>> te.compute((6,), lambda i: te.sum(G[k] * X[i + k], axis=k), "y")
        y[i] = sum(G[k] * X[i + k] for k in [0, 3))
    """
    return of_array(array, one_of_type(name, str, "the name of a te.constant", "a string"), dtype)
