"""The forms of a sum at positions that are data: each adds up the same, and the platform decides."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxte as te

SCATTERS = ("scatter-add", "sorted scatter-add", "one-hot product")


@pytest.mark.parametrize("form", SCATTERS)
@pytest.mark.parametrize("axis", [0, 1])
def test_every_form_of_a_scatter_adds_the_same(form: str, axis: int, rng: np.random.Generator) -> None:
    shape = (7, 4) if axis == 0 else (4, 7)

    def take(x: te.Tensor, i: te.Tensor) -> te.Tensor:
        rows = (9, 4) if axis == 0 else (4, 9)
        read = (lambda a, b: x[i[a], b]) if axis == 0 else (lambda a, b: x[a, i[b]])
        return te.compute(rows, read, "y")

    x = rng.standard_normal(shape).astype("float32")
    h = rng.standard_normal((9, 4) if axis == 0 else (4, 9)).astype("float32")
    at = rng.integers(0, 7, 9).astype("int32")
    fn = te.function(take, forms={"*": form})
    found = jax.vjp(lambda x: fn(x, at), x)[1](h)[0]
    expected = np.zeros_like(x)
    np.add.at(expected, at if axis == 0 else (slice(None), at), h)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert form in fn.explain(x, at).forms["dx"]


def test_the_cheapest_scatter_depends_on_the_platform() -> None:
    def lookup(x: te.Tensor, i: te.Tensor) -> te.Tensor:
        return te.compute((4096, 64), lambda a, b: x[i[a], b], "y")

    shapes = jax.ShapeDtypeStruct((64, 64), "float32"), jax.ShapeDtypeStruct((4096,), "int32")
    assert "scatter-add" in te.function(lookup, platform="cpu").explain(*shapes).forms["dx"]
    assert "one-hot product" in te.function(lookup, platform="tpu").explain(*shapes).forms["dx"]
