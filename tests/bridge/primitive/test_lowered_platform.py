"""Forms are those of the platform that JAX lowers for, which need not be the one that the process runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxte as te

LOWERED_FOR = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}


def smoothed(x: Any) -> Any:
    """Sums over three neighbours of what is dear, zero outside."""
    (n,) = x.shape
    k = te.reduce_axis((0, 3), "k")
    inside = lambda i: te.tanh(x[te.clip(i + k - 1, 0, n - 1)])  # noqa: E731
    return te.compute(
        (n,), lambda i: te.sum(te.select((i + k >= 1) & (i + k <= n), inside(i), 0.0), axis=k), "y"
    )


def moved(x: Any, at: Any) -> Any:
    """Rows at positions that are data: their adjoint is a scatter on one platform and a product on another."""
    return te.compute((at.shape[0], x.shape[1]), lambda i, j: x[at[i], j], "y")


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pads": (smoothed, (jax.ShapeDtypeStruct((50_000,), "float32"),)),
    "positions": (moved, (jax.ShapeDtypeStruct((64, 64), "float32"), jax.ShapeDtypeStruct((4096,), "int32"))),
}


def both(f: Any) -> Any:
    return jax.jit(jax.value_and_grad(lambda *args: jnp.sum(f(*args) ** 2)))


def text(f: Any, args: tuple[Any, ...], platform: str) -> str:
    return str(both(f).trace(*args).lower(lowering_platforms=(LOWERED_FOR[platform],)).as_text())


@pytest.mark.parametrize("name", CASES)
def test_each_platform_gets_its_own_forms(name: str) -> None:
    builder, args = CASES[name]
    found = {p: text(te.function(builder), args, p) for p in LOWERED_FOR}
    chosen = {p: text(te.function(builder, platform=p), args, p) for p in LOWERED_FOR}
    assert found == chosen
    assert found["cpu"] != found["tpu"]


def test_a_platform_that_was_asked_for_stays() -> None:
    builder, args = CASES["pads"]
    fixed = te.function(builder, platform="cpu")
    operations = [
        [line.split("=")[-1] for line in text(fixed, args, p).splitlines() if "stablehlo" in line]
        for p in LOWERED_FOR
    ]
    assert operations[0] == operations[1] == operations[2]


def test_one_export_holds_the_forms_of_several() -> None:
    builder, args = CASES["positions"]
    exported = export.export(both(te.function(builder)), platforms=("cpu", "cuda", "tpu"))(*args)
    module = str(exported.mlir_module())
    assert "stablehlo.case" in module and "scatter" in module and "dot_general" in module
    rng = np.random.default_rng(0)
    x, at = rng.normal(size=(64, 64)).astype("float32"), rng.integers(0, 64, 4096).astype("int32")
    _, found = exported.call(x, at)
    expected = jax.grad(lambda x: jnp.sum(x[at] ** 2))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)


def test_raised_functions_are_planned_for_a_platform() -> None:
    """Sums of squares over windows: passes along one axis after the other for one platform, one loop for another."""

    def contrast(x: Any) -> Any:
        mean = jax.lax.reduce_window(x, 0.0, jax.lax.add, (9, 9), (1, 1), "SAME") / 81
        return jnp.sum((x - jnp.roll(x, 1, 0) * mean) ** 2)

    x = jnp.asarray(np.random.default_rng(0).normal(size=(96, 96)), "float32")
    of = {p: te.source(te.adjoint(contrast, platform=p), x) for p in ("cpu", "gpu")}
    assert of["cpu"] != of["gpu"]
    assert "lax.reduce_window" in of["gpu"]
    for platform in LOWERED_FOR:
        found = te.grad(te.adjoint(contrast, platform=platform))(x)
        np.testing.assert_allclose(found, jax.grad(contrast)(x), rtol=2e-4, atol=2e-4)


def test_an_unknown_platform_is_named() -> None:
    with pytest.raises(te.LoweringError, match="platform 'abacus' is unknown; give one of cpu, gpu, tpu"):
        te.adjoint(jnp.sin, platform="abacus")
