"""Products with a matrix that is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Step


def known_factors(step: Step) -> Iterator[np.ndarray]:
    """The known matrix of a ``dot_general`` with an array that is not, along its rows; none where there is no such product."""
    (left, right), batched = step.eqn.params["dimension_numbers"]
    if any(batched) or len(left) != 1:
        return
    for n, (contracted,) in enumerate((left, right)):
        matrix = step.inputs[n].known
        if matrix is not None and np.ndim(matrix) == 2 and step.inputs[1 - n].known is None:
            yield along_rows(np.asarray(matrix), contracted)


def along_rows(matrix: np.ndarray, contracted: int) -> np.ndarray:
    """``matrix`` with the dimension that is summed over as its columns."""
    return matrix if contracted == 1 else matrix.T
