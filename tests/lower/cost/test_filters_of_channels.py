"""Convolutions with a filter for each channel, and the gradients of these: slices on a GPU, on a TPU convolutions where its unit of matrices is faster."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te

Shapes = tuple[tuple[int, ...], ...]


def causal(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[t, c] = sum over k of w[c, k] x[t - k, c], one sequence"""
    k = te.reduce_axis((0, w.shape[1]), "k")
    return te.compute(x.shape, lambda t, c: te.sum(te.where(t >= k, w[c, k] * x[t - k, c], 0), axis=k), "y")


def dilated(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[c, b, t] = sum over k of w[k, c] x[c, b, t + 3 k], channels first"""
    k = te.reduce_axis((0, w.shape[0]), "k")
    shape = (*x.shape[:2], x.shape[2] - 3 * (w.shape[0] - 1))
    return te.compute(shape, lambda c, b, t: te.sum(w[k, c] * x[c, b, t + 3 * k], axis=k), "y")


def images(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[b, i, j, c] = sum over p, q of w[p, q, c] x[b, i + p, j + q, c], channels last"""
    p, q = (te.reduce_axis((0, n), name) for n, name in zip(w.shape[:2], "pq", strict=True))
    shape = (x.shape[0], x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1, x.shape[3])
    return te.compute(shape, lambda b, i, j, c: te.sum(w[p, q, c] * x[b, i + p, j + q, c], axis=(p, q)), "y")


CASES: list[tuple[Callable[..., te.Tensor], Shapes, Shapes]] = [
    (causal, ((4096, 128), (128, 12)), ((20, 6), (6, 5))),
    (dilated, ((96, 8, 1024), (16, 96)), ((3, 2, 20), (4, 3))),
    (images, ((4, 40, 40, 128), (5, 3, 128)), ((2, 7, 6, 4), (3, 2, 4))),
]


def _calls(define: Callable[..., te.Tensor], platform: str, shapes: Shapes) -> tuple[int, int]:
    """Convolutions in groups of features, and of the batch."""
    text = str(
        te.function(define, platform=platform).source(*[jax.ShapeDtypeStruct(s, "float32") for s in shapes])
    )
    return text.count("feature_group_count="), text.count("batch_group_count=")


@pytest.mark.parametrize("define, large, small", CASES)
def test_many_channels_are_groups_of_a_convolution_on_a_tpu(
    define: Callable[..., te.Tensor], large: Shapes, small: Shapes
) -> None:
    assert _calls(define, "tpu", large) == (2, 1)
    assert _calls(define, "gpu", large)[1] == 0


def _gradients(fn: Callable[..., jax.Array], args: list[np.ndarray]) -> tuple[jax.Array, ...]:
    return jax.grad(lambda *a: (fn(*a) ** 2).sum(), (0, 1))(*args)


@pytest.mark.parametrize("form", ["grouped convolution", "convolution in groups of the batch"])
@pytest.mark.parametrize("define, large, small", CASES)
def test_values_and_gradients(
    define: Callable[..., te.Tensor], large: Shapes, small: Shapes, form: str
) -> None:
    rng = np.random.default_rng(0)
    args = [rng.normal(size=shape) for shape in small]
    with jax.enable_x64(True):
        tensors = [te.placeholder(a.shape, "float64", name) for a, name in zip(args, "xw", strict=True)]
        expected = te.interpret(define(*tensors), dict(zip(tensors, args, strict=True)))
        fn, plain = (
            te.function(define, platform="tpu", forms={"*": form}),
            te.function(define, platform="cpu"),
        )
        np.testing.assert_allclose(fn(*args), expected, rtol=1e-12, atol=1e-12)
        found, own = (_gradients(f, args) for f in (fn, plain))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), found, own)


@pytest.mark.parametrize(
    "shapes", [((4096, 8), (8, 12)), ((4096, 32), (32, 2))], ids=["few channels", "two taps"]
)
def test_few_channels_and_short_filters_are_slices(shapes: Shapes) -> None:
    assert _calls(causal, "tpu", shapes)[0] == 0


def test_a_filter_for_each_position_has_no_channels() -> None:
    """y[t, c] = sum over k of w[t, k, c] x[t + k, c]"""
    k = te.reduce_axis((0, 9), "k")

    def varying(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        return te.compute((1016, 128), lambda t, c: te.sum(w[t, k, c] * x[t + k, c], axis=k), "y")

    assert _calls(varying, "tpu", ((1024, 128), (1016, 9, 128))) == (0, 0)
