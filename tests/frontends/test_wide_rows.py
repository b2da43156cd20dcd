"""Sums of wide rows gain by themselves: ensembles, and what flows back to what is the same for a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

WIDE = (130, 128)  # 16,640 elements, a little more than the library of XLA takes well
REASON = "a sum of wide rows, which are added one by one, or as a product"


def spectra(x: Any) -> Any:
    """The mean over an ensemble, of which nothing else is raised."""
    return jnp.abs(jnp.fft.rfft(x, axis=-1)).mean(0)[:, 1:]


def positions(x: Any, p: Any) -> Any:
    """Learned positions before a softmax."""
    return jax.nn.softmax(x + p, -1)


def scales(x: Any, p: Any) -> Any:
    return jax.nn.softmax(x * p, -1)


def along_features(x: Any, p: Any) -> Any:
    return jax.nn.softmax(x + p, -1)


RAISED: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "ensemble": (spectra, [(5, 130, 300)]),
    "positions": (positions, [(3, *WIDE), WIDE]),
    "scales": (scales, [(3, *WIDE), (1, *WIDE)]),
}
KEPT: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "narrow rows": (positions, [(3, 128, 128), (128, 128)]),
    "repeated within": (positions, [(3, *WIDE), (3, 1, 128)]),
    "features": (along_features, [(3, *WIDE), (128,)]),
}


def loss_of(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jnp.sum(f(*args) ** 2)


@pytest.mark.parametrize("name", RAISED)
def test_by_themselves(name: str, rng: np.random.Generator) -> None:
    f, shapes = RAISED[name]
    args = [jnp.asarray(rng.normal(size=s), "float32") for s in shapes]
    found = te.explain(te.adjoint(loss_of(f)), *args)
    assert {line.reason for region in found.regions for line in region.lines} == {REASON}, found
    numbers = tuple(range(len(args)))
    ours, theirs = (jax.jit(g(loss_of(f), numbers))(*args) for g in (te.grad, jax.grad))
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-6 * float(jnp.max(jnp.abs(other))))


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    f, shapes = KEPT[name]
    structs = [jax.ShapeDtypeStruct(s, "float32") for s in shapes]
    assert not te.explain(te.adjoint(loss_of(f)), *structs).regions


def test_other_platforms_have_other_sums() -> None:
    structs = [jax.ShapeDtypeStruct(s, "float32") for s in RAISED["positions"][1]]
    assert not te.explain(te.adjoint(loss_of(positions), platform="gpu"), *structs).regions


def test_beside_others_that_gain_they_are_a_part_of_their_region() -> None:
    def spread(x: Any) -> Any:
        return jnp.sum(jax.vmap(lambda s: jnp.roll(x, s, 0))(jnp.arange(-1, 2)).mean(0) ** 2)

    assert len(te.explain(te.adjoint(spread), jax.ShapeDtypeStruct(WIDE, "float32")).regions) == 1


def test_products_of_pairs_are_products() -> None:
    """What is repeated for all pairs is raised with the sum of its products."""
    structs = [jax.ShapeDtypeStruct(s, "float32") for s in ((200, 64), (300, 64))]
    found = te.explain(
        te.adjoint(lambda a, b: jnp.sum(jnp.tanh(jnp.sum(a[:, None] * b[None], -1)))), *structs
    )
    assert len(found.regions) == 1 and REASON not in str(found), found
