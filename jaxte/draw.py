"""Pictures, with matplotlib: the extra ``draw``."""

from __future__ import annotations

from typing import Any

from jaxte.bridge.compiled.sparse import SparseJacobian
from jaxte.lang.checks import described
from jaxte.lang.errors import ArgumentError, JaxteError

try:
    import matplotlib.pyplot as plt
except ImportError as error:  # what is missing, and how to get it
    raise JaxteError("te.draw needs matplotlib: pip install 'jaxte[draw]'") from error


def spy(matrix: Any, ax: Any = None) -> Any:
    """The pattern of a sparse Jacobian, rows down and columns across, as axes of matplotlib.

    Args:
        matrix: what ``te.jacobian(..., sparse=True)`` returns, or a ``BCOO``, a matrix of more axes row by row.
        ax: axes to draw into; new ones if not given.

    Example:
        >>> te.draw.spy(te.jacobian(Y, X, sparse=True)).figure.savefig("pattern.png")
    """
    rows, columns, shape = _pattern(matrix)
    if ax is None:
        _, ax = plt.subplots()
    size = 72 * ax.figure.get_size_inches().min() / max(*shape, 1)  # a square of a cell, in points
    ax.plot(columns, rows, linestyle="", marker="s", markersize=max(0.5, 0.7 * size), color="black")
    ax.set_xlim(-0.5, shape[1] - 0.5)
    ax.set_ylim(shape[0] - 0.5, -0.5)
    ax.set_aspect("equal")
    ax.set_title(f"{shape[0]:,} x {shape[1]:,}, {len(rows):,} elements")
    return ax


def _pattern(matrix: Any) -> tuple[Any, Any, tuple[int, int]]:
    if isinstance(matrix, SparseJacobian):
        indices = matrix.structure.flat_indices
        return indices[:, 0], indices[:, 1], matrix.structure.matrix_shape
    if getattr(matrix, "indices", None) is not None and len(matrix.shape) == 2:
        return matrix.indices[:, 0], matrix.indices[:, 1], matrix.shape
    raise ArgumentError(
        f"te.draw.spy of {described(matrix)}; give what te.jacobian(..., sparse=True) returns, or a BCOO of rows and columns"
    )
