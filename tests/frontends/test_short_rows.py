"""Differences of points and colours, rows of a few numbers: raised also where a single level of differences is not."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def springs(x: Any) -> Any:
    return (jnp.sqrt(((x[1:] - x[:-1]) ** 2).sum(-1) + 1e-6) - 1) ** 2


def normals(p: Any) -> Any:
    return jnp.cross(p[1:, :-1] - p[:-1, :-1], p[:-1, 1:] - p[:-1, :-1])


def variation(x: Any) -> Any:
    return jnp.sqrt((x[:, 1:, :-1] - x[:, :-1, :-1]) ** 2 + (x[:, :-1, 1:] - x[:, :-1, :-1]) ** 2 + 0.01)


def turns(q: Any) -> Any:
    return 1 - (q[1:] * q[:-1]).sum(-1) ** 2


RAISED: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "springs": (springs, (4096, 3)),
    "normals of a surface": (normals, (64, 64, 3)),
    "colours": (variation, (2, 48, 48, 3)),
    "quaternions": (turns, (3000, 4)),
}
KEPT: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "few points": (springs, (512, 3)),
    "many coordinates": (springs, (512, 32)),
    "along another axis": (springs, (64, 64, 3)),
    "images without colours": (lambda x: (x[:, 1:] - x[:, :-1]) ** 2, (96, 96)),
}


@pytest.mark.parametrize("name", RAISED)
def test_rows_of_few_numbers_are_raised(name: str, rng: np.random.Generator) -> None:
    f, shape = RAISED[name]
    x = jnp.asarray(rng.normal(size=shape).astype("float32"))
    loss = lambda x: jnp.sum(f(x) ** 2)  # noqa: E731
    assert len(te.explain(te.adjoint(loss), x).regions) == 1
    own, expected = te.grad(loss)(x), jax.grad(loss)(x)
    np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5 * float(abs(expected).max()))


@pytest.mark.parametrize("name", KEPT)
def test_other_differences_stay(name: str) -> None:
    f, shape = KEPT[name]
    given = jax.ShapeDtypeStruct(shape, "float32")
    assert not te.explain(te.adjoint(lambda x: jnp.sum(f(x) ** 2)), given).regions
