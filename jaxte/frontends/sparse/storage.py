"""How the elements of a sparse derivative are kept: with an entry for each, row by row, as diagonals, in bands."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.frontends.sparse.of_function import Made
from jaxte.lang.errors import ArgumentError


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["elements"], meta_fields=["lower", "upper", "shape"]
)
@dataclass(frozen=True)
class Banded:
    """A matrix of which the elements near the diagonal are kept, as LAPACK keeps them: ``elements[upper + i - j, j]`` is the one in row ``i`` and column ``j``.

    ``scipy.linalg.solve_banded((m.lower, m.upper), m.elements, b)`` solves with it. Under ``jax.jit`` the elements are an array and the others are numbers.

    Attributes:
        elements: of shape ``(lower + upper + 1, columns)``, zeros where that is outside of the matrix.
        lower, upper: how many diagonals are kept below and above the main one, none of which is below 0.
        shape: of the matrix.
    """

    elements: Any
    lower: int
    upper: int
    shape: tuple[int, int]

    def todense(self) -> jax.Array:
        """The whole matrix."""
        rows, columns = np.indices(self.shape)
        held = (columns - rows <= self.upper) & (rows - columns <= self.lower)
        places = np.where(held, self.upper + rows - columns, 0)
        return jnp.where(held, self.elements[places, columns], 0)


def as_bcoo(made: Made, values: Any) -> Any:
    """A ``jax.experimental.sparse.BCOO`` of the shape of the result and the argument."""
    out, source = made.shape[: made.split], made.shape[made.split :]
    parts = [*np.unravel_index(made.rows, out or (1,)), *np.unravel_index(made.columns, source or (1,))]
    kept = parts[: len(out)] + parts[len(out) or 1 :][: len(source)]
    indices = np.stack(kept, 1) if kept else np.zeros((len(made.rows), 0))
    bcoo = importlib.import_module("jax.experimental.sparse").BCOO
    return bcoo(
        (values, jnp.asarray(indices, "int32")), shape=made.shape, indices_sorted=True, unique_indices=True
    )


def as_diagonals(made: Made, values: Any) -> dict[int, Any]:
    """The elements along each diagonal that has any, by ``column - row``, one for each row, zero outside."""
    offsets = made.columns - made.rows
    found = {}
    for offset in np.unique(offsets).tolist():
        own = np.flatnonzero(offsets == offset)
        found[offset] = jnp.zeros(made.matrix_shape[0], values.dtype).at[made.rows[own]].set(values[own])
    return found


def as_main_diagonal(made: Made, values: Any) -> Any:
    """The elements on the diagonal, in the shape of the argument."""
    if made.matrix_shape[0] != made.matrix_shape[1]:
        raise ArgumentError(
            f"the diagonal of a Jacobian of shape {made.matrix_shape}: it is of a function that returns as many elements as it takes"
        )
    own = np.flatnonzero(made.columns == made.rows)
    found = jnp.zeros(made.matrix_shape[0], values.dtype).at[made.rows[own]].set(values[own])
    return found.reshape(made.shape[made.split :])


def as_bcsr(made: Made, values: Any) -> Any:
    """A ``jax.experimental.sparse.BCSR`` with a row for each element of the result, and a column for each of the argument, in their order."""
    starts = np.searchsorted(made.rows, np.arange(made.matrix_shape[0] + 1))
    bcsr = importlib.import_module("jax.experimental.sparse").BCSR
    return bcsr(
        (values, jnp.asarray(made.columns, "int32"), jnp.asarray(starts, "int32")),
        shape=made.matrix_shape,
        indices_sorted=True,
        unique_indices=True,
    )


def as_banded(made: Made, values: Any) -> Banded:
    """The diagonals from the lowest to the highest that has an element, the main one among them."""
    offsets = made.columns - made.rows
    lower, upper = (int(np.max(own, initial=0)) for own in (-offsets, offsets))
    elements = jnp.zeros((lower + upper + 1, made.matrix_shape[1]), values.dtype)
    elements = elements.at[upper - offsets, made.columns].set(values)
    return Banded(elements, lower, upper, made.matrix_shape)
