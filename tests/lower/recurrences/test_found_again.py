"""An extremum that an adjoint finds again of elements that it holds is computed once, of these."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte import Tensor
from npbench.kernels import nussinov

pytestmark = pytest.mark.usefixtures("x64")


def steepest(x: Tensor, w: Tensor) -> Tensor:
    k = te.reduce_axis((0, w.shape[0]), "k")
    m = te.compute((x.shape[0],), lambda i: te.max(te.sin(x[i] * w[k]), axis=k), "m")
    return te.compute((x.shape[0],), lambda i: te.exp(m[i]) * x[i], "y")


def chained(x: Tensor, w: Tensor) -> Tensor:
    """The second is found of elements that read the first."""
    k, j = (te.reduce_axis((0, w.shape[0]), n) for n in "kj")
    m = te.compute((x.shape[0],), lambda i: te.min((x[i] - w[k]) ** 2 * x[i], axis=k), "m")
    n = te.compute((x.shape[0],), lambda i: te.max(te.sin(m[i] * w[j]) + x[i], axis=j), "n")
    return te.compute((x.shape[0],), lambda i: n[i] * n[i] * m[i], "y")


def plain_steepest(x, w):
    return jnp.exp(jnp.max(jnp.sin(x[:, None] * w), 1)) * x


def plain_chained(x, w):
    m = jnp.min((x[:, None] - w) ** 2 * x[:, None], 1)
    n = jnp.max(jnp.sin(m[:, None] * w) + x[:, None], 1)
    return n * n * m


@pytest.mark.parametrize("length", [40, te.var("length")])
@pytest.mark.parametrize(
    "build, plain, extrema", [(steepest, plain_steepest, 1), (chained, plain_chained, 3)]
)
def test_extrema_of_definitions(
    rng: np.random.Generator,
    build: Callable[..., Tensor],
    plain: Callable[..., jax.Array],
    extrema: int,
    length,
) -> None:
    x, w, h = (te.placeholder((n,), "float64", name) for n, name in ((6, "x"), (length, "w"), (6, "h")))
    fn = te.function([x, w, h], list(te.differentiate(build(x, w), [x, w], h)))
    arrays = [rng.normal(size=n) for n in (6, 40, 6)]
    found = fn(*arrays)
    wanted = jax.vjp(plain, *arrays[:2])[1](arrays[2])
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)
    if isinstance(length, int):
        own = te.source(fn, *arrays).split("def forward(")[1].split("\ndef ")[0]
        assert len(re.findall(r"jnp\.(?:max|min)\(", own)) == extrema


def test_an_extremum_in_a_loop_is_not_computed_beside_the_one_of_its_elements(
    rng: np.random.Generator,
) -> None:
    """Nor is it written out where one gather takes what a term of each position would gather by itself; the pass back is handed what the loop has found."""
    text = te.source(te.loops(nussinov), rng.integers(0, 2, (40, 40)).astype(float))
    forward, backward = text.split("def backward(")
    passes = forward.split("def forward_with_residuals(")
    assert [len(re.findall(r"jnp\.max\(", own)) for own in (*passes, backward)] == [1, 1, 0]
    assert text.count("\n") < 560
