"""Sums of exponentials up to each position, in units of the largest: values, gradients and what is not finite, beside JAX and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.apart.exponentials import EXPONENTIALS

N = 160
inf = np.inf


def _over(n: int = N) -> te.Axis:
    return te.reduce_axis((0, n), "s")


def _rows(bound: Callable[[Any, Any], Any]) -> Callable[..., te.Tensor]:
    """A logsumexp of rows with one bound."""

    def build(x: Any) -> te.Tensor:
        s = _over(x.shape[1])
        return te.compute(x.shape, lambda b, t: te.logsumexp(x[b, s], axis=s, where=bound(s, t)), "y")

    return build


BOUNDS: dict[str, Callable[[Any, Any], Any]] = {
    "so far": lambda s, t: s <= t,
    "left": lambda s, t: s >= t,
    "before": lambda s, t: s < t,
    "after": lambda s, t: s > t,
    "three more": lambda s, t: s <= t + 3,
    "all but the next four": lambda s, t: s >= t + 4,
    "from the other end": lambda s, t: s + t < N,
}


def _meant(bound: Callable[[Any, Any], Any], x: Any) -> Any:
    """Each pair by itself."""
    t, s = np.meshgrid(np.arange(x.shape[1]), np.arange(x.shape[1]), indexing="ij")
    held = np.asarray(bound(s, t))
    pairs = jnp.where(held, x[:, None, :], -inf)
    shift = jax.lax.stop_gradient(jnp.max(pairs, 2, keepdims=True))
    shift = jnp.where(jnp.isfinite(shift), shift, 0)
    total = jnp.sum(jnp.exp(jnp.where(held, x[:, None, :] - shift, -inf)), 2)
    return jnp.log(total) + shift[..., 0]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("name", BOUNDS)
def test_values_and_derivatives(name: str, scale: float, rng: np.random.Generator) -> None:
    x, h = scale * rng.standard_normal((3, N)), rng.standard_normal((3, N))
    run = te.function(_rows(BOUNDS[name]))
    assert EXPONENTIALS in str(te.explain(run, x))

    def loss(f: Callable[[Any], Any], x: Any) -> Any:
        y = f(x)
        return jnp.sum(jnp.where(jnp.isfinite(y), y, 0.0) * h)

    meant = lambda x: _meant(BOUNDS[name], x)  # noqa: E731
    np.testing.assert_allclose(run(x), meant(x), rtol=1e-12, atol=1e-12)
    found, expected = (jax.grad(lambda x, f=f: loss(f, x))(x) for f in (run, meant))
    rows = np.isfinite(np.asarray(meant(x))).all(1)  # the gradient of an empty sum is NaN in both
    np.testing.assert_allclose(found[rows], expected[rows], rtol=1e-9, atol=1e-11)
    tangent = jax.jvp(run, (x,), (h,))[1]
    np.testing.assert_allclose(
        tangent[:, 5:-5], jax.jvp(meant, (x,), (h,))[1][:, 5:-5], rtol=1e-9, atol=1e-10
    )


def _weighted(w: Any, f: Any, c: Any) -> te.Tensor:
    s = _over()
    body = lambda b, t: te.sum(w[b, s] * te.exp(f[b, s] - c[b, t]), axis=s, where=s <= t)  # noqa: E731
    return te.compute(f.shape, body, "y")


def _both(w: np.ndarray, f: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    run = te.function(_weighted)
    assert EXPONENTIALS in str(te.explain(run, w, f, c))
    with np.errstate(all="ignore"):
        pairs = w[:, None, :] * np.exp(f[:, None, :] - c[:, :, None])
        meant = np.where(np.arange(N)[:, None] >= np.arange(N), pairs, 0.0).sum(-1)
    return np.asarray(run(w, f, c)), meant


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("offset", [0.0, 650.0, -650.0])
def test_what_stands_outside_may_be_anything(offset: float, rng: np.random.Generator) -> None:
    """Exponents that are far from what they are compared with: the sum is finite where each of its terms is."""
    f, w = 20 * rng.standard_normal((24, N)) + offset, rng.standard_normal((24, N))
    found, meant = _both(w, f, f[:, ::-1] + rng.standard_normal((24, N)))
    np.testing.assert_allclose(found, meant, rtol=1e-9)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("special", [-inf, inf, np.nan])
@pytest.mark.parametrize("at", [0, 57])
def test_what_is_not_finite(special: float, at: int, rng: np.random.Generator) -> None:
    f, w, c = rng.standard_normal((3, 24, N))
    f[:, at] = special
    np.testing.assert_allclose(*_both(w, f, c), rtol=1e-9, atol=1e-12)
    f, w, c = rng.standard_normal((3, 24, N))
    c[:, at] = special
    found, meant = _both(w, f, c)
    same = np.isfinite(meant) | np.isinf(
        meant
    )  # an infinite factor stands outside of the sum: no difference of infinities
    np.testing.assert_allclose(found[same], meant[same], rtol=1e-9, atol=1e-12)
    assert not np.isfinite(found[~same]).any()
    f, w, c = rng.standard_normal((3, 24, N))
    w[:, at] = special
    np.testing.assert_allclose(*_both(w, f, c), rtol=1e-9, atol=1e-12)
    f[:, : at + 1] = -inf
    w[:, at] = 1.0
    np.testing.assert_allclose(*_both(w, f, c), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_masks_and_other_axes(rng: np.random.Generator) -> None:
    """Weights of each feature, positions that data leave out, and a factor outside."""

    def build(k: Any, v: Any, m: Any) -> te.Tensor:
        s = _over(k.shape[0])
        total = te.compute(
            k.shape, lambda t, d: te.logsumexp(k[s, d], axis=s, where=(s <= t) & (m[s] > 0)), "total"
        )
        weighed = lambda t, d: te.exp(k[s, d] - total[t, d]) * v[s, d] * k[t, d]  # noqa: E731
        return te.compute(
            k.shape, lambda t, d: te.sum(weighed(t, d), axis=s, where=(s <= t) & (m[s] > 0)), "y"
        )

    def plain(k: Any, v: Any, m: Any) -> Any:
        held = (np.arange(N)[:, None] >= np.arange(N)) & (m > 0)
        pairs = jnp.where(held[..., None], k[None], -inf)
        return jnp.einsum("tsd,sd->td", jax.nn.softmax(pairs, 1), v) * k

    k, v, m = rng.standard_normal((N, 5)), rng.standard_normal((N, 5)), rng.standard_normal(N)
    m[0] = 1.0
    run = te.function(build)
    assert EXPONENTIALS in str(te.explain(run, k, v, m))
    np.testing.assert_allclose(run(k, v, m), plain(k, v, m), rtol=1e-10, atol=1e-12)
    h = rng.standard_normal((N, 5))
    for n in range(2):
        found, expected = (jax.grad(lambda *a, f=f: jnp.sum(f(*a) * h), n)(k, v, m) for f in (run, plain))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.usefixtures("x64")
def test_weights_of_more_axes_than_exponents_and_second_derivatives(rng: np.random.Generator) -> None:
    """Of several sums with one exponent, the largest of them is one tensor."""
    x, h = rng.standard_normal((2, N)), rng.standard_normal((2, N))
    run = te.function(_rows(BOUNDS["left"]))
    plain = lambda x: jax.lax.cumlogsumexp(x, 1, reverse=True)  # noqa: E731
    found, expected = (jax.hessian(lambda x, f=f: jnp.sum(jnp.sin(f(x)) * h))(x) for f in (run, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.usefixtures("x64")
def test_conditions_around_the_sum(rng: np.random.Generator) -> None:
    """A quotient of two such sums that counts from some position on, which keeps what it reads in range."""

    def build(w: Any, f: Any, c: Any) -> te.Tensor:
        s = _over()

        def element(b: Any, t: Any) -> Any:
            pair = lambda: te.exp(f[b, s] - c[b, t - 4])  # noqa: E731
            above, below = te.sum(w[b, s] * pair(), s, where=s <= t), te.sum(pair(), s, where=s <= t)
            return te.select(t >= 4, above / below, 0.0)

        return te.compute(f.shape, element, "y")

    def plain(w: Any, f: Any, c: Any) -> Any:
        held = np.arange(4, N)[:, None] >= np.arange(N)
        pairs = jnp.where(held, jnp.exp(f[:, None, :] - c[:, :-4, None]), 0.0)
        return jnp.pad((pairs * w[:, None]).sum(-1) / pairs.sum(-1), ((0, 0), (4, 0)))

    w, f, c = rng.standard_normal((3, 24, N))
    run = te.function(build)
    assert EXPONENTIALS in str(te.explain(run, w, f, c))
    np.testing.assert_allclose(run(w, f, c), plain(w, f, c), rtol=1e-11, atol=1e-12)
    h = rng.standard_normal((24, N))
    for n in range(3):
        found, expected = (jax.grad(lambda *a, g=g: jnp.sum(g(*a) * h), n)(w, f, c) for g in (run, plain))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_no_pair_is_met(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 1024)).astype("float32")
    run = te.function(_rows(BOUNDS["left"]))
    step = jax.jit(jax.value_and_grad(lambda x: jnp.sum(run(x)))).lower(x).compile()
    assert step.memory_analysis().temp_size_in_bytes < 16 * x.nbytes
    exact = jax.value_and_grad(lambda x: jnp.sum(_meant(BOUNDS["left"], x)))
    for found, expected in zip(step(x), exact(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_a_gpu_halves(rng: np.random.Generator) -> None:
    x = rng.standard_normal((64, 4096)).astype("float32")
    assert "associative_scan" in te.source(te.function(_rows(BOUNDS["so far"]), platform="gpu"), x)


def test_what_stays(rng: np.random.Generator) -> None:
    """Short rows, windows from both sides, and exponents in which both positions stand together."""
    x = rng.standard_normal((4, 6)).astype("float32")
    assert EXPONENTIALS not in str(te.explain(te.function(_rows(BOUNDS["so far"])), x))
    x = rng.standard_normal((4, N)).astype("float32")
    window = te.function(_rows(lambda s, t: (s <= t) & (s > t - 40)))
    assert EXPONENTIALS not in str(te.explain(window, x))

    def together(x: Any) -> te.Tensor:
        s = _over()
        return te.compute(x.shape, lambda b, t: te.sum(te.exp(x[b, s] * x[b, t]), axis=s, where=s <= t), "y")

    assert EXPONENTIALS not in str(te.explain(te.function(together), x))
    assert "_scaled" not in te.source(te.function(_rows(BOUNDS["left"]), without=EXPONENTIALS), x)
