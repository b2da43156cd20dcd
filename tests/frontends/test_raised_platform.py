"""What is raised depends on the platform that it is raised for: where XLA fuses what JAX derives, the program is plain JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

U = np.linspace(-1, 1, 64 * 64, dtype="float32").reshape(64, 64) ** 3


def heat(u: Any) -> Any:
    for _ in range(3):
        u = u + 0.1 * (
            jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        )
    return jnp.sum(u**2)


def pairs(u: Any) -> Any:
    d = u.ravel()[:512, None] - u.ravel()[None, 512:1024]
    return jnp.sum(jnp.exp(-(d**2)) * d**2)


def attention_in_a_band(heads: int, n: int) -> tuple[Callable[..., Any], jax.ShapeDtypeStruct]:
    """Attention of each position to 16 beside it, and the queries, keys and values that it takes at once."""
    i = np.arange(n)
    near = np.abs(i[:, None] - i) <= 16

    def f(x: Any) -> Any:
        scores = jnp.where(near, jnp.einsum("hqd,hkd->hqk", x[0], x[1]), -jnp.inf)
        return jnp.sum(jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), x[2]) ** 2)

    return f, jax.ShapeDtypeStruct((3, heads, n, 8), jnp.float32)


def products_of_pairs(heads: int, n: int, platform: str) -> int:
    """How many products the gradient of attention in a band takes over all pairs."""
    f, x = attention_in_a_band(heads, n)
    return str(jax.make_jaxpr(te.grad(f, platform=platform))(x)).count(f"f32[{heads},{n},{n}] = dot_general")


def running(u: Any) -> Any:
    return jnp.sum(jnp.cumsum(u, 1) ** 2)


def windows_of_sums(u: Any) -> Any:
    c = jnp.cumsum(u, 1)
    return jnp.sum((c[:, 8:] - c[:, :-8]) ** 2)


def largest(u: Any) -> Any:
    return jnp.sum(lax.reduce_window(u, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2)


def regions(f: Callable[..., Any], platform: str) -> int:
    return len(te.explain(te.grad(f, platform=platform), U).regions)


def separable(x: Any) -> Any:
    """A filter of each channel by itself, channels last."""
    kernel, numbers = jnp.ones((3, 3, 1, 64)), ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(
        x.reshape(1, 8, 8, 64), kernel, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=64
    )
    return jnp.sum(y**2)


def resized(u: Any) -> Any:
    return jnp.sum(jax.image.resize(u, (64, 128), "bilinear") ** 2)


def smoothed(u: Any) -> Any:
    """Each row by a short filter."""
    return jnp.sum(jax.vmap(lambda row: jnp.convolve(row, jnp.array([0.2, 0.5, 0.3]), mode="same"))(u) ** 2)


def half(u: Any) -> Any:
    return jnp.sum(lax.reduce_window(u, 0.0, lax.add, (2, 2), (2, 2), "VALID") ** 2)


def along_rows(u: Any) -> Any:
    """Sums over 3 x 3 elements at each position."""
    return jnp.sum(lax.reduce_window(u, 0.0, lax.add, (3, 3), (1, 1), "SAME") ** 2)


def pooled(size: int) -> Callable[..., Any]:
    """Maxima of windows two positions apart, channels last."""
    window = (1, size, size, 1), (1, 2, 2, 1), "SAME"
    return lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, *window) ** 2)


def overlapping(u: Any) -> Any:
    return pooled(3)(u.reshape(16, 16, 4, 4))


def few_apart(u: Any) -> Any:
    return pooled(2)(u.reshape(16, 16, 4, 4))


@pytest.mark.parametrize(
    ("f", "platform"),
    [
        *((f, p) for f in (pairs, separable) for p in ("gpu",)),
        *((f, "tpu") for f in (heat, pairs, running, resized, smoothed, half, along_rows)),
        *((f, "tpu") for f in (overlapping, few_apart)),
    ],
)
def test_what_xla_fuses_stays_as_it_is(f: Callable[..., Any], platform: str) -> None:
    assert regions(f, "cpu") == 1 and regions(f, platform) == 0
    with te.everywhere(platform=platform):
        assert "jaxte" not in str(jax.make_jaxpr(jax.grad(f))(U))
    assert str(jax.make_jaxpr(te.grad(f, platform=platform))(U)) == str(jax.make_jaxpr(jax.grad(f))(U))


@pytest.mark.parametrize(
    ("f", "platform"),
    [
        *((f, p) for f in (windows_of_sums, largest) for p in ("gpu", "tpu")),
        *((f, "gpu") for f in (heat, running)),
    ],
)
def test_what_gains_everywhere_is_raised_everywhere(f: Callable[..., Any], platform: str) -> None:
    assert regions(f, platform) == 1
    gradient = te.grad(f, platform=platform)
    assert te.explain(gradient, U).regions[0].code.platform == platform
    np.testing.assert_allclose(gradient(U), jax.grad(f)(jnp.asarray(U)), rtol=1e-4, atol=1e-4)


def test_extrema_that_a_tpu_cannot_scatter_are_raised() -> None:
    """``select_and_scatter`` has to have two dimensions that are in no window there; windows apart gain where an array is large."""
    overlapped = lambda u: jnp.sum(lax.reduce_window(u, -jnp.inf, lax.max, (3, 3), (1, 1), "SAME") ** 2)  # noqa: E731
    assert regions(overlapped, "tpu") == 1
    large = jax.ShapeDtypeStruct((64, 16, 16, 8), "float32")
    pools = [pooled(2), pooled(3), lambda u: pooled(2)(2 * u)]
    found = [te.explain(te.grad(f, platform="tpu"), large).regions for f in pools]
    assert [len(f) for f in found] == [1, 0, 0]


@pytest.mark.parametrize(("platform", "count"), [("cpu", 1), ("gpu", 1), ("tpu", 0)])
def test_sums_beside_their_ends(platform: str, count: int) -> None:
    f = lambda u: jnp.sum(jax.scipy.integrate.trapezoid(u, axis=1) ** 2)  # noqa: E731
    large = jax.ShapeDtypeStruct((64, 4096), "float32")
    assert len(te.explain(te.grad(f, platform=platform), large).regions) == count


def test_every_transformation_takes_a_platform() -> None:
    own, u = {"platform": "gpu"}, jnp.asarray(U)
    expected = jax.grad(largest)(u)
    value, gradient = te.value_and_grad(largest, **own)(u)
    again, pull = te.vjp(largest, u, **own)
    np.testing.assert_allclose(value, again)
    for found in (gradient, pull(jnp.ones(()))[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    _, tangent = te.jvp(largest, (u,), (u,), **own)
    _, push = te.linearize(largest, u, **own)
    np.testing.assert_allclose([tangent, push(u)], [jnp.vdot(expected, u)] * 2, rtol=1e-4)
    assert te.grad(te.adjoint(largest), platform="tpu").raised.platform == "tpu"  # type: ignore[attr-defined]
    assert te.hessian(largest, **own).raised.platform == "gpu"


def test_platforms_that_are_none() -> None:
    for transform in (te.grad, te.value_and_grad, te.hessian, lambda f, **own: te.vjp(f, U, **own)):
        with pytest.raises(te.LoweringError, match="platform 'abacus' is unknown; give one of cpu, gpu, tpu"):
            transform(heat, platform="abacus")
    with (
        pytest.raises(te.LoweringError, match="platform 'abacus' is unknown"),
        te.everywhere(platform="abacus"),
    ):
        pass
    doubled = te.function(lambda x: te.compute((), lambda: 2 * x[()], "y"))
    with pytest.raises(
        te.ArgumentError, match=r"platform='gpu' is for JAX functions; .* give platform= there"
    ):
        te.grad(doubled, platform="gpu")


def test_a_band_that_stays_on_the_chip_is_computed_over_all_pairs() -> None:
    assert [products_of_pairs(4, 256, p) for p in ("cpu", "gpu", "tpu")] == [0, 0, 2]
    assert products_of_pairs(32, 1024, "tpu") == 0  # 128 MiB
