"""Indices in which two axes as long overlap, ``b[i - j + n - 1]``: rows of what is made, not columns, whichever way they are written."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from tests.agreement import interpreted

N = 48


def slanted(index: Any, extent: int, f: Any = te.exp) -> te.Tensor:
    b, u = te.placeholder((extent,), name="b"), te.placeholder((N,), name="u")
    return te.compute((N, N), lambda i, j: f(b[index(i, j)] * u[i]), "y")


CASES: dict[str, te.Tensor] = {
    "differences": slanted(lambda i, j: i - j + N - 1, 2 * N - 1),
    "differences the other way": slanted(lambda i, j: j - i + N - 1, 2 * N - 1, te.tanh),
    "sums": slanted(lambda i, j: j + i, 2 * N - 1, te.sin),
    "distances by two": slanted(lambda i, j: 2 * i - 2 * j + 2 * N, 4 * N, te.cosh),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_as_they_lie(name: str, rng: np.random.Generator) -> None:
    y = CASES[name]
    b, u = y.inputs
    head = te.placeholder((N, N), name="head")
    feeds = {t: rng.normal(size=t.shape).astype("float32") for t in (b, u, head)}
    (adjoint,) = te.differentiate(y, [b], head)
    text = te.source([y, adjoint])
    assert ".T" not in text and "transpose" not in text, text
    run = te.function([b, u, head], [y, adjoint])
    for own, tensor in zip(jax.jit(run)(*(feeds[t] for t in (b, u, head))), (y, adjoint), strict=True):
        np.testing.assert_allclose(own, interpreted(tensor, feeds), rtol=1e-4, atol=1e-4)


def test_what_is_read_askew_is_multiplied_as_it_lies() -> None:
    """The adjoint of a table of distances: one array askew, not one for each factor, and a product of matrices stays one."""
    y = CASES["differences"]
    (adjoint,) = te.differentiate(y, [y.inputs[0]], te.placeholder((N, N), name="head"))
    assert isinstance(adjoint, te.Compute)
    (elements,) = (t for t in adjoint.inputs if t.name.endswith("_elements"))
    assert tuple(elements.shape) == (N, N)
    b, x = te.placeholder((2 * N - 1,), name="b"), te.placeholder((8, N), name="x")
    j = te.reduce_axis((0, N), "j")
    z = te.compute((8, N), lambda i, k: te.sum(b[k - j + N - 1] * x[i, j], axis=j), "z")
    (product,) = te.differentiate(z, [b], te.placeholder((8, N), name="head"))
    assert not any(t.name.endswith("_elements") for t in product.inputs)
